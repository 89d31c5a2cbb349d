//! Namespace Management, Namespace Attachment, Format NVM, Sanitize and Device Self-test (Base 5.1.21, 5.1.20, 5.1.10,
//! 5.1.22, 5.1.5), and the Changed Attached Namespace List.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

use nandscape_drive::subsystem::IN_PROCESS_CONTROLLER;
use nandscape_drive::{Controller as _, HostMem};
use nandscape_wire_nvme::identify::{self, Namespace as IdentifyNamespace};
use nandscape_wire_nvme::manage::{self, ControllerList, FormatNvm, Sanitize};
use nandscape_wire_nvme::pieces::FORMAT_PIECES;
use nandscape_wire_nvme::{AdminOpcode, NSID_ALL, Parameter, Status, SubmissionEntry};
use zerocopy::{FromBytes, FromZeros, IntoBytes};

use super::{Answer, Event, PAGE};
use crate::engine::NvmeController;
use crate::namespace::{Access, Format, MAX_NAMESPACES, Namespace, NewNamespace};
use crate::refusal::Refusal;

/// Entries of the Changed Attached Namespace List.
const CHANGED_MAX: usize = 1_024;
/// A valid number without a namespace.
const UNKNOWN_NAMESPACE: Refusal = Refusal::of(Status::INVALID_FIELD, Parameter::NSID);
/// The field of the action: Select, Self-test Code, Sanitize Action.
const SELECT: Refusal = Refusal::field(10, 0);

/// Numbers of namespaces that have changed since the host read the list.
#[derive(Default)]
pub(crate) struct ChangedNamespaces(RefCell<BTreeSet<u32>>);

impl ChangedNamespaces {
    /// The log page (Base 5.1.12.1.5).
    pub(super) fn page(&self) -> Vec<u8> {
        let mut page: Vec<u8> = self.0.borrow().iter().flat_map(|nsid| nsid.to_le_bytes()).collect();
        page.resize(CHANGED_MAX * 4, 0);
        page
    }

    /// The host has read the list, or the controller is reset.
    pub(super) fn clear(&self) {
        self.0.borrow_mut().clear();
    }
}

impl NvmeController {
    /// A namespace of this controller was attached, detached or formatted.
    pub(crate) fn namespace_changed(&self, nsid: u32) {
        self.admin.changed_namespaces.0.borrow_mut().insert(nsid);
        self.raise(Event::NAMESPACE_CHANGED);
    }

    /// Serves a command that changes or tests namespaces. None is allowed during a sanitize operation, and only Sanitize
    /// after its failure.
    pub(super) async fn administer_media(&self, entry: &SubmissionEntry, mem: &HostMem) -> Result<Answer, Refusal> {
        let opcode = AdminOpcode(entry.opcode);
        if self.subsystem.set.administration().is_none() && opcode != AdminOpcode::DEVICE_SELF_TEST {
            return Err(Status::INVALID_OPCODE.into());
        }
        match self.subsystem.sanitizing.refuses() {
            Some(Status::SANITIZE_FAILED) if opcode == AdminOpcode::SANITIZE => {}
            Some(status) => return Err(status.into()),
            None => {}
        }
        match opcode {
            AdminOpcode::SANITIZE => self.sanitize(entry),
            AdminOpcode::DEVICE_SELF_TEST => self.self_test(entry),
            AdminOpcode::NAMESPACE_MANAGEMENT => self.manage_namespaces(entry, mem).await,
            AdminOpcode::NAMESPACE_ATTACHMENT => self.attach_namespaces(entry, mem),
            AdminOpcode::FORMAT_NVM => self.format(entry).await,
            _ => Err(Status::INVALID_OPCODE.into()),
        }
    }

    async fn manage_namespaces(&self, entry: &SubmissionEntry, mem: &HostMem) -> Result<Answer, Refusal> {
        // Command Set Identifier (CDW11 bits 31:24): only the NVM command set.
        if entry.cdw11.get() >> 24 != 0 {
            return Err(Refusal::field(11, 24));
        }
        match manage::select(entry) {
            manage::NAMESPACE_CREATE => self.create_namespace(mem).map(Answer::value),
            manage::NAMESPACE_DELETE => self.delete_namespaces(entry.nsid.get()).await,
            _ => Err(SELECT),
        }
    }

