//! Identify: data structures of namespaces and lists of namespaces and controllers (Base 5.1.13.2).
//!
//! Left out, and rejected: virtualization (14h, 15h), UUIDs of vendors (17h), domains (18h), user data formats (09h, 0Ah). A
//! drive whose channels belong to one FTL has no NVM Sets (04h) and no endurance groups (19h).

use std::rc::Rc;

use nandscape_drive::Subsystem as _;
use nandscape_wire_nvme::identify::{
    self, IdentifierHead, IndependentNamespace, NSTAT_READY, Namespace as IdentifyNamespace, NamespaceGranularity,
    NvmSet, cns, nidt,
};
use nandscape_wire_nvme::manage::ControllerList;
use nandscape_wire_nvme::{NSID_ALL, Parameter, Status, SubmissionEntry};
use zerocopy::{FromZeros, IntoBytes};

use super::PAGE;
use crate::command_set::NVM;
use crate::engine::NvmeController;
use crate::namespace::{MAX_NAMESPACES, Namespace};
use crate::refusal::Refusal;

impl NvmeController {
    /// A data structure other than Identify Controller.
    pub(super) fn identify_other(&self, entry: &SubmissionEntry) -> Result<Vec<u8>, Refusal> {
        let (cns, nsid) = (entry.cdw10.get() as u8, entry.nsid.get());
        // Controller Identifier (CDW10 bits 31:16) and Command Set Identifier (CDW11 bits 31:24).
        let (cntid, csi) = ((entry.cdw10.get() >> 16) as u16, (entry.cdw11.get() >> 24) as u8);
        let set = &self.subsystem.set;
        let own = set.identifier();
        let of_set = |cns: u8| if [NVM, own].contains(&csi) { Ok(cns) } else { Err(Refusal::field(11, 24)) };
        let listed = |nsids: Vec<u32>| if csi == own { nsids } else { Vec::new() };
        match cns {
            cns::NAMESPACE => self.of_namespace(nsid, self.namespaces.get(nsid), true, |namespace| {
                self.namespace_data(namespace).as_bytes().to_vec()
            }),
            cns::ALLOCATED_NAMESPACE => {
                self.of_namespace(nsid, self.subsystem.namespaces.get(nsid), false, |namespace| {
                    self.namespace_data(namespace).as_bytes().to_vec()
                })
            }
            cns::NAMESPACE_DESCRIPTORS => {
                let namespace = self.namespaces.get(nsid).ok_or(Status::INVALID_NAMESPACE)?;
                Ok(descriptors(&namespace, own))
            }
            cns::INDEPENDENT_NAMESPACE => self.of_namespace(nsid, self.namespaces.get(nsid), true, |namespace| {
                self.independent(namespace).as_bytes().to_vec()
            }),
            cns::ACTIVE_NAMESPACES => namespace_list(nsid, |nsid| self.namespaces.above(nsid)),
            cns::ALLOCATED_NAMESPACES => namespace_list(nsid, |nsid| self.subsystem.namespaces.above(nsid)),
            cns::ATTACHED_CONTROLLERS => {
                self.subsystem.namespaces.get(nsid).ok_or(Refusal::of(Status::INVALID_FIELD, Parameter::NSID))?;
                Ok(controller_list(self.subsystem.controllers_with(nsid), cntid))
            }
            cns::CONTROLLERS => Ok(controller_list(self.subsystem.controllers(), cntid)),
            cns::NAMESPACE_GRANULARITY if set.administration().is_some() => Ok(self.granularity().as_bytes().to_vec()),
            cns::NVM_SETS if self.has_sets() => Ok(self.nvm_sets(entry.cdw11.get() as u16)),
            cns::ENDURANCE_GROUPS if self.has_groups() => Ok(self.endurance_groups(entry.cdw11.get() as u16)),
            // Controller Identifier FFFFh is this controller. All controllers have the same command sets.
            cns::COMMAND_SETS if cntid == u16::MAX || self.subsystem.controllers().contains(&cntid) => {
                Ok(command_sets(own))
            }
            cns::COMMAND_SETS => Err(Refusal::field(10, 16)),
            cns::COMMAND_SET_NAMESPACE => of_set(cns).and_then(|_| {
                let namespace = self.namespaces.get(nsid);
                self.of_namespace(nsid, namespace, true, |namespace| set.identify_specific(namespace, csi))
            }),
            cns::COMMAND_SET_ALLOCATED_NAMESPACE => of_set(cns).and_then(|_| {
                let namespace = self.subsystem.namespaces.get(nsid);
                self.of_namespace(nsid, namespace, false, |namespace| set.identify_specific(namespace, csi))
            }),
            cns::COMMAND_SET_CONTROLLER => of_set(cns).map(|_| set.identify_controller_specific(csi)),
            cns::COMMAND_SET_ACTIVE_NAMESPACES => {
                of_set(cns).and_then(|_| namespace_list(nsid, |nsid| listed(self.namespaces.above(nsid))))
            }
            cns::COMMAND_SET_ALLOCATED_NAMESPACES => {
                of_set(cns).and_then(|_| namespace_list(nsid, |nsid| listed(self.subsystem.namespaces.above(nsid))))
            }
            _ => Err(Refusal::field(10, 0)),
        }
    }

    /// The structure of one namespace. A valid number without a namespace gets zeros. With `common`, the broadcast value gets
    /// the fields that all namespaces share.
    fn of_namespace(
        &self,
        nsid: u32,
        namespace: Option<Rc<Namespace>>,
        common: bool,
        fill: impl FnOnce(Option<&Namespace>) -> Vec<u8>,
    ) -> Result<Vec<u8>, Refusal> {
        match (nsid, namespace) {
            (_, Some(namespace)) => Ok(fill(Some(&namespace))),
            (NSID_ALL, None) if common => Ok(fill(None)),
            (1..=MAX_NAMESPACES, None) => Ok(vec![0; PAGE]),
            _ => Err(Status::INVALID_NAMESPACE.into()),
        }
    }

