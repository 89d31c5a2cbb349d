//! ttFlash (Li 2020, 3.3 and 6.3), and its motivation: reads that avoid collections.
//!
//! | file | what |
//! |---|---|
//! | `ttflash_*`, `gc_tail_motivation` | an experiment each |
//! | `rig` | what these experiments share |

pub(crate) mod gc_tail_motivation;
pub(crate) mod rig;
pub(crate) mod ttflash_arithmetic;
pub(crate) mod ttflash_filebench;
pub(crate) mod ttflash_tail;
pub(crate) mod ttflash_wear;
