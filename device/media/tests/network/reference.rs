//! The reference: a plain event simulation of planes and channels, after FEMU's Fig. 3 and section 3.2 and the steps
//! that Li 5.4.2 gives for reading, programming and erasing. It shares no code with the model. It has a binary heap of
//! endings, a queue for each plane and each channel, and the state of each customer.
//!
//! The capabilities of a plane at one time:
//! - One register: one operation at a time, from its first step to its last. A read releases the plane when its page
//!   has been sent, a program when its page has been programmed.
//! - Two registers: the array works on the data register only, the channel on the cache register only. A page passes
//!   from one to the other in no time as soon as the other is empty. A read senses (data), moves, is sent (cache). A
//!   program is loaded (cache), moves, is programmed (data). An erase needs the array only. A page to be sent and a
//!   page to be programmed cannot pass each other, so no operation begins whose page would meet one moving the opposite
//!   way.
//! - A collection has the plane empty and to itself.
//!
//! Queues are first come, first served, the urgent class before the other. The order at one instant: 1. Endings happen
//! in the order in which the operations were begun. 2. An ending hands the channel, then the register, to the next in
//! line; a collection hands back its plane first. An operation that is given a channel for a transfer begins it at
//! once. 3. Then the served customer thinks, or requests its next operation, which begins if it can. 4. Then the
//! operations that were given a register, or a channel to hold, begin, in the order in which they were given it.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use nandscape_device_media::{Cell, Registers};

use crate::script::{Network, Op, Script, Work};

/// The outcome of a script.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Outcome {
    /// When each operation of each customer ended, or was withdrawn.
    pub(crate) ended: Vec<Vec<u64>>,
    /// Busy time of each plane's array.
    pub(crate) arrays: Vec<u64>,
    /// Busy time of each channel, time held included.
    pub(crate) channels: Vec<u64>,
}

/// The place of a customer. The operation after which a step is named may still have to wait for the channel.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Phase {
    Thinking,
    InLine,
    Sensing,
    /// Waits for the cache register.
    Sensed,
    Sending,
    Loading,
    /// Waits for the data register.
    Loaded,
    Programming,
    Erasing,
    /// Waits for the channel that it will hold.
    Holding,
    Collecting,
}

#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Event {
    Ended,
    /// The operation with this number has waited long enough.
    Patience(usize),
}

#[derive(Copy, Clone)]
enum Step {
    Array(u64),
    Transfer(u64),
}

struct Customer {
    /// Operations requested so far.
    asked: usize,
    phase: Phase,
    /// The rest of a collection.
    steps: VecDeque<Step>,
    /// How long its transfer takes; none when it asks for the channel to hold it.
    transfer: Option<u64>,
}

#[derive(Default)]
struct Channel {
    busy_since: Option<u64>,
    lines: [VecDeque<usize>; 2],
}

#[derive(Default)]
struct Plane {
    inside: Vec<usize>,
    lines: [VecDeque<usize>; 2],
}

/// The simulation, and which operations were withdrawn.
pub(crate) struct Reference<'a> {
    network: &'a Network,
    script: &'a Script,
    now: u64,
    begun: u64,
    endings: BinaryHeap<Reverse<(u64, u64, usize, Event)>>,
    given: VecDeque<usize>,
    customers: Vec<Customer>,
    planes: Vec<Plane>,
    channels: Vec<Channel>,
    outcome: Outcome,
    withdrawn: Vec<Vec<bool>>,
}

/// Runs a script; returns its outcome, and which operations were withdrawn.
pub(crate) fn run(network: &Network, script: &Script) -> (Outcome, Vec<Vec<bool>>) {
    let (planes, channels) = (network.planes() as usize, network.channels as usize);
    let customer = |_| Customer { asked: 0, phase: Phase::Thinking, steps: VecDeque::new(), transfer: None };
    let mut reference = Reference {
        network,
        script,
        now: 0,
        begun: 0,
        endings: BinaryHeap::new(),
        given: VecDeque::new(),
        customers: script.iter().map(customer).collect(),
        planes: (0..planes).map(|_| Plane::default()).collect(),
        channels: (0..channels).map(|_| Channel::default()).collect(),
        outcome: Outcome { ended: vec![vec![]; script.len()], arrays: vec![0; planes], channels: vec![0; channels] },
        withdrawn: script.iter().map(|ops| vec![false; ops.len()]).collect(),
    };
    reference.simulate();
    (reference.outcome, reference.withdrawn)
}

