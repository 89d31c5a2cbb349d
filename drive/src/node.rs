//! A namespace that users connect to: a drive of a simulation, a drive behind a socket, a layer over others. A
//! [`Drive`] is the data path; a node hands out such paths. Where nothing below is shared, each has its own queue pair down to the flash.
//!
//! A layer that needs more of the nodes below than commands requests a *view*, by type. If a node lacks that view,
//! the layer works without it or reports why it cannot.

use std::any::{Any, TypeId};
use std::rc::Rc;

use nandscape_wire_nvme::Status;

use crate::drive::{Drive, DriveInfo};

/// The use of a connection.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Role {
    /// Commands of any kind.
    Any,
    /// Reads, which must not queue behind writes.
    Reads,
    /// Writes, which must not take all commands that the drive has room for: else no read would be fetched.
    Writes,
    /// Admin commands: the only user of the admin queue.
    Admin,
}

/// A connection that is wanted.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Use {
    /// What for.
    pub role: Role,
    /// The most entries of its queues, one of which stays empty.
    pub entries: u32,
}

/// Why a node has no further connection.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{what}: {status}{hint}")]
pub struct Refused {
    /// What is rejected, as "the drive has no room for queue pair 4".
    pub what: String,
    /// The status of the controller.
    pub status: Status,
    /// The remedy, after a semicolon; empty if none is known.
    pub hint: &'static str,
}

/// See the file.
pub trait Node {
    /// The properties of the drive. They do not change while it is used.
    fn info(&self) -> DriveInfo;

    /// A new connection for one user.
    ///
    /// # Errors
    /// When no connection is left.
    fn connect(&self, wanted: Use) -> Result<Rc<dyn Drive>, Refused>;

    /// Something more that it lets a layer above see, by its type. [`view`] asks for it.
    fn view(&self, _of: TypeId) -> Option<Rc<dyn Any>> {
        None
    }
}

/// The view of this type that a node has.
pub fn view<T: Any>(node: &dyn Node) -> Option<Rc<T>> {
    node.view(TypeId::of::<T>())?.downcast().ok()
}
