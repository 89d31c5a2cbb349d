//! One row per malformed field: the status of the command, with Do Not Retry and More, and the location of the field in the
//! error log (Parameter Error Location).
//!
//! Left out: fields of commands that only hosts with their own queues send (`admin_queues`), and fields in the data of
//! namespace management (`namespaces`). Those tests check the same bits.

#[path = "../suite/common/mod.rs"]
mod common;
mod row;

use common::BLOCKS;
use nandscape_wire_nvme::identify::cns;
use nandscape_wire_nvme::{AdminOpcode, IoOpcode, NSID_ALL, Status as S, feature, log, vendor};
use row::{admin, check, copy, io, log_page};

const READ: IoOpcode = IoOpcode::READ;
const WRITE: IoOpcode = IoOpcode::WRITE;

#[test]
fn flags_and_namespaces() {
    check(vec![
        io(READ, 0, 1).is("PSDT 01b of a host in this process").flags(0x40).fails(S::INVALID_FIELD).at(0, 14),
        io(READ, 0, 1).is("PSDT 11b").flags(0xc0).fails(S::INVALID_FIELD).at(0, 14),
        io(READ, 0, 1).is("FUSE 11b").flags(0b11).fails(S::INVALID_FIELD).at(0, 8),
        io(READ, 0, 1).is("FUSE 01b alone").flags(0b01).ends(S::FUSED_MISSING),
        io(WRITE, 0, 1).is("FUSE 10b alone").flags(0b10).ends(S::FUSED_MISSING),
        io(READ, 0, 1).is("namespace 0").nsid(0).fails(S::INVALID_NAMESPACE).at(1, 0),
        io(READ, 0, 1).is("a namespace that there is not").nsid(2).fails(S::INVALID_FIELD).at(1, 0),
        io(READ, 0, 1).is("beyond NN").nsid(65).fails(S::INVALID_NAMESPACE).at(1, 0),
        io(READ, 0, 1).is("the broadcast value").nsid(NSID_ALL).fails(S::INVALID_FIELD).at(1, 0),
        io(IoOpcode::FLUSH, 0, 1).is("all namespaces").nsid(NSID_ALL).succeeds(),
        io(IoOpcode(0x7f), 0, 1).is("a reserved opcode").fails(S::INVALID_OPCODE).at(0, 0),
        io(IoOpcode(0x80), 0, 1).is("an opcode of the vendor").fails(S::INVALID_OPCODE).at(0, 0),
        admin(AdminOpcode::IDENTIFY).is("FUSE 01b").flags(0b01).fails(S::INVALID_FIELD).at(0, 8),
        admin(AdminOpcode::IDENTIFY).is("PSDT 01b").flags(0x40).fails(S::INVALID_FIELD).at(0, 14),
    ]);
}

#[test]
fn blocks() {
    let mut rows = Vec::new();
    for opcode in
        [READ, WRITE, IoOpcode::COMPARE, IoOpcode::VERIFY, IoOpcode::WRITE_ZEROES, IoOpcode::WRITE_UNCORRECTABLE]
    {
        rows.extend([
            io(opcode, BLOCKS, 1).is("SLBA beyond the end").fails(S::LBA_OUT_OF_RANGE).at(10, 0),
            io(opcode, BLOCKS - 1, 2).is("NLB beyond the end").fails(S::LBA_OUT_OF_RANGE).at(10, 0),
            io(opcode, u64::MAX, 2).is("SLBA and NLB beyond 64 bits").fails(S::LBA_OUT_OF_RANGE).at(10, 0),
        ]);
    }
    for opcode in [READ, WRITE, IoOpcode::COMPARE] {
        rows.extend([
            io(opcode, 0, 257).is("NLB beyond MDTS").fails(S::INVALID_FIELD).at(12, 0),
            io(opcode, 0, 2).is("data of a block for two").bytes(512).fails(S::DATA_SGL_LENGTH_INVALID).at(6, 0),
        ]);
    }
    rows.extend([
        io(WRITE, 0, 1).is("no data").bytes(0).fails(S::DATA_TRANSFER_ERROR),
        io(WRITE, 0, 1).is("DTYPE streams").dword(12, 1 << 20).fails(S::INVALID_FIELD).at(12, 20),
        io(WRITE, 0, 1).is("DTYPE reserved").dword(12, 0xf << 20).fails(S::INVALID_FIELD).at(12, 20),
        io(IoOpcode::WRITE_UNCORRECTABLE, 0, 1).is("DTYPE").dword(12, 1 << 20).fails(S::INVALID_FIELD).at(12, 20),
        io(IoOpcode::COMPARE, 0, 1).is("other data").filled(9).retries(S::COMPARE_FAILURE),
        io(IoOpcode::VERIFY, 0, 257).is("NLB beyond MDTS, without data").succeeds(),
        io(IoOpcode::WRITE_ZEROES, 0, 257).is("NLB beyond MDTS, without data").succeeds(),
    ]);
    check(rows);
}

