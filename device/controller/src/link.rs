//! The host link: full duplex, each direction first come, first served.

use nandscape_drive::breakdown::cause;
use nandscape_drive::{Breakdown, Stage};
use nandscape_sim::account::Totals;
use nandscape_sim::{Cause, Class, Resource, Sim, Who};

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
    pub(crate) async fn send(&self, bytes: u64, log: &mut Breakdown) {
        self.transfer(&self.to_host, bytes, cause::HOST_READ, log).await;
    }

    /// Moves data from the host.
    pub(crate) async fn receive(&self, bytes: u64, log: &mut Breakdown) {
        self.transfer(&self.to_device, bytes, cause::HOST_WRITE, log).await;
    }

    /// Busy time of each direction, to the host first.
    pub(crate) fn usage(&self) -> [Totals; 2] {
        [self.to_host.usage(), self.to_device.usage()]
    }

    async fn transfer(&self, lane: &Resource, bytes: u64, cause: Cause, log: &mut Breakdown) {
        let time = self.config.bandwidth.time_for(bytes);
        let wait = lane.occupy(time, Who::new(cause, Class::new(0))).await;
        // Latency passes on the way and keeps nobody else from starting.
        self.sim.sleep(self.config.latency).await;
        log.spend(Stage::Link, wait.total() + time + self.config.latency);
    }
}
