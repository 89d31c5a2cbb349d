//! The program under test: the release build of this tree, or of another revision.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context as _;
use serde_json::Value;

use crate::run::{cargo, git, output, root, step, target};
use crate::{release, say};

/// A release build to measure.
pub(crate) struct Subject {
    /// Its revision: a commit, with `-changed` if files differ from it, and `-profiled` if it was optimised with a profile.
    pub(crate) revision: String,
    program: PathBuf,
}

impl Subject {
    /// Builds this tree.
    pub(crate) fn of_this_tree(profiled: bool) -> anyhow::Result<Subject> {
        let commit = git(&["rev-parse", "--short", "HEAD"])?;
        // Results of earlier sessions do not change the program.
        let changed = !git(&["status", "--porcelain", "--", ".", ":(exclude)bench/results"])?.is_empty();
        let revision = if changed { format!("{commit}-changed") } else { commit };
        let (revision, name) = (named(&revision, profiled), named("this-tree", profiled));
        let program = match profiled {
            true => keep(&release::build(root(), &target().join("profiled"))?, &kept(&name))?,
            false => build(root(), &target(), &kept(&name))?,
        };
        Ok(Subject { revision, program })
    }

    /// Builds another revision in a separate tree, unless it was built before.
    pub(crate) fn of_revision(revision: &str, profiled: bool) -> anyhow::Result<Subject> {
        let commit = git(&["rev-parse", "--short", &format!("{revision}^{{commit}}")])
            .with_context(|| format!("--against {revision}: no such revision"))?;
        let revision = named(&commit, profiled);
        let program = kept(&revision);
        if !program.exists() {
            let tree = Tree::add(&commit)?;
            match profiled {
                true => keep(&release::build(&tree.0, &target().join("bench/profiled"))?, &program)?,
                false => build(&tree.0, &target().join("bench/build"), &program)?,
            };
        }
        Ok(Subject { revision, program })
    }

    #[cfg(test)]
    pub(crate) fn named(revision: &str) -> Subject {
        Subject { revision: revision.to_owned(), program: PathBuf::new() }
    }

    /// The program.
    pub(crate) fn program(&self) -> &Path {
        &self.program
    }

    /// Measures a claim again, whatever its verdict; `None` if the revision has no lab.
    pub(crate) fn claim(&self, name: &str) -> anyhow::Result<Option<Value>> {
        let help = Command::new(&self.program).args(["lab", "--help"]).output().context("cannot run the program")?;
        if !help.status.success() {
            return Ok(None);
        }
        let mut command = Command::new(&self.program);
        command.args(["lab", "run", name, "--fresh", "--json", "--out"]).arg(target().join("bench/claims"));
        let text = output(&mut command)?;
        let outcomes: Value = serde_json::from_str(&text).context("the claim's outcome is no JSON")?;
        Ok(Some(outcomes["claims"][0].clone()))
    }

    /// Runs a simulation and returns its report.
    pub(crate) fn report(&self, arguments: &[&str]) -> anyhow::Result<Value> {
        let mut command = Command::new(&self.program);
        let text = output(command.args(["sim", "--json"]).args(arguments))?;
        serde_json::from_str(&text).context("the report is no JSON")
    }

    /// Whether the revision accepts these options of a drive.
    pub(crate) fn has_drive(&self, words: &[&str]) -> anyhow::Result<bool> {
        let shown = Command::new(&self.program).args(["drives", "show", "default"]).args(words).output();
        Ok(shown.context("cannot run the program")?.status.success())
    }

    /// Bytes of flash of the drive in a simulation with these arguments.
    pub(crate) fn flash_bytes(&self, arguments: &[&str]) -> Option<f64> {
        let value =
            |option: &'static str| arguments.windows(2).filter(move |pair| pair[0] == option).map(|pair| pair[1]);
        let mut command = Command::new(&self.program);
        command.args(["drives", "show", value("--drive").next()?, "--resolved"]);
        command.args(value("--set").flat_map(|change| ["--set", change]));
        flash_bytes(&output(&mut command).ok()?)
    }
}

/// Bytes of flash of a resolved profile.
fn flash_bytes(profile: &str) -> Option<f64> {
    let profile: toml::Table = profile.parse().ok()?;
    let geometry = profile.get("geometry")?;
    let counts = ["channels", "dies_per_channel", "planes_per_die", "blocks_per_plane", "pages_per_block"];
    let pages = counts.iter().map(|count| Some(geometry.get(count)?.as_integer()? as f64)).product::<Option<f64>>()?;
    let kib: f64 = geometry.get("page_size")?.as_str()?.strip_suffix("KiB")?.parse().ok()?;
    Some(pages * kib * 1_024.0)
}

/// The path of a copy of the program, so that a later build does not replace it during the measurement.
fn kept(name: &str) -> PathBuf {
    target().join("bench").join(format!("nandscape-{name}"))
}

fn named(name: &str, profiled: bool) -> String {
    if profiled { format!("{name}-profiled") } else { name.to_owned() }
}

fn build(tree: &Path, target: &Path, kept: &Path) -> anyhow::Result<PathBuf> {
    let mut command = cargo();
    command.current_dir(tree).args(["build", "--release", "--package", "nandscape-cli"]);
    step({
        command.env("CARGO_TARGET_DIR", target);
        command
    })?;
    keep(&target.join("release/nandscape"), kept)
}

fn keep(program: &Path, kept: &Path) -> anyhow::Result<PathBuf> {
    std::fs::create_dir_all(kept.parent().expect("lies in a folder"))?;
    std::fs::copy(program, kept).context("cannot keep the program built")?;
    Ok(kept.to_owned())
}

/// A tree of another revision, deleted when dropped.
struct Tree(PathBuf);

impl Tree {
    fn add(commit: &str) -> anyhow::Result<Tree> {
        let tree = Tree(target().join("bench/tree"));
        // Remove the tree of a killed session first.
        if tree.0.exists() {
            git(&["worktree", "remove", "--force", &tree.0.to_string_lossy()])?;
        }
        git(&["worktree", "add", "--quiet", "--detach", &tree.0.to_string_lossy(), commit])?;
        Ok(tree)
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        if let Err(error) = git(&["worktree", "remove", "--force", &self.0.to_string_lossy()]) {
            say::error(&format!("{error:#}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flash_is_counted_from_a_resolved_profile() {
        let profile = "[geometry]\nchannels = 2\ndies_per_channel = 3\nplanes_per_die = 1\nblocks_per_plane = 10\n\
                       pages_per_block = 4\npage_size = \"16KiB\"\n";
        assert_eq!(flash_bytes(profile), Some(240.0 * 16_384.0));
        assert_eq!(flash_bytes("[geometry]\nchannels = 2\n"), None);
    }
}
