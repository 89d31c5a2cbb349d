//! MittSmr: a shingled disk that serves commands in the order of their arrival and cleans bands between them (Li
//! 6.1). Each step of a cleaning adds its profiled time to the disk's next free time, as a command does. Steps
//! correct the account as they end, so the remainder of a band is known at any time.
//!
//! A prediction costs one look-up in the profile for each piece of the read; a cleaning costs one for each of its
//! steps, once.
//!
//! Left out: cleanings that have not begun. Only the disk knows which command will find the media cache full.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use nandscape_drive::shingle::{CleaningStep, CleaningWatch, ShingleMap};
use nandscape_sim::slots::{Key, Slots};
use nandscape_sim::{Sim, Span, Time};

use super::line::{Line, Turn};
use super::profile::DiskProfile;
use super::{Prediction, Predictor};
use crate::config::Config;
use crate::request::Request;

/// See the file.
pub struct MittSmr {
    sim: Sim,
    profile: DiskProfile,
    map: Rc<dyn ShingleMap>,
    state: RefCell<State>,
}

struct State {
    line: Line,
    /// The sector on the platters after the last access that is known.
    at: u64,
    under_way: Slots<Turn>,
    /// Steps of the band that is being cleaned.
    steps: VecDeque<Turn>,
}

impl MittSmr {
    /// Over a disk that reports the location of its data. The profile is that of its platters.
    pub fn new(sim: &Sim, profile: DiskProfile, map: Rc<dyn ShingleMap>, config: &Config) -> Rc<MittSmr> {
        let line = Line::new(config.correct);
        let state = State { line, at: 0, under_way: Slots::new(), steps: VecDeque::new() };
        Rc::new(MittSmr { sim: sim.clone(), profile, map, state: RefCell::new(state) })
    }

    /// The time of a command's accesses, and the arm's place afterwards.
    fn takes(&self, mut at: u64, request: &Request) -> (Span, u64) {
        if request.blocks == 0 {
            return (self.profile.takes(at, request), at);
        }
        let mut takes = Span::ZERO;
        let mut access = |place: u64, sectors: u32| {
            takes += self.profile.takes(at, &Request { slba: place, blocks: sectors, ..*request });
            at = place.saturating_add(sectors.into());
        };
        match request.is_read {
            true => self.map.pieces(request.slba, request.blocks, &mut access),
            false => access(self.map.next_write(), request.blocks),
        }
        (takes, at)
    }
}

impl Predictor for MittSmr {
    fn predict(&self, request: &Request, now: Time) -> Prediction {
        let state = self.state.borrow();
        let wait = state.line.wait(now);
        let (takes, _) = self.takes(state.at, request);
        Prediction { latency: wait + takes, wait, ..Prediction::default() }
    }

    fn accept(&self, request: &Request, _: &Prediction, now: Time) -> u64 {
        let state = &mut *self.state.borrow_mut();
        let (takes, at) = self.takes(state.at, request);
        state.at = at;
        let turn = state.line.join(takes, now);
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

impl CleaningWatch for MittSmr {
    fn began(&self, steps: &[CleaningStep]) {
        let (state, now) = (&mut *self.state.borrow_mut(), self.sim.now());
        for step in steps {
            let request = Request {
                is_read: !step.is_write,
                slba: step.place,
                blocks: step.sectors,
                class: 0,
                tenant: 0,
                deadline: None,
                arrived: now,
            };
            let turn = state.line.join(self.profile.takes(state.at, &request), now);
            state.at = step.place.saturating_add(step.sectors.into());
            state.steps.push_back(turn);
        }
    }

    fn step_ended(&self) {
        let (state, now) = (&mut *self.state.borrow_mut(), self.sim.now());
        if let Some(turn) = state.steps.pop_front() {
            state.line.end(turn, now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::profile::tests::{profile, request};
    use super::*;
    use nandscape_sim::Executor;

    /// Blocks from 100 on are in the cache from sector 0 on, the others a thousand sectors away.
    struct Map;

    impl ShingleMap for Map {
        fn pieces(&self, slba: u64, blocks: u32, told: &mut dyn FnMut(u64, u32)) {
            let outside = 100_u64.saturating_sub(slba).min(blocks.into()) as u32;
            if outside > 0 {
                told(1_000 + slba, outside);
            }
            if outside < blocks {
                told(slba.saturating_sub(100), blocks - outside);
            }
        }

        fn next_write(&self) -> u64 {
            0
        }
    }

    #[test]
    fn pieces_add_up_and_a_cleaning_is_known_until_its_last_step() {
        let mut executor = Executor::new();
        let sim = executor.sim();
        let mitt = MittSmr::new(&sim, profile(), Rc::new(Map), &Config::default());
        let ms = Span::from_ms;
        let clock = sim.clone();
        executor
            .block_on(async {
                let now = clock.now();
                // One piece at the arm, one a thousand sectors away, and both together.
                assert_eq!(mitt.predict(&request(true, 100, 8), now).latency, ms(1));
                assert_eq!(mitt.predict(&request(true, 0, 8), now).latency, ms(2));
                assert_eq!(mitt.predict(&request(true, 92, 16), now).latency, ms(4));
                let step = |is_write| CleaningStep { is_write, place: 5_000, sectors: 8 };
                mitt.began(&[step(false), step(true)]);
                // The write begins 8 sectors before the end of the read.
                let wait = mitt.predict(&request(true, 0, 8), now).wait;
                assert!(wait > ms(4) && wait < Span::from_us(4_100), "{wait}");
                clock.sleep(ms(3)).await;
                mitt.step_ended();
                let left = mitt.predict(&request(true, 0, 8), clock.now()).wait;
                assert_eq!(left, wait - ms(2), "the read took a millisecond more");
                clock.sleep(ms(3)).await;
                mitt.step_ended();
                assert!(mitt.predict(&request(true, 0, 8), clock.now()).wait.is_zero());
                mitt.step_ended();
            })
            .unwrap();
    }
}
