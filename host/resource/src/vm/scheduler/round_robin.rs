//! The machines that have work, in turn.

use nandscape_sim::{Span, Time};

use super::Scheduler;
use super::turns::Turns;

/// See the file.
pub struct RoundRobin(Turns);

impl RoundRobin {
    /// Of a number of machines.
    pub fn new(machines: usize) -> RoundRobin {
        RoundRobin(Turns::new(machines))
    }
}

impl Scheduler for RoundRobin {
    fn wakes(&mut self, vm: usize, turn: Span, _: Time) -> bool {
        self.0.push(vm, turn);
        false
    }

    fn waits(&mut self, vm: usize, turn: Span, _: Time) {
        self.0.push(vm, turn);
    }

    fn next(&mut self, _: Time) -> Option<usize> {
        self.0.pop().map(|(vm, _)| vm)
    }

    fn ran(&mut self, _: usize, _: Span, _: Time) {}

    fn ahead(&self, vm: usize, _: Time) -> Option<Span> {
        Some(self.0.before(vm).unwrap_or(self.0.all()))
    }

    fn others(&self, vm: usize) -> Span {
        self.0.all().saturating_sub(self.0.own(vm))
    }
}
