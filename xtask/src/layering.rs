//! `cargo xtask layering`: the allowed dependencies between crates of the workspace. The folders are the architecture,
//! and this table enforces it. A crate's name is its path, so that a diff shows a forbidden dependency.

use std::path::Path;

use anyhow::{Context as _, bail};
use cargo_metadata::{DependencyKind, Metadata, MetadataCommand};

use crate::{run, say};

/// The allowed dependencies of the crates of a folder.
struct Layer {
    /// A crate's path, or a folder of crates.
    path: &'static str,
    /// The crates, or folders of crates, that it may depend on.
    may: &'static [&'static str],
    /// Additional crates for its tests.
    tests: &'static [&'static str],
}

const fn layer(path: &'static str, may: &'static [&'static str], tests: &'static [&'static str]) -> Layer {
    Layer { path, may, tests }
}

/// The crates that all sides may depend on.
const GROUND: &[&str] = &["drive", "files", "sim", "wire"];
/// What the engine of an application may depend on: never the lab, never a device.
const ENGINE: &[&str] = &["apps/store", "drive", "files", "host", "sim", "wire"];
/// What its tests may use in addition.
const ENGINE_TESTS: &[&str] = &["device", "lab/crash", "transport"];
/// All crates below the papers.
const BELOW_PAPERS: &[&str] =
    &["apps", "device", "drive", "files", "host", "lab", "layers", "sim", "transport", "wire"];
/// All crates below the user's programs.
const ALL: &[&str] =
    &["apps", "device", "drive", "files", "host", "lab", "layers", "papers", "sim", "transport", "wire"];

/// From the bottom up. The first match applies.
const LAYERS: &[Layer] = &[
    layer("files", &[], &[]),
    layer("sim", &[], &[]),
    layer("wire", &[], &[]),
    layer("drive", &["sim", "wire"], &["device", "lab"]),
    layer("device/ahci", GROUND, &["device/disk"]),
    layer("device/disk", GROUND, &[]),
    layer("device/media", GROUND, &["device/rig"]),
    layer("device/rig", &["device/media", "drive", "sim", "wire"], &[]),
    layer("device/ftl/core", &["device/media", "drive", "sim", "wire"], &["device/rig"]),
    // No FTL depends on another.
    layer("device/ftl", &["device/ftl/core", "device/media", "drive", "sim", "wire"], &["device/rig"]),
    layer("device/controller", &["device/ftl", "device/media", "drive", "sim", "wire"], &["device", "lab/workload"]),
    layer("device/ssd", &["device", "drive", "files", "sim", "wire"], &["lab/workload"]),
    layer("transport", &["drive", "files", "sim", "transport/reactor", "wire"], &["device", "transport"]),
    layer("host", &["drive", "files", "host", "sim", "wire"], &["device", "lab/crash", "transport"]),
    layer("layers", &["drive", "host", "layers", "sim", "wire"], &["device", "lab/crash", "transport"]),
    layer("apps/store", &["drive", "host", "sim", "wire"], &[]),
    layer("apps/kv/engine", ENGINE, ENGINE_TESTS),
    layer("apps/llama/engine", ENGINE, ENGINE_TESTS),
    layer("apps/lsm/engine", ENGINE, ENGINE_TESTS),
    layer("apps/memcached/engine", ENGINE, ENGINE_TESTS),
    layer("apps", BELOW_PAPERS, &[]),
    layer("lab/crash", &["drive", "sim", "wire"], &["device"]),
    layer("lab", BELOW_PAPERS, &[]),
    layer("papers", ALL, &[]),
    layer("facade", ALL, &[]),
    layer("python", ALL, &[]),
    layer("cli", ALL, &[]),
    layer("xtask", &[], &["python"]),
];

/// Exceptions: crates with a name other than their path.
const NAMES: &[(&str, &str)] = &[("xtask", "xtask"), ("facade", "nandscape")];

/// A crate of the workspace.
struct Member {
    path: String,
    name: String,
    /// Paths of the workspace crates that it depends on, and whether only in tests.
    names: Vec<(String, bool)>,
}

/// Checks the workspace.
pub(crate) fn run() -> anyhow::Result<()> {
    let metadata = MetadataCommand::new().current_dir(run::root()).no_deps().exec().context("cargo metadata")?;
    let members = members(&metadata);
    let wrong: Vec<String> = members.iter().flat_map(problems).collect();
    wrong.iter().for_each(|problem| say::error(problem));
    let edges: usize = members.iter().map(|member| member.names.len()).sum();
    match wrong.len() {
        0 => {
            say::line(&format!("layering: {} crates, {edges} dependencies between them, all as allowed", members.len()))
        }
        count => bail!("layering: {count} problems; the table is in xtask/src/layering.rs"),
    }
    Ok(())
}

fn members(metadata: &Metadata) -> Vec<Member> {
    let root = metadata.workspace_root.as_std_path();
    let relative = |path: &Path| path.strip_prefix(root).unwrap_or(path).to_string_lossy().replace('\\', "/");
    let mut members: Vec<Member> = metadata
        .workspace_packages()
        .iter()
        .map(|package| Member {
            path: package.manifest_path.parent().map_or_else(String::new, |path| relative(path.as_std_path())),
            name: package.name.to_string(),
            names: package
                .dependencies
                .iter()
                .filter_map(|dependency| {
                    let path = relative(dependency.path.as_ref()?.as_std_path());
                    Some((path, dependency.kind == DependencyKind::Development))
                })
                .collect(),
        })
        .collect();
    members.sort_by(|one, other| one.path.cmp(&other.path));
    members
}

/// Whether a crate is the one named, or is in the folder named.
fn lies_in(path: &str, folder: &str) -> bool {
    path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The problems of a crate, each with its manifest and the remedy.
fn problems(member: &Member) -> Vec<String> {
    let manifest = format!("{}/Cargo.toml", member.path);
    let Some(layer) = LAYERS.iter().find(|layer| lies_in(&member.path, layer.path)) else {
        let known: Vec<&str> = LAYERS.iter().map(|layer| layer.path).collect();
        return vec![format!("{manifest}: is in no layer; there are {}", known.join(", "))];
    };
    let mut problems = Vec::new();
    let given = NAMES.iter().find(|(path, _)| *path == member.path).map(|(_, name)| (*name).to_owned());
    let name = given.unwrap_or_else(|| format!("nandscape-{}", member.path.replace('/', "-")));
    if member.name != name {
        problems.push(format!("{manifest}: is named {}; its path makes it {name}", member.name));
    }
    for (named, test) in &member.names {
        let allowed = |folders: &[&str]| folders.iter().any(|folder| lies_in(named, folder));
        if !(allowed(layer.may) || *test && allowed(layer.tests)) {
            problems.push(format!(
                "{manifest}: {} must not depend on {named}; {}",
                member.path,
                allowance(layer, *test)
            ));
        }
    }
    problems
}

fn allowance(layer: &Layer, test: bool) -> String {
    let list =
        |folders: &[&str]| if folders.is_empty() { "no crate of the workspace".to_owned() } else { folders.join(", ") };
    match test && !layer.tests.is_empty() {
        true => format!("it may name {}, and its tests {}", list(layer.may), list(layer.tests)),
        false => format!("it may name {}", list(layer.may)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(path: &str, names: &[(&str, bool)]) -> Vec<String> {
        let name = format!("nandscape-{}", path.replace('/', "-"));
        let names = names.iter().map(|(named, test)| ((*named).to_owned(), *test)).collect();
        problems(&Member { path: path.to_owned(), name, names })
    }

    #[test]
    fn dependencies_downwards_are_allowed() {
        assert!(of("sim", &[]).is_empty());
        let of_ftl = [("device/ftl/core", false), ("device/media", false), ("sim", false), ("wire/nvme", true)];
        assert!(of("device/ftl/page", &of_ftl).is_empty());
        assert!(of("lab/run", &[("apps/kv/run", false), ("device/ssd", false), ("layers/array", false)]).is_empty());
        assert!(of("apps/kv/run", &[("apps/kv/engine", false), ("lab/run", false)]).is_empty());
        assert!(of("layers/array", &[("host/block", false), ("drive", false)]).is_empty());
    }

    #[test]
    fn others_are_refused_with_the_manifest_and_what_may_be() {
        for (path, named) in [
            ("sim", "wire/nvme"),
            ("wire/nvme", "sim"),
            ("drive", "device/media"),
            ("device/media", "device/ftl/core"),
            ("device/ftl/core", "device/ftl/page"),
            ("device/ftl/ox", "device/ftl/page"),
            ("device/ftl/page", "device/controller"),
            ("device/controller", "device/ssd"),
            ("device/ssd", "host/driver"),
            ("host/driver", "device/media"),
            ("transport/nbd", "host/driver"),
            ("host/path", "layers/cache"),
            ("layers/array", "device/ssd"),
            ("apps/llama/engine", "lab/run"),
            ("lab/run", "papers/fox"),
            ("lab/run", "cli"),
        ] {
            let problems = of(path, &[(named, false)]);
            let begins = format!("{path}/Cargo.toml: {path} must not depend on {named}; it may name ");
            assert!(problems.len() == 1 && problems[0].starts_with(&begins), "{problems:?}");
        }
    }

    #[test]
    fn tests_may_name_more_where_the_table_says_so() {
        assert!(of("drive", &[("device/ssd", true)]).is_empty());
        assert_eq!(
            of("drive", &[("host/driver", true)]),
            [
                "drive/Cargo.toml: drive must not depend on host/driver; it may name sim, wire, and its tests device, lab"
            ]
        );
        assert_eq!(of("drive", &[("device/ssd", false)]).len(), 1);
    }

    #[test]
    fn a_folder_is_not_another_that_begins_like_it() {
        assert!(lies_in("drive", "drive") && lies_in("device/ftl", "device"));
        assert!(!lies_in("drivers", "drive") && !lies_in("simulator", "sim"));
    }

    #[test]
    fn a_name_is_a_path() {
        let named = |path: &str, name: &str| {
            problems(&Member { path: path.to_owned(), name: name.to_owned(), names: Vec::new() })
        };
        assert!(named("wire/nvme-tcp", "nandscape-wire-nvme-tcp").is_empty());
        assert!(named("xtask", "xtask").is_empty());
        assert_eq!(
            named("device/ftl/ox", "nandscape-ox"),
            ["device/ftl/ox/Cargo.toml: is named nandscape-ox; its path makes it nandscape-device-ftl-ox"]
        );
        assert!(named("misc", "nandscape-misc")[0].starts_with("misc/Cargo.toml: is in no layer; there are files,"));
    }
}
