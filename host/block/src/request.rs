//! The properties of a command that schedulers and predictors use.

use nandscape_sim::{Span, Time};
use nandscape_wire_nvme::open_channel::VECTOR_READ;
use nandscape_wire_nvme::vendor::Attributes;
use nandscape_wire_nvme::{IoOpcode, SubmissionEntry};

/// A command on its way through the layer.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Request {
    /// Whether it is a Read or a Vector Read.
    pub is_read: bool,
    /// Its first logical block; 0 of one that names none.
    pub slba: u64,
    /// Logical blocks; 0 of one that names none.
    pub blocks: u32,
    /// Its workload class (CDW2 3:0); 0 is none.
    pub class: u8,
    /// Its tenant (CDW2 15:4).
    pub tenant: u16,
    /// The time from its submission in which it has to have ended; `None` is any. Only Reads have one.
    pub deadline: Option<Span>,
    /// When it was submitted.
    pub arrived: Time,
}

impl Request {
    /// From an entry. Reads without a deadline get `otherwise`.
    pub fn of(entry: &SubmissionEntry, otherwise: Option<Span>, arrived: Time) -> Request {
        let attributes = Attributes(entry.cdw2.get());
        let blocks = entry.blocks_in_a_row();
        let opcode = IoOpcode(entry.opcode);
        let own = Some(u64::from(entry.cdw3.get())).filter(|us| *us > 0).map(Span::from_us);
        Request {
            is_read: [IoOpcode::READ, VECTOR_READ].contains(&opcode),
            slba: if blocks > 0 { entry.slba() } else { 0 },
            blocks,
            class: attributes.class(),
            tenant: attributes.tenant(),
            deadline: own.or(otherwise).filter(|_| opcode == IoOpcode::READ),
            arrived,
        }
    }
}
