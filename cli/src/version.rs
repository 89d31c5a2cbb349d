//! The output of `nandscape --version`: the version, the commit with its date, and the digest of the sources that results
//! depend on. Sweeps and the lab keep the digest with their points, and measure again when it has changed.

use std::sync::LazyLock;

use nandscape_lab_sweep::this_program;

/// Set by build.rs; empty where the sources are not in a git repository.
pub(crate) const COMMIT: &str = env!("NANDSCAPE_COMMIT");

/// The text after the program's name.
pub(crate) fn version() -> &'static str {
    static TEXT: LazyLock<String> = LazyLock::new(|| {
        let commit = if COMMIT.is_empty() { String::new() } else { format!(" ({COMMIT})") };
        format!("{}{commit}\nsources {}", env!("CARGO_PKG_VERSION"), this_program().sources)
    });
    &TEXT
}
