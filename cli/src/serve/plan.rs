//! The drives of `nandscape serve`, and the reactors that serve them: models by profile, and remote drives by URL.

use std::fmt::Display;
use std::path::Path;
use std::rc::Rc;

use nandscape_device_media::durable::StoreFile;
use nandscape_device_ssd::{Profile, StoredDrive};
use nandscape_lab_run::chain::Chain;
use nandscape_lab_run::host_ftl::{Flash, HostedExport, HostedSpec};
use nandscape_lab_run::{
    ArrayExport, ArraySpec, DriveSpec, GroupExport, GroupSpec, LayersExport, LiveDrives, MemberSpec, Offers, Progress,
    RemoteExport, RemoteSpec, SsdExport, offers_of_model,
};
use nandscape_sim::Executor;
use nandscape_sim::units::Bytes;
use nandscape_transport_reactor::Export;

use crate::failure::Failure;

/// The beginning of a remote drive's URL.
const SCHEME: &str = "nvme-tcp://";
/// Bytes of a drive's name at most: the length that every NBD implementation accepts ("Values").
const MAX_NAME: usize = 256;

/// The drives of one reactor.
#[derive(Clone)]
pub(super) struct Part {
    /// Seed of everything random.
    pub(super) seed: u64,
    pub(super) drives: Vec<PlannedDrive>,
    /// Of each drive, whether hosts reach it by several controllers, one of them a PCI function.
    pub(super) shared: Vec<bool>,
}

/// A drive that is to be served.
#[derive(Clone)]
pub(super) enum PlannedDrive {
    /// A model.
    Model(DriveSpec),
    /// A drive of another server.
    Remote(RemoteSpec),
    /// An FTL of this process over an open-channel drive.
    Hosted(HostedSpec),
    /// An array of drives.
    Array(Box<ArraySpec>),
    /// Models under layers that take several of them.
    Group(GroupSpec),
    /// One of these with layers of a host over it.
    Layered(Box<PlannedDrive>, Chain),
}

