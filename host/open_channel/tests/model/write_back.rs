//! Writes that end when their data is in registers, against closed forms: their latencies, and the waits for the
//! programs behind them.

use nandscape_drive::{Drive, HostMem, Issuer};
use nandscape_host_open_channel::{Means, Place};
use nandscape_sim::{Executor, Sim, Span};
use nandscape_wire_nvme::open_channel::{CHUNK_CLOSED, CHUNK_FREE, NOTICE_UNRECOVERABLE};
use nandscape_wire_nvme::{IoOpcode, Status, SubmissionEntry};

use crate::rig::{Rig, bytes_of};

/// Blocks of one program: a page of 8 KiB on each of 2 planes.
const WS: u32 = 4;
/// Force Unit Access, in dword 12.
const FUA: u32 = 1 << 30;
/// Firmware, and 16 KiB over the channel.
const SENT: Span = Span::from_us(10 + 160);
const PROGRAM: Span = Span::from_us(700);
/// Firmware, the array, and 4 KiB over the channel.
const READ: Span = Span::from_us(10 + 50 + 40);

const CHANGES: [&str; 10] = [
    "buffer.mode=register",
    "timing.cell=slc",
    "timing.program=[\"700us\"]",
    "timing.program_unit=page",
    "timing.read=50us",
    "timing.bus=102.4MB/s",
    "timing.registers=single",
    "controller.firmware_time=10us",
    "link.bandwidth=unlimited",
    "link.latency=0us",
];

fn on_rig(more: &[&str], test: impl AsyncFnOnce(Sim, Rig)) {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let ran = async {
        let rig = Rig::new(&sim, &[&CHANGES, more].concat(), Means::Rows).await;
        test(sim.clone(), rig).await;
    };
    executor.block_on_within(ran, 50_000_000).expect("it ends");
}

async fn took<T>(sim: &Sim, what: impl Future<Output = T>) -> Span {
    let begun = sim.now();
    what.await;
    sim.now() - begun
}

async fn write(rig: &Rig, first: u64) {
    let addresses: Vec<u64> = (first..first + u64::from(WS)).collect();
    rig.write(&addresses, &[first; WS as usize]).await.expect("a write");
}

fn chunk(rig: &Rig, chunk: u32) -> u64 {
    rig.host.geometry().address(Place { group: 0, pu: 0, chunk, sector: 0 })
}

#[test]
fn a_write_ends_when_it_is_in_registers_and_the_next_waits_for_the_program() {
    on_rig(&[], async |sim, rig| {
        assert!(rig.drive.info().volatile_cache);
        let (first, other) = (chunk(&rig, 0), chunk(&rig, 1));
        assert_eq!(took(&sim, write(&rig, first)).await, SENT);
        // Its firmware time overlaps the program, and its data waits for the register.
        let behind = PROGRAM + (SENT - Span::from_us(10));
        assert_eq!(took(&sim, write(&rig, first + u64::from(WS))).await, behind);
        assert_eq!(took(&sim, write(&rig, other)).await, behind);
        assert_eq!(took(&sim, rig.host.flush()).await, PROGRAM);
        assert_eq!(took(&sim, rig.host.flush()).await, Span::from_us(10), "nothing is on its way");
    });
}

#[test]
fn reads_resets_and_durable_writes_wait_for_programs() {
    on_rig(&[], async |sim, rig| {
        let first = chunk(&rig, 0);
        write(&rig, first).await;
        let read = async { assert_eq!(rig.read(&[first + 1]).await.unwrap(), [first]) };
        assert_eq!(took(&sim, read).await, PROGRAM + READ - Span::from_us(10));
        let plain = SubmissionEntry::blocks(IoOpcode::WRITE, 1, first + u64::from(WS), WS);
        let fua = SubmissionEntry { cdw12: (plain.cdw12.get() | FUA).into(), ..plain };
        let data = HostMem::from_bytes(&bytes_of(&[9; WS as usize]));
        let issuer = Issuer::new(&sim);
        let durable = async { assert!(issuer.execute(&*rig.drive, fua, data).await.status.is_success()) };
        assert_eq!(took(&sim, durable).await, SENT + PROGRAM);
        write(&rig, first + 2 * u64::from(WS)).await;
        let begun = sim.now();
        rig.host.reset(&[first]).await.expect("a reset waits for the program");
        assert!(sim.now() - begun > PROGRAM, "{}", sim.now() - begun);
        assert_eq!(rig.host.report_of(0, 1).await.unwrap()[0].state, CHUNK_FREE);
        rig.ssd.check().unwrap();
    });
}

#[test]
fn the_host_is_told_of_data_that_could_not_be_programmed() {
    on_rig(&["faults=[\"fail program nth=2\"]"], async |sim, rig| {
        let first = chunk(&rig, 0);
        write(&rig, first).await;
        write(&rig, first + u64::from(WS)).await;
        // No command is under way any more: the failure is still reported, once.
        sim.sleep(PROGRAM * 2).await;
        assert_eq!(rig.host.flush().await.unwrap_err().status, Status::WRITE_FAULT);
        rig.host.flush().await.unwrap();
        let told = rig.host.notifications(0).await.unwrap();
        let notice = (told[0].state.get(), told[0].lba.get(), told[0].nlb.get());
        assert_eq!((told.len(), notice), (1, (NOTICE_UNRECOVERABLE, first + u64::from(WS), WS as u16)));
        let report = rig.host.report_of(0, 1).await.unwrap()[0];
        assert_eq!((report.state, report.written), (CHUNK_CLOSED, u64::from(WS)));
        assert_eq!(rig.read(&[first]).await.unwrap(), [first]);
    });
}

#[test]
fn a_power_cut_takes_back_what_is_in_registers() {
    on_rig(&[], async |sim, rig| {
        let first = chunk(&rig, 0);
        write(&rig, first).await;
        rig.host.flush().await.unwrap();
        write(&rig, first + u64::from(WS)).await;
        rig.ssd.media().cut_power(Span::from_ms(1));
        sim.sleep(Span::from_ms(50)).await;
        let report = rig.host.report_of(0, 1).await.unwrap()[0];
        assert_eq!((report.state, report.written), (CHUNK_CLOSED, u64::from(WS)), "a program was torn");
        rig.ssd.check().unwrap();
    });
}
