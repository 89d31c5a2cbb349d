//! A drive with two namespaces and two hosts, each with its own controller, and a record of its data.

use std::rc::Rc;

use nandscape_drive::conformance::Host;
use nandscape_drive::{Controller, HostIdentity, HostMem, QueueDrive, QueueId, Subsystem, TransportModel};
use nandscape_sim::{Rng, Sim, Span};
use nandscape_wire_nvme::identify::{self, Namespace, cns};
use nandscape_wire_nvme::manage::{self, SanitizeStatus};
use nandscape_wire_nvme::register::{CC, CC_EN};
use nandscape_wire_nvme::{AdminOpcode, IoOpcode, NSID_ALL, Status, SubmissionEntry, feature, log, reservation};
use zerocopy::FromBytes;

use crate::action::{Action, BLOCKS, KEYS, attach, create, is_abort, reserve};

/// Entries of 64 and of 16 bytes, enabled.
const ENABLED: u32 = CC_EN | 6 << 16 | 4 << 20;
/// Blocks at the start of each namespace that the load leaves alone.
const KEPT: u32 = 64;
/// Longer than any pair takes.
const LONG: Span = Span::from_s(5);

/// A host with its own controller.
struct Tenant {
    controller: Rc<dyn Controller>,
    admin: Host,
    io: Host,
}

fn tenant(sim: &Sim, subsystem: &dyn Subsystem, id: u8) -> Tenant {
    let identity =
        HostIdentity { hostid: [id; 16], hostnqn: format!("nqn.2026-11.org.example:{id}"), ..HostIdentity::default() };
    let controller = subsystem.new_controller(identity, TransportModel::Message).unwrap();
    controller.set_register(CC, ENABLED);
    let queue = |id| Host::new(sim, QueueDrive::new(sim, controller.clone(), QueueId(id), 64).unwrap());
    Tenant { admin: queue(0), io: queue(1), controller }
}

async fn run(host: &Host, (entry, mem): (SubmissionEntry, HostMem)) -> Status {
    host.execute(entry, mem).await.unwrap().status.meaning()
}

async fn page(host: &Host, entry: SubmissionEntry) -> Vec<u8> {
    let mem = HostMem::zeroed(4_096);
    assert_eq!(run(host, (entry, mem.clone())).await, Status::SUCCESS, "{entry:?}");
    mem.to_vec()
}

/// See the file.
pub(crate) struct Case {
    sim: Sim,
    subsystem: Rc<dyn Subsystem>,
    /// Cuts power for a time.
    cut_power: Box<dyn Fn(Span)>,
    tenants: [Tenant; 2],
    /// Commands of actions: host, whether it is one of the I/O queue, and its tag.
    begun: Vec<(Action, usize, bool, u64)>,
    /// Event requests, which need not end.
    requests: [usize; 2],
}

impl Case {
    pub(crate) async fn new(sim: &Sim, subsystem: Rc<dyn Subsystem>, cut_power: Box<dyn Fn(Span)>) -> Case {
        let tenants = [1, 2].map(|id| tenant(sim, &*subsystem, id));
        let ids = tenants.each_ref().map(|tenant| tenant.controller.id());
        let admin = &tenants[0].admin;
        let delete = Action::Delete(NSID_ALL).command(ids).unwrap();
        assert_eq!(run(admin, delete).await, Status::SUCCESS);
        for nsid in [1, 2] {
            assert_eq!(run(admin, create()).await, Status::SUCCESS);
            assert_eq!(run(admin, attach(manage::NAMESPACE_ATTACH, nsid, ids)).await, Status::SUCCESS);
            let write = SubmissionEntry::blocks(IoOpcode::WRITE, nsid, 0, KEPT);
            let data = HostMem::from_bytes(&vec![nsid as u8; KEPT as usize * 512]);
            assert_eq!(run(&tenants[0].io, (write, data)).await, Status::SUCCESS);
        }
        let flush = SubmissionEntry::io(IoOpcode::FLUSH, NSID_ALL);
        assert_eq!(run(&tenants[0].io, (flush, HostMem::none())).await, Status::SUCCESS);
        for (tenant, key) in tenants.iter().zip(KEYS) {
            let register = reserve(IoOpcode::RESERVATION_REGISTER, reservation::REGISTER.into(), 0, key);
            assert_eq!(run(&tenant.io, register).await, Status::SUCCESS);
        }
        Case { sim: sim.clone(), subsystem, cut_power, tenants, begun: Vec::new(), requests: [0; 2] }
    }

