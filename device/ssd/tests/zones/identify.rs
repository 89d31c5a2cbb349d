//! Identify of a drive with zones.

use nandscape_drive::{HostMem, QueueId};
use nandscape_sim::Executor;
use nandscape_wire_nvme::identify::{Controller, Namespace, cns};
use nandscape_wire_nvme::register::CC;
use nandscape_wire_nvme::{IoOpcode, Status, SubmissionEntry, zns};
use zerocopy::FromBytes;

use crate::rig::{ACTIVE, AREA, AREAS, GRANULARITY, OPEN, Queue, Rig, SIZE, ZONES};

async fn page(admin: &Queue, cns: u8, csi: u8) -> Result<Vec<u8>, Status> {
    let nsid = if [cns::CONTROLLER, cns::COMMAND_SET_CONTROLLER].contains(&cns) { 0 } else { 1 };
    let nsid = if [cns::COMMAND_SET_ACTIVE_NAMESPACES].contains(&cns) { 0 } else { nsid };
    let entry = SubmissionEntry { cdw11: (u32::from(csi) << 24).into(), ..SubmissionEntry::identify(cns, nsid) };
    let mem = HostMem::zeroed(4_096);
    let ended = admin.execute(entry, mem.clone()).await;
    if ended.status.is_success() { Ok(mem.to_vec()) } else { Err(ended.status.meaning()) }
}

#[test]
fn identify_tells_the_command_set_and_its_limits() {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let rig = Rig::new(&sim, &[]);
    let admin = Queue::new(&sim, &rig.ssd, QueueId::ADMIN, 17);
    let ran = async {
        let namespace = Namespace::read_from_bytes(&page(&admin, cns::NAMESPACE, 0).await.unwrap()).unwrap();
        assert_eq!(namespace.nsze.get(), ZONES * SIZE);
        assert_eq!(namespace.lbaf[usize::from(namespace.flbas)].lbads, 12);
        let data = page(&admin, cns::COMMAND_SET_NAMESPACE, zns::CSI).await.unwrap();
        let data = zns::IdentifyNamespace::read_from_bytes(&data).unwrap();
        assert_eq!((data.mar_z.get() as usize, data.mor_z.get() as usize), (ACTIVE - 1, OPEN - 1));
        assert_eq!(data.lbafe[usize::from(namespace.flbas)].zsze.get(), SIZE);
        assert_eq!(data.lbafe[usize::from(namespace.flbas)].zdes, 1);
        assert_eq!((data.ozcs.get(), data.zoc.get()), (zns::OZCS_READ_ACROSS | zns::OZCS_ZRWA, 0));
        assert_eq!((data.numzrwa_z.get() as usize, data.zrwacap), (AREAS - 1, zns::ZRWACAP_EXPLICIT_FLUSH));
        assert_eq!((u64::from(data.zrwasz.get()), u64::from(data.zrwafg.get())), (AREA, GRANULARITY));
        assert_eq!((namespace.mssrl.get(), namespace.mcl.get()), (16, 16), "a Copy writes as much as a Write");
        // The NVM command set has no data here and no namespace; others are unknown.
        assert_eq!(page(&admin, cns::COMMAND_SET_NAMESPACE, 0).await, Ok(vec![0; 4_096]));
        assert_eq!(page(&admin, cns::COMMAND_SET_NAMESPACE, 1).await, Err(Status::INVALID_FIELD));
        assert_eq!(page(&admin, cns::COMMAND_SET_CONTROLLER, zns::CSI).await, Ok(vec![0; 4_096]), "ZASL is MDTS");
        let listed = |page: Vec<u8>| u32::from_le_bytes(page[..4].try_into().unwrap());
        assert_eq!(listed(page(&admin, cns::COMMAND_SET_ACTIVE_NAMESPACES, zns::CSI).await.unwrap()), 1);
        assert_eq!(listed(page(&admin, cns::COMMAND_SET_ACTIVE_NAMESPACES, 0).await.unwrap()), 0);
        assert_eq!(page(&admin, cns::COMMAND_SETS, 0).await.unwrap_err(), Status::INVALID_FIELD, "of controller 0");
        let controller = Controller::read_from_bytes(&page(&admin, cns::CONTROLLER, 0).await.unwrap()).unwrap();
        let (copy, left_out) = (nandscape_wire_nvme::identify::ONCS_COPY, nandscape_wire_nvme::identify::ONCS_DSM);
        assert_eq!((controller.oncs.get() & (copy | left_out), controller.fuses.get()), (copy, 0));
        assert_ne!(controller.oaes.get() & nandscape_wire_nvme::identify::OAES_ZONE_CHANGED, 0);
        // CSI in the descriptors of the namespace.
        let described = page(&admin, cns::NAMESPACE_DESCRIPTORS, 0).await.unwrap();
        assert!(described.windows(5).any(|bytes| bytes == [4, 1, 0, 0, zns::CSI]));
    };
    executor.block_on_within(ran, 1_000_000).expect("it ends");
}

#[test]
fn without_a_limit_all_zones_may_be_active_and_open() {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let rig = Rig::new(&sim, &["ftl.zone.max_active=0", "ftl.zone.max_open=0", "buffer.size=4MiB"]);
    let admin = Queue::new(&sim, &rig.ssd, QueueId::ADMIN, 17);
    let ran = async {
        let data = page(&admin, cns::COMMAND_SET_NAMESPACE, zns::CSI).await.unwrap();
        let data = zns::IdentifyNamespace::read_from_bytes(&data).unwrap();
        assert_eq!((data.mar_z.get(), data.mor_z.get()), (u32::MAX, u32::MAX), "no limit");
        for zone in 0..ZONES {
            rig.put(IoOpcode::WRITE, zone * SIZE, &[zone]).await.expect("no zone is one too many");
        }
    };
    executor.block_on_within(ran, 1_000_000).expect("it ends");
}

#[test]
fn the_registers_say_that_identify_lists_the_command_sets() {
    let executor = Executor::new();
    let rig = Rig::new(&executor.sim(), &[]);
    let capabilities = u64::from(rig.ssd.controller().register(0)) | u64::from(rig.ssd.controller().register(4)) << 32;
    assert_eq!(capabilities >> 37 & 0xff, 1 << 6, "only 110b selects the command set");
    assert_eq!(rig.ssd.controller().register(CC) >> 4 & 7, 0b110, "a controller that begins ready has selected it");
}
