//! Namespace Write Protection Config (Base 5.1.25.1.31): a state of the namespace, for all hosts.

use nandscape_wire_nvme::{NSID_ALL, Parameter, Status, SubmissionEntry, feature};

use crate::engine::NvmeController;
use crate::namespace::WriteProtection;
use crate::refusal::Refusal;

/// Whether a command sets the feature.
pub(in crate::admin) fn is_named(entry: &SubmissionEntry) -> bool {
    entry.cdw10.get() as u8 == feature::WRITE_PROTECTION
}

impl NvmeController {
    /// The state of a namespace.
    pub(super) fn write_protection(&self, nsid: u32) -> Result<WriteProtection, Refusal> {
        let namespace = self.namespaces.get(nsid).ok_or(Refusal::of(Status::INVALID_FIELD, Parameter::NSID))?;
        Ok(namespace.write_protection())
    }

    /// Sets the state of a namespace, or of all that are attached. Writes that begin from now on see it.
    pub(super) fn set_write_protection(&self, nsid: u32, value: u32) -> Result<(), Refusal> {
        let state = WriteProtection::of(value & feature::WRITE_PROTECTION_STATE).ok_or(Refusal::field(11, 0))?;
        let named = if nsid == NSID_ALL { self.namespaces.above(0) } else { vec![nsid] };
        let named: Vec<_> = named.into_iter().filter_map(|nsid| self.namespaces.get(nsid)).collect();
        if named
            .iter()
            .any(|namespace| namespace.write_protection() != state && !namespace.write_protection().is_changeable())
        {
            return Err(Refusal::of(Status::FEATURE_NOT_CHANGEABLE, Parameter::at(11, 0)));
        }
        for namespace in named.iter().filter(|namespace| namespace.write_protection() != state) {
            namespace.set_write_protection(state);
            if let Some(streams) = self.subsystem.set.streams().filter(|_| namespace.is_write_protected()) {
                streams.release_resources(|(_, nsid)| *nsid == namespace.nsid);
            }
            for user in self.subsystem.all_controllers() {
                if user.namespaces.get(namespace.nsid).is_some() {
                    user.namespace_changed(namespace.nsid);
                }
            }
        }
        self.subsystem.note();
        Ok(())
    }

    /// Waits until writes to newly protected namespaces have ended and their data has left the volatile cache.
    pub(in crate::admin) async fn writes_have_ended(&self, nsid: u32) {
        let named = if nsid == NSID_ALL { self.namespaces.above(0) } else { vec![nsid] };
        for nsid in named {
            self.subsystem.end_writes(nsid).await;
        }
    }
}