/// What `--drive` names.
pub(super) enum Named<'a> {
    /// A profile, by name or file.
    Profile(&'a str),
    /// A remote drive, by its URL.
    Url(&'a str),
    /// The profile that a drive's file keeps.
    Stored(Box<StoredDrive>),
}

impl PlannedDrive {
    pub(super) fn name(&self) -> &str {
        match self {
            PlannedDrive::Model(spec) => &spec.name,
            PlannedDrive::Remote(spec) => &spec.name,
            PlannedDrive::Hosted(spec) => &spec.name,
            PlannedDrive::Array(spec) => &spec.name,
            PlannedDrive::Group(spec) => &spec.name,
            PlannedDrive::Layered(below, _) => below.name(),
        }
    }

    /// The same. A model's recording notes whether several controllers reach the model, one of them a PCI function: a replay
    /// reports the same.
    pub(super) fn shared(mut self, is_shared: bool) -> PlannedDrive {
        if let Some(spec) = self.model_mut() {
            spec.is_shared = is_shared;
        }
        self
    }

    /// The model, with layers or the FTL of a host over it or without.
    fn model(&self) -> Option<&DriveSpec> {
        match self {
            PlannedDrive::Model(spec) => Some(spec),
            PlannedDrive::Hosted(spec) => spec.model(),
            PlannedDrive::Layered(below, _) => below.model(),
            PlannedDrive::Remote(_) | PlannedDrive::Array(_) | PlannedDrive::Group(_) => None,
        }
    }

    /// The models of its recording.
    fn recorded(&self) -> Vec<&DriveSpec> {
        match self {
            PlannedDrive::Group(spec) => spec.drives.iter().collect(),
            _ => self.model().into_iter().collect(),
        }
    }

    /// The layers over the drive, the lowest first.
    fn chain(&self) -> Chain {
        match self {
            PlannedDrive::Hosted(spec) => spec.chain(&Chain::default()),
            PlannedDrive::Layered(below, above) => {
                Chain { layers: below.chain().layers.into_iter().chain(above.layers.iter().cloned()).collect() }
            }
            PlannedDrive::Group(spec) => spec.chain.clone(),
            PlannedDrive::Model(_) | PlannedDrive::Remote(_) | PlannedDrive::Array(_) => Chain::default(),
        }
    }

    /// The array, with layers over it or without.
    pub(super) fn array_mut(&mut self) -> Option<&mut ArraySpec> {
        match self {
            PlannedDrive::Array(spec) => Some(spec),
            PlannedDrive::Layered(below, _) => below.array_mut(),
            PlannedDrive::Model(_) | PlannedDrive::Remote(_) | PlannedDrive::Hosted(_) | PlannedDrive::Group(_) => None,
        }
    }

    fn model_mut(&mut self) -> Option<&mut DriveSpec> {
        match self {
            PlannedDrive::Model(spec) => Some(spec),
            PlannedDrive::Hosted(HostedSpec { flash: Flash::Model(spec), .. }) => Some(spec),
            PlannedDrive::Layered(below, _) => below.model_mut(),
            PlannedDrive::Group(spec) => spec.drives.first_mut(),
            PlannedDrive::Remote(_) | PlannedDrive::Hosted(_) | PlannedDrive::Array(_) => None,
        }
    }

    /// Drives that may have a file: of an array, each of its drives.
    pub(super) fn flashes(&self) -> usize {
        match self {
            PlannedDrive::Array(spec) => spec.members.len(),
            PlannedDrive::Group(spec) => spec.drives.len(),
            PlannedDrive::Layered(below, _) => below.flashes(),
            PlannedDrive::Model(_) | PlannedDrive::Remote(_) | PlannedDrive::Hosted(_) => 1,
        }
    }

    /// The models that have flash here, in the order of their files.
    pub(super) fn models(&self) -> Vec<Option<&DriveSpec>> {
        match self {
            PlannedDrive::Model(spec) => vec![Some(spec)],
            PlannedDrive::Remote(_) | PlannedDrive::Hosted(_) => vec![None],
            PlannedDrive::Array(spec) => spec.members.iter().map(MemberSpec::model).collect(),
            PlannedDrive::Group(spec) => spec.drives.iter().map(Some).collect(),
            PlannedDrive::Layered(below, _) => below.models(),
        }
    }

    /// What a model has that its host writes in order.
    pub(super) fn is_written_in_order(&self) -> Option<&'static str> {
        let PlannedDrive::Model(spec) = self else { return None };
        nandscape_lab_run::written_in_order(&spec.resolve().ok()?)
    }

    /// Bytes that this process may keep for it.
    pub(super) fn memory(&self) -> u64 {
        match self {
            PlannedDrive::Model(spec) => spec.resolve().map_or(0, |resolved| resolved.capacity()),
            PlannedDrive::Layered(below, _) => below.memory(),
            PlannedDrive::Group(spec) => {
                let of = |spec: &DriveSpec| spec.resolve().map_or(0, |resolved| resolved.capacity());
                spec.drives.iter().map(of).sum()
            }
            PlannedDrive::Hosted(HostedSpec { flash: Flash::Model(spec), .. }) => {
                spec.resolve().map_or(0, |resolved| resolved.capacity())
            }
            PlannedDrive::Remote(_) | PlannedDrive::Hosted(_) | PlannedDrive::Array(_) => 0,
        }
    }
}

impl Part {
    pub(super) fn names(&self) -> Vec<String> {
        self.drives.iter().map(|drive| drive.name().to_owned()).collect()
    }

    /// The header of its recording, which has models only, and the layers over each of them.
    pub(super) fn recorded(&self) -> LiveDrives {
        LiveDrives {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            seed: self.seed,
            drives: self.drives.iter().flat_map(PlannedDrive::recorded).cloned().collect(),
            layers: self.drives.first().map(PlannedDrive::chain).unwrap_or_default(),
        }
    }

