//! A drive with zones in a guest: the kernel's view of it, fio's zoned mode, commands that are not valid for a zone, and a zoned
//! file system (zonefs).
//!
//! Left out: f2fs and btrfs, which need more than this drive: zones that are written anywhere, or minutes to load.

use std::path::Path;
use std::process::Command;

use nandscape_lab_guest::Guest;

use super::transport::{Served, Transport};
use super::{run, script};
use crate::server::number;

/// 73 zones of 16 MiB that take 15 MiB each, a block of one die.
const ZONED: [&str; 22] = [
    "--set",
    "ftl.kind=zone",
    "--set",
    "lba_size=4KiB",
    "--set",
    "geometry.channels=2",
    "--set",
    "geometry.dies_per_channel=2",
    "--set",
    "geometry.planes_per_die=1",
    "--set",
    "geometry.pages_per_block=960",
    "--set",
    "ftl.zone.mapping=dies",
    "--set",
    "ftl.zone.width=1",
    "--set",
    "ftl.zone.max_active=6",
    "--set",
    "ftl.zone.max_open=4",
    "--set",
    "buffer.mode=capacitor",
];
/// Sectors of 512 bytes from zone to zone, and those that a zone takes.
const SIZE: u64 = 32_768;
const CAPACITY: u64 = 30_720;

// Status code types and codes, as nvme-cli ends its messages: Do Not Retry and More stand before them.
const FULL: &str = "1b9)";
const INVALID_WRITE: &str = "1bc)";
const TOO_MANY_OPEN: &str = "1be)";
const INVALID_TRANSITION: &str = "1bf)";

#[test]
fn linux_writes_the_zones_of_a_pci_drive() {
    let server = Served::over(Transport::Pci, &ZONED);
    let mut guest = server.guest();
    the_kernel_sees_zones(&mut guest);
    fio_verifies_zones(&mut guest);
    commands_that_zones_do_not_allow_fail(&mut guest);
    zonefs_keeps_its_files(&mut guest);
    guest.power_off().unwrap();
    let figures = server.figures();
    assert!(number(&figures, "/drives/0/writes/bytes") >= 24e6, "{figures}");
}

#[test]
fn linux_writes_the_zones_of_a_drive_over_tcp() {
    let server = Served::over(Transport::Network, &ZONED);
    let mut guest = server.guest();
    the_kernel_sees_zones(&mut guest);
    fio_verifies_zones(&mut guest);
    zonefs_keeps_its_files(&mut guest);
    guest.power_off().unwrap();
    server.figures();
}

/// Those of fio's own tests (t/zbd) that take a second or two each: refused jobs, reads at and beyond the write pointer, sequential and
/// random writes with each depth, block size and limit of open zones. fio fills whole zones in most of them, so a short run has
/// zones of a quarter: the same jobs with a quarter of the data. `NANDSCAPE_TEST_WHOLE_GRID=1` takes zones of 16 MiB. All tests of
/// fio take four minutes (docs/techniques/zns.md).
#[test]
fn fios_own_tests_of_zones_pass() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/live/guests/zbd.sh");
    let pages = if std::env::var_os("NANDSCAPE_TEST_WHOLE_GRID").is_some() { "960" } else { "240" };
    let mut command = Command::new("sh");
    command.arg(script).args(["-d", "3.33", "-m", "1GiB", "-p", pages, "-n", env!("CARGO_BIN_EXE_nandscape")]);
    let ran = command.args(["1", "2", "3", "4", "5", "6", "7", "8", "11", "12", "13"]).output().unwrap();
    let told = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success() && told.contains("11 tests passed"), "{told}{}", String::from_utf8_lossy(&ran.stderr));
}

fn the_kernel_sees_zones(guest: &mut Guest) {
    let attribute = |guest: &mut Guest, name: &str| run(guest, &format!("cat /sys/block/nvme0n1/queue/{name}"));
    assert_eq!(attribute(guest, "zoned"), "host-managed");
    assert_eq!(attribute(guest, "chunk_sectors"), SIZE.to_string());
    assert_eq!((attribute(guest, "max_active_zones"), attribute(guest, "max_open_zones")), ("6".into(), "4".into()));
    assert_ne!(attribute(guest, "zone_append_max_bytes"), "0");
    let zones: u64 = attribute(guest, "nr_zones").parse().unwrap();
    assert_eq!(run(guest, "blkzone report /dev/nvme0n1 | wc -l"), zones.to_string());
    let of_tool = run(guest, "nvme zns report-zones /dev/nvme0n1 -d 2");
    assert!(of_tool.contains(&format!("nr_zones: {zones}")), "{of_tool}");
    run(guest, "blkzone reset /dev/nvme0n1");
    let second = zone(guest, 1);
    assert!(second.contains(&format!("len {SIZE:#08x}, cap {CAPACITY:#08x}, wptr 0x000000")), "{second}");
    assert!(second.contains("zcond: 1(em)"), "{second}");
}

