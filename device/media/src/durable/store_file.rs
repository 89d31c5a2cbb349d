//! Creating, opening and locking a file. An invalid file is rejected, and nothing in it changes.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nandscape_files::{input, output};

use super::backing::Backing;
use super::disk::Disk;
use super::layout::Layout;
use super::making;
use super::memory_file::MemoryFile;
use super::overlay::Overlay;
use super::redo::{self, Redo};
use super::superblock::{
    BYTES, MAGIC, Membership, NoSuperblock, OLDEST, Owner, StoreSpec, StoreUse, Superblock, VERSION,
};
use super::window::Window;
use crate::fault::MediaError;
use crate::geometry::Geometry;

/// Why a file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The system returned an error.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// Another process has it.
    #[error("another process has the file open; only one may")]
    InUse,
    /// It is no store.
    #[error(
        "it is no store of a drive: it does not begin with NANDFILE. A store is a file that `nandscape serve --store` has made"
    )]
    Foreign,
    /// It is empty.
    #[error(
        "it has 0 bytes: the drive that it held is lost, since it was truncated, or another program has made it. Put a copy of the \
         drive back; or remove it, and a new drive is made in its place"
    )]
    Empty,
    /// It was written by another version of this program.
    #[error(
        "it has format {format}, which is {age}, and this program reads formats {OLDEST} to {VERSION}; use the version that made it",
        format = .0,
        age = if *.0 > VERSION { "newer" } else { "older" }
    )]
    OtherFormat(u32),
    /// Both superblocks are damaged.
    #[error("its superblock is damaged: {0}")]
    Damaged(&'static str),
    /// A state was being put into it.
    #[error(
        "its drive was being brought into a state (--precondition) when the server ended, and is in none; remove the file and \
         make the drive again"
    )]
    Unfinished,
    /// A state is being put into it.
    #[error("a server is bringing its drive into a state (--precondition); try again when the server is ready")]
    Filling,
    /// Another file has the name under which a store is made.
    #[error(
        "{0} is there, and no server has left it while it made a store: a store is made under that name before it gets its own. \
         Move the file away"
    )]
    NameTaken(PathBuf),
    /// The file is shorter than its superblock records.
    #[error("it is truncated: {found} bytes of {expected} are there")]
    Truncated {
        /// Bytes found.
        found: u64,
        /// Bytes that should be.
        expected: u64,
    },
    /// The drive does not fit into a store.
    #[error("the description of the drive is too long for a store")]
    TooLong,
}

impl StoreError {
    /// Whether the content of the file is at fault, so that its drive is lost: without the file, the drive would be new.
    pub fn is_damage(&self) -> bool {
        match self {
            StoreError::Empty
            | StoreError::Foreign
            | StoreError::Damaged(_)
            | StoreError::Unfinished
            | StoreError::Truncated { .. } => true,
            StoreError::Io(_)
            | StoreError::InUse
            | StoreError::Filling
            | StoreError::OtherFormat(_)
            | StoreError::NameTaken(_)
            | StoreError::TooLong => false,
        }
    }
}

/// A file that was opened, and not yet used.
pub struct StoreFile {
    backing: Arc<dyn Backing>,
    superblock: Superblock,
    before: StoreUse,
    /// Whether no copy of its superblock has seen a start.
    is_new: bool,
    /// The place of a damaged copy of the superblock, or of one in progress when the process was killed.
    damaged: Option<u64>,
    syncs: bool,
    /// The stores behind this one in the file.
    following: Vec<StoreFile>,
}

