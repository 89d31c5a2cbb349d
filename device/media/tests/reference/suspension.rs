//! The headings "Suspension" and "Preemptive collections".

use crate::lun::{Opened, Running, State};
use crate::mutants::Rule;
use crate::outcome::Stage;
use crate::simulator::{Customer, Ending, Given, Simulator};
use crate::steps::Kind;

impl Simulator<'_> {
    /// Begins the array step of a program or an erase, which may be suspended if `suspend` gives the times.
    pub(crate) fn begin_run(&mut self, customer: usize, time: u64, suspend: Option<u64>) -> bool {
        let Customer { class, lun, preemptible, .. } = self.customers[customer];
        // "A collection's do so only while it is preemptible."
        let collects = self.luns[lun].data.is_some_and(|held| held.kind == Kind::Collection);
        let may = !collects || preemptible || self.is_broken(Rule::OnlyPreemptibleCollectionsAreSuspended);
        let ignored = match self.luns[lun].data.map(|held| held.kind) {
            Some(Kind::Erase) => self.is_broken(Rule::ErasesAreSuspended),
            _ => self.is_broken(Rule::ProgramsAreSuspended),
        };
        self.luns[lun].running = Some(Running {
            customer,
            class,
            suspend: suspend.filter(|_| may && !ignored),
            state: State::Runs,
            since: self.now,
            left: time,
            suspended: 0,
            decided: false,
        });
        self.ends_after(time, customer, Ending::Ran);
        self.consider(lun, true);
        false
    }

    /// It ends.
    pub(crate) fn has_run(&mut self, customer: usize) {
        let lun = self.customers[customer].lun;
        let running = self.luns[lun].running.take().expect("it runs");
        self.spend(customer, Stage::Array, running.left);
        self.go_on(customer);
    }

    /// "the first waiter of the LUN is a sense of a class below c"
    fn somebody_waits(&self, lun: usize, class: u8) -> bool {
        let first = self.luns[lun].line.first();
        first.is_some_and(|&(other, (_, kind))| other < class && kind == Kind::Sense)
    }

    /// Decides whether and when the running operation is suspended: whenever an operation joins the queue, and when it
    /// begins to run.
    pub(crate) fn consider(&mut self, lun: usize, begins: bool) {
        let Some(running) = &self.luns[lun].running else { return };
        let &Running { class, suspend, state, since, left, suspended, decided, .. } = running;
        let Some(to_suspend) = suspend else { return };
        let limit = if self.is_broken(Rule::SuspensionsAreLimited) { 0 } else { self.drive.limit };
        let limited = limit > 0 && suspended >= limit;
        if decided || limited || state != State::Runs || !self.somebody_waits(lun, class) {
            return;
        }
        // "at the first instant from which on it is in the way, but not before it has run for `min_run`"
        let min_run = if self.is_broken(Rule::OperationsRunBeforeSuspension) { 0 } else { self.drive.min_run };
        let counts = !self.is_broken(Rule::RunsCountFromResumption) || suspended == 0;
        let at = self.now.max(since + if counts { min_run } else { 0 });
        // "it is not suspended if its remaining time at that instant is at most tSPD: it ends instead"
        let to_suspend = if self.is_broken(Rule::NearlyDoneOperationsEnd) { 0 } else { to_suspend };
        if left.saturating_sub(at - since) <= to_suspend {
            return;
        }
        self.luns[lun].running.as_mut().expect("it runs").decided = true;
        // It comes "among those of 4"; of what begins now it is a part.
        match begins {
            true => self.suspend_at(lun, at),
            false => self.given.push_back(Given::SuspendAt(lun, at)),
        }
    }

    /// Suspends now, or begins to wait until then.
    pub(crate) fn suspend_at(&mut self, lun: usize, at: u64) {
        let customer = self.luns[lun].running.as_ref().expect("it runs").customer;
        match at - self.now {
            0 => self.suspend(lun),
            wait => self.ends_after(wait, customer, Ending::SuspensionDue),
        }
    }

    /// "Suspending: the array stays busy for tSPD, without progress."
    pub(crate) fn suspend(&mut self, lun: usize) {
        let (progress, free) =
            (self.is_broken(Rule::SuspensionIsWithoutProgress), self.is_broken(Rule::SuspendingTakesTime));
        let running = self.luns[lun].running.as_mut().expect("it runs");
        let ran = self.now - running.since;
        let customer = running.customer;
        let mut time = running.suspend.expect("it may be suspended");
        running.left -= ran;
        if progress {
            running.left = running.left.saturating_sub(time).max(1);
        }
        if free {
            time = 0;
        }
        running.suspended += 1;
        running.state = State::Suspending;
        self.forget(customer, Ending::Ran);
        self.spend(customer, Stage::Array, ran + time);
        match time {
            0 => self.open(lun),
            time => self.ends_after(time, customer, Ending::Suspended),
        }
    }

    /// "Then the LUN is open"
    pub(crate) fn open(&mut self, lun: usize) {
        let running = self.luns[lun].running.as_mut().expect("it is suspended");
        running.state = State::Open;
        let (customer, below) = (running.customer, running.class);
        self.luns[lun].open = Some(Opened { below, since: self.now, customer });
        self.admit(lun);
    }

    /// "When such a read leaves its register, the next is admitted; if none waits, the LUN is closed at that instant."
    pub(crate) fn close_if_nobody_waits(&mut self, lun: usize) {
        if !self.luns[lun].apart.is_empty() {
            return;
        }
        let Opened { since, customer, .. } = self.luns[lun].open.take().expect("it is open");
        self.spend(customer, Stage::DieWait, self.now - since);
        self.given.push_back(match self.luns[lun].running {
            Some(_) => Given::Resume(lun),
            None => Given::GoOn(customer),
        });
    }

    /// "Then the array is busy for tRES"
    pub(crate) fn resume(&mut self, lun: usize) {
        let running = self.luns[lun].running.as_mut().expect("it is suspended");
        running.state = State::Resuming;
        let customer = running.customer;
        let time = if self.is_broken(Rule::ResumingTakesTime) { 0 } else { self.drive.resume };
        self.spend(customer, Stage::Array, time);
        match time {
            0 => self.run_on(lun),
            time => self.ends_after(time, customer, Ending::Resumed),
        }
    }

    /// "and the operation continues with its remaining time"
    pub(crate) fn run_on(&mut self, lun: usize) {
        let running = self.luns[lun].running.as_mut().expect("it is suspended");
        (running.state, running.since, running.decided) = (State::Runs, self.now, false);
        let (customer, left) = (running.customer, running.left);
        self.ends_after(left, customer, Ending::Ran);
        self.consider(lun, true);
    }

    /// "before each step of a collection on the array or the channel: if the first waiter of the LUN is a sense of a
    /// class below the collection's, the LUN is opened as if the collection had been suspended, with tSPD and tRES of
    /// 0, until none waits"
    pub(crate) fn makes_way(&mut self, customer: usize) -> bool {
        let Customer { class, lun, preemptible, has_made_way, .. } = self.customers[customer];
        let never = self.is_broken(Rule::ReadsComeBetweenSteps);
        if !preemptible || never || has_made_way || !self.somebody_waits(lun, class) {
            return false;
        }
        self.customers[customer].has_made_way = true;
        self.luns[lun].open = Some(Opened { below: class, since: self.now, customer });
        self.admit(lun);
        true
    }
}
