//! Identify, logs and features match the wire types and the behaviour of the drive, and reject bad fields.

use crate::common::{BLOCKS, CAPACITY, PAIRS, Pair, config, drive_with, host, read, with, write};
use nandscape_device_controller::{BufferMode, ControllerConfig};
use nandscape_device_media::StoreKind;
use nandscape_drive::conformance::Host;
use nandscape_drive::{Controller, HostMem, QueueId, Subsystem as _};
use nandscape_sim::{Executor, Span};
use nandscape_wire_nvme::feature::{self, NumberOfQueues};
use nandscape_wire_nvme::identify::{self, cns};
use nandscape_wire_nvme::io::DEAC;
use nandscape_wire_nvme::log::{self, CommandsAndEffects, Smart};
use nandscape_wire_nvme::{AdminOpcode, IoOpcode, NSID_ALL, Status, SubmissionEntry};
use zerocopy::{FromBytes, IntoBytes as _};

/// Executes an admin command with 4 KiB of memory: its data, or its status without Do Not Retry.
async fn data(admin: &Host, entry: SubmissionEntry) -> Result<Vec<u8>, Status> {
    let mem = HostMem::zeroed(4_096);
    match admin.execute(entry, mem.clone()).await.unwrap().status {
        Status::SUCCESS => Ok(mem.to_vec()),
        status => Err(status.meaning()),
    }
}

/// Executes an admin command that returns a value.
async fn value(admin: &Host, entry: SubmissionEntry) -> Result<u32, Status> {
    let completion = admin.execute(entry, HostMem::none()).await.unwrap();
    match completion.status {
        Status::SUCCESS => Ok(completion.dw0),
        status => Err(status.meaning()),
    }
}

fn with_admin<T>(config: ControllerConfig, test: impl AsyncFnOnce(&Host, &Host) -> T) -> T {
    with(config, async |sim, drive| test(&host(sim, drive, QueueId::ADMIN), &host(sim, drive, QueueId(1))).await)
}

/// The same command for the namespace.
fn of_namespace(entry: SubmissionEntry) -> SubmissionEntry {
    SubmissionEntry { nsid: 1.into(), ..entry }
}

fn text(field: &[u8]) -> &str {
    std::str::from_utf8(field).unwrap().trim_end_matches(' ')
}

#[test]
fn identify_controller() {
    with_admin(config(), async |admin, _| {
        let bytes = data(admin, SubmissionEntry::identify(cns::CONTROLLER, 0)).await.unwrap();
        let id = identify::Controller::read_from_bytes(&bytes).unwrap();
        assert_eq!((text(&id.sn), text(&id.mn)), ("SERIAL-1", "A model"));
        assert_eq!((id.ver.get(), id.cntrltype), (0x0002_0100, 1));
        // Powers of two of 4 KiB: 128 KiB; entries of 64 and 16 bytes.
        assert_eq!((id.mdts, id.sqes, id.cqes), (5, 0x66, 0x44));
        assert_eq!((id.nn.get(), id.mnan.get(), id.fuses.get()), (64, 64, 1));
        assert_eq!((id.cntlid.get(), id.cmic), (1, identify::CMIC_SEVERAL_CONTROLLERS));
        // One read-only slot; effects, extended log data with offsets, telemetry, the logs of supported log pages and
        // commands.
        assert_eq!((id.frmw, id.lpa), (0b0000_0011, 0b0010_1110));
        assert_eq!(u128::from_le_bytes(id.tnvmcap), u128::from(CAPACITY));
        let expected = identify::ONCS_COMPARE
            | identify::ONCS_WRITE_UNCORRECTABLE
            | identify::ONCS_DSM
            | identify::ONCS_WRITE_ZEROES
            | identify::ONCS_SAVE
            | identify::ONCS_TIMESTAMP
            | identify::ONCS_VERIFY
            | identify::ONCS_COPY
            | identify::ONCS_RESERVATIONS;
        assert_eq!(id.oncs.get(), expected);
        assert!(text(&id.subnqn).starts_with("nqn.2"));
    });
}

