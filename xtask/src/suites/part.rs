//! Parts of the workspace by name: a crate by its name or folder, a folder of crates, a suite by the name of its file
//! under `tests`, with or without its crate, or a module of a suite by its path.

use std::fs;

use anyhow::bail;
use cargo_metadata::camino::Utf8Path;
use cargo_metadata::{Metadata, Package, Target};

use super::Suite;

/// A part to test.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Part {
    /// The crate's name.
    pub(crate) package: String,
    /// One suite of it; without one, all.
    pub(crate) suite: Option<String>,
    /// One module of the suite, as Rust names it: `guests::zones`; without one, all.
    pub(crate) module: Option<String>,
    /// The words of cargo that name its test programs.
    pub(crate) targets: Vec<String>,
}

/// Crates that are selected with each part. Together their dependencies have the features that all crates turn on (see the manifest
/// of xtask), so that what was compiled for all tests is not compiled again.
const WITH: [&str; 2] = ["nandscape-cli", "xtask"];
/// The feature that all tests have.
const FEATURE: &str = "nandscape-cli/parquet";

impl Part {
    /// Looks a name up. `device/ssd`, `device-ssd` and `nandscape-device-ssd` name a crate, `device/ftl` all crates in the
    /// folder, `live` a suite, `live/arrays` a module of one.
    ///
    /// # Errors
    /// When nothing has the name.
    pub(crate) fn find(name: &str, metadata: &Metadata) -> anyhow::Result<Vec<Part>> {
        let packages = metadata.workspace_packages();
        if let Some(package) = packages.iter().find(|package| names(package, metadata, name)) {
            return Ok(vec![whole(package)]);
        }
        let within = format!("{}-", name.trim_end_matches('/').replace('/', "-"));
        let inside = packages.iter().filter(|package| folder(package, metadata).starts_with(&within));
        let crates: Vec<Part> = inside.map(|package| whole(package)).collect();
        if !crates.is_empty() {
            return Ok(crates);
        }
        // A suite with its crate before it is one suite; without it, those of all crates.
        let (within, suite) = name.rsplit_once('/').map_or((None, name), |(folder, suite)| (Some(folder), suite));
        let inside = packages.iter().filter(|package| within.is_none_or(|within| names(package, metadata, within)));
        let suites = inside.flat_map(|package| suites(package));
        let found: Vec<Part> = suites.filter(|part| part.suite.as_deref() == Some(suite)).collect();
        if !found.is_empty() {
            return Ok(found);
        }
        let found = modules(name, &packages, metadata)?;
        if found.is_empty() {
            bail!("{name:?} is neither a crate, nor a folder of crates, nor a suite. {}", offered(&packages));
        }
        Ok(found)
    }

    /// The words that select it in `cargo test`. Other crates may have programs of the same name: see [`Part::has`].
    pub(crate) fn words(&self) -> Vec<&str> {
        let others = WITH.into_iter().filter(|name| *name != self.package);
        let packages = [self.package.as_str()].into_iter().chain(others).flat_map(|name| ["--package", name]);
        packages.chain(["--features", FEATURE]).chain(self.targets.iter().map(String::as_str)).collect()
    }

    /// Whether a test program is of this part.
    pub(crate) fn has(&self, suite: &Suite) -> bool {
        suite.name.split(' ').next() == Some(&self.package)
    }
}

/// A crate with all its tests.
fn whole(package: &Package) -> Part {
    let targets = package.targets.iter().filter_map(words).flatten().collect();
    Part { package: package.name.to_string(), suite: None, module: None, targets }
}

/// The words of cargo that name a target, if it has tests.
fn words(target: &Target) -> Option<Vec<String>> {
    let kind = match target {
        _ if target.is_lib() => return Some(vec!["--lib".to_owned()]),
        _ if target.is_bin() => "--bin",
        _ if target.is_test() => "--test",
        _ if target.is_example() => "--example",
        _ => return None,
    };
    Some(vec![kind.to_owned(), target.name.clone()])
}

/// Whether these words name a crate.
fn names(package: &Package, metadata: &Metadata, words: &str) -> bool {
    let wanted = words.trim_end_matches('/').replace('/', "-");
    let own = package.name.as_str();
    own == wanted || own.strip_prefix("nandscape-") == Some(&wanted) || folder(package, metadata) == wanted
}

/// A crate's folder, with dashes.
fn folder(package: &Package, metadata: &Metadata) -> String {
    let path = package.manifest_path.parent().and_then(|path| path.strip_prefix(&metadata.workspace_root).ok());
    path.map_or_else(String::new, |path| path.as_str().replace('/', "-"))
}

fn suites(package: &Package) -> impl Iterator<Item = Part> {
    let targets = package.targets.iter().filter(|target| target.is_test());
    targets.filter_map(|target| {
        let suite = Some(target.name.clone());
        Some(Part { package: package.name.to_string(), suite, module: None, targets: words(target)? })
    })
}