impl Reference<'_> {
    fn simulate(&mut self) {
        (0..self.customers.len()).for_each(|customer| self.think(customer));
        loop {
            while let Some(customer) = self.given.pop_front() {
                self.begin(customer);
            }
            let Some(Reverse((at, _, customer, event))) = self.endings.pop() else { return };
            self.now = at;
            match event {
                Event::Ended => self.end(customer),
                Event::Patience(asked) => self.withdraw(customer, asked),
            }
        }
    }

    fn op(&self, customer: usize) -> &Op {
        &self.script[customer][self.customers[customer].asked - 1]
    }

    fn plane(&self, customer: usize) -> usize {
        self.op(customer).plane as usize
    }

    fn line(&self, customer: usize) -> usize {
        let urgent = self.network.reads_first && matches!(self.op(customer).work, Work::Read { .. });
        usize::from(!urgent)
    }

    fn ends_after(&mut self, span: u64, customer: usize, event: Event) {
        self.begun += 1;
        self.endings.push(Reverse((self.now + span, self.begun, customer, event)));
    }

    // ------------------------------------------------------------ customers

    fn think(&mut self, customer: usize) {
        let Some(next) = self.script[customer].get(self.customers[customer].asked) else { return };
        self.customers[customer].phase = Phase::Thinking;
        match next.think {
            0 => self.ask(customer),
            think => self.ends_after(think, customer, Event::Ended),
        }
    }

    fn ask(&mut self, customer: usize) {
        self.customers[customer].asked += 1;
        self.customers[customer].phase = Phase::InLine;
        let (plane, line) = (self.plane(customer), self.line(customer));
        let first = self.planes[plane].lines[..=line].iter().all(VecDeque::is_empty);
        if first && self.fits(customer) {
            self.enter(customer);
            self.begin(customer);
        } else {
            self.planes[plane].lines[line].push_back(customer);
        }
        if let Some(patience) = self.op(customer).patience {
            let asked = self.customers[customer].asked;
            self.ends_after(patience, customer, Event::Patience(asked));
        }
    }

    fn served(&mut self, customer: usize) {
        self.outcome.ended[customer].push(self.now);
        self.think(customer);
    }

    fn withdraw(&mut self, customer: usize, asked: usize) {
        if self.customers[customer].asked != asked || self.customers[customer].phase != Phase::InLine {
            return;
        }
        self.withdrawn[customer][asked - 1] = true;
        let (plane, line) = (self.plane(customer), self.line(customer));
        self.planes[plane].lines[line].retain(|&other| other != customer);
        self.admit(plane);
        self.served(customer);
    }

    // ------------------------------------------------------------ planes

    fn inside(&self, plane: usize, phases: &[Phase]) -> Option<usize> {
        self.planes[plane].inside.iter().copied().find(|&other| phases.contains(&self.customers[other].phase))
    }

    /// Whether an operation can begin in addition to those inside.
    fn fits(&self, customer: usize) -> bool {
        let inside = &self.planes[self.plane(customer)].inside;
        let all = |phases: &[Phase]| inside.iter().all(|&other| phases.contains(&self.customers[other].phase));
        match (self.network.registers, &self.op(customer).work) {
            (Registers::Single, _) | (_, Work::Collect { .. }) => inside.is_empty(),
            (Registers::Double, Work::Read { .. } | Work::Erase) => all(&[Phase::Sending]),
            (Registers::Double, Work::Program { .. }) => all(&[Phase::Programming, Phase::Erasing]),
        }
    }

    fn enter(&mut self, customer: usize) {
        let plane = self.plane(customer);
        self.planes[plane].inside.push(customer);
        self.customers[customer].phase = match self.op(customer).work {
            Work::Read { .. } => Phase::Sensing,
            Work::Program { .. } => Phase::Loading,
            Work::Erase => Phase::Erasing,
            Work::Collect { .. } => Phase::Holding,
        };
    }

    /// Admits the first of the queues, for as long as they fit.
    fn admit(&mut self, plane: usize) {
        for line in 0..2 {
            while let Some(&customer) = self.planes[plane].lines[line].front() {
                if !self.fits(customer) {
                    return;
                }
                self.planes[plane].lines[line].pop_front();
                self.enter(customer);
                self.given.push_back(customer);
            }
        }
    }

    fn leave(&mut self, customer: usize) {
        let plane = self.plane(customer);
        self.planes[plane].inside.retain(|&other| other != customer);
        // A page that waits for a register gets it now: only the previous page can have held it.
        self.given.extend(self.inside(plane, &[Phase::Sensed, Phase::Loaded]));
        self.admit(plane);
    }

    // ------------------------------------------------------------ steps

    /// Begins the step of a customer that has just received its resource.
    fn begin(&mut self, customer: usize) {
        let (page_size, op) = (self.network.units_per_page, self.op(customer));
        match (self.customers[customer].phase, &op.work) {
            (Phase::Sensing, Work::Read { page, .. }) => {
                let time = self.network.read[page_type(self.network.cell, *page)];
                self.array(time, customer);
            }
            (Phase::Sensed, _) => self.send(customer),
            (Phase::Loading, _) => self.transfer(page_size, customer),
            (Phase::Loaded, _) => self.program(customer),
            (Phase::Erasing, _) => self.array(self.network.erase, customer),
            (Phase::Holding, Work::Collect { copies, moves, holds_channel }) => {
                let holds_channel = *holds_channel;
                self.customers[customer].steps = self.steps(copies, moves);
                self.customers[customer].phase = Phase::Collecting;
                match holds_channel {
                    true => self.ask_channel(None, customer),
                    false => self.collect(customer),
                }
            }
            (Phase::Collecting, _) => self.collect(customer),
            (phase, work) => unreachable!("{phase:?} of {work:?}"),
        }
    }

    /// A step has ended.
    fn end(&mut self, customer: usize) {
        let (plane, double) = (self.plane_if_asked(customer), self.network.registers == Registers::Double);
        match self.customers[customer].phase {
            Phase::Thinking => self.ask(customer),
            Phase::Sensing if double && self.inside(plane, &[Phase::Sending]).is_some() => {
                self.customers[customer].phase = Phase::Sensed;
            }
            Phase::Sensing => self.send(customer),
            Phase::Sending => {
                self.pass_channel(customer);
                self.leave(customer);
                self.served(customer);
            }
            Phase::Loading => {
                self.pass_channel(customer);
                match double && self.inside(plane, &[Phase::Programming, Phase::Erasing]).is_some() {
                    true => self.customers[customer].phase = Phase::Loaded,
                    false => self.program(customer),
                }
            }
            Phase::Programming | Phase::Erasing => {
                self.leave(customer);
                self.served(customer);
            }
            Phase::Collecting => {
                let step = self.customers[customer].steps.pop_front();
                if matches!(step, Some(Step::Transfer(_))) && !self.holds_channel(customer) {
                    self.pass_channel(customer);
                }
                self.collect(customer);
            }
            phase @ (Phase::InLine | Phase::Sensed | Phase::Loaded | Phase::Holding) => unreachable!("{phase:?}"),
        }
    }

    fn plane_if_asked(&self, customer: usize) -> usize {
        if self.customers[customer].asked == 0 { 0 } else { self.plane(customer) }
    }

    fn send(&mut self, customer: usize) {
        self.customers[customer].phase = Phase::Sending;
        if self.network.registers == Registers::Double {
            self.admit(self.plane(customer));
        }
        let Work::Read { units, .. } = self.op(customer).work else { unreachable!("only reads are sent") };
        self.transfer(if self.network.partial_transfer { units } else { self.network.units_per_page }, customer);
    }

    fn program(&mut self, customer: usize) {
        self.customers[customer].phase = Phase::Programming;
        if self.network.registers == Registers::Double {
            self.admit(self.plane(customer));
        }
        let Work::Program { page } = self.op(customer).work else { unreachable!("only programs are programmed") };
        self.array(self.network.program[page_type(self.network.cell, page)], customer);
    }

    fn array(&mut self, time: u64, customer: usize) {
        let plane = self.plane(customer);
        self.outcome.arrays[plane] += time;
        self.ends_after(time, customer, Event::Ended);
    }

    fn transfer(&mut self, units: u32, customer: usize) {
        self.ask_channel(Some(u64::from(units) * self.network.unit_transfer), customer);
    }

    // ------------------------------------------------------------ collections

    /// Copies within the plane are one long step of the array. Reads come before programs, each one page at a time.
    fn steps(&self, copies: &[(u32, u32)], moves: &[(u32, u32)]) -> VecDeque<Step> {
        let Network { read, program, cell, .. } = self.network;
        let (read, program) = (|page| read[page_type(*cell, page)], |page| program[page_type(*cell, page)]);
        let page = u64::from(self.network.units_per_page) * self.network.unit_transfer;
        let copied = copies.iter().map(|&(from, to)| read(from) + program(to)).sum();
        let mut steps = VecDeque::new();
        if copied > 0 {
            steps.push_back(Step::Array(copied));
        }
        steps.extend(moves.iter().flat_map(|&(from, _)| [Step::Array(read(from)), Step::Transfer(page)]));
        steps.extend(moves.iter().flat_map(|&(_, to)| [Step::Transfer(page), Step::Array(program(to))]));
        steps.push_back(Step::Array(self.network.erase));
        steps
    }

    fn holds_channel(&self, customer: usize) -> bool {
        matches!(self.op(customer).work, Work::Collect { holds_channel: true, .. })
    }

    fn collect(&mut self, customer: usize) {
        match self.customers[customer].steps.front().copied() {
            Some(Step::Array(time)) => self.array(time, customer),
            Some(Step::Transfer(time)) if self.holds_channel(customer) => {
                self.ends_after(time, customer, Event::Ended);
            }
            Some(Step::Transfer(time)) => self.ask_channel(Some(time), customer),
            None => {
                self.leave(customer);
                if self.holds_channel(customer) {
                    self.pass_channel(customer);
                }
                self.served(customer);
            }
        }
    }

    // ------------------------------------------------------------ channels

    /// For a transfer of the given time, or to hold it.
    fn ask_channel(&mut self, transfer: Option<u64>, customer: usize) {
        self.customers[customer].transfer = transfer;
        let (number, line) = (self.network.channel_of(self.op(customer).plane), self.line(customer));
        let channel = &mut self.channels[number];
        if channel.busy_since.is_some() {
            channel.lines[line].push_back(customer);
            return;
        }
        channel.busy_since = Some(self.now);
        match transfer {
            Some(time) => self.ends_after(time, customer, Event::Ended),
            None => self.collect(customer),
        }
    }

    fn pass_channel(&mut self, customer: usize) {
        let number = self.network.channel_of(self.op(customer).plane);
        let channel = &mut self.channels[number];
        self.outcome.channels[number] += self.now - channel.busy_since.take().expect("it is in use");
        let Some(next) = channel.lines.iter_mut().find_map(VecDeque::pop_front) else { return };
        channel.busy_since = Some(self.now);
        match self.customers[next].transfer {
            Some(time) => self.ends_after(time, next, Event::Ended),
            None => self.given.push_back(next),
        }
    }
}

/// The type of a page of a block, from 0, the fastest. MLC by the profile of 512 digits in Li 3.1.7, "11111121121122...
/// 2112" with "1122" in between, which is read here digit by digit.
pub(crate) fn page_type(cell: Cell, page: u32) -> usize {
    let page = page as usize;
    let digit = |digits: &str, at: usize| usize::from(digits.as_bytes()[at] - b'1');
    match cell {
        Cell::Slc => 0,
        Cell::Mlc if page < 10 => digit("1111112112", page),
        Cell::Mlc if page < 502 => digit("1122", (page - 10) % 4),
        Cell::Mlc => digit("1122112112", page - 502),
        Cell::Tlc => page % 3,
        Cell::Qlc => page % 4,
    }
}
