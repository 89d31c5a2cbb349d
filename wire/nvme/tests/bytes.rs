//! Data structures byte by byte, against the offsets that the specification prints (Base 5.1.12.1, 5.1.13.2; NVM 4.1.5).
//!
//! Each field is filled alone, and all bytes but its own must stay zero.

use nandscape_wire_nvme::identify::{
    Controller, IndependentNamespace, LbaFormat, Namespace, NamespaceGranularity, ascii,
};
use nandscape_wire_nvme::io::{CopyRange, LongCopyRange, ProtectionInformation};
use nandscape_wire_nvme::log::{CommandsAndEffects, FirmwareSlot, Identifiers, Smart, Telemetry};
use nandscape_wire_nvme::manage::{ControllerList, FormatNvm, Sanitize, SanitizeStatus, SelfTestLog};
use nandscape_wire_nvme::predictable_latency::Log;
use nandscape_wire_nvme::reservation::{Cdw10, Notification, Registered, RegisteredExtended, StatusHeader};
use nandscape_wire_nvme::vendor;
use zerocopy::{FromZeros, IntoBytes};

/// Checks that a structure of `size` bytes holds `expected` at `offset`, and zeros everywhere else.
fn expect(name: &str, bytes: &[u8], size: usize, offset: usize, expected: &[u8]) {
    let mut right = vec![0; size];
    right[offset..offset + expected.len()].copy_from_slice(expected);
    assert_eq!(bytes.len(), size, "{name}");
    let wrong = bytes.iter().zip(&right).position(|(byte, right)| byte != right);
    assert_eq!(wrong, None, "{name}: the first byte that is wrong");
}

/// Sets a field of a structure that is zero otherwise, and gives its expected place.
macro_rules! fields {
    ($type:ident, $size:literal: $($field:ident $([$index:literal])? $(.$part:ident)? = $value:expr, $offset:literal, $bytes:expr;)*) => {
        $({
            let mut data = $type::new_zeroed();
            data.$field $([$index])? $(.$part)? = $value;
            expect(stringify!($field), data.as_bytes(), $size, $offset, &$bytes);
        })*
    };
}

#[test]
fn identify_controller() {
    fields! { Controller, 4096:
        vid = 0x1234.into(), 0, [0x34, 0x12];
        ssvid = 0x5678.into(), 2, [0x78, 0x56];
        sn = ascii("SERIAL"), 4, *b"SERIAL              ";
        mn = ascii("MODEL"), 24, *b"MODEL                                   ";
        fr = ascii("1.0"), 64, *b"1.0     ";
        rab = 3, 72, [3];
        ieee = [1, 2, 3], 73, [1, 2, 3];
        cmic = 1, 76, [1];
        mdts = 5, 77, [5];
        cntlid = 0x0102.into(), 78, [2, 1];
        // 2.1.0: major, minor and tertiary from the top.
        ver = 0x0002_0100.into(), 80, [0, 1, 2, 0];
        rtd3r = 0x0102.into(), 84, [2, 1];
        rtd3e = 0x0304.into(), 88, [4, 3];
        oaes = 0x100.into(), 92, [0, 1, 0, 0];
        ctratt = 2.into(), 96, [2, 0, 0, 0];
        cntrltype = 1, 111, [1];
        fguid = [8; 16], 112, [8; 16];
        oacs = 0x0102.into(), 256, [2, 1];
        acl_z = 4, 258, [4];
        aerl_z = 3, 259, [3];
        frmw = 3, 260, [3];
        lpa = 0x26, 261, [0x26];
        elpe_z = 7, 262, [7];
        npss_z = 1, 263, [1];
        wctemp = 343.into(), 266, [0x57, 1];
        cctemp = 353.into(), 268, [0x61, 1];
        tnvmcap = 0x0102_0304u128.to_le_bytes(), 280, [4, 3, 2, 1];
        unvmcap = 0x0506u128.to_le_bytes(), 296, [6, 5];
        edstt = 0x0102.into(), 316, [2, 1];
        dsto = 1, 318, [1];
        fwug = 2, 319, [2];
        kas = 0x0304.into(), 320, [4, 3];
        sanicap = 0x0506.into(), 328, [6, 5];
        sqes = 0x66, 512, [0x66];
        cqes = 0x44, 513, [0x44];
        maxcmd = 0x0203.into(), 514, [3, 2];
        nn = 1.into(), 516, [1, 0, 0, 0];
        oncs = 0x00cd.into(), 520, [0xcd, 0];
        fuses = 1.into(), 522, [1];
        fna = 1, 524, [1];
        vwc = 7, 525, [7];
        awun_z = 0x0102.into(), 526, [2, 1];
        awupf_z = 0x0304.into(), 528, [4, 3];
        nwpc = 1, 531, [1];
        acwu_z = 0x0506.into(), 532, [6, 5];
        copy_formats = 3.into(), 534, [3];
        sgls = 0x0005_0001.into(), 536, [1, 0, 5];
        mnan = 4.into(), 540, [4];
        ioccsz = 4.into(), 1792, [4];
        iorcsz = 1.into(), 1796, [1];
        icdoff = 2.into(), 1800, [2];
        fcatt = 3, 1802, [3];
        msdbd = 1, 1803, [1];
        ofcs = 1.into(), 1804, [1];
        dctype = 2, 1806, [2];
        subnqn[0] = b'n', 768, *b"n";
        power_states[1] = [9; 32], 2080, [9; 32];
        vendor[0] = b'N', 3072, *b"N";
    }
}

