//! The state of a controller that survives a kill: namespaces with their formats, data and identifiers, reservations that
//! persist, saved features, and a sanitize operation that was in progress.

use std::sync::Arc;

use nandscape_device_media::durable::{MemoryFile, StoreFile};
use nandscape_device_ssd::Ssd;
use nandscape_drive::HostMem;
use nandscape_drive::conformance::Host;
use nandscape_drive::testing::tenant::{Tenant, run};
use nandscape_sim::{Executor, Seed, Sim, Span};
use nandscape_wire_nvme::identify::{Namespace, cns};
use nandscape_wire_nvme::manage::{self, ControllerList, SanitizeStatus};
use nandscape_wire_nvme::{AdminOpcode, IoOpcode, Status, SubmissionEntry, feature, log};
use zerocopy::{FromBytes as _, FromZeros as _, IntoBytes as _};

use crate::host::{open, small};

const PERSIST: u32 = 0b11 << 30;
const WRITE_EXCLUSIVE: u32 = 1 << 8;

fn tenant(sim: &Sim, ssd: &Ssd, id: u8) -> Tenant {
    Tenant::new(sim, &*ssd.subsystem(), id)
}

fn admin(opcode: AdminOpcode, nsid: u32, cdw10: u32, cdw11: u32) -> SubmissionEntry {
    SubmissionEntry { nsid: nsid.into(), cdw10: cdw10.into(), cdw11: cdw11.into(), ..SubmissionEntry::admin(opcode) }
}

async fn page(host: &Host, entry: SubmissionEntry) -> Vec<u8> {
    let mem = HostMem::zeroed(4_096);
    run(host, entry, mem.clone()).await.unwrap();
    mem.to_vec()
}

/// Namespace 1 of 512 KiB with blocks of 4 KiB, namespace 2 of 1 MiB with blocks of 512 bytes, both attached.
async fn divide(tenant: &Tenant) {
    let of_all = manage::NAMESPACE_DELETE.into();
    run(&tenant.admin, admin(AdminOpcode::NAMESPACE_MANAGEMENT, 1, of_all, 0), HostMem::none()).await.unwrap();
    for (nsid, blocks, format) in [(1, 128, 1), (2, 2_048, 0)] {
        let wish = Namespace {
            nsze: u64::into(blocks),
            ncap: blocks.into(),
            flbas: format,
            nmic: 1,
            ..Namespace::new_zeroed()
        };
        let create = admin(AdminOpcode::NAMESPACE_MANAGEMENT, 0, manage::NAMESPACE_CREATE.into(), 0);
        assert_eq!(run(&tenant.admin, create, HostMem::from_bytes(wish.as_bytes())).await, Ok(nsid));
        let list = ControllerList::of([1, tenant.controller.id()]);
        let attach = admin(AdminOpcode::NAMESPACE_ATTACHMENT, nsid, manage::NAMESPACE_ATTACH.into(), 0);
        run(&tenant.admin, attach, HostMem::from_bytes(list.as_bytes())).await.unwrap();
    }
}

fn new_file() -> Arc<MemoryFile> {
    let backing = Arc::new(MemoryFile::new());
    let spec = small("capacitor", &[]).store_spec(true, Seed::new(5));
    drop(StoreFile::create_on(backing.clone(), spec, false).unwrap());
    backing
}

#[test]
fn namespaces_features_and_reservations_outlast_a_kill() {
    let (backing, profile) = (new_file(), small("capacitor", &[]));
    let threshold = 321;
    let temperature = u32::from(feature::TEMPERATURE_THRESHOLD);
    let mut executor = Executor::new();
    let sim = executor.sim();
    let ssd = open(&sim, &profile, &backing, false);
    let before = executor.block_on(async {
        let one = tenant(&sim, &ssd, 1);
        divide(&one).await;
        let write = SubmissionEntry::blocks(IoOpcode::WRITE, 2, 5, 3);
        run(&one.io, write, HostMem::from_bytes(&[7; 1_536])).await.unwrap();
        run(&one.io, SubmissionEntry::blocks(IoOpcode::WRITE, 1, 5, 1), HostMem::from_bytes(&[8; 4_096]))
            .await
            .unwrap();
        let save = admin(AdminOpcode::SET_FEATURES, 0, temperature | feature::SAVE, threshold);
        run(&one.admin, save, HostMem::none()).await.unwrap();
        one.reserve(IoOpcode::RESERVATION_REGISTER, 2, PERSIST, (0, 42)).await.unwrap();
        one.reserve(IoOpcode::RESERVATION_ACQUIRE, 2, WRITE_EXCLUSIVE, (42, 0)).await.unwrap();
        page(&one.admin, SubmissionEntry::identify(cns::NAMESPACE_DESCRIPTORS, 2)).await
    });
    let again = Arc::new(backing.survivor());
    let mut executor = Executor::new();
    let sim = executor.sim();
    let ssd = open(&sim, &profile, &again, false);
    let after = executor.block_on(async {
        let (one, two) = (tenant(&sim, &ssd, 1), tenant(&sim, &ssd, 2));
        for (nsid, block, bytes, value) in [(2, 5, 1_536, 7), (1, 5, 4_096, 8)] {
            let mem = HostMem::zeroed(bytes);
            let blocks = if nsid == 1 { 1 } else { 3 };
            run(&two.io, SubmissionEntry::blocks(IoOpcode::READ, nsid, block, blocks), mem.clone()).await.unwrap();
            assert!(mem.to_vec().iter().all(|byte| *byte == value), "namespace {nsid}");
        }
        let get = admin(AdminOpcode::GET_FEATURES, 0, temperature, 0);
        assert_eq!(run(&one.admin, get, HostMem::none()).await, Ok(threshold));
        let write = || (SubmissionEntry::blocks(IoOpcode::WRITE, 2, 5, 3), HostMem::from_bytes(&[9; 1_536]));
        let (entry, mem) = write();
        assert_eq!(run(&two.io, entry, mem).await, Err(Status::RESERVATION_CONFLICT));
        let (entry, mem) = write();
        assert!(run(&one.io, entry, mem).await.is_ok(), "the holder may write");
        page(&one.admin, SubmissionEntry::identify(cns::NAMESPACE_DESCRIPTORS, 2)).await
    });
    assert_eq!(after.unwrap(), before.unwrap());
    ssd.check().unwrap();
}

