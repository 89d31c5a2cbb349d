//! The unanswered commands of one queue, and the transfers of their data.

use nandscape_wire_nvme::SubmissionEntry;
use nandscape_wire_nvme::opcode::Transfer as Direction;
use nandscape_wire_nvme::tcp::{Data as DataPdu, Fatal, FatalStatus, LAST};

use crate::data::Data;

/// The most bytes that one R2T requests. It is also MAXH2CDATA: a host sends each answer in one PDU.
pub(crate) const TRANSFER: u32 = 128 << 10;

/// A command.
pub(crate) struct Command {
    pub(crate) entry: SubmissionEntry,
    /// Its data, as soon as there is memory for it.
    pub(crate) data: Data,
    /// Bytes of its data.
    pub(crate) len: u32,
    /// The direction of the data.
    pub(crate) transfer: Direction,
    /// Bytes requested of the host, and the count that has arrived.
    pub(crate) requested: u32,
    pub(crate) came: u32,
    /// R2Ts that are not answered.
    pub(crate) transfers: u32,
    /// A digest of its data was wrong.
    pub(crate) damaged: bool,
}

impl Command {
    /// Bytes of its data that the host sends: the first ones.
    pub(crate) fn brings(&self) -> u32 {
        self.transfer.brings(self.len)
    }

    /// Bytes of the memory that it has for data which the host gets.
    pub(crate) fn reads(&self) -> usize {
        let has_memory = !matches!(self.data, Data::None);
        if has_memory && self.brings() == 0 { self.len as usize } else { 0 }
    }
}

/// Commands by number, which is their tag in the drive.
#[derive(Default)]
pub(crate) struct Commands {
    slots: Vec<Option<Command>>,
    free: Vec<u16>,
}

impl Commands {
    /// Commands at present.
    pub(crate) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Adds a command.
    pub(crate) fn insert(&mut self, command: Command) -> u16 {
        match self.free.pop() {
            Some(number) => {
                self.slots[usize::from(number)] = Some(command);
                number
            }
            None => {
                self.slots.push(Some(command));
                (self.slots.len() - 1) as u16
            }
        }
    }

    pub(crate) fn get(&self, number: u16) -> Option<&Command> {
        self.slots.get(usize::from(number))?.as_ref()
    }

    /// All of them.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Command> {
        self.slots.iter().flatten()
    }

    pub(crate) fn get_mut(&mut self, number: u16) -> Option<&mut Command> {
        self.slots.get_mut(usize::from(number))?.as_mut()
    }

    pub(crate) fn remove(&mut self, number: u16) -> Option<Command> {
        let command = self.slots.get_mut(usize::from(number))?.take()?;
        self.free.push(number);
        Some(command)
    }
}

/// An R2T that is not answered: which bytes of a command were requested of the host.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Transfer {
    pub(crate) command: u16,
    cid: u16,
    offset: u32,
    len: u32,
    came: u32,
}

/// R2Ts by transfer tag.
#[derive(Default)]
pub(crate) struct Transfers {
    slots: Vec<Option<Transfer>>,
    free: Vec<u16>,
}

impl Transfers {
    /// Whether the host owes no data.
    pub(crate) fn is_empty(&self) -> bool {
        self.slots.len() == self.free.len()
    }

    /// Whether there is a tag for another one.
    pub(crate) fn has_tag(&self) -> bool {
        !self.free.is_empty() || self.slots.len() < usize::from(u16::MAX)
    }

    /// A new one, for `len` bytes from `offset` on; its tag.
    pub(crate) fn begin(&mut self, command: u16, cid: u16, offset: u32, len: u32) -> u16 {
        let transfer = Some(Transfer { command, cid, offset, len, came: 0 });
        match self.free.pop() {
            Some(tag) => {
                self.slots[usize::from(tag)] = transfer;
                tag
            }
            None => {
                self.slots.push(transfer);
                (self.slots.len() - 1) as u16
            }
        }
    }

