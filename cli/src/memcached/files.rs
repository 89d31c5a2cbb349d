//! The drives of a server in files of a folder, or in memory.

use std::path::{Path, PathBuf};

use nandscape_apps_memcached_engine::Placement;
use nandscape_apps_memcached_engine::policy::policy;
use nandscape_apps_memcached_run::live::Place;
use nandscape_device_media::durable::{Membership, Owner, StoreFile};
use nandscape_device_ssd::Resolved;
use nandscape_lab_run::{DriveSpec, Precondition};

use super::{MOST_DRIVES, MemcachedArgs};
use crate::failure::Failure;
use crate::serve::stores::NewFiles;

impl MemcachedArgs {
    /// A model of a drive of this process.
    fn model(number: u64, profile: &Resolved) -> DriveSpec {
        DriveSpec {
            name: name(number),
            number,
            profile_name: profile.name.clone(),
            profile: profile.to_toml(),
            keeps_data: true,
            precondition: Precondition::None,
            from_state: None,
            is_shared: false,
            own_seed: None,
        }
    }

    /// The drives. Files that do not exist are made once all others fit, and added to `new`; in a store that has been used only
    /// to rebuild drives.
    pub(super) fn places(&self, profile: &Resolved, new: &mut NewFiles) -> Result<Vec<Place>, Failure> {
        let drives: Vec<DriveSpec> = (0..self.count()).map(|number| MemcachedArgs::model(number, profile)).collect();
        let Some(folder) = &self.store else { return Ok(drives.into_iter().map(Place::Memory).collect()) };
        let paths: Vec<PathBuf> = drives.iter().map(|drive| folder.join(format!("{}.nand", drive.name))).collect();
        let mut files = Vec::new();
        for path in &paths {
            files.push(self.existing(path, profile)?);
        }
        let is_used = files.iter().flatten().any(|file| file.before().starts > 0);
        self.check_count(folder, &files, is_used)?;
        std::fs::create_dir_all(folder).map_err(|error| wrong(folder, &error.to_string()))?;
        let mut places = Vec::new();
        for ((drive, path), file) in drives.into_iter().zip(paths).zip(files) {
            places.push(match file {
                Some(file) => Place::File(drive, path, Box::new(file)),
                None if is_used && !self.rebuild => Place::Missing(path),
                None => made((drive, profile), path, (self.seed, self.store_sync), new)?,
            });
        }
        Ok(places)
    }

    /// Checks that a folder has the files of as many drives as are served, one of each pair at least, or with parity all but one.
    fn check_count(&self, folder: &Path, files: &[Option<StoreFile>], is_used: bool) -> Result<(), Failure> {
        let count = files.len();
        let last = (0..MOST_DRIVES).rev().find(|number| folder.join(format!("d{number}.nand")).exists());
        let has_parity = self.placement == Placement::Parity;
        // A drive with several FTLs may be alone.
        let together = if has_parity || count == 1 { 1 } else { 2 };
        let there = last.map_or(0, |last| (last as usize + 1).next_multiple_of(together));
        // The last one may be missing.
        let least = if has_parity { count - 1 } else { count };
        if there > count || is_used && there < least {
            return Err(wrong(folder, &format!("it has {there} drives, and --drives is {count}; {there} is valid")));
        }
        let missing: Vec<usize> = (0..count).filter(|number| files[*number].is_none()).collect();
        if let [first, second, ..] = missing[..]
            && has_parity
            && is_used
        {
            let problem = format!("d{first}.nand and d{second}.nand are missing; a store with one of them is valid");
            return Err(wrong(folder, &problem));
        }
        let lost = files
            .chunks(if has_parity { count } else { 2 })
            .position(|pair| pair.iter().all(Option::is_none))
            .filter(|_| is_used);
        lost.map_or(Ok(()), |pair| {
            let (even, odd) = (2 * pair, 2 * pair + 1);
            Err(wrong(folder, &format!("d{even}.nand and d{odd}.nand are missing; a store with one of them is valid")))
        })
    }

