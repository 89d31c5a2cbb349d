//! The lines of docs/tour.md on a drive in a file, run unchanged: the data that fio wrote before `kill -9` is present after the
//! next start.

use std::process::{Command, Stdio};

/// The page's text before and after the lines.
const BEFORE: &str = "A drive in a file outlasts the server, even `kill -9`:\n";
const AFTER: &str = "The second fio finds what the first one wrote.";

/// Waits until a new socket exists, as a user would. Bounded, as all of the script is.
const WAIT: &str = r#"
for _ in $(seq 600); do
    new=$(stat -c %i nandscape.sock 2>/dev/null || true)
    [ -n "$new" ] && [ "$new" != "${old:-}" ] && break
    sleep 0.1
done
[ "$new" != "${old:-}" ]
old=$new
"#;

fn script() -> String {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/tour.md");
    let page = std::fs::read_to_string(page).unwrap();
    let lines = page.split_once(BEFORE).and_then(|(_, rest)| rest.split_once(AFTER)).expect("the page's lines").0;
    let mut script = "set -eu\ntrap 'kill -9 $(jobs -p) 2>/dev/null || true' EXIT\n".to_owned();
    for line in lines.lines().filter_map(|line| line.strip_prefix("    ")) {
        script.push_str(line);
        script.push_str(if line.ends_with('&') { WAIT } else { "\n" });
    }
    script
}

#[test]
fn the_tour_of_a_drive_in_a_file_works_as_it_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_nandscape"));
    let path = format!("{}:{}", program.parent().unwrap().display(), std::env::var("PATH").unwrap());
    let script = script();
    assert_eq!(script.matches("nandscape serve").count(), 2, "{script}");
    let mut command = Command::new("timeout");
    command.args(["--kill-after=5", "180", "bash", "-c", &script]).env("PATH", path).current_dir(folder.path());
    let output = command.stdin(Stdio::null()).output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{}\n{script}\n{out}\n{err}", output.status);
    assert!(out.contains("not closed in order"), "inspect tells of the kill: {out}");
}
