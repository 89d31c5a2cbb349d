//! One file per format: its line, its units, its reader and its writer.

pub(crate) mod alibaba;
pub(crate) mod blkparse;
pub(crate) mod disksim;
pub(crate) mod fio;
pub(crate) mod fio_v2;
pub(crate) mod fio_v3;
pub(crate) mod fiu;
pub(crate) mod mqsim;
pub(crate) mod msr;
pub(crate) mod replay;
pub(crate) mod spc;
pub(crate) mod tencent;
