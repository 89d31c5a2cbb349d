//! Waits for what was asked, whatever the members do meanwhile.

use nandscape_sim::Time;

use super::{Sends, TailPolicy, View};

/// See the file.
#[derive(Copy, Clone, Debug)]
pub struct Base;

impl TailPolicy for Base {
    fn asks_first(&self) -> Option<u32> {
        Some(0)
    }

    fn next(&self, view: &View<'_>, sends: &mut Sends) -> Option<Time> {
        view.ask_wanted(0, sends);
        sends.extend(view.busy().into_iter().map(|(member, _)| (member, 0)));
        None
    }
}
