//! MittCFQ: a disk behind a scheduler with a queue for each process ([`Cfq`](crate::scheduler::Cfq)). The thesis
//! announces it without a description (Li 3.1.6). Here it is the account of MittNoop for the disk, and a sum for each
//! process.
//!
//! A new command waits for commands at the disk and for waiting commands of higher classes. It also waits for
//! commands of the same process that precede it on the arm's way. Of each other process of its class, it waits for as
//! much as fits in that process's turns before the next turn of the command's process. The work is one step for each waiting process, whatever the
//! number of commands.
//!
//! Later arrivals that overtake a command are not known here: the [layer](crate::BlockLayer) rejects the reads that
//! they make late.
//!
//! Left out: the elapsed share of the current turn.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use nandscape_sim::slots::{Key, Slots};
use nandscape_sim::{Span, Time};

use super::line::{Line, Turn};
use super::profile::DiskProfile;
use super::{Prediction, Predictor};
use crate::config::Config;
use crate::request::Request;
use crate::scheduler::{Class, Standing};

/// See the file.
pub struct MittCfq {
    profile: DiskProfile,
    slice: Span,
    state: RefCell<State>,
}

struct State {
    line: Line,
    /// The block after the last command that was sent.
    at: u64,
    processes: BTreeMap<(Class, u16), Process>,
    /// Waiting work, by class.
    waiting: [Span; 3],
    commands: Slots<Command>,
    /// The next command number; numbers distinguish commands of the same place.
    next: u64,
}

/// The waiting commands of a process.
struct Process {
    total: Span,
    slice: Span,
    /// The first block, a number, and the block after the last.
    places: BTreeSet<(u64, u64, u64)>,
    /// The place of the last command sent.
    at: u64,
}

#[derive(Copy, Clone)]
struct Command {
    request: Request,
    number: u64,
    takes: Span,
    turn: Option<Turn>,
}

fn end(request: &Request) -> u64 {
    request.slba.saturating_add(request.blocks.into())
}

impl Process {
    /// The share of waiting work that precedes a place on the arm's way, assuming an even spread.
    fn share_before(&self, slba: u64) -> f64 {
        let (Some(first), Some(last)) = (self.places.first(), self.places.last()) else { return 0.0 };
        let length = (last.2 - first.0).max(1) as f64;
        let inside = |from: u64, to: u64| to.min(last.2).saturating_sub(from.max(first.0)) as f64 / length;
        match slba >= self.at {
            true => inside(self.at, slba),
            false => (inside(self.at, u64::MAX) + inside(0, slba)).min(1.0),
        }
    }

    /// The block after the command that precedes one at a place.
    fn before(&self, slba: u64) -> Option<u64> {
        self.places.range(..(slba, 0, 0)).next_back().or_else(|| self.places.last()).map(|(.., end)| *end)
    }
}

impl MittCfq {
    /// Over a disk with a profile, behind the scheduler.
    pub fn new(profile: DiskProfile, config: &Config) -> Rc<MittCfq> {
        let state = State {
            line: Line::new(config.correct),
            at: 0,
            processes: BTreeMap::new(),
            waiting: [Span::ZERO; 3],
            commands: Slots::new(),
            next: 0,
        };
        Rc::new(MittCfq { profile, slice: config.slice, state: RefCell::new(state) })
    }
}

impl State {
    /// The work before a command that waits here.
    fn ahead(&self, request: &Request, base: Span) -> Span {
        let standing = Standing::of(request);
        let me = (standing.class, request.tenant);
        let above: Span = self.waiting[..standing.class as usize].iter().copied().sum();
        let own = self.processes.get(&me).map_or(Span::ZERO, |process| {
            Span::from_ns((process.total.ns() as f64 * process.share_before(request.slba)) as u64)
        });
        // Turns of the other processes until the last turn of this process that the command needs.
        let turns = own.ns() / standing.slice(base).ns().max(1) + 1;
        let of_class = self.processes.range((standing.class, 0)..=(standing.class, u16::MAX));
        let others = of_class.filter(|(process, _)| **process != me);
        let beside: Span = others.map(|(_, other)| other.total.min(other.slice * turns)).sum();
        above + own + beside
    }

    /// One that waits does not any more.
    fn leave(&mut self, command: &Command) {
        let process = (Standing::of(&command.request).class, command.request.tenant);
        let waiting = &mut self.waiting[process.0 as usize];
        *waiting = waiting.saturating_sub(command.takes);
        let Some(of) = self.processes.get_mut(&process) else { return };
        of.total = of.total.saturating_sub(command.takes);
        of.places.remove(&(command.request.slba, command.number, end(&command.request)));
        of.at = command.request.slba;
        if of.places.is_empty() {
            self.processes.remove(&process);
        }
    }
}

impl Predictor for MittCfq {
    fn predict(&self, request: &Request, now: Time) -> Prediction {
        let state = self.state.borrow();
        let process = (Standing::of(request).class, request.tenant);
        let before = state.processes.get(&process).and_then(|process| process.before(request.slba));
        let takes = self.profile.takes(before.unwrap_or(state.at), request);
        let wait = state.line.wait(now) + state.ahead(request, self.slice);
        Prediction { latency: wait + takes, wait, ..Prediction::default() }
    }

    fn accept(&self, request: &Request, prediction: &Prediction, _: Time) -> u64 {
        let state = &mut *self.state.borrow_mut();
        let takes = prediction.latency.saturating_sub(prediction.wait);
        let standing = Standing::of(request);
        let slice = standing.slice(self.slice);
        let process = state.processes.entry((standing.class, request.tenant)).or_insert_with(|| Process {
            total: Span::ZERO,
            slice,
            places: BTreeSet::new(),
            at: 0,
        });
        process.slice = slice;
        process.total += takes;
        process.places.insert((request.slba, state.next, end(request)));
        state.waiting[standing.class as usize] += takes;
        let command = Command { request: *request, number: state.next, takes, turn: None };
        state.next += 1;
        state.commands.insert(command).to_bits()
    }

    fn sent(&self, ticket: u64, now: Time) {
        let state = &mut *self.state.borrow_mut();
        let key = Key::from_bits(ticket);
        let Some(command) = state.commands.get(key).copied() else { return };
        state.leave(&command);
        // The arm's previous place is known now.
        let takes = self.profile.takes(state.at, &command.request);
        if command.request.blocks > 0 {
            state.at = end(&command.request);
        }
        let turn = state.line.join(takes, now);
        if let Some(command) = state.commands.get_mut(key) {
            command.turn = Some(turn);
        }
    }

    fn ended(&self, ticket: u64, now: Time) {
        let state = &mut *self.state.borrow_mut();
        let Some(command) = state.commands.remove(Key::from_bits(ticket)) else { return };
        match command.turn {
            Some(turn) => state.line.end(turn, now),
            None => state.leave(&command),
        }
    }

    fn dropped(&self, ticket: u64, _: Time) {
        let state = &mut *self.state.borrow_mut();
        let Some(command) = state.commands.remove(Key::from_bits(ticket)) else { return };
        match command.turn {
            Some(turn) => state.line.leave(turn),
            None => state.leave(&command),
        }
    }
}
