//! Runs the program, and holds every run to what is common to all: it never panics, and what goes wrong leaves standard
//! output empty.

use std::ffi::OsStr;
use std::process::{Command, Stdio};

use serde_json::Value;

/// What a run left.
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// The program, not yet run, its input and output piped.
pub(crate) fn command<S: AsRef<OsStr>>(args: &[S]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nandscape"));
    command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Runs it.
pub(crate) fn run<S: AsRef<OsStr>>(args: &[S]) -> Ran {
    let output = command(args).output().expect("the program starts");
    let text = |bytes| String::from_utf8(bytes).expect("prints UTF-8");
    let ran =
        Ran { code: output.status.code().expect("no signal"), out: text(output.stdout), err: text(output.stderr) };
    let shown: Vec<_> = args.iter().map(AsRef::as_ref).collect();
    assert!(!ran.err.contains("panicked"), "{shown:?}\n{}", ran.err);
    assert!(ran.code == 0 || ran.out.is_empty(), "{shown:?} fails with {} and prints\n{}", ran.code, ran.out);
    ran
}

/// Runs it for its output.
pub(crate) fn succeed(args: &[&str]) -> String {
    let ran = run(args);
    assert_eq!(ran.code, 0, "{args:?}\n{}", ran.err);
    ran.out
}

/// `nandscape sim --json` of a small default drive, with more arguments.
pub(crate) fn sim(more: &[&str]) -> Value {
    let mut args = vec!["sim", "--json", "--check", "--drive", "default", "--set", "capacity=64MiB"];
    args.extend(more);
    serde_json::from_str(&succeed(&args)).expect("one JSON object")
}

/// The number at a path of a report.
pub(crate) fn number(report: &Value, path: &str) -> f64 {
    let found = report.pointer(path).and_then(Value::as_f64);
    found.unwrap_or_else(|| panic!("{path} is no number in {report:#}"))
}

/// Checks that the input is rejected with status 2, and that the message has these parts.
pub(crate) fn refuse(args: &[&str], parts: &[&str]) {
    let ran = run(args);
    assert_eq!(ran.code, 2, "{args:?}\n{}\n{}", ran.err, ran.out);
    for part in parts {
        assert!(ran.err.contains(part), "{args:?} does not say \"{part}\":\n{}", ran.err);
    }
}
