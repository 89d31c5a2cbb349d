//! `--store`: where the flash of each drive is.

use std::path::{Path, PathBuf};

use nandscape_device_media::durable::{Membership, Owner, StoreError, StoreFile};
use nandscape_device_ssd::{PartStore, Profile, StoredDrive};
use nandscape_lab_run::{DriveSpec, Precondition, Target};

use super::plan::Part;
use super::{ServeArgs, drives};
use crate::failure::Failure;
use crate::output;

/// Where the flash of a drive is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum StoreArg {
    None,
    Ram,
    File(PathBuf),
    /// An open-channel drive, over which the drive's FTL runs here.
    OpenChannel(Target),
}

impl StoreArg {
    pub(super) fn path(&self) -> Option<&Path> {
        if let StoreArg::File(path) = self { Some(path) } else { None }
    }

    /// The open-channel drive.
    pub(super) fn target(&self) -> Option<&Target> {
        if let StoreArg::OpenChannel(target) = self { Some(target) } else { None }
    }
}

/// The stores of all drives. `ram` and `none` without a name are for all drives without a separate store; a path is for the
/// drive that it names, or for the only one.
pub(super) fn of_each(words: &[String], names: &[String]) -> Result<Vec<StoreArg>, Failure> {
    let (mut rest, mut own) = (None, vec![None; names.len()]);
    for word in words {
        if let Some(kind) = kind(word) {
            if rest.replace(kind).is_some() {
                return input(
                    word,
                    "ram or none is given twice; it is for all drives without a --store for their name",
                );
            }
            continue;
        }
        let (drive, store) = split(word, names)?;
        if own[drive].replace(store).is_some() {
            return input(word, &format!("drive {:?} has a store already", names[drive]));
        }
    }
    let rest = rest.unwrap_or(StoreArg::Ram);
    Ok(own.into_iter().map(|store| store.unwrap_or_else(|| rest.clone())).collect())
}

/// The drive in a file, and its name, if `--drive` does not name the served drive: the only word is its file.
pub(super) fn held(words: &[String]) -> Result<(String, Profile), Failure> {
    let missing = |problem: &str| {
        let valid = "give --drive, such as --drive default, or the existing file of one drive: --store file:PATH or --from-state FILE";
        Err(Failure::Input(anyhow::anyhow!("no --drive is given, and {problem}; {valid}")))
    };
    let [word] = words else { return missing(&format!("there are {} --store", words.len())) };
    let (name, path) = match word.split_once('=') {
        Some((name, path)) if !word.starts_with("file:") => (Some(name), path),
        _ => (None, word.as_str()),
    };
    let path = Path::new(path.strip_prefix("file:").unwrap_or(path));
    let failed = |error: &dyn std::fmt::Display| Failure::Input(anyhow::anyhow!("--store {word}: {error}"));
    if kind(word).is_some() || !StoreFile::exists(path).map_err(|error| failed(&error))? {
        return missing(&format!("--store {word} holds no drive yet"));
    }
    let (file, _) = StoreFile::open_to_read(path).map_err(|error| failed(&error))?;
    let mut drive = StoredDrive::of(file.spec()).map_err(|problem| failed(&problem))?;
    // They are of the run that made the file.
    (drive.keys.faults, drive.keys.changes) = (None, None);
    Ok((name.unwrap_or(&drive.profile_name).to_owned(), Profile::of_keys(&drive.profile_name, drive.keys)))
}

/// The kinds that are no files.
fn kind(word: &str) -> Option<StoreArg> {
    match word {
        "none" => Some(StoreArg::None),
        "ram" => Some(StoreArg::Ram),
        _ => None,
    }
}

/// The place of the drive that a word is for, and its store.
fn split(word: &str, names: &[String]) -> Result<(usize, StoreArg), Failure> {
    if let Some((scheme, _)) = word.split_once("://")
        && !word.contains("nvme-tcp://")
    {
        let scheme = scheme.rsplit_once('=').map_or(scheme, |(_, scheme)| scheme);
        return input(word, &format!("{scheme}:// names no flash; nvme-tcp://HOST:PORT/NQN does, and file:PATH"));
    }
    let named = names.iter().enumerate();
    let named = named.filter_map(|(drive, name)| Some((drive, word.strip_prefix(name.as_str())?.strip_prefix('=')?)));
    // If one name begins with the other, the longer one.
    let (drive, path) = match named.min_by_key(|(_, path)| path.len()) {
        Some(found) => found,
        // A path with an = is marked by file: to distinguish it from a name.
        None if names.len() == 1 && (word.starts_with("file:") || Target::is_one(word) || !word.contains('=')) => {
            (0, word)
        }
        None if names.len() == 1 => {
            return input(word, &format!("there is no such drive; the only one is {}", names[0]));
        }
        None => {
            let known = names.join(", ");
            if let Some((name, _)) = word.split_once('=').filter(|_| !word.starts_with("file:")) {
                return input(word, &format!("there is no drive {name:?}; the drives are {known}"));
            }
            return input(word, &format!("there are several drives: name one with NAME=PATH, NAME one of {known}"));
        }
    };
    if let Some(kind) = kind(path) {
        return Ok((drive, kind));
    }
    if Target::is_one(path) {
        let target = path.parse().map_err(|problem: String| Failure::Input(anyhow::anyhow!("--store {problem}")))?;
        return Ok((drive, StoreArg::OpenChannel(target)));
    }
    match path.strip_prefix("file:").unwrap_or(path) {
        "" => input(word, "a file needs a path, as in file:drive.nand"),
        path => Ok((drive, StoreArg::File(PathBuf::from(path)))),
    }
}

