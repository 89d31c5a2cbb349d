//! Get and Set Features (Base 5.1.11, 5.1.25).
//!
//! | file | what |
//! |---|---|
//! | `mod` | the commands: checks of feature, value and access |
//! | `table` | every feature: what can be done with it, and its default |
//! | `settings` | the values, current and saved |
//! | `data` | values that are data structures |
//! | `write_protection` | write protection of namespaces |
//!
//! Left out: LBA Range Type, Autonomous Power State Transition, Host Memory Buffer and every feature that the table lacks.
//! The controller rejects them.

mod data;
mod settings;
mod table;
mod write_protection;

use nandscape_drive::{HostMem, TransportModel};
use nandscape_wire_nvme::feature::{self, NumberOfQueues, SAVE, Select, TemperatureThreshold};
use nandscape_wire_nvme::identify::keep_alive_timeout_ms;
use nandscape_wire_nvme::vendor::{ARBITER, NOTICES, WINDOWS, arbiter};
use nandscape_wire_nvme::{NSID_ALL, Parameter, Status, SubmissionEntry};

use super::Answer;
use super::fdp::is_feature;
use super::latency;
use crate::arbiter::ArbiterKind;
use crate::engine::NvmeController;
use crate::namespace::MAX_NAMESPACES;
use crate::refusal::Refusal;
pub(super) use data::data;
use settings::Name;
pub use settings::Settings;
pub(crate) use settings::{Saved, SavedNote};
pub(super) use table::{CRITICAL_TEMPERATURE, TEMPERATURE, WARNING_TEMPERATURE};
use table::{Row, row_of};
pub(super) use write_protection::is_named as sets_write_protection;

/// TMPSEL of Temperature Threshold: all sensors.
const ALL_SENSORS: u8 = 0xf;

impl NvmeController {
    pub(super) fn get_features(&self, entry: &SubmissionEntry) -> Result<Answer, Refusal> {
        let select = Select::of(entry.cdw10.get()).ok_or(Refusal::field(10, 8))?;
        let row = self.feature(entry)?;
        if row.capabilities & feature::OF_NAMESPACE != 0 {
            self.check_attached(entry.nsid.get())?;
        }
        if select == Select::Capabilities {
            return Ok(Answer::value(row.capabilities));
        }
        match row.id {
            feature::TIMESTAMP if select == Select::Current => return Ok(Answer::data(&self.timestamp())),
            feature::TIMESTAMP => return Ok(Answer::data(&[0; 8])),
            feature::HOST_BEHAVIOR if select == Select::Current => return Ok(Answer::data(&self.host_behavior())),
            feature::HOST_BEHAVIOR => return Ok(Answer::data(&[0; feature::HOST_BEHAVIOR_BYTES])),
            feature::HOST_IDENTIFIER if select == Select::Current => {
                return Ok(Answer::data(&self.get_host_id(entry)?));
            }
            feature::HOST_IDENTIFIER => return Ok(Answer::data(&[0; 16])),
            id if is_feature(id) && select == Select::Current => return self.get_placement(id, entry),
            id if latency::is_feature(id) => return self.get_latency(id, entry, select == Select::Current),
            WINDOWS => return Ok(self.get_windows(select == Select::Current)),
            NOTICES => return Ok(self.get_notices(select == Select::Current)),
            feature::NUMBER_OF_QUEUES => return Ok(Answer::value(self.queue_counts().0)),
            feature::RESERVATION_PERSISTENCE if select == Select::Current => {
                return self.reservations_persist(entry.nsid.get()).map(|persist| Answer::value(persist.into()));
            }
            feature::WRITE_PROTECTION if select == Select::Current => {
                return Ok(Answer::value(self.write_protection(entry.nsid.get())? as u32));
            }
            _ => {}
        }
        let name = self.name(row, entry)?;
        let settings = &self.admin.settings;
        let value = match select {
            Select::Current if row.id == feature::ERROR_RECOVERY => settings.error_recovery(name.1),
            Select::Current => settings.get(name.0, name.1),
            // A value that was never saved is the default.
            Select::Saved => self.saved(name),
            Select::Default | Select::Capabilities => settings.default_of(name),
        };
        // The vector is next to its bit.
        let selector = if row.id == feature::INTERRUPT_VECTOR { name.1 } else { 0 };
        Ok(Answer::value(value | selector))
    }

