//! Structures of NVMe over Fabrics and NVMe/TCP byte by byte, and the checks of headers: a row for each field, and any
//! bytes.

use nandscape_wire_nvme::discovery::{Entry, Header};
use nandscape_wire_nvme::fabrics::{Connect, ConnectData, Property};
use nandscape_wire_nvme::tcp::{Common, Data, Digests, Fatal, FatalStatus, Initialize, PduType, Receiver, Shape};
use nandscape_wire_nvme::{SubmissionEntry, tcp};
use proptest::prelude::*;
use zerocopy::{FromZeros, IntoBytes};

/// Sets a field of a structure that is zero otherwise, and gives its expected place.
macro_rules! fields {
    ($type:ident: $($field:ident = $value:expr, $offset:literal, $bytes:expr;)*) => {
        $({
            let mut data = $type::new_zeroed();
            data.$field = $value;
            let mut right = vec![0; size_of::<$type>()];
            right[$offset..$offset + $bytes.len()].copy_from_slice(&$bytes);
            assert_eq!(data.as_bytes(), right, stringify!($type.$field));
        })*
    };
}

#[test]
fn fields_are_where_the_specification_puts_them() {
    fields! { Connect:
        opcode = 0x7f, 0, [0x7f];
        cid = 0x0102.into(), 2, [2, 1];
        fctype = 1, 4, [1];
        record_format = 0x0304.into(), 40, [4, 3];
        queue = 0x0506.into(), 42, [6, 5];
        size_z = 0x0708.into(), 44, [8, 7];
        attributes = 4, 46, [4];
        keep_alive_ms = 0x0102_0304.into(), 48, [4, 3, 2, 1];
    }
    fields! { ConnectData:
        host_id = [7; 16], 0, [7; 16];
        controller = 0xffff.into(), 16, [0xff; 2];
        subsystem = [8; 256], 256, [8; 256];
        host = [9; 256], 512, [9; 256];
    }
    fields! { Property:
        attributes = 1, 40, [1];
        offset = 0x14.into(), 44, [0x14, 0, 0, 0];
        value = 0x0102_0304_0506_0708.into(), 48, [8, 7, 6, 5, 4, 3, 2, 1];
    }
    fields! { Header:
        generation = 2.into(), 0, [2];
        records = 3.into(), 8, [3];
        record_format = 1.into(), 16, [1];
    }
    fields! { Entry:
        transport = 3, 0, [3];
        family = 1, 1, [1];
        subsystem_type = 2, 2, [2];
        requirements = 6, 3, [6];
        port = 0x0102.into(), 4, [2, 1];
        controller = 0xffff.into(), 6, [0xff; 2];
        admin_size = 32.into(), 8, [32, 0];
        flags = 1.into(), 10, [1];
        service = [b'4'; 32], 32, [b'4'; 32];
        subsystem = [b'n'; 256], 256, [b'n'; 256];
        address = [b'1'; 256], 512, [b'1'; 256];
        security = 1, 768, [1];
    }
    fields! { Initialize:
        version = 1.into(), 8, [1];
        alignment_z = 2, 10, [2];
        digests = 3, 11, [3];
        limit = 0x0102_0304.into(), 12, [4, 3, 2, 1];
    }
    fields! { Data:
        cid = 0x0102.into(), 8, [2, 1];
        tag = 0x0304.into(), 10, [4, 3];
        offset = 5.into(), 12, [5];
        len = 6.into(), 16, [6];
    }
}

const BOTH: Digests = Digests { header: true, data: true };
const NONE: Digests = Digests { header: false, data: false };

fn common(kind: u8, flags: u8, header: u8, data_offset: u8, len: u32) -> Common {
    Common { kind, flags, header, data_offset, len: len.into() }
}