/// The suites of which a name is a module: `CRATE/SUITE/MODULE` or `SUITE/MODULE`, with a path of files as the module.
///
/// # Errors
/// When the name has a suite, and the suite no such module.
fn modules(name: &str, packages: &[&Package], metadata: &Metadata) -> anyhow::Result<Vec<Part>> {
    let mut others = Vec::new();
    let mut found = Vec::new();
    for package in packages {
        for target in package.targets.iter().filter(|target| target.is_test()) {
            let is_suite = |words: &str| match words.rsplit_once('/') {
                Some((within, suite)) => suite == target.name && names(package, metadata, within),
                None => words == target.name,
            };
            let cuts = name.match_indices('/').map(|(cut, _)| (&name[..cut], &name[cut + 1..]));
            let Some((suite, module)) = cuts.rev().find(|(words, _)| is_suite(words)) else { continue };
            let module = module.trim_end_matches('/');
            let Some(folder) = target.src_path.parent() else { continue };
            if ["", "/mod"].iter().any(|end| folder.join(format!("{module}{end}.rs")).is_file()) {
                let module = Some(module.replace('/', "::"));
                let Some(targets) = words(target) else { continue };
                let suite = Some(target.name.clone());
                found.push(Part { package: package.name.to_string(), suite, module, targets });
            } else {
                others.push(format!("{suite} has no module {module:?}; valid are {}", files_of(folder).join(", ")));
            }
        }
    }
    match others.is_empty() || !found.is_empty() {
        true => Ok(found),
        false => bail!("{}", others.join(". ")),
    }
}

/// The names of the modules in a suite's folder.
fn files_of(folder: &Utf8Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let is_module =
        |path: &std::path::PathBuf| path.extension().is_some_and(|end| end == "rs") || path.join("mod.rs").is_file();
    let names = entries.filter(is_module).filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned()));
    let mut names: Vec<String> = names.filter(|name| name != "main").collect();
    names.sort_unstable();
    names
}

/// What can be named.
fn offered(packages: &[&Package]) -> String {
    let mut crates: Vec<&str> = packages.iter().map(|package| package.name.as_str()).collect();
    crates.sort_unstable();
    let mut names: Vec<String> =
        packages.iter().flat_map(|package| suites(package)).filter_map(|part| part.suite).collect();
    names.sort_unstable();
    names.dedup();
    format!("Crates: {}. Suites: {}", crates.join(", "), names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metadata() -> Metadata {
        cargo_metadata::MetadataCommand::new().current_dir(crate::run::root()).no_deps().exec().unwrap()
    }

    #[test]
    fn a_crate_has_three_names_and_a_suite_one() {
        let metadata = metadata();
        for name in ["device/ssd", "device-ssd", "nandscape-device-ssd", "device/ssd/"] {
            let found = Part::find(name, &metadata).unwrap();
            assert_eq!((found.len(), &found[0].package[..], &found[0].suite), (1, "nandscape-device-ssd", &None));
            assert!(found[0].targets.contains(&"--lib".to_owned()), "{found:?}");
        }
        assert_eq!(Part::find("facade", &metadata).unwrap()[0].package, "nandscape");
        let live = Part::find("cli/live", &metadata).unwrap();
        assert_eq!(live.len(), 1);
        let words = "--package nandscape-cli --package xtask --features nandscape-cli/parquet --test live";
        assert_eq!(live[0].words().join(" "), words);
        let suite = |name: &str| Suite { name: name.to_owned(), program: "sh".into(), folder: ".".into() };
        assert!(live[0].has(&suite("nandscape-cli live")) && !live[0].has(&suite("nandscape-host-transaction live")));
        assert!(Part::find("live", &metadata).unwrap().contains(&live[0]));
    }

    #[test]
    fn a_folder_names_the_crates_in_it() {
        let mut found: Vec<String> =
            Part::find("device/ftl", &metadata()).unwrap().into_iter().map(|part| part.package).collect();
        found.sort_unstable();
        assert_eq!(found, ["core", "ox", "page", "zoned"].map(|name| format!("nandscape-device-ftl-{name}")));
    }

    #[test]
    fn a_module_of_a_suite_has_a_path() {
        let metadata = metadata();
        for (name, suite, module) in [
            ("cli/live/arrays", "live", "arrays"),
            ("live/arrays", "live", "arrays"),
            ("cli/live/guests", "live", "guests"),
            ("nandscape-cli/live/guests/zones/", "live", "guests::zones"),
        ] {
            let found = Part::find(name, &metadata).unwrap();
            let [part] = &found[..] else { panic!("{name}: {found:?}") };
            assert_eq!((&part.package[..], part.suite.as_deref()), ("nandscape-cli", Some(suite)), "{name}");
            assert_eq!((part.module.as_deref(), part.targets.join(" ")), (Some(module), format!("--test {suite}")));
        }
        let error = Part::find("cli/live/nothing", &metadata).unwrap_err().to_string();
        assert!(error.starts_with("cli/live has no module \"nothing\"; valid are arrays, bench, "), "{error}");
        assert!(error.contains("guests") && !error.contains("main") && !error.contains("Crates"), "{error}");
    }

    #[test]
    fn what_has_no_such_name_is_an_error_that_lists_the_names() {
        let error = Part::find("nothing", &metadata()).unwrap_err().to_string();
        assert!(
            error.starts_with("\"nothing\" is neither a crate, nor a folder of crates, nor a suite. Crates: "),
            "{error}"
        );
        assert!(error.contains("nandscape-sim") && error.contains("live"), "{error}");
    }
}
