//! OX-Block and OX-ELEOS (OX 2019): FTLs on the controller.
//!
//! | file | what |
//! |---|---|
//! | `ox_*`, `eleos_*` | an experiment each |
//! | `rig` | what these experiments share |

pub(crate) mod eleos_cache;
pub(crate) mod eleos_scale;
pub(crate) mod ox_checkpoint;
pub(crate) mod ox_fabric;
pub(crate) mod ox_gc;
pub(crate) mod ox_mq;
pub(crate) mod ox_recovery;
pub(crate) mod ox_sizes;
pub(crate) mod rig;
