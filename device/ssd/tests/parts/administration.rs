//! NVM Sets and Endurance Groups as seen by a host, and commands that change or erase the whole drive.

use nandscape_drive::HostMem;
use nandscape_drive::conformance::Host;
use nandscape_sim::Executor;
use nandscape_wire_nvme::identify::{self, Controller, IndependentNamespace, Namespace, NvmSet, cns};
use nandscape_wire_nvme::log::{self, EnduranceGroup, Smart};
use nandscape_wire_nvme::manage::{self, ControllerList, Sanitize, SanitizeStatus};
use nandscape_wire_nvme::{AdminOpcode, Status, SubmissionEntry};
use zerocopy::{FromBytes, IntoBytes};

use crate::rig::{THREE, TWO, admin, queue, read, resolved, run, ssd, write};

async fn page(host: &Host, entry: SubmissionEntry) -> Result<Vec<u8>, Status> {
    let mem = HostMem::zeroed(4_096);
    run(host, entry, mem.clone()).await?;
    Ok(mem.to_vec())
}

fn identify(cns: u8, nsid: u32, from: u32) -> SubmissionEntry {
    SubmissionEntry { cdw11: from.into(), ..SubmissionEntry::identify(cns, nsid) }
}

fn log_page(id: u8, identifier: u32, bytes: u32) -> SubmissionEntry {
    let cdw10 = u32::from(id) | (bytes / 4 - 1) << 16;
    SubmissionEntry {
        cdw10: cdw10.into(),
        cdw11: (identifier << 16).into(),
        ..SubmissionEntry::admin(AdminOpcode::GET_LOG_PAGE)
    }
}

async fn log_of(host: &Host, id: u8, identifier: u32) -> Result<Vec<u8>, Status> {
    let mem = HostMem::zeroed(512);
    run(host, log_page(id, identifier, 512), mem.clone()).await?;
    Ok(mem.to_vec())
}

#[test]
fn each_ftl_is_an_nvm_set_and_an_endurance_group() {
    let mut executor = Executor::new();
    let (sim, profile) = (executor.sim(), resolved(THREE, &[]));
    let ssd = ssd(&sim, &profile);
    let (admin, io) = (admin(&sim, &ssd), Host::new(&sim, queue(&sim, &ssd, 1, 1)));
    let done = executor.block_on(async {
        let controller = page(&admin, identify(cns::CONTROLLER, 0, 0)).await.unwrap();
        let controller = Controller::read_from_bytes(&controller).unwrap();
        let both = identify::CTRATT_NVM_SETS | identify::CTRATT_ENDURANCE_GROUPS;
        assert_eq!(controller.ctratt.get() & both, both);
        assert_eq!((controller.nsetidmax.get(), controller.endgidmax.get()), (3, 3));

        let sets = page(&admin, identify(cns::NVM_SETS, 0, 2)).await.unwrap();
        assert_eq!(sets[0], 2, "the second and the third");
        let second = NvmSet::read_from_bytes(&sets[128..256]).unwrap();
        assert_eq!((second.nvmsetid.get(), second.endgid.get()), (2, 2));
        assert_eq!(u128::from_le_bytes(second.total), u128::from(profile.namespaces()[1]));
        assert_eq!(u128::from_le_bytes(second.unallocated), 0);
        let groups = page(&admin, identify(cns::ENDURANCE_GROUPS, 0, 0)).await.unwrap();
        assert_eq!(groups[..8], [3, 0, 1, 0, 2, 0, 3, 0]);

        for nsid in 1..=3 {
            let namespace = page(&admin, identify(cns::NAMESPACE, nsid, 0)).await.unwrap();
            let namespace = Namespace::read_from_bytes(&namespace).unwrap();
            assert_eq!((namespace.nvmsetid.get(), namespace.endgid.get()), (nsid as u16, nsid as u16));
            assert_eq!(namespace.nlbaf_z, 1, "OX-Block has no metadata, so no namespace has a format with it");
            let independent = page(&admin, identify(cns::INDEPENDENT_NAMESPACE, nsid, 0)).await.unwrap();
            let independent = IndependentNamespace::read_from_bytes(&independent).unwrap();
            assert_eq!(u32::from(independent.nvmsetid.get()), nsid);
        }

        for (nsid, count) in [(1, 3), (2, 5)] {
            for block in 0..count {
                write(&io, nsid, block * 8, 1).await.unwrap();
            }
        }
        let group = |bytes: Vec<u8>| EnduranceGroup::read_from_bytes(&bytes).unwrap();
        for (id, writes) in [(1, 3), (2, 5), (3, 0)] {
            let group = group(log_of(&admin, log::ENDURANCE_GROUP, id).await.unwrap());
            assert_eq!(group.host_writes.low.get(), writes, "group {id}");
            assert_eq!(group.total.low.get(), profile.namespaces()[id as usize - 1]);
        }
        let smart = Smart::read_from_bytes(&log_of(&admin, log::SMART, 0).await.unwrap()).unwrap();
        assert_eq!(smart.host_writes.low.get(), 8);
        for wrong in [0, 4] {
            assert_eq!(log_of(&admin, log::ENDURANCE_GROUP, wrong).await, Err(Status::INVALID_FIELD));
        }
    });
    done.unwrap();
}