    /// Capsules have no metadata pointer, so metadata can only follow the data. With one controller, no namespace is shared.
    fn namespace_data(&self, namespace: Option<&Namespace>) -> IdentifyNamespace {
        let mut data = self.subsystem.set.identify_namespace(namespace);
        if self.passes_messages() {
            data.mc &= !identify::MC_SEPARATE;
        }
        if !self.reports_several() {
            data.nmic = 0;
        }
        if let Some(namespace) = namespace.filter(|_| self.has_sets()) {
            let number = identifier_of(namespace.set);
            (data.nvmsetid, data.endgid) = (number.into(), number.into());
        }
        if namespace.is_some() && self.has_placement() {
            data.endgid = identifier_of(0).into();
        }
        data
    }

    /// Whether the drive has endurance groups.
    pub(super) fn has_groups(&self) -> bool {
        self.has_sets() || self.has_placement()
    }

    /// Whether the drive reports NVM Sets.
    pub(super) fn has_sets(&self) -> bool {
        self.subsystem.namespaces.sets() > 1 || self.subsystem.has_latency_mode()
    }

    /// NVM Set List, from an identifier on. Each set is an endurance group of the same number.
    fn nvm_sets(&self, from: u16) -> Vec<u8> {
        let sets = (0..self.subsystem.namespaces.sets()).filter(|set| identifier_of(*set) >= from);
        let entries: Vec<NvmSet> = sets.take(identify::NVM_SET_LIST_MAX).map(|set| self.nvm_set(set)).collect();
        let mut page = vec![0; 128];
        page[0] = entries.len() as u8;
        page.extend(entries.as_bytes());
        page.resize(PAGE, 0);
        page
    }

    fn nvm_set(&self, set: usize) -> NvmSet {
        let (number, (total, unallocated)) = (identifier_of(set), self.subsystem.namespaces.capacity_of_set(set));
        let mut entry = NvmSet::new_zeroed();
        (entry.nvmsetid, entry.endgid) = (number.into(), number.into());
        (entry.total, entry.unallocated) = (u128::from(total).to_le_bytes(), u128::from(unallocated).to_le_bytes());
        entry
    }

    /// Endurance Group List, from an identifier on.
    fn endurance_groups(&self, from: u16) -> Vec<u8> {
        let groups = (0..self.subsystem.namespaces.sets()).map(identifier_of).filter(|number| *number >= from);
        let groups: Vec<u16> = groups.collect();
        let mut page: Vec<u8> = (groups.len() as u16).to_le_bytes().to_vec();
        page.extend(groups.into_iter().flat_map(u16::to_le_bytes));
        page.resize(PAGE, 0);
        page
    }

    fn independent(&self, namespace: Option<&Namespace>) -> IndependentNamespace {
        let mut data = IndependentNamespace::new_zeroed();
        if namespace.is_some() {
            let common = self.namespace_data(namespace);
            (data.nvmsetid, data.endgid) = (common.nvmsetid, common.endgid);
            (data.nmic, data.rescap, data.fpi) = (common.nmic, common.rescap, common.fpi);
            (data.nsattr, data.nstat) = (common.nsattr, NSTAT_READY);
        }
        data
    }

    fn granularity(&self) -> NamespaceGranularity {
        let mut data = NamespaceGranularity::new_zeroed();
        let bytes = self.subsystem.namespaces.granule();
        (data.size, data.capacity) = (bytes.into(), bytes.into());
        data
    }
}

/// NVM Set Identifier and Endurance Group Identifier of a set: they count from one.
pub(super) fn identifier_of(set: usize) -> u16 {
    set as u16 + 1
}

/// Namespace Identification Descriptors.
fn descriptors(namespace: &Namespace, set: u8) -> Vec<u8> {
    let identifiers = &namespace.identifiers;
    let list: [(u8, &[u8]); 4] = [
        (nidt::EUI64, &identifiers.eui64),
        (nidt::NGUID, &identifiers.nguid),
        (nidt::UUID, &identifiers.uuid),
        (nidt::CSI, &[set]),
    ];
    let mut page = Vec::with_capacity(PAGE);
    for (nidt, identifier) in list {
        let head = IdentifierHead { nidt, nidl: identifier.len() as u8, reserved: [0; 2] };
        page.extend_from_slice(head.as_bytes());
        page.extend_from_slice(identifier);
    }
    page.resize(PAGE, 0);
    page
}

/// A list of namespaces above `nsid`.
fn namespace_list(nsid: u32, above: impl FnOnce(u32) -> Vec<u32>) -> Result<Vec<u8>, Refusal> {
    // No namespace can be above FFFFFFFEh and FFFFFFFFh.
    if nsid >= NSID_ALL - 1 {
        return Err(Status::INVALID_NAMESPACE.into());
    }
    let mut page: Vec<u8> = above(nsid).into_iter().flat_map(u32::to_le_bytes).collect();
    page.resize(PAGE, 0);
    Ok(page)
}

/// A list of controllers from `first` on.
fn controller_list(ids: Vec<u16>, first: u16) -> Vec<u8> {
    ControllerList::of(ids.into_iter().filter(|id| *id >= first)).as_bytes().to_vec()
}

/// I/O Command Set data structure: the only combination is the one command set of the drive.
fn command_sets(set: u8) -> Vec<u8> {
    let mut page = vec![0; PAGE];
    page[0] = 1 << set;
    page
}