    fn create_namespace(&self, mem: &HostMem) -> Result<u32, Refusal> {
        let mut bytes = [0; PAGE];
        mem.must_fit(PAGE)?;
        mem.read(0, &mut bytes);
        if mem.has_failed() {
            return Err(Status::DATA_TRANSFER_ERROR.into());
        }
        let given = IdentifyNamespace::read_from_bytes(&bytes).expect("it has the size");
        let (index, is_extended) = (given.flbas & 0xf | given.flbas >> 1 & 0x30, given.flbas & 1 << 4 != 0);
        if given.dps >> 4 != 0 {
            return Err(Status::INVALID_FORMAT.into());
        }
        let protection = (given.dps & 0b111, given.dps & 1 << 3 != 0);
        let format = self.format_asked_for(index, is_extended, protection)?;
        let sharing = if self.reports_several() { identify::NMIC_SHARED } else { 0 };
        if given.nmic & !sharing != 0 || given.nsze.get() == 0 || given.ncap > given.nsze {
            return Err(Status::INVALID_FIELD.into());
        }
        if given.ncap < given.nsze {
            return Err(Status::THIN_PROVISIONING_NOT_SUPPORTED.into());
        }
        let is_shared = given.nmic & identify::NMIC_SHARED != 0;
        let set = self.set_asked_for(given.nvmsetid.get(), given.endgid.get())?;
        let new = NewNamespace { blocks: given.nsze.get(), format, is_shared, set };
        let nsid = self.subsystem.namespaces.create(new)?;
        self.subsystem.note();
        Ok(nsid)
    }

    /// The NVM Set of a new namespace. Each endurance group has one set, with the number of the group. With zeros, the drive
    /// chooses; a set is named together with its group (Base, "Namespace Management"). On a drive of one set, the fields are
    /// reserved.
    fn set_asked_for(&self, nvmsetid: u16, endgid: u16) -> Result<Option<usize>, Status> {
        if !self.has_sets() {
            return Ok(None);
        }
        let sets = self.subsystem.namespaces.sets();
        match (usize::from(nvmsetid), usize::from(endgid)) {
            (0, 0) => Ok(None),
            (set, group) if group <= sets && (set == 0 || set == group) => Ok(Some(group - 1)),
            _ => Err(Status::INVALID_FIELD),
        }
    }

    /// A format that the host can use: capsules have no metadata pointer, so metadata must follow the data.
    fn format_asked_for(&self, index: u8, is_extended: bool, protection: (u8, bool)) -> Result<Format, Status> {
        let format = Format::asked_for(self.subsystem.namespaces.formats(), index, is_extended, protection)?;
        match self.passes_messages() && format.lba().metadata > 0 && !is_extended {
            true => Err(Status::INVALID_FORMAT),
            false => Ok(format),
        }
    }

    async fn delete_namespaces(&self, nsid: u32) -> Result<Answer, Refusal> {
        let which = || {
            let named = self.named(nsid, || self.subsystem.namespaces.above(0))?;
            self.check_write_protection(&named)?;
            for nsid in &named {
                self.check_reservations(*nsid)?;
                self.check_unused_in_process(*nsid)?;
            }
            Ok(named)
        };
        self.subsystem.delete_namespaces(which).await?;
        Ok(Answer::default())
    }