/// A host uses the drive, which is then killed. Returns the file.
fn life(backing: &Arc<MemoryFile>, uses: impl AsyncFnOnce(&Sim, &Tenant)) -> Arc<MemoryFile> {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let ssd = open(&sim, &small("capacitor", &[]), backing, false);
    executor.block_on(async { uses(&sim, &tenant(&sim, &ssd, 1)).await }).unwrap();
    Arc::new(backing.survivor())
}

/// A kill cuts off at most one copy of the notes. If both are invalid, the file is damaged, and no drive without its
/// namespaces starts on it.
#[test]
fn notes_that_are_damaged_twice_are_refused_after_a_kill() {
    let killed = life(&new_file(), async |_, one| divide(one).await);
    // They lie behind the two superblocks, 1 MiB each.
    let copies = [128 << 10, (128 << 10) + (1 << 20)];
    let open = |backing: &Arc<MemoryFile>| {
        let file = StoreFile::open_on(backing.clone(), false).unwrap();
        Ssd::open(&Executor::new().sim(), &small("capacitor", &[]), file).map(drop)
    };
    for copy in copies {
        let once = Arc::new(killed.survivor());
        once.flip(copy + 30, 2);
        open(&once).unwrap();
    }
    copies.iter().for_each(|copy| killed.flip(copy + 30, 2));
    let problem = open(&killed).unwrap_err().to_string();
    assert!(problem.contains("both copies of the controller's notes are damaged"), "{problem}");
}

/// Whether a file can be opened; if not, its drive was being filled with a state.
fn is_whole(backing: MemoryFile) -> bool {
    match StoreFile::open_on(Arc::new(backing), false) {
        Ok(_) => true,
        Err(error) => {
            assert!(error.to_string().contains("remove the file"), "{error}");
            false
        }
    }
}

/// A drive killed while it was filled with a state is unusable. One damaged superblock does not change that.
#[test]
fn a_drive_that_was_being_filled_is_refused() {
    let backing = new_file();
    let mut executor = Executor::new();
    let ssd = open(&executor.sim(), &small("capacitor", &[]), &backing, false);
    executor.block_on(ssd.in_service()).unwrap();
    for is_filling in [true, false] {
        ssd.set_filling(is_filling).unwrap();
        assert_eq!(is_whole(backing.survivor()), !is_filling);
        for copy in [0, 64 << 10] {
            let damaged = backing.survivor();
            damaged.flip(copy + 40, 1);
            assert_eq!(is_whole(damaged), !is_filling, "the copy at byte {copy} is damaged");
        }
    }
}

/// The redo log is repeated before the file is asked whether its drive is in a state.
#[test]
fn a_loss_of_power_after_a_drive_was_filled_leaves_it_filled() {
    let outcomes = (0..12).map(|writes| {
        let backing = Arc::new(MemoryFile::new());
        let spec = small("capacitor", &[]).store_spec(true, Seed::new(5));
        drop(StoreFile::create_on(backing.clone(), spec, true).unwrap());
        backing.track_syncs();
        let mut executor = Executor::new();
        let ssd = open(&executor.sim(), &small("capacitor", &[]), &backing, true);
        executor.block_on(ssd.in_service()).unwrap();
        ssd.set_filling(true).unwrap();
        backing.cut_off_after(writes);
        let is_told = ssd.set_filling(false).is_ok();
        (is_told, is_whole(backing.survivor()), is_whole(backing.after_power_loss(Seed::new(writes))))
    });
    let outcomes: Vec<_> = outcomes.collect();
    assert!(
        outcomes.iter().all(|(is_told, killed, without_power)| !is_told || *killed && *without_power),
        "{outcomes:?}"
    );
    assert!(outcomes.contains(&(false, true, true)), "no cut came between the record and its places: {outcomes:?}");
    assert!(outcomes.iter().any(|(_, _, without_power)| !without_power), "no cut came before the record: {outcomes:?}");
}