    /// Makes the drives; those with a file open it.
    pub(super) fn build(
        &self,
        executor: &mut Executor,
        files: Vec<Option<StoreFile>>,
        progress: &dyn Progress,
    ) -> anyhow::Result<Vec<Served>> {
        let mut files = files.into_iter();
        let build = |drive: &PlannedDrive| drive.build(executor, self.seed, &mut files, progress);
        let (mut served, mut built) = (Vec::new(), self.drives.iter().map(build));
        let failed = built.find_map(|drive| drive.map(|drive| served.push(drive)).err());
        let Some(failure) = failed else {
            for (drive, _) in served.iter().zip(&self.shared).filter(|(_, is_shared)| **is_shared) {
                drive.export().subsystem().iter().for_each(|subsystem| subsystem.report_several());
            }
            return Ok(served);
        };
        for (planned, drive) in self.drives.iter().zip(&served) {
            // The start fails for the first reason, which is printed.
            let _ = drive.close(executor, planned.name());
        }
        Err(failure)
    }
}

impl PlannedDrive {
    /// Makes it, with the files that are its own.
    fn build(
        &self,
        executor: &mut Executor,
        seed: u64,
        files: &mut dyn Iterator<Item = Option<StoreFile>>,
        progress: &dyn Progress,
    ) -> anyhow::Result<Served> {
        let sim = executor.sim();
        match self {
            PlannedDrive::Model(spec) => {
                let file = files.next().flatten();
                let export = Rc::new(spec.build_in(&sim, seed, file, progress)?);
                Ok(Served::Model(export, spec.profile_name.clone()))
            }
            PlannedDrive::Remote(spec) => {
                files.next();
                let export = spec.connect(&sim).map_err(|problem| anyhow::anyhow!("--drive {problem}"))?;
                Ok(Served::Remote(Rc::new(export), spec.target.to_string()))
            }
            PlannedDrive::Hosted(spec) => {
                files.next();
                let export = spec.build(executor, seed, progress).map_err(|problem| anyhow::anyhow!("{problem}"))?;
                Ok(Served::Hosted(Rc::new(export), spec.clone()))
            }
            PlannedDrive::Array(spec) => {
                let files = files.take(spec.members.len()).collect();
                let export = spec.build(executor, seed, files, progress).map_err(anyhow::Error::msg)?;
                Ok(Served::Array(Rc::new(export), spec.shape.to_string()))
            }
            PlannedDrive::Group(spec) => {
                files.take(spec.drives.len()).for_each(drop);
                let export = spec.build(executor, seed, progress).map_err(anyhow::Error::msg)?;
                let profile = spec.drives.first().map_or("", |spec| &spec.profile_name);
                Ok(Served::Group(Rc::new(export), profile.to_owned()))
            }
            PlannedDrive::Layered(below, chain) => {
                let (name, planned) = (below.name(), below);
                let below = below.build(executor, seed, files, progress)?;
                let made = match (&**planned, &below) {
                    (PlannedDrive::Model(spec), Served::Model(model, _)) => {
                        LayersExport::over_model((&sim, seed), (spec, model), chain)
                    }
                    (PlannedDrive::Hosted(spec), Served::Hosted(export, _)) => {
                        LayersExport::over_hosted((&sim, seed), (spec, export), chain)
                    }
                    _ => {
                        let lowest = (below.export(), below.offers());
                        LayersExport::over((&sim, seed), name, lowest, None, (chain, &[]))
                    }
                };
                match made {
                    Ok(export) => Ok(Served::Layered(Box::new(below), Rc::new(export))),
                    Err(problem) => {
                        // The start fails for the first reason, which is printed.
                        let _ = below.close(executor, name);
                        Err(anyhow::Error::msg(problem))
                    }
                }
            }
        }
    }
}

/// A served drive, and its origin: its profile, or its URL.
pub(super) enum Served {
    Model(Rc<SsdExport>, String),
    Remote(Rc<RemoteExport>, String),
    Hosted(Rc<HostedExport>, HostedSpec),
    Array(Rc<ArrayExport>, String),
    Group(Rc<GroupExport>, String),
    /// Layers over one of these.
    Layered(Box<Served>, Rc<LayersExport>),
}

