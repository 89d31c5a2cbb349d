//! MittNoop (Li 3.1.6): a disk that serves commands in the order of their arrival. The wait is the disk's next free
//! time. A command adds its time from the disk's profile, which depends on the command before it.

use std::cell::RefCell;
use std::rc::Rc;

use nandscape_sim::Time;
use nandscape_sim::slots::{Key, Slots};

use super::line::{Line, Turn};
use super::profile::DiskProfile;
use super::{Prediction, Predictor};
use crate::config::Config;
use crate::request::Request;

/// See the file.
pub struct MittNoop {
    profile: DiskProfile,
    state: RefCell<State>,
}

struct State {
    line: Line,
    /// The block after the last command that was let in.
    at: u64,
    under_way: Slots<Turn>,
}

impl MittNoop {
    /// Over a disk with a profile, which serves in the order of arrival.
    pub fn new(profile: DiskProfile, config: &Config) -> Rc<MittNoop> {
        let state = State { line: Line::new(config.correct), at: 0, under_way: Slots::new() };
        Rc::new(MittNoop { profile, state: RefCell::new(state) })
    }
}

impl Predictor for MittNoop {
    fn predict(&self, request: &Request, now: Time) -> Prediction {
        let state = self.state.borrow();
        let wait = state.line.wait(now);
        Prediction { latency: wait + self.profile.takes(state.at, request), wait, ..Prediction::default() }
    }

    fn accept(&self, request: &Request, prediction: &Prediction, now: Time) -> u64 {
        let state = &mut *self.state.borrow_mut();
        if request.blocks > 0 {
            state.at = request.slba.saturating_add(request.blocks.into());
        }
        let turn = state.line.join(prediction.latency.saturating_sub(prediction.wait), now);
        state.under_way.insert(turn).to_bits()
    }

    fn ended(&self, ticket: u64, now: Time) {
        let state = &mut *self.state.borrow_mut();
        if let Some(turn) = state.under_way.remove(Key::from_bits(ticket)) {
            state.line.end(turn, now);
        }
    }

    fn dropped(&self, ticket: u64, _: Time) {
        let state = &mut *self.state.borrow_mut();
        if let Some(turn) = state.under_way.remove(Key::from_bits(ticket)) {
            state.line.leave(turn);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::profile::tests::{profile, request};
    use super::*;
    use nandscape_sim::Span;

    #[test]
    fn a_command_waits_for_those_before_it_and_is_as_far_as_the_last_one() {
        let mitt = MittNoop::new(profile(), &Config::default());
        let now = Time::from_ns(0);
        let first = request(true, 0, 8);
        let prediction = mitt.predict(&first, now);
        assert_eq!((prediction.wait, prediction.latency), (Span::ZERO, Span::from_ms(1)));
        let ticket = mitt.accept(&first, &prediction, now);
        // 500 blocks behind the end of the first.
        let prediction = mitt.predict(&request(true, 508, 8), now);
        assert_eq!((prediction.wait, prediction.latency), (Span::from_ms(1), Span::from_us(2_500)));
        mitt.ended(ticket, Time::from_ns(900_000));
        mitt.ended(ticket, Time::from_ns(950_000));
        assert!(mitt.predict(&first, Time::from_ns(900_000)).wait.is_zero());
    }
}
