//! FOX (OX 2019, chapter 4): patterns on open-channel drives.
//!
//! | file | what |
//! |---|---|
//! | `oc_*` | an experiment each |
//! | `rig` | what these experiments share |

pub(crate) mod oc_fpga_rest;
pub(crate) mod oc_isolation;
pub(crate) mod oc_media;
pub(crate) mod oc_parallel_cnex;
pub(crate) mod oc_parallel_fpga;
pub(crate) mod rig;
