//! Namespaces that hosts create, format and sanitize.

use nandscape_device_ftl_core::offers::Sanitization;
use nandscape_wire_nvme::Status;

use super::Later;
use crate::namespace::Namespace;

/// Removes data when hosts administer namespaces.
pub trait Administration {
    /// Drops all data of a namespace, on which no command works.
    fn erase<'a>(&'a self, namespace: &'a Namespace) -> Later<'a, ()>;

    /// Removes all data from the media. All namespaces are erased, and no command works on any. `progress` is given what is
    /// done, and all.
    ///
    /// # Errors
    /// Command Aborted due to Power Loss Notification: it is to be repeated once the command set has started again, and
    /// continues. Sanitize Failed: some data could not be removed.
    fn sanitize<'a>(&'a self, how: Sanitization, progress: &'a dyn Fn(u64, u64)) -> Later<'a, Result<(), Status>>;
}
