//! Tail policies: how the reads of a stripe are issued, and the reaction to a member's busy answer.
//!
//! A policy sees the state of the stripe's sub-I/Os whenever one of them has changed, and chooses which to send now.
//! The array sends them, and ends the read as soon as the data is present or can be reconstructed.
//!
//! | file | policy |
//! |---|---|
//! | `base` | waits for the chunks requested |
//! | `proactive` | always reads the whole stripe, and takes the first that suffice |
//! | `fast_fail` | members fail fast, and busy chunks are reconstructed (Tea1; Li 3.2.1) |
//! | `remaining_time` | as `fast_fail`, and resubmits the chunks that are busy for the shortest time (Tea2; Li 3.2.2) |
//! | `preempt` | as `fast_fail`, and resubmits with the flag that postpones the collection |
//! | `speculative` | reads the rest of the stripe when a time has passed |
//! | `view` | the state of a stripe read, and what suffices |
//!
//! Left out: windows, which are set on members with any policy (the file `windows`).

mod base;
mod fast_fail;
mod preempt;
mod proactive;
mod remaining_time;
mod speculative;
mod view;

use std::fmt;
use std::rc::Rc;

use nandscape_sim::{Seed, Span, Time};
use nandscape_wire_nvme::vendor::{FAST_FAIL, PREDICT_ONLY};

pub use base::Base;
pub use fast_fail::FastFail;
pub use preempt::Preempt;
pub use proactive::Proactive;
pub use remaining_time::RemainingTime;
pub use speculative::Speculative;
pub use view::{Sends, Sub, SubState, View};

/// The attributes of a read that waits: its completion reports whether background work delayed it, so that busy
/// members are counted alike for all policies.
pub(crate) const TOLD: u32 = FAST_FAIL | PREDICT_ONLY;

/// See the file.
pub trait TailPolicy: fmt::Debug {
    /// Which reads to send now, and the latest time at which the policy is called again.
    fn next(&self, view: &View<'_>, sends: &mut Sends) -> Option<Time>;

    /// The attributes of the first sub-I/Os, for a policy that begins with only the requested chunks and waits for an
    /// answer. Reads within one chunk are then sent without a call of the policy.
    fn asks_first(&self) -> Option<u32> {
        None
    }

    /// Whether a read may end while some of its sub-I/Os are under way. Their data is then kept apart from the host's
    /// memory.
    fn abandons(&self) -> bool {
        false
    }
}

/// The policies that a user may name.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub enum Technique {
    /// [`Base`].
    #[default]
    Base,
    /// [`Proactive`].
    Proactive,
    /// [`FastFail`].
    Tea1,
    /// [`RemainingTime`].
    Tea2,
    /// [`RemainingTime`], and members that take turns.
    TeaFa,
    /// [`Speculative`].
    Speculative,
    /// [`Preempt`].
    Preempt,
    /// [`Base`], and members that all collect at the same time.
    Harmonia,
    /// Two drives that change roles: [`Rails`](crate::Rails) in place of an array.
    Rails,
}

impl Technique {
    /// All, by the names that users give them.
    pub const ALL: [(&str, Technique); 9] = [
        ("base", Technique::Base),
        ("proactive", Technique::Proactive),
        ("tea1", Technique::Tea1),
        ("tea2", Technique::Tea2),
        ("teafa", Technique::TeaFa),
        ("speculative", Technique::Speculative),
        ("preempt", Technique::Preempt),
        ("harmonia", Technique::Harmonia),
        ("rails", Technique::Rails),
    ];

    /// The name.
    pub fn name(self) -> &'static str {
        Technique::ALL.iter().find(|(_, technique)| *technique == self).map_or("", |(name, _)| name)
    }

    /// Whether it asks members to fail reads rather than have them wait. Over members that do not, it waits as [`Base`] does.
    pub fn asks_to_fail(self) -> bool {
        matches!(self, Technique::Tea1 | Technique::Tea2 | Technique::TeaFa | Technique::Preempt)
    }

    /// The policy; `timeout` is that of speculative reads, and `seed` that of choices by chance.
    pub fn policy(self, timeout: Span, seed: Seed) -> Rc<dyn TailPolicy> {
        match self {
            Technique::Base | Technique::Harmonia | Technique::Rails => Rc::new(Base),
            Technique::Proactive => Rc::new(Proactive),
            Technique::Tea1 => Rc::new(FastFail::new(seed)),
            Technique::Tea2 | Technique::TeaFa => Rc::new(RemainingTime),
            Technique::Speculative => Rc::new(Speculative { timeout }),
            Technique::Preempt => Rc::new(Preempt),
        }
    }
}
