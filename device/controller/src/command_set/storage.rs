//! The storage behind the commands of a set: the data of namespaces, counts, power.

use nandscape_wire_nvme::log::Smart;
use nandscape_wire_nvme::vendor::DriveLog;

use super::{Failure, Later};
use crate::namespace::Namespace;

/// The storage behind a command set.
pub trait Storage {
    /// Reads blocks of a namespace, and drops the data.
    ///
    /// # Errors
    /// Why they cannot be read.
    fn test<'a>(&'a self, namespace: &'a Namespace, slba: u64, blocks: u32) -> Later<'a, Result<(), Failure>>;

    /// Counts of commands, to be noted; none where the set counts nothing.
    fn totals(&self) -> Vec<u64> {
        Vec::new()
    }

    /// Continues the counts from noted values.
    fn restore_totals(&self, _totals: &[u64]) {}

    /// Bytes that hosts have written so far.
    fn bytes_written(&self) -> u64;

    /// Whether the media may hold data of hosts, be it current or stale.
    fn may_hold_data(&self) -> bool;

    /// Sends all data that a power cut would lose to flash.
    fn flush<'a>(&'a self) -> Later<'a, ()>;

    /// The same, and writes the tables that the next start would have to reconstruct.
    fn shut_down<'a>(&'a self) -> Later<'a, ()> {
        self.flush()
    }

    /// Fills in the SMART log fields of the media and of I/O commands.
    fn smart(&self, smart: &mut Smart);

    /// Fills in the drive log fields of the media and of the FTL.
    fn drive_log(&self, log: &mut DriveLog);

    /// Critical Warning of the SMART log.
    fn warnings(&self) -> u8;

    /// Calls `cut` whenever power is cut, in the middle of any operation: it may only start a task.
    fn on_power_cut(&self, cut: Box<dyn Fn()>);

    /// Waits until power returns after a cut.
    fn power_returns<'a>(&'a self) -> Later<'a, ()>;

    /// Restarts after a power cut. Power has returned, and no command is in work.
    fn restart<'a>(&'a self) -> Later<'a, ()>;
}
