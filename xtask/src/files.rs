//! The files of the workspace, without build output, the fuzzer's inputs, and hidden files except the project's own
//! settings.

use std::path::{Path, PathBuf};

use anyhow::Context as _;

/// Hidden folders of the project.
const OURS: &[&str] = &[".ci", ".cargo", ".github"];
/// Folders of build output.
const BUILT: &[&str] = &["target", "node_modules", "__pycache__"];

/// Folders of the fuzzer's inputs, which are bytes of any kind, with the folder that they are in.
pub(crate) const INPUTS: &[&str] = &["fuzz/seeds", "fuzz/corpus", "fuzz/artifacts"];

/// A file.
pub(crate) struct Text {
    /// Its path from the root, with forward slashes.
    pub(crate) path: String,
    /// Its content; nothing if that is not text.
    pub(crate) text: String,
}

/// All files below `root`, in the order of their paths.
pub(crate) fn texts(root: &Path) -> anyhow::Result<Vec<Text>> {
    let mut paths = Vec::new();
    walk(root, &mut paths).with_context(|| format!("cannot list {}", root.display()))?;
    paths.sort();
    let mut texts = Vec::new();
    for path in paths {
        let bytes = std::fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let name = path.strip_prefix(root).expect("found below it").to_string_lossy().replace('\\', "/");
        texts.push(Text { path: name, text: String::from_utf8(bytes).unwrap_or_default() });
    }
    Ok(texts)
}

fn walk(folder: &Path, paths: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let (name, kind) = (entry.file_name(), entry.file_type()?);
        let name = name.to_string_lossy();
        let is_input = INPUTS.iter().any(|inputs| entry.path().ends_with(inputs));
        let skipped = name.starts_with('.') && !OURS.contains(&&*name) || BUILT.contains(&&*name) || is_input;
        match (kind.is_dir(), kind.is_file()) {
            (true, _) if !skipped => walk(&entry.path(), paths)?,
            // In a git worktree, `.git` is a file.
            (_, true) if name != ".git" => paths.push(entry.path()),
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn built_and_hidden_files_and_inputs_of_the_fuzzer_are_left_out() {
        let folder = tempfile::tempdir().unwrap();
        for path in ["a.rs", "target/b.rs", ".ci/run", ".git/config", "sub/c.md", "fuzz/seeds/x/y"] {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "text").unwrap();
        }
        std::fs::write(folder.path().join("picture"), [0xff, 0xfe]).unwrap();
        let found: Vec<String> = texts(folder.path()).unwrap().into_iter().map(|file| file.path).collect();
        assert_eq!(found, [".ci/run", "a.rs", "picture", "sub/c.md"]);
    }
}
