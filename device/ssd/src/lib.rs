//! An emulated SSD: a profile read, checked and turned into a drive.
//!
//! | file | what |
//! |---|---|
//! | `ssd` | a drive: its parts, and what can be asked of it |
//! | `saved` | the state of a drive at rest, taken out and put into a new one |
//! | `managed` | its flash and map, for a host that knows both |
//! | `part` | an FTL with its flash |
//! | `assemble` | from a profile to media, FTLs and controller |
//! | `owners` | which FTL owns which channel |
//! | `profile` | a profile as written: TOML, one on top of another, with changes |
//! | `keys` | every key, with its meaning |
//! | `values`, `aging_values` | how values are written |
//! | `resolve` | from keys to a drive's configuration, checked |
//! | `orders` | orders for collections of a drive that runs |
//! | `settings` | settings that can be changed while a drive runs |
//! | `store` | what a file says of the drive that it holds |
//! | `soundness` | whether a drive that was started from a file is sound |
//! | `policies` | which policy stands behind which name |
//! | `sizing` | how much flash a capacity needs |
//! | `builtin` | the profiles that come with it (`profiles/*.toml`) |

mod aging_values;
mod assemble;
mod builtin;
mod keys;
mod managed;
mod orders;
mod owners;
mod part;
mod policies;
mod profile;
mod resolve;
mod saved;
mod settings;
mod sizing;
mod soundness;
mod ssd;
mod store;
mod values;

pub use aging_values::Age;
pub use builtin::{BUILTIN, Builtin};
pub use keys::{KeyDoc, ProfileKeys, key_docs};
pub use managed::ManagedFlash;
pub use part::Part;
pub use policies::{MakePolicy, OwnPolicies};
pub use profile::{Profile, ProfileError};
pub use resolve::{Resolved, ResolvedPart};
pub use saved::{SavedDrive, SavedPart};
pub use sizing::Sizing;
pub use ssd::Ssd;
pub use store::StoredDrive;
pub use values::PartStore;