#[test]
fn lists_of_ranges() {
    let dsm = |ranges: u32, attributes| {
        io(IoOpcode::DATASET_MANAGEMENT, 0, 1).dword(10, ranges - 1).dword(11, attributes).dword(12, 0)
    };
    let beyond = [&[0; 4][..], &1u32.to_le_bytes(), &BLOCKS.to_le_bytes()].concat();
    check(vec![
        dsm(1, 8).is("a reserved attribute").bytes(16).fails(S::INVALID_FIELD).at(11, 3),
        dsm(2, 4).is("data of a range for two").bytes(16).fails(S::DATA_SGL_LENGTH_INVALID).at(6, 0),
        dsm(1, 4).is("a range beyond the end").data(&beyond).fails(S::LBA_OUT_OF_RANGE),
        dsm(1, 3).is("integral read and write").bytes(16).succeeds(),
        copy(0, &[(0, 1)]).is("descriptor format 2h").dword(12, 2 << 8).fails(S::INVALID_FIELD).at(12, 8),
        copy(0, &[(0, 1)]).is("DTYPE").dword(12, 1 << 20).fails(S::INVALID_FIELD).at(12, 20),
        copy(0, &[(0, 1); 129]).is("NR beyond MSRC").fails(S::COMMAND_SIZE_LIMIT_EXCEEDED).at(12, 0),
        copy(0, &[(0, 257)]).is("NLB of a range beyond MSSRL").fails(S::COMMAND_SIZE_LIMIT_EXCEEDED),
        copy(0, &[(0, 256); 9]).is("all ranges beyond MCL").fails(S::COMMAND_SIZE_LIMIT_EXCEEDED),
        copy(0, &[(0, 1); 2]).is("data of a range for two").bytes(32).fails(S::DATA_SGL_LENGTH_INVALID).at(6, 0),
        copy(0, &[(BLOCKS, 1)]).is("a source beyond the end").fails(S::LBA_OUT_OF_RANGE),
        copy(BLOCKS - 1, &[(0, 2)]).is("the destination beyond the end").fails(S::LBA_OUT_OF_RANGE).at(10, 0),
    ]);
}

