//! A command in flight: the command, its data memory, and the token that completes it exactly once.

use std::fmt;
use std::rc::Rc;

use nandscape_sim::Span;
use nandscape_wire_nvme::{Status, SubmissionEntry};

use crate::breakdown::Breakdown;
use crate::mem::HostMem;

/// How a command ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Completion {
    /// Success, or the error.
    pub status: Status,
    /// DW0 of the completion queue entry.
    pub dw0: u32,
    /// DW1 of the completion queue entry.
    pub dw1: u32,
    /// The latency by stage; empty if the drive reports none.
    pub breakdown: Breakdown,
}

impl Completion {
    /// An ending without further values.
    pub fn of(status: Status) -> Completion {
        Completion { status, dw0: 0, dw1: 0, breakdown: Breakdown::new() }
    }
}

/// A command in flight.
#[derive(Debug)]
pub struct Io {
    /// The command. The owner of the queue sets its Command Identifier.
    pub command: SubmissionEntry,
    /// The memory of its data.
    pub mem: HostMem,
    /// Completes it.
    pub token: Token,
}

/// Receives completions.
pub trait Sink {
    /// The command with this tag has ended.
    fn complete(&self, tag: u64, completion: Completion);

    /// The drive announces the end of the command with this tag, predicted to be `remaining` from now
    /// ([`NOTICES`](nandscape_wire_nvme::vendor::NOTICES)). Called at most once, and never after the completion.
    fn announced(&self, _tag: u64, _remaining: Span) {}

    /// Whether the run has stopped: tokens that are dropped now must have no effect.
    fn is_stopped(&self) -> bool;
}

/// Completes one command, exactly once. A token that is dropped without [`Token::complete`] completes the command
/// with Internal Error, so that no host waits forever. After the run has stopped, it does nothing.
pub struct Token {
    sink: Option<Rc<dyn Sink>>,
    tag: u64,
}

/// Names a command by its token: the receiver of its completion, and the tag.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct CommandRef {
    sink: *const (),
    tag: u64,
}

impl CommandRef {
    /// The command whose token reports to `sink` under `tag`.
    pub fn new(sink: &Rc<dyn Sink>, tag: u64) -> CommandRef {
        CommandRef { sink: Rc::as_ptr(sink).cast(), tag }
    }
}

impl Token {
    /// Whether this is the token of a command.
    pub fn is_of(&self, command: CommandRef) -> bool {
        self.sink.as_ref().is_some_and(|sink| CommandRef::new(sink, self.tag) == command)
    }

    /// A token that reports to `sink` under `tag`.
    pub fn new(sink: Rc<dyn Sink>, tag: u64) -> Token {
        Token { sink: Some(sink), tag }
    }

    /// Returns a function that announces the predicted time to completion to the receiver of the completion. It
    /// borrows nothing, so the receiver may call anything.
    pub fn announcer(&self) -> impl FnOnce(Span) + use<> {
        let (sink, tag) = (self.sink.clone(), self.tag);
        move |remaining| {
            if let Some(sink) = sink {
                sink.announced(tag, remaining);
            }
        }
    }

    /// Completes the command.
    pub fn complete(mut self, completion: Completion) {
        if let Some(sink) = self.sink.take() {
            sink.complete(self.tag, completion);
        }
    }
}

impl Drop for Token {
    fn drop(&mut self) {
        if let Some(sink) = self.sink.take()
            && !sink.is_stopped()
        {
            sink.complete(self.tag, Completion::of(Status::INTERNAL_ERROR));
        }
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Token({})", self.tag)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::{Cell, RefCell};

    #[derive(Default)]
    struct Log {
        entries: RefCell<Vec<(u64, Status)>>,
        stopped: Cell<bool>,
        announced: Cell<Option<(u64, Span)>>,
    }

    impl Sink for Log {
        fn complete(&self, tag: u64, completion: Completion) {
            self.entries.borrow_mut().push((tag, completion.status));
        }

        fn announced(&self, tag: u64, remaining: Span) {
            self.announced.set(Some((tag, remaining)));
        }

        fn is_stopped(&self) -> bool {
            self.stopped.get()
        }
    }

    #[test]
    fn a_token_completes_once_and_a_dropped_one_with_internal_error() {
        let log = Rc::new(Log::default());
        Token::new(log.clone(), 1).complete(Completion::of(Status::SUCCESS));
        drop(Token::new(log.clone(), 2));
        log.stopped.set(true);
        drop(Token::new(log.clone(), 3));
        assert_eq!(*log.entries.borrow(), [(1, Status::SUCCESS), (2, Status::INTERNAL_ERROR)]);
    }

    #[test]
    fn an_announcement_goes_to_the_receiver_and_ends_nothing() {
        let log = Rc::new(Log::default());
        let token = Token::new(log.clone(), 7);
        token.announcer()(Span::from_us(16));
        assert_eq!((log.announced.get(), log.entries.borrow().len()), (Some((7, Span::from_us(16))), 0));
        token.complete(Completion::of(Status::SUCCESS));
        assert_eq!(*log.entries.borrow(), [(7, Status::SUCCESS)]);
    }
}