#[test]
fn each_field_of_a_header_is_checked() {
    let limit = Fatal::of(FatalStatus::LIMIT_EXCEEDED);
    // Header, digests, and the fault.
    let rows = [
        (common(4, 0, 72, 0, 72), NONE, Ok((72, 0))),
        (common(4, 0, 72, 72, 72 + 512), NONE, Ok((72, 512))),
        (common(4, 0, 72, 76, 76 + 512), NONE, Ok((76, 512))),
        (common(4, 1, 72, 0, 76), BOTH, Ok((76, 0))),
        (common(4, 3, 72, 76, 80 + 512), BOTH, Ok((76, 512))),
        (common(6, 4, 24, 24, 24 + 8_192), NONE, Ok((24, 8_192))),
        (common(2, 0, 24, 0, 24 + 72), NONE, Ok((24, 72))),
        (common(0, 0, 128, 0, 128), BOTH, Ok((128, 0))),
        // Types that are unknown, or are the controller's.
        (common(8, 0, 24, 0, 24), NONE, Err(Fatal::field(0))),
        (common(5, 0, 24, 0, 24), NONE, Err(Fatal::field(0))),
        (common(0xff, 0, 24, 0, 24), NONE, Err(Fatal::field(0))),
        // Digests that were not agreed on, or are missing.
        (common(4, 1, 72, 0, 76), NONE, Err(Fatal::field(1))),
        (common(4, 0, 72, 0, 72), BOTH, Err(Fatal::field(1))),
        (common(4, 2, 72, 72, 76 + 512), NONE, Err(Fatal::field(1))),
        (common(4, 1, 72, 76, 76 + 512), BOTH, Err(Fatal::field(1))),
        // Lengths of headers.
        (common(4, 0, 71, 0, 72), NONE, Err(Fatal::field(2))),
        (common(6, 0, 72, 72, 100), NONE, Err(Fatal::field(2))),
        // Offsets of data inside the header, or not aligned.
        (common(4, 0, 72, 68, 100), NONE, Err(Fatal::field(3))),
        (common(4, 0, 72, 74, 100), NONE, Err(Fatal::field(3))),
        (common(6, 0, 24, 0, 100), NONE, Err(Fatal::field(3))),
        // Lengths that leave no room for data, or are too long.
        (common(4, 0, 72, 72, 71), NONE, Err(Fatal::field(4))),
        (common(4, 0, 72, 100, 90), NONE, Err(Fatal::field(4))),
        (common(4, 0, 72, 72, 72 + 8_193), NONE, Err(Fatal::field(4))),
        (common(4, 3, 72, 76, 78), BOTH, Err(Fatal::field(4))),
        (common(6, 0, 24, 24, u32::MAX), NONE, Err(limit)),
        (common(2, 0, 24, 0, 24 + 129), NONE, Err(Fatal::field(4))),
        (common(2, 0, 24, 0, 23), NONE, Err(Fatal::field(4))),
        (common(0, 0, 128, 0, 129), NONE, Err(Fatal::field(4))),
    ];
    for (header, digests, right) in rows {
        let shape = Shape::of(&header, Receiver::Controller, digests, 8_192);
        assert_eq!(shape.map(|shape| (shape.lead(), shape.data)), right, "{header:?}");
    }
}

proptest! {
    /// Any header is refused, or has parts that sum to its length.
    #[test]
    fn any_header_is_refused_or_sums_up(
        kind in 0u8..12, flags in 0u8..16, header in prop::sample::select(vec![24u8, 72, 128, 0, 255]), offset: u8,
        len in prop_oneof![0u32..300, any::<u32>()], digests: (bool, bool), host: bool, max in 0u32..10_000,
    ) {
        let agreed = Digests { header: digests.0, data: digests.1 };
        let receiver = if host { Receiver::Host } else { Receiver::Controller };
        let header = common(kind, flags, header, offset, len);
        if let Ok(shape) = Shape::of(&header, receiver, agreed, max) {
            prop_assert_eq!(shape.len(), len as usize);
            prop_assert!(shape.data <= max.max(tcp::MAX_HEADER as u32) as usize);
        }
    }

    /// The other side accepts everything that one side makes.
    #[test]
    fn what_is_made_is_taken(digests: (bool, bool), data in 0usize..9_000, align in 1usize..=32, flags in 0u8..4) {
        let agreed = Digests { header: digests.0, data: digests.1 };
        let header = agreed.common(PduType::CAPSULE_CMD, flags << 2, 72, data, align * 4);
        let shape = Shape::of(&header, Receiver::Controller, agreed, 9_000).unwrap();
        prop_assert_eq!((shape.data, shape.len()), (data, header.len.get() as usize));
        prop_assert!(data == 0 || shape.lead().is_multiple_of(align * 4));
    }
}

#[test]
fn a_connect_is_a_submission_entry() {
    let mut connect = Connect::new_zeroed();
    connect.queue = 3.into();
    connect.sgl.len = 1_024.into();
    let entry = SubmissionEntry::from(connect);
    assert_eq!((entry.cdw10.get() >> 16, entry.sgl1().len.get()), (3, 1_024));
    assert_eq!(Connect::from(entry), connect);
}
