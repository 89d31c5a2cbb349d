//! The sources of the workspace: finds items by their paths, through re-exports.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use syn::{Fields, ImplItem, Item, Type, UseTree, Visibility};

use crate::signature;

/// A module: its items, and the files that its child modules are in.
struct Module {
    items: Vec<Item>,
    /// The folder of its child modules.
    folder: PathBuf,
}

/// Public methods and constants with their signatures, by type.
type Inherent = BTreeMap<String, BTreeSet<String>>;

/// See the file.
pub(crate) struct Sources {
    root: PathBuf,
    /// The folder of each crate, by its name in code.
    crates: BTreeMap<String, PathBuf>,
    modules: RefCell<BTreeMap<Vec<String>, Option<Rc<Module>>>>,
    /// Public methods and constants of inherent blocks, by crate and type.
    inherent: RefCell<BTreeMap<String, Rc<Inherent>>>,
}

fn is_public(vis: &Visibility) -> bool {
    matches!(vis, Visibility::Public(_))
}

/// The name of an item that may be public.
fn name_of(item: &Item) -> Option<String> {
    Some(match item {
        Item::Const(item) => item.ident.to_string(),
        Item::Enum(item) => item.ident.to_string(),
        Item::Fn(item) => item.sig.ident.to_string(),
        Item::Static(item) => item.ident.to_string(),
        Item::Struct(item) => item.ident.to_string(),
        Item::Trait(item) => item.ident.to_string(),
        Item::Type(item) => item.ident.to_string(),
        _ => return None,
    })
}

/// The paths that a `use` names, and the modules of its globs.
fn of_use(tree: &UseTree, name: &str, at: &mut Vec<String>, found: &mut Vec<Vec<String>>) {
    match tree {
        UseTree::Path(path) => {
            at.push(path.ident.to_string());
            of_use(&path.tree, name, at, found);
            at.pop();
        }
        UseTree::Group(group) => group.items.iter().for_each(|tree| of_use(tree, name, at, found)),
        UseTree::Name(item) if item.ident == name => found.push([&at[..], &[name.to_owned()]].concat()),
        UseTree::Rename(item) if item.rename == name => found.push([&at[..], &[item.ident.to_string()]].concat()),
        UseTree::Glob(_) => found.push([&at[..], &[name.to_owned()]].concat()),
        _ => {}
    }
}

impl Sources {
    pub(crate) fn of_workspace() -> Sources {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace").to_owned();
        let manifest = fs::read_to_string(root.join("Cargo.toml")).unwrap();
        let path = |line: &str| {
            let (name, rest) = line.split_once(" = { path = \"")?;
            Some((name.replace('-', "_"), root.join(rest.split('"').next()?)))
        };
        let crates = manifest.lines().filter_map(path).collect();
        Sources { root, crates, modules: RefCell::default(), inherent: RefCell::default() }
    }

    /// A module by its path, which begins with its crate.
    fn module(&self, path: &[String]) -> Option<Rc<Module>> {
        if let Some(known) = self.modules.borrow().get(path) {
            return known.clone();
        }
        let found = self.read(path).map(Rc::new);
        self.modules.borrow_mut().insert(path.to_vec(), found.clone());
        found
    }

    fn read(&self, path: &[String]) -> Option<Module> {
        let (last, parents) = path.split_last()?;
        if parents.is_empty() {
            let folder = self.crates.get(last)?.join("src");
            return Some(Module { items: items(&folder.join("lib.rs"))?, folder });
        }
        let parent = self.module(parents)?;
        let declared = parent.items.iter().find_map(|item| match item {
            Item::Mod(module) if module.ident == *last => Some(module),
            _ => None,
        })?;
        let folder = parent.folder.join(last);
        let items = match &declared.content {
            Some((_, items)) => items.clone(),
            None => items(&folder.with_extension("rs")).or_else(|| items(&folder.join("mod.rs")))?,
        };
        Some(Module { items, folder })
    }

    /// The crate and the definition of an item of a module.
    fn find(&self, module: &[String], name: &str, depth: u32) -> Option<(String, Item)> {
        let of = self.module(module)?;
        if let Some(item) = of.items.iter().find(|item| name_of(item).as_deref() == Some(name)) {
            return Some((module[0].clone(), item.clone()));
        }
        let mut paths = Vec::new();
        for item in &of.items {
            if let Item::Use(item) = item {
                of_use(&item.tree, name, &mut Vec::new(), &mut paths);
            }
        }
        paths.into_iter().filter(|_| depth < 12).find_map(|path| {
            let (name, from) = path.split_last()?;
            self.find(&self.absolute(module, from), name, depth + 1)
        })
    }