/// Base 5.1.13.2.1, MDTS: the limit is 2^MDTS pages of 4 KiB, and 0 is no limit, so 8 KiB is the lowest limit.
#[test]
fn the_least_transfer_limit_is_the_one_identified() {
    for (lba_bytes, blocks) in [(512, 16), (4_096, 2)] {
        with_admin(ControllerConfig { max_transfer: 8 << 10, lba_bytes, ..config() }, async |admin, io| {
            let bytes = data(admin, SubmissionEntry::identify(cns::CONTROLLER, 0)).await.unwrap();
            assert_eq!(identify::Controller::read_from_bytes(&bytes).unwrap().mdts, 1);
            for (count, status) in [(blocks, Status::SUCCESS), (blocks + 1, Status::INVALID_FIELD)] {
                let mem = HostMem::zeroed((count * lba_bytes) as usize);
                let ended = io.execute(read(0, count), mem).await.unwrap();
                assert_eq!(ended.status.meaning(), status, "{count} blocks of {lba_bytes} bytes");
            }
        });
    }
}

#[test]
fn a_drive_without_a_store_does_not_offer_compare() {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let drive = drive_with(&sim, config(), StoreKind::None);
    let (admin, io) = (host(&sim, &drive, QueueId::ADMIN), host(&sim, &drive, QueueId(1)));
    executor
        .block_on(async {
            let bytes = data(&admin, SubmissionEntry::identify(cns::CONTROLLER, 0)).await.unwrap();
            let id = identify::Controller::read_from_bytes(&bytes).unwrap();
            assert_eq!(id.oncs.get() & identify::ONCS_COMPARE, 0);
            let compare = SubmissionEntry::blocks(IoOpcode::COMPARE, 1, 0, 1);
            assert_eq!(io.execute(compare, HostMem::none()).await.unwrap().status.meaning(), Status::INVALID_OPCODE);
        })
        .unwrap();
}

#[test]
fn the_write_cache_bit_follows_the_buffer_mode() {
    let vwc = |buffer| {
        with_admin(ControllerConfig { buffer, ..config() }, async |admin, _| {
            let bytes = data(admin, SubmissionEntry::identify(cns::CONTROLLER, 0)).await.unwrap();
            let get = value(admin, SubmissionEntry::get_features(feature::VOLATILE_WRITE_CACHE)).await;
            (identify::Controller::read_from_bytes(&bytes).unwrap().vwc, get)
        })
    };
    assert_eq!(vwc(BufferMode::Volatile), (identify::VWC_PRESENT | identify::VWC_FLUSH_ALL, Ok(1)));
    // Base 5.1.25.1.4: without such a cache, the feature is Invalid Field in Command.
    assert_eq!(vwc(BufferMode::Register), vwc(BufferMode::Volatile));
    assert_eq!(vwc(BufferMode::Capacitor), (identify::VWC_FLUSH_ALL, Err(Status::INVALID_FIELD)));
    assert_eq!(vwc(BufferMode::Through), (identify::VWC_FLUSH_ALL, Err(Status::INVALID_FIELD)));
}