#[test]
fn identify_namespace() {
    fields! { Namespace, 4096:
        nsze = 0x0102_0304_0506.into(), 0, [6, 5, 4, 3, 2, 1];
        ncap = 7.into(), 8, [7];
        nuse = 8.into(), 16, [8];
        nsfeat = 0x14, 24, [0x14];
        nlbaf_z = 1, 25, [1];
        flbas = 2, 26, [2];
        mc = 3, 27, [3];
        dpc = 4, 28, [4];
        dps = 5, 29, [5];
        nmic = 1, 30, [1];
        rescap = 0xff, 31, [0xff];
        fpi = 0x80, 32, [0x80];
        dlfeat = 9, 33, [9];
        nawun_z = 1.into(), 34, [1];
        nawupf_z = 2.into(), 36, [2];
        nacwu_z = 3.into(), 38, [3];
        nabsn_z = 4.into(), 40, [4];
        nabo = 5.into(), 42, [5];
        nabspf_z = 6.into(), 44, [6];
        noiob = 0x0102.into(), 46, [2, 1];
        nvmcap = 0x0708u128.to_le_bytes(), 48, [8, 7];
        npwg_z = 1.into(), 64, [1];
        npwa_z = 2.into(), 66, [2];
        npdg_z = 3.into(), 68, [3];
        npda_z = 4.into(), 70, [4];
        nows_z = 5.into(), 72, [5];
        mssrl = 0x0102.into(), 74, [2, 1];
        mcl = 0x0304.into(), 76, [4, 3];
        msrc_z = 127, 80, [127];
        nsattr = 1, 99, [1];
        nguid = [6; 16], 104, [6; 16];
        eui64 = [7; 8], 120, [7; 8];
        lbaf[0] = LbaFormat { ms: 8.into(), lbads: 9, rp: 1 }, 128, [8, 0, 9, 1];
        lbaf[63] = LbaFormat { ms: 0.into(), lbads: 12, rp: 0 }, 380, [0, 0, 12, 0];
        vendor[0] = 1, 384, [1];
    }
}

#[test]
fn smart() {
    fields! { Smart, 512:
        critical_warning = 1, 0, [1];
        // 308 K.
        temperature = 308.into(), 1, [0x34, 1];
        available_spare = 100, 3, [100];
        available_spare_threshold = 10, 4, [10];
        percentage_used = 5, 5, [5];
        data_units_read = 0x0102.into(), 32, [2, 1];
        data_units_written = 3.into(), 48, [3];
        host_reads = u64::MAX.into(), 64, [0xff; 8];
        host_writes = 5.into(), 80, [5];
        busy_minutes = 6.into(), 96, [6];
        power_cycles = 7.into(), 112, [7];
        power_on_hours = 8.into(), 128, [8];
        unsafe_shutdowns = 9.into(), 144, [9];
        media_errors = 10.into(), 160, [10];
        error_log_entries = 11.into(), 176, [11];
        warning_minutes = 12.into(), 192, [12];
        critical_minutes = 13.into(), 196, [13];
        sensors[7] = 14.into(), 214, [14];
    }
}

