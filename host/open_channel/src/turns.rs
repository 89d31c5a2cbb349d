//! The commands of each die in the drive, and the commands that wait in the host for their turn.
//!
//! A command takes its place when it is created, and is sent when the [`DieOrder`] permits. Dropping a waiting
//! command gives up its place.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use nandscape_sim::Sim;
use nandscape_sim::signal::Signal;

use crate::order::{DieLoad, DieOrder, DieUse};

/// See the file.
pub(crate) struct Turns {
    order: Box<dyn DieOrder>,
    dies: Vec<Die>,
}

struct Die {
    queue: RefCell<Queue>,
    changed: Signal,
}

#[derive(Default)]
struct Queue {
    /// Numbers and kinds of the waiting commands, in order of arrival.
    waiting: VecDeque<(u64, DieUse)>,
    next: u64,
    reads: u32,
    writes: u32,
}

/// The place of a command: waiting, or in the drive, until it is dropped.
pub(crate) struct Turn {
    turns: Rc<Turns>,
    die: usize,
    command: DieUse,
    /// `None` when the command is in the drive.
    waits_as: Option<u64>,
}

impl Queue {
    /// The commands before a waiting one.
    fn before(&self, number: u64) -> DieLoad {
        let earlier = self.waiting.iter().take_while(|(other, _)| *other < number);
        let mut load = DieLoad { reads: self.reads, writes: self.writes, ..DieLoad::default() };
        for (_, command) in earlier {
            load.waiting += 1;
            load.waiting_writes += u32::from(*command == DieUse::Write);
        }
        load
    }

    fn in_drive(&mut self, command: DieUse) -> &mut u32 {
        match command {
            DieUse::Read => &mut self.reads,
            DieUse::Write => &mut self.writes,
        }
    }
}

impl Turns {
    pub(crate) fn new(sim: &Sim, dies: u32, order: Box<dyn DieOrder>) -> Rc<Turns> {
        let die = |_| Die { queue: RefCell::default(), changed: Signal::new(sim) };
        Rc::new(Turns { order, dies: (0..dies).map(die).collect() })
    }

    /// Takes a place at the end of a die's line.
    pub(crate) fn take(self: &Rc<Turns>, die: u32, command: DieUse) -> Turn {
        let die = die as usize;
        let mut queue = self.dies[die].queue.borrow_mut();
        let number = queue.next;
        queue.next += 1;
        queue.waiting.push_back((number, command));
        Turn { turns: self.clone(), die, command, waits_as: Some(number) }
    }
}

impl Turn {
    /// Waits until the command may go.
    pub(crate) async fn come(&mut self) {
        let Some(number) = self.waits_as else { return };
        let Die { queue, changed } = &self.turns.dies[self.die];
        loop {
            let load = queue.borrow().before(number);
            if self.turns.order.goes(self.command, &load) {
                break;
            }
            changed.changed().await;
        }
        self.waits_as = None;
        let mut queue = queue.borrow_mut();
        queue.waiting.retain(|(other, _)| *other != number);
        *queue.in_drive(self.command) += 1;
        drop(queue);
        changed.notify();
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let Die { queue, changed } = &self.turns.dies[self.die];
        let mut queue = queue.borrow_mut();
        match self.waits_as {
            Some(number) => queue.waiting.retain(|(other, _)| *other != number),
            None => *queue.in_drive(self.command) -= 1,
        }
        drop(queue);
        changed.notify();
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use nandscape_sim::{Executor, Span};

    use super::*;
    use crate::order::{DieFifo, OneWrite};

    /// Submits commands of 10 us each in this order; returns the times at which they were sent, in us.
    fn went(order: Box<dyn DieOrder>, commands: &[DieUse]) -> Vec<u64> {
        let mut executor = Executor::new();
        let sim = executor.sim();
        let turns = Turns::new(&sim, 1, order);
        let times = Rc::new(RefCell::new(vec![0; commands.len()]));
        for (number, command) in commands.iter().enumerate() {
            let (mut turn, sim, times) = (turns.take(0, *command), sim.clone(), times.clone());
            let spawner = sim.clone();
            spawner.spawn(async move {
                turn.come().await;
                times.borrow_mut()[number] = sim.now().ns() / 1_000;
                sim.sleep(Span::from_us(10)).await;
            });
        }
        executor.block_on(async { sim.sleep(Span::from_ms(1)).await }).unwrap();
        times.take()
    }

    const R: DieUse = DieUse::Read;
    const W: DieUse = DieUse::Write;

    #[test]
    fn each_order_lets_commands_go_as_its_paper_says() {
        assert_eq!(went(Box::new(OneWrite), &[W, R, R, W, R]), [0, 0, 0, 10, 0]);
        assert_eq!(went(Box::new(DieFifo), &[W, R, R, W, R]), [0, 0, 10, 10, 20]);
        assert_eq!(went(Box::new(DieFifo), &[R, R, R, W, W]), [0, 0, 0, 0, 10]);
    }

    #[test]
    fn a_command_that_is_dropped_gives_up_its_place() {
        let mut executor = Executor::new();
        let sim = executor.sim();
        let turns = Turns::new(&sim, 1, Box::new(DieFifo));
        let mut first = turns.take(0, W);
        let (second, mut third) = (turns.take(0, W), turns.take(0, W));
        executor
            .block_on(async {
                first.come().await;
                drop(second);
                drop(first);
                third.come().await;
            })
            .unwrap();
        drop(third);
        assert_eq!(turns.dies[0].queue.borrow().before(u64::MAX), DieLoad::default());
    }
}
