//! The drives under a served array: models of this process, and drives of other servers.

use std::collections::BTreeMap;
use std::rc::Rc;

use nandscape_device_media::durable::StoreFile;
use nandscape_drive::{Drive, QueueDrive, QueueId};
use nandscape_host_array::Member;
use nandscape_host_driver::nvme_tcp::NvmeTcp;
use nandscape_sim::Sim;
use nandscape_transport_reactor::{Export, FaultCount, Order};
use nandscape_wire_nvme::identify::{DLFEAT_ZEROS, ONCS_DSM};

use crate::live::{DriveSpec, SsdExport};
use crate::remote::{Far, FarAdmin, RemoteSpec};
use crate::simulation::Progress;

/// Entries of the admin queue of a model.
const ADMIN_ENTRIES: u32 = 32;

/// A drive that is to be a member, or a spare.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum MemberSpec {
    /// A model.
    Model(DriveSpec),
    /// A drive of another server.
    Remote(RemoteSpec),
}

/// Such a drive at work.
pub(super) enum Under {
    Model(String, Rc<SsdExport>),
    Remote(String, Rc<Far>),
}

impl MemberSpec {
    /// The name that users know it by.
    pub fn name(&self) -> &str {
        match self {
            MemberSpec::Model(spec) => &spec.name,
            MemberSpec::Remote(spec) => &spec.name,
        }
    }

    /// The model, if it is one.
    pub fn model(&self) -> Option<&DriveSpec> {
        if let MemberSpec::Model(spec) = self { Some(spec) } else { None }
    }

    pub(super) fn build(
        &self,
        sim: &Sim,
        seed: u64,
        file: Option<StoreFile>,
        progress: &dyn Progress,
    ) -> Result<Under, String> {
        match self {
            MemberSpec::Model(spec) => {
                let export = spec.build_in(sim, seed, file, progress).map_err(|error| error.to_string())?;
                Ok(Under::Model(spec.name.clone(), Rc::new(export)))
            }
            MemberSpec::Remote(spec) => Ok(Under::Remote(spec.name.clone(), Rc::new(Far::connect(&spec.target)?))),
        }
    }
}

impl Under {
    pub(super) fn name(&self) -> &str {
        match self {
            Under::Model(name, _) | Under::Remote(name, _) => name,
        }
    }

    pub(super) fn model(&self) -> Option<&Rc<SsdExport>> {
        match self {
            Under::Model(_, export) => Some(export),
            Under::Remote(..) => None,
        }
    }

    pub(super) fn far(&self) -> Option<&Rc<Far>> {
        match self {
            Under::Model(..) => None,
            Under::Remote(_, far) => Some(far),
        }
    }

    pub(super) fn connection(&self) -> Option<Rc<NvmeTcp>> {
        self.far().map(|far| far.connection().clone())
    }

    /// Its queues, as the array uses them.
    pub(super) fn member(&self, sim: &Sim) -> Result<Member, String> {
        let (io, admin): (Rc<dyn Drive>, Rc<dyn Drive>) = match self {
            Under::Model(name, export) => {
                let refused = |status: nandscape_wire_nvme::Status| format!("drive {name}: {}", status.name());
                let admin = QueueDrive::new(sim, export.ssd().controller(), QueueId::ADMIN, ADMIN_ENTRIES);
                (export.connect().map_err(refused)?, admin.map_err(refused)?)
            }
            Under::Remote(_, far) => (far.clone(), Rc::new(FarAdmin::of(far))),
        };
        Ok(Member { io, admin: Some(admin) })
    }

    /// Whether all of it reads as zeros once it is deallocated. The models' do.
    pub(super) fn can_be_zeroed(&self) -> bool {
        let Some(identity) = self.connection().map(|drive| drive.identity().clone()) else { return true };
        identity.optional_commands & ONCS_DSM != 0 && identity.deallocated & 0b111 == DLFEAT_ZEROS
    }

    pub(super) fn counters(&self) -> BTreeMap<&'static str, f64> {
        match self {
            Under::Model(_, export) => export.counters(),
            Under::Remote(_, far) => far.counters(),
        }
    }

    pub(super) fn order(&self, order: &Order) -> Result<(), String> {
        match self {
            Under::Model(_, export) => export.order(order),
            Under::Remote(name, far) => Err(format!("drive {name} is {}: give orders where it is", far.url())),
        }
    }

    pub(super) fn faults(&self) -> Vec<FaultCount> {
        let Some(export) = self.model() else { return Vec::new() };
        let named = |count: FaultCount| FaultCount { rule: format!("{}={}", self.name(), count.rule), ..count };
        export.faults().into_iter().map(named).collect()
    }
}
