//! Every bit field against the bits that the specification gives it: a field reads these and no other. And constructors of
//! commands against the accessors of the other side.

use nandscape_wire_nvme::feature::{
    Arbitration, InterruptCoalescing, NumberOfQueues, PredictableLatencyWindow, TemperatureThreshold,
};
use nandscape_wire_nvme::io::{Cdw12, CopyCdw12, Prinfo, ProtectionInformation};
use nandscape_wire_nvme::log::LogPart;
use nandscape_wire_nvme::manage::{FormatNvm, Sanitize};
use nandscape_wire_nvme::register::ControllerConfiguration;
use nandscape_wire_nvme::reservation::Cdw10;
use nandscape_wire_nvme::sgl::{SglDescriptor, SglType};
use nandscape_wire_nvme::{CompletionEntry, IoOpcode, Parameter, Status, SubmissionEntry};
use proptest::prelude::*;
use zerocopy::{FromBytes, IntoBytes};

/// Checks that each field of a type over an integer is its bits of a value, from the first to behind the last.
macro_rules! bits {
    ($value:expr, $type:ident: $($field:ident = $from:literal..$end:literal;)*) => {
        $({
            let value = u64::from($value);
            let right = value >> $from & ((1u64 << ($end - $from)) - 1);
            prop_assert_eq!(u64::from($type($value as _).$field()), right, "{} of {:x}h", stringify!($field), value);
        })*
    };
}

