//! The tables of docs/nvme.md agree with the controller: Identify structures, commands, features, logs.

use std::collections::BTreeSet;

use crate::common::{config, host, with};
use nandscape_device_controller::{BufferMode, ControllerConfig};
use nandscape_drive::conformance::Host;
use nandscape_drive::{HostMem, QueueId};
use nandscape_wire_nvme::log::{
    self, CommandsAndEffects, FEATURE_SUPPORTED, Identifiers, LOG_SUPPORTED, SCOPE_NAMESPACE,
};
use nandscape_wire_nvme::{Status, SubmissionEntry, feature};
use zerocopy::FromBytes;

const PAGE: &str = include_str!("../../../../docs/nvme.md");

/// Words of rows for other drives: the drive here has a single FTL.
const OTHERS: &str = "several FTLs";

/// Names of features on the page, and their identifiers.
const FEATURES: [(&str, u8); 18] = [
    ("Arbitration", 0x01),
    ("Power Management", 0x02),
    ("Temperature Threshold", 0x04),
    ("Error Recovery", 0x05),
    ("Volatile Write Cache", 0x06),
    ("Number of Queues", 0x07),
    ("Interrupt Coalescing", 0x08),
    ("Interrupt Vector Configuration", 0x09),
    ("Write Atomicity Normal", 0x0a),
    ("Asynchronous Event Configuration", 0x0b),
    ("Timestamp", 0x0e),
    ("Keep Alive Timer", 0x0f),
    ("Host Behavior Support", 0x16),
    ("Host Identifier", 0x81),
    ("Reservation Notification Mask", 0x82),
    ("Reservation Persistence", 0x83),
    ("Namespace Write Protection Config", 0x84),
    ("Arbiter (vendor, C1h)", 0xc1),
];

/// Words of the page for admin commands, and their opcodes.
const ADMIN: [(&str, &[u8]); 13] = [
    ("Identify", &[0x06]),
    ("Namespace Management", &[0x0d]),
    ("Namespace Attachment", &[0x15]),
    ("Format NVM", &[0x80]),
    ("Get Log Page", &[0x02]),
    ("Get and Set Features", &[0x09, 0x0a]),
    ("Asynchronous Event Request", &[0x0c]),
    ("Abort", &[0x08]),
    ("GC Control, GC Status, Ready for Read (vendor, C0h, C2h, C8h)", &[0xc0, 0xc2, 0xc8]),
    ("Keep Alive", &[0x18]),
    ("Doorbell Buffer Config", &[0x7c]),
    ("Sanitize", &[0x84]),
    ("Device Self-test", &[0x14]),
];

/// I/O commands that need an FTL with transactions.
const TRANSACTIONS: [u8; 3] = [0x85, 0x87, 0x8d];

/// The same for I/O commands.
const IO: [(&str, &[u8]); 10] = [
    ("Read, Write, Flush", &[0x02, 0x01, 0x00]),
    ("Compare, fused Compare and Write", &[0x05]),
    ("Verify", &[0x0c]),
    ("Write Zeroes", &[0x08]),
    ("Write Uncorrectable", &[0x04]),
    ("Reservation Register, Acquire, Release, Report", &[0x0d, 0x11, 0x15, 0x0e]),
    ("Copy", &[0x19]),
    ("Dataset Management", &[0x09]),
    ("Atomic Write (vendor, 8Dh)", &[0x8d]),
    ("Flush of a buffer, Batched Read (vendor, 85h, 87h)", &[0x85, 0x87]),
];

/// The rows of the first table after a heading: their cells.
fn table(heading: &str) -> Vec<Vec<&'static str>> {
    let begin = PAGE.find(&format!("\n## {heading}\n")).unwrap_or_else(|| panic!("no heading {heading}"));
    let lines = PAGE[begin..].lines().skip_while(|line| !line.starts_with('|'));
    let rows = lines.take_while(|line| line.starts_with('|')).skip(2);
    rows.map(|line| line.trim_matches('|').split('|').map(str::trim).collect()).collect()
}

/// Numbers such as 0Ah in a text.
fn numbers(text: &str) -> impl Iterator<Item = u8> {
    let words = text.split([',', ' ']).filter_map(|word| word.strip_suffix('h'));
    words.filter(|word| word.len() == 2).filter_map(|word| u8::from_str_radix(word, 16).ok())
}

async fn data(admin: &Host, entry: SubmissionEntry) -> Result<Vec<u8>, Status> {
    let mem = HostMem::zeroed(4_096);
    match admin.execute(entry, mem.clone()).await.unwrap().status {
        Status::SUCCESS => Ok(mem.to_vec()),
        status => Err(status.meaning()),
    }
}

/// The table of a log page with a dword for each identifier.
async fn identifiers(admin: &Host, log: u8) -> Identifiers {
    let page = data(admin, SubmissionEntry::get_log_page(log, 0, size_of::<Identifiers>() as u32)).await.unwrap();
    Identifiers::read_from_prefix(&page).unwrap().0
}

fn with_admin(test: impl AsyncFnOnce(&Host)) {
    let config = ControllerConfig { buffer: BufferMode::Volatile, ..config() };
    with(config, async |sim, drive| test(&host(sim, drive, QueueId::ADMIN)).await);
}

