//! Reads enough to reconstruct, when the requested chunks have not arrived within a time. Members need no extension for
//! it.

use nandscape_sim::{Span, Time};

use super::{Sends, SubState, TOLD, TailPolicy, View};

/// See the file.
#[derive(Copy, Clone, Debug)]
pub struct Speculative {
    /// The time to wait.
    pub timeout: Span,
}

impl TailPolicy for Speculative {
    fn next(&self, view: &View<'_>, sends: &mut Sends) -> Option<Time> {
        view.ask_wanted(TOLD, sends);
        sends.extend(view.busy().into_iter().map(|(member, _)| (member, TOLD)));
        let due = view.begun + self.timeout;
        if view.now < due {
            return Some(due);
        }
        // Late chunks are not counted on: enough is read to do without them.
        let late = |member: usize| view.subs[member].is_wanted && view.subs[member].state == SubState::Flying;
        let asked = sends.clone();
        let is_new = |member: &usize| asked.iter().all(|(sent, _)| sent != member);
        let rest = (0..view.subs.len()).filter(|member| view.subs[*member].state == SubState::Idle).filter(is_new);
        let is_useful = |member: &usize| {
            let sub = &view.subs[*member];
            view.has_parity || view.subs.iter().enumerate().any(|(other, of)| late(other) && of.role == sub.role)
        };
        let mut count = view.subs.iter().filter(|sub| matches!(sub.state, SubState::Done)).count();
        count += view.subs.iter().filter(|sub| !sub.is_wanted && sub.state == SubState::Flying).count();
        for member in rest.filter(is_useful) {
            if view.has_parity && count >= view.data {
                break;
            }
            sends.push((member, TOLD));
            count += 1;
        }
        None
    }

    fn abandons(&self) -> bool {
        true
    }
}