#[test]
fn whether_anything_was_written_is_known_after_a_kill() {
    let status = async |one: &Tenant| {
        let log = page(&one.admin, SubmissionEntry::get_log_page(log::SANITIZE_STATUS, 0, 512)).await;
        SanitizeStatus::read_from_prefix(&log).unwrap().0.status.get()
    };
    let write = async |one: &Tenant| {
        for block in 0..64 {
            let write = SubmissionEntry::blocks(IoOpcode::WRITE, 1, block * 64, 64);
            run(&one.io, write, HostMem::from_bytes(&[7; 32_768])).await.unwrap();
        }
    };
    let (never, done, erased) = (manage::SANITIZE_NEVER, manage::SANITIZE_SUCCEEDED, manage::GLOBAL_DATA_ERASED);
    let new = life(&new_file(), async |_, one| assert_eq!(status(one).await, never | erased));
    let written = life(&new, async |_, one| {
        assert_eq!(status(one).await, never | erased);
        write(one).await;
    });
    let sanitized = life(&written, async |sim, one| {
        assert_eq!(status(one).await, never);
        run(&one.admin, admin(AdminOpcode::SANITIZE, 0, 2, 0), HostMem::none()).await.unwrap();
        sim.sleep(Span::from_s(10)).await;
        assert_eq!(status(one).await, done | erased);
    });
    let again = life(&sanitized, async |_, one| {
        assert_eq!(status(one).await, done | erased);
        write(one).await;
        assert_eq!(status(one).await, done);
    });
    life(&again, async |_, one| assert_eq!(status(one).await, done));
}

#[test]
fn a_sanitize_operation_goes_on_after_a_kill() {
    let (backing, profile) = (new_file(), small("capacitor", &[]));
    let mut executor = Executor::new();
    let sim = executor.sim();
    let ssd = open(&sim, &profile, &backing, false);
    executor
        .block_on(async {
            let one = tenant(&sim, &ssd, 1);
            for block in 0..64 {
                let write = SubmissionEntry::blocks(IoOpcode::WRITE, 1, block * 64, 64);
                run(&one.io, write, HostMem::from_bytes(&[7; 32_768])).await.unwrap();
            }
            let erase = admin(AdminOpcode::SANITIZE, 0, 2, 0);
            run(&one.admin, erase, HostMem::none()).await.unwrap();
        })
        .unwrap();
    let again = Arc::new(backing.survivor());
    let mut executor = Executor::new();
    let sim = executor.sim();
    let ssd = open(&sim, &profile, &again, false);
    executor
        .block_on(async {
            let one = tenant(&sim, &ssd, 1);
            let read = || run(&one.io, SubmissionEntry::blocks(IoOpcode::READ, 1, 0, 64), HostMem::zeroed(32_768));
            assert_eq!(read().await, Err(Status::SANITIZE_IN_PROGRESS));
            sim.sleep(Span::from_s(10)).await;
            assert!(read().await.is_ok());
        })
        .unwrap();
    let geometry = *ssd.media().geometry();
    let used = (0..geometry.blocks())
        .map(nandscape_device_media::BlockId)
        .filter(|block| ssd.media().pages_programmed(*block) > 0);
    assert_eq!(used.count(), 0);
}

/// A host with its own namespace leaves without a Flush, and the drive is turned off in an orderly way.
#[test]
fn a_drive_that_is_turned_off_in_order_flushes_namespaces_of_hosts_that_have_left() {
    let backing = Arc::new(MemoryFile::new());
    let profile = small("volatile", &[]);
    drop(StoreFile::create_on(backing.clone(), profile.store_spec(true, Seed::new(5)), false).unwrap());
    let content = HostMem::from_bytes(&[9; 4_096]);
    let mut executor = Executor::new();
    let sim = executor.sim();
    let ssd = open(&sim, &profile, &backing, false);
    executor
        .block_on(async {
            let one = tenant(&sim, &ssd, 1);
            divide(&one).await;
            let detach = admin(AdminOpcode::NAMESPACE_ATTACHMENT, 1, manage::NAMESPACE_DETACH.into(), 0);
            run(&one.admin, detach, HostMem::from_bytes(ControllerList::of([1]).as_bytes())).await.unwrap();
            run(&one.io, SubmissionEntry::blocks(IoOpcode::WRITE, 1, 7, 1), content.clone()).await.unwrap();
            ssd.shut_down().await;
        })
        .unwrap();
    ssd.close().unwrap();
    let mut executor = Executor::new();
    let sim = executor.sim();
    let ssd = open(&sim, &profile, &Arc::new(backing.survivor()), false);
    let read = executor.block_on(async {
        let one = tenant(&sim, &ssd, 1);
        let mem = HostMem::zeroed(4_096);
        run(&one.io, SubmissionEntry::blocks(IoOpcode::READ, 1, 7, 1), mem.clone()).await.unwrap();
        mem.to_vec()
    });
    assert_eq!(read.unwrap(), content.to_vec());
}
