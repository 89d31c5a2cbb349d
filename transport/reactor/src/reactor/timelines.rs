//! The timelines of the loop: an executor with its own time for each drive, or for drives that share something. Each advances by a
//! bounded share, and the one that has used the least processor time is next: the work of one drive at one instant delays another
//! drive by one share.

use nandscape_sim::{Executor, Span, Time};

/// A timeline that had nothing to do is at most this far ahead of the others when it has.
const CREDIT: Span = Span::from_us(100);

/// See the module.
pub(super) struct Timelines {
    all: Vec<Timeline>,
    /// Of those that have used the same time, the one whose turn is next.
    next: usize,
    /// The one that had the last share.
    last: usize,
    /// The time that one had used before.
    reached: Span,
}

struct Timeline {
    executor: Executor,
    /// Whether it has not run everything up to the time of this turn.
    is_behind: bool,
    /// Processor time that its shares took, or was credited for.
    used: Span,
}

/// The result of a share.
pub(super) struct Share {
    /// The time that the timeline has reached; `None` if none was behind.
    pub(super) reached: Option<Time>,
    /// Units of work that tasks have noted.
    pub(super) work: u64,
    /// Whether the timeline has run everything.
    pub(super) is_whole: bool,
    /// Whether all timelines have.
    pub(super) are_all_whole: bool,
}

impl Timelines {
    /// The timelines in the order of the port.
    pub(super) fn new(executors: Vec<Executor>) -> Timelines {
        let all = executors.into_iter().map(|executor| Timeline { executor, is_behind: false, used: Span::ZERO });
        Timelines { all: all.collect(), next: 0, last: 0, reached: Span::ZERO }
    }

    pub(super) fn count(&self) -> usize {
        self.all.len()
    }

    pub(super) fn executors(&self) -> impl Iterator<Item = &Executor> {
        self.all.iter().map(|timeline| &timeline.executor)
    }

    pub(super) fn into_executors(self) -> Vec<Executor> {
        self.all.into_iter().map(|timeline| timeline.executor).collect()
    }

    /// The latest time that one of them has reached.
    pub(super) fn now(&self) -> Time {
        self.executors().map(|executor| executor.sim().now()).max().unwrap_or(Time::ZERO)
    }

    /// When the next event of any of them is due.
    pub(super) fn next_due(&self) -> Option<Time> {
        self.executors().filter_map(Executor::next_due).min()
    }

    /// A turn up to `until` begins.
    pub(super) fn begin(&mut self, until: Time) {
        let least = self.reached.saturating_sub(CREDIT);
        for Timeline { executor, is_behind, used } in &mut self.all {
            let was_behind = std::mem::replace(is_behind, executor.next_due().is_some_and(|due| due <= until));
            if !was_behind {
                *used = least.max(*used);
            }
        }
    }

    /// Gives the timeline that is behind and has used the least time a share of the turn: at most so many polls.
    pub(super) fn advance(&mut self, until: Time, most: u32) -> Share {
        let order = (self.next..self.all.len()).chain(0..self.next);
        let behind = order.filter(|number| self.all[*number].is_behind);
        let Some(number) = behind.min_by_key(|number| self.all[*number].used) else {
            return Share { reached: None, work: 0, is_whole: true, are_all_whole: true };
        };
        self.next = if number + 1 == self.all.len() { 0 } else { number + 1 };
        (self.last, self.reached) = (number, self.reached.max(self.all[number].used));
        let Timeline { executor, is_behind, .. } = &mut self.all[number];
        let before = executor.work();
        *is_behind = !executor.advance(until, most);
        let (reached, work, is_whole) = (Some(executor.sim().now()), executor.work() - before, !*is_behind);
        Share {
            reached,
            work,
            is_whole,
            are_all_whole: is_whole && !self.all.iter().any(|timeline| timeline.is_behind),
        }
    }

    /// The last share took this long.
    pub(super) fn charge(&mut self, time: Span) {
        let used = &mut self.all[self.last].used;
        *used += time;
    }