    fn attach_namespaces(&self, entry: &SubmissionEntry, mem: &HostMem) -> Result<Answer, Refusal> {
        let nsid = entry.nsid.get();
        let namespace = match nsid {
            1..=MAX_NAMESPACES | NSID_ALL => self.subsystem.namespaces.get(nsid).ok_or(UNKNOWN_NAMESPACE)?,
            _ => return Err(Status::INVALID_NAMESPACE.into()),
        };
        let select = manage::select(entry);
        if ![manage::NAMESPACE_ATTACH, manage::NAMESPACE_DETACH].contains(&select) {
            return Err(SELECT);
        }
        self.check_reservations(nsid)?;
        let controllers = self.subsystem.controllers_of(&controller_list(mem)?);
        let controllers = controllers.ok_or(Status::CONTROLLER_LIST_INVALID)?;
        if select == manage::NAMESPACE_DETACH
            && controllers.iter().any(|controller| controller.id() == IN_PROCESS_CONTROLLER)
        {
            self.check_unused_in_process(nsid)?;
        }
        match select {
            manage::NAMESPACE_ATTACH => self.subsystem.attach_namespace(&namespace, &controllers)?,
            _ => self.subsystem.detach_namespace(nsid, &controllers)?,
        }
        Ok(Answer::default())
    }

    /// Format drops all data with each of the Secure Erase Settings, so no host can read it any more. A cryptographic erase
    /// does the same, as forgetting a key would.
    async fn format(&self, entry: &SubmissionEntry) -> Result<Answer, Refusal> {
        let fields = FormatNvm(entry.cdw10.get());
        let protection = (fields.protection(), fields.protection_first());
        let index = fields.lba_format();
        let format = self.format_asked_for(index, fields.extended(), protection).map_err(|status| {
            // The first of LBA format, place of metadata and protection information that is unavailable.
            let bit = match () {
                () if self.subsystem.namespaces.formats().get(usize::from(index)).is_none() => 0,
                () if self.format_asked_for(index, fields.extended(), (0, false)).is_err() => 4,
                () => 5,
            };
            Refusal::of(status, Parameter::at(10, bit))
        })?;
        if fields.secure_erase() > 2 {
            return Err(Refusal::field(10, 9));
        }
        let unknown = entry.cdw12.get() & !FORMAT_PIECES;
        if unknown != 0 {
            return Err(Refusal::field(12, unknown.trailing_zeros() as u16));
        }
        let has_pieces = entry.cdw12.get() & FORMAT_PIECES != 0;
        if has_pieces && format.lba().metadata > 0 {
            return Err(Refusal::of(Status::INVALID_FORMAT, Parameter::at(10, 0)));
        }
        let format = Format { has_pieces, ..format };
        let which = || {
            // A single namespace must be allocated, but need not be attached here (Base, "Format NVM - Operation Scope"). In
            // each scope of FNA, the broadcast value names the namespaces attached to this controller.
            let named = self.named(entry.nsid.get(), || self.namespaces.above(0))?;
            self.check_write_protection(&named)?;
            for nsid in &named {
                self.check_reservations(*nsid)?;
                let can_have = |of: &Rc<Namespace>| self.subsystem.set.has_pieces(of);
                if has_pieces && !self.subsystem.namespaces.get(*nsid).is_some_and(|of| can_have(&of)) {
                    return Err(Refusal::field(12, 0));
                }
                if self.subsystem.namespaces.get(*nsid).is_some_and(|before| before.format != format) {
                    self.check_unused_in_process(*nsid)?;
                }
            }
            Ok(named)
        };
        self.subsystem.format_namespaces(format, which).await?;
        Ok(Answer::default())
    }

    fn sanitize(&self, entry: &SubmissionEntry) -> Result<Answer, Refusal> {
        let fields = Sanitize(entry.cdw10.get());
        let sanitizes = self.subsystem.set.info().sanitizes;
        match fields.action() {
            // The fields of an operation are ignored.
            Sanitize::EXIT_FAILURE => self.subsystem.leave_sanitize_failure()?,
            Sanitize::BLOCK_ERASE | Sanitize::OVERWRITE if !sanitizes => return Err(SELECT),
            Sanitize::BLOCK_ERASE | Sanitize::OVERWRITE | Sanitize::CRYPTO_ERASE => {
                // The drive deallocates sanitized media, and has no Media Verification state.
                if fields.no_deallocate() {
                    return Err(Refusal::field(10, 9));
                }
                if fields.verifies() {
                    return Err(Refusal::field(10, 10));
                }
                self.check_write_protection(&self.subsystem.namespaces.above(0))?;
                self.subsystem.namespaces.above(0).into_iter().try_for_each(|nsid| self.check_reservations(nsid))?;
                self.subsystem.begin_sanitize(fields, entry.cdw11.get(), self.number)?;
            }
            _ => return Err(SELECT),
        }
        Ok(Answer::default())
    }

