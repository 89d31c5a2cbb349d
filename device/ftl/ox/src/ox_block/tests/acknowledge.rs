//! The wait for each milestone of a write: the cache, the program of its page, or also the log.

use nandscape_device_ftl_core::component::Log;
use nandscape_device_ftl_core::ftl::Milestone;
use nandscape_device_ftl_core::{Ftl, RandomWrites};
use nandscape_drive::HostMem;
use nandscape_sim::{Executor, Sim, Span, Wait};

use super::cuts::seed;
use super::kinds::Setup;
use super::rig::{Rig, units};

/// Pages of the log, and whether all records are on flash.
fn log(rig: &Rig) -> (u64, bool) {
    let core = rig.ftl.core();
    let state = core.state.borrow();
    (state.counters.upkeep.pages.log, state.log.is_durable(state.log.last()))
}

/// Writes two units. Returns the drive time it took, pages of the log that were written, and whether all records are on flash.
async fn write(rig: &Rig, sim: &Sim, watch: Option<Milestone>, is_transaction: bool) -> (Span, u64, bool) {
    let extents = [units(4, 1), units(9, 1)];
    let (begun, pages, data) = (sim.now(), log(rig).0, HostMem::zeroed(2 * 4_096));
    let room = rig.ftl.offers().transactions.expect("it has a log").reserve(&extents, &mut Wait::default()).await;
    let settling = match is_transaction {
        true => vec![rig.ftl.offers().transactions.expect("it has a log").accept(&extents, Some(&data), room, watch)],
        false => {
            drop(room);
            let mut settling = Vec::new();
            for extent in extents {
                let room = rig.ftl.reserve(extent, &mut Wait::default()).await;
                settling.push(rig.ftl.accept(extent, Some(&data), room, watch));
            }
            settling
        }
    };
    for settling in settling.into_iter().flatten() {
        settling.settled().await.expect("no cut");
    }
    let (after, is_durable) = log(rig);
    (sim.now() - begun, after - pages, is_durable)
}

#[test]
fn a_write_that_waits_for_its_program_does_not_wait_for_the_log() {
    let mut executor = Executor::new();
    let (sim, setup) = (executor.sim(), Setup::small());
    let rig = Rig::new(&sim, &setup, seed(), None);
    let ended = executor.block_on_within(
        async {
            rig.ftl.in_service().await;
            let (cached, pages, _) = write(&rig, &sim, None, false).await;
            assert_eq!((cached, pages), (Span::ZERO, 0));
            rig.flush().await.expect("no cut");
            let (programmed, pages, is_durable) = write(&rig, &sim, Some(Milestone::Programmed), false).await;
            assert!(programmed > Span::ZERO && pages == 0 && !is_durable, "{programmed}, {pages} pages");
            // Flush and transactions force the log.
            rig.flush().await.expect("no cut");
            assert!(log(&rig).1);
            let (durable, pages, is_durable) = write(&rig, &sim, Some(Milestone::Flash), false).await;
            assert!(durable > programmed && pages > 0 && is_durable, "{durable}, {pages} pages");
            let (committed, pages, is_durable) = write(&rig, &sim, Some(Milestone::Programmed), true).await;
            assert!(committed > programmed && pages > 0 && is_durable, "{committed}, {pages} pages");
            rig.ftl.check().expect("sound");
        },
        1_000_000,
    );
    ended.expect("it ends");
}

/// OX's commit without waiting: the data is on flash, and the Commit in the log, which no page holds yet.
#[test]
fn a_transaction_may_end_before_its_commit_is_durable() {
    let mut executor = Executor::new();
    let (sim, setup) = (executor.sim(), Setup::small().appended());
    let rig = Rig::new(&sim, &setup, seed(), None);
    let ended = executor.block_on_within(
        async {
            rig.ftl.in_service().await;
            let (appended, pages, is_durable) = write(&rig, &sim, Some(Milestone::Programmed), true).await;
            assert!(appended > Span::ZERO && pages == 0 && !is_durable, "{appended}, {pages} pages");
            rig.flush().await.expect("no cut");
            assert!(log(&rig).1);
            // Force Unit Access still forces the log.
            let (committed, pages, is_durable) = write(&rig, &sim, Some(Milestone::Flash), true).await;
            assert!(committed > appended && pages > 0 && is_durable, "{committed}, {pages} pages");
            rig.ftl.check().expect("sound");
        },
        1_000_000,
    );
    ended.expect("it ends");
}