    /// Moves the clock of each timeline to the stamp of its arrivals: `until`, or the time that it has reached if it is behind.
    /// `begins` is called with its number and, if tasks are still due at the stamp, with the polls of tasks at that time. Returns the
    /// latest stamp.
    pub(super) fn arrive(&mut self, until: Time, mut begins: impl FnMut(usize, Option<u64>)) -> Time {
        let mut latest = Time::ZERO;
        for (number, Timeline { executor, is_behind, .. }) in self.all.iter_mut().enumerate() {
            let at = if *is_behind { executor.sim().now() } else { until };
            let is_within = *is_behind && executor.next_due().is_some_and(|due| due <= at);
            executor.arrive(at);
            begins(number, is_within.then(|| executor.polls_now()));
            latest = latest.max(at);
        }
        latest
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::rc::Rc;

    use nandscape_sim::{Sim, Span};

    use super::*;

    const MOST: u32 = 32;

    /// Tasks that are ready again after each of their polls: their instant never ends.
    fn burst(sim: &Sim, polls: &Rc<Cell<u64>>) {
        for _ in 0..1_000 {
            let polls = polls.clone();
            sim.spawn(std::future::poll_fn({
                let sim = sim.clone();
                move |_| {
                    polls.set(polls.get() + 1);
                    sim.wake(sim.current_task());
                    std::task::Poll::<()>::Pending
                }
            }));
        }
    }

    /// A command of so many steps, by turns a wake-up and a timer of its instant; the polls of others at each step.
    fn command(sim: &Sim, steps: u32, polls: &Rc<Cell<u64>>) -> Rc<Cell<Vec<u64>>> {
        let seen = Rc::new(Cell::new(Vec::new()));
        let (sim, polls, sees) = (sim.clone(), polls.clone(), seen.clone());
        sim.clone().spawn(async move {
            for step in 0..steps {
                if step % 2 == 0 {
                    sim.after_what_is_due().await;
                } else {
                    let mut first = true;
                    std::future::poll_fn(|_| {
                        sim.wake(sim.current_task());
                        if std::mem::take(&mut first) { std::task::Poll::Pending } else { std::task::Poll::Ready(()) }
                    })
                    .await;
                }
                let mut all = sees.take();
                all.push(polls.get());
                sees.set(all);
            }
        });
        seen
    }

    /// The bound, counted without a clock: a command waits for one share of each other timeline, whatever is ready there.
    #[test]
    fn a_command_waits_for_one_share_of_each_drive_that_works_without_end() {
        for others in 1..4 {
            let mut executors = Executor::apart(others + 1);
            let polls = Rc::new(Cell::new(0));
            executors.iter().skip(1).for_each(|executor| burst(&executor.sim(), &polls));
            let until = Time::ZERO + Span::from_us(5);
            // Others were at work before.
            executors.iter_mut().skip(1).for_each(|executor| assert!(!executor.advance(until, 5_000)));
            let begun = polls.get();
            let seen = command(&executors[0].sim(), 20, &polls);
            let mut timelines = Timelines::new(executors);
            timelines.begin(until);
            let mut shares = 0;
            while timelines.all[0].is_behind {
                assert!(!timelines.advance(until, MOST).are_all_whole);
                shares += 1;
            }
            let seen = seen.take();
            assert_eq!(seen.len(), 20);
            let last = seen.last().expect("the last step") - begun;
            let share = u64::from(MOST) * others as u64;
            assert!(last <= 2 * share && shares <= 2 * (others + 1), "{last} polls of others, {shares} shares");
        }
    }

    #[test]
    fn shares_are_given_in_turn_over_all_turns_of_the_loop() {
        let executors = Executor::apart(3);
        let polls: Vec<_> = executors.iter().map(|_| Rc::new(Cell::new(0))).collect();
        executors.iter().zip(&polls).for_each(|(executor, polls)| burst(&executor.sim(), polls));
        let mut timelines = Timelines::new(executors);
        for turn in 0..9 {
            // Each turn ends after one share.
            timelines.begin(Time::ZERO);
            timelines.advance(Time::ZERO, MOST);
            let most = polls.iter().map(|polls| polls.get()).max().expect("three");
            assert_eq!(most, u64::from(MOST) * (turn / 3 + 1), "turn {turn}");
        }
    }

    /// Shares are equal in time, and a drive that had nothing to do has saved up no more than its credit.
    #[test]
    fn the_drive_that_has_used_the_least_time_is_next() {
        let executors = Executor::apart(2);
        let polls: Vec<_> = executors.iter().map(|_| Rc::new(Cell::new(0))).collect();
        burst(&executors[0].sim(), &polls[0]);
        let mut timelines = Timelines::new(executors);
        let turns = |timelines: &mut Timelines, long: [Span; 2], shares: u64| {
            for _ in 0..shares {
                timelines.begin(Time::ZERO);
                let before = polls[0].get();
                timelines.advance(Time::ZERO, MOST);
                timelines.charge(long[usize::from(polls[0].get() == before)]);
            }
            [polls[0].get(), polls[1].get()].map(|polls| polls / u64::from(MOST))
        };
        let (short, long) = (Span::from_us(10), Span::from_us(40));
        assert_eq!(turns(&mut timelines, [long, short], 1_000), [1_000, 0]);
        burst(&timelines.all[1].executor.sim(), &polls[1]);
        // 100 us of credit, then four short shares for each long one.
        let [one, other] = turns(&mut timelines, [long, short], 1_000);
        assert!((195..=205).contains(&(one - 1_000)) && (795..=805).contains(&other), "{one}, {other}");
    }

    /// A timeline that is behind stamps its arrivals with the time that it has reached, the others with that of the turn.
    #[test]
    fn each_timeline_has_its_own_stamp() {
        let executors = Executor::apart(2);
        let sims: Vec<Sim> = executors.iter().map(Executor::sim).collect();
        burst(&sims[1], &Rc::default());
        let mut timelines = Timelines::new(executors);
        let until = Time::ZERO + Span::from_us(3);
        timelines.begin(until);
        assert_eq!(timelines.advance(until, MOST).reached, Some(Time::ZERO));
        let mut stamps = Vec::new();
        let latest = timelines.arrive(until, |number, polls| stamps.push((sims[number].now(), polls)));
        assert_eq!(stamps, [(until, None), (Time::ZERO, Some(MOST.into()))]);
        assert_eq!((latest, timelines.now(), timelines.next_due()), (until, until, Some(Time::ZERO)));
    }
}