    fn self_test(&self, entry: &SubmissionEntry) -> Result<Answer, Refusal> {
        let namespaces = match entry.nsid.get() {
            // Without a namespace, only the controller is tested, which passes: its model has no faults.
            0 => Vec::new(),
            NSID_ALL => self.namespaces.above(0),
            nsid if self.namespaces.get(nsid).is_some() => vec![nsid],
            1..=MAX_NAMESPACES => return Err(UNKNOWN_NAMESPACE),
            _ => return Err(Status::INVALID_NAMESPACE.into()),
        };
        match manage::select(entry) {
            code @ (manage::SELF_TEST_SHORT | manage::SELF_TEST_EXTENDED) => {
                self.subsystem.begin_self_test(code, namespaces, self.number)?;
            }
            manage::SELF_TEST_ABORT => self.subsystem.self_tests.abort(manage::SELF_TEST_ABORTED, self.sim.now()),
            _ => return Err(SELECT),
        }
        Ok(Answer::default())
    }

    /// Rejects a change of namespaces if one is write protected.
    fn check_write_protection(&self, all: &[u32]) -> Result<(), Status> {
        let mut all = all.iter().filter_map(|nsid| self.subsystem.namespaces.get(*nsid));
        all.try_for_each(|namespace| namespace.check_write_protection())
    }

    /// Rejects a change of a namespace that another host has reserved.
    fn check_reservations(&self, nsid: u32) -> Result<(), Status> {
        match self.subsystem.namespaces.get(nsid) {
            Some(namespace) => namespace.reservations.check_access(self.registrant(), Access::Write),
            None => Ok(()),
        }
    }

    /// The namespaces that a number names: one, or those that the broadcast value stands for.
    fn named(&self, nsid: u32, all: impl FnOnce() -> Vec<u32>) -> Result<Vec<u32>, Refusal> {
        match nsid {
            NSID_ALL => Ok(all()),
            1..=MAX_NAMESPACES if self.subsystem.namespaces.get(nsid).is_some() => Ok(vec![nsid]),
            1..=MAX_NAMESPACES => Err(UNKNOWN_NAMESPACE),
            _ => Err(Status::INVALID_NAMESPACE.into()),
        }
    }

    /// Hosts in this process read size and format of their namespace once and get no events. While they have I/O queues, no
    /// other host may change or detach it.
    fn check_unused_in_process(&self, nsid: u32) -> Result<(), Status> {
        if self.id() == IN_PROCESS_CONTROLLER {
            return Ok(());
        }
        let local = self.subsystem.controllers_of(&[IN_PROCESS_CONTROLLER]).unwrap_or_default();
        let uses = |local: &NvmeController| local.namespaces.get(nsid).is_some() && local.has_io_queues();
        match local.iter().any(|local| uses(local)) {
            true => Err(Status::OPERATION_DENIED),
            false => Ok(()),
        }
    }
}

/// The identifiers of a Controller List.
fn controller_list(mem: &HostMem) -> Result<Vec<u16>, Status> {
    let mut list = ControllerList::new_zeroed();
    mem.must_fit(PAGE)?;
    mem.read(0, list.as_mut_bytes());
    if mem.has_failed() {
        return Err(Status::DATA_TRANSFER_ERROR);
    }
    let ids: Vec<u16> = list.ids.iter().take(usize::from(list.count.get())).map(|id| id.get()).collect();
    let is_valid = usize::from(list.count.get()) == ids.len() && !ids.is_empty() && ids.is_sorted_by(|a, b| a < b);
    if is_valid { Ok(ids) } else { Err(Status::CONTROLLER_LIST_INVALID) }
}
