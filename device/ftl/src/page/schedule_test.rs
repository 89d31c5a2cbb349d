//! Collectors whose planes go out of use.

use nandscape_device_media::PlaneId;
use nandscape_sim::{Executor, Span};

use super::schedule::Phase;
use super::{PageFtl, victim_test};
use crate::policy::Greedy;

/// A plane that goes out of use while its collector waits for the host: the collector leaves its block and ends.
#[test]
fn the_collector_of_a_plane_that_goes_out_of_use_ends() {
    let (mut executor, plane) = (Executor::new(), PlaneId(0));
    let (sim, phase) = (executor.sim(), |ftl: &PageFtl| ftl.state.borrow().collectors.phase(plane));
    let ftl = victim_test::drive(&sim, 1, Box::new(Greedy));
    ftl.start_collectors();
    executor.block_on(sim.sleep(Span::from_ms(100))).unwrap();
    assert_eq!(phase(&ftl), Phase::Ahead, "planting leaves collectors in the midst of a block");
    ftl.state.borrow_mut().take_out(plane);
    assert_eq!(phase(&ftl), Phase::Leaving);
    ftl.pump();
    executor.block_on(sim.sleep(Span::from_us(1))).unwrap();
    assert_eq!(phase(&ftl), Phase::OutOfUse);
    ftl.state.borrow().check(&ftl.media).unwrap();
}