#[test]
fn identify_namespace() {
    for lba_bytes in [512, 4_096] {
        with_admin(ControllerConfig { lba_bytes, ..config() }, async |admin, _| {
            let bytes = data(admin, SubmissionEntry::identify(cns::NAMESPACE, 1)).await.unwrap();
            let id = identify::Namespace::read_from_bytes(&bytes).unwrap();
            assert_eq!((id.nsze.get(), id.ncap.get()), (CAPACITY / u64::from(lba_bytes), id.nsze.get()));
            assert_eq!((id.lba_bytes(), id.nlbaf_z, id.nmic), (u64::from(lba_bytes), 4, identify::NMIC_SHARED));
            // Deallocated blocks read as zeros, and Write Zeroes may deallocate.
            assert_eq!(id.dlfeat, 0b1001);
            // The preferred granularity is the mapping unit, counted from zero.
            assert_eq!(u32::from(id.npwg_z.get()) + 1, 4_096 / lba_bytes);
            assert_eq!((id.mc, id.dpc, id.dps), (0b11, 0x1f, 0), "there may be metadata and protection information");
            let descriptors = data(admin, SubmissionEntry::identify(cns::NAMESPACE_DESCRIPTORS, 1)).await.unwrap();
            assert_eq!((&descriptors[..4], &descriptors[4..12]), (&[1, 8, 0, 0][..], &id.eui64[..]));
            assert_eq!((&descriptors[12..16], &descriptors[16..32]), (&[2, 16, 0, 0][..], &id.nguid[..]));
            assert_eq!((&descriptors[32..36], descriptors[36..52] == [0; 16]), (&[3, 16, 0, 0][..], false));
            assert_eq!(descriptors[52..61], [4, 1, 0, 0, 0, 0, 0, 0, 0], "command set 0, and the end of the list");
        });
    }
}

/// The fields of Identify that affect a kernel's treatment of a drive, as listed in docs/nvme.md: a drive with one PCI
/// controller is an ordinary one, without a multipath device.
#[test]
fn a_kernel_finds_an_ordinary_drive_unless_it_has_several_controllers() {
    let alone = || ControllerConfig { multipath: false, ..config() };
    for (config, reports_several) in [(alone(), false), (config(), true), (alone(), true)] {
        with(config.clone(), async |sim, drive| {
            if !config.multipath && reports_several {
                drive.subsystem().report_several();
            }
            let admin = &host(sim, drive, QueueId::ADMIN);
            let (cmic, nmic) = if reports_several { (0b10, 1) } else { (0, 0) };
            let bytes = data(admin, SubmissionEntry::identify(cns::CONTROLLER, 0)).await.unwrap();
            let id = identify::Controller::read_from_bytes(&bytes).unwrap();
            assert_eq!((id.cmic, id.cntrltype, id.mdts), (cmic, 1, 5));
            // No power states for a kernel to choose from, no host memory buffer, no asymmetric access.
            assert_eq!((id.npss_z, bytes[265], &bytes[272..276], &bytes[343..348]), (0, 0, &[0; 4][..], &[0; 5][..]));
            assert_eq!(id.oacs.get() & identify::OACS_DOORBELL_BUFFER, 0, "doorbells are registers");
            let read = async |cns| data(admin, SubmissionEntry::identify(cns, 1)).await.unwrap();
            let bytes = read(cns::NAMESPACE).await;
            let id = identify::Namespace::read_from_bytes(&bytes).unwrap();
            assert_eq!((id.nmic, &bytes[92..96], id.dlfeat & 0b111), (nmic, &[0; 4][..], 1));
            let preferred = [id.npwg_z, id.npwa_z, id.npdg_z, id.npda_z, id.nows_z].map(|field| field.get());
            assert_eq!(
                (id.nsfeat & identify::NSFEAT_OPTPERF != 0, preferred),
                (true, [7; 5]),
                "mapping units of 4 KiB"
            );
            assert!(id.nsfeat & identify::NSFEAT_ATOMICITY != 0 && id.nawupf_z.get() >= id.npwg_z.get());
            assert!(id.eui64 != [0; 8] && id.nguid != [0; 16]);
            assert_eq!(read(cns::INDEPENDENT_NAMESPACE).await[1], nmic);
            // A shared namespace needs a second controller.
            let wish = identify::Namespace { nsze: 8.into(), ncap: 8.into(), nmic: 1, ..identify::Namespace::zeroed() };
            let create = SubmissionEntry::admin(AdminOpcode::NAMESPACE_MANAGEMENT);
            let ended = admin.execute(create, HostMem::from_bytes(wish.as_bytes())).await.unwrap().status.meaning();
            let right = if reports_several { Status::NAMESPACE_INSUFFICIENT_CAPACITY } else { Status::INVALID_FIELD };
            assert_eq!(ended, right);
        });
    }
}

