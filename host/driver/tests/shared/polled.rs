//! Drives behind sockets, polled by a task of simulated time. Shared by tests of several crates.

use std::rc::Rc;

use nandscape_host_driver::nvme_tcp::{NvmeTcp, Target};
use nandscape_host_driver::{Lost, Remote};
use nandscape_sim::{Sim, Span};
use nandscape_transport_reactor::WallClock;

/// Polls a drive from a task while it has users. Panics after more than a minute.
pub(crate) fn poll<D: 'static>(sim: &Sim, drive: &Rc<D>, poll: fn(&D) -> Result<bool, Lost>) {
    let (clock, wall, weak) = (sim.clone(), WallClock::start(), Rc::downgrade(drive));
    let deadline = wall.now() + Span::from_s(60);
    sim.spawn(async move {
        while let Some(drive) = weak.upgrade() {
            assert!(wall.now() < deadline, "it did not end within a minute");
            poll(&drive).expect("the other side stays");
            drop(drive);
            clock.sleep(Span::from_us(1)).await;
        }
    });
}

/// Connects to a target, and polls it.
pub(crate) fn connected(sim: &Sim, address: &str, nqn: &str) -> Rc<NvmeTcp> {
    // Simulated time runs far ahead of the target, so no timeout may expire.
    let (keep_alive, patience) = (Span::from_s(40_000), Span::from_s(1_000_000));
    let target = Target { keep_alive, patience, ..Target::new(address, nqn) };
    let time = sim.clone();
    let drive = Rc::new(NvmeTcp::connect(target, Box::new(move || time.now())).expect("a target"));
    poll(sim, &drive, Remote::poll);
    drive
}
