//! The storage behind the commands: the FTL with its counts, and the media's power.

use nandscape_device_ftl_core::Ftl;
use nandscape_wire_nvme::log::Smart;
use nandscape_wire_nvme::vendor::DriveLog;

use super::{HostCounts, Nvm};
use crate::command_set::{Failure, Later, Storage};
use crate::namespace::Namespace;

impl<F: Ftl> Storage for Nvm<F> {
    fn test<'a>(&'a self, namespace: &'a Namespace, slba: u64, blocks: u32) -> Later<'a, Result<(), Failure>> {
        Box::pin(async move { self.read_for_test(namespace, slba, blocks).await })
    }

    fn totals(&self) -> Vec<u64> {
        let HostCounts { reads, read_bytes, writes } = self.counts.get();
        vec![reads, read_bytes, writes]
    }

    fn restore_totals(&self, totals: &[u64]) {
        if let [reads, read_bytes, writes] = *totals {
            self.counts.set(HostCounts { reads, read_bytes, writes });
        }
    }

    fn bytes_written(&self) -> u64 {
        self.ftl.stats().host_bytes
    }

    fn may_hold_data(&self) -> bool {
        match self.ftl.offers().sanitize {
            Some(flash) => flash.may_hold_data(),
            None => self.bytes_written() > 0,
        }
    }

    fn flush<'a>(&'a self) -> Later<'a, ()> {
        Box::pin(async move {
            if let Some(settling) = self.ftl.flush() {
                // A drive that can no longer take the data cannot be flushed any further.
                let _ = settling.settled().await;
            }
        })
    }

    fn shut_down<'a>(&'a self) -> Later<'a, ()> {
        Box::pin(async move {
            self.flush().await;
            if let Some(tables) = self.ftl.offers().stored_tables {
                tables.shut_down().await;
            }
        })
    }

    fn smart(&self, smart: &mut Smart) {
        self.health().fill_in(smart);
    }

    fn drive_log(&self, log: &mut DriveLog) {
        self.flash_log().fill_in(log);
    }

    fn warnings(&self) -> u8 {
        self.critical_warnings()
    }

    fn on_power_cut(&self, cut: Box<dyn Fn()>) {
        self.media.on_power_cut(cut);
    }

    fn power_returns<'a>(&'a self) -> Later<'a, ()> {
        Box::pin(async move {
            self.media.power_returns().await;
        })
    }

    fn restart<'a>(&'a self) -> Later<'a, ()> {
        Box::pin(async move {
            self.ftl.restart(self.keeps_buffer()).await;
            self.erase_again().await;
        })
    }
}
