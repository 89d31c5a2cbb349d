//! Always reads the whole stripe with its parity, and ends with the first chunks that suffice (Li 3.4.2). With copies, reads all
//! copies of the wanted chunks.

use nandscape_sim::Time;

use super::{Sends, SubState, TOLD, TailPolicy, View};

/// See the file.
#[derive(Copy, Clone, Debug)]
pub struct Proactive;

impl TailPolicy for Proactive {
    fn next(&self, view: &View<'_>, sends: &mut Sends) -> Option<Time> {
        let is_useful = |member: usize| {
            let sub = &view.subs[member];
            view.has_parity || view.subs.iter().any(|other| other.is_wanted && other.role == sub.role)
        };
        let idle = |member: &usize| view.subs[*member].state == SubState::Idle && is_useful(*member);
        sends.extend((0..view.subs.len()).filter(idle).map(|member| (member, TOLD)));
        sends.extend(view.busy().into_iter().map(|(member, _)| (member, TOLD)));
        None
    }

    fn abandons(&self) -> bool {
        true
    }
}
