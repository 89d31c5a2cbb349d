//! The host link: full duplex, each direction first come, first served.

use nandscape_drive::breakdown::cause;
use nandscape_drive::{Breakdown, Stage};
use nandscape_sim::account::Totals;
use nandscape_sim::{Cause, Class, Resource, Sim, Wait, Who};

use crate::config::LinkConfig;

pub(crate) struct Link {
    sim: Sim,
    config: LinkConfig,
    to_host: Resource,
    to_device: Resource,
}

impl Link {
    pub(crate) fn new(sim: &Sim, config: LinkConfig) -> Link {
        Link { sim: sim.clone(), config, to_host: Resource::new(sim), to_device: Resource::new(sim) }
    }

    /// Moves data to the host.
    pub(crate) fn send(&self, bytes: u64, log: &mut Breakdown) -> impl Future<Output = ()> {
        self.transfer(&self.to_host, bytes, cause::HOST_READ, log)
    }

    /// Moves data from the host.
    pub(crate) fn receive(&self, bytes: u64, log: &mut Breakdown) -> impl Future<Output = ()> {
        self.transfer(&self.to_device, bytes, cause::HOST_WRITE, log)
    }

    /// Busy time of each direction, to the host first.
    pub(crate) fn usage(&self) -> [Totals; 2] {
        [self.to_host.usage(), self.to_device.usage()]
    }

    async fn transfer(&self, lane: &Resource, bytes: u64, cause: Cause, log: &mut Breakdown) {
        let time = self.config.bandwidth.time_for(bytes);
        let begun = self.sim.now();
        lane.occupy(time, Who::new(cause, Class::new(0)), &mut Wait::default()).await;
        log.spend(Stage::Link, self.sim.now() - begun);
    }
}
