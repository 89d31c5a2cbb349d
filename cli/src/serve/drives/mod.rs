//! The kinds of drives that are served, a file each: the plan of a drive, from which it is built, and the drive at work.
//!
//! | file | kind |
//! |---|---|
//! | `model` | a model of this process |
//! | `remote` | a remote drive |
//! | `hosted` | the FTL of a host over an open-channel drive |
//! | `array` | an array of these, with records on its members |
//! | `group` | models under layers that take several drives |
//! | `layered` | one of these with layers of a host over it |
//!
//! Another kind is a file here that implements both traits, and the option that plans it.

mod array;
mod group;
mod hosted;
mod layered;
mod model;
mod remote;

use std::path::Path;
use std::rc::Rc;

use nandscape_device_media::durable::StoreFile;
use nandscape_lab_run::chain::Chain;
use nandscape_lab_run::{
    DriveSpec, HeldLayers, LayersExport, MemberSpec, Observed, Offers, Progress, SsdExport, offers_of_model,
};
use nandscape_layers_array::Config;
use nandscape_sim::units::Bytes;
use nandscape_sim::{Executor, Sim};
use nandscape_transport_reactor::Export;

pub(super) use layered::Layered;

use super::array::ArrayArg;
use super::stores::Role;
use crate::failure::Failure;

/// A drive that is to be served.
pub(super) trait PlannedDrive: Send {
    /// The name that clients use.
    fn name(&self) -> &str;

    /// Makes it.
    fn build(&self, with: &mut Building<'_>) -> anyhow::Result<Box<dyn ServedDrive>>;

    /// The models of this process that it has, in the order of their stores; `None` for a store without a model.
    fn models(&self) -> Vec<Option<&DriveSpec>> {
        vec![None]
    }

    /// The layers over the drive, the lowest first.
    fn chain(&self) -> Chain {
        Chain::default()
    }

    /// Notes that hosts reach the drive by several controllers, one of them a PCI function, which a replay reports, too.
    fn set_shared(&mut self, _is_shared: bool) {}

    /// What its blocks are in that must be written in order, if they are.
    fn written_in_order(&self) -> Option<&'static str> {
        None
    }

    /// Whether `--out` has a report of it.
    fn has_report(&self) -> bool {
        false
    }

    /// Whether its data outlasts this process without a file.
    fn outlasts(&self) -> bool {
        false
    }

    /// What the drive in a file is to be.
    fn role(&self) -> Role {
        Role::Alone
    }

    /// The file of a store cannot be opened, for this reason.
    ///
    /// # Errors
    /// The reason, if the drive cannot start without the file.
    fn start_without(&mut self, _store: usize, problem: String) -> Result<(), String> {
        Err(problem)
    }

    /// Checks that layers can lie over it.
    fn check_below_layers(&self) -> Result<(), Failure> {
        Ok(())
    }

    /// The drive as a member of an array.
    fn member(&self, array: &ArrayArg, _config: &Config) -> Result<MemberSpec, Failure> {
        let name = self.name();
        Err(array.refused(format!(
            "{name} is no member; a profile, a remote drive and an FTL over an open-channel drive are valid"
        )))
    }

    /// Checks that the state of the drive, which may be in a file itself, can be saved to `path` at the end.
    ///
    /// # Errors
    /// Why not.
    fn check_save(&self, _store: Option<&Path>, _path: &Path) -> Result<(), String> {
        Err("a state is of one drive".to_owned())
    }
}

/// What a drive is built with.
pub(super) struct Building<'a> {
    pub(super) executor: &'a mut Executor,
    pub(super) seed: u64,
    /// Its files, with a place for each of [`PlannedDrive::models`].
    pub(super) files: Vec<Option<StoreFile>>,
    pub(super) progress: &'a dyn Progress,
}

/// A drive at work.
pub(super) trait ServedDrive {
    /// The name that clients use.
    fn name(&self) -> &str;

    /// The drive as clients and operators see it.
    fn export(&self) -> Rc<dyn Export>;

    /// Its profile, its URL, or its level.
    fn made_from(&self) -> &str;

    /// The commands that a layer over it may pass on.
    fn offers(&self) -> Offers {
        offers_of_model(&self.export().info())
    }

    /// What a user should know of a drive that the command line does not describe.
    fn note(&self) -> Option<String> {
        None
    }

    /// What `--out` writes the report of, if its flash is here.
    fn watched(&self) -> Option<Observed> {
        None
    }

    /// Calls `line` with a line of text for each event of an array's members.
    fn on_member_event(&self, _line: Box<dyn Fn(&str)>) {}

    /// Opens layers over it.
    fn under(&self, in_run: (&Sim, u64), chain: &Chain) -> Result<LayersExport, String> {
        LayersExport::over(in_run, self.name(), (self.export(), self.offers()), None, (chain, &[]))
    }

    /// Checks the drive's tables against each other.
    fn check(&self) -> Result<(), String> {
        Ok(())
    }

    /// Saves its state with the layers above and their contents, instead of [`ServedDrive::close`]; a drive whose plan passes
    /// [`PlannedDrive::check_save`] can.
    fn save(&self, _above: Option<HeldLayers<'_>>, to: &mut Saving<'_>) -> anyhow::Result<()> {
        self.close(to.executor)?;
        Err(self.unsaved(&"a state is of one drive"))
    }

    /// Turns the drive off, and closes its files.
    fn close(&self, _executor: &mut Executor) -> anyhow::Result<()> {
        Ok(())
    }

    /// Why its state is not saved.
    fn unsaved(&self, problem: &dyn std::fmt::Display) -> anyhow::Error {
        anyhow::anyhow!("--save-state {}: {problem}", self.name())
    }
}

/// Where a state is saved.
pub(super) struct Saving<'a> {
    pub(super) executor: &'a mut Executor,
    /// Of the run.
    pub(super) seed: u64,
    pub(super) path: &'a Path,
}

/// Bytes that this process may keep for a drive.
pub(super) fn memory(drive: &dyn PlannedDrive) -> u64 {
    let of = |spec: &DriveSpec| spec.resolve().map_or(0, |resolved| resolved.capacity());
    drive.models().into_iter().flatten().map(of).sum()
}

/// Capacity and format in words.
fn size(export: &dyn Export) -> String {
    let info = export.info();
    format!("{} in blocks of {} bytes", Bytes(info.bytes()), info.lba_bytes)
}

/// Turns a model off, and closes its file.
fn close(executor: &mut Executor, name: &str, export: &SsdExport) -> anyhow::Result<()> {
    let left = "it holds at most what was written before";
    let failed = |error| anyhow::anyhow!("the file of drive {name} cannot be written: {error}; {left}");
    export.turn_off(executor).map_err(failed)
}