    /// The path of a module as its crate names it.
    fn absolute(&self, module: &[String], path: &[String]) -> Vec<String> {
        let mut at = module.to_vec();
        for (index, part) in path.iter().enumerate() {
            match part.as_str() {
                "crate" => at.truncate(1),
                "self" => {}
                "super" => drop(at.pop()),
                part if index == 0 && self.crates.contains_key(part) => at = vec![part.to_owned()],
                part => at.push(part.to_owned()),
            }
        }
        at
    }

    /// The signature of an item, and its public members with theirs: fields, variants, methods and constants. An item of another workspace,
    /// and one that a macro makes, has none here.
    pub(crate) fn described(&self, from: &[String], name: &str) -> (String, BTreeSet<String>) {
        let Some((of, item)) = self.find(from, name, 0) else { return Default::default() };
        let mut members = match &item {
            Item::Struct(item) => fields(&item.fields, true),
            Item::Enum(item) => item
                .variants
                .iter()
                .flat_map(|variant| {
                    let fields = fields(&variant.fields, false);
                    let of_variant = fields.into_iter().map(|field| format!("{}::{field}", variant.ident));
                    of_variant.chain([variant.ident.to_string()]).collect::<Vec<_>>()
                })
                .collect(),
            Item::Trait(item) => item.items.iter().filter_map(signature::of_trait).collect(),
            _ => BTreeSet::new(),
        };
        if matches!(item, Item::Struct(_) | Item::Enum(_)) {
            members.extend(
                self.inherent(&of).get(&name_of(&item).expect("a type has a name")).cloned().unwrap_or_default(),
            );
        }
        (signature::of_item(&item), members)
    }

    /// The public methods and constants of the types of a crate.
    fn inherent(&self, of: &str) -> Rc<BTreeMap<String, BTreeSet<String>>> {
        if let Some(known) = self.inherent.borrow().get(of) {
            return known.clone();
        }
        let mut found = BTreeMap::new();
        let folder = self.crates.get(of).map_or_else(|| self.root.clone(), |folder| folder.join("src"));
        collect(&folder, &mut found);
        let found = Rc::new(found);
        self.inherent.borrow_mut().insert(of.to_owned(), found.clone());
        found
    }
}

fn items(file: &Path) -> Option<Vec<Item>> {
    let text = fs::read_to_string(file).ok()?;
    Some(syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display())).items)
}

/// Public fields; of variants all are.
fn fields(fields: &Fields, of_struct: bool) -> BTreeSet<String> {
    let named = |(index, field): (usize, &syn::Field)| {
        let name = field.ident.as_ref().map_or_else(|| index.to_string(), ToString::to_string);
        (!of_struct || is_public(&field.vis)).then(|| format!("{name}: {}", signature::text(&field.ty)))
    };
    fields.iter().enumerate().filter_map(named).collect()
}

/// Enters the inherent blocks of all files below a folder.
fn collect(folder: &Path, found: &mut BTreeMap<String, BTreeSet<String>>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.filter_map(Result::ok) {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            collect_items(&items(&path).unwrap_or_default(), found);
        }
    }
}

fn collect_items(items: &[Item], found: &mut BTreeMap<String, BTreeSet<String>>) {
    for item in items {
        match item {
            Item::Impl(block) if block.trait_.is_none() => {
                let Type::Path(of) = &*block.self_ty else { continue };
                let Some(of) = of.path.segments.last() else { continue };
                let members = block.items.iter().filter_map(|item| match item {
                    ImplItem::Const(item) if is_public(&item.vis) => Some(signature::of_const(&item.ident, &item.ty)),
                    ImplItem::Fn(item) if is_public(&item.vis) => Some(signature::of_method(&item.sig)),
                    _ => None,
                });
                found.entry(of.ident.to_string()).or_default().extend(members);
            }
            Item::Mod(module) if module.ident != "tests" => {
                collect_items(module.content.as_ref().map_or(&[], |(_, items)| items), found);
            }
            _ => {}
        }
    }
}
