//! Xen's credit scheduler on one core. Every 30 ms, each machine that has had work gets an equal share of those 30 ms
//! as credit, and running uses it up. Machines with credit left (under) precede machines without (over), in turn. A
//! machine that wakes with credit left precedes all, and preempts any machine that is not boosted itself (boost).
//!
//! A machine that has run for 10 ms is no longer boosted.
//!
//! Left out: weights and caps, accounting in ticks (running is accounted exactly), and the limit on the rate of
//! switches.

use nandscape_sim::{Span, Time};

use super::Scheduler;
use super::turns::Turns;

/// The time between two shares.
const PERIOD: Span = Span::from_ms(30);
/// How long a boost lasts.
const TICK: Span = Span::from_ms(10);

/// In order of precedence, the highest first.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Class {
    Boost,
    Under,
    Over,
}

/// See the file.
pub struct Credit {
    /// By class.
    queues: [Turns; 3],
    /// In nanoseconds.
    credits: Vec<i64>,
    /// Whether a machine has had work since the last share.
    active: Vec<bool>,
    /// The machine that has the core, with its class as it got it, and since when.
    running: Option<(usize, Class, Time)>,
    next_share: Time,
}

impl Credit {
    /// Of a number of machines, which have no credit and owe none.
    pub fn new(machines: usize) -> Credit {
        Credit {
            queues: [(); 3].map(|()| Turns::new(machines)),
            credits: vec![0; machines],
            active: vec![false; machines],
            running: None,
            next_share: Time::ZERO,
        }
    }

    fn class(&self, vm: usize) -> Class {
        if self.credits[vm] >= 0 { Class::Under } else { Class::Over }
    }

    /// Whether the machine that has the core is boosted.
    fn runs_boosted(&self, now: Time) -> bool {
        self.running.is_some_and(|(_, class, since)| class == Class::Boost && now.since(since) < TICK)
    }

    fn push(&mut self, vm: usize, class: Class, turn: Span) {
        self.active[vm] = true;
        self.queues[class as usize].push(vm, turn);
    }

    /// Gives shares when it is time. Machines that wait change their class with it.
    fn share(&mut self, now: Time) {
        if now < self.next_share {
            return;
        }
        let periods = now.since(self.next_share).ns() / PERIOD.ns() + 1;
        self.next_share = self.next_share + PERIOD * periods;
        let count = self.active.iter().filter(|active| **active).count().max(1) as u64;
        let (share, most) = ((PERIOD.ns() / count * periods) as i64, PERIOD.ns() as i64);
        for (credit, _) in self.credits.iter_mut().zip(&self.active).filter(|(_, active)| **active) {
            *credit = (*credit + share).clamp(-most, most);
        }
        let mut waiting = Vec::new();
        for class in [Class::Under, Class::Over] {
            while let Some(one) = self.queues[class as usize].pop() {
                waiting.push(one);
            }
        }
        self.active.fill(false);
        if let Some((vm, ..)) = self.running {
            self.active[vm] = true;
        }
        for (vm, turn) in waiting {
            self.push(vm, self.class(vm), turn);
        }
    }
}

impl Scheduler for Credit {
    fn wakes(&mut self, vm: usize, turn: Span, now: Time) -> bool {
        self.share(now);
        let class = if self.class(vm) == Class::Under { Class::Boost } else { Class::Over };
        self.push(vm, class, turn);
        class == Class::Boost && self.running.is_some() && !self.runs_boosted(now)
    }

    fn waits(&mut self, vm: usize, turn: Span, now: Time) {
        self.share(now);
        self.push(vm, self.class(vm), turn);
    }

    fn next(&mut self, now: Time) -> Option<usize> {
        self.running = None;
        self.share(now);
        for class in [Class::Boost, Class::Under, Class::Over] {
            if let Some((vm, _)) = self.queues[class as usize].pop() {
                self.running = Some((vm, class, now));
                return Some(vm);
            }
        }
        None
    }

    fn ran(&mut self, vm: usize, span: Span, now: Time) {
        self.credits[vm] -= span.ns() as i64;
        self.active[vm] = true;
        self.share(now);
    }

    fn ahead(&self, vm: usize, now: Time) -> Option<Span> {
        let mut before = Span::ZERO;
        for queue in &self.queues {
            match queue.before(vm) {
                Some(own) => return Some(before + own),
                None => before += queue.all(),
            }
        }
        // It would wake.
        if self.class(vm) == Class::Over {
            return Some(before);
        }
        let is_taken = !self.runs_boosted(now);
        let boosted = self.queues[Class::Boost as usize].all();
        if is_taken && boosted.is_zero() { None } else { Some(boosted) }
    }

    fn others(&self, vm: usize) -> Span {
        self.queues.iter().map(|queue| queue.all().saturating_sub(queue.own(vm))).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_wakes_with_credit_takes_the_core_and_one_without_waits() {
        let (ms, at) = (Span::from_ms, |ms: u64| Time::from_ns(ms * 1_000_000));
        let mut credit = Credit::new(3);
        assert!(!credit.wakes(1, ms(30), at(0)), "nobody has the core");
        assert!(!credit.wakes(2, ms(30), at(0)));
        assert_eq!(credit.next(at(0)), Some(1));
        credit.ran(1, ms(30), at(30));
        credit.waits(1, ms(30), at(30));
        assert_eq!(credit.next(at(30)), Some(2));
        // Both have used up their share by now, the third has not.
        credit.ran(2, ms(30), at(60));
        credit.waits(2, ms(30), at(60));
        assert_eq!(credit.next(at(60)), Some(1));
        assert_eq!((credit.ahead(0, at(60)), credit.ahead(2, at(60))), (None, Some(ms(0))));
        assert!(credit.wakes(0, ms(1), at(61)));
        assert_eq!(credit.ahead(2, at(61)), Some(ms(1)));
        credit.ran(1, ms(1), at(61));
        credit.waits(1, ms(30), at(61));
        assert_eq!(credit.next(at(61)), Some(0));
        // It runs for long, and has no credit when it wakes again.
        credit.ran(0, ms(29), at(89));
        assert_eq!(credit.next(at(89)), Some(2));
        assert_eq!(credit.ahead(0, at(89)), Some(ms(30)));
        assert!(!credit.wakes(0, ms(1), at(89)));
    }
}
