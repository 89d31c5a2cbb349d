//! A subsystem with the controller of hosts in this process, whatever its command set is.

use std::io;
use std::rc::Rc;

use nandscape_device_media::durable::DurableMemory;
use nandscape_drive::{Controller, Names, Subsystem};
use nandscape_sim::account::Totals;
use nandscape_sim::{Processors, Sim};

use crate::command_set::any::AnySet;
use crate::config::ControllerConfig;
use crate::notices::{Precompletion, Tracker};
use crate::{NvmSubsystem, NvmeController};

/// The front end of a drive, above its FTLs.
pub trait Front {
    /// The controller of hosts in this process.
    fn controller(&self) -> Rc<dyn Controller>;
    /// Its subsystem, for hosts elsewhere.
    fn subsystem(&self) -> Rc<dyn Subsystem>;
    /// Usage of the host link: to the device, and to the host.
    fn link_usage(&self) -> [Totals; 2];
    /// The controller's processors, if it has any.
    fn processors(&self) -> Option<&Rc<Processors>>;
    /// The accuracy of notices; `None` for a drive without notices.
    fn precompletion(&self) -> Option<Precompletion>;
    /// Restarts the counts of notices.
    fn count_notices_anew(&self);
    /// The FTLs were planted.
    fn was_filled(&self);
    /// Writes the controller's notes.
    fn note(&self);
}

/// How a subsystem is made.
pub struct FrontConfig {
    /// Its controllers.
    pub controller: ControllerConfig,
    /// Its names.
    pub names: Names,
    /// The memory of its notes, if they outlast the process.
    pub notes: Option<Rc<DurableMemory>>,
}

/// A subsystem over a command set.
///
/// # Errors
/// When its notes cannot be read.
pub fn front_of(sim: &Sim, set: AnySet, config: FrontConfig) -> io::Result<Box<dyn Front>> {
    let FrontConfig { controller, names, notes } = config;
    let subsystem = NvmSubsystem::new(sim, set, controller, names);
    if let Some(memory) = notes {
        subsystem.take_up_notes(memory)?;
    }
    Ok(Box::new(InProcess(subsystem.in_process())))
}

struct InProcess(Rc<NvmeController>);

impl Front for InProcess {
    fn controller(&self) -> Rc<dyn Controller> {
        self.0.clone()
    }

    fn subsystem(&self) -> Rc<dyn Subsystem> {
        self.0.subsystem().clone()
    }

    fn link_usage(&self) -> [Totals; 2] {
        self.0.subsystem().link_usage()
    }

    fn processors(&self) -> Option<&Rc<Processors>> {
        self.0.subsystem().processors()
    }

    fn precompletion(&self) -> Option<Precompletion> {
        self.0.subsystem().command_set().tracker().map(Tracker::figures)
    }

    fn count_notices_anew(&self) {
        self.0.subsystem().command_set().tracker().into_iter().for_each(Tracker::count_anew);
    }

    fn was_filled(&self) {
        self.0.subsystem().was_filled();
    }

    fn note(&self) {
        self.0.subsystem().note();
    }
}
