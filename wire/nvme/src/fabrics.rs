//! NVMe over Fabrics: Connect, Disconnect, Property Get and Set, and their statuses (Base 6).
//!
//! Left out: authentication (Base 6.1, 6.2), which a controller here never requires.

use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::command::SubmissionEntry;
use crate::status::Status;

/// The opcode of all Fabrics commands (Base 6).
pub const FABRICS: u8 = 0x7f;
/// Property Set (Base 6.6).
pub const PROPERTY_SET: u8 = 0x00;
/// Connect (Base 6.3).
pub const CONNECT: u8 = 0x01;
/// Property Get (Base 6.5).
pub const PROPERTY_GET: u8 = 0x04;
/// Disconnect (Base 6.4).
pub const DISCONNECT: u8 = 0x08;

/// The qualified name of every discovery subsystem (Base 4.7.1).
pub const DISCOVERY_NQN: &str = "nqn.2014-08.org.nvmexpress.discovery";
/// The longest qualified name in bytes, without the terminating zero (Base 4.7).
pub const MAX_NQN: usize = 223;

/// The host takes any controller (Connect data, CNTLID).
pub const DYNAMIC: u16 = 0xffff;

/// Connect Incompatible Format.
pub const INCOMPATIBLE_FORMAT: Status = Status::new(1, 0x80);
/// Connect Controller Busy: the controller takes no more connections.
pub const CONTROLLER_BUSY: Status = Status::new(1, 0x81);
/// Connect Invalid Parameters: DW0 names the parameter, see [`invalid_parameter`].
pub const INVALID_PARAMETERS: Status = Status::new(1, 0x82);
/// Connect Invalid Host: the host may not use the subsystem.
pub const INVALID_HOST: Status = Status::new(1, 0x84);
/// Invalid Queue Type: Disconnect on an admin queue.
pub const INVALID_QUEUE_TYPE: Status = Status::new(1, 0x85);

/// The specification's name for a status of Connect or Disconnect; other commands use the same codes for other purposes.
pub const fn name(status: Status) -> &'static str {
    match (status.kind(), status.code()) {
        (1, 0x80) => "Connect Incompatible Format",
        (1, 0x81) => "Connect Controller Busy",
        (1, 0x82) => "Connect Invalid Parameters",
        (1, 0x83) => "Connect Restart Discovery",
        (1, 0x84) => "Connect Invalid Host",
        (1, 0x85) => "Invalid Queue Type",
        (1, 0x90) => "Discover Restart",
        (1, 0x91) => "Authentication Required",
        _ => status.name(),
    }
}

/// DW0 of a Connect that fails with [`INVALID_PARAMETERS`]: the byte offset of the parameter (IPO) in the command, or in
/// the data (IATTR, bit 16).
pub const fn invalid_parameter(offset: u16, in_data: bool) -> u32 {
    offset as u32 | (in_data as u32) << 16
}

/// Connect Attributes, bits 1:0: Priority Class of the queue, from urgent (0) to low (3).
pub const PRIORITY_CLASS: u8 = 0b11;
/// Connect Attributes, bit 2: SQ flow control is disabled on the queue.
pub const DISABLE_SQ_FLOW: u8 = 1 << 2;

/// The Connect command.
#[derive(Copy, Clone, PartialEq, Eq, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Connect {
    /// [`FABRICS`] (0).
    pub opcode: u8,
    /// PSDT as in other commands (1).
    pub flags: u8,
    /// Command Identifier (3:2).
    pub cid: U16,
    /// [`CONNECT`] (4).
    pub fctype: u8,
    /// (23:5).
    pub reserved_5: [u8; 19],
    /// SGL Descriptor 1 (39:24).
    pub sgl: crate::sgl::SglDescriptor,
    /// Record Format: 0 (41:40).
    pub record_format: U16,
    /// Queue ID (43:42).
    pub queue: U16,
    /// Submission Queue Size, counted from zero (45:44).
    pub size_z: U16,
    /// Connect Attributes (46).
    pub attributes: u8,
    /// (47).
    pub reserved_47: u8,
    /// Keep Alive Timeout in milliseconds; 0 is none (51:48).
    pub keep_alive_ms: U32,
    /// (63:52).
    pub reserved_52: [u8; 12],
}

const _: () = assert!(size_of::<Connect>() == 64);

/// The data of Connect.
#[derive(Clone, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct ConnectData {
    /// Host Identifier (15:0).
    pub host_id: [u8; 16],
    /// Controller ID: [`DYNAMIC`], or that of the association (17:16).
    pub controller: U16,
    /// (255:18).
    pub reserved_18: [u8; 238],
    /// NVM Subsystem NVMe Qualified Name (511:256).
    pub subsystem: [u8; 256],
    /// Host NVMe Qualified Name (767:512).
    pub host: [u8; 256],
    /// (1023:768).
    pub reserved_768: [u8; 256],
}

const _: () = assert!(size_of::<ConnectData>() == 1024);

/// The byte offsets of fields that Connect can be refused for.
pub mod offset {
    /// Flags, with PSDT, in the command.
    pub const FLAGS: u16 = 1;
    /// Queue ID, in the command.
    pub const QUEUE: u16 = 42;
    /// Submission Queue Size, in the command.
    pub const SIZE: u16 = 44;
    /// Connect Attributes, in the command.
    pub const ATTRIBUTES: u16 = 46;
    /// Host Identifier, in the data.
    pub const HOST_ID: u16 = 0;
    /// Controller ID, in the data.
    pub const CONTROLLER: u16 = 16;
    /// Subsystem name, in the data.
    pub const SUBSYSTEM: u16 = 256;
    /// Host name, in the data.
    pub const HOST: u16 = 512;
}

