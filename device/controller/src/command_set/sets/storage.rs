//! The storage behind the commands: data, counts and power of all sets.

use nandscape_wire_nvme::log::Smart;
use nandscape_wire_nvme::vendor::DriveLog;

use super::{Member, NvmSets, Work, all_done, on};
use crate::command_set::{Failure, Later, Storage};
use crate::namespace::Namespace;

impl Storage for NvmSets {
    fn test<'a>(&'a self, namespace: &'a Namespace, slba: u64, blocks: u32) -> Later<'a, Result<(), Failure>> {
        Box::pin(async move { on!(self.of(namespace), nvm => nvm.test(namespace, slba, blocks).await) })
    }

    /// The totals of each set in order, each followed by its number of failed commands.
    fn totals(&self) -> Vec<u64> {
        let of = |member: &Member| {
            let mut totals = on!(&member.set, nvm => nvm.totals());
            totals.push(member.errors.get());
            totals
        };
        self.sets.iter().flat_map(of).collect()
    }

    fn restore_totals(&self, totals: &[u64]) {
        let each = totals.len() / self.sets.len();
        for (member, totals) in self.sets.iter().zip(totals.chunks_exact(each.max(1))) {
            let Some((errors, totals)) = totals.split_last() else { continue };
            on!(&member.set, nvm => nvm.restore_totals(totals));
            member.errors.set(*errors);
        }
    }

    fn bytes_written(&self) -> u64 {
        self.all().map(|set| on!(set, nvm => nvm.bytes_written())).sum()
    }

    fn may_hold_data(&self) -> bool {
        self.all().any(|set| on!(set, nvm => nvm.may_hold_data()))
    }

    fn flush<'a>(&'a self) -> Later<'a, ()> {
        Box::pin(async move {
            all_done(self.all().map(|set| -> Work<'_> { on!(set, nvm => Box::pin(nvm.flush())) })).await;
        })
    }

    fn shut_down<'a>(&'a self) -> Later<'a, ()> {
        Box::pin(async move {
            all_done(self.all().map(|set| -> Work<'_> { on!(set, nvm => Box::pin(nvm.shut_down())) })).await;
        })
    }

    fn smart(&self, smart: &mut Smart) {
        self.fill_in_smart(smart);
    }

    fn drive_log(&self, log: &mut DriveLog) {
        self.fill_in_drive_log(log);
    }

    fn warnings(&self) -> u8 {
        self.all().fold(0, |warnings, set| warnings | on!(set, nvm => nvm.warnings()))
    }

    /// All flash has one power supply.
    fn on_power_cut(&self, cut: Box<dyn Fn()>) {
        on!(self.first(), nvm => nvm.on_power_cut(cut));
    }

    fn power_returns<'a>(&'a self) -> Later<'a, ()> {
        Box::pin(async move {
            on!(self.first(), nvm => nvm.power_returns().await);
        })
    }

    fn restart<'a>(&'a self) -> Later<'a, ()> {
        Box::pin(async move {
            all_done(self.all().map(|set| -> Work<'_> { on!(set, nvm => Box::pin(nvm.restart())) })).await;
        })
    }
}
