//! An idle drive: its checkpoint is taken by age, and then it rests. CLEAR of the map.

use nandscape_device_ftl_core::Ftl;
use nandscape_device_ftl_core::component::{CachedMapping, ChainedLog};
use nandscape_sim::{Executor, Span};

use super::cuts::seed;
use super::kinds::Setup;
use super::rig::{Rig, units};

async fn write(rig: &Rig, count: u32) {
    for unit in 0..count {
        rig.write(units(unit % 300, 1), &[1; 4_096], false, || ()).await.expect("no cut");
    }
    rig.flush().await.expect("no cut");
}

/// Also when the interval becomes shorter meanwhile.
#[test]
fn an_idle_drive_takes_one_checkpoint_by_age() {
    for shorter in [false, true] {
        let mut executor = Executor::new();
        let (sim, mut setup) = (executor.sim(), Setup::small());
        let interval = Span::from_ms(500);
        setup.config.checkpoint.interval = if shorter { Span::from_s(3_600) } else { interval };
        setup.config.checkpoint.log_pages = 1_000;
        let rig = Rig::new(&sim, &setup, seed(), None);
        let work = async {
            write(&rig, 40).await;
            let before = rig.ftl.checkpoints();
            if shorter {
                let checkpoint = crate::ox_block::CheckpointConfig { interval, ..setup.config.checkpoint };
                rig.ftl.change(setup.config.gc, checkpoint);
            }
            sim.sleep(interval + Span::from_ms(100)).await;
            assert_eq!(rig.ftl.checkpoints(), before + 1);
            sim.sleep(interval * 20).await;
            assert_eq!(rig.ftl.checkpoints(), before + 1, "it does not rest");
            let core = rig.ftl.core();
            let state = core.state.borrow();
            assert!(state.held.is_empty() && state.log.pages() <= 2, "{} pages of the log", state.log.pages());
        };
        executor.block_on_within(work, 1_000_000).expect("it ends");
    }
}

/// The timer of a drive that nothing waits for ends.
#[test]
fn no_timer_runs_on_a_drive_that_rests() {
    let mut executor = Executor::new();
    let rig = Rig::new(&executor.sim(), &Setup::small(), seed(), None);
    executor.block_on_within(write(&rig, 40), 1_000_000).expect("it ends");
    let stalled = executor.block_on_within(std::future::pending::<()>(), 1_000_000);
    assert!(stalled.is_err_and(|unended| unended.to_string().contains("stalled")), "events go on");
    rig.ftl.check().expect("sound");
}

#[test]
fn clear_writes_the_map_and_keeps_it_in_memory() {
    let mut executor = Executor::new();
    let mut setup = Setup::small();
    setup.config.checkpoint = crate::ox_block::CheckpointConfig { interval: Span::from_s(3_600), log_pages: 1_000 };
    let rig = Rig::new(&executor.sim(), &setup, seed(), None);
    let work = async {
        write(&rig, 40).await;
        let core = rig.ftl.core();
        assert_eq!(core.state.borrow().map.unwritten(), [0]);
        core.clear_map().await.expect("no cut");
        let state = core.state.borrow();
        assert!(state.map.unwritten().is_empty() && state.map.is_cached(0));
    };
    executor.block_on_within(work, 1_000_000).expect("it ends");
}
