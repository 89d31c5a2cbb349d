//! Guests that vanish, and power that is cut under their file systems.

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::transport::{Served, Transport};
use super::{run, script, until};
use crate::hang_ups::{self, ask, until_power_cut};
use crate::server::number;

/// Files that were written and synchronised before the end, each with its checksum in its name.
const WRITER: &str = "cd /mnt; n=0; while n=$((n + 1)); do
    head -c 20000 /dev/urandom > /run/file; sum=$(sha256sum /run/file); sum=${sum%% *}
    cp /run/file /mnt/$sum && sync -f /mnt && echo $sum
done";

/// Formats, writes files, and vanishes after `end`, which finds it writing; the names of files that are safe.
fn write_until_the_end(server: &Served, end: impl FnOnce()) -> Vec<String> {
    let mut guest = server.guest();
    script(&mut guest, "mkfs.ext4 -q /dev/nvme0n1\nmount /dev/nvme0n1 /mnt");
    run(&mut guest, &format!("({WRITER}) > /run/safe 2>/dev/null &"));
    run(&mut guest, &until("[ $(wc -l < /run/safe) -ge 15 ]"));
    end();
    // Those of the last moment count: nothing but a flush has brought them to the flash.
    let safe = run(&mut guest, "grep -E '^[0-9a-f]{64}$' /run/safe").lines().map(str::to_owned).collect();
    // Drive and guest lose power at once: the guest must not continue when the drive's returns.
    kill_process(Pid::from_raw(guest.process_id() as i32).unwrap(), Signal::STOP).unwrap();
    guest.kill();
    safe
}

/// A new guest finds a file system that its journal repairs, with every safe file in it.
fn check(server: &Served, safe: &[String]) {
    let mut guest = server.guest();
    // Status 1: errors were corrected; the journal exists for this.
    let repaired = guest.attempt("e2fsck -p /dev/nvme0n1").unwrap();
    assert!(repaired.status <= 1, "{repaired:?}");
    script(&mut guest, "e2fsck -fn /dev/nvme0n1\nmount /dev/nvme0n1 /mnt");
    assert!(safe.len() >= 15);
    // One command for all of them: an emulated guest takes longer for a command than for a file.
    let sums: String = safe.iter().map(|name| format!("{name}  /mnt/{name}\n")).collect();
    run(&mut guest, &format!("sha256sum -c << END\n{sums}END"));
    guest.power_off().unwrap();
}

#[test]
fn a_guest_that_vanishes_leaves_its_synchronised_files_to_the_next() {
    let server = Served::over(Transport::Pci, &[]);
    let safe = write_until_the_end(&server, || ());
    check(&server, &safe);
    server.figures();
}

/// Programs of the writer until the power is cut: a few of its files.
const PROGRAMS: u32 = 25;
/// The power stays off for longer than it takes to ask the guest and to stop it.
const OFF: &str = "30s";

/// The cut strikes the drive while it programs the writer's data, and loses unflushed data.
fn a_power_cut_under_a_journal_leaves_a_clean_file_system(transport: Transport) {
    // Sixteen units in a page: unflushed data stays in the buffer until it has that many units.
    let volatile = ["--set", "buffer.mode=volatile", "--set", "geometry.page_size=64KiB"];
    let server = Served::over(transport, &[&volatile[..], &["--control", "control"]].concat());
    let safe = write_until_the_end(&server, || {
        let rule = format!("power_cut program nth={PROGRAMS} off={OFF}");
        let answer = ask(&server, &json!({ "command": "fault", "rule": rule }));
        assert!(answer["faults"].is_array(), "{answer}");
        until_power_cut(&server);
    });
    let faults = ask(&server, &json!({ "command": "faults" }));
    assert_eq!(number(&faults, "/drives/0/faults/0/struck"), 1.0, "{faults}");
    // The drive counts its losses when it starts again.
    let dropped = |figures: &Value| number(figures, "/drives/0/counters/dropped_units_total") > 0.0;
    hang_ups::until(&server, "the drive starts again, and misses what it had not written", dropped);
    check(&server, &safe);
    server.figures();
}

#[test]
fn a_power_cut_under_the_journal_of_a_pci_host_leaves_a_clean_file_system() {
    a_power_cut_under_a_journal_leaves_a_clean_file_system(Transport::Pci);
}

#[test]
fn a_power_cut_under_the_journal_of_a_host_over_tcp_leaves_a_clean_file_system() {
    a_power_cut_under_a_journal_leaves_a_clean_file_system(Transport::Network);
}

/// Blocks of 4,096 bytes: more than a page holds, so that they reach the flash without a flush.
const ON_FLASH: u64 = 1_024;

/// Each time power is cut, a block that was flushed is kept, and one that was not is lost: the block is alone in a buffer that
/// is written a page at a time, so that nothing but a flush brings it to the flash.
fn a_flushed_block_outlasts_a_power_cut(transport: Transport) {
    let volatile = ["--set", "buffer.mode=volatile", "--set", "geometry.page_size=64KiB", "--control", "control"];
    let server = Served::over(transport, &volatile);
    let mut guest = server.guest();
    run(&mut guest, &write("/dev/urandom", ON_FLASH, "count=32"));
    for round in 1..=3 {
        let (flushed, lost) = (round, 64 + round);
        script(&mut guest, "head -c 4096 /dev/urandom > /run/flushed\nhead -c 4096 /dev/urandom > /run/lost");
        run(&mut guest, &write("/run/flushed", flushed, "conv=fsync"));
        run(&mut guest, &write("/run/lost", lost, ""));
        let answer = ask(&server, &json!({ "command": "fault", "rule": "power_cut read count=1" }));
        assert!(answer["faults"].is_array(), "{answer}");
        // Linux repeats the commands that the cut has ended.
        run(&mut guest, &until(&format!("{} > /run/read", read(ON_FLASH))));
        let cuts = |figures: &Value| number(figures, "/drives/0/counters/power_cuts_total") == round as f64;
        hang_ups::until(&server, "power was cut once more", cuts);
        run(&mut guest, &format!("{} | cmp - /run/flushed", read(flushed)));
        let differs = guest.attempt(&format!("{} | cmp -s - /run/lost", read(lost))).unwrap();
        assert_eq!(differs.status, 1, "the cut takes along what was not flushed: {differs:?}");
    }
    guest.power_off().unwrap();
    server.figures();
}

/// Writes a block past the guest's cache.
fn write(from: &str, block: u64, more: &str) -> String {
    let count = if more.starts_with("count") { "" } else { "count=1" };
    format!("dd if={from} of=/dev/nvme0n1 bs=4096 seek={block} {count} {more} oflag=direct 2>/dev/null")
}

/// Reads a block past the guest's cache.
fn read(block: u64) -> String {
    format!("dd if=/dev/nvme0n1 bs=4096 skip={block} count=1 iflag=direct 2>/dev/null")
}

#[test]
fn a_block_that_a_pci_host_has_flushed_outlasts_a_power_cut() {
    a_flushed_block_outlasts_a_power_cut(Transport::Pci);
}

#[test]
fn a_block_that_a_host_over_tcp_has_flushed_outlasts_a_power_cut() {
    a_flushed_block_outlasts_a_power_cut(Transport::Network);
}