fn input<T>(word: &str, problem: &str) -> Result<T, Failure> {
    Err(Failure::Input(anyhow::anyhow!("--store {word}: {problem}")))
}

/// Files that this start has made. They are removed again if it fails: the next one would find drives that were begun by this one.
#[derive(Default)]
pub(crate) struct NewFiles(Vec<PathBuf>);

impl NewFiles {
    /// The start has succeeded.
    pub(crate) fn keep(&mut self) {
        self.0.clear();
    }

    /// This start has made a file.
    pub(crate) fn add(&mut self, path: &Path) {
        self.0.push(path.to_owned());
    }
}

impl Drop for NewFiles {
    fn drop(&mut self) {
        for path in &self.0 {
            // The reason for the failed start is reported; a file that stays is the smaller problem.
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Opens the files of a reactor's drives, and makes missing ones, which are added to `new`. `stores` are those of its drives.
/// For an array, which may start without some members, the files that cannot be opened are noted in the plan.
pub(super) fn open_all(
    part: &mut Part,
    stores: &[StoreArg],
    args: &ServeArgs,
    new: &mut NewFiles,
) -> Result<Vec<Option<StoreFile>>, Failure> {
    let (seed, mut stores, mut files) = (part.seed, stores.iter(), Vec::new());
    for drive in &mut part.drives {
        let role = drives::role(drive);
        let models: Vec<_> = drive.models().into_iter().map(|model| model.cloned()).collect();
        for (number, (model, store)) in models.iter().zip(stores.by_ref()).enumerate() {
            let of_model = model.as_ref().zip(store.path());
            let opened = of_model.map(|(spec, path)| open((spec, role), seed, path, args, new)).transpose();
            files.push(match opened {
                Ok(file) => file,
                Err(NotOpened::Damaged(problem)) => {
                    let failed = |problem| Failure::Input(anyhow::Error::msg(problem));
                    drives::start_without(drive, number, problem).map_err(failed)?;
                    None
                }
                Err(NotOpened::Refused(failure)) => return Err(failure),
            });
        }
    }
    Ok(files)
}

/// Why a file is not opened.
enum NotOpened {
    /// What is in it cannot be used.
    Damaged(String),
    /// It may be as it should be.
    Refused(Failure),
}

impl From<Failure> for NotOpened {
    fn from(failure: Failure) -> NotOpened {
        NotOpened::Refused(failure)
    }
}

/// What the drive of a file is to be.
#[derive(Copy, Clone, PartialEq, Eq)]
pub(super) enum Role {
    /// A drive that clients use.
    Alone,
    /// One of an array that is opened.
    Member,
    /// A member of a new array, whatever the drive holds.
    NewMember,
}

/// How the owner of a drive is served.
fn serving(owner: Owner) -> &'static str {
    match owner {
        Owner::Array => {
            "serve the array (--array), or give --outside-array, and the array no longer opens with this member"
        }
        Owner::Engine => {
            "serve the store (nandscape memcached --store FOLDER), or give --outside-array, and the store no longer opens with this member"
        }
    }
}

/// Keeps members with their owner. One that is to be used alone, since `--outside-array` asks for that, is marked.
fn check_membership(file: &mut StoreFile, role: Role, shown: &str, args: &ServeArgs) -> Result<(), NotOpened> {
    match (file.before().membership, role) {
        (Membership::Member(owner), Role::Alone) if !args.outside_array => {
            Err(NotOpened::Refused(Failure::Input(anyhow::anyhow!(
                "--store {shown}: its drive is a member of {owner}, which would return wrong data once the drive was written to alone; {}",
                serving(owner)
            ))))
        }
        (Membership::Member(owner), Role::Alone) => {
            file.stray();
            let owner = if owner == Owner::Array { "array" } else { "store" };
            output::note(&format!("{shown} is used outside of its {owner}, which no longer opens with it"));
            Ok(())
        }
        (Membership::Member(Owner::Engine) | Membership::Strayed(Owner::Engine), Role::Member | Role::NewMember) => {
            let owner = Owner::Engine;
            Err(NotOpened::Refused(Failure::Input(anyhow::anyhow!(
                "--store {shown}: its drive is a member of {owner}; a member of this array, or a file that does not exist is valid"
            ))))
        }
        (Membership::Strayed(Owner::Array), Role::Member) => Err(NotOpened::Damaged(format!(
            "--store {shown}: it was served outside of its array (--outside-array), so that it may no longer fit the other members"
        ))),
        _ => Ok(()),
    }
}

fn open(
    (spec, role): (&DriveSpec, Role),
    seed: u64,
    path: &Path,
    args: &ServeArgs,
    new: &mut NewFiles,
) -> Result<StoreFile, NotOpened> {
    let syncs = args.store_sync;
    let shown = path.display();
    let failed = |error: StoreError| Failure::Input(anyhow::anyhow!("--store {shown}: {error}"));
    if !StoreFile::exists(path).map_err(|error| failed(error.into()))? {
        let stores = spec.store_specs(seed).map_err(Failure::input)?;
        let profile = spec.resolve().map_err(Failure::input)?;
        let fits = profile.check_store(&stores[0]);
        fits.map_err(|problem| Failure::Input(anyhow::anyhow!("--store {shown}: {problem}")))?;
        let file = StoreFile::create_all(path, stores, syncs).map_err(failed)?;
        new.add(path);
        output::note(&format!("drive {} is new, in {shown}", spec.name));
        return Ok(file);
    }
    let mut file = StoreFile::open(path, syncs).map_err(|error| match error.is_damage() {
        true => NotOpened::Damaged(format!("--store {shown}: {error}")),
        false => NotOpened::Refused(failed(error)),
    })?;
    let profile = spec.resolve().map_err(Failure::input)?;
    profile.check_store(file.spec()).map_err(|problem| {
        let advice = "give the profile that it was made with, or another file";
        Failure::Input(anyhow::anyhow!("--store {shown}: it holds another drive: {problem}; {advice}"))
    })?;
    check_membership(&mut file, role, &shown.to_string(), args)?;
    let was_killed =
        if file.before().in_use { ", which was not closed in order: it has found its tables again" } else { "" };
    if spec.precondition != Precondition::None {
        output::note(&format!("--precondition has no effect on drive {}, which exists already", spec.name));
    }
    let own = spec.store_specs(seed).map_err(Failure::input)?;
    if args.seed.is_some() && own[0].seed != file.spec().seed {
        output::note(&format!("--seed has no effect on drive {}, which was made with another one", spec.name));
    }
    let in_memory = profile.parts().iter().filter(|part| part.store == PartStore::Ram).map(|part| part.name.as_str());
    let in_memory: Vec<&str> = in_memory.collect();
    let begins =
        if in_memory.is_empty() { String::new() } else { format!("; in memory, and new: {}", in_memory.join(", ")) };
    output::note(&format!("drive {} continues from {shown}{was_killed}{begins}", spec.name));
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_drive_has_one_store() {
        let names = ["a", "b"].map(str::to_owned);
        let of = |words: &[&str]| of_each(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>(), &names);
        let file = |path: &str| StoreArg::File(PathBuf::from(path));
        assert_eq!(of(&[]).unwrap(), [StoreArg::Ram, StoreArg::Ram]);
        assert_eq!(of(&["none", "b=file:x"]).unwrap(), [StoreArg::None, file("x")]);
        assert_eq!(of(&["a=x=y", "b=b=z"]).unwrap(), [file("x=y"), file("b=z")]);
        assert_eq!(of(&["a=none", "b=file:none"]).unwrap(), [StoreArg::None, file("none")]);
        assert_eq!(of(&["none", "b=ram"]).unwrap(), [StoreArg::None, StoreArg::Ram]);
        let error = |words: &[&str]| of(words).unwrap_err().to_string();
        assert!(error(&["x"]).contains("--store x: there are several drives: name one with NAME=PATH"));
        assert!(error(&["a=x", "a=y"]).contains("has a store already"));
        assert!(error(&["ram", "none"]).contains("is given twice"));
        assert!(error(&["a=nbd://h/x"]).contains("nbd:// names no flash; nvme-tcp://HOST:PORT/NQN does"));
        assert!(error(&["a=file:"]).contains("a file needs a path"));
        let one = of_each(&["file:./c=d".to_owned()], &["a".to_owned()]);
        assert_eq!(one.unwrap(), [file("./c=d")]);
        let one = of_each(&["nvme-tcp://h:1/nqn.x?queues=2".to_owned()], &["a".to_owned()]).unwrap();
        assert_eq!(one[0].target().map(|target| (&*target.nqn, target.queues)), Some(("nqn.x", 2)));
        assert!(error(&["a=nvme-tcp://h:1/x"]).contains("an NQN begins with nqn."));
    }
}
