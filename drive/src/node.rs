//! A namespace that users connect to: a drive of a simulation, a drive behind a socket, a layer over others. Where [`Drive`] is
//! the path of data, a node is what hands out such paths, each with a queue pair of its own down to the flash.
//!
//! What a layer has to know of the nodes below it beyond commands it asks for as a *view*, by type: a node that has none of that
//! type, or is not built for it, has no such view, and the layer works without or says why it cannot.

use std::any::{Any, TypeId};
use std::rc::Rc;

use nandscape_wire_nvme::Status;

use crate::drive::{Drive, DriveInfo};

/// What a connection is used for.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Role {
    /// Commands of any kind.
    Any,
    /// Reads: they are not to queue behind writes.
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
    /// Entries of its queues at most, one of which stays empty.
    pub entries: u32,
}

/// Why a node has no further connection.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{what}: {status}{hint}")]
pub struct Refused {
    /// What it refuses, as "the drive has no room for queue pair 4".
    pub what: String,
    /// The status of the controller.
    pub status: Status,
    /// What would help, after a semicolon; empty if nothing is known to.
    pub hint: &'static str,
}

/// See the file.
pub trait Node {
    /// What the drive is. It may grow while it is used.
    fn info(&self) -> DriveInfo;

    /// A connection of its own for one user.
    ///
    /// # Errors
    /// When there are no more.
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