    /// Commands of both hosts over blocks.
    pub(crate) fn load(&self, rng: &mut Rng) {
        for tenant in &self.tenants {
            for _ in 0..rng.below(6) {
                let opcodes =
                    [IoOpcode::READ, IoOpcode::WRITE, IoOpcode::VERIFY, IoOpcode::WRITE_ZEROES, IoOpcode::FLUSH];
                let opcode = opcodes[rng.below(5) as usize];
                let slba = u64::from(KEPT) + rng.below(256);
                let entry = SubmissionEntry::blocks(opcode, 1 + rng.below(2) as u32, slba, 32);
                tenant.io.submit(entry, HostMem::zeroed(32 * 512));
            }
        }
    }

    /// Starts an action of a host without waiting for it.
    pub(crate) fn begin(&mut self, action: Action, host: usize) {
        let ids = self.tenants.each_ref().map(|tenant| tenant.controller.id());
        let Tenant { controller, admin, io } = &self.tenants[host];
        if let Some((entry, mem)) = action.command(ids) {
            self.requests[host] += usize::from(action == Action::AskForEvent);
            self.begun.push((action, host, false, admin.submit(entry, mem)));
        }
        if let Some((entry, mem)) = action.io_command(host) {
            self.begun.push((action, host, true, io.submit(entry, mem)));
        }
        match action {
            Action::Reset => {
                controller.set_register(CC, ENABLED & !CC_EN);
                controller.set_register(CC, ENABLED);
            }
            Action::ShutDown => controller.set_register(CC, ENABLED | 0b01 << 14),
            // Another action deletes the queue, or has deleted it.
            Action::DeleteQueue => _ = controller.delete_queue_pair(QueueId(1)),
            Action::Leave => controller.detach(),
            Action::CutPower => (self.cut_power)(Span::from_us(500)),
            _ => {}
        }
    }

    /// Waits for the end of all commands, and checks them and the drive.
    pub(crate) async fn end(&self) {
        let begun = self.sim.now();
        while !self.have_ended() {
            let late = || self.tenants.each_ref().map(|tenant| (tenant.admin.ended(), tenant.io.ended()));
            assert!(
                self.sim.now() - begun < LONG,
                "commands have not ended: {:?} of those of {:?}",
                late(),
                self.begun
            );
            self.sim.sleep(Span::from_us(100)).await;
        }
        for tenant in &self.tenants {
            tenant.admin.verdict().unwrap();
            tenant.io.verdict().unwrap();
        }
        let judge = tenant(&self.sim, &*self.subsystem, 3);
        self.wait_for_sanitize(&judge).await;
        self.check_statuses();
        self.check_namespaces(&judge).await;
    }

    fn have_ended(&self) -> bool {
        self.tenants.iter().zip(self.requests).all(|(Tenant { admin, io, .. }, requests)| {
            admin.ended() + requests >= admin.submitted() && io.ended() == io.submitted()
        })
    }

    async fn wait_for_sanitize(&self, judge: &Tenant) {
        let begun = self.sim.now();
        loop {
            let bytes = page(&judge.admin, SubmissionEntry::get_log_page(log::SANITIZE_STATUS, 0, 512)).await;
            let status = SanitizeStatus::read_from_prefix(&bytes).unwrap().0.status.get() & 0b111;
            assert_ne!(status, manage::SANITIZE_FAILED);
            if status != manage::SANITIZE_IN_PROGRESS {
                return;
            }
            assert!(self.sim.now() - begun < LONG, "a sanitize operation does not end");
            self.sim.sleep(Span::from_ms(1)).await;
        }
    }

    /// The status of an action's command, if it has ended.
    fn status(&self, host: usize, is_io: bool, tag: u64) -> Option<Status> {
        let Tenant { admin, io, .. } = &self.tenants[host];
        let log = if is_io { io.log() } else { admin.log() };
        log.iter().find(|ended| ended.tag == tag).map(|ended| ended.completion.status.meaning())
    }

    fn check_statuses(&self) {
        for (action, host, is_io, tag) in &self.begun {
            let Some(status) = self.status(*host, *is_io, *tag) else { continue };
            assert!(status.is_success() || action.may_end_with(status), "{action:?} of host {host}: {status}");
        }
        let own = |host: usize| self.begun.iter().filter(move |(_, of, is_io, _)| *of == host && *is_io);
        for (host, tenant) in self.tenants.iter().enumerate() {
            for ended in tenant.io.log().iter().filter(|ended| own(host).all(|(.., tag)| *tag != ended.tag)) {
                let status = ended.completion.status.meaning();
                let is_right = [
                    Status::SUCCESS,
                    // The namespace is gone, or has other blocks.
                    Status::INVALID_FIELD,
                    Status::DATA_SGL_LENGTH_INVALID,
                    Status::LBA_OUT_OF_RANGE,
                    Status::FORMAT_IN_PROGRESS,
                    Status::SANITIZE_IN_PROGRESS,
                    Status::NAMESPACE_WRITE_PROTECTED,
                    Status::RESERVATION_CONFLICT,
                    Status::ABORTED_PREEMPT,
                    Status::ABORT_REQUESTED,
                ];
                assert!(is_right.contains(&status) || is_abort(status), "I/O of host {host}: {status}");
            }
        }
    }

