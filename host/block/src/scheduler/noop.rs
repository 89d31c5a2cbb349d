//! First come, first served.

use std::collections::VecDeque;

use nandscape_sim::Time;

use super::Scheduler;
use crate::request::Request;

/// See the file.
#[derive(Default)]
pub struct Noop(VecDeque<u64>);

impl Scheduler for Noop {
    fn push(&mut self, key: u64, _: &Request, _: Option<u32>) {
        self.0.push_back(key);
    }

    fn pop(&mut self, _: Time, _: &dyn Fn(u32) -> bool) -> Option<u64> {
        self.0.pop_front()
    }
}
