//! Parts of the workspace by name: a crate by its name or folder, a folder of crates, or a suite by the name of its file
//! under `tests`, with or without its crate.

use anyhow::bail;
use cargo_metadata::{Metadata, Package};

/// A part to test.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Part {
    /// The crate's name.
    pub(crate) package: String,
    /// One suite of it; without one, all.
    pub(crate) suite: Option<String>,
}

impl Part {
    /// Looks a name up. `device/ssd`, `device-ssd` and `nandscape-device-ssd` name a crate, `device/ftl` all crates in the
    /// folder, `live` a suite.
    ///
    /// # Errors
    /// When nothing has the name.
    pub(crate) fn find(name: &str, metadata: &Metadata) -> anyhow::Result<Vec<Part>> {
        let packages = metadata.workspace_packages();
        if let Some(package) = packages.iter().find(|package| names(package, metadata, name)) {
            return Ok(vec![Part { package: package.name.to_string(), suite: None }]);
        }
        let within = format!("{}-", name.trim_end_matches('/').replace('/', "-"));
        let inside = packages.iter().filter(|package| folder(package, metadata).starts_with(&within));
        let crates: Vec<Part> = inside.map(|package| Part { package: package.name.to_string(), suite: None }).collect();
        if !crates.is_empty() {
            return Ok(crates);
        }
        // A suite with its crate before it is one suite; without it, those of all crates.
        let (within, suite) = name.rsplit_once('/').map_or((None, name), |(folder, suite)| (Some(folder), suite));
        let inside = packages.iter().filter(|package| within.is_none_or(|within| names(package, metadata, within)));
        let suites = inside.flat_map(|package| suites(package));
        let found: Vec<Part> = suites.filter(|part| part.suite.as_deref() == Some(suite)).collect();
        if found.is_empty() {
            bail!("{name:?} is neither a crate, nor a folder of crates, nor a suite. {}", offered(&packages));
        }
        Ok(found)
    }

    /// The words that select it in `cargo test`.
    pub(crate) fn words(&self) -> Vec<&str> {
        let suite = self.suite.as_deref().map_or(vec!["--all-targets"], |suite| vec!["--test", suite]);
        [&["--package", self.package.as_str()][..], &suite].concat()
    }
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
    targets.map(|target| Part { package: package.name.to_string(), suite: Some(target.name.clone()) })
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
            let part = Part { package: "nandscape-device-ssd".to_owned(), suite: None };
            assert_eq!(Part::find(name, &metadata).unwrap(), [part]);
        }
        assert_eq!(Part::find("facade", &metadata).unwrap()[0].package, "nandscape");
        let live = Part::find("cli/live", &metadata).unwrap();
        assert_eq!(live.len(), 1);
        assert_eq!(live[0].words(), ["--package", "nandscape-cli", "--test", "live"]);
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
    fn what_has_no_such_name_is_an_error_that_lists_the_names() {
        let error = Part::find("nothing", &metadata()).unwrap_err().to_string();
        assert!(
            error.starts_with("\"nothing\" is neither a crate, nor a folder of crates, nor a suite. Crates: "),
            "{error}"
        );
        assert!(error.contains("nandscape-sim") && error.contains("live"), "{error}");
    }
}
