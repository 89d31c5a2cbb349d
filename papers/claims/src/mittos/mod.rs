//! MittOS (Li 2020, 3.1 and 3.5): reads with deadlines that fail fast.
//!
//! | file | what |
//! |---|---|
//! | `mitt_*` | an experiment each |
//! | `rig` | what these experiments share |

pub(crate) mod mitt_accuracy;
pub(crate) mod mitt_cost;
pub(crate) mod mitt_micro;
pub(crate) mod mitt_noop_cfq;
pub(crate) mod mitt_vs_others;
pub(crate) mod rig;
