//! An emulated SSD: reads and checks a profile, and assembles a drive from it.
//!
//! | file | what |
//! |---|---|
//! | `ssd` | a drive: its parts, reports and operations |
//! | `saved` | the state of a drive at rest: saved, and restored to a new drive |
//! | `managed` | the flash and map of a drive, for a host that runs the FTL |
//! | `part` | an FTL with its flash |
//! | `assemble` | assembles media, FTLs and controller from a profile |
//! | `owners` | which FTL owns which channel |
//! | `profile` | a profile as written: layers of TOML, with changes |
//! | `keys` | every key, with its meaning |
//! | `values`, `aging_values` | the syntax of values |
//! | `resolve` | derives a drive's configuration from keys, and checks it |
//! | `orders` | orders for garbage collection of a running drive |
//! | `settings` | settings that can be changed while a drive runs |
//! | `store` | the description of a drive in its file |
//! | `soundness` | a check of a drive started from a file |
//! | `policies` | policies by name |
//! | `sizing` | how much flash a capacity needs |
//! | `builtin` | the built-in profiles (`profiles/*.toml`) |

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
