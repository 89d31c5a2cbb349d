//! Turns one at a time, on the test's own thread: what one turn takes in, and that nobody keeps it from the others.

use std::os::fd::BorrowedFd;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use nandscape_drive::{Completion, Drive, DriveInfo, Io};
use nandscape_sim::Sim;
use nandscape_wire_nvme::Status;

use super::*;

/// A drive that completes a command after as many nanoseconds as its address.
struct Delays(Sim);

impl Drive for Delays {
    fn info(&self) -> DriveInfo {
        DriveInfo {
            nsid: 1,
            blocks: 1 << 40,
            lba_bytes: 512,
            max_blocks: 256,
            unit_bytes: 4_096,
            volatile_cache: false,
            keeps_data: false,
        }
    }

    fn submit(&self, io: Io) {
        let sim = self.0.clone();
        self.0.spawn(async move {
            sim.sleep(Span::from_ns(io.command.slba())).await;
            io.token.complete(Completion::of(Status::SUCCESS));
        });
    }
}

struct DelaysExport(Sim);

impl Export for DelaysExport {
    fn info(&self) -> DriveInfo {
        Delays(self.0.clone()).info()
    }

    fn connect(&self) -> Result<Rc<dyn Drive>, Status> {
        Ok(Rc::new(Delays(self.0.clone())))
    }
}

fn reactor() -> (Reactor, Handle) {
    let executor = Executor::new();
    let sim = executor.sim();
    let port = Port::new(&sim, vec![Rc::new(DelaysExport(sim.clone()))]);
    let setup =
        Setup { executor, port, names: vec!["only".to_owned()], poll: PollMode::Adaptive, log: Box::new(|_| {}) };
    Reactor::new(setup).unwrap()
}

/// Counts how often it is looked after; leaves at once where it is told to.
struct Looked {
    looks: Arc<AtomicUsize>,
    leaves: bool,
}

impl Client for Looked {
    fn socket(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn interest(&self) -> Interest {
        Interest::default()
    }

    fn take_in(&mut self, _: &mut Intake<'_>) -> Result<bool, Gone> {
        self.looks.fetch_add(1, Ordering::Relaxed);
        if self.leaves { Err(Gone::quietly()) } else { Ok(false) }
    }

    fn complete(&mut self, _: Released) {}

    fn flush(&mut self) -> Result<(), Gone> {
        Ok(())
    }

    fn is_flushed(&self) -> bool {
        true
    }
}

fn connect(handle: &Handle, leaves: bool) -> Arc<AtomicUsize> {
    let looks = Arc::new(AtomicUsize::new(0));
    let given = looks.clone();
    handle.connect(0, Box::new(move |_| Box::new(Looked { looks: given, leaves })));
    looks
}

#[test]
fn who_comes_and_goes_without_end_costs_the_others_a_bounded_part_of_a_turn() {
    let (mut reactor, handle) = reactor();
    let victim = connect(&handle, false);
    assert!(reactor.turn() && !reactor.may_hear_more);
    let churn: Vec<_> = (0..1_000).map(|_| connect(&handle, true)).collect();
    let came = || churn.iter().map(|looks| looks.load(Ordering::Relaxed)).sum::<usize>();
    for turn in 1..=1_000 / MESSAGES_A_TURN as usize {
        assert!(reactor.turn() && reactor.is_kept_busy(), "there are more: it does not rest, and looks at sockets");
        assert_eq!(victim.load(Ordering::Relaxed), 1 + turn, "the one before them has its turn each time");
        assert_eq!(came(), turn * MESSAGES_A_TURN as usize);
        assert_eq!(reactor.clients.len(), 1, "who has left is gone before the next ones come");
    }
    reactor.turn();
    assert!(came() == 1_000 && !reactor.may_hear_more && !reactor.turn());
}