proptest! {
    #[test]
    fn fields_of_command_dwords(value: u32) {
        bits! { value, Cdw12:
            nlb_z = 0..16; stc = 24..25; deac = 25..26; prinfo = 26..30; fua = 30..31; limited_retry = 31..32;
        }
        bits! { value, CopyCdw12:
            ranges_z = 0..8; format = 8..12; prinfo_read = 12..16; directive = 20..24; prinfo_write = 26..30; fua = 30..31;
        }
        bits! { value as u8, Prinfo:
            checks_reference_tag = 0..1; checks_application_tag = 1..2; checks_guard = 2..3; action = 3..4;
        }
        prop_assert_eq!(Prinfo(value as u8).checks(), value & 0b111 != 0);
        bits! { value, Cdw10: action = 0..3; ignores_key = 3..4; kind = 8..16; persistence = 30..32; }
        bits! { value, Sanitize:
            action = 0..3; allows_exit = 3..4; inverts = 8..9; no_deallocate = 9..10; verifies = 10..11;
        }
        prop_assert_eq!(u32::from(Sanitize(value).passes()) % 16, value >> 4 & 0xf);
        prop_assert!((1..=16).contains(&Sanitize(value).passes()));
        bits! { value, FormatNvm: extended = 4..5; protection = 5..8; protection_first = 8..9; secure_erase = 9..12; }
        prop_assert_eq!(u32::from(FormatNvm(value).lba_format()), value & 0xf | (value >> 12 & 0b11) << 4);
    }

    #[test]
    fn fields_of_features_and_registers(value: u32) {
        bits! { value, Arbitration: burst_log2 = 0..3; }
        let weights = [8, 16, 24].map(|first| (value >> first & 0xff) + 1);
        prop_assert_eq!(Arbitration(value).weights(), weights);
        prop_assert_eq!(Arbitration(value).burst(), Some(1 << (value & 0b111)).filter(|_| value & 0b111 < 0b111));
        bits! { value, TemperatureThreshold: kelvin = 0..16; sensor = 16..20; kind = 20..22; }
        bits! { value, InterruptCoalescing: threshold_z = 0..8; time = 8..16; }
        bits! { value, NumberOfQueues: submission_z = 0..16; completion_z = 16..32; }
        bits! { value, PredictableLatencyWindow: window = 0..3; }
        bits! { value, ControllerConfiguration:
            enabled = 0..1; command_set = 4..7; arbitration = 11..14; shutdown = 14..16; submission_entry_log2 = 16..20;
            completion_entry_log2 = 20..24;
        }
        prop_assert_eq!(ControllerConfiguration(value).page_bytes(), 4_096 << (value >> 7 & 0xf));
    }

    #[test]
    fn statuses_keep_type_code_and_flags(kind in 0u8..8, code: u8, dnr: bool, more: bool, phase: bool) {
        let mut status = Status::new(kind, code);
        status = if dnr { status.final_() } else { status };
        status = if more { status.with_more() } else { status };
        prop_assert_eq!((status.kind(), status.code(), status.do_not_retry(), status.more()), (kind, code, dnr, more));
        prop_assert_eq!((status.meaning(), Status::from_bits(status.bits())), (Status::new(kind, code), status));
        prop_assert_eq!(status.is_success(), (kind, code) == (0, 0));
        let mut entry = CompletionEntry::default();
        entry.set_status(status, phase);
        prop_assert_eq!((entry.status(), entry.phase()), (status, phase));
    }

    #[test]
    fn commands_say_what_they_were_made_of(slba: u64, blocks in 1u32..=0x1_0000, ranges in 1u32..=256, format in 0u8..16) {
        let entry = SubmissionEntry::blocks(IoOpcode::WRITE, 3, slba, blocks);
        prop_assert_eq!((entry.slba(), u32::from(Cdw12::of(&entry).nlb_z()) + 1, entry.nsid.get()), (slba, blocks, 3));
        let copy = SubmissionEntry::copy(3, slba, ranges, format);
        let fields = CopyCdw12(copy.cdw12.get());
        prop_assert_eq!((copy.slba(), u32::from(fields.ranges_z()) + 1, fields.format()), (slba, ranges, format));
        prop_assert_eq!(SubmissionEntry::deallocate(3, ranges).cdw10.get() + 1, ranges);
    }

    #[test]
    fn a_log_page_is_asked_for_in_dwords(dwords in 1u32..0x4000_0000, low: u32, high: u32) {
        let mut entry = SubmissionEntry::get_log_page(7, 0, dwords * 4);
        (entry.cdw12, entry.cdw13) = (low.into(), high.into());
        let right = LogPart { offset: u64::from(low) | u64::from(high) << 32, bytes: u64::from(dwords) * 4 };
        prop_assert_eq!(LogPart::of(&entry), right);
    }

    #[test]
    fn descriptors_stand_in_the_data_pointer(kind in 0u8..16, address: u64, len: u32, flags: u8) {
        let descriptor = SglDescriptor::new(SglType(kind), address, len);
        let entry = SubmissionEntry { flags, ..SubmissionEntry::default() }.with_sgl(descriptor);
        prop_assert_eq!((entry.sgl1(), descriptor.kind()), (descriptor, SglType(kind)));
        prop_assert_eq!(entry.flags, flags & 0x3f | 0x40, "the other flags stay");
    }

    #[test]
    fn a_parameter_is_a_byte_and_a_bit_of_the_command(dword in 0u16..16, bit in 0u16..32) {
        let bits = Parameter::at(dword, bit).bits();
        prop_assert_eq!((bits & 0xff, bits >> 8), (dword * 4 + bit / 8, bit % 8));
    }

    #[test]
    fn structures_are_their_bytes(bytes: [u8; 64]) {
        let entry = SubmissionEntry::read_from_bytes(&bytes).unwrap();
        prop_assert_eq!(entry.as_bytes(), bytes);
        let information = ProtectionInformation::read_from_bytes(&bytes[..8]).unwrap();
        let reference = u32::from_be_bytes(bytes[4..8].try_into().unwrap());
        prop_assert_eq!(information.guard.get(), u16::from_be_bytes([bytes[0], bytes[1]]));
        prop_assert_eq!((information.reference_tag.get(), information.as_bytes()), (reference, &bytes[..8]));
    }
}
