//! Values of options that only this program knows: built-in drives and workloads, keys of profiles, claims of the lab. Left
//! out: the values that a key may have.

use std::ffi::OsStr;
use std::path::Path;

use clap::{Arg, Command};
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter as _};
use nandscape_device_ssd::key_docs;

/// The same tree of commands, with these values at the options that take them.
pub(super) fn with_candidates(command: Command) -> Command {
    let name = command.get_name().to_owned();
    command.mut_args(|arg| completed(&name, arg)).mut_subcommands(with_candidates)
}

fn completed(command: &str, arg: Arg) -> Arg {
    let completer = match (command, arg.get_id().as_str()) {
        (_, "drive") => ArgValueCompleter::new(drives),
        (_, "workload") => ArgValueCompleter::new(workloads),
        (_, "set" | "vary") => ArgValueCompleter::new(keys),
        ("list" | "run", "ids") => ArgValueCompleter::new(claims),
        _ => return arg,
    };
    arg.add(completer)
}

/// Built-in drives with their descriptions, and profile files. `serve` takes a name before each: NAME=PROFILE.
fn drives(current: &OsStr) -> Vec<CompletionCandidate> {
    let text = current.to_string_lossy();
    let (name, profile) = match text.rsplit_once('=') {
        Some((name, profile)) => (format!("{name}="), profile),
        None => (String::new(), &*text),
    };
    let builtin = nandscape_device_ssd::BUILTIN.iter().map(|drive| named(drive.name, None));
    starting_with(builtin, profile).into_iter().chain(files(profile)).map(|drive| drive.add_prefix(&*name)).collect()
}

/// Built-in workloads, and workload files.
fn workloads(current: &OsStr) -> Vec<CompletionCandidate> {
    let text = current.to_string_lossy();
    let builtin = nandscape_lab_workload::BUILTIN.iter().map(|workload| named(workload.name, None));
    starting_with(builtin, &text).into_iter().chain(files(&text)).collect()
}

/// Keys of a profile, each with the first sentence of its meaning.
fn keys(current: &OsStr) -> Vec<CompletionCandidate> {
    let single = key_docs().into_iter().filter(|doc| !doc.section.starts_with("ftl.parts"));
    let keys = single.map(|doc| {
        let path = if doc.section.is_empty() { doc.key.to_owned() } else { format!("{}.{}", doc.section, doc.key) };
        let meaning = doc.doc.split_once(". ").map_or(doc.doc, |(first, _)| first).replace('\n', " ");
        named(&format!("{path}="), Some(meaning.trim().trim_end_matches('.')))
    });
    starting_with(keys, &current.to_string_lossy())
}

/// Claims of the lab, and `all`.
fn claims(current: &OsStr) -> Vec<CompletionCandidate> {
    let claims = nandscape_papers_claims::LEDGER.experiments.iter().map(|experiment| named(experiment.claim.id, None));
    starting_with(claims.chain([named("all", None)]), &current.to_string_lossy())
}

fn named(name: &str, help: Option<&str>) -> CompletionCandidate {
    CompletionCandidate::new(name).help(help.map(|help| help.to_owned().into()))
}

fn starting_with(all: impl Iterator<Item = CompletionCandidate>, start: &str) -> Vec<CompletionCandidate> {
    all.filter(|candidate| candidate.get_value().to_string_lossy().starts_with(start)).collect()
}

/// TOML files, and folders on the way to them.
fn files(start: &str) -> Vec<CompletionCandidate> {
    let is_toml = |path: &Path| path.extension().is_some_and(|extension| extension == "toml");
    PathCompleter::any().filter(move |path| path.is_dir() || is_toml(path)).complete(OsStr::new(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(candidates: Vec<CompletionCandidate>) -> Vec<String> {
        candidates.iter().map(|candidate| candidate.get_value().to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn drives_and_workloads_are_known_by_name() {
        assert_eq!(values(drives(OsStr::new("femu-bl"))), ["femu-blackbox"]);
        assert_eq!(values(drives(OsStr::new("fast=femu-bl"))), ["fast=femu-blackbox"]);
        for workload in nandscape_lab_workload::BUILTIN {
            assert!(values(workloads(OsStr::new(workload.name))).contains(&workload.name.to_owned()));
        }
    }

    #[test]
    fn keys_come_with_their_meaning() {
        let found = keys(OsStr::new("ftl.gc.vic"));
        assert!(found[0].get_help().is_some_and(|help| !help.to_string().is_empty()));
        assert_eq!(values(found), ["ftl.gc.victim="]);
        assert!(values(keys(OsStr::new(""))).iter().any(|key| key == "capacity="));
    }

    #[test]
    fn claims_are_known() {
        assert_eq!(values(claims(OsStr::new("ox-g"))), ["ox-gc"]);
        assert_eq!(values(claims(OsStr::new("all"))), ["all"]);
    }
}
