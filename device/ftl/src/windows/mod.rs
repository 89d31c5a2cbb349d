//! Windows in which a drive does its own work: how long they are to be (TeaFA, Li 3.2.4, 3.2.5). When they are is a policy
//! ([`TurnPolicy`](crate::policy::TurnPolicy)).
//!
//! | file | what |
//! |---|---|
//! | `rules` | what a drive knows of itself, and the window that it recommends |
//! | `formulas` | what a window and an array hold, by the formulas |

mod formulas;
mod rules;

pub use formulas::{Bounds, Collections};
pub use rules::WindowRules;

/// The share of the buffer above which it is written outside a window: 7 of 8 slots.
pub const NEARLY_FULL: (u32, u32) = (7, 8);
