//! Remote drives that were connected to after the loop began: it waits for them as for clients, with the same descriptor.

use std::cell::{Cell, RefCell};
use std::io;
use std::os::fd::OwnedFd;
use std::rc::Rc;

use nandscape_sim::Span;
use nandscape_transport_reactor::Source;
use rustix::event::epoll::{self, EventData, EventFlags};

use super::sockets::{ADDED, Log};

/// A drive by its name.
type Named = (Rc<str>, Rc<dyn Source>);

/// See the file.
pub(super) struct Added {
    epoll: Rc<OwnedFd>,
    sources: RefCell<Vec<Named>>,
    /// One of them has sent something.
    has_come: Cell<bool>,
    log: Log,
}

impl Added {
    pub(super) fn new(epoll: Rc<OwnedFd>, log: Log) -> Added {
        Added { epoll, sources: RefCell::default(), has_come: Cell::new(false), log }
    }

    /// Waits for a drive from now on.
    ///
    /// # Errors
    /// When the system does not allow that.
    pub(super) fn add(&self, name: &str, sources: Vec<Rc<dyn Source>>) -> io::Result<()> {
        for source in sources {
            epoll::add(&*self.epoll, source.descriptor(), EventData::new_u64(ADDED), EventFlags::IN)?;
            self.sources.borrow_mut().push((name.into(), source));
        }
        Ok(())
    }

    /// Does not wait for it any more.
    pub(super) fn remove(&self, sources: &[Rc<dyn Source>]) {
        let is_one = |one: &Rc<dyn Source>| sources.iter().any(|other| Rc::ptr_eq(one, other));
        self.sources.borrow_mut().retain(|(_, source)| {
            let is_one = is_one(source);
            if is_one {
                // It ends with its descriptor at the latest.
                let _ = epoll::delete(&*self.epoll, source.descriptor());
            }
            !is_one
        });
    }

    /// One of them has sent something.
    pub(super) fn came(&self) {
        self.has_come.set(true);
    }

    /// Makes them send and receive. Whether anything moved.
    pub(super) fn poll(&self) -> bool {
        let (came, mut moved) = (self.has_come.take(), false);
        let count = self.sources.borrow().len();
        for place in 0..count {
            let Some((name, source)) = self.sources.borrow().get(place).cloned() else { break };
            if came || source.has_unsent() {
                moved |= source.poll();
                if let Some(news) = source.news() {
                    (self.log)(&format!("drive {name}: {news}"));
                }
            }
        }
        moved
    }

    fn any(&self, of: impl Fn(&dyn Source) -> usize) -> usize {
        self.sources.borrow().iter().map(|(_, source)| of(&**source)).sum()
    }

    /// Whether one of them has commands that it has not sent yet.
    pub(super) fn has_unsent(&self) -> bool {
        self.any(|source| usize::from(source.has_unsent())) > 0
    }

    /// Commands that have not completed.
    pub(super) fn outstanding(&self) -> usize {
        self.any(|source| source.outstanding())
    }

    /// From now on, commands fail when their drive has been out of reach for this long.
    pub(super) fn limit_patience(&self, patience: Span) {
        self.sources.borrow().iter().for_each(|(_, source)| source.limit_patience(patience));
    }
}
