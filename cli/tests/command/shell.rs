//! Completion of the command line in a real shell, and manual pages.

use std::path::Path;
use std::process::Command;

use crate::program::{refuse, succeed};

/// The words that bash offers for the last word of a line, after it has read the script.
fn offered(line: &str) -> Vec<String> {
    let program = env!("CARGO_BIN_EXE_nandscape");
    let script = format!(
        "source <('{program}' completions bash) || exit 3
         COMP_LINE='{line}'; COMP_POINT=${{#COMP_LINE}}; COMP_TYPE=9
         read -ra COMP_WORDS <<< \"$COMP_LINE\"; [[ $COMP_LINE == *' ' ]] && COMP_WORDS+=('')
         COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
         _clap_complete_nandscape nandscape \"${{COMP_WORDS[COMP_CWORD]}}\" \"${{COMP_WORDS[COMP_CWORD - 1]}}\"
         printf '%s\\n' \"${{COMPREPLY[@]}}\""
    );
    let output = Command::new("bash").args(["--norc", "-c", &script]).output().expect("bash starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{line}: {} {said}", output.status);
    String::from_utf8(output.stdout).expect("UTF-8").lines().map(str::to_owned).collect()
}

#[test]
fn bash_completes_commands_options_and_values() {
    assert!(offered("nandscape s").contains(&"sweep".to_owned()), "{:?}", offered("nandscape s"));
    assert!(offered("nandscape sim --rate-").contains(&"--rate-iops".to_owned()));
    assert_eq!(offered("nandscape sim --drive femu-bl"), ["femu-blackbox"]);
    assert_eq!(offered("nandscape sim --set ftl.gc.vic"), ["ftl.gc.victim="]);
    assert_eq!(offered("nandscape sim --precondition ste"), ["steady"]);
    assert_eq!(offered("nandscape lab run ox-g"), ["ox-gc"]);
}

#[test]
fn a_shell_that_is_not_known_is_refused() {
    refuse(&["completions", "csh"], &["'csh'", "bash, elvish, fish, powershell, zsh"]);
}

#[test]
fn manual_pages_are_written_for_all_commands() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("man1");
    succeed(&["man", "--out", out.to_str().expect("UTF-8")]);
    let page = |name: &str| std::fs::read_to_string(Path::new(&out).join(name)).expect(name);
    assert!(page("nandscape.1").contains("nandscape\\-sim(1)"), "{}", page("nandscape.1"));
    assert!(page("nandscape-sim.1").contains("\\-\\-precondition"));
    assert!(page("nandscape-lab-run.1").contains("Exit status: 0 when"));
    assert_eq!(succeed(&["man", "lab", "run"]), page("nandscape-lab-run.1"));
}

#[test]
fn a_page_of_no_command_is_refused() {
    refuse(&["man", "simulate"], &["nandscape has no command `simulate`"]);
    refuse(&["man", "sim", "--out", "x"], &["cannot be used with"]);
}
