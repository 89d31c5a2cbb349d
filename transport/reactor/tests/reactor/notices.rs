//! Announced ends of commands over a ring: a notice is there before its completion, and a host that takes none loses no
//! completion.

use std::cell::RefCell;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::mpsc::channel;

use nandscape_drive::testing::INFO;
use nandscape_drive::{Completion, Drive, DriveInfo, Io, Token};
use nandscape_sim::{Executor, Sim, Span};
use nandscape_transport_reactor::ring::{Announced, Reply, RingHost, RingSetup};
use nandscape_transport_reactor::{Connect, Export, Handle, PollMode, Port, Reactor, Setup};
use nandscape_wire_nvme::vendor::NOTICE;
use nandscape_wire_nvme::{IoOpcode, Status, SubmissionEntry};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};

/// Announces each read that asks, 1 us after its submission and as many microseconds ahead as its address. Reads of odd addresses
/// end at that instant; the others end with the next flush.
struct Announcing {
    sim: Sim,
    held: Rc<RefCell<Vec<Token>>>,
}

impl Drive for Announcing {
    fn info(&self) -> DriveInfo {
        INFO
    }

    fn submit(&self, Io { command, token, .. }: Io) {
        if IoOpcode(command.opcode) == IoOpcode::FLUSH {
            let ended = self.held.take().into_iter().chain([token]);
            return ended.for_each(|token| token.complete(Completion::of(Status::SUCCESS)));
        }
        let (sim, held) = (self.sim.clone(), self.held.clone());
        self.sim.spawn(async move {
            sim.sleep(Span::from_us(1)).await;
            if command.cdw2.get() & NOTICE != 0 {
                token.announcer()(Span::from_us(command.slba()));
            }
            match command.slba() % 2 {
                0 => held.borrow_mut().push(token),
                _ => token.complete(Completion { dw0: 3, dw1: 5, ..Completion::of(Status::SUCCESS) }),
            }
        });
    }
}

struct Only(Rc<Announcing>);

impl Connect for Only {
    fn info(&self) -> DriveInfo {
        INFO
    }

    fn connect(&self) -> Result<Rc<dyn Drive>, Status> {
        Ok(self.0.clone())
    }
}

impl Export for Only {}

/// Serves the drive while `work` is done.
fn serve(work: impl FnOnce(&Handle)) {
    let (tell, told) = channel();
    let reactor = std::thread::spawn(move || {
        let executor = Executor::new();
        let sim = executor.sim();
        let drive = Announcing { sim: sim.clone(), held: Rc::default() };
        let port = Port::new(&sim, vec![Rc::new(Only(Rc::new(drive)))]);
        let setup = Setup {
            timelines: vec![executor],
            port,
            names: vec!["only".to_owned()],
            poll: PollMode::Adaptive,
            log: Box::new(|_| ()),
        };
        let (reactor, handle) = Reactor::new(setup).unwrap();
        tell.send(handle).unwrap();
        assert_eq!(reactor.run().unwrap().1.outstanding, 0);
    });
    let handle = told.recv().unwrap();
    work(&handle);
    handle.stop();
    reactor.join().unwrap();
}

fn asking(slba: u64) -> SubmissionEntry {
    SubmissionEntry { cdw2: NOTICE.into(), ..SubmissionEntry::blocks(IoOpcode::READ, 1, slba, 1) }
}

fn next(host: &mut RingHost) -> Reply {
    std::iter::repeat_with(|| host.poll()).flatten().next().unwrap()
}

fn notices(host: &mut RingHost) -> Vec<Announced> {
    std::iter::from_fn(|| host.notice()).collect()
}

fn wait(event: &OwnedFd) {
    let limit = Timespec { tv_sec: 60, tv_nsec: 0 };
    assert_eq!(poll(&mut [PollFd::new(event, PollFlags::IN)], Some(&limit)).unwrap(), 1, "a signal comes");
    rustix::io::read(event, &mut [0; 8]).unwrap();
}