fn wish(blocks: u64, nvmsetid: u16, endgid: u16) -> HostMem {
    let data = Namespace {
        nsze: blocks.into(),
        ncap: blocks.into(),
        nvmsetid: nvmsetid.into(),
        endgid: endgid.into(),
        ..Namespace::zeroed()
    };
    HostMem::from_bytes(data.as_bytes())
}

fn manage_namespaces(select: u8, nsid: u32) -> SubmissionEntry {
    SubmissionEntry {
        cdw10: u32::from(select).into(),
        nsid: nsid.into(),
        ..SubmissionEntry::admin(AdminOpcode::NAMESPACE_MANAGEMENT)
    }
}

#[test]
fn a_namespace_is_created_in_the_set_that_its_host_names() {
    let mut executor = Executor::new();
    let (sim, profile) = (executor.sim(), resolved(TWO, &[]));
    let ssd = ssd(&sim, &profile);
    let (admin, io) = (admin(&sim, &ssd), Host::new(&sim, queue(&sim, &ssd, 1, 1)));
    let done = executor.block_on(async {
        let create = |wish: HostMem| run(&admin, manage_namespaces(manage::NAMESPACE_CREATE, 0), wish);
        assert_eq!(create(wish(8, 0, 0)).await, Err(Status::NAMESPACE_INSUFFICIENT_CAPACITY));
        run(&admin, manage_namespaces(manage::NAMESPACE_DELETE, 2), HostMem::none()).await.unwrap();
        assert_eq!(create(wish(8, 1, 1)).await, Err(Status::NAMESPACE_INSUFFICIENT_CAPACITY));
        for (set, group) in [(1, 0), (3, 0), (0, 3), (1, 2)] {
            assert_eq!(create(wish(8, set, group)).await, Err(Status::INVALID_FIELD), "{set} {group}");
        }
        assert_eq!(create(wish(2_048, 2, 2)).await, Ok(2));
        assert_eq!(create(wish(2_048, 0, 2)).await, Ok(3), "by its group");
        assert_eq!(create(wish(2_048, 0, 0)).await, Ok(4), "the first set that has room");
        let list = ControllerList::of([nandscape_drive::subsystem::IN_PROCESS_CONTROLLER]);
        for nsid in 2..=4 {
            let attach =
                SubmissionEntry { nsid: nsid.into(), ..SubmissionEntry::admin(AdminOpcode::NAMESPACE_ATTACHMENT) };
            run(&admin, attach, HostMem::from_bytes(list.as_bytes())).await.unwrap();
            write(&io, nsid, 0, nsid as u8).await.unwrap();
            let namespace = page(&admin, identify(cns::NAMESPACE, nsid, 0)).await.unwrap();
            assert_eq!(Namespace::read_from_bytes(&namespace).unwrap().nvmsetid.get(), 2);
        }
        for nsid in 2..=4 {
            assert_eq!(read(&io, nsid, 0).await, Ok(nsid as u8));
        }
    });
    done.unwrap();
    assert_eq!(ssd.parts()[1].stats().host_bytes, 3 * 4_096, "all of them are in the second set");
    ssd.check().unwrap();
}

fn sanitize(action: u32) -> SubmissionEntry {
    SubmissionEntry { cdw10: action.into(), ..SubmissionEntry::admin(AdminOpcode::SANITIZE) }
}

async fn sanitized(admin: &Host) -> u16 {
    loop {
        let status = log_of(admin, log::SANITIZE_STATUS, 0).await.unwrap();
        let status = SanitizeStatus::read_from_bytes(&status).unwrap().status.get() & 0b111;
        if status != manage::SANITIZE_IN_PROGRESS {
            return status;
        }
    }
}

/// OX-Block cannot erase all of its flash: a block erase is not offered, and a cryptographic erase reaches both.
#[test]
fn a_sanitize_reaches_every_set_or_is_refused() {
    let pages = TWO.replace("ox_block", "page");
    for (parts, action, is_offered) in [
        (TWO, Sanitize::CRYPTO_ERASE, true),
        (TWO, Sanitize::BLOCK_ERASE, false),
        (&*pages, Sanitize::BLOCK_ERASE, true),
    ] {
        let mut executor = Executor::new();
        let (sim, profile) = (executor.sim(), resolved(parts, &[]));
        let ssd = ssd(&sim, &profile);
        let (admin, io) = (admin(&sim, &ssd), Host::new(&sim, queue(&sim, &ssd, 1, 1)));
        let done = executor.block_on(async {
            for nsid in 1..=2 {
                write(&io, nsid, 0, 5).await.unwrap();
            }
            let asked = run(&admin, sanitize(action.into()), HostMem::none()).await;
            if !is_offered {
                assert_eq!(asked, Err(Status::INVALID_FIELD));
                return;
            }
            asked.unwrap();
            assert_eq!(sanitized(&admin).await, manage::SANITIZE_SUCCEEDED);
            for nsid in 1..=2 {
                assert_eq!(read(&io, nsid, 0).await, Ok(0));
            }
        });
        done.unwrap();
        ssd.check().unwrap();
        let identifiers = ssd.parts().iter().flat_map(|part| part.media().identifiers());
        let are_there = identifiers
            .into_iter()
            .all(|found| matches!(found, nandscape_device_media::identifier::Found::Identifier { .. }));
        assert!(are_there, "channels keep their owners");
    }
}
