//! What nvme-cli sees of the drive, and how a failed command is logged.

use nandscape_lab_guest::Guest;

use super::super::transport::CAPACITY;
use super::super::{run, script};
use super::json;

/// Identify, and the logs that every drive has.
pub(in super::super) fn tools_identify_the_drive(guest: &mut Guest) {
    let controller = json(&run(guest, "nvme id-ctrl /dev/nvme0 -o json"));
    let text = |field: &str| controller[field].as_str().unwrap_or_default().trim().to_owned();
    assert!(text("mn").contains("Nandscape") && !text("sn").is_empty(), "{controller:#}");
    let listed = run(guest, "nvme list");
    assert!(listed.contains("/dev/nvme0n1") && listed.contains(&text("sn")), "{listed}");
    let namespace = json(&run(guest, "nvme id-ns /dev/nvme0n1 -o json"));
    assert_eq!(namespace["nsze"].as_u64(), Some(CAPACITY / 512), "{namespace:#}");
    assert_eq!(run(guest, "blockdev --getsize64 /dev/nvme0n1"), CAPACITY.to_string());
    let smart = json(&run(guest, "nvme smart-log /dev/nvme0 -o json"));
    assert_eq!(smart["critical_warning"].as_u64(), Some(0), "{smart:#}");
    let firmware = run(guest, "nvme fw-log /dev/nvme0");
    assert!(firmware.contains(&text("fr")), "the revision of Identify: {firmware}");
    let described = run(guest, "nvme ns-descs /dev/nvme0n1");
    let uuid = run(guest, "cat /sys/block/nvme0n1/uuid");
    let nguid = namespace["nguid"].as_str().unwrap_or_else(|| panic!("{namespace:#}"));
    assert!(described.contains(&uuid) && described.contains(nguid), "{described} has not {uuid} and {nguid}");
    run(guest, "nvme supported-log-pages /dev/nvme0 -o binary > /run/logs");
    // A dword for each: SMART is supported, Endurance Group Information of a drive without sets is not.
    for (log, supported) in [(0x02, "1"), (0x09, "0")] {
        let at = log * 4;
        assert_eq!(run(guest, &format!("hexdump -s {at} -n 1 -e '1/1 \"%u\"' /run/logs")), supported, "log {log}");
    }
    script(
        guest,
        "nvme list-ns /dev/nvme0 | grep ':0x1$'
         nvme effects-log /dev/nvme0 | grep 'Device Self-test'
         nvme show-regs /dev/nvme0
         nvme get-feature /dev/nvme0 -f 7 -H | grep 'Submission Queues Allocated'",
    );
}

/// LBA Out of Range (NVM, status type 0h, code 80h), as the log has it: without the phase tag, More or Do Not Retry.
const OUT_OF_RANGE: u64 = 0x80;
const MEANING: u64 = 0x7ff;
/// The opcode of Read (NVM).
const READ: u8 = 2;

/// A read beyond the drive's end fails, and the newest entry of the error log has the command, and why.
pub(in super::super) fn failed_commands_are_logged(guest: &mut Guest) {
    let beyond = CAPACITY / 512 + 7;
    let ended = guest.attempt(&format!("nvme read /dev/nvme0n1 -s {beyond} -c 0 -z 512 -d /run/beyond 2>&1")).unwrap();
    assert!(ended.status != 0 && ended.text.contains("LBA Out of Range"), "{ended:?}");
    let log = json(&run(guest, "nvme error-log /dev/nvme0 -e 1 -o json"));
    let entry = &log["errors"][0];
    let field = |name: &str| entry[name].as_u64().unwrap_or_else(|| panic!("no {name} in {log:#}"));
    let status = field("status_field") & MEANING;
    assert_eq!((status, field("lba")), (OUT_OF_RANGE, beyond), "{log:#}");
    assert!(field("error_count") > 0 && field("sqid") > 0, "an I/O queue: {log:#}");
    // nvme-cli does not print the opcode, byte 31 of the entry (Base 2.x, Error Information log).
    let opcode =
        run(guest, "nvme error-log /dev/nvme0 -e 1 -b > /run/log && hexdump -s 31 -n 1 -e '1/1 \"%u\"' /run/log");
    assert_eq!(opcode, READ.to_string());
    let smart = json(&run(guest, "nvme smart-log /dev/nvme0 -o json"));
    assert!(smart["num_err_log_entries"].as_u64() >= Some(1), "{smart:#}");
}
