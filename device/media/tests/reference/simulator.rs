//! The reference simulator: the page "NAND timing" followed event by event, slowly and without cleverness. It shares no
//! code with the model. It has a list of what will end when, which it searches for the earliest; for each customer the
//! remaining steps of its operation; for each LUN, channel and decoder its holder and its waiters (`lun`).
//!
//! The order of events is that of the heading "At the same instant". [`Simulator::run`] takes the endings in the order
//! of their beginnings (1). An ending hands on what it held (2), then the served operation continues (3). `given` lists
//! the operations that were given something and begin afterwards, suspensions among them (4, 5).

use std::collections::VecDeque;

use nandscape_drive::breakdown::cause;

use crate::drive::{Drive, Page};
use crate::lun::{Controller, Lun, Server};
use crate::mutants::Rule;
use crate::outcome::{Outcome, Served, Stage, Stages};
use crate::script::{Op, Script, Work};
use crate::steps::{Retries, Step, Steps};

/// An event: an ending, or a due time.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Ending {
    /// A customer's thinking.
    Thought,
    /// A step without a queue: sensing, decoding without a queue, a transfer on a channel that is held.
    Own,
    /// A program's or an erase's array step.
    Ran,
    Channel,
    Decoder,
    Controller,
    /// For the LUN of the customer: its suspension is due, is done, its operation is resumed.
    SuspensionDue,
    Suspended,
    Resumed,
}

struct Event {
    at: u64,
    begun: u64,
    customer: usize,
    ending: Ending,
}

/// The first action of an operation that was given something.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Given {
    GoOn(usize),
    /// Only if a rule is broken: the next operation of a customer that was served.
    Think(usize),
    /// A LUN, and when.
    SuspendAt(usize, u64),
    Resume(usize),
}

/// A customer and its operation.
#[derive(Default)]
pub(crate) struct Customer {
    next: usize,
    pub(crate) steps: VecDeque<Step>,
    asked: u64,
    loaded: Option<u64>,
    pub(crate) class: u8,
    pub(crate) lun: usize,
    pub(crate) channel: usize,
    /// The page that it reads, if others may be sensed with it.
    pub(crate) page: Option<Page>,
    pub(crate) holds_channel: bool,
    pub(crate) held_since: u64,
    pub(crate) preemptible: bool,
    /// Whether reads were admitted before its next step.
    pub(crate) has_made_way: bool,
    pub(crate) stages: Stages,
    /// Its own time is that of a retry from here on.
    pub(crate) retries: bool,
    waits: Option<(Stage, u64)>,
}

pub(crate) struct Simulator<'a> {
    pub(crate) drive: &'a Drive,
    script: &'a Script,
    pub(crate) steps: Steps<'a>,
    pub(crate) now: u64,
    begun: u64,
    events: Vec<Event>,
    pub(crate) given: VecDeque<Given>,
    pub(crate) customers: Vec<Customer>,
    pub(crate) luns: Vec<Lun>,
    pub(crate) channels: Vec<Server>,
    pub(crate) decoders: Vec<Server>,
    pub(crate) controller: Controller,
    pub(crate) outcome: Outcome,
}

/// Runs a script, with one rule broken or none.
pub(crate) fn run(drive: &Drive, script: &Script, retries: Retries<'_>, broken: Option<Rule>) -> Outcome {
    let mut simulator = Simulator {
        drive,
        script,
        steps: Steps { drive, retries, broken },
        now: 0,
        begun: 0,
        events: Vec::new(),
        given: VecDeque::new(),
        customers: script.iter().map(|_| Customer::default()).collect(),
        luns: (0..drive.total_planes()).map(|_| Lun::default()).collect(),
        channels: (0..drive.channels).map(|_| Server::default()).collect(),
        decoders: (0..drive.engines).map(|_| Server::default()).collect(),
        controller: Controller::default(),
        outcome: Outcome {
            served: script.iter().map(|_| Vec::new()).collect(),
            arrays: vec![0; drive.total_planes() as usize],
            channels: vec![0; drive.channels as usize],
        },
    };
    simulator.run();
    simulator.outcome
}