#[test]
fn other_logs() {
    fields! { CommandsAndEffects, 4096:
        admin[6] = 0x0020_0001.into(), 24, [1, 0, 0x20, 0];
        io[1] = 0x0010_0003.into(), 1028, [3, 0, 0x10, 0];
    }
    fields! { FirmwareSlot, 512:
        active = 1, 0, [1];
        revisions[0] = *b"0.1.0   ", 8, *b"0.1.0   ";
        revisions[6] = *b"7       ", 56, *b"7       ";
    }
    fields! { Telemetry, 512:
        lid = 7, 0, [7];
        ieee = [1, 2, 3], 5, [1, 2, 3];
        last_blocks[0] = 4.into(), 8, [4];
        last_blocks[2] = 5.into(), 12, [5];
        last_block_4 = 6.into(), 16, [6];
        host_scope = 2, 380, [2];
        host_generation = 8, 381, [8];
        controller_available = 1, 382, [1];
        controller_generation = 9, 383, [9];
        reason[0] = 10, 384, [10];
    }
    fields! { Log, 512:
        status = 1, 0, [1];
        events = 0x0102.into(), 2, [2, 1];
        writes_typical = 3.into(), 40, [3];
        longest_ms = 4.into(), 48, [4];
        other_ms_low = 5.into(), 64, [5];
        reads_left = 6.into(), 128, [6];
        left_ms = 7.into(), 144, [7];
    }
    fields! { Identifiers, 1024:
        ids[0] = 1.into(), 0, [1];
        ids[255] = 0x0010_0001.into(), 1020, [1, 0, 0x10, 0];
    }
}

#[test]
fn copy_ranges_and_protection_information() {
    let (slba, nlb_z) = (0x0102.into(), 7.into());
    let tags = (0x0304.into(), 0x0506.into());
    let short = CopyRange {
        slba,
        nlb_z,
        reference_tag: 0x0708_090a.into(),
        application_tag: tags.0,
        application_mask: tags.1,
        ..CopyRange::default()
    };
    let right = [&[2, 1, 0, 0, 0, 0, 0, 0, 7, 0][..], &[0; 6], &[10, 9, 8, 7, 4, 3, 6, 5]].concat();
    assert_eq!(short.as_bytes()[8..], right);
    let long = LongCopyRange {
        slba,
        nlb_z,
        reference_tag: [9; 10],
        application_tag: tags.0,
        application_mask: tags.1,
        ..LongCopyRange::default()
    };
    let right = [&[2, 1, 0, 0, 0, 0, 0, 0, 7, 0][..], &[0; 8], &[9; 10], &[4, 3, 6, 5]].concat();
    assert_eq!(long.as_bytes()[8..], right);
    let protection = ProtectionInformation {
        guard: 0x0102.into(),
        application_tag: 0x0304.into(),
        reference_tag: 0x0506_0708.into(),
    };
    assert_eq!(protection.as_bytes(), [1, 2, 3, 4, 5, 6, 7, 8]);
}

#[test]
fn namespaces() {
    fields! { IndependentNamespace, 4096:
        nsfeat = 1, 0, [1];
        nmic = 2, 1, [2];
        rescap = 3, 2, [3];
        fpi = 4, 3, [4];
        anagrpid = 5.into(), 4, [5];
        nsattr = 6, 8, [6];
        nstat = 7, 14, [7];
    }
    fields! { NamespaceGranularity, 4096:
        attributes = 1.into(), 0, [1];
        descriptors_z = 2, 4, [2];
        size = 3.into(), 32, [3];
        capacity = 4.into(), 40, [4];
    }
    assert_eq!(ControllerList::of([1, 0x0203]).as_bytes()[..8], [2, 0, 1, 0, 3, 2, 0, 0]);
    let format = FormatNvm(0x35b5);
    assert_eq!((format.lba_format(), format.extended(), format.protection()), (0x35, true, 5));
    assert_eq!((format.protection_first(), format.secure_erase()), (true, 2));
    let sanitize = Sanitize(0x602);
    assert_eq!((sanitize.action(), sanitize.no_deallocate(), sanitize.verifies()), (2, true, true));
}

#[test]
fn sanitize_and_self_test() {
    fields! { SanitizeStatus, 512:
        progress = 0x0102.into(), 0, [2, 1];
        status = 0x0102.into(), 2, [2, 1];
        cdw10 = 4.into(), 4, [4];
        estimates[5] = 7.into(), 28, [7];
    }
    fields! { SelfTestLog, 564:
        current = 1, 0, [1];
        completed = 50, 1, [50];
        results[1].status = 0x12, 32, [0x12];
        results[0].segment = 3, 5, [3];
        results[0].valid = 4, 6, [4];
        results[0].power_on_hours = 5.into(), 8, [5];
        results[0].nsid = 6.into(), 16, [6];
        results[0].lba = 7.into(), 20, [7];
        results[0].sct = 8, 28, [8];
        results[0].sc = 9, 29, [9];
    }
}

