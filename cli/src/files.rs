//! The files a command reads and writes, checked before it starts: no output overwrites an input or another output,
//! even under different paths, none replaces a store, which may be the only copy of a drive's data, and none replaces a device, a
//! pipe, a socket, a directory or a link.
//!
//! Two paths name one file if they have the same device and inode, or, if the file does not exist yet, the same name in
//! the same folder.

use std::path::{Path, PathBuf};

use anyhow::anyhow;
use nandscape_device_media::durable::StoreFile;
use nandscape_files::identity::{Identity, identity};
use nandscape_files::output;

use crate::failure::Failure;

/// The files of a command, each with the option that names it.
#[derive(Default)]
pub(crate) struct Files {
    inputs: Vec<(String, Identity)>,
    outputs: Vec<(String, Identity)>,
    /// Outputs that would replace a store.
    over_stores: Vec<String>,
    /// Outputs at whose path something else than a regular file is, and what.
    refused: Vec<String>,
}

impl Files {
    /// Adds an input. Names of built-in profiles and workloads, which are not files, do no harm here.
    pub(crate) fn reads(mut self, option: &str, path: &Path) -> Files {
        let path = if path == Path::new("-") { Path::new("/dev/stdin") } else { path };
        self.inputs.extend(identity(path).map(|identity| (shown(option, path), identity)));
        self
    }

    /// Adds several inputs of one option.
    pub(crate) fn reads_all(self, option: &str, paths: impl IntoIterator<Item = PathBuf>) -> Files {
        paths.into_iter().fold(self, |files, path| files.reads(option, &path))
    }

    /// Adds an output.
    pub(crate) fn writes(mut self, option: &str, path: &Path) -> Files {
        if StoreFile::begins(path) {
            self.over_stores.push(shown(option, path));
        }
        // The system's own errors are those of the folder, which may be made later.
        if let Err(error) = output::check(path)
            && error.kind() == std::io::ErrorKind::InvalidInput
        {
            self.refused.push(format!("{}: {error}", shown(option, path)));
        }
        self.goes_on_in(option, path)
    }

    /// Adds an output that continues in an existing file: the store of a drive, or a socket.
    pub(crate) fn goes_on_in(mut self, option: &str, path: &Path) -> Files {
        self.outputs.extend(identity(path).map(|identity| (shown(option, path), identity)));
        self
    }

    /// Adds outputs in a folder.
    pub(crate) fn writes_into<'a>(
        self,
        option: &str,
        folder: &Path,
        names: impl IntoIterator<Item = &'a str>,
    ) -> Files {
        names.into_iter().fold(self, |files, name| files.writes(option, &folder.join(name)))
    }

    /// Checks that every output is a separate file, and that none replaces a store or anything but a regular file.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        for (index, (output, identity)) in self.outputs.iter().enumerate() {
            let clash = |(name, other): &(String, Identity)| (other == identity).then(|| name.clone());
            if let Some(input) = self.inputs.iter().find_map(clash) {
                return Err(Failure::Input(anyhow!("{output} would overwrite {input}; name another file")));
            }
            if let Some(other) = self.outputs[..index].iter().find_map(clash) {
                return Err(Failure::Input(anyhow!("{output} and {other} are the same file; name two")));
            }
        }
        if let Some(problem) = self.refused.first() {
            return Err(Failure::Input(anyhow!("{problem}")));
        }
        match self.over_stores.first() {
            Some(output) => {
                Err(Failure::Input(anyhow!("{output} holds a drive (see `nandscape inspect`); name another file")))
            }
            None => Ok(()),
        }
    }
}

fn shown(option: &str, path: &Path) -> String {
    match option {
        "" => path.display().to_string(),
        option => format!("{option} {}", path.display()),
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn no_output_replaces_what_is_no_regular_file() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let _socket = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
        std::os::unix::fs::symlink("nothing", at("dangling")).unwrap();
        for (name, kind) in [("socket", "a socket"), ("dangling", "a symbolic link"), (".", "a directory")] {
            let error = Files::default().writes("--save-state", &at(name)).check().unwrap_err().to_string();
            assert!(error.contains(&format!("--save-state {}: it is {kind}; ", at(name).display())), "{error}");
            Files::default().goes_on_in("--nbd", &at(name)).check().unwrap();
        }
    }

    #[test]
    fn no_output_replaces_a_store() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("d.nand"), "NANDFILE and more").unwrap();
        std::fs::create_dir(at("out")).unwrap();
        std::fs::hard_link(at("d.nand"), at("out/report.json")).unwrap();
        let error = Files::default().writes("--record", &at("d.nand")).check().unwrap_err().to_string();
        assert!(error.contains("--record") && error.contains("d.nand holds a drive"), "{error}");
        let files = Files::default().writes_into("--out", &at("out"), ["report.html", "report.json"]);
        assert!(files.check().unwrap_err().to_string().contains("report.json holds a drive"));
        Files::default().goes_on_in("--store", &at("d.nand")).check().unwrap();
        std::fs::write(at("short"), "NAND").unwrap();
        Files::default().writes("--record", &at("short")).check().unwrap();
    }

    #[test]
    fn the_error_names_both_options() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("t");
        let error = Files::default().reads("--trace", &file).writes("--chrome-trace", &file).check().unwrap_err();
        let (trace, chrome) = (format!("--trace {}", file.display()), format!("--chrome-trace {}", file.display()));
        assert_eq!(error.to_string(), format!("{chrome} would overwrite {trace}; name another file"));
    }
}