/// Blocks of 512 + 8 bytes with protection information, extended unless the row differs.
#[test]
fn protection_information() {
    let (type_1, type_3, separate) = (2 | 1 << 4 | 1 << 5, 2 | 1 << 4 | 3 << 5, 2 | 1 << 5);
    let prinfo = |opcode, field: u32| io(opcode, 5, 1).bytes(520).formatted(type_1).dword(12, field << 26);
    let prinfos = |read: u32, write: u32, format: u32| {
        copy(0, &[(0, 1)]).formatted(type_1).dword(12, read << 12 | write << 26 | format << 8)
    };
    check(vec![
        prinfo(READ, 1).is("EILBRT of another block").dword(14, 6).fails(S::INVALID_PROTECTION).at(12, 26),
        prinfo(WRITE, 1).is("ILBRT of another block").dword(14, 6).fails(S::INVALID_PROTECTION).at(12, 26),
        prinfo(IoOpcode::VERIFY, 1).is("EILBRT of another block").dword(14, 6).fails(S::INVALID_PROTECTION).at(12, 26),
        prinfo(READ, 1)
            .is("a reference tag of type 3")
            .formatted(type_3)
            .dword(14, 5)
            .fails(S::INVALID_PROTECTION)
            .at(12, 26),
        prinfo(WRITE, 4).is("a guard that does not fit").filled(9).retries(S::GUARD_CHECK),
        prinfo(WRITE, 2).is("another application tag").dword(15, 0xffff_0001).retries(S::APPLICATION_TAG_CHECK),
        prinfo(WRITE, 2).is("another one, masked").dword(15, 0xfffe_0001).succeeds(),
        prinfo(WRITE, 1).is("another reference tag").dword(14, 5).retries(S::REFERENCE_TAG_CHECK),
        prinfo(WRITE, 15).is("all of it inserted").bytes(512).dword(14, 5).succeeds(),
        prinfo(READ, 7).is("a block that is not written").dword(14, 5).succeeds(),
        prinfo(READ, 0).is("no room for metadata").bytes(519).fails(S::DATA_SGL_LENGTH_INVALID).at(6, 0),
        prinfo(READ, 0).is("no metadata pointer").formatted(separate).fails(S::INVALID_FIELD).at(4, 0),
        prinfo(IoOpcode::WRITE_ZEROES, 4).is("a check of zeros").fails(S::INVALID_PROTECTION).at(12, 26),
        prinfo(IoOpcode::WRITE_ZEROES, 8).is("inserted").dword(14, 5).succeeds(),
        prinfos(8, 0, 0).is("PRACT of the read alone").fails(S::INVALID_FIELD).at(12, 12),
        prinfos(0, 8, 0).is("PRACT of the write alone").fails(S::INVALID_FIELD).at(12, 12),
        prinfos(8, 8, 0).is("PRACT of both").succeeds(),
        prinfos(0, 0, 1).is("descriptors of another guard").bytes(40).fails(S::INVALID_NAMESPACE).at(12, 8),
        prinfos(8, 8, 1).is("the same with PRACT").bytes(40).fails(S::INVALID_NAMESPACE).at(12, 8),
        copy(0, &[(0, 1)])
            .is("format 1h without protection")
            .bytes(40)
            .formatted(2 | 1 << 4)
            .dword(12, 1 << 8)
            .succeeds(),
        io(READ, 0, 253)
            .is("metadata beyond MDTS")
            .formatted(type_1)
            .bytes(253 * 520)
            .fails(S::INVALID_FIELD)
            .at(12, 0),
    ]);
}

#[test]
fn admin_opcodes() {
    let refused = [
        (AdminOpcode::FIRMWARE_COMMIT, "firmware is never written"),
        (AdminOpcode::FIRMWARE_IMAGE_DOWNLOAD, "firmware is never written"),
        (AdminOpcode::DIRECTIVE_SEND, "no directives"),
        (AdminOpcode::DIRECTIVE_RECEIVE, "no directives"),
        (AdminOpcode::CREATE_IO_CQ, "a host in this process creates queues by calls"),
        (AdminOpcode::CREATE_IO_SQ, "a host in this process creates queues by calls"),
        (AdminOpcode::DELETE_IO_CQ, "a host in this process deletes queues by calls"),
        (AdminOpcode::DELETE_IO_SQ, "a host in this process deletes queues by calls"),
        (AdminOpcode::DOORBELL_BUFFER_CONFIG, "a host in this process has no doorbells in memory"),
        (AdminOpcode(0x7f), "a Fabrics command"),
        (AdminOpcode(0xc4), "an opcode of the vendor"),
    ];
    check(refused.map(|(opcode, why)| admin(opcode).is(why).fails(S::INVALID_OPCODE).at(0, 0)).into());
    let named = [AdminOpcode::ABORT, AdminOpcode::KEEP_ALIVE, AdminOpcode::ASYNCHRONOUS_EVENT_REQUEST];
    check(named.map(|opcode| admin(opcode).is("a namespace").nsid(1).fails(S::INVALID_FIELD).at(1, 0)).into());
    check(vec![admin(AdminOpcode::CREATE_IO_CQ).is("refused in any case").nsid(1).fails(S::INVALID_OPCODE).at(0, 0)]);
}