/// The first read has not ended when its notice wakes the host: it waits for the flush.
#[test]
fn a_notice_wakes_the_host_before_the_completion() {
    let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).unwrap();
    serve(|handle| {
        let setup = RingSetup { event: Some(event.try_clone().unwrap()), notices: true, ..RingSetup::of_depth(4) };
        let mut host = RingHost::connect_with(handle, 0, setup).unwrap();
        for tag in 0..50 {
            host.submit(tag, asking(16), vec![0; 512]).unwrap();
            wait(&event);
            assert!(host.poll().is_none());
            assert_eq!(notices(&mut host), [Announced { tag, remaining: Span::from_us(16) }]);
            host.submit(1_000, SubmissionEntry::io(IoOpcode::FLUSH, 1), Vec::new()).unwrap();
            wait(&event);
            assert_eq!([next(&mut host).tag, next(&mut host).tag], [tag, 1_000]);
            assert_eq!(notices(&mut host), []);
        }
    });
}

/// Announced and ended at one instant: a host that has the completion finds the notice. The dwords of the completion come too.
#[test]
fn a_host_that_has_a_completion_finds_its_notice() {
    serve(|handle| {
        let mut host =
            RingHost::connect_with(handle, 0, RingSetup { notices: true, ..RingSetup::of_depth(8) }).unwrap();
        for round in 0..200 {
            (0..8).for_each(|tag| host.submit(tag, asking(2 * tag + 1), vec![0; 512]).unwrap());
            let mut seen = Vec::new();
            for tag in 0..8 {
                let reply = next(&mut host);
                assert_eq!((reply.tag, reply.dw0, reply.dw1), (tag, 3, 5), "round {round}");
                seen.extend(notices(&mut host));
                assert!(seen.len() as u64 > tag, "round {round}: {} notices, {} completions", seen.len(), tag + 1);
            }
            let expected = (0..8).map(|tag| Announced { tag, remaining: Span::from_us(2 * tag + 1) });
            assert!(seen.iter().copied().eq(expected), "round {round}: {seen:?}");
        }
    });
}

/// The ring of notices is full after the first eight, and what it holds is of them.
#[test]
fn a_host_that_takes_no_notice_loses_no_completion() {
    serve(|handle| {
        let mut host =
            RingHost::connect_with(handle, 0, RingSetup { notices: true, ..RingSetup::of_depth(8) }).unwrap();
        for round in 0..200 {
            (0..8).for_each(|tag| host.submit(round * 8 + tag, asking(2 * tag + 1), vec![0; 512]).unwrap());
            (0..8).for_each(|tag| assert_eq!(next(&mut host).tag, round * 8 + tag));
        }
        assert!(notices(&mut host).iter().map(|notice| notice.tag).eq(0..8));
        host.submit(7, asking(1), vec![0; 512]).unwrap();
        assert_eq!((next(&mut host).tag, notices(&mut host).len()), (7, 1), "there is room again");
    });
}

/// Neither does a host get notices that did not ask in its commands, or has no ring for them; one that leaves harms none.
#[test]
fn only_hosts_that_want_notices_get_them() {
    serve(|handle| {
        let mut plain = RingHost::connect(handle, 0, 4).unwrap();
        let mut host =
            RingHost::connect_with(handle, 0, RingSetup { notices: true, ..RingSetup::of_depth(4) }).unwrap();
        let mut leaves =
            RingHost::connect_with(handle, 0, RingSetup { notices: true, ..RingSetup::of_depth(4) }).unwrap();
        for tag in 0..50 {
            if tag < 4 {
                leaves.submit(tag, asking(1), vec![0; 512]).unwrap();
            }
            plain.submit(tag, asking(1), vec![0; 512]).unwrap();
            host.submit(tag, SubmissionEntry::blocks(IoOpcode::READ, 1, 1, 1), vec![0; 512]).unwrap();
            assert_eq!([next(&mut plain).tag, next(&mut host).tag], [tag; 2]);
            assert!(plain.notice().is_none() && host.notice().is_none());
        }
        drop(leaves);
        host.submit(0, asking(1), vec![0; 512]).unwrap();
        assert_eq!((next(&mut host).tag, notices(&mut host).len()), (0, 1));
    });
}