impl Simulator<'_> {
    /// "At the same instant"
    fn run(&mut self) {
        (0..self.customers.len()).for_each(|customer| self.think(customer));
        loop {
            while let Some(given) = self.given.pop_front() {
                match given {
                    Given::GoOn(customer) => self.go_on(customer),
                    Given::Think(customer) => self.think(customer),
                    Given::SuspendAt(lun, at) => self.suspend_at(lun, at),
                    Given::Resume(lun) => self.resume(lun),
                }
            }
            let Some(Event { at, customer, ending, .. }) = self.next_event() else { return };
            self.now = at;
            self.end(customer, ending);
        }
    }

    /// "What ends at the same instant ends in the order in which it was begun."
    fn next_event(&mut self) -> Option<Event> {
        let backwards = self.is_broken(Rule::EndingsInTheOrderOfBeginnings);
        let order = |event: &Event| (event.at, if backwards { u64::MAX - event.begun } else { event.begun });
        let next = (0..self.events.len()).min_by_key(|&index| order(&self.events[index]))?;
        Some(self.events.remove(next))
    }

    pub(crate) fn is_broken(&self, rule: Rule) -> bool {
        self.steps.is_broken(rule)
    }

    pub(crate) fn ends_after(&mut self, time: u64, customer: usize, ending: Ending) {
        self.begun += 1;
        self.events.push(Event { at: self.now + time, begun: self.begun, customer, ending });
    }

    /// A suspended step does not end when it would have.
    pub(crate) fn forget(&mut self, customer: usize, ending: Ending) {
        self.events.retain(|event| (event.customer, event.ending) != (customer, ending));
    }

    fn end(&mut self, customer: usize, ending: Ending) {
        match ending {
            Ending::Thought => self.ask(customer),
            Ending::Own => self.go_on(customer),
            Ending::Ran => self.has_run(customer),
            Ending::Channel if self.is_broken(Rule::TheChannelIsHandedOnFirst) => {
                let channel = self.customers[customer].channel;
                self.go_on(customer);
                self.hand_on_channel(channel);
            }
            Ending::Channel => {
                self.hand_on_channel(self.customers[customer].channel);
                self.go_on(customer);
            }
            Ending::Decoder => {
                self.hand_on_decoder(self.customers[customer].channel);
                self.go_on(customer);
            }
            Ending::Controller => {
                self.hand_on_controller();
                self.go_on(customer);
            }
            Ending::SuspensionDue => self.suspend(self.customers[customer].lun),
            Ending::Suspended => self.open(self.customers[customer].lun),
            Ending::Resumed => self.run_on(self.customers[customer].lun),
        }
    }

    // ------------------------------------------------------------ customers

    fn op(&self, customer: usize) -> &Op {
        &self.script[customer][self.customers[customer].next - 1]
    }

    fn think(&mut self, customer: usize) {
        let Some(op) = self.script[customer].get(self.customers[customer].next) else { return };
        match op.think {
            0 => self.ask(customer),
            think => self.ends_after(think, customer, Ending::Thought),
        }
    }

    fn ask(&mut self, customer: usize) {
        self.customers[customer].next += 1;
        let op = self.op(customer).clone();
        // "with `controller.priority = "reads_first"` reads of the host have class 0 and all others class 1"
        let urgent = self.drive.reads_first && op.cause == cause::HOST_READ;
        let (drive, plane) = (self.drive, op.plane());
        let alone = self.is_broken(Rule::PlanesOfADieShareALun);
        self.customers[customer] = Customer {
            next: self.customers[customer].next,
            steps: self.steps.of(&op),
            asked: self.now,
            class: if urgent != self.is_broken(Rule::ClassesComeInOrder) { 0 } else { 1 },
            lun: if alone { plane as usize } else { drive.lun_of(plane) },
            channel: drive.channel_of(plane),
            page: match op.work {
                Work::Read { page, .. } if self.steps.reads_in_group(0) => Some(page),
                _ => None,
            },
            preemptible: matches!(op.work, Work::Collect { preemptible: true, .. }),
            ..Customer::default()
        };
        self.go_on(customer);
    }

    fn served(&mut self, customer: usize) {
        let Customer { asked, loaded, stages, .. } = self.customers[customer];
        let collects = matches!(self.op(customer).work, Work::Collect { .. });
        let stages = (!collects).then_some(stages);
        self.outcome.served[customer].push(Served { asked, loaded, ended: self.now, stages });
        match self.is_broken(Rule::TheServedAskBeforeTheGivenBegin) {
            true => self.given.push_back(Given::Think(customer)),
            false => self.think(customer),
        }
    }

    pub(crate) fn spend(&mut self, customer: usize, stage: Stage, time: u64) {
        let Customer { lun, channel, holds_channel, .. } = self.customers[customer];
        match stage {
            Stage::Array => self.outcome.arrays[lun] += time,
            Stage::Transfer if !holds_channel => self.outcome.channels[channel] += time,
            _ => {}
        }
        let Customer { stages, retries, .. } = &mut self.customers[customer];
        let stage = match stage {
            Stage::Array | Stage::Ecc if *retries => Stage::DieWait,
            Stage::Transfer if *retries => Stage::ChannelWait,
            stage => stage,
        };
        *match stage {
            Stage::Queue => &mut stages.queue,
            Stage::DieWait => &mut stages.die_wait,
            Stage::Array => &mut stages.array,
            Stage::ChannelWait => &mut stages.channel_wait,
            Stage::Transfer => &mut stages.transfer,
            Stage::Ecc => &mut stages.ecc,
        } += time;
    }

    pub(crate) fn waits(&mut self, customer: usize, stage: Stage) {
        self.customers[customer].waits = Some((stage, self.now));
    }

    pub(crate) fn has_waited(&mut self, customer: usize) {
        if let Some((stage, since)) = self.customers[customer].waits.take() {
            self.spend(customer, stage, self.now - since);
        }
    }

    // ------------------------------------------------------------ steps

    /// "Each step follows the previous one at once unless a wait is stated."
    pub(crate) fn go_on(&mut self, customer: usize) {
        while let Some(step) = self.customers[customer].steps.front().copied() {
            let is_before = match step {
                Step::Channel(_) => !self.is_broken(Rule::ReadsComeBeforeChannelSteps),
                _ => step.is_on_array_or_channel(),
            };
            if is_before && self.makes_way(customer) {
                return;
            }
            self.customers[customer].steps.pop_front();
            self.customers[customer].has_made_way = false;
            if !self.step(customer, step) {
                return;
            }
        }
        self.served(customer);
    }

    /// Begins a step, or joins the queue for its resource. Returns whether it is over already.
    fn step(&mut self, customer: usize, step: Step) -> bool {
        match step {
            Step::PassController => self.ask_controller(customer, false),
            Step::HoldController => self.ask_controller(customer, true),
            Step::Enter(kind) => self.ask_lun(customer, kind),
            Step::HoldChannel => self.ask_channel(customer, None),
            Step::Channel(time) if self.customers[customer].holds_channel => self.own(customer, Stage::Transfer, time),
            Step::Channel(time) => self.ask_channel(customer, Some(time)),
            Step::Sense(time) => self.own(customer, Stage::Array, time),
            Step::LetOthersJoin => self.let_others_join(customer),
            Step::SenseInGroup(time) => self.sense_in_group(customer, time),
            Step::Release => self.release_group(customer),
            Step::Program(time) => self.begin_run(customer, time, self.drive.suspend_program),
            Step::Erase(time) => self.begin_run(customer, time, self.drive.suspend_erase),
            Step::Loaded => {
                self.customers[customer].loaded = Some(self.now);
                true
            }
            Step::MoveToCache if self.luns[self.customers[customer].lun].apart.contains(&customer) => true,
            Step::MoveToCache => self.ask_to_move(customer, step, Stage::ChannelWait),
            Step::MoveToData => self.ask_to_move(customer, step, Stage::DieWait),
            Step::LeaveLun => self.leave_lun(customer),
            Step::Decode(time) => self.ask_decoder(customer, time),
            Step::Retry => {
                self.customers[customer].retries = true;
                true
            }
            Step::GiveBackChannel => {
                let Customer { channel, held_since, .. } = self.customers[customer];
                self.outcome.channels[channel] += self.now - held_since;
                self.hand_on_channel(channel);
                true
            }
            Step::GiveBackController => self.hand_on_controller(),
        }
    }

    pub(crate) fn own(&mut self, customer: usize, stage: Stage, time: u64) -> bool {
        self.spend(customer, stage, time);
        self.ends_after(time, customer, Ending::Own);
        false
    }
}
