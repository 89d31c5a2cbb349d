//! How often a read and a write of 4 KiB allocate on a namespace with metadata, beyond one without: as often for each
//! command, and seldom. The figures are in docs/validation/speed.md.

use nandscape_drive::HostMem;
use nandscape_drive::conformance::Host;
use nandscape_drive::{QueueDrive, QueueId};
use nandscape_sim::Executor;
use nandscape_wire_nvme::{AdminOpcode, IoOpcode, SubmissionEntry};

use crate::common::{config, drive};

/// Commands of the shorter run, and of the longer one.
const RUNS: [u64; 2] = [1_000, 3_000];
/// Blocks in use, all of which are written.
const BLOCKS: u64 = 512;
/// PRINFO: the controller acts; guard and reference tag are checked.
const ACTS: u32 = 8;
const CHECKS: u32 = 0b101;

/// Allocations of a run of commands over single blocks of 4 KiB, including the setup.
fn run(commands: u64, opcode: IoOpcode, format: u32, prinfo: u32, bytes: usize) -> u64 {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let drive = drive(&sim, config());
    let load = async {
        let queue = |id| Host::new(&sim, QueueDrive::new(&sim, drive.clone(), QueueId(id), 32).unwrap());
        let entry = SubmissionEntry::admin(AdminOpcode::FORMAT_NVM);
        let entry = SubmissionEntry { nsid: 1.into(), cdw10: format.into(), ..entry };
        assert!(queue(0).execute(entry, HostMem::none()).await.unwrap().status.is_success());
        let (io, mem) = (queue(1), HostMem::zeroed(bytes));
        let command = async |opcode, slba, prinfo: u32, mem: &HostMem| {
            let entry = SubmissionEntry::blocks(opcode, 1, slba, 1);
            let cdw12 = entry.cdw12.get() | prinfo << 26;
            let entry = SubmissionEntry { cdw12: cdw12.into(), cdw14: (slba as u32).into(), ..entry };
            assert!(io.execute(entry, mem.clone()).await.unwrap().status.is_success());
        };
        let (fills, filled) = if format >> 5 > 0 { (ACTS, HostMem::zeroed(4_096)) } else { (0, mem.clone()) };
        for slba in 0..BLOCKS {
            command(IoOpcode::WRITE, slba, fills, &filled).await;
        }
        for number in 0..commands {
            command(opcode, number % BLOCKS, prinfo, &mem).await;
        }
    };
    allocation_counter::measure(|| executor.block_on(load).unwrap()).count_total
}

#[test]
fn metadata_costs_few_allocations() {
    let each = |opcode, format, prinfo, bytes| {
        let [short, long] = RUNS.map(|commands| run(commands, opcode, format, prinfo, bytes));
        (long - short) as f64 / (RUNS[1] - RUNS[0]) as f64
    };
    // Blocks of 4096 bytes alone; with 8 bytes of metadata; with protection information of type 1 in these.
    let (plain, extended, protected) = (1, 3 | 1 << 4, 3 | 1 << 4 | 1 << 5);
    for (opcode, most) in [(IoOpcode::READ, 9.5), (IoOpcode::WRITE, 9.5)] {
        let without = each(opcode, plain, 0, 4_096);
        let of = |format, prinfo, bytes| each(opcode, format, prinfo, bytes) - without;
        let with = [of(extended, 0, 4_104), of(protected, ACTS | CHECKS, 4_096)];
        println!("{opcode:?}: {without:.2} without metadata; beyond that, extended and PRACT: {with:.2?}");
        assert!(with.iter().all(|more| *more <= most), "{opcode:?}: {with:.2?}");
    }
    let checked = each(IoOpcode::READ, protected, CHECKS, 4_104) - each(IoOpcode::READ, plain, 0, 4_096);
    println!("a read that is checked and passed on: {checked:.2}");
    assert!(checked <= 9.5, "{checked:.2}");
}