    /// The expected first blocks of a namespace: erased, or unchanged; `None` if an erasing action was aborted, or may have
    /// come when the namespace was detached.
    fn is_erased(&self, nsid: u32) -> Option<bool> {
        let does = |what: fn(&Action) -> bool| self.begun.iter().any(|(action, ..)| what(action));
        if does(|action| *action == Action::Detach) && does(|action| matches!(action, Action::Format(NSID_ALL, _))) {
            return None;
        }
        let erasing = || self.begun.iter().filter(|(action, ..)| action.erases(nsid));
        let statuses: Vec<Status> =
            erasing().filter_map(|(_, host, is_io, tag)| self.status(*host, *is_io, *tag)).collect();
        match statuses.iter().any(|status| status.is_success()) {
            true => Some(true),
            false if statuses.iter().any(|status| is_abort(*status)) => None,
            false => Some(false),
        }
    }

    async fn check_namespaces(&self, judge: &Tenant) {
        let controller = page(&judge.admin, SubmissionEntry::identify(cns::CONTROLLER, 0)).await;
        let controller = identify::Controller::read_from_bytes(&controller).unwrap();
        let mut capacity = u128::from_le_bytes(controller.unvmcap);
        for nsid in 1..=4 {
            let bytes = page(&judge.admin, SubmissionEntry::identify(cns::ALLOCATED_NAMESPACE, nsid)).await;
            let namespace = Namespace::read_from_bytes(&bytes).unwrap();
            capacity += u128::from_le_bytes(namespace.nvmcap);
            if namespace.nsze > 0 {
                self.check_namespace(judge, nsid, namespace.lba_bytes()).await;
            }
        }
        assert_eq!(capacity, u128::from_le_bytes(controller.tnvmcap), "space is lost");
    }

    async fn check_namespace(&self, judge: &Tenant, nsid: u32, lba_bytes: u64) {
        let id = judge.controller.id();
        let list = manage::ControllerList::of([id]);
        let (entry, _) = attach(manage::NAMESPACE_ATTACH, nsid, [id; 2]);
        let attached = run(&judge.admin, (entry, HostMem::from_bytes(zerocopy::IntoBytes::as_bytes(&list)))).await;
        assert!([Status::SUCCESS, Status::NAMESPACE_ALREADY_ATTACHED].contains(&attached), "{attached}");
        let unprotect = SubmissionEntry::set_features(feature::WRITE_PROTECTION, 0);
        let unprotect = SubmissionEntry { nsid: nsid.into(), ..unprotect };
        assert_eq!(run(&judge.admin, (unprotect, HostMem::none())).await, Status::SUCCESS);
        let blocks = KEPT * 512 / lba_bytes as u32;
        let command = |opcode, slba| SubmissionEntry::blocks(opcode, nsid, slba, blocks);
        let mem = HostMem::from_bytes(&vec![0xee; KEPT as usize * 512]);
        assert_eq!(run(&judge.io, (command(IoOpcode::READ, 0), mem.clone())).await, Status::SUCCESS);
        let data = mem.to_vec();
        let holds = |value: u8| data.iter().all(|byte| *byte == value);
        match self.is_erased(nsid) {
            Some(true) => assert!(holds(0), "namespace {nsid} is not erased"),
            Some(false) => assert!(holds(nsid as u8) || nsid > 2 && holds(0), "namespace {nsid} has lost data"),
            None => assert!(holds(nsid as u8) || holds(0), "namespace {nsid} is torn"),
        }
        let last = BLOCKS * 512 / lba_bytes - u64::from(blocks);
        let written = run(&judge.io, (command(IoOpcode::WRITE, last), mem)).await;
        assert!([Status::SUCCESS, Status::RESERVATION_CONFLICT].contains(&written), "namespace {nsid}: {written}");
        let test = SubmissionEntry {
            nsid: nsid.into(),
            cdw10: 1.into(),
            ..SubmissionEntry::admin(AdminOpcode::DEVICE_SELF_TEST)
        };
        let tested = run(&judge.admin, (test, HostMem::none())).await;
        assert!([Status::SUCCESS, Status::SELF_TEST_IN_PROGRESS].contains(&tested), "{tested}");
    }
}