    pub(super) fn set_features(&self, entry: &SubmissionEntry, mem: &HostMem) -> Result<Answer, Refusal> {
        let row = self.feature(entry)?;
        let save = entry.cdw10.get() & SAVE != 0;
        if save && row.capabilities & feature::CAN_BE_SAVED == 0 {
            return Err(Status::FEATURE_NOT_SAVEABLE.into());
        }
        self.check_namespace(row, entry.nsid.get())?;
        // Base 5, "Sanitize Operations and Format NVM Command - Admin Commands Allowed".
        if row.id == feature::WRITE_PROTECTION
            && let Some(status) = self.subsystem.sanitizing.refuses()
        {
            return Err(status.into());
        }
        let value = entry.cdw11.get();
        match row.id {
            id if is_feature(id) => return self.set_placement(id, entry, mem),
            id if latency::is_feature(id) => self.set_latency(id, entry, mem)?,
            WINDOWS => self.set_windows(mem)?,
            NOTICES => self.set_notices(mem)?,
            feature::TIMESTAMP => self.set_timestamp(mem)?,
            feature::HOST_BEHAVIOR => self.set_host_behavior(mem)?,
            feature::HOST_IDENTIFIER => self.set_host_id(entry, mem)?,
            feature::NUMBER_OF_QUEUES => return self.set_queue_counts(NumberOfQueues(value)),
            feature::RESERVATION_MASK => self.mask_reservations(entry.nsid.get(), value),
            feature::WRITE_PROTECTION => self.set_write_protection(entry.nsid.get(), value)?,
            feature::RESERVATION_PERSISTENCE => self.persist_reservations(entry.nsid.get(), value & 1 != 0),
            _ => self.set_value(row, entry, save)?,
        }
        Ok(Answer::default())
    }

    /// Sets a value of one dword.
    fn set_value(&self, row: &Row, entry: &SubmissionEntry, save: bool) -> Result<(), Refusal> {
        let (name, value) = (self.name(row, entry)?, entry.cdw11.get());
        let value = match row.id {
            // The only power state is 0.
            feature::POWER_MANAGEMENT if value & 0x1f != 0 => return Err(Refusal::field(11, 0)),
            feature::TEMPERATURE_THRESHOLD => TemperatureThreshold(value).kelvin().into(),
            feature::INTERRUPT_VECTOR => value & feature::COALESCING_DISABLED,
            ARBITER if value != arbiter::DEFAULT && ArbiterKind::of_feature(value).is_none() => {
                return Err(Refusal::field(11, 0));
            }
            // In milliseconds, rounded up to the granularity in Identify (KAS).
            feature::KEEP_ALIVE_TIMER => keep_alive_timeout_ms(value, self.keep_alive_units()),
            _ => value,
        };
        let settings = &self.admin.settings;
        if row.id == feature::ERROR_RECOVERY && name.1 == NSID_ALL {
            settings.forget_namespaces();
        }
        settings.set(name, value);
        match row.id {
            feature::KEEP_ALIVE_TIMER => self.keep_alive_changed(),
            feature::ARBITRATION => self.update_weights(),
            ARBITER => self.choose_arbiter(),
            _ => {}
        }
        if save {
            self.subsystem.saved.set(self.owner(), name, value);
            self.subsystem.note();
        }
        Ok(())
    }

