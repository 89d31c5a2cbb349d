//! HIOPS (Shin 2017, chapter 3): the I/O path of a host with many drives.
//!
//! | file | what |
//! |---|---|
//! | `hiops_*` | an experiment each |
//! | `rig` | what these experiments share |

pub(crate) mod hiops_handler;
pub(crate) mod hiops_iops;
pub(crate) mod hiops_kv;
pub(crate) mod hiops_poll;
pub(crate) mod rig;