#[test]
fn identify_and_logs() {
    let identify = |cns: u8| admin(AdminOpcode::IDENTIFY).dword(10, cns.into());
    check(vec![
        identify(0xff).is("a reserved CNS").fails(S::INVALID_FIELD).at(10, 0),
        identify(cns::NAMESPACE).is("namespace 0").nsid(0).fails(S::INVALID_NAMESPACE).at(1, 0),
        identify(cns::ACTIVE_NAMESPACES).is("nothing is above").nsid(NSID_ALL).fails(S::INVALID_NAMESPACE).at(1, 0),
        identify(cns::COMMAND_SETS)
            .is("CNTID of no controller")
            .dword(10, 9 << 16 | 0x1c)
            .fails(S::INVALID_FIELD)
            .at(10, 16),
        identify(cns::COMMAND_SETS).is("CNTID FFFFh").dword(10, 0xffff << 16 | 0x1c).succeeds(),
        identify(cns::CONTROLLER).is("short data").bytes(4_092).fails(S::DATA_SGL_LENGTH_INVALID).at(6, 0),
        identify(cns::CONTROLLER).is("no data").bytes(0).fails(S::DATA_SGL_LENGTH_INVALID).at(6, 0),
        log_page(0x7f, 4).is("a reserved log").fails(S::INVALID_LOG_PAGE).at(10, 0),
        log_page(log::SMART, 512).is("LPO beyond the log").dword(12, 516).fails(S::INVALID_FIELD).at(12, 0),
        log_page(log::SMART, 512).is("LPO beyond the log").dword(13, 1).fails(S::INVALID_FIELD).at(12, 0),
        log_page(log::SMART, 512).is("LPO within a dword").dword(12, 2).fails(S::INVALID_FIELD).at(12, 0),
        log_page(log::SMART, 512).is("OT").dword(14, 1 << 23).fails(S::INVALID_FIELD).at(14, 23),
        log_page(log::SMART, (128 << 10) + 4).is("NUMD beyond MDTS").fails(S::INVALID_FIELD).at(10, 16),
        log_page(log::SMART, 128 << 10).is("NUMD to MDTS").succeeds(),
        io(IoOpcode::RESERVATION_REPORT, 0, 1)
            .is("NUMD beyond MDTS")
            .dword(10, 1 << 15)
            .fails(S::INVALID_FIELD)
            .at(10, 0),
        log_page(log::SMART, 512).is("short data").bytes(508).fails(S::DATA_SGL_LENGTH_INVALID).at(6, 0),
        log_page(log::TELEMETRY_HOST, 512).is("LPO within a block").dword(12, 4).fails(S::INVALID_FIELD).at(12, 0),
        log_page(log::TELEMETRY_HOST, 516).is("NUMD within a block").fails(S::INVALID_FIELD).at(10, 16),
        log_page(log::TELEMETRY_CONTROLLER, 508).is("NUMD within a block").fails(S::INVALID_FIELD).at(10, 16),
        log_page(vendor::DRIVE_LOG, 1_024).is("NUMD to the end").succeeds(),
    ]);
}