    /// The feature that a command names, if the controller has it.
    fn feature(&self, entry: &SubmissionEntry) -> Result<&'static Row, Refusal> {
        let id = entry.cdw10.get() as u8;
        row_of(id).filter(|_| self.has_feature(id)).ok_or(Refusal::field(10, 0))
    }

    /// Whether the controller has the feature.
    pub(super) fn has_feature(&self, id: u8) -> bool {
        match id {
            feature::VOLATILE_WRITE_CACHE => self.subsystem.set.info().volatile_cache,
            id if is_feature(id) => self.has_placement(),
            id if latency::is_feature(id) => self.subsystem.has_latency_mode(),
            WINDOWS => self.has_windows(),
            NOTICES => self.has_notices(),
            // Capsules raise no interrupts.
            feature::INTERRUPT_COALESCING | feature::INTERRUPT_VECTOR => self.model != TransportModel::Message,
            _ => row_of(id).is_some(),
        }
    }

    /// Whether a feature is namespace specific.
    pub(super) fn is_of_namespace(&self, id: u8) -> bool {
        row_of(id).is_some_and(|row| row.capabilities & feature::OF_NAMESPACE != 0)
    }

    /// Base 5.1.25: only namespace specific features take a namespace identifier; the broadcast value sets all namespaces.
    fn check_namespace(&self, row: &Row, nsid: u32) -> Result<(), Refusal> {
        let of_namespace = row.capabilities & feature::OF_NAMESPACE != 0;
        match nsid {
            NSID_ALL => Ok(()),
            0 if !of_namespace => Ok(()),
            _ if of_namespace => self.check_attached(nsid),
            1..=MAX_NAMESPACES => Err(Status::FEATURE_NOT_NAMESPACE_SPECIFIC.into()),
            _ => Err(Status::INVALID_NAMESPACE.into()),
        }
    }

    /// A number that no namespace can have is Invalid Namespace; the number of no attached namespace is Invalid Field.
    fn check_attached(&self, nsid: u32) -> Result<(), Refusal> {
        match nsid {
            nsid if self.namespaces.get(nsid).is_some() => Ok(()),
            1..=MAX_NAMESPACES => Err(Refusal::of(Status::INVALID_FIELD, Parameter::NSID)),
            _ => Err(Status::INVALID_NAMESPACE.into()),
        }
    }

    /// The feature and selector that a command names.
    fn name(&self, row: &Row, entry: &SubmissionEntry) -> Result<Name, Refusal> {
        let selector = match row.id {
            feature::TEMPERATURE_THRESHOLD => {
                let threshold = TemperatureThreshold(entry.cdw11.get());
                match (threshold.sensor(), threshold.kind()) {
                    (0, kind @ 0..=1) => kind.into(),
                    (ALL_SENSORS, kind @ 0..=1) if entry.opcode == SET_FEATURES => kind.into(),
                    (0 | ALL_SENSORS, 2..) => return Err(Refusal::field(11, 20)),
                    _ => return Err(Refusal::field(11, 16)),
                }
            }
            feature::ERROR_RECOVERY | feature::RESERVATION_MASK => entry.nsid.get(),
            feature::INTERRUPT_VECTOR => {
                let vector = entry.cdw11.get() & 0xffff;
                if vector >= self.vectors().into() {
                    return Err(Refusal::field(11, 0));
                }
                vector
            }
            _ => 0,
        };
        Ok((row.id, selector))
    }

    /// Interrupt vectors of the host. A host in this process has one vector per queue pair.
    fn vectors(&self) -> u16 {
        let attached = self.attached.borrow();
        attached.as_ref().map_or(self.subsystem.config.max_queue_pairs + 1, |host| host.vectors())
    }

    fn saved(&self, name: Name) -> u32 {
        let get = |name| self.subsystem.saved.get(self.owner(), name);
        let of_all = || if name.0 == feature::ERROR_RECOVERY { get((name.0, NSID_ALL)) } else { None };
        get(name).or_else(of_all).unwrap_or_else(|| self.admin.settings.default_of(name))
    }

    fn queue_counts(&self) -> NumberOfQueues {
        NumberOfQueues::new(self.subsystem.config.max_queue_pairs, self.subsystem.config.max_queue_pairs)
    }

    /// The host requests a number of queues, and the controller returns the number that it has. 65,535, counted from zero, is
    /// invalid. The feature must be set before the first queue is created (Base 5.1.25.2.1).
    fn set_queue_counts(&self, wish: NumberOfQueues) -> Result<Answer, Refusal> {
        if wish.submission_z() == u16::MAX {
            return Err(Refusal::field(11, 0));
        }
        if wish.completion_z() == u16::MAX {
            return Err(Refusal::field(11, 16));
        }
        // A host in this process creates queues without setting their number first.
        if self.model != TransportModel::InProcess && self.queues.borrow().has_io_queues() {
            return Err(Status::COMMAND_SEQUENCE_ERROR.into());
        }
        Ok(Answer::value(self.queue_counts().0))
    }
}

const SET_FEATURES: u8 = nandscape_wire_nvme::AdminOpcode::SET_FEATURES.0;
