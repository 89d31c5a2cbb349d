//! The extension module `nandscape._native`: runs and sweeps for the Python package, which gives them their form in Python.
//! It uses the same crates as the command, so that both report the same bytes.
//!
//! | file | what |
//! |---|---|
//! | `cluster` | points that are measured elsewhere |
//! | `compare` | reports side by side |
//! | `error` | failures as Python's exceptions |
//! | `stop` | work without the interpreter's lock, which Ctrl-C ends |
//! | `keys` | keys of Python as those of a sweep |
//! | `lab` | the claims of the source papers |
//! | `lists` | built-in drives and workloads, and all keys |
//! | `local` | points of a sweep whose policies are functions |
//! | `policies` | policies that are functions of Python |
//! | `requests` | the requests of a run as columns |
//! | `simulate` | one run |
//! | `sweep` | many runs |
//! | `traces` | traces in other formats |
//!
//! Left out: the forms of results, which are Python's (`nandscape/`), and everything if the feature `module` is off.

#![cfg(feature = "module")]

mod cluster;
mod compare;
mod error;
mod keys;
mod lab;
mod lists;
mod local;
mod policies;
mod requests;
mod simulate;
mod stop;
mod sweep;
mod traces;

/// Runs and sweeps; private to the package.
#[pyo3::pymodule(name = "_native")]
mod native {
    #[pymodule_export]
    use super::cluster::measure;
    #[pymodule_export]
    use super::compare::compare;
    #[pymodule_export]
    use super::lab::{claims, measure_claims};
    #[pymodule_export]
    use super::lists::{drives, key_list, resolved, version, workload_list};
    #[pymodule_export]
    use super::policies::{BufferFill, Candidate, Plane};
    #[pymodule_export]
    use super::simulate::{Finished, find_rate, simulate};
    #[pymodule_export]
    use super::sweep::sweep;
    #[pymodule_export]
    use super::traces::convert_trace;
}
