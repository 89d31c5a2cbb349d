//! The end of a turn without arrivals: the loop waits for the next event, socket or message.

use std::io;

use nandscape_sim::Span;
use nandscape_sim::slots::Key;

use super::{AWAKE_BEFORE, DRAIN_TIME, PollMode, Reactor};
use crate::waiter::Wait;

impl Reactor {
    /// Waits for the next event, socket or message.
    pub(super) fn rest(&mut self) -> io::Result<()> {
        let mut time_to_wait = self.time_to_wait();
        if time_to_wait != Wait::None {
            self.waiter.announce_sleep();
            let look_again = self.prepare_clients_for_sleep();
            // A message sent before the announcement would not wake the loop.
            if self.receive_arrivals() || self.has_work() {
                return Ok(());
            }
            match look_again {
                // Waking up would take longer.
                Some(after) if after < AWAKE_BEFORE => return Ok(()),
                Some(after) => time_to_wait = time_to_wait.at_most(after),
                None => self.linger.sleeps(),
            }
            self.timing.sleeps += 1;
            self.slept = true;
        }
        self.polls += 1;
        self.waiter.wait(time_to_wait, &mut self.events)
    }

    /// Notifies polled clients of a sleep; returns the shortest time after which one of them has to be polled again.
    fn prepare_clients_for_sleep(&mut self) -> Option<Span> {
        if self.polled.is_empty() || self.stopping.is_some() {
            return None;
        }
        let silent = self.clock.now().since(self.last_activity);
        let (clients, polled) = (&mut self.clients, &self.polled);
        let asked = |key: &Key| clients.get_mut(*key)?.client.before_sleep(silent);
        polled.iter().filter_map(asked).min()
    }

    /// Whether some client can continue without input from outside.
    pub(super) fn has_work(&self) -> bool {
        let can_go_on = !self.events.ready.is_empty() || self.pool.can_invite() || self.has_undecided();
        can_go_on && self.stopping.is_none()
    }

    pub(super) fn time_to_wait(&mut self) -> Wait {
        if self.poll == PollMode::Busy || self.has_work() {
            return Wait::None;
        }
        let now = self.clock.now();
        // At the end, clients have a while to take their replies.
        let deadline = self.stopping.map(|since| since + DRAIN_TIME);
        let due =
            self.timelines.next_due().into_iter().chain(deadline).chain(self.check_at).min().map(|due| due.since(now));
        if now.since(self.last_activity) < self.linger.length() || due.is_some_and(|left| left <= AWAKE_BEFORE) {
            return Wait::None;
        }
        match due {
            Some(left) => Wait::For(left - AWAKE_BEFORE),
            None => Wait::Forever,
        }
    }
}
