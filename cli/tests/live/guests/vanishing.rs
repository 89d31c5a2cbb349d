//! Guests that vanish, and power that is cut under their file systems.

use rustix::process::{Pid, Signal, kill_process};

use serde_json::json;

use super::{guest, run, script, serve, until};
use crate::hang_ups::ask;
use crate::server::{Server, number};

/// Files that were written and synchronised before the end, each with its checksum in its name.
const WRITER: &str = "cd /mnt; n=0; while n=$((n + 1)); do
    head -c 20000 /dev/urandom > /run/file; sum=$(sha256sum /run/file | cut -c 1-64)
    cp /run/file /mnt/$sum && sync -f /mnt && echo $sum
done";

/// Formats, writes files, and vanishes while it writes more, after `end`; the names of files that are safe.
fn write_until_the_end(server: &Server, end: impl FnOnce()) -> Vec<String> {
    let mut guest = guest(server);
    script(&mut guest, "mkfs.ext4 -q /dev/nvme0n1\nmount /dev/nvme0n1 /mnt");
    run(&mut guest, &format!("({WRITER}) > /run/safe 2>/dev/null &"));
    run(&mut guest, &until("[ $(wc -l < /run/safe) -ge 30 ]"));
    let safe = run(&mut guest, "cat /run/safe").lines().map(str::to_owned).collect();
    // Power is lost by drive and guest at once: the guest must not go on after the drive.
    kill_process(Pid::from_raw(guest.process_id() as i32).unwrap(), Signal::STOP).unwrap();
    end();
    guest.kill();
    safe
}

/// A new guest finds a file system that its journal repairs, with every safe file in it.
fn check(server: &Server, safe: &[String]) {
    let mut guest = guest(server);
    // Status 1: errors were corrected, which is what the journal is for.
    let repaired = guest.attempt("e2fsck -p /dev/nvme0n1").unwrap();
    assert!(repaired.status <= 1, "{repaired:?}");
    script(&mut guest, "e2fsck -fn /dev/nvme0n1\nmount /dev/nvme0n1 /mnt");
    assert!(safe.len() >= 30);
    for name in safe {
        assert_eq!(run(&mut guest, &format!("sha256sum < /mnt/{name} | cut -c 1-64")), *name);
    }
    guest.power_off().unwrap();
}

#[test]
fn a_guest_that_vanishes_leaves_its_synchronised_files_to_the_next() {
    let server = serve(&[]);
    let safe = write_until_the_end(&server, || ());
    check(&server, &safe);
    server.figures();
}

#[test]
fn a_power_cut_under_a_journal_leaves_a_clean_file_system() {
    let server = serve(&["--set", "buffer.mode=volatile", "--control", "control"]);
    let safe = write_until_the_end(&server, || {
        let answer = ask(&server, &json!({ "command": "fault", "rule": "power_cut count=1" }));
        assert!(answer["faults"].is_array(), "{answer}");
    });
    // It strikes at the next operation of the flash, which is a read where the drive had nothing left to do.
    let mut guest = guest(&server);
    run(&mut guest, "dd if=/dev/nvme0n1 of=/dev/null bs=1M count=256 iflag=direct");
    guest.power_off().unwrap();
    let faults = ask(&server, &json!({ "command": "faults" }));
    assert_eq!(number(&faults, "/drives/0/faults/0/struck"), 1.0, "{faults}");
    check(&server, &safe);
    server.figures();
}
