//! Windows of notices that a policy asks for while a workload runs: the drive is given them over its admin queue, one command at a time.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use nandscape_drive::{Drive, Issuer, QueueId};
use nandscape_sim::{Sim, Span};

use crate::precompletion::give_window;

/// See the file.
pub(super) struct Windows {
    sim: Sim,
    issuer: Issuer,
    admin: Rc<dyn Drive>,
    /// The completion queue of notices.
    queue: QueueId,
    wanted: Cell<Span>,
    /// A command is under way, whose end looks whether the window is still wanted.
    is_busy: Cell<bool>,
    /// Why the drive has refused one.
    refused: RefCell<Option<String>>,
}

impl Windows {
    /// Over an admin queue, for notices in a completion queue.
    pub(super) fn new(sim: &Sim, admin: Rc<dyn Drive>, queue: QueueId) -> Rc<Windows> {
        Rc::new(Windows {
            sim: sim.clone(),
            issuer: Issuer::new(sim),
            admin,
            queue,
            wanted: Cell::new(Span::ZERO),
            is_busy: Cell::new(false),
            refused: RefCell::default(),
        })
    }

    /// From now on notices are to come so long ahead.
    pub(super) fn set(self: &Rc<Windows>, window: Span) {
        self.wanted.set(window);
        if self.is_busy.replace(true) {
            return;
        }
        let windows = self.clone();
        self.sim.spawn(async move {
            let mut given = None;
            while given != Some(windows.wanted.get()) && windows.refused.borrow().is_none() {
                given = Some(windows.wanted.get());
                windows.give(windows.wanted.get()).await;
            }
            windows.is_busy.set(false);
        });
    }

    /// Why the drive has refused a window, if it has.
    pub(super) fn refused(&self) -> Option<String> {
        self.refused.borrow().clone()
    }

    async fn give(&self, window: Span) {
        if let Err(status) = give_window(&self.issuer, &*self.admin, self.queue, window).await {
            let problem = format!("host.window: the drive refuses a window of {window}: {status}");
            self.refused.borrow_mut().get_or_insert(problem);
        }
    }
}

#[cfg(test)]
mod tests {
    use nandscape_drive::{Completion, DriveInfo, Io};
    use nandscape_sim::Executor;
    use nandscape_wire_nvme::Status;
    use nandscape_wire_nvme::vendor::Notices;
    use zerocopy::FromBytes as _;

    use super::*;

    /// An admin queue that answers after a time.
    struct Admin {
        sim: Sim,
        status: Status,
        windows: Rc<RefCell<Vec<u32>>>,
    }

    impl Drive for Admin {
        fn info(&self) -> DriveInfo {
            unreachable!("an admin queue has no blocks that a window asks for")
        }

        fn submit(&self, io: Io) {
            let Io { mem, token, .. } = io;
            let value = Notices::read_from_bytes(&mem.to_vec()).expect("the value of the feature");
            self.windows.borrow_mut().push(value.window_ns.get());
            let (sim, status) = (self.sim.clone(), self.status);
            self.sim.spawn(async move {
                sim.sleep(Span::from_us(10)).await;
                token.complete(Completion::of(status));
            });
        }
    }

    /// The windows that the drive was given, of those wanted at once and later, and why it refused.
    fn given(status: Status, wanted: &[&[u64]]) -> (Vec<u32>, Option<String>) {
        let mut executor = Executor::new();
        let sim = executor.sim();
        let taken = Rc::new(RefCell::new(Vec::new()));
        let admin = Rc::new(Admin { sim: sim.clone(), status, windows: taken.clone() });
        let windows = Windows::new(&sim, admin, QueueId(3));
        for together in wanted {
            together.iter().for_each(|us| windows.set(Span::from_us(*us)));
            executor.block_on(sim.sleep(Span::from_ms(1))).unwrap();
        }
        (taken.take(), windows.refused())
    }

    #[test]
    fn the_drive_is_given_the_newest_window_and_one_command_at_a_time() {
        assert_eq!(given(Status::SUCCESS, &[&[16], &[18]]), (vec![16_000, 18_000], None));
        assert_eq!(given(Status::SUCCESS, &[&[16, 18, 20]]).0, [20_000], "before the first was sent");
        let (taken, refused) = given(Status::INVALID_FIELD, &[&[16], &[18]]);
        assert_eq!(taken, [16_000], "a drive that refuses is not asked again");
        assert!(refused.unwrap().starts_with("host.window: the drive refuses a window of 16us"));
    }
}
