//! The commands that OX-ELEOS adds to the NVM command set (OX 7.2.2), if the FTL has transactions. The layout is that of
//! [`lss`](nandscape_wire_nvme::lss).
//!
//! | file | what |
//! |---|---|
//! | `flush` | a buffer of pages, all or none |
//! | `gathered` | scattered pages of a buffer as one memory |
//! | `batch` | pages anywhere, by one command |
//! | `pieces` | both for pages of any length, as chains of pieces |
//!
//! Left out: namespaces with metadata.

mod batch;
mod flush;
mod gathered;
mod pieces;

use nandscape_device_ftl_core::Extent;
use nandscape_wire_nvme::lss::PAGE;
use nandscape_wire_nvme::{Parameter, Status};

use crate::namespace::Namespace;
use crate::refusal::Refusal;

pub(super) use pieces::Stores;

/// A malformed buffer or list.
fn malformed() -> Refusal {
    Refusal::of(Status::INVALID_FIELD, Parameter::DPTR).final_()
}

impl Namespace {
    /// # Errors
    /// The namespace has metadata; its blocks have no pages.
    fn check_pages(&self) -> Result<(), Refusal> {
        match self.format.lba().metadata {
            0 => Ok(()),
            _ => Err(Status::INVALID_NAMESPACE.final_().into()),
        }
    }

    /// Where a logical page lies.
    fn page(&self, lpid: u64) -> Result<Vec<Extent>, Refusal> {
        let blocks = PAGE as u64 / u64::from(self.lba_bytes);
        let beyond = || Refusal::of(Status::LBA_OUT_OF_RANGE.final_(), Parameter::DPTR);
        let slba = lpid.checked_mul(blocks).ok_or_else(beyond)?;
        self.checked_extents(slba, blocks).map_err(|status| Refusal::of(status, Parameter::DPTR))
    }
}