/// What the kernel reports of a zone.
fn zone(guest: &mut Guest, number: u64) -> String {
    run(guest, &format!("blkzone report -o {} -c 1 /dev/nvme0n1", number * SIZE))
}

fn fio_verifies_zones(guest: &mut Guest) {
    let fio = "fio --name=zones --filename=/dev/nvme0n1 --direct=1 --zonemode=zbd --verify=crc32c --verify_fatal=1 \
               --max_open_zones=4";
    run(guest, &format!("{fio} --ioengine=libaio --iodepth=8 --rw=write --bs=64k --size=20m"));
    run(
        guest,
        &format!("{fio} --ioengine=libaio --iodepth=4 --rw=randwrite --bs=16k --offset=64m --size=160m --io_size=8m"),
    );
    run(guest, "blkzone reset /dev/nvme0n1");
}

/// Each ends with an error at once, and the zone is as it was.
fn commands_that_zones_do_not_allow_fail(guest: &mut Guest) {
    let refused = |guest: &mut Guest, command: &str, status: &str| {
        let ended = guest.attempt(&format!("{command} 2>&1")).unwrap();
        assert!(ended.status != 0 && ended.text.contains(status), "{command}: {}", ended.text);
    };
    script(guest, "head -c 16384 /dev/urandom > /run/data");
    let blocks = SIZE / 8;
    let write = |at: u64| format!("nvme write /dev/nvme0n1 -s {at} -c 3 -z 16384 -d /run/data");
    refused(guest, &write(4), INVALID_WRITE);
    run(guest, &write(0));
    refused(guest, &write(0), INVALID_WRITE);
    run(guest, "nvme zns zone-append /dev/nvme0n1 -s 0 -z 16384 -d /run/data");
    assert!(zone(guest, 0).contains("wptr 0x000040") && zone(guest, 0).contains("zcond: 2(oi)"));
    run(guest, "nvme zns close-zone /dev/nvme0n1 -s 0");
    assert!(zone(guest, 0).contains("zcond: 4(cl)"));
    run(guest, "nvme zns finish-zone /dev/nvme0n1 -s 0");
    refused(guest, &write(8), FULL);
    refused(guest, "nvme zns open-zone /dev/nvme0n1 -s 0", INVALID_TRANSITION);
    refused(guest, "nvme zns offline-zone /dev/nvme0n1 -s 0", INVALID_TRANSITION);
    (1..5).for_each(|number| drop(run(guest, &format!("nvme zns open-zone /dev/nvme0n1 -s {}", number * blocks))));
    refused(guest, &format!("nvme zns open-zone /dev/nvme0n1 -s {}", 5 * blocks), TOO_MANY_OPEN);
    refused(guest, &write(5 * blocks + 1), INVALID_WRITE);
    script(guest, "blkzone reset /dev/nvme0n1\ncmp -n 16384 /dev/nvme0n1 /dev/zero");
}

fn zonefs_keeps_its_files(guest: &mut Guest) {
    let bytes: String = superblock().iter().map(|byte| format!("\\{byte:03o}")).collect();
    script(
        guest,
        &format!(
            "printf '{bytes}' > /run/super
             truncate -s 4096 /run/super
             dd if=/run/super of=/dev/nvme0n1 bs=4096 oflag=direct
             mount -t zonefs /dev/nvme0n1 /mnt
             for n in 0 1 2; do head -c 1048576 /dev/urandom > /run/$n || exit 1; done
             for n in 0 1 2; do dd if=/run/$n of=/mnt/seq/$n bs=64k oflag=append,direct conv=notrunc || exit 1; done
             umount /mnt && mount -t zonefs /dev/nvme0n1 /mnt
             for n in 0 1 2; do cmp /run/$n /mnt/seq/$n || exit 1; done
             truncate -s 0 /mnt/seq/1
             truncate -s {full} /mnt/seq/2
             dd if=/run/1 of=/mnt/seq/1 bs=16k oflag=append,direct conv=notrunc
             umount /mnt && mount -t zonefs /dev/nvme0n1 /mnt
             cmp /run/1 /mnt/seq/1 && cmp -n 1048576 /run/2 /mnt/seq/2
             [ $(stat -c %s /mnt/seq/2) = {full} ]
             umount /mnt",
            full = CAPACITY * 512
        ),
    );
    assert!(zone(guest, 3).contains("zcond:14(fu)"), "{}", zone(guest, 3));
}

/// The head of a superblock of zonefs, by Linux's documentation. It fills a block, and the rest is zero.
fn superblock() -> Vec<u8> {
    const MAGIC: u32 = 0x5a4f_4653;
    let mut block = vec![0; 4_096];
    block[..4].copy_from_slice(&MAGIC.to_le_bytes());
    block[8..13].copy_from_slice(b"zones");
    block[40..56].copy_from_slice(b"a test's zone fs");
    // The kernel's checksum is not inverted at the end.
    let sum = !crc32fast::hash(&block);
    block[4..8].copy_from_slice(&sum.to_le_bytes());
    block.truncate(80);
    block
}