impl ConnectData {
    /// All fields zero.
    pub fn zeroed() -> ConnectData {
        ConnectData::new_zeroed()
    }
}

/// Property Get and Property Set.
#[derive(Copy, Clone, PartialEq, Eq, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Property {
    /// [`FABRICS`] (0).
    pub opcode: u8,
    /// (1).
    pub flags: u8,
    /// Command Identifier (3:2).
    pub cid: U16,
    /// [`PROPERTY_GET`] or [`PROPERTY_SET`] (4).
    pub fctype: u8,
    /// (39:5).
    pub reserved_5: [u8; 35],
    /// Attributes: the size in bits 2:0, [`SIZE_4`] or [`SIZE_8`] (40).
    pub attributes: u8,
    /// (43:41).
    pub reserved_41: [u8; 3],
    /// Offset (47:44).
    pub offset: U32,
    /// Value, of Property Set (55:48).
    pub value: U64,
    /// (63:56).
    pub reserved_56: [u8; 8],
}

const _: () = assert!(size_of::<Property>() == 64);

/// A property of 4 bytes.
pub const SIZE_4: u8 = 0;
/// A property of 8 bytes.
pub const SIZE_8: u8 = 1;

impl Property {
    /// Reads a property of 4 or 8 bytes.
    pub fn get(offset: u32, size: u8) -> Property {
        let mut property = Property::new_zeroed();
        (property.opcode, property.fctype, property.attributes) = (FABRICS, PROPERTY_GET, size);
        property.offset = offset.into();
        property
    }

    /// Writes a property of 4 bytes.
    pub fn set(offset: u32, value: u32) -> Property {
        let value = u64::from(value).into();
        Property { fctype: PROPERTY_SET, value, ..Property::get(offset, SIZE_4) }
    }
}

/// The bytes of a command in another of its forms.
macro_rules! forms {
    ($($form:ident),*) => {$(
        impl From<$form> for SubmissionEntry {
            fn from(form: $form) -> SubmissionEntry {
                zerocopy::transmute!(form)
            }
        }

        impl From<SubmissionEntry> for $form {
            fn from(entry: SubmissionEntry) -> $form {
                zerocopy::transmute!(entry)
            }
        }
    )*};
}

forms!(Connect, Property);

impl SubmissionEntry {
    /// Fabrics Command Type (byte 4), of an entry with the opcode [`FABRICS`].
    pub fn fabrics_type(&self) -> u8 {
        self.nsid.get() as u8
    }

    /// Disconnect (Base 6.4).
    pub fn disconnect() -> SubmissionEntry {
        SubmissionEntry { opcode: FABRICS, nsid: u32::from(DISCONNECT).into(), ..SubmissionEntry::default() }
    }
}

/// The text of a qualified name in a field of 256 bytes, or its fault: it is not terminated by a zero within
/// [`MAX_NQN`] bytes, is not UTF-8, or does not begin as qualified names do (Base 4.7).
pub fn qualified_name(field: &[u8; 256]) -> Result<&str, NameProblem> {
    let end = field.iter().position(|byte| *byte == 0).filter(|end| *end <= MAX_NQN);
    let text = field.get(..end.ok_or(NameProblem::NotTerminated)?).unwrap_or_default();
    let text = core::str::from_utf8(text).map_err(|_| NameProblem::NotText)?;
    if text.starts_with("nqn.") { Ok(text) } else { Err(NameProblem::Format) }
}

/// The fault of a qualified name.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum NameProblem {
    /// There is no zero within [`MAX_NQN`] bytes.
    NotTerminated,
    /// It is not UTF-8.
    NotText,
    /// It does not begin with `nqn.`.
    Format,
}

/// A name as a field of 256 bytes, which is terminated by zeros.
///
/// # Panics
/// When it is longer than [`MAX_NQN`] bytes.
pub fn name_field(name: &str) -> [u8; 256] {
    assert!(name.len() <= MAX_NQN, "a qualified name of {} bytes", name.len());
    let mut field = [0; 256];
    field.iter_mut().zip(name.bytes()).for_each(|(to, from)| *to = from);
    field
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_text_that_ends_in_time_and_begins_as_names_do() {
        assert_eq!(qualified_name(&name_field(DISCOVERY_NQN)), Ok(DISCOVERY_NQN));
        assert_eq!(qualified_name(&[b'n'; 256]), Err(NameProblem::NotTerminated));
        assert_eq!(qualified_name(&[0; 256]), Err(NameProblem::Format));
        let mut field = name_field("nqn.x");
        field[4] = 0xff;
        assert_eq!(qualified_name(&field), Err(NameProblem::NotText));
        let mut long = [b'x'; 256];
        long[..4].copy_from_slice(b"nqn.");
        long[MAX_NQN] = 0;
        assert!(qualified_name(&long).is_ok());
        (long[MAX_NQN], long[MAX_NQN + 1]) = (b'x', 0);
        assert_eq!(qualified_name(&long), Err(NameProblem::NotTerminated));
    }

    #[test]
    fn the_type_of_a_command_is_its_fifth_byte() {
        let entry = SubmissionEntry::from(Property::get(0x1c, SIZE_4));
        assert_eq!((entry.opcode, entry.fabrics_type()), (FABRICS, PROPERTY_GET));
        assert_eq!(entry.as_bytes()[40..48], [0, 0, 0, 0, 0x1c, 0, 0, 0]);
        assert_eq!(SubmissionEntry::disconnect().fabrics_type(), DISCONNECT);
        assert_eq!(invalid_parameter(offset::HOST, true), 0x1_0200);
    }
}
