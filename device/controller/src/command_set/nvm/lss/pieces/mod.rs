//! Namespaces whose pages are chains of pieces (OX 7.2.1, second and third form). The layout is that of
//! [`pieces`](nandscape_wire_nvme::pieces), and a [`PieceStore`](nandscape_device_ftl_ox::pieces::PieceStore) over the FTL keeps them.
//!
//! | file | what |
//! |---|---|
//! | `flush` | a buffer of pieces, all or none |
//! | `batch` | pages anywhere, by one command |
//! | `stores` | the store of each namespace |
//!
//! Commands on blocks are rejected: the blocks of such a namespace belong to the store. Left out: namespaces with metadata,
//! and drives that keep no data, which could not read their own tables.

mod batch;
mod flush;
mod stores;

use nandscape_device_ftl_core::Ftl;
use nandscape_device_ftl_ox::pieces::{Misfit, PieceError};
use nandscape_drive::Breakdown;
use nandscape_wire_nvme::vendor::{BATCHED_READ, LSS_FLUSH};
use nandscape_wire_nvme::{IoOpcode, Parameter, Status};

use super::super::Nvm;
use super::super::read::failure;
use super::super::write::refused;
use crate::command_set::{Command, Failure, Reply};
use crate::namespace::Namespace;
use crate::refusal::Refusal;

pub(in super::super) use stores::Stores;

/// How often a command reopens a store. More than twice is unexpected: whatever makes a store stale also ends commands.
const TRIES: u32 = 8;

impl<F: Ftl> Nvm<F> {
    /// Serves a command on such a namespace.
    pub(in super::super) async fn serve_on_pieces(&self, command: &Command<'_>, breakdown: &mut Breakdown) -> Reply {
        if let Err(status) = command.namespace.check_flags(command.entry) {
            return Err(Failure::from(status)).into();
        }
        match IoOpcode(command.entry.opcode) {
            LSS_FLUSH => self.flush_pieces(command, breakdown).await.into(),
            BATCHED_READ => self.read_pieces(command, breakdown).await.into(),
            IoOpcode::FLUSH => Box::pin(self.serve_whole::<()>(command, breakdown)).await,
            _ => Err(Status::INVALID_NAMESPACE.final_()).into(),
        }
    }
}

/// The failure of a command that a store rejects or cannot serve.
fn failed(namespace: &Namespace, error: PieceError) -> Failure {
    let malformed = || Failure::from(Refusal::of(Status::INVALID_FIELD, Parameter::DPTR).final_());
    match error {
        PieceError::Stale => Status::ABORTED_POWER_LOSS.into(),
        PieceError::Misfit(Misfit::Beyond) => Refusal::of(Status::LBA_OUT_OF_RANGE.final_(), Parameter::DPTR).into(),
        PieceError::Misfit(_) => malformed(),
        PieceError::TooLarge => super::super::atomic::too_large().into(),
        PieceError::Full => Status::CAPACITY_EXCEEDED.into(),
        PieceError::Read(error) => failure(namespace, error),
        PieceError::Corrupt => Status::UNRECOVERED_READ_ERROR.into(),
        PieceError::Refused(why) => refused(why).into(),
    }
}