#[test]
fn identify_lists_and_bad_fields() {
    with_admin(config(), async |admin, _| {
        let identify = async |cns, nsid| data(admin, SubmissionEntry::identify(cns, nsid)).await;
        assert_eq!(identify(cns::ACTIVE_NAMESPACES, 0).await.unwrap()[..8], [1, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(identify(cns::ACTIVE_NAMESPACES, 1).await.unwrap(), [0; 4_096]);
        assert_eq!(identify(cns::COMMAND_SET_CONTROLLER, 0).await.unwrap(), [0; 4_096]);
        // Lists that a subsystem with one namespace and one controller has.
        for (cns, nsid, head) in [
            (cns::COMMAND_SET_ACTIVE_NAMESPACES, 0, [1, 0, 0, 0]),
            (cns::ALLOCATED_NAMESPACES, 0, [1, 0, 0, 0]),
            (cns::COMMAND_SET_ALLOCATED_NAMESPACES, 0, [1, 0, 0, 0]),
            (cns::ATTACHED_CONTROLLERS, 1, [1, 0, 1, 0]),
            (cns::CONTROLLERS, 0, [1, 0, 1, 0]),
            (cns::INDEPENDENT_NAMESPACE, 1, [0, 1, 0xff, 0]),
            (cns::NAMESPACE_GRANULARITY, 0, [0, 0, 0, 0]),
        ] {
            let page = identify(cns, nsid).await.unwrap();
            assert_eq!((&page[..4], &page[4..8], page.len()), (&head[..], &[0; 4][..], 4_096), "CNS {cns:x}h");
        }
        // Of a controller; FFFFh is this one.
        for (cntid, right) in [(1, Ok([1, 0, 0, 0])), (0xffff, Ok([1, 0, 0, 0])), (2, Err(Status::INVALID_FIELD))] {
            let entry = SubmissionEntry::identify(cns::COMMAND_SETS, 0);
            let entry = SubmissionEntry { cdw10: (entry.cdw10.get() | cntid << 16).into(), ..entry };
            assert_eq!(data(admin, entry).await.map(|page| [page[0], page[1], page[8], page[16]]), right, "{cntid}");
        }
        assert_eq!(identify(cns::NAMESPACE_GRANULARITY, 0).await.unwrap()[32..40], (1u64 << 20).to_le_bytes());
        assert_eq!(identify(cns::ALLOCATED_NAMESPACE, 1).await, identify(cns::NAMESPACE, 1).await);
        // A valid number (NN) without a namespace gets zeros.
        for cns in [cns::NAMESPACE, cns::ALLOCATED_NAMESPACE, cns::COMMAND_SET_NAMESPACE, cns::INDEPENDENT_NAMESPACE] {
            assert_eq!(identify(cns, 2).await.unwrap(), [0; 4_096], "CNS {cns:x}h");
        }
        for (cns, nsid) in [
            (cns::NAMESPACE, 0),
            (cns::NAMESPACE, 65),
            (cns::ALLOCATED_NAMESPACE, NSID_ALL),
            (cns::NAMESPACE_DESCRIPTORS, 0),
            (cns::NAMESPACE_DESCRIPTORS, 2),
            (cns::COMMAND_SET_NAMESPACE, 65),
            (cns::ACTIVE_NAMESPACES, NSID_ALL - 1),
            (cns::ACTIVE_NAMESPACES, NSID_ALL),
        ] {
            assert_eq!(
                identify(cns, nsid).await.err(),
                Some(Status::INVALID_NAMESPACE),
                "CNS {cns:x}h, NSID {nsid:x}h"
            );
        }
        for cns in [0x04, 0x09, 0x0a, 0x14, 0x15, 0x17, 0x18, 0x19, 0x7f, 0xff] {
            assert_eq!(identify(cns, 1).await, Err(Status::INVALID_FIELD), "CNS {cns:x}h");
        }
        // Another command set than NVM.
        let mut zoned = SubmissionEntry::identify(cns::COMMAND_SET_NAMESPACE, 1);
        zoned.cdw11 = (2 << 24).into();
        assert_eq!(data(admin, zoned).await, Err(Status::INVALID_FIELD));
        // Too little memory for the 4 KiB.
        let short = admin.execute(SubmissionEntry::identify(cns::CONTROLLER, 0), HostMem::zeroed(4_095)).await;
        assert_eq!(short.unwrap().status.meaning(), Status::DATA_SGL_LENGTH_INVALID);
    });
}

#[test]
fn opcodes_and_flags_that_are_not_supported() {
    with_admin(config(), async |admin, _| {
        // Queues are created and deleted by the owner of the rings, not through the admin queue.
        for opcode in [
            AdminOpcode::CREATE_IO_SQ,
            AdminOpcode::CREATE_IO_CQ,
            AdminOpcode::DELETE_IO_SQ,
            AdminOpcode::DELETE_IO_CQ,
            AdminOpcode(0x7f),
            AdminOpcode(0xff),
        ] {
            let answer = value(admin, SubmissionEntry::admin(opcode)).await;
            assert_eq!(answer, Err(Status::INVALID_OPCODE), "{opcode:?}");
        }
        for flags in [1, 2, 3, 1 << 6, 2 << 6, 3 << 6] {
            let entry = SubmissionEntry { flags, ..SubmissionEntry::identify(cns::CONTROLLER, 0) };
            assert_eq!(data(admin, entry).await, Err(Status::INVALID_FIELD), "flags {flags:x}h");
        }
        // Nothing is aborted, and the answer reports that; Keep Alive succeeds.
        assert_eq!(value(admin, SubmissionEntry::admin(AdminOpcode::ABORT)).await, Ok(1));
        assert_eq!(value(admin, SubmissionEntry::admin(AdminOpcode::KEEP_ALIVE)).await, Ok(0));
    });
}

#[test]
fn event_requests_stay_outstanding_up_to_their_limit() {
    with(config(), async |sim, drive| {
        let admin = host(sim, drive, QueueId::ADMIN);
        let bytes = data(&admin, SubmissionEntry::identify(cns::CONTROLLER, 0)).await.unwrap();
        let limit = u32::from(identify::Controller::read_from_bytes(&bytes).unwrap().aerl_z) + 1;
        let event = SubmissionEntry::admin(AdminOpcode::ASYNCHRONOUS_EVENT_REQUEST);
        for _ in 0..limit {
            admin.submit(event, HostMem::none());
        }
        let before = admin.ended();
        sim.sleep(Span::from_s(1)).await;
        assert_eq!(admin.ended(), before);
        let over = admin.submit(event, HostMem::none());
        let ended = admin.next().await.unwrap();
        assert_eq!((ended.tag, ended.completion.status.meaning()), (over, Status::EVENT_REQUEST_LIMIT_EXCEEDED));
        // They take no command slot away.
        let io = host(sim, drive, QueueId(1));
        assert!(io.execute(read(0, 1), HostMem::zeroed(512)).await.unwrap().status.is_success());
    });
}

#[test]
fn event_requests_go_with_the_admin_queue() {
    with(config(), async |sim, drive| {
        let event = || SubmissionEntry::admin(AdminOpcode::ASYNCHRONOUS_EVENT_REQUEST);
        // Deleted while outstanding; deleted before the fetch.
        for wait in [Span::from_ms(1), Span::ZERO, Span::from_ms(1)] {
            let admin = Pair::new(sim, drive, 0, 16);
            for _ in 0..4 {
                admin.put(event(), HostMem::none());
            }
            admin.ring();
            sim.sleep(wait).await;
            assert!(admin.reap().is_none(), "the limit is not reached");
            drive.delete_queue_pair(QueueId::ADMIN).unwrap();
            // Unfetched requests end first.
            sim.sleep(Span::from_ms(1)).await;
        }
        let admin = Pair::new(sim, drive, 0, 16);
        sim.sleep(Span::from_ms(1)).await;
        for _ in 0..5 {
            admin.put(event(), HostMem::none());
        }
        admin.ring();
        sim.sleep(Span::from_ms(1)).await;
        let over = admin.reap().unwrap();
        assert_eq!(over.entry.status().meaning(), Status::EVENT_REQUEST_LIMIT_EXCEEDED);
        assert_eq!((over.entry.cid.get(), admin.reap().is_none()), (4, true), "and only the fifth");
    });
}

#[test]
fn the_effects_log_names_the_commands_that_there_are() {
    with_admin(config(), async |admin, io| {
        let bytes = data(admin, SubmissionEntry::get_log_page(log::COMMANDS_AND_EFFECTS, 0, 4_096)).await.unwrap();
        let effects = CommandsAndEffects::read_from_bytes(&bytes).unwrap();
        for opcode in 0..=255u8 {
            let named = effects.io[usize::from(opcode)].get() & log::EFFECT_SUPPORTED != 0;
            let entry = SubmissionEntry::blocks(IoOpcode(opcode), 1, 0, 1);
            let status = io.execute(entry, HostMem::zeroed(512)).await.unwrap().status.meaning();
            assert_eq!(named, status != Status::INVALID_OPCODE, "I/O opcode {opcode:x}h");
            if opcode == AdminOpcode::ASYNCHRONOUS_EVENT_REQUEST.0 {
                continue;
            }
            let named = effects.admin[usize::from(opcode)].get() & log::EFFECT_SUPPORTED != 0;
            let answer = value(admin, SubmissionEntry::admin(AdminOpcode(opcode))).await;
            assert_eq!(named, answer != Err(Status::INVALID_OPCODE), "admin opcode {opcode:x}h");
        }
    });
}

/// Base 5.1.12.1.1 and 5.1.12.1.18, against the drive's answer for each identifier.
#[test]
fn the_logs_of_logs_and_features_name_those_that_there_are() {
    for buffer in [BufferMode::Volatile, BufferMode::Capacitor] {
        with_admin(ControllerConfig { buffer, ..config() }, async |admin, _| {
            let page = async |log, bytes| data(admin, SubmissionEntry::get_log_page(log, NSID_ALL, bytes)).await;
            let bit = |page: &[u8], id: u8| page[usize::from(id) * 4] & 1 != 0;
            let (logs, features) = (page(0x00, 1_024).await.unwrap(), page(0x12, 1_024).await.unwrap());
            for id in 0..=255 {
                let answer = page(id, 64).await;
                assert_eq!(bit(&logs, id), answer != Err(Status::INVALID_LOG_PAGE), "log {id:x}h");
                let answer = data(admin, of_namespace(SubmissionEntry::get_features(id))).await;
                assert_eq!(bit(&features, id), answer.is_ok(), "feature {id:x}h");
            }
            // Error Recovery is of the namespace (bit 20), Arbitration of the controller (bit 21).
            assert_eq!((&features[0x05 * 4..0x06 * 4], &features[4..8]), (&[1, 0, 0x10, 0][..], &[1, 0, 0x20, 0][..]));
            assert_eq!(page(0x13, 4_096).await.unwrap(), [0; 4_096], "no NVMe-MI command");
        });
    }
}

#[test]
fn smart_counts_what_the_host_did() {
    with_admin(config(), async |admin, io| {
        for slba in [0, 256, 512] {
            let (entry, mem) = write(slba, 256);
            assert!(io.execute(entry, mem).await.unwrap().status.is_success());
        }
        for _ in 0..9 {
            assert!(io.execute(read(0, 256), HostMem::none()).await.unwrap().status.is_success());
        }
        io.execute(read(BLOCKS, 1), HostMem::none()).await.unwrap();
        let bytes = data(admin, SubmissionEntry::get_log_page(log::SMART, NSID_ALL, 512)).await.unwrap();
        let smart = Smart::read_from_bytes(&bytes[..512]).unwrap();
        // A rejected read does not count. 2,304 and 768 blocks of 512 bytes, in thousands, rounded up.
        assert_eq!((smart.host_reads.low.get(), smart.host_writes.low.get()), (9, 3));
        assert_eq!((smart.data_units_read.low.get(), smart.data_units_written.low.get()), (3, 1));
        assert_eq!((smart.critical_warning, smart.media_errors.low.get()), (0, 0));
    });
}

#[test]
fn logs_are_read_in_parts_and_refused_beyond_their_end() {
    with_admin(config(), async |admin, _| {
        let page = |log, offset: u64, bytes| {
            let mut entry = SubmissionEntry::get_log_page(log, NSID_ALL, bytes);
            (entry.cdw12, entry.cdw13) = ((offset as u32).into(), ((offset >> 32) as u32).into());
            entry
        };
        let whole = data(admin, page(log::COMMANDS_AND_EFFECTS, 0, 4_096)).await.unwrap();
        let part = data(admin, page(log::COMMANDS_AND_EFFECTS, 1_024, 512)).await.unwrap();
        assert_eq!(part[..512], whole[1_024..1_536]);
        for (log, offset) in [(log::SMART, 516), (log::SMART, 1 << 40), (log::SMART, 2)] {
            assert_eq!(data(admin, page(log, offset, 4)).await, Err(Status::INVALID_FIELD), "{log:x}h at {offset}");
        }
        for log in [0x09, 0x0e, 0x7f, 0xff] {
            assert_eq!(data(admin, page(log, 0, 4)).await, Err(Status::INVALID_LOG_PAGE), "log {log:x}h");
        }
        let short = admin.execute(page(log::SMART, 0, 512), HostMem::zeroed(256)).await.unwrap();
        assert_eq!(short.status.meaning(), Status::DATA_SGL_LENGTH_INVALID);
    });
}

#[test]
fn features_keep_their_values() {
    with_admin(ControllerConfig { buffer: BufferMode::Volatile, ..config() }, async |admin, _| {
        for (feature, default, new) in [
            (feature::ARBITRATION, 3, 0x0102_0305),
            (feature::ERROR_RECOVERY, 0, 1 << 16),
            (feature::VOLATILE_WRITE_CACHE, 1, 0),
            (feature::POWER_MANAGEMENT, 0, 0),
            (feature::TEMPERATURE_THRESHOLD, 0x157, 0x160),
            (feature::INTERRUPT_COALESCING, 0, 0x0505),
            (feature::ASYNC_EVENT_CONFIG, 0, 0xff),
        ] {
            let get = of_namespace(SubmissionEntry::get_features(feature));
            assert_eq!(value(admin, get).await, Ok(default), "{feature:x}h");
            let nsid = if feature == feature::ERROR_RECOVERY { 1 } else { 0 };
            let set = SubmissionEntry { nsid: nsid.into(), ..SubmissionEntry::set_features(feature, new) };
            value(admin, set).await.unwrap();
            assert_eq!(value(admin, get).await, Ok(new), "{feature:x}h");
        }
        let queues = NumberOfQueues::new(PAIRS, PAIRS).0;
        assert_eq!(value(admin, SubmissionEntry::get_features(feature::NUMBER_OF_QUEUES)).await, Ok(queues));
        assert_eq!(value(admin, SubmissionEntry::set_features(feature::NUMBER_OF_QUEUES, 0)).await, Ok(queues));
    });
}

#[test]
fn features_refuse_bad_fields() {
    with_admin(config(), async |admin, _| {
        for feature in [0x00, 0x03, 0x7f, 0xff] {
            let get = value(admin, SubmissionEntry::get_features(feature)).await;
            let set = value(admin, SubmissionEntry::set_features(feature, 0)).await;
            assert_eq!((get, set), (Err(Status::INVALID_FIELD), Err(Status::INVALID_FIELD)), "{feature:x}h");
        }
        // 65,536 queues cannot be requested (Base 5.1.25.2.1).
        for wish in [0xffff, 0xffff_0000, u32::MAX] {
            let set = value(admin, SubmissionEntry::set_features(feature::NUMBER_OF_QUEUES, wish)).await;
            assert_eq!(set, Err(Status::INVALID_FIELD), "{wish:x}h");
        }
    });
}

#[test]
fn the_timestamp_runs_from_where_it_was_set() {
    with(config(), async |sim, drive| {
        let admin = host(sim, drive, QueueId::ADMIN);
        let now = async || {
            let bytes = data(&admin, SubmissionEntry::get_features(feature::TIMESTAMP)).await.unwrap();
            let ms = u64::from_le_bytes(bytes[..8].try_into().unwrap()) & ((1 << 48) - 1);
            (ms, bytes[6] >> 1 & 0b111)
        };
        sim.sleep(Span::from_ms(70)).await;
        assert_eq!(now().await, (70, 0), "counted from the start, and not set by a host");
        let set = SubmissionEntry::set_features(feature::TIMESTAMP, 0);
        let epoch = 1_700_000_000_000u64;
        let completion = admin.execute(set, HostMem::from_bytes(&epoch.to_le_bytes())).await.unwrap();
        assert!(completion.status.is_success());
        sim.sleep(Span::from_ms(5_000)).await;
        assert_eq!(now().await, (epoch + 5_000, 1));
        // A timestamp below the drive's run time, and the last possible one.
        for (set_to, later) in [(5u64, 8u64), (0, 3), ((1 << 48) - 1, 2)] {
            let completion = admin.execute(set, HostMem::from_bytes(&set_to.to_le_bytes())).await.unwrap();
            assert!(completion.status.is_success());
            sim.sleep(Span::from_ms(3)).await;
            assert_eq!(now().await, (later, 1), "3 ms after it was set to {set_to}");
        }
        let short = admin.execute(set, HostMem::zeroed(7)).await.unwrap();
        assert_eq!(short.status.meaning(), Status::DATA_SGL_LENGTH_INVALID);
    });
}

#[test]
fn reads_of_deallocated_blocks_are_reported_to_hosts_that_ask() {
    with_admin(config(), async |admin, io| {
        let status = async |entry, mem| io.execute(entry, mem).await.unwrap().status.meaning();
        let (entry, mem) = write(0, 8);
        assert_eq!(status(entry, mem).await, Status::SUCCESS);
        assert_eq!(status(read(8, 8), HostMem::none()).await, Status::SUCCESS);
        let reports = SubmissionEntry::set_features(feature::ERROR_RECOVERY, feature::ERROR_RECOVERY_DULBE);
        value(admin, of_namespace(reports)).await.unwrap();
        assert_eq!(status(read(0, 8), HostMem::none()).await, Status::SUCCESS);
        assert_eq!(status(read(4, 8), HostMem::none()).await, Status::DEALLOCATED_OR_UNWRITTEN);
        let verify = SubmissionEntry::blocks(IoOpcode::VERIFY, 1, 8, 1);
        assert_eq!(status(verify, HostMem::none()).await, Status::DEALLOCATED_OR_UNWRITTEN);
        // Zeros are written unless the host requests deallocation.
        let mut zeroes = SubmissionEntry::blocks(IoOpcode::WRITE_ZEROES, 1, 8, 8);
        assert_eq!(status(zeroes, HostMem::none()).await, Status::SUCCESS);
        assert_eq!(status(read(8, 8), HostMem::none()).await, Status::SUCCESS);
        zeroes.cdw12 |= DEAC;
        assert_eq!(status(zeroes, HostMem::none()).await, Status::SUCCESS);
        assert_eq!(status(read(8, 8), HostMem::none()).await, Status::DEALLOCATED_OR_UNWRITTEN);
    });
}
