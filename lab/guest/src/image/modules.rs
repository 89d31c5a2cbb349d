//! Kernel modules with the modules that they need, in the order in which they load. Each names its dependencies in its
//! section `.modinfo`.

use std::collections::BTreeMap;
use std::io::Read as _;

use crate::error::GuestError;
use crate::kit::Tree;

/// A module to load.
#[derive(Debug)]
pub(crate) struct Module {
    /// Its name.
    pub(crate) name: String,
    /// The uncompressed file.
    pub(crate) bytes: Vec<u8>,
}

/// The modules of a kernel.
pub(crate) struct Modules<'a> {
    tree: &'a Tree,
    /// The file of each module, by name.
    files: BTreeMap<String, String>,
    /// Paths of those that are part of the kernel itself, a line each.
    builtin: String,
    chosen: Vec<Module>,
}

impl<'a> Modules<'a> {
    /// The modules of the tree's kernel.
    pub(crate) fn of(tree: &'a Tree) -> Result<Modules<'a>, GuestError> {
        let releases = tree.names("usr/lib/modules")?;
        let [release] = &releases[..] else {
            return Err(GuestError::Contents(format!("expected the modules of one kernel, found {releases:?}")));
        };
        let folder = format!("usr/lib/modules/{release}");
        let builtin = String::from_utf8_lossy(&tree.read(&format!("{folder}/modules.builtin"))?).into_owned();
        let mut files = BTreeMap::new();
        collect(tree, &format!("{folder}/kernel"), &mut files)?;
        Ok(Modules { tree, files, builtin, chosen: Vec::new() })
    }

    /// Chooses a module and all that it needs.
    pub(crate) fn choose(&mut self, name: &str) -> Result<(), GuestError> {
        let name = normalized(name);
        if self.chosen.iter().any(|module| module.name == name) || self.is_builtin(&name) {
            return Ok(());
        }
        let Some(file) = self.files.get(&name) else {
            return Err(GuestError::Contents(format!("the kernel has no module {name}")));
        };
        let bytes =
            decompressed(&self.tree.read(file)?).map_err(GuestError::system(format!("cannot decompress {file}")))?;
        for needed in dependencies(&bytes) {
            self.choose(&needed)?;
        }
        self.chosen.push(Module { name, bytes });
        Ok(())
    }

    /// The chosen modules, each after its dependencies.
    pub(crate) fn into_chosen(self) -> Vec<Module> {
        self.chosen
    }

    fn is_builtin(&self, name: &str) -> bool {
        self.builtin.lines().any(|path| module_name(path).as_deref() == Some(name))
    }
}

fn collect(tree: &Tree, folder: &str, files: &mut BTreeMap<String, String>) -> Result<(), GuestError> {
    for name in tree.names(folder)? {
        let path = format!("{folder}/{name}");
        match module_name(&name) {
            Some(module) => drop(files.insert(module, path)),
            None if tree.path(&path).is_dir() => collect(tree, &path, files)?,
            None => {}
        }
    }
    Ok(())
}

/// The module in a file of this name.
fn module_name(path: &str) -> Option<String> {
    let file = path.rsplit('/').next().unwrap_or(path);
    Some(normalized(file.strip_suffix(".ko.xz").or_else(|| file.strip_suffix(".ko"))?))
}

/// Dashes and underscores are the same in names of modules.
fn normalized(name: &str) -> String {
    name.replace('-', "_")
}

fn decompressed(file: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    lzma_rust2::XzReader::new(file, false).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Dependencies of a module: its `depends=a,b`, between zero bytes.
fn dependencies(module: &[u8]) -> Vec<String> {
    let Some(at) = memchr::memmem::find(module, b"\0depends=") else { return Vec::new() };
    let rest = &module[at + b"\0depends=".len()..];
    let list = &rest[..memchr::memchr(0, rest).unwrap_or(0)];
    String::from_utf8_lossy(list).split(',').filter(|name| !name.is_empty()).map(normalized).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_dependencies_are_read() {
        assert_eq!(module_name("kernel/drivers/nvme/host/nvme-core.ko.xz").as_deref(), Some("nvme_core"));
        assert_eq!(module_name("kernel/drivers/virtio/virtio_pci.ko").as_deref(), Some("virtio_pci"));
        assert_eq!(module_name("modules.dep"), None);
        let module = b"\x7fELF...\0license=GPL\0depends=nvme-core,nvme_auth\0name=nvme\0";
        assert_eq!(dependencies(module), ["nvme_core", "nvme_auth"]);
        assert!(dependencies(b"\0license=GPL\0depends=\0name=crc16\0").is_empty());
        assert!(dependencies(b"").is_empty());
    }

    #[test]
    fn unknown_modules_are_refused_and_builtin_ones_need_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let modules = folder.path().join("usr/lib/modules/6.12");
        std::fs::create_dir_all(modules.join("kernel")).unwrap();
        std::fs::write(modules.join("modules.builtin"), "kernel/drivers/virtio/virtio_pci.ko\n").unwrap();
        let tree = Tree::at(folder.path().to_owned());
        let mut modules = Modules::of(&tree).unwrap();
        modules.choose("virtio-pci").unwrap();
        assert!(modules.choose("nvme").unwrap_err().to_string().contains("no module nvme"));
        assert!(modules.into_chosen().is_empty());
    }
}
