//! QEMU, the kernel, and the file system that guests start with: fetched from Debian's archive once, then taken from the
//! cache.
//!
//! | file | what |
//! |---|---|
//! | `recipe` | the packages, and where they come from |
//! | `apt` | fetching them, by an apt with its own folders |
//! | `tree` | the packages unpacked into one folder; programs run from it |
//! | `kernel` | the uncompressed kernel |
//! | `cache` | the cache folder |
//!
//! The cache is `nandscape/guest` in the user's cache folder. A folder in it belongs to one recipe, an image to one set of
//! package versions and contents. Deleting the folder makes the next start fetch the packages again.

mod apt;
mod cache;
mod kernel;
mod recipe;
mod tree;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::GuestError;
use crate::image;
use crate::saved;
use cache::Cache;
pub(crate) use tree::Tree;

/// What every guest is started from.
#[derive(Clone, Debug)]
pub struct Kit {
    tree: Tree,
    kernel: PathBuf,
    image: PathBuf,
    /// Of all recipes.
    folder: PathBuf,
}

impl Kit {
    /// The kit from the cache; missing parts are fetched and built. `tell` gets a line for each step that takes
    /// long. Processes that prepare it at the same time take turns.
    ///
    /// # Errors
    /// When packages cannot be fetched or are not as expected.
    pub fn prepare(tell: &dyn Fn(&str)) -> Result<Kit, GuestError> {
        Kit::prepare_in(&cache::folder()?, tell)
    }

    fn prepare_in(folder: &Path, tell: &dyn Fn(&str)) -> Result<Kit, GuestError> {
        let cache = Cache::open(folder, &recipe::text())?;
        let tree = Tree::at(cache.entry("tree"));
        cache.make("tree", |path| {
            tell("fetching QEMU, a Linux kernel and the guest's programs from Debian's archive (some 200 MB, once)");
            apt::fetch(&cache.entry("apt"), path)
        })?;
        // The lists and packages were needed for the tree only.
        cache.remove("apt");
        let kernel = cache.make("vmlinux", |path| kernel::unpack(&tree, path))?;
        let image = cache.make(&image::name(&tree)?, |path| {
            tell("building the guest's file system");
            image::build(&tree, path)
        })?;
        Ok(Kit { tree, kernel, image, folder: folder.to_owned() })
    }

    /// Packages and versions, one a line.
    ///
    /// # Errors
    /// When the cache was changed.
    pub fn versions(&self) -> Result<String, GuestError> {
        self.tree.versions()
    }

    /// The saved start, which is made if there is none. Those of other images are removed. `None` where it cannot be saved, which is not tried again in this process.
    pub(crate) fn saved(&self) -> Option<PathBuf> {
        static CANNOT: AtomicBool = AtomicBool::new(false);
        if CANNOT.load(Ordering::Relaxed) {
            return None;
        }
        let made = Cache::open(&self.folder, &recipe::text()).and_then(|cache| {
            cache.make(&saved::name(self), |path| {
                cache.remove_others(saved::PREFIX, path);
                saved::make(self, path).inspect_err(|_| drop(std::fs::remove_file(path)))
            })
        });
        CANNOT.store(made.is_err(), Ordering::Relaxed);
        made.ok()
    }

    /// Removes a saved start that cannot be continued, such as one that a crash of this machine has torn.
    pub(crate) fn discard(&self, saved: &Path) {
        if let Ok(cache) = Cache::open(&self.folder, &recipe::text())
            && let Some(name) = saved.file_name().and_then(|name| name.to_str())
        {
            cache.remove(name);
        }
    }

    pub(crate) fn tree(&self) -> &Tree {
        &self.tree
    }

    pub(crate) fn kernel(&self) -> &Path {
        &self.kernel
    }

    pub(crate) fn image(&self) -> &Path {
        &self.image
    }
}