impl Served {
    pub(super) fn export(&self) -> Rc<dyn Export> {
        match self {
            Served::Model(export, _) => export.clone(),
            Served::Remote(export, _) => export.clone(),
            Served::Hosted(export, _) => export.clone(),
            Served::Array(export, _) => export.clone(),
            Served::Group(export, _) => export.clone(),
            Served::Layered(_, export) => export.clone(),
        }
    }

    /// The commands that a layer over it may pass on.
    fn offers(&self) -> Offers {
        match self {
            Served::Model(export, _) => offers_of_model(&export.info()),
            Served::Hosted(export, _) => offers_of_model(&export.info()),
            Served::Remote(export, _) => export.offers(),
            Served::Array(export, _) => export.offers(),
            Served::Group(export, _) => export.offers(),
            Served::Layered(_, export) => export.offers(),
        }
    }

    /// Its profile, its URL, or its level.
    pub(super) fn made_from(&self) -> &str {
        match self {
            Served::Model(_, profile) | Served::Group(_, profile) => profile,
            Served::Layered(below, _) => below.made_from(),
            Served::Array(_, level) => level,
            Served::Remote(_, url) => url,
            Served::Hosted(_, spec) => spec.layer.profile(),
        }
    }

    /// Its NVMe Qualified Name.
    pub(super) fn nqn(&self) -> String {
        self.export().subsystem().map_or_else(String::new, |subsystem| subsystem.names().nqn.clone())
    }

    /// I/O queue pairs of each of its controllers.
    pub(super) fn queue_pairs(&self) -> u16 {
        match self {
            Served::Model(export, _) => export.profile().max_queue_pairs(),
            Served::Remote(export, _) => export.max_queue_pairs(),
            Served::Hosted(export, _) => export.max_queue_pairs(),
            Served::Array(export, _) => export.max_queue_pairs(),
            Served::Group(export, _) => export.max_queue_pairs(),
            Served::Layered(_, export) => export.max_queue_pairs(),
        }
    }

    /// Checks the drive's tables against each other.
    pub(super) fn check(&self) -> Result<(), String> {
        match self {
            Served::Model(export, _) => export.ssd().check(),
            Served::Hosted(export, _) => export.check(),
            Served::Group(export, _) => export.check(),
            Served::Layered(below, _) => below.check(),
            Served::Array(export, _) => export.models().try_for_each(|(name, model)| {
                model.ssd().check().map_err(|problem| format!("drive {name}: {problem}"))
            }),
            // They are where the drive is.
            Served::Remote(..) => Ok(()),
        }
    }

    /// Saves the drive's state if requested, or turns it off. Returns the error of its file.
    pub(super) fn end(
        &self,
        planned: &PlannedDrive,
        seed: u64,
        executor: &mut Executor,
        save: Option<&Path>,
    ) -> Option<anyhow::Error> {
        let (served, planned, layers) = match (self, planned) {
            (Served::Layered(served, layers), PlannedDrive::Layered(planned, _)) => {
                (&**served, &**planned, Some(layers))
            }
            _ => (self, planned, None),
        };
        match (served, planned, save) {
            (Served::Model(export, _), PlannedDrive::Model(spec), Some(path)) => {
                let failed = |error: &dyn Display| anyhow::anyhow!("--save-state {}: {error}", spec.name);
                let held = match layers.map(|layers| layers.take_held(executor)).transpose() {
                    Ok(held) => held,
                    Err(problem) => return Some(failed(&problem)),
                };
                spec.save(export, held, seed, executor, path).err().map(|error| failed(&error))
            }
            (Served::Hosted(export, spec), _, Some(path)) => {
                let failed = |error: &dyn Display| anyhow::anyhow!("--save-state {}: {error}", spec.name);
                let held = match layers.map(|layers| layers.take_held(executor)).transpose() {
                    Ok(held) => held,
                    Err(problem) => return Some(failed(&problem)),
                };
                export.save(spec, held, seed, executor, path).err().map(|error| failed(&error))
            }
            _ => self.close(executor, planned.name()),
        }
    }