    /// The host sends `len` bytes of data with the given header; of which command, and whether the transfer ends with it.
    ///
    /// # Errors
    /// When that data was not requested.
    pub(crate) fn take(&mut self, header: &DataPdu, len: u32) -> Result<(u16, bool), Fatal> {
        let tag = header.tag.get();
        let slot = self.slots.get_mut(usize::from(tag));
        let transfer = slot.and_then(Option::as_mut).ok_or(Fatal::field(offset_of::TAG))?;
        if header.cid.get() != transfer.cid {
            return Err(Fatal::field(offset_of::CID));
        }
        if header.len.get() != len {
            return Err(Fatal::field(offset_of::LEN));
        }
        let left = transfer.len - transfer.came;
        if header.offset.get() != transfer.offset + transfer.came || len > left {
            return Err(Fatal::of(FatalStatus::OUT_OF_RANGE));
        }
        transfer.came += len;
        let (command, ends) = (transfer.command, len == left);
        if (header.common.flags & LAST != 0) != ends {
            return Err(Fatal::field(offset_of::FLAGS));
        }
        if ends {
            self.slots[usize::from(tag)] = None;
            self.free.push(tag);
        }
        Ok((command, ends))
    }
}

/// Byte offsets of the fields of H2CData.
mod offset_of {
    pub(super) const FLAGS: u32 = 1;
    pub(super) const CID: u32 = 8;
    pub(super) const TAG: u32 = 10;
    pub(super) const LEN: u32 = 16;
}

#[cfg(test)]
mod tests {
    use nandscape_wire_nvme::tcp::{Digests, PduType};

    use super::*;

    fn header(cid: u16, tag: u16, offset: u32, len: u32, last: bool) -> DataPdu {
        let flags = if last { LAST } else { 0 };
        let common = Digests::default().common(PduType::H2C_DATA, flags, 24, len as usize, 4);
        let (cid, tag, offset, len) = (cid.into(), tag.into(), offset.into(), len.into());
        DataPdu { common, cid, tag, offset, len, reserved_20: [0; 4] }
    }

    #[test]
    fn data_comes_in_order_and_as_it_was_asked_for() {
        let mut transfers = Transfers::default();
        let (first, second) = (transfers.begin(3, 77, 0, 8_192), transfers.begin(3, 77, 8_192, 4_096));
        assert_eq!(transfers.take(&header(77, second, 8_192, 4_096, true), 4_096), Ok((3, true)));
        assert_eq!(transfers.take(&header(77, first, 0, 4_096, false), 4_096), Ok((3, false)));
        for (wrong, what) in [
            (header(77, 9, 4_096, 4_096, true), Fatal::field(10)),
            (header(77, second, 8_192, 4_096, true), Fatal::field(10)),
            (header(78, first, 4_096, 4_096, true), Fatal::field(8)),
            (header(77, first, 4_096, 512, false), Fatal::field(16)),
            (header(77, first, 0, 4_096, true), Fatal::of(FatalStatus::OUT_OF_RANGE)),
            (header(77, first, u32::MAX, 4_096, true), Fatal::of(FatalStatus::OUT_OF_RANGE)),
        ] {
            assert_eq!(transfers.take(&wrong, 4_096), Err(what), "{wrong:?}");
        }
        assert_eq!(
            transfers.take(&header(77, first, 4_096, 4_097, true), 4_097),
            Err(Fatal::of(FatalStatus::OUT_OF_RANGE))
        );
        let mut other = Transfers::default();
        let tag = other.begin(0, 1, 0, 4_096);
        assert_eq!(other.take(&header(1, tag, 0, 4_096, false), 4_096), Err(Fatal::field(1)));
        assert!(!transfers.is_empty());
        assert_eq!(transfers.take(&header(77, first, 4_096, 4_096, true), 4_096), Ok((3, true)));
        assert!(transfers.is_empty());
    }
}
