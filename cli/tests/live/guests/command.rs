//! `nandscape guest`: from nothing to a command in a guest.

use std::process::Command;

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
    let command = "blockdev --getsize64 /dev/nvme0n1; cat words; echo; exit 3";
    let ended = nandscape_guest(&["--file", file.to_str().unwrap(), "--run", command]);
    assert_eq!((ended.code, &ended.out[..]), (Some(1), "268435456\nwords\n"), "{ended:?}");
    assert!(ended.err.contains("failed with status 3"), "{ended:?}");
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
