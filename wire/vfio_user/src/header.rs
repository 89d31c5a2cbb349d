//! The header of every message ("Header"), commands ("Commands") and the error numbers of replies.

use zerocopy::little_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Begins every message and every reply.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Header {
    /// Chosen by the sender of a command; the reply has the same.
    pub id: U16,
    /// A [`Command`].
    pub command: U16,
    /// Bytes of the message with this header.
    pub size: U32,
    /// [`Header::REPLY`] and the like.
    pub flags: U32,
    /// An error number of the system, in a reply with [`Header::ERROR`].
    pub error: U32,
}

const _: () = assert!(size_of::<Header>() == 16);

impl Header {
    /// Bytes of a header.
    pub const BYTES: usize = 16;
    /// The bits of `flags` that hold the type: 0 is a command.
    pub const TYPE: u32 = 0xf;
    /// The type of a reply.
    pub const REPLY: u32 = 1;
    /// The sender of a command wants no reply.
    pub const NO_REPLY: u32 = 1 << 4;
    /// The command has failed; the reply has no data.
    pub const ERROR: u32 = 1 << 5;

    /// The header of a command with `payload` bytes behind it.
    pub fn command(id: u16, command: Command, payload: usize) -> Header {
        let size = (Header::BYTES + payload) as u32;
        Header { id: id.into(), command: command.0.into(), size: size.into(), ..Header::default() }
    }

    /// The header of a reply to this command with `payload` bytes behind it.
    pub fn reply(&self, payload: usize) -> Header {
        let size = (Header::BYTES + payload) as u32;
        Header { size: size.into(), flags: Header::REPLY.into(), error: 0.into(), ..*self }
    }

    /// The reply that reports the failure of this command.
    pub fn failure(&self, error: Errno) -> Header {
        Header { flags: (Header::REPLY | Header::ERROR).into(), error: error.0.into(), ..self.reply(0) }
    }

    /// Whether it begins a command, and not a reply.
    pub fn is_command(&self) -> bool {
        self.flags.get() & Header::TYPE == 0
    }

    /// Whether the sender waits for a reply.
    pub fn wants_reply(&self) -> bool {
        self.flags.get() & Header::NO_REPLY == 0
    }
}

/// The number of a command.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Command(pub u16);

impl Command {
    /// Agree on a version and on limits.
    pub const VERSION: Command = Command(1);
    /// Memory of the client that the device may reach.
    pub const DMA_MAP: Command = Command(2);
    /// Memory that it may reach no more.
    pub const DMA_UNMAP: Command = Command(3);
    /// The description of the device.
    pub const DEVICE_GET_INFO: Command = Command(4);
    /// The description of a region, and whether it can be mapped.
    pub const DEVICE_GET_REGION_INFO: Command = Command(5);
    /// Descriptors that stand for writes to a region.
    pub const DEVICE_GET_REGION_IO_FDS: Command = Command(6);
    /// How many interrupts of a kind there are.
    pub const DEVICE_GET_IRQ_INFO: Command = Command(7);
    /// An action on interrupts.
    pub const DEVICE_SET_IRQS: Command = Command(8);
    /// Read a region.
    pub const REGION_READ: Command = Command(9);
    /// Write a region.
    pub const REGION_WRITE: Command = Command(10);
    /// From the server: read memory of the client.
    pub const DMA_READ: Command = Command(11);
    /// From the server: write memory of the client.
    pub const DMA_WRITE: Command = Command(12);
    /// Reset the device.
    pub const DEVICE_RESET: Command = Command(13);
    /// Log which pages the device writes.
    pub const DIRTY_PAGES: Command = Command(14);
    /// Several writes of regions.
    pub const REGION_WRITE_MULTI: Command = Command(15);
}

/// An error number of Linux (`<asm-generic/errno.h>`).
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Errno(pub u32);

impl Errno {
    /// There is no such map.
    pub const ENOENT: Errno = Errno(2);
    /// The device has ended.
    pub const EIO: Errno = Errno(5);
    /// The message is longer than agreed.
    pub const E2BIG: Errno = Errno(7);
    /// Part of it is mapped already.
    pub const EEXIST: Errno = Errno(17);
    /// A field has a value that is not allowed.
    pub const EINVAL: Errno = Errno(22);
    /// There are as many maps as can be.
    pub const ENOSPC: Errno = Errno(28);
    /// The command is not known.
    pub const ENOSYS: Errno = Errno(38);
    /// The command, or its request, is known and not supported.
    pub const EOPNOTSUPP: Errno = Errno(95);
}
