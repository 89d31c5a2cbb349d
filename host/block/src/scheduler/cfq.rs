//! A scheduler like Linux's CFQ: a queue for each process, which is a tenant (CDW2 15:4) in a [`Class`].
//!
//! Higher classes are served first. Within a class, processes have turns in rotation, whose length follows from their
//! priority. A turn ends early when its process has no waiting command. In a turn, commands are sent by their place
//! on the disk, upward and then from the beginning again.
//!
//! The thesis announces MittCFQ without a description (Li 3.1.6). Classes, priorities and lengths of turns are those
//! of Linux's block/cfq-iosched.c.
//!
//! Left out: idling at the end of a turn for the next command of its process (slice_idle), a separate queue for
//! asynchronous writes, groups, and the expiry of commands that others overtake on the arm's way.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use nandscape_sim::{Span, Time};

use super::{Class, Scheduler, Standing};
use crate::request::Request;

/// See the file.
pub struct Cfq {
    /// The time of a turn at priority 4.
    slice: Span,
    queues: BTreeMap<(Class, u16), Queue>,
    /// Who has the next turns, by class. The process in its turn is not among them.
    turns: [VecDeque<u16>; 3],
    /// The process with the current turn, and the end of the turn.
    now: Option<((Class, u16), Time)>,
}

struct Queue {
    waiting: BTreeSet<(u64, u64)>,
    standing: Standing,
    /// The place of the last command sent.
    at: u64,
}

impl Queue {
    fn take(&mut self) -> Option<u64> {
        let next = self.waiting.range((self.at, 0)..).next().or_else(|| self.waiting.first()).copied()?;
        self.waiting.remove(&next);
        self.at = next.0;
        Some(next.1)
    }
}

impl Cfq {
    /// With turns of some time at priority 4.
    pub fn new(slice: Span) -> Cfq {
        Cfq { slice, queues: BTreeMap::new(), turns: Default::default(), now: None }
    }

    /// The process with the turn, if any process has a waiting command.
    fn turn(&mut self, now: Time) -> Option<(Class, u16)> {
        if let Some((process, until)) = self.now {
            let is_over = now >= until || self.turns[..process.0 as usize].iter().any(|turns| !turns.is_empty());
            if !is_over {
                return Some(process);
            }
            self.turns[process.0 as usize].push_back(process.1);
        }
        let class = Class::ALL.into_iter().find(|class| !self.turns[*class as usize].is_empty());
        let next = class.and_then(|class| Some((class, self.turns[class as usize].pop_front()?)));
        let until = next.and_then(|process| Some(now + self.queues.get(&process)?.standing.slice(self.slice)));
        self.now = next.zip(until);
        next
    }
}

impl Scheduler for Cfq {
    fn push(&mut self, key: u64, request: &Request, _: Option<u32>) {
        let standing = Standing::of(request);
        let process = (standing.class, request.tenant);
        let turns = &mut self.turns[standing.class as usize];
        let queue = self.queues.entry(process).or_insert_with(|| {
            turns.push_back(request.tenant);
            Queue { waiting: BTreeSet::new(), standing, at: 0 }
        });
        queue.standing = standing;
        queue.waiting.insert((request.slba, key));
    }

    fn pop(&mut self, now: Time, _: &dyn Fn(u32) -> bool) -> Option<u64> {
        let process = self.turn(now)?;
        let queue = self.queues.get_mut(&process)?;
        let key = queue.take();
        if queue.waiting.is_empty() {
            self.queues.remove(&process);
            self.now = None;
        }
        key
    }

    fn class(&self, request: &Request) -> Option<Class> {
        Some(Standing::of(request).class)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: fn(u64) -> Time = |ms| Time::from_ns(ms * 1_000_000);

    fn request(class: u8, tenant: u16, slba: u64) -> Request {
        Request { is_read: true, slba, blocks: 8, class, tenant, deadline: None, arrived: AT(0) }
    }

    #[test]
    fn higher_classes_go_first_and_end_the_turns_of_lower_ones() {
        let mut cfq = Cfq::new(Span::from_ms(100));
        cfq.push(1, &request(15, 1, 0), None);
        cfq.push(2, &request(0, 2, 0), None);
        cfq.push(3, &request(0, 2, 8), None);
        assert_eq!(cfq.pop(AT(0), &|_| false), Some(2));
        cfq.push(4, &request(1, 3, 0), None);
        assert_eq!(
            [
                cfq.pop(AT(1), &|_| false),
                cfq.pop(AT(2), &|_| false),
                cfq.pop(AT(3), &|_| false),
                cfq.pop(AT(4), &|_| false)
            ],
            [Some(4), Some(3), Some(1), None]
        );
    }

    #[test]
    fn processes_have_turns_by_priority_and_their_commands_go_by_place() {
        let mut cfq = Cfq::new(Span::from_ms(100));
        // Process 1 has the highest priority and process 2 the lowest. Each of their commands takes 10 ms.
        for number in 0..60 {
            cfq.push(number, &request(5, 1, 1_000 - number), None);
            cfq.push(100 + number, &request(12, 2, number), None);
        }
        let order: Vec<u64> = (0..).map_while(|number| cfq.pop(AT(number * 10), &|_| false)).collect();
        let turns: Vec<(bool, usize)> =
            order.chunk_by(|a, b| (*a < 100) == (*b < 100)).map(|turn| (turn[0] < 100, turn.len())).collect();
        // 180 ms and 40 ms.
        assert_eq!(turns[..4], [(true, 18), (false, 4), (true, 18), (false, 4)]);
        assert_eq!(order.len(), 120);
        let of_one: Vec<u64> = order.iter().copied().filter(|key| *key < 100).collect();
        assert!(of_one.is_sorted_by(|a, b| a > b), "by place, upward: {of_one:?}");
    }
}
