//! `nandscape guest`: from nothing to a command in a guest.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Command, Stdio};

use crate::server::{Ended, run};

fn nandscape_guest(args: &[&str]) -> Ended {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nandscape"));
    command.args(["guest", "--set", "capacity=256MiB"]).args(args);
    run(command)
}

#[test]
fn a_command_runs_in_a_guest_with_a_drive() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("words");
    std::fs::write(&file, "words").unwrap();
    // With a multipath device over it there would be nvme0c0n1, too.
    let command = "blockdev --getsize64 /dev/nvme0n1; ls -d /sys/block/nvme*; \
        cat /sys/block/nvme0n1/queue/atomic_write_unit_max_bytes words; echo; exit 3";
    let page = folder.path().join("page");
    let words = ["--file", file.to_str().unwrap(), "--run", command, "--out", page.to_str().unwrap()];
    let ended = nandscape_guest(&words);
    let out = "268435456\n/sys/block/nvme0n1\n262144\nwords\n";
    assert_eq!((ended.code, &ended.out[..]), (Some(1), out), "{ended:?}");
    assert!(ended.err.contains("failed with status 3"), "{ended:?}");
    // The figures of the drive follow, and its report is in the folder.
    assert!(ended.err.contains("\ndrive reads: ") && ended.err.contains("\ndrive writes: none\n"), "{ended:?}");
    assert!(page.join("report.html").is_file() && page.join("report.json").is_file(), "{ended:?}");
}

#[test]
fn options_of_the_server_and_its_refusals_pass_through() {
    let ended = nandscape_guest(&["--run", "true", "--", "--precondition", "half"]);
    assert!(
        ended.code == Some(2) && ended.err.contains("the drive is not served") && ended.err.contains("half"),
        "{ended:?}"
    );
    let ended = nandscape_guest(&["--drive", "no-such", "--run", "true"]);
    assert!(ended.code == Some(2) && ended.err.contains("no-such"), "{ended:?}");
    let ended = nandscape_guest(&["--null-drive", "1000B"]);
    assert!(ended.code == Some(2) && ended.err.contains("whole blocks of 512"), "{ended:?}");
    let ended = nandscape_guest(&[]);
    assert!(ended.code == Some(2) && ended.err.contains("give a command with --run"), "{ended:?}");
    let ended = nandscape_guest(&["--memory", "64MiB"]);
    assert!(ended.code == Some(2) && ended.err.contains("at least 512MiB"), "{ended:?}");
}

#[test]
fn qemus_own_drive_comes_beside() {
    let ended =
        nandscape_guest(&["--null-drive", "1GiB", "--run", "cat /sys/class/nvme/*/model /sys/block/nvme*n1/size"]);
    let (models, sizes) = ended.out.split_at(ended.out.find(|c: char| c.is_ascii_digit()).unwrap_or_default());
    assert!(ended.code == Some(0) && models.contains("Nandscape") && models.contains("QEMU"), "{ended:?}");
    assert!(sizes.contains("524288") && sizes.contains("2097152"), "{ended:?}");
}

#[test]
fn a_signal_ends_the_guest_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_nandscape"));
    command
        .args(["guest", "--set", "capacity=256MiB", "--run", "echo runs; sleep 100000"])
        .env("TMPDIR", folder.path());
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let ended = Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap();
    let status = child.wait().unwrap();
    let mut said = String::new();
    // It ends when no process has its end of the pipe any more.
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert_eq!((&line[..], ended.success(), status.code()), ("runs\n", true, Some(1)), "{said}");
    assert!(said.contains("error: a signal has ended the guest"), "{said}");
    let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().flatten().map(|entry| entry.path()).collect();
    assert!(left.is_empty(), "{left:?}");
}