    /// The file of a drive, if there is one.
    fn existing(&self, path: &Path, profile: &Resolved) -> Result<Option<StoreFile>, Failure> {
        if !StoreFile::exists(path).map_err(|error| wrong(path, &error.to_string()))? {
            return Ok(None);
        }
        let file = StoreFile::open(path, self.store_sync).map_err(|error| wrong(path, &error.to_string()))?;
        let is_mirrored = policy(&self.policy).is_none_or(|policy| policy.replicas() > 1);
        match file.before().membership {
            Membership::Member(Owner::Array) => {
                return Err(wrong(path, "its drive is a member of an array; name another folder"));
            }
            Membership::Strayed(Owner::Engine) => {
                let valid = match is_mirrored {
                    true => "remove the file, and --rebuild makes it anew from its mirror",
                    false => "a copy of the file from before is valid",
                };
                let problem = "it was served outside of its store (--outside-array), so that it may no longer fit the other drives";
                return Err(wrong(path, &format!("{problem}; {valid}")));
            }
            _ => {}
        }
        let fits = profile.check_store(file.spec());
        fits.map_err(|problem| wrong(path, &format!("it holds another drive: {problem}")))?;
        Ok(Some(file))
    }
}

/// Makes the file of a drive.
fn made(
    (drive, profile): (DriveSpec, &Resolved),
    path: PathBuf,
    (seed, syncs): (u64, bool),
    new: &mut NewFiles,
) -> Result<Place, Failure> {
    let stores = drive.store_specs(seed).map_err(Failure::input)?;
    profile.check_store(&stores[0]).map_err(|problem| wrong(&path, &problem.to_string()))?;
    let file = StoreFile::create_all(&path, stores, syncs).map_err(|error| wrong(&path, &error.to_string()))?;
    new.add(&path);
    Ok(Place::File(drive, path, Box::new(file)))
}

/// How drives of this process are made anew while the others are served.
pub(super) struct Anew {
    profile: Resolved,
    folder: Option<PathBuf>,
    seed: u64,
    syncs: bool,
}

impl Anew {
    pub(super) fn of(args: &MemcachedArgs, profile: Resolved) -> Anew {
        Anew { profile, folder: args.store.clone(), seed: args.seed, syncs: args.store_sync }
    }

    /// Checks that a new drive can take one place alone.
    pub(super) fn check(&self, number: usize) -> Result<(), Failure> {
        match self.profile.parts().len() {
            0 | 1 => Ok(()),
            ftls => Err(Failure::Input(anyhow::anyhow!(
                "drive {}: its drive has {ftls} FTLs, and a new drive would replace all of them; valid is a start with --rebuild, after the \
                 drive's file was removed",
                name(number as u64)
            ))),
        }
    }

    /// A new drive in the place of a number. Its file is added to `new`.
    ///
    /// # Errors
    /// When its file exists, or cannot be made.
    pub(super) fn make(&self, number: usize, new: &mut NewFiles) -> Result<Place, Failure> {
        self.check(number)?;
        let drive = MemcachedArgs::model(number as u64, &self.profile);
        let Some(folder) = &self.folder else { return Ok(Place::Memory(drive)) };
        let path = folder.join(format!("{}.nand", drive.name));
        if StoreFile::exists(&path).map_err(|error| wrong(&path, &error.to_string()))? {
            let problem = "the lost drive has this file; remove it, so that a new drive can have its place";
            return Err(wrong(&path, problem));
        }
        made((drive, &self.profile), path, (self.seed, self.syncs), new)
    }
}

/// The name of a drive.
pub(super) fn name(number: u64) -> String {
    format!("d{number}")
}

fn wrong(path: &Path, problem: &str) -> Failure {
    Failure::Input(anyhow::anyhow!("--store {}: {problem}", path.display()))
}