    /// Turns the drive off. Returns the error of its file.
    fn close(&self, executor: &mut Executor, name: &str) -> Option<anyhow::Error> {
        match self {
            Served::Model(export, _) => close(executor, name, export),
            Served::Layered(below, _) => below.close(executor, name),
            Served::Array(export, _) => {
                export.shut_down(executor);
                // All of them are to be closed.
                let errors: Vec<_> = export.models().filter_map(|(name, model)| close(executor, name, model)).collect();
                errors.into_iter().next()
            }
            Served::Remote(..) | Served::Hosted(..) | Served::Group(..) => None,
        }
    }

    /// Calls `line` with a line of text for each event of an array's members.
    pub(super) fn on_member_event(&self, line: impl Fn(&str) + 'static) {
        match self {
            Served::Array(export, _) => export.on_member_event(line),
            Served::Layered(below, _) => below.on_member_event(line),
            Served::Model(..) | Served::Remote(..) | Served::Hosted(..) | Served::Group(..) => {}
        }
    }

    /// What a user should know of a drive that the command line does not describe.
    pub(super) fn note(&self, name: &str) -> Option<String> {
        let info = self.export().info();
        let size = format!("{} in blocks of {} bytes", Bytes(info.bytes()), info.lba_bytes);
        match self {
            Served::Model(..) => None,
            Served::Layered(below, export) => {
                let of_it = below.note(name).map_or(String::new(), |note| format!("; {note}"));
                Some(format!("over drive {name} lies {}; {size}{of_it}", export.describe()))
            }
            Served::Array(export, _) => {
                Some(format!("drive {name} is an array: {}{}; {size}", export.describe(), export.left_out()))
            }
            Served::Group(export, profile) => Some(format!(
                "drive {name} is {} over {} drives of {profile}, from the bottom up; {size}; what it holds ends with this process",
                export.describe(),
                export.models().count()
            )),
            Served::Remote(export, url) => Some(format!("drive {name} is {url}: {}; {size}", export.identity())),
            Served::Hosted(_, HostedSpec { flash, .. }) => Some(format!(
                "drive {name} is an FTL of this process over {flash}: {size}; what it holds ends with this process{}",
                match flash {
                    Flash::Model(_) => ", unless --save-state saves it",
                    Flash::Remote(_) => "",
                }
            )),
        }
    }
}

fn close(executor: &mut Executor, name: &str, export: &SsdExport) -> Option<anyhow::Error> {
    let error = export.turn_off(executor).err()?;
    let left = "it holds at most what was written before";
    Some(anyhow::anyhow!("the file of drive {name} cannot be written: {error}; {left}"))
}

/// A drive's name, and its kind.
pub(super) fn named(word: &str) -> Result<(String, Named<'_>), Failure> {
    let (name, what) = parts_of(word)?;
    match name.len() > MAX_NAME || name.chars().any(char::is_control) {
        true => super::args::input(format!(
            "--drive: a name has at most {MAX_NAME} bytes and no control characters; this one has {} and begins with {:?}",
            name.len(),
            name.chars().take(32).collect::<String>()
        )),
        false => Ok((name, what)),
    }
}

fn parts_of(word: &str) -> Result<(String, Named<'_>), Failure> {
    // A URL may contain an = in its options.
    let (name, what) = match word.split_once('=') {
        Some((name, what)) if !name.contains("://") => (name, what),
        _ => ("", word),
    };
    let unnamed = name.is_empty();
    if let Some(rest) = what.strip_prefix(SCHEME) {
        // The NQN names the drive, if nothing else does.
        let nqn = rest.split_once('/').map_or(what, |(_, rest)| rest.split('?').next().unwrap_or(rest));
        return Ok((if unnamed { nqn } else { name }.to_owned(), Named::Url(what)));
    }
    if let Some((scheme, _)) = what.split_once("://") {
        let problem =
            format!("--drive {word:?}: {scheme}:// names no drive that can be served; {SCHEME}HOST:PORT/NQN does");
        return super::args::input(problem);
    }
    let name = if unnamed { Profile::load(what).map_err(Failure::input)?.name } else { name.to_owned() };
    Ok((name, Named::Profile(what)))
}
