//! The length of windows for a drive's background work (TeaFA, Li 3.2.4, 3.2.5). A policy schedules them
//! ([`TurnPolicy`](crate::policy::TurnPolicy)).
//!
//! | file | what |
//! |---|---|
//! | `rules` | a drive's own properties, and the window that it recommends |
//! | `formulas` | what a window and an array hold, by the formulas |

mod formulas;
mod rules;

pub use formulas::{Bounds, Collections};
pub use rules::WindowRules;

/// The share of the buffer above which it is written outside a window: 7 of 8 slots.
pub const NEARLY_FULL: (u32, u32) = (7, 8);
