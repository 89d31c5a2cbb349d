//! Namespaces that hosts create, format and sanitize.

use nandscape_device_ftl_core::offers::Sanitization;
use nandscape_wire_nvme::Status;

use super::Later;
use crate::namespace::Namespace;

/// Removes data when hosts administer namespaces.
pub trait Administration {
    /// Drops all data of a namespace that no command uses.
    fn erase<'a>(&'a self, namespace: &'a Namespace) -> Later<'a, ()>;

    /// Removes all data from the media. All namespaces are erased, and no command uses any. `progress` receives the work done
    /// and the total.
    ///
    /// # Errors
    /// Command Aborted due to Power Loss Notification: the caller repeats it after the restart of the command set, and it
    /// continues. Sanitize Failed: some data could not be removed.
    fn sanitize<'a>(&'a self, how: Sanitization, progress: &'a dyn Fn(u64, u64)) -> Later<'a, Result<(), Status>>;
}
