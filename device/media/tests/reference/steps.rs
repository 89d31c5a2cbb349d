//! Operations as lists of steps: the headings "Operations" and "Collections" of the page, line by line.

use std::collections::VecDeque;

use nandscape_device_media::Registers;

use crate::drive::{Drive, Page, Planes, Scheme};
use crate::mutants::Rule;
use crate::script::{Op, Part, Work};

/// As what an operation enters a LUN.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Sense,
    Program,
    Erase,
    Collection,
}

/// One step. Times are in nanoseconds.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Step {
    PassController,
    HoldController,
    Enter(Kind),
    HoldChannel,
    /// Takes the channel once for so long.
    Channel(u64),
    /// An array step that is never suspended.
    Sense(u64),
    /// The time of 0 in which others may join the group.
    LetOthersJoin,
    /// The same as a member of a group.
    SenseInGroup(u64),
    /// The leader of a group has moved it: the others continue.
    Release,
    /// An array step that may be suspended.
    Program(u64),
    Erase(u64),
    /// All data are in the register.
    Loaded,
    MoveToCache,
    MoveToData,
    LeaveLun,
    Decode(u64),
    /// What follows is a retry: its own time is a wait.
    Retry,
    GiveBackChannel,
    GiveBackController,
}

impl Step {
    /// "each step of a collection on the array or the channel"
    pub(crate) fn is_on_array_or_channel(self) -> bool {
        matches!(self, Step::Channel(_) | Step::Sense(_) | Step::Program(_) | Step::Erase(_))
    }

    fn array_time(self) -> u64 {
        match self {
            Step::Sense(time) | Step::Program(time) | Step::Erase(time) => time,
            _ => 0,
        }
    }
}

/// The retries of a page, given the erases of its block: r(page, erases), taken as given.
pub(crate) type Retries<'a> = &'a dyn Fn(Page, u32) -> u32;

/// Makes lists of steps.
pub(crate) struct Steps<'a> {
    pub(crate) drive: &'a Drive,
    pub(crate) retries: Retries<'a>,
    /// The rule that is turned round.
    pub(crate) broken: Option<Rule>,
}

