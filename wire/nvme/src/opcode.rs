//! Opcodes (Base 5 and 7, NVM 3.3), as open enumerations.

use crate::lss::LIST;

/// The opcode of an admin command.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct AdminOpcode(pub u8);

impl AdminOpcode {
    /// Base 5.2.4.
    pub const DELETE_IO_SQ: AdminOpcode = AdminOpcode(0x00);
    /// Base 5.2.2.
    pub const CREATE_IO_SQ: AdminOpcode = AdminOpcode(0x01);
    /// Base 5.1.12.
    pub const GET_LOG_PAGE: AdminOpcode = AdminOpcode(0x02);
    /// Base 5.2.3.
    pub const DELETE_IO_CQ: AdminOpcode = AdminOpcode(0x04);
    /// Base 5.2.1.
    pub const CREATE_IO_CQ: AdminOpcode = AdminOpcode(0x05);
    /// Base 5.1.13.
    pub const IDENTIFY: AdminOpcode = AdminOpcode(0x06);
    /// Base 5.1.1.
    pub const ABORT: AdminOpcode = AdminOpcode(0x08);
    /// Base 5.1.25.
    pub const SET_FEATURES: AdminOpcode = AdminOpcode(0x09);
    /// Base 5.1.11.
    pub const GET_FEATURES: AdminOpcode = AdminOpcode(0x0a);
    /// Base 5.1.2.
    pub const ASYNCHRONOUS_EVENT_REQUEST: AdminOpcode = AdminOpcode(0x0c);
    /// Base 5.1.9.
    pub const FIRMWARE_COMMIT: AdminOpcode = AdminOpcode(0x10);
    /// Base 5.1.10.
    pub const FIRMWARE_IMAGE_DOWNLOAD: AdminOpcode = AdminOpcode(0x11);
    /// Base 5.1.21.
    pub const NAMESPACE_MANAGEMENT: AdminOpcode = AdminOpcode(0x0d);
    /// Base 5.1.5.
    pub const DEVICE_SELF_TEST: AdminOpcode = AdminOpcode(0x14);
    /// Base 5.1.20.
    pub const NAMESPACE_ATTACHMENT: AdminOpcode = AdminOpcode(0x15);
    /// Base 5.1.14.
    pub const KEEP_ALIVE: AdminOpcode = AdminOpcode(0x18);
    /// Base 5.1.7.
    pub const DIRECTIVE_SEND: AdminOpcode = AdminOpcode(0x19);
    /// Base 5.1.6.
    pub const DIRECTIVE_RECEIVE: AdminOpcode = AdminOpcode(0x1a);
    /// Base 5.2.5.
    pub const DOORBELL_BUFFER_CONFIG: AdminOpcode = AdminOpcode(0x7c);
    /// Base 5.1.10.
    pub const FORMAT_NVM: AdminOpcode = AdminOpcode(0x80);
    /// Base 5.1.22.
    pub const SANITIZE: AdminOpcode = AdminOpcode(0x84);
}

/// The opcode of an I/O command.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct IoOpcode(pub u8);

impl IoOpcode {
    /// Base 7.2.
    pub const FLUSH: IoOpcode = IoOpcode(0x00);
    /// NVM 3.3.6.
    pub const WRITE: IoOpcode = IoOpcode(0x01);
    /// NVM 3.3.4.
    pub const READ: IoOpcode = IoOpcode(0x02);
    /// NVM 3.3.7.
    pub const WRITE_UNCORRECTABLE: IoOpcode = IoOpcode(0x04);
    /// NVM 3.3.1.
    pub const COMPARE: IoOpcode = IoOpcode(0x05);
    /// NVM 3.3.8.
    pub const WRITE_ZEROES: IoOpcode = IoOpcode(0x08);
    /// NVM 3.3.3.
    pub const DATASET_MANAGEMENT: IoOpcode = IoOpcode(0x09);
    /// NVM 3.3.5.
    pub const VERIFY: IoOpcode = IoOpcode(0x0c);
    /// Base 7.6.
    pub const RESERVATION_REGISTER: IoOpcode = IoOpcode(0x0d);
    /// Base 7.8.
    pub const RESERVATION_REPORT: IoOpcode = IoOpcode(0x0e);
    /// Base 7.3.
    pub const IO_MANAGEMENT_RECEIVE: IoOpcode = IoOpcode(0x12);
    /// Base 7.4.
    pub const IO_MANAGEMENT_SEND: IoOpcode = IoOpcode(0x1d);
    /// Base 7.5.
    pub const RESERVATION_ACQUIRE: IoOpcode = IoOpcode(0x11);
    /// Base 7.7.
    pub const RESERVATION_RELEASE: IoOpcode = IoOpcode(0x15);
    /// NVM 3.3.2.
    pub const COPY: IoOpcode = IoOpcode(0x19);
    /// ZNS 3.4.3.
    pub const ZONE_MANAGEMENT_SEND: IoOpcode = IoOpcode(0x79);
    /// ZNS 3.4.2.
    pub const ZONE_MANAGEMENT_RECEIVE: IoOpcode = IoOpcode(0x7a);
    /// ZNS 3.4.1.
    pub const ZONE_APPEND: IoOpcode = IoOpcode(0x7d);
}

/// The direction of a command's data, which the low two bits of every opcode give (Base 3.1.2.1.1, "Opcode").
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Transfer {
    /// No data.
    None,
    /// From the host to the controller.
    ToController,
    /// From the controller to the host.
    ToHost,
    /// Both ways.
    Both,
}

impl Transfer {
    /// The direction that an opcode byte states.
    pub const fn of(opcode: u8) -> Transfer {
        match opcode & 0b11 {
            0b00 => Transfer::None,
            0b01 => Transfer::ToController,
            0b10 => Transfer::ToHost,
            _ => Transfer::Both,
        }
    }

    /// The number of a command's `len` data bytes that the host sends, the first ones: all, none, or the list of a
    /// batched read.
    pub const fn brings(self, len: u32) -> u32 {
        match self {
            Transfer::None | Transfer::ToHost => 0,
            Transfer::ToController => len,
            Transfer::Both if len < LIST as u32 => len,
            Transfer::Both => LIST as u32,
        }
    }

    /// Whether the host gets the data.
    pub const fn returns(self) -> bool {
        matches!(self, Transfer::ToHost | Transfer::Both)
    }
}
