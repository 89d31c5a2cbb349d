//! The command set of a subsystem.
//!
//! The engine is large, and compiled once. The sets of most commands are known to it by type, so that their commands need
//! neither a call through a table nor an allocation.

use std::ops::Deref;
use std::rc::Rc;

use nandscape_device_ftl_page::PageFtl;
use nandscape_drive::Breakdown;
use nandscape_wire_nvme::SubmissionEntry;

use super::{Command, CommandSet, Reply};
use crate::namespace::Namespace;
use crate::{Forward, Nvm};

/// A command set.
pub enum AnySet {
    /// The NVM command set over the page-mapping FTL.
    Page(Rc<Nvm<PageFtl>>),
    /// The NVM command set over any drive.
    Forward(Rc<Forward>),
    /// Another one. Each of its commands allocates a future.
    Other(Rc<dyn CommandSet>),
}

impl From<Nvm<PageFtl>> for AnySet {
    fn from(set: Nvm<PageFtl>) -> AnySet {
        AnySet::Page(Rc::new(set))
    }
}

impl From<Forward> for AnySet {
    fn from(set: Forward) -> AnySet {
        AnySet::Forward(Rc::new(set))
    }
}

impl AnySet {
    /// A set of another type.
    pub fn of(set: impl CommandSet) -> AnySet {
        AnySet::Other(Rc::new(set))
    }
}

impl Deref for AnySet {
    type Target = dyn CommandSet;

    fn deref(&self) -> &Self::Target {
        match self {
            AnySet::Page(set) => &**set,
            AnySet::Forward(set) => &**set,
            AnySet::Other(set) => &**set,
        }
    }
}

impl AnySet {
    /// [`CommandSet::prefetch`].
    pub(crate) fn prefetch(&self, namespace: &Namespace, entry: &SubmissionEntry) {
        match self {
            AnySet::Page(set) => set.prefetch(namespace, entry),
            AnySet::Forward(set) => set.prefetch(namespace, entry),
            AnySet::Other(set) => set.prefetch(namespace, entry),
        }
    }

    /// [`CommandSet::serve`], in the caller's own future.
    pub(crate) async fn serve(&self, command: &Command<'_>, breakdown: &mut Breakdown) -> Reply {
        match self {
            AnySet::Page(set) => set.serve_directly(command, breakdown).await,
            AnySet::Forward(set) => set.serve_directly(command, breakdown).await,
            AnySet::Other(set) => set.serve(command, breakdown).await,
        }
    }
}