#[test]
fn structures_of_identify() {
    let rows = table("Identify");
    with_admin(async |admin| {
        for cns in 0..=u8::MAX {
            let row = rows.iter().find(|row| numbers(row[0]).any(|number| number == cns));
            let is_there = row.is_some_and(|row| !row[2].starts_with("refused") && !row[2].contains(OTHERS));
            // Lists above a namespace or a controller, and structures of one; FFFFh is this controller.
            let mut answers = Vec::new();
            for (nsid, cntid) in [(0, 0), (1, 0), (0, 0xffff)] {
                let cdw10 = u32::from(cns) | cntid << 16;
                let entry = SubmissionEntry { cdw10: cdw10.into(), ..SubmissionEntry::identify(cns, nsid) };
                answers.push(data(admin, entry).await);
            }
            let is_refused = answers.iter().all(|answer| *answer == Err(Status::INVALID_FIELD));
            assert_eq!(is_there, !is_refused, "CNS {cns:#x}: {row:?}");
            assert_eq!(is_there, answers.iter().any(Result::is_ok), "CNS {cns:#x}: {row:?}");
        }
    });
}

#[test]
fn logs() {
    let rows = table("Logs").into_iter().filter(|row| !row[1].contains(OTHERS));
    let told: BTreeSet<u8> = rows.flat_map(|row| numbers(row[0]).collect::<Vec<u8>>()).collect();
    with_admin(async |admin| {
        let logs = identifiers(admin, log::SUPPORTED_LOG_PAGES).await;
        let there = (0..=u8::MAX).filter(|id| logs.ids[usize::from(*id)].get() & LOG_SUPPORTED != 0);
        assert_eq!(there.collect::<BTreeSet<u8>>(), told);
    });
}

#[test]
fn features() {
    let rows = table("Features");
    let names: Vec<&str> = rows.iter().map(|row| row[0]).collect();
    assert_eq!(names, FEATURES.map(|(name, _)| name));
    with_admin(async |admin| {
        let there = identifiers(admin, log::FEATURES_AND_EFFECTS).await;
        for id in 0..=u8::MAX {
            let row = FEATURES.iter().position(|(_, known)| *known == id).map(|at| &rows[at]);
            let effects = there.ids[usize::from(id)].get();
            assert_eq!(effects & FEATURE_SUPPORTED != 0, row.is_some(), "feature {id:#x}");
            let Some(row) = row else { continue };
            assert_eq!(effects & SCOPE_NAMESPACE != 0, row[2] == "yes", "{row:?}");
            // Select 011b: supported capabilities; bit 0 is saveable.
            let entry = SubmissionEntry::get_features(id);
            let entry = SubmissionEntry { cdw10: (entry.cdw10.get() | 0b011 << 8).into(), ..entry };
            let nsid = u32::from(row[2] == "yes");
            let entry = SubmissionEntry { nsid: nsid.into(), ..entry };
            let ended = admin.execute(entry, HostMem::zeroed(4_096)).await.unwrap();
            assert!(ended.status.is_success(), "{row:?}: {}", ended.status);
            assert_eq!(ended.dw0 & 1 != 0, row[1] == "yes", "{row:?}");
        }
        // Listed as missing.
        for id in [0x03, 0x0c, 0x0d, 0x10, feature::PREDICTABLE_LATENCY_CONFIG, feature::PREDICTABLE_LATENCY_WINDOW] {
            let ended = admin.execute(SubmissionEntry::get_features(id), HostMem::zeroed(4_096)).await.unwrap();
            assert_eq!(ended.status.meaning(), Status::INVALID_FIELD, "feature {id:#x}");
        }
    });
}

#[test]
fn commands() {
    with_admin(async |admin| {
        let page = data(admin, SubmissionEntry::get_log_page(log::COMMANDS_AND_EFFECTS, 0, 4_096)).await.unwrap();
        let effects = CommandsAndEffects::read_from_bytes(&page).unwrap();
        for (heading, known, there, elsewhere) in [
            // Doorbell buffers are for hosts with doorbells.
            ("Admin commands", &ADMIN[..], &effects.admin, &[0x7c][..]),
            ("I/O commands", &IO[..], &effects.io, &TRANSACTIONS),
        ] {
            let rows = table(heading);
            let is_told = |opcode: u8| {
                let names = known.iter().filter(|(_, opcodes)| opcodes.contains(&opcode)).map(|(name, _)| name);
                names.into_iter().any(|name| rows.iter().any(|row| row[0] == *name && !row[1].starts_with("refused")))
            };
            for (name, opcodes) in known {
                assert!(opcodes.iter().all(|opcode| is_told(*opcode)), "{heading}: {name} is not in the table");
            }
            for opcode in (0..=u8::MAX).filter(|opcode| !elsewhere.contains(opcode)) {
                let is_there = there[usize::from(opcode)].get() & log::EFFECT_SUPPORTED != 0;
                assert_eq!(is_there, is_told(opcode), "{heading}: {opcode:#x}");
            }
        }
    });
}