impl Steps<'_> {
    pub(crate) fn of(&self, op: &Op) -> VecDeque<Step> {
        let mut steps = Vec::new();
        // "Host only: pass the controller": step 1 of reads and programs.
        let hosts = op.is_hosts() || self.is_broken(Rule::OnlyTheHostPassesTheController);
        if hosts && matches!(op.work, Work::Read { .. } | Work::Program { .. }) {
            steps.push(Step::PassController);
        }
        match &op.work {
            Work::Read { page, bytes, erases } => self.read(&mut steps, *page, *bytes, *erases),
            Work::Program { pages } => self.program(&mut steps, pages),
            Work::Erase { .. } => self.erase(&mut steps),
            Work::Collect { parts, preemptible, .. } => self.collect(&mut steps, parts, *preemptible),
        }
        // "A command without data that takes no time (`cmd = 0`) does not ask for the channel at all"
        steps.into_iter().filter(|step| *step != Step::Channel(0)).collect()
    }

    pub(crate) fn is_broken(&self, rule: Rule) -> bool {
        self.broken == Some(rule)
    }

    fn double(&self) -> bool {
        self.drive.registers == Registers::Double
    }

    // ------------------------------------------------------------ "Rule of the channel"

    fn command(&self) -> Step {
        Step::Channel(if self.is_broken(Rule::CommandsTakeTheChannel) { 0 } else { self.drive.command })
    }

    /// `cmd + data(n)`
    fn data(&self, bytes: u32) -> Step {
        let command = if self.is_broken(Rule::DataComeWithACommand) { 0 } else { self.drive.command };
        Step::Channel(command + self.drive.data(bytes))
    }

    /// "n is the mapping units requested, or with `timing.partial_transfer = false` the page."
    fn sent(&self, bytes: u32) -> u32 {
        let partial = self.drive.partial_transfer != self.is_broken(Rule::PartialTransfer);
        if partial { bytes } else { self.drive.page_size() }
    }

    // ------------------------------------------------------------ "Operations"

    /// "Page read", steps 2 to 9; its retries are under "Read retry".
    fn read(&self, steps: &mut Vec<Step>, page: Page, bytes: u32, erases: u32) {
        for attempt in 0..=self.retries_of(page, erases) {
            let in_group = self.reads_in_group(attempt);
            if attempt == 1 {
                steps.push(Step::Retry);
            }
            let time = self.sense(page, attempt);
            steps.push(Step::Enter(Kind::Sense));
            if in_group && !self.is_broken(Rule::WhatIsAskedAtOnceCanJoin) {
                steps.push(Step::LetOthersJoin);
            }
            steps.push(self.command());
            steps.push(if in_group { Step::SenseInGroup(time) } else { Step::Sense(time) });
            if self.double() {
                steps.push(Step::MoveToCache);
            }
            if in_group {
                steps.push(Step::Release);
            }
            steps.push(self.data(self.sent(bytes)));
            let leave_at = steps.len();
            // "Decode the bytes requested, also of a page that is sent as a whole."
            steps.extend(self.decode(bytes));
            let leave_at = if self.is_broken(Rule::TheLunIsLeftBeforeDecoding) { steps.len() } else { leave_at };
            steps.insert(leave_at, Step::LeaveLun);
        }
    }

    fn retries_of(&self, page: Page, erases: u32) -> u32 {
        let erases = if self.is_broken(Rule::RetriesChangeWithErases) { 0 } else { erases };
        (self.retries)(page, erases).saturating_sub(u32::from(self.is_broken(Rule::TheLastRetryIsNeeded)))
    }

    /// "With `"multi_plane"`, reads ... are sensed together"; "A retry is sensed alone"
    pub(crate) fn reads_in_group(&self, attempt: u32) -> bool {
        let on = self.drive.planes == Planes::MultiPlane && !self.is_broken(Rule::PlanesAreReadTogether);
        on && (attempt == 0 || self.is_broken(Rule::RetriesAreSensedAlone))
    }

    /// Step 4: "array tR; a retry: array tR + tRETRY"
    fn sense(&self, page: Page, attempt: u32) -> u64 {
        let retry = (attempt > 0) != self.is_broken(Rule::OnlyRetriesSetVoltages);
        self.drive.t_read(page) + if retry { self.drive.retry_time } else { 0 }
    }

    /// "Decode (only if tECC > 0)": the tail.
    fn decode(&self, bytes: u32) -> Option<Step> {
        let &Drive { ecc_time, codeword, pipelined, .. } = self.drive;
        if ecc_time == 0 {
            return None;
        }
        let whole = self.is_broken(Rule::PartsOfCodewordsAreDecoded) && bytes > codeword;
        let codewords = u64::from(if whole { bytes / codeword } else { bytes.div_ceil(codeword) });
        let tail = match pipelined != self.is_broken(Rule::Pipelined) {
            true => ecc_time + (codewords - 1) * ecc_time.saturating_sub(self.drive.data(codeword)),
            false => codewords * ecc_time,
        };
        Some(Step::Decode(tail))
    }

    /// "Page program" and "Program of several pages at once", steps 2 to 6.
    fn program(&self, steps: &mut Vec<Step>, pages: &[Page]) {
        steps.push(Step::Enter(Kind::Program));
        self.load(steps, pages);
        steps.push(Step::Loaded);
        if self.double() {
            steps.push(Step::MoveToData);
        }
        steps.push(self.program_array(pages));
        steps.push(Step::LeaveLun);
    }

    /// Step 3, "done once for each page, one after the other, each a separate channel operation"
    fn load(&self, steps: &mut Vec<Step>, pages: &[Page]) {
        let page = self.data(self.drive.page_size());
        match (self.is_broken(Rule::EachPageTakesTheChannel), page) {
            (true, Step::Channel(time)) => steps.push(Step::Channel(time * pages.len() as u64)),
            _ => steps.extend(pages.iter().map(|_| page)),
        }
    }

    /// Step 5, "one array operation, of the longest tPROG among the pages"
    fn program_array(&self, pages: &[Page]) -> Step {
        Step::Program(pages.iter().map(|&page| self.drive.t_program(page)).max().expect("a program has pages"))
    }

    /// "Erase"
    fn erase(&self, steps: &mut Vec<Step>) {
        steps.push(Step::Enter(Kind::Erase));
        steps.push(self.command());
        steps.push(Step::Erase(self.drive.erase));
        steps.push(Step::LeaveLun);
    }

    // ------------------------------------------------------------ "Collections"

    fn collect(&self, steps: &mut Vec<Step>, parts: &[Part], preemptible: bool) {
        // What "controller" and "channel" hold in addition to the LUN: the page "Garbage collection schemes" has them
        // all.
        let (controller, channel) = match self.drive.gc_scheme {
            // "With "none" nothing takes time."
            Scheme::Nothing => return,
            Scheme::Plane => (false, false),
            Scheme::Channel => (false, true),
            Scheme::Controller => (true, true),
        };
        let controller = controller && !self.is_broken(Rule::CollectionsHoldTheController);
        let channel = channel && !self.is_broken(Rule::TheChannelIsHeldToTheEnd);
        if controller {
            steps.push(Step::HoldController);
        }
        steps.push(Step::Enter(Kind::Collection));
        if channel {
            steps.push(Step::HoldChannel);
        }
        parts.iter().for_each(|part| self.part(steps, part, preemptible));
        // "It releases the LUN first, then the channel, then the controller."
        steps.push(Step::LeaveLun);
        if channel {
            steps.push(Step::GiveBackChannel);
        }
        if controller {
            steps.push(Step::GiveBackController);
        }
    }

    /// "copy a page within the plane"
    fn copy(&self, steps: &mut Vec<Step>, pages: &[(Page, Page)], preemptible: bool) {
        let checked = self.drive.copyback_ecc != self.is_broken(Rule::CopiesAreChecked);
        let first = steps.len();
        for &(from, to) in pages {
            steps.push(self.command());
            steps.push(Step::Sense(self.drive.t_read(from)));
            if checked {
                steps.push(self.data(self.drive.page_size()));
                steps.extend(self.decode(self.drive.page_size()));
            }
            steps.push(self.command());
            steps.push(self.program_array(&[to]));
        }
        // Copies that nothing comes between are one array step.
        if !checked && !preemptible && self.command() == Step::Channel(0) {
            let time = steps.drain(first..).map(Step::array_time).sum();
            steps.push(Step::Sense(time));
        }
    }

    fn part(&self, steps: &mut Vec<Step>, part: &Part, preemptible: bool) {
        match part {
            Part::Copy { pages } => self.copy(steps, pages, preemptible),
            Part::Read { page, bytes, erases } => {
                for attempt in 0..=self.retries_of(*page, *erases) {
                    steps.push(self.command());
                    steps.push(Step::Sense(self.sense(*page, attempt)));
                    steps.push(self.data(self.sent(*bytes)));
                    steps.extend(self.decode(*bytes).filter(|_| !self.is_broken(Rule::CollectedPagesAreDecoded)));
                }
            }
            Part::Program { pages } => {
                self.load(steps, pages);
                steps.push(self.program_array(pages));
            }
            Part::Erase { .. } => {
                steps.push(self.command());
                steps.push(Step::Erase(self.drive.erase));
            }
        }
    }
}