#[test]
fn reservations() {
    fields! { Notification, 64:
        count = 1.into(), 0, [1];
        kind = 2, 8, [2];
        available = 3, 9, [3];
        nsid = 4.into(), 12, [4];
    }
    fields! { StatusHeader, 24:
        generation = 1.into(), 0, [1];
        kind = 2, 4, [2];
        registered = 0x0304.into(), 5, [4, 3];
        persists = 1, 9, [1];
    }
    fields! { Registered, 24:
        cntlid = 0x0102.into(), 0, [2, 1];
        status = 1, 2, [1];
        hostid = [5; 8], 8, [5; 8];
        key = 6.into(), 16, [6];
    }
    fields! { RegisteredExtended, 64:
        cntlid = 0x0102.into(), 0, [2, 1];
        status = 1, 2, [1];
        key = 6.into(), 8, [6];
        hostid = [5; 16], 16, [5; 16];
    }
    let cdw10 = Cdw10(0x8000_060a);
    assert_eq!((cdw10.action(), cdw10.ignores_key(), cdw10.kind(), cdw10.persistence()), (2, true, 6, 2));
}

#[test]
fn drive_log() {
    let depth = vendor::QueueDepth { id: 1.into(), entries_z: 0x0203.into(), waiting: 4.into(), in_work: 5.into() };
    let mut log = vendor::DriveLog::new();
    (log.now, log.spare_blocks[1], log.erases[2]) = (7.into(), 8.into(), 9.into());
    (log.buffer_waits[5], log.commands[1], log.queues[63]) = (10.into(), 11.into(), depth);
    (log.upkeep.pages[6], log.upkeep.records, log.upkeep.transactions[1]) = (12.into(), 13.into(), 14.into());
    let bytes = log.as_bytes();
    assert_eq!(bytes[..16], [b'N', b'A', b'N', b'D', 1, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!((bytes[128], bytes[152], bytes[376], bytes[388]), (8, 9, 10, 11));
    assert_eq!((bytes[448], bytes[456], bytes[508]), (12, 13, 14));
    assert_eq!(bytes[1_016..], [1, 0, 3, 2, 4, 0, 5, 0]);
}

#[test]
fn atomic_ranges() {
    use nandscape_wire_nvme::vendor::AtomicRange;
    fields! { AtomicRange, 16:
        slba = 0x0102.into(), 0, [2, 1];
        blocks = 3.into(), 8, [3];
    }
    assert_eq!((vendor::ATOMIC_RANGES, vendor::ATOMIC_LIST), (256, 4_096));
}

#[test]
fn vendor_table() {
    let table = vendor::Capabilities {
        magic: vendor::MAGIC,
        version: 1.into(),
        reserved: 0.into(),
        attributes: (vendor::FAST_FAIL | 1).into(),
        deadline: 1.into(),
        hints: 0x0001_0103.into(),
        atomic_units: 0x0201.into(),
        atomic_bytes: 0x0010_0000.into(),
        functions: 3.into(),
    };
    let right =
        [b'N', b'A', b'N', b'D', 1, 0, 0, 0, 1, 0, 1, 0, 1, 0, 0, 0, 3, 1, 1, 0, 1, 2, 0, 0, 0, 0, 16, 0, 3, 0, 0, 0];
    assert_eq!(table.as_bytes(), right);
    assert_eq!(vendor::Capabilities::of(&[&right[..], &[9; 100]].concat()), Some(table));
    assert_eq!(vendor::Capabilities::of(&[0; 1_024]), None);
    assert_eq!(
        (vendor::FAST_FAIL, vendor::PREEMPT, vendor::PREDICT_ONLY, vendor::NOTICE),
        (1 << 16, 2 << 16, 4 << 16, 8 << 16)
    );
    assert_eq!((vendor::PAGE_MOVE.0, vendor::DEDUPLICATE.0, vendor::ATOMIC_WRITE.0), (0x81, 0x89, 0x8d));
    assert_eq!((vendor::LSS_FLUSH.0, vendor::BATCHED_READ.0), (0x85, 0x87));
    assert_eq!((vendor::GC_CONTROL.0, vendor::GC_STATUS.0, vendor::READY_FOR_READ.0), (0xc0, 0xc2, 0xc8));
}
