//! Tells the program which commit it is built from, and the commit's date. Sources that are in no git repository, as from an
//! archive, have none: then the program gives its version alone.

use std::process::Command;

fn main() {
    let commit = git(&["log", "-1", "--format=%h %cs", "--abbrev=12"]).unwrap_or_default();
    println!("cargo:rustc-env=NANDSCAPE_COMMIT={commit}");
    // Both change with a commit, the first with a change of branches as well.
    for file in ["HEAD", "logs/HEAD"] {
        if let Some(path) = git(&["rev-parse", "--git-path", file]).filter(|path| std::path::Path::new(path).exists()) {
            println!("cargo:rerun-if-changed={path}");
        }
    }
    println!("cargo:rerun-if-changed=build.rs");
}

fn git(args: &[&str]) -> Option<String> {
    let output = Command::new("git").args(args).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}
