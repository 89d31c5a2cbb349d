//! The meaning of a command's class (CDW2 3:0) for a scheduler with classes and priorities, as in Linux's
//! ioprio.
//!
//! | class of the command | |
//! |---|---|
//! | 0, 13, 14 | best effort, priority 4: none stated |
//! | 1 to 4 | real time, priorities 0 to 3 |
//! | 5 to 12 | best effort, priorities 0 to 7 |
//! | 15 | idle |

use nandscape_sim::Span;

use crate::request::Request;

/// Earlier classes precede all later ones.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Class {
    /// Before all others.
    RealTime,
    /// In turn, by priority.
    BestEffort,
    /// Served when no other class has work.
    Idle,
}

impl Class {
    /// All, in their order.
    pub const ALL: [Class; 3] = [Class::RealTime, Class::BestEffort, Class::Idle];
}

/// A class, and a priority in it: 0 is the highest, and 7 the lowest.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Standing {
    /// The class.
    pub class: Class,
    /// The priority.
    pub priority: u8,
}

impl Standing {
    /// That of a command.
    pub fn of(request: &Request) -> Standing {
        let (class, priority) = match request.class {
            class @ 1..=4 => (Class::RealTime, class - 1),
            class @ 5..=12 => (Class::BestEffort, class - 5),
            15 => (Class::Idle, 7),
            _ => (Class::BestEffort, 4),
        };
        Standing { class, priority }
    }

    /// The time of a turn. Priority 4 has `base`; each priority step changes it by a fifth, as in Linux's CFQ.
    pub fn slice(self, base: Span) -> Span {
        base / 5 * (9 - u64::from(self.priority.min(7)))
    }
}
