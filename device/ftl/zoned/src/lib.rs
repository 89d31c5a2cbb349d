//! FTLs whose hosts write blocks in order.
//!
//! | folder | what |
//! |---|---|
//! | `zone` | the zone FTL, whose zones are written in order |
//! | `lsm` | the FTL for LSM-trees over it, whose units are sorted runs |
//! | `open_channel` | no FTL: the flash in chunks |

pub mod lsm;
pub mod open_channel;
pub mod zone;

pub use lsm::{LsmConfig, LsmFtl};
pub use open_channel::{OpenChannel, OpenChannelConfig};
pub use zone::{ZoneConfig, ZoneFtl};
