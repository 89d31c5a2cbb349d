//! The drives of each reactor of `nandscape serve`, and the words that name them: profiles, and remote drives by URL.

use std::rc::Rc;

use nandscape_device_media::durable::StoreFile;
use nandscape_device_ssd::{Profile, Resolved};
use nandscape_lab_run::{LiveDrive, LiveDrives, LiveSpec, Rules};
use nandscape_sim::Executor;
use nandscape_transport_reactor::Connect as _;

use super::startup::Starting;
use crate::failure::Failure;
use crate::sim::{FaultWord, resolve_profile, resolve_with};

/// The beginning of a remote drive's URL.
const SCHEME: &str = "nvme-tcp://";
/// Bytes of a drive's name at most: the length that every NBD implementation accepts ("Values").
const MAX_NAME: usize = 256;

/// The drives of one reactor.
pub(super) struct Part {
    /// Seed of everything random.
    pub(super) seed: u64,
    pub(super) drives: Vec<LiveSpec>,
    /// Of each drive, whether hosts reach it by several controllers, one of them a PCI function.
    pub(super) shared: Vec<bool>,
    /// Of each drive, the rules for class and tenant of its clients' commands.
    pub(super) assign: Vec<Rules>,
}

/// What `--drive` names.
pub(super) enum Named<'a> {
    /// A profile, by name or file.
    Profile(&'a str),
    /// A remote drive, by its URL.
    Url(&'a str),
    /// The profile that a drive's file, or a saved state, keeps.
    Stored(Box<Profile>),
}

impl Named<'_> {
    /// The profile of a model, with changes and faults.
    pub(super) fn resolve(self, set: &[String], faults: &[FaultWord]) -> Result<Resolved, Failure> {
        match self {
            Named::Profile(word) | Named::Url(word) => resolve_with(word, set, faults),
            Named::Stored(profile) => resolve_profile((&profile.name.clone(), *profile), set, faults),
        }
    }
}

impl Part {
    pub(super) fn names(&self) -> Vec<String> {
        self.drives.iter().map(|drive| drive.name.clone()).collect()
    }

    /// The header of its recording, which has models only, and the layers over each of them.
    pub(super) fn recorded(&self) -> LiveDrives {
        LiveDrives {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            seed: self.seed,
            drives: self.drives.iter().flat_map(|drive| drive.models()).flatten().cloned().collect(),
            layers: self.drives.first().map(|drive| drive.chain.clone()).unwrap_or_default(),
            is_engine: false,
            assign: self.assign.clone(),
        }
    }

    /// Makes the drives, each on its timeline; those with a file open it.
    pub(super) fn build(
        &self,
        timelines: &mut [Executor],
        files: Vec<Option<StoreFile>>,
        progress: &Starting,
    ) -> anyhow::Result<Vec<Rc<LiveDrive>>> {
        let (mut files, mut served) = (files.into_iter(), Vec::<Rc<LiveDrive>>::new());
        for (number, planned) in self.drives.iter().enumerate() {
            let files = files.by_ref().take(planned.models().len()).collect();
            let executor = &mut timelines[number];
            progress.begin(&planned.name);
            match planned.build(executor, self.seed, files, progress) {
                Ok(drive) => served.push(Rc::new(drive)),
                Err(failure) => {
                    // The start fails for the first reason, which is printed.
                    served.iter().zip(timelines).for_each(|(drive, executor)| _ = drive.close(executor));
                    return Err(failure.into());
                }
            }
        }
        for (drive, _) in served.iter().zip(&self.shared).filter(|(_, is_shared)| **is_shared) {
            drive.subsystem().iter().for_each(|subsystem| subsystem.report_several());
        }
        served.iter().zip(&self.assign).for_each(|(drive, rules)| rules.assign_to(&**drive));
        Ok(served)
    }
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
