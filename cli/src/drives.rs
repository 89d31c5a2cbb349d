//! `nandscape drives`: the built-in profiles.

use clap::{Args, Subcommand};
use comfy_table::Table;
use comfy_table::presets::NOTHING;
use nandscape_device_ftl_ox::registry::{self, Set};
use nandscape_device_ssd::{BUILTIN, key_docs};
use nandscape_lab_report::format::{percent, size};

use crate::failure::Failure;
use crate::{output, sim};

/// List the built-in drives, or show one.
#[derive(Args)]
#[command(after_help = "\
Examples:
  nandscape drives
  nandscape drives show default --resolved --set capacity=1TiB
  nandscape drives keys | grep victim

Exit status: 0 when shown, 2 for bad usage, or a profile that cannot be.")]
pub(crate) struct DrivesArgs {
    #[command(subcommand)]
    command: Option<DrivesCommand>,
}

#[derive(Subcommand)]
enum DrivesCommand {
    /// List the built-in drives, as without a command
    #[command(after_help = SHOWN)]
    List,
    /// Show a profile as written, or resolved
    #[command(after_help = "Exit status: 0 when shown, 2 for a profile that cannot be.")]
    Show {
        /// The drive, by name or file
        drive: String,
        /// Show all keys, including defaults and derived ones
        #[arg(long)]
        resolved: bool,
        /// Change a key first
        #[arg(long, value_name = "KEY=VALUE")]
        set: Vec<String>,
    },
    /// List every key of a profile with its value in the default drive and its meaning
    #[command(after_help = "Exit status: 0 when shown, 2 where no key begins like that.")]
    Keys {
        /// Only keys of this section or that begin like this: ftl.gc, ftl.gc.victim
        #[arg(value_name = "PREFIX")]
        prefix: Option<String>,
    },
    /// List the components that an OX-Block is assembled from, for the keys of [ftl.ox]
    #[command(after_help = SHOWN)]
    Components,
}

/// The end of the help of commands that cannot fail.
const SHOWN: &str = "Exit status: 0 when shown.";

/// Lists, or shows one.
pub(crate) fn run(args: &DrivesArgs) -> Result<(), Failure> {
    match &args.command {
        None | Some(DrivesCommand::List) => list(),
        Some(DrivesCommand::Show { drive, resolved, set }) => show(drive, *resolved, set),
        Some(DrivesCommand::Keys { prefix }) => output::result(&keys(prefix.as_deref().unwrap_or(""))?),
        Some(DrivesCommand::Components) => output::result(&components()),
    }
}

fn list() -> Result<(), Failure> {
    let mut table = Table::new();
    table.load_style(NOTHING).set_header(["drive", "capacity", "what it is"]);
    for builtin in BUILTIN {
        let resolved = sim::resolve(builtin.name, &[])?;
        let description = resolved.keys.description.clone().unwrap_or_default();
        table.add_row([builtin.name.to_owned(), size(resolved.capacity()), description]);
    }
    output::result(&table.trim_fmt())
}

fn show(drive: &str, resolved: bool, changes: &[String]) -> Result<(), Failure> {
    if resolved {
        let resolved = sim::resolve(drive, changes)?;
        resolved.notes.iter().for_each(|note| output::note(note));
        let sizing = &resolved.sizing;
        return output::result(&format!(
            "{}\n# over-provisioning {} asked, {:.2}% achieved, {:.2}% with the spare blocks; {} blocks a plane: {} spare for garbage collection, {} bad\n",
            resolved.to_toml(),
            resolved.keys.ftl.over_provisioning.map_or("-".to_owned(), |share| percent(share.0.0)),
            sizing.over_provisioning * 100.0,
            sizing.with_reserve * 100.0,
            sizing.blocks_per_plane,
            sizing.reserve_per_plane,
            sizing.bad_per_plane,
        ));
    }
    match BUILTIN.iter().find(|builtin| builtin.name == drive && changes.is_empty()) {
        Some(builtin) => output::result(builtin.text),
        None => {
            let mut profile = sim::load(drive)?;
            profile.set_all(changes).map_err(Failure::input)?;
            // What is written is shown, also of a profile that cannot be resolved.
            profile.resolve().iter().flat_map(|resolved| &resolved.notes).for_each(|note| output::note(note));
            output::result(&profile.to_toml())
        }
    }
}

/// The keys that begin with a prefix, section by section, with their values in the default drive.
fn keys(prefix: &str) -> Result<String, Failure> {
    let default = serde_json::to_value(&sim::resolve("default", &[])?.keys).map_err(Failure::run)?;
    let mut text = String::new();
    let mut section = None;
    let full = |section: &str, key: &str| if section.is_empty() { key.to_owned() } else { format!("{section}.{key}") };
    for doc in key_docs().into_iter().filter(|doc| full(doc.section, doc.key).starts_with(prefix)) {
        if section != Some(doc.section) {
            let heading = if doc.section.is_empty() { "top".to_owned() } else { format!("[{}]", doc.section) };
            text.push_str(&format!("{}{heading}\n", if section.is_some() { "\n" } else { "" }));
            section = Some(doc.section);
        }
        let meaning: Vec<&str> = doc.doc.lines().map(str::trim).collect();
        let path = [doc.section, doc.key].into_iter().flat_map(|part| part.split('.')).filter(|part| !part.is_empty());
        let value = path.fold(&default, |value, part| &value[part]);
        let value = if value.is_null() { String::new() } else { format!(" [default drive: {value}]") };
        text.push_str(&format!("  {:20} {}{value}\n", doc.key, without_links(meaning.join(" ").trim())));
    }
    match text.is_empty() {
        true => Err(Failure::Input(anyhow::anyhow!(
            "{prefix}: no key begins like that; `nandscape drives keys` lists all, and a section such as ftl.gc its keys"
        ))),
        false => Ok(text),
    }
}

/// All components, the one of each set first that counts when none is named.
fn components() -> String {
    let mut table = Table::new();
    table.load_style(NOTHING).set_header(["key", "component", "what it is"]);
    for component in Set::ALL.iter().flat_map(|set| registry::components(*set)) {
        table.add_row([format!("ftl.ox.{}", component.set().key()), component.name().into(), component.about().into()]);
    }
    table.trim_fmt()
}

/// Markdown's links as text: the page in parentheses, from the root of the repository.
fn without_links(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, label, page, after)) = link(rest) {
        plain.push_str(&format!("{before}{label} (docs/{page})"));
        rest = after;
    }
    plain + rest
}

/// The first link: the text before it, its label, its page, and the text after it.
fn link(text: &str) -> Option<(&str, &str, &str, &str)> {
    let (label, page) = text.split_once("](")?;
    let (before, label) = label.rsplit_once('[')?;
    let (page, after) = page.split_once(')')?;
    Some((before, label, page, after))
}