#[test]
fn features() {
    let get = |id: u8| admin(AdminOpcode::GET_FEATURES).nsid(1).dword(10, id.into()).bytes(512);
    let set = |id: u8, value| admin(AdminOpcode::SET_FEATURES).dword(10, id.into()).dword(11, value).bytes(512);
    let save = |id: u8| set(id, 0).dword(10, feature::SAVE | u32::from(id));
    let sel = |id: u8, select: u32| get(id).dword(10, select << 8 | u32::from(id));
    let recovery = feature::ERROR_RECOVERY;
    check(vec![
        get(0).is("feature 0").fails(S::INVALID_FIELD).at(10, 0),
        get(3).is("LBA Range Type").fails(S::INVALID_FIELD).at(10, 0),
        set(0x0c, 0).is("Autonomous Power State Transition").fails(S::INVALID_FIELD).at(10, 0),
        set(0x0d, 0).is("Host Memory Buffer").fails(S::INVALID_FIELD).at(10, 0),
        set(feature::PREDICTABLE_LATENCY_CONFIG, 0).is("Predictable Latency Mode").fails(S::INVALID_FIELD).at(10, 0),
        sel(feature::ARBITRATION, 4).is("SEL 100b").fails(S::INVALID_FIELD).at(10, 8),
        sel(feature::ARBITRATION, 3).is("SEL 011b").succeeds(),
        save(feature::TIMESTAMP).is("SV of one that cannot be saved").fails(S::FEATURE_NOT_SAVEABLE).at(10, 31),
        save(feature::ARBITRATION).is("SV").succeeds(),
        set(feature::ARBITRATION, 3).is("a namespace").nsid(1).fails(S::FEATURE_NOT_NAMESPACE_SPECIFIC).at(1, 0),
        set(feature::ARBITRATION, 3).is("an invalid namespace").nsid(70).fails(S::INVALID_NAMESPACE).at(1, 0),
        get(recovery).is("no namespace").nsid(0).fails(S::INVALID_NAMESPACE).at(1, 0),
        get(recovery).is("all namespaces").nsid(NSID_ALL).fails(S::INVALID_NAMESPACE).at(1, 0),
        get(recovery).is("a namespace that there is not").nsid(2).fails(S::INVALID_FIELD).at(1, 0),
        set(recovery, 0).is("no namespace").nsid(0).fails(S::INVALID_NAMESPACE).at(1, 0),
        set(feature::POWER_MANAGEMENT, 1).is("PS beyond NPSS").fails(S::INVALID_FIELD).at(11, 0),
        set(feature::TEMPERATURE_THRESHOLD, 1 << 16).is("TMPSEL of no sensor").fails(S::INVALID_FIELD).at(11, 16),
        set(feature::TEMPERATURE_THRESHOLD, 2 << 20).is("THSEL reserved").fails(S::INVALID_FIELD).at(11, 20),
        get(feature::TEMPERATURE_THRESHOLD)
            .is("TMPSEL of all sensors")
            .dword(11, 0xf << 16)
            .fails(S::INVALID_FIELD)
            .at(11, 16),
        set(feature::NUMBER_OF_QUEUES, 0xffff).is("65,536 submission queues").fails(S::INVALID_FIELD).at(11, 0),
        set(feature::NUMBER_OF_QUEUES, 0xffff << 16).is("65,536 completion queues").fails(S::INVALID_FIELD).at(11, 16),
        set(feature::INTERRUPT_VECTOR, 5).is("a vector that there is not").fails(S::INVALID_FIELD).at(11, 0),
        set(feature::WRITE_PROTECTION, 4).is("WPS reserved").nsid(1).fails(S::INVALID_FIELD).at(11, 0),
        set(feature::WRITE_PROTECTION, 1).is("no namespace").nsid(0).fails(S::INVALID_NAMESPACE).at(1, 0),
        set(feature::TIMESTAMP, 0).is("short data").bytes(7).fails(S::DATA_SGL_LENGTH_INVALID).at(6, 0),
        set(feature::HOST_BEHAVIOR, 0).is("a flag of 2").filled(2).fails(S::INVALID_FIELD),
        set(feature::HOST_BEHAVIOR, 0).is("short data").bytes(511).fails(S::DATA_SGL_LENGTH_INVALID).at(6, 0),
        set(feature::HOST_IDENTIFIER, 1).is("short data").bytes(15).fails(S::DATA_SGL_LENGTH_INVALID).at(6, 0),
    ]);
}

