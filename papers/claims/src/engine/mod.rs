//! The key-value engine on several drives (Shin 2017, chapter 5).
//!
//! | file | what |
//! |---|---|
//! | `kv_*` | an experiment each |
//! | `rig` | what these experiments share |

pub(crate) mod kv_load;
pub(crate) mod kv_memcached;
pub(crate) mod kv_percentiles;
pub(crate) mod kv_tail;
pub(crate) mod rig;
