//! YCSB on the Bw-tree of LLAMA (OX 7.4): the conventional form and the offloaded one under the same operations.
//!
//! | file | what |
//! |---|---|
//! | `load` | records, clients and their operations |
//! | `outcome` | the results, and figures of them |
//! | `spec` | a tree, its store and its host |
//! | `simulated` | on a drive of this process, in simulated time |
//! | `live` | on a drive behind NVMe/TCP or vfio-user, in wall time |
//!
//! Left out: several trees, and hosts other than one machine.
#![forbid(unsafe_code)]

#[cfg(target_os = "linux")]
mod live;
mod load;
mod outcome;
mod simulated;
mod spec;

#[cfg(target_os = "linux")]
pub use live::{LiveError, run_live};
pub use load::Load;
pub use nandscape_lab_workload::Wrong;
pub use outcome::{DeviceCpu, Outcome};
pub use simulated::{RunError, run, run_reported};
pub use spec::{Form, Spec};