impl StoreFile {
    /// Whether a file of any kind, even an empty one, exists at a path; a dangling link does not count.
    ///
    /// # Errors
    /// When the system returns an error.
    pub fn exists(path: &Path) -> io::Result<bool> {
        match path.symlink_metadata() {
            Ok(found) => Ok(!found.is_symlink() || path.try_exists()?),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Whether it was never used since its creation.
    pub(super) fn is_unused(backing: &dyn Backing) -> io::Result<bool> {
        Ok(superblocks(backing)?.latest.is_some_and(|superblock| superblock.used.starts == 0))
    }

    /// Whether a regular file begins like a store; `false` for an unreadable file.
    pub fn begins(path: &Path) -> bool {
        let mut magic = [0; MAGIC.len()];
        input::open(path).and_then(|mut file| file.read_exact(&mut magic)).is_ok() && magic == MAGIC
    }

    /// Creates a store for an erased drive, which appears at `path` when it is complete. With `syncs`, acknowledged
    /// data outlasts the host's power.
    ///
    /// # Errors
    /// When it cannot be created.
    pub fn create(path: &Path, spec: StoreSpec, syncs: bool) -> Result<StoreFile, StoreError> {
        StoreFile::create_all(path, vec![spec], syncs)
    }

    /// The same for a drive with several stores.
    ///
    /// # Errors
    /// When it cannot be created.
    ///
    /// # Panics
    /// If `specs` is empty.
    pub fn create_all(path: &Path, specs: Vec<StoreSpec>, syncs: bool) -> Result<StoreFile, StoreError> {
        let (file, new) = making::begin(path)?;
        let store = StoreFile::create_all_on(file, specs, syncs).inspect_err(|_| {
            // The file is useless and takes room. A remainder is reused later.
            let _ = std::fs::remove_file(&new);
        })?;
        store.backing.sync()?;
        // A file created there meanwhile is not replaced.
        output::check(path)?;
        std::fs::rename(&new, path)?;
        if let Some(folder) = path.parent().filter(|_| syncs) {
            let folder = if folder == Path::new("") { Path::new(".") } else { folder };
            File::open(folder)?.sync_all()?;
        }
        Ok(store)
    }

    /// Opens a store. Nothing in it changes before a drive uses it.
    ///
    /// # Errors
    /// When it is not a whole store, or is in use.
    pub fn open(path: &Path, syncs: bool) -> Result<StoreFile, StoreError> {
        let file = input::open_with(OpenOptions::new().read(true).write(true), path)?;
        lock(&file)?;
        StoreFile::open_on(Arc::new(file), syncs)
    }

    /// Opens a store for inspection: changes of the drive are kept in memory, and the file is unchanged. Returns
    /// whether another process uses it meanwhile.
    ///
    /// # Errors
    /// When it is not a whole store.
    pub fn open_to_read(path: &Path) -> Result<(StoreFile, bool), StoreError> {
        let file = input::open(path)?;
        let in_use = match file.try_lock_shared() {
            Ok(()) => false,
            Err(TryLockError::WouldBlock) => true,
            Err(TryLockError::Error(error)) => return Err(error.into()),
        };
        let store = StoreFile::open_on(Arc::new(Overlay::new(Arc::new(file))), false).map_err(|error| match error {
            StoreError::Unfinished if in_use => StoreError::Filling,
            error => error,
        })?;
        Ok((store, in_use))
    }

    /// A store in memory.
    ///
    /// # Errors
    /// When the drive does not fit into one.
    pub fn in_memory(spec: StoreSpec) -> Result<StoreFile, StoreError> {
        StoreFile::create_on(Arc::new(MemoryFile::new()), spec, false)
    }

    /// Creates several stores in an empty file.
    ///
    /// # Errors
    /// When they cannot be written.
    ///
    /// # Panics
    /// When there is none.
    pub fn create_all_on(
        backing: Arc<dyn Backing>,
        specs: Vec<StoreSpec>,
        syncs: bool,
    ) -> Result<StoreFile, StoreError> {
        let layouts = specs.iter().map(|spec| layout_of(spec, VERSION)).collect::<Result<Vec<Layout>, _>>()?;
        let end = layouts.iter().map(|layout| layout.len().next_multiple_of(BYTES)).sum::<u64>();
        backing.set_len(end + redo::BYTES)?;
        let backing = under_use(Redo::recover(backing.clone(), end)?, backing, syncs)?;
        let (mut specs, mut from, mut stores) = (specs.into_iter(), 0, Vec::new());
        for layout in layouts {
            let spec = specs.next().expect("each has its layout");
            let spec = StoreSpec { following: specs.len() as u32, ..spec };
            stores.push(StoreFile::create_one(window(&backing, from), spec, &layout, syncs)?);
            from += layout.len().next_multiple_of(BYTES);
        }
        if syncs {
            backing.sync()?;
        }
        let mut first = stores.remove(0);
        first.following = stores;
        Ok(first)
    }

    /// Takes the stores behind this one out of it, in their order.
    pub fn take_following(&mut self) -> Vec<StoreFile> {
        std::mem::take(&mut self.following)
    }

    /// The stores behind this one.
    pub fn following(&self) -> &[StoreFile] {
        &self.following
    }

    /// Length of the store.
    fn len(&self) -> u64 {
        let geometry = self.spec().checked_geometry().expect("it was checked when the store was created or opened");
        Layout::new(self.spec(), &geometry, self.superblock.format).len()
    }

    /// Creates a store in an empty file.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn create_on(backing: Arc<dyn Backing>, spec: StoreSpec, syncs: bool) -> Result<StoreFile, StoreError> {
        StoreFile::create_all_on(backing, vec![spec], syncs)
    }

    fn create_one(
        backing: Arc<dyn Backing>,
        spec: StoreSpec,
        layout: &Layout,
        syncs: bool,
    ) -> Result<StoreFile, StoreError> {
        let used = StoreUse { syncs, ..StoreUse::default() };
        let superblock = Superblock { format: VERSION, generation: 1, spec, used };
        // The second copy first: a store whose first copy a kill cut off is still recognizable as being created.
        layout.superblock.iter().rev().try_for_each(|copy| backing.write_at(copy.at, &superblock.encode()))?;
        Ok(StoreFile { backing, superblock, before: used, is_new: true, damaged: None, syncs, following: Vec::new() })
    }

    /// Opens a store in a file. Records that a loss of the host's power or a kill left in the redo log are repeated.
    ///
    /// # Errors
    /// When it is not a whole store.
    pub fn open_on(backing: Arc<dyn Backing>, syncs: bool) -> Result<StoreFile, StoreError> {
        if backing.is_empty()? {
            return Err(StoreError::Empty);
        }
        // The place of the redo log follows from fields that never change in superblocks.
        let end = StoreFile::open_all(&backing, syncs)?.end();
        let (found, expected) = (backing.len()?, end + redo::BYTES);
        if found < expected {
            return Err(StoreError::Truncated { found, expected });
        }
        let backing = under_use(Redo::recover(backing.clone(), end)?, backing, syncs)?;
        let store = StoreFile::open_all(&backing, syncs)?;
        // The redo log may have had the record that filling is complete.
        let is_filling = std::iter::once(&store).chain(&store.following).any(|store| store.before.is_filling);
        if is_filling { Err(StoreError::Unfinished) } else { Ok(store) }
    }

    /// Opens all stores of a file in their present state.
    fn open_all(backing: &Arc<dyn Backing>, syncs: bool) -> Result<StoreFile, StoreError> {
        let mut first = StoreFile::open_one(backing.clone(), syncs)?;
        for left in (0..first.spec().following).rev() {
            let next = StoreFile::open_one(window(backing, first.end()), syncs).map_err(|error| match error {
                StoreError::Foreign => StoreError::Damaged("one of its stores is missing"),
                other => other,
            })?;
            if next.spec().following != left {
                return Err(StoreError::Damaged("its stores do not belong together"));
            }
            first.following.push(next);
        }
        Ok(first)
    }

    /// Where the last of the stores that were opened ends.
    fn end(&self) -> u64 {
        std::iter::once(self).chain(&self.following).map(|store| store.len().next_multiple_of(BYTES)).sum()
    }

    fn open_one(backing: Arc<dyn Backing>, syncs: bool) -> Result<StoreFile, StoreError> {
        let found = backing.len()?;
        let Copies { latest, problem, damaged } = superblocks(&*backing)?;
        let mut superblock = latest.ok_or(match problem {
            NoSuperblock::Foreign => StoreError::Foreign,
            NoSuperblock::Version(version) => StoreError::OtherFormat(version),
            NoSuperblock::Damaged(what) => StoreError::Damaged(what),
        })?;
        let layout = layout_of(&superblock.spec, superblock.format)
            .map_err(|_| StoreError::Damaged("its geometry is impossible"))?;
        let expected = layout.len();
        if found < expected {
            return Err(StoreError::Truncated { found, expected });
        }
        let is_new = superblock.used.starts == 0;
        if damaged.is_some() {
            // The damaged copy may have been the newer one: assume a further start, and a drive that was not stopped.
            superblock.generation += 1;
            superblock.used.starts += 1;
            superblock.used.in_use = true;
        }
        let before = superblock.used;
        Ok(StoreFile { backing, superblock, before, is_new, damaged, syncs, following: Vec::new() })
    }

    /// Its content.
    pub fn spec(&self) -> &StoreSpec {
        &self.superblock.spec
    }

    /// Its use before it was opened.
    pub fn before(&self) -> StoreUse {
        self.before
    }

    /// Whether no copy of its superblock records a start. If one copy is damaged, a start may have ended with a kill.
    pub(crate) fn is_new(&self) -> bool {
        self.is_new
    }

    pub(crate) fn backing(&self) -> &Arc<dyn Backing> {
        &self.backing
    }

    pub(crate) fn disk(&self, geometry: &Geometry) -> Disk {
        let disk =
            Disk::new(self.backing.clone(), Layout::new(self.spec(), geometry, self.superblock.format), self.syncs);
        if let Some(at) = self.damaged {
            disk.note_damage(format!("the superblock at byte {at}: its other copy is whole"));
        }
        disk
    }

    pub(crate) fn begin_use(&mut self, disk: &Disk) -> Result<(), MediaError> {
        let StoreUse { in_use, starts, unclean, membership: was, .. } = self.before;
        let unclean = unclean + u64::from(in_use);
        let (in_use, syncs, starts, membership) = (true, self.syncs, starts + 1, self.superblock.used.membership);
        self.superblock.used = StoreUse { in_use, syncs, is_filling: false, starts, unclean, membership };
        self.put(disk)?;
        // Both copies, as of a state.
        if membership == was { Ok(()) } else { self.put(disk) }
    }

    /// A member is about to be used alone: its owner learns of it. It is marked once the use begins.
    pub fn stray(&mut self) {
        if let Membership::Member(owner) = self.superblock.used.membership {
            self.superblock.used.membership = Membership::Strayed(owner);
        }
    }

    /// The drive is a member, and fits the others. Both copies of the superblock hold that.
    pub(crate) fn join(&mut self, owner: Owner, disk: &Disk) -> Result<(), MediaError> {
        if self.superblock.used.membership == Membership::Member(owner) {
            return Ok(());
        }
        self.superblock.used.membership = Membership::Member(owner);
        self.put(disk)?;
        self.put(disk)
    }

    /// Marks the begin or the end of filling it with a state. A file in which filling did not end is rejected. Both copies
    /// record it, because the older one counts if the newer one is damaged.
    pub(crate) fn set_filling(&mut self, disk: &Disk, is_filling: bool) -> Result<(), MediaError> {
        self.superblock.used.is_filling = is_filling;
        self.put(disk)?;
        self.put(disk)
    }

    pub(crate) fn end_use(&mut self, disk: &Disk) -> Result<(), MediaError> {
        let copy = disk.layout.superblock[(self.superblock.generation % 2) as usize];
        disk.check_holds(copy.at, &self.superblock.encode())?;
        self.superblock.used.in_use = false;
        self.put(disk)
    }

    fn put(&mut self, disk: &Disk) -> Result<(), MediaError> {
        self.superblock.generation += 1;
        let copy = disk.layout.superblock[(self.superblock.generation % 2) as usize];
        disk.write(copy.at, &self.superblock.encode())?;
        disk.sync()
    }
}

/// The content of the copies of a superblock.
struct Copies {
    latest: Option<Superblock>,
    /// Why there is no superblock.
    problem: NoSuperblock,
    /// The place of an invalid copy.
    damaged: Option<u64>,
}

fn superblocks(backing: &dyn Backing) -> io::Result<Copies> {
    let found = backing.len()?;
    let mut copies = Copies { latest: None, problem: NoSuperblock::Foreign, damaged: None };
    for at in [0, BYTES] {
        let mut bytes = vec![0; found.saturating_sub(at).min(BYTES) as usize];
        backing.read_at(at, &mut bytes)?;
        match Superblock::decode(&bytes) {
            Ok(superblock) => {
                let is_newer = |other: &Superblock| superblock.generation > other.generation;
                if copies.latest.as_ref().is_none_or(is_newer) {
                    copies.latest = Some(superblock);
                }
            }
            Err(problem) => {
                copies.damaged = Some(at);
                if problem != NoSuperblock::Foreign {
                    copies.problem = problem;
                }
            }
        }
    }
    Ok(copies)
}

/// The layout of a store.
fn layout_of(spec: &StoreSpec, format: u32) -> Result<Layout, StoreError> {
    let geometry = spec.checked_geometry().ok().filter(|_| spec.fits()).ok_or(StoreError::TooLong)?;
    Ok(Layout::new(spec, &geometry, format))
}

/// A file from an offset on.
fn window(file: &Arc<dyn Backing>, from: u64) -> Arc<dyn Backing> {
    match from {
        0 => file.clone(),
        from => Arc::new(Window::new(file.clone(), from)),
    }
}

/// The backing that stores use, once the redo log was repeated: the log, where the file is synced.
fn under_use(redo: Redo, file: Arc<dyn Backing>, syncs: bool) -> Result<Arc<dyn Backing>, StoreError> {
    if !syncs {
        return Ok(file);
    }
    redo.reserve_regions()?;
    Ok(Arc::new(redo))
}

pub(super) fn lock(file: &File) -> Result<(), StoreError> {
    match file.try_lock() {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => Err(StoreError::InUse),
        Err(TryLockError::Error(error)) => Err(error.into()),
    }
}
