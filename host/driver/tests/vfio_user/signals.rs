//! Queue pairs that interrupt: completions and notices signal the event descriptor.

use std::cell::RefCell;
use std::rc::Rc;

use nandscape_drive::io::Sink;
use nandscape_drive::{Completion, Drive, HostMem, Io, Token};
use nandscape_host_driver::vfio_user::{FunctionDrive, Signals};
use nandscape_sim::Span;
use nandscape_transport_vfio_user::DoorbellMode;
use nandscape_wire_nvme::vendor::NOTICE;
use nandscape_wire_nvme::{IoOpcode, SubmissionEntry};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::PATIENCE;
use crate::server::Server;

/// What was heard of commands, in its order: their tags, and whether they have ended.
#[derive(Default)]
struct Heard(RefCell<Vec<(u64, bool)>>);

impl Sink for Heard {
    fn complete(&self, tag: u64, completion: Completion) {
        assert!(completion.status.is_success(), "{}", completion.status);
        self.0.borrow_mut().push((tag, true));
    }

    fn announced(&self, tag: u64, remaining: Span) {
        assert!(remaining < Span::from_s(1), "{remaining}");
        self.0.borrow_mut().push((tag, false));
    }

    fn is_stopped(&self) -> bool {
        false
    }
}

/// Executes a command, and looks for its end only when a signal has come.
fn execute(drive: &FunctionDrive, heard: &Rc<Heard>, tag: u64, command: SubmissionEntry) {
    let token = Token::new(heard.clone(), tag);
    drive.submit(Io { command, mem: HostMem::zeroed(4_096), token });
    let (event, connection) = drive.signal().expect("it interrupts");
    while !heard.0.borrow().contains(&(tag, true)) {
        let mut wanted =
            [PollFd::from_borrowed_fd(event, PollFlags::IN), PollFd::from_borrowed_fd(connection, PollFlags::empty())];
        let limit = Timespec { tv_sec: PATIENCE.as_secs() as i64, tv_nsec: 0 };
        assert_eq!(poll(&mut wanted, Some(&limit)).unwrap(), 1, "command {tag} signals");
        assert!(wanted[1].revents().is_empty(), "the connection is there");
        drive.take_signal();
        drive.poll().unwrap();
    }
}

#[test]
fn completions_and_notices_signal_the_event_descriptor() {
    const KEYS: &[&str] = &[
        "capacity=64MiB",
        "buffer.size=1MiB",
        "controller.queue_pairs=4",
        "timing.read=2ms",
        "controller.precompletion.window=500us",
    ];
    for doorbells in [DoorbellMode::Shadow, DoorbellMode::Mapped] {
        let server = Server::timed("default", KEYS, doorbells);
        let signals = Signals { interrupts: true, notices: Some(0) };
        let connected = FunctionDrive::connect_signalled(&server.path(), &[(2, None), (2, None)], true, true, signals);
        let (admin, drives) = connected.unwrap();
        assert!(admin.is_some() && drives.len() == 2);
        let heard = Rc::new(Heard::default());
        for (number, drive) in (0..).zip(&drives) {
            // More than the write buffer holds, so that reads of the first units need the flash.
            for unit in 0..if number == 0 { 512 } else { 0 } {
                execute(drive, &heard, 1_000 + unit, SubmissionEntry::blocks(IoOpcode::WRITE, 1, 8 * unit, 8));
            }
            execute(drive, &heard, 100 * number, SubmissionEntry::io(IoOpcode::FLUSH, 1));
            let at = 8 * number;
            for read in 1..12 {
                let command =
                    SubmissionEntry { cdw2: NOTICE.into(), ..SubmissionEntry::blocks(IoOpcode::READ, 1, at, 8) };
                execute(drive, &heard, 100 * number + read, command);
            }
            // The first reads teach the drive; a notice comes before its completion.
            let heard = heard.0.borrow();
            let place = |event: &(u64, bool)| heard.iter().position(|one| one == event);
            let announced: Vec<u64> = heard.iter().filter(|(_, ended)| !ended).map(|(tag, _)| *tag).collect();
            let own = announced.iter().filter(|tag| **tag / 100 == number);
            assert!(own.clone().count() > 0, "{heard:?}");
            assert!(own.clone().all(|tag| place(&(*tag, false)) < place(&(*tag, true))), "{heard:?}");
        }
    }
}

#[test]
fn a_drive_that_gives_no_notices_is_refused_and_one_that_is_polled_signals_nothing() {
    let server = Server::start(DoorbellMode::Shadow);
    let signals = Signals { interrupts: false, notices: Some(16_000) };
    let refused = FunctionDrive::connect_signalled(&server.path(), &[(2, None)], true, false, signals);
    let error = refused.map(drop).unwrap_err().to_string();
    assert!(error.contains("does not announce the ends of reads"), "{error}");
    let drive = FunctionDrive::connect(&server.path(), &[(2, None)], true).unwrap().remove(0);
    assert!(drive.signal().is_none());
}
