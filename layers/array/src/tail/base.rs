//! Waits for the chunks requested, whatever the members do meanwhile.

use nandscape_sim::Time;

use super::{Sends, TOLD, TailPolicy, View};

/// See the file.
#[derive(Copy, Clone, Debug)]
pub struct Base;

impl TailPolicy for Base {
    fn asks_first(&self) -> Option<u32> {
        Some(TOLD)
    }

    fn next(&self, view: &View<'_>, sends: &mut Sends) -> Option<Time> {
        view.ask_wanted(TOLD, sends);
        sends.extend(view.busy().into_iter().map(|(member, _)| (member, TOLD)));
        None
    }
}
