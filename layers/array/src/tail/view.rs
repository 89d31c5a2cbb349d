//! The state of a stripe read, and which chunks suffice for it.

use nandscape_sim::{Span, Time};
use smallvec::SmallVec;

use crate::level::Role;

/// The sub-I/Os to send: member, and attributes of the command (CDW2).
pub type Sends = SmallVec<[(usize, u32); 8]>;

/// The state of a member's chunk in a stripe read.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum SubState {
    /// It has not been asked.
    Idle,
    /// Missing: its member has failed, or is not rebuilt up to here.
    Missing,
    /// It is being read.
    Flying,
    /// It has been read.
    Done,
    /// The member has answered that it is busy for so long.
    Busy(Span),
    /// It could not be read.
    Failed,
}

/// A member's chunk in a stripe read.
#[derive(Copy, Clone, Debug)]
pub struct Sub {
    /// The content of the chunk.
    pub role: Role,
    /// Whether the host's data must be read from it.
    pub is_wanted: bool,
    /// Its state.
    pub state: SubState,
}

/// See the file.
#[derive(Debug)]
pub struct View<'a> {
    /// By member.
    pub subs: &'a [Sub],
    /// Data chunks of a stripe.
    pub data: usize,
    /// Whether the level has parity.
    pub has_parity: bool,
    /// When the read began.
    pub begun: Time,
    /// Now.
    pub now: Time,
}

impl Sub {
    /// Whether it has been read, is being read, or could be read without a wait behind background work.
    pub fn is_usable(&self) -> bool {
        matches!(self.state, SubState::Idle | SubState::Flying | SubState::Done)
    }

    fn is_active(&self) -> bool {
        matches!(self.state, SubState::Flying | SubState::Done)
    }
}

impl View<'_> {
    /// Whether chunk `index` is among those for which `has` holds.
    fn has_data(&self, index: usize, has: &dyn Fn(usize) -> bool) -> bool {
        self.subs.iter().enumerate().any(|(member, sub)| sub.role == Role::Data(index) && has(member))
    }

    fn wanted(&self) -> impl Iterator<Item = usize> {
        self.subs.iter().filter(|sub| sub.is_wanted).filter_map(|sub| match sub.role {
            Role::Data(index) => Some(index),
            _ => None,
        })
    }

    /// Whether the host's data is available from the members for which `has` holds.
    pub fn suffices(&self, has: &dyn Fn(usize) -> bool) -> bool {
        let direct = self.wanted().all(|index| self.has_data(index, has));
        direct || (self.has_parity && (0..self.subs.len()).filter(|member| has(*member)).count() >= self.data)
    }

    /// Whether it can be reconstructed from the chunks read.
    pub fn is_there(&self) -> bool {
        self.suffices(&|member| self.subs[member].state == SubState::Done)
    }

    /// The wanted ones that have not been asked.
    pub fn ask_wanted(&self, attributes: u32, sends: &mut Sends) {
        let idle = |(_, sub): &(usize, &Sub)| sub.is_wanted && sub.state == SubState::Idle;
        sends.extend(self.subs.iter().enumerate().filter(idle).map(|(member, _)| (member, attributes)));
    }

    /// Adds the fewest idle chunks that suffice to the chunks being read, and to `sends`, if that is possible.
    pub fn complete(&self, attributes: u32, sends: &mut Sends) {
        let active = |member: usize, sends: &Sends| {
            self.subs[member].is_active() || sends.iter().any(|(sent, _)| *sent == member)
        };
        for index in self.wanted().collect::<SmallVec<[usize; 8]>>() {
            if self.has_data(index, &|member| active(member, sends)) {
                continue;
            }
            let copy = |(_, sub): &(usize, &Sub)| sub.role == Role::Data(index) && sub.state == SubState::Idle;
            sends.extend(self.subs.iter().enumerate().find(copy).map(|(member, _)| (member, attributes)));
        }
        let is_enough = |sends: &Sends| self.suffices(&|member| active(member, sends));
        if is_enough(sends) || !self.has_parity {
            return;
        }
        let order = |sub: &Sub| match sub.role {
            Role::Data(_) => 0,
            Role::P => 1,
            Role::Q => 2,
        };
        for kind in 0..3 {
            for (member, sub) in self.subs.iter().enumerate() {
                if order(sub) == kind && sub.state == SubState::Idle && !active(member, sends) {
                    if is_enough(sends) {
                        return;
                    }
                    sends.push((member, attributes));
                }
            }
        }
    }

    /// The busy ones, with their remaining times.
    pub fn busy(&self) -> SmallVec<[(usize, Span); 8]> {
        let busy = |(member, sub): (usize, &Sub)| match sub.state {
            SubState::Busy(remaining) => Some((member, remaining)),
            _ => None,
        };
        self.subs.iter().enumerate().filter_map(busy).collect()
    }

    /// Evades busy members: reconstructs with `attributes` if that can be, and else resubmits the first of `order` that it
    /// takes, with `again`.
    pub fn evade(&self, order: &[usize], attributes: u32, again: u32, sends: &mut Sends) {
        let mut chosen: SmallVec<[usize; 8]> = SmallVec::new();
        let usable = |member: usize, chosen: &[usize]| self.subs[member].is_usable() || chosen.contains(&member);
        for member in order {
            if self.suffices(&|member| usable(member, &chosen)) {
                break;
            }
            chosen.push(*member);
        }
        // The longest that are not needed after all are left alone.
        for at in (0..chosen.len()).rev() {
            let mut fewer = chosen.clone();
            fewer.remove(at);
            if self.suffices(&|member| usable(member, &fewer)) {
                chosen = fewer;
            }
        }
        sends.extend(chosen.iter().map(|member| (*member, again)));
        self.complete(attributes, sends);
    }
}