#[test]
fn namespaces_and_media() {
    let manage = admin(AdminOpcode::NAMESPACE_MANAGEMENT);
    let attach = admin(AdminOpcode::NAMESPACE_ATTACHMENT);
    let format = |cdw10| admin(AdminOpcode::FORMAT_NVM).nsid(1).dword(10, cdw10);
    let sanitize = |cdw10| admin(AdminOpcode::SANITIZE).dword(10, cdw10);
    let test = |nsid: u32, code| admin(AdminOpcode::DEVICE_SELF_TEST).nsid(nsid).dword(10, code);
    check(vec![
        manage.is("SEL reserved").dword(10, 2).fails(S::INVALID_FIELD).at(10, 0),
        admin(AdminOpcode::NAMESPACE_MANAGEMENT).is("CSI").dword(11, 2 << 24).fails(S::INVALID_FIELD).at(11, 24),
        attach.is("a namespace that there is not").nsid(2).fails(S::INVALID_FIELD).at(1, 0),
        admin(AdminOpcode::NAMESPACE_ATTACHMENT).is("all namespaces").nsid(NSID_ALL).fails(S::INVALID_FIELD).at(1, 0),
        admin(AdminOpcode::NAMESPACE_ATTACHMENT).is("namespace 0").nsid(0).fails(S::INVALID_NAMESPACE).at(1, 0),
        format(0).is("a namespace that there is not").nsid(2).fails(S::INVALID_FIELD).at(1, 0),
        format(3 << 9).is("SES reserved").fails(S::INVALID_FIELD).at(10, 9),
        format(15).is("LBAF beyond NLBAF").fails(S::INVALID_FORMAT).at(10, 0),
        format(0).is("a reserved bit of CDW12").dword(12, 1 << 3).fails(S::INVALID_FIELD).at(12, 3),
        sanitize(7).is("SANACT reserved").fails(S::INVALID_FIELD).at(10, 0),
        sanitize(4 | 1 << 9).is("NDAS").fails(S::INVALID_FIELD).at(10, 9),
        sanitize(4 | 1 << 10).is("EMVS").fails(S::INVALID_FIELD).at(10, 10),
        sanitize(1 | 3 << 9).is("NDAS and EMVS where nothing begins").succeeds(),
        sanitize(4).is("a namespace").nsid(1).fails(S::INVALID_FIELD).at(1, 0),
        sanitize(4).is("all namespaces").nsid(NSID_ALL).fails(S::INVALID_FIELD).at(1, 0),
        test(1, 5).is("STC reserved").fails(S::INVALID_FIELD).at(10, 0),
        test(2, 1).is("a namespace that there is not").fails(S::INVALID_FIELD).at(1, 0),
    ]);
}

#[test]
fn reservations() {
    let of = |opcode, cdw10| io(opcode, 0, 1).dword(10, cdw10).dword(12, 0).bytes(16);
    let (register, acquire) = (IoOpcode::RESERVATION_REGISTER, IoOpcode::RESERVATION_ACQUIRE);
    let (release, report) = (IoOpcode::RESERVATION_RELEASE, IoOpcode::RESERVATION_REPORT);
    check(vec![
        of(register, 3).is("RREGA reserved").fails(S::INVALID_FIELD).at(10, 0),
        of(register, 1 << 30).is("CPTPL reserved").fails(S::INVALID_FIELD).at(10, 30),
        of(register, 0).is("PSDT 01b").flags(0x40).fails(S::INVALID_FIELD).at(0, 14),
        of(acquire, 7 << 8).is("RTYPE reserved").fails(S::INVALID_FIELD).at(10, 8),
        of(acquire, 1 << 8 | 1 << 3).is("IEKEY").fails(S::INVALID_FIELD).at(10, 3),
        of(acquire, 1 << 8 | 5).is("RACQA reserved").fails(S::INVALID_FIELD).at(10, 0),
        of(release, 1 << 8 | 1 << 3).is("IEKEY").fails(S::INVALID_FIELD).at(10, 3),
        of(release, 0).is("RTYPE reserved").fails(S::INVALID_FIELD).at(10, 8),
        of(release, 1 << 8 | 5).is("RRELA reserved").fails(S::INVALID_FIELD).at(10, 0),
        of(report, 1 << 18).is("NUMD beyond 1 MiB").fails(S::INVALID_FIELD).at(10, 0),
        of(report, 3).is("EDS").dword(11, 1).fails(S::HOST_ID_INCONSISTENT).at(11, 0),
        of(register, 0).is("short data").bytes(8).fails(S::DATA_SGL_LENGTH_INVALID).at(6, 0),
    ]);
}

/// Five requests, of which four may be outstanding: the fifth may be retried.
#[test]
fn a_limit_is_not_final() {
    let request = admin(AdminOpcode::ASYNCHRONOUS_EVENT_REQUEST);
    check(vec![request.is("a fifth request").after(4).ends(S::EVENT_REQUEST_LIMIT_EXCEEDED)]);
}
