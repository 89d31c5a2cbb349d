//! The public interface as lines of paths, compared with the listing in the repository.
//!
//! A line is a path of an item, or of a public field, variant, method or constant of one, with its type or signature as the source has it.
//! Left out: derived and implemented traits, and what private types in a signature consist of.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use syn::{Item, UseTree, Visibility};

use crate::source::Sources;

/// The variable with which the test writes the listing.
const WRITE: &str = "NANDSCAPE_RENEW";

fn here(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// The lines of a module of the facade.
fn list(sources: &Sources, prefix: &str, items: &[Item], lines: &mut BTreeSet<String>) {
    for item in items {
        match item {
            Item::Mod(module) if matches!(module.vis, Visibility::Public(_)) => {
                let path = format!("{prefix}::{}", module.ident);
                let (_, items) = module.content.as_ref().expect("modules of the facade are in its one file");
                lines.insert(path.clone());
                list(sources, &path, items, lines);
            }
            Item::Use(item) if matches!(item.vis, Visibility::Public(_)) => {
                list_use(sources, prefix, &mut Vec::new(), &item.tree, lines);
            }
            _ => {}
        }
    }
}

fn list_use(sources: &Sources, prefix: &str, from: &mut Vec<String>, tree: &UseTree, lines: &mut BTreeSet<String>) {
    match tree {
        UseTree::Path(path) => {
            from.push(path.ident.to_string());
            list_use(sources, prefix, from, &path.tree, lines);
            from.pop();
        }
        UseTree::Group(group) => group.items.iter().for_each(|tree| list_use(sources, prefix, from, tree, lines)),
        UseTree::Name(name) => enter(sources, prefix, from, &name.ident.to_string(), &name.ident.to_string(), lines),
        UseTree::Rename(name) => enter(sources, prefix, from, &name.ident.to_string(), &name.rename.to_string(), lines),
        UseTree::Glob(_) => panic!("{prefix} has all of {}: the facade names its items", from.join("::")),
    }
}

fn enter(sources: &Sources, prefix: &str, from: &[String], name: &str, told: &str, lines: &mut BTreeSet<String>) {
    let path = format!("{prefix}::{told}");
    let (signature, members) = sources.described(from, name);
    lines.extend(members.into_iter().map(|member| format!("{path}::{member}")));
    lines.insert(path + &signature);
}

#[test]
fn the_interface_is_the_listed_one() {
    let facade = fs::read_to_string(here("src/lib.rs")).unwrap();
    let facade = syn::parse_file(&facade).unwrap();
    let mut lines = BTreeSet::new();
    list(&Sources::of_workspace(), "nandscape", &facade.items, &mut lines);
    assert!(lines.len() > 500, "{} lines", lines.len());
    let (now, file) = (lines.into_iter().map(|line| line + "\n").collect::<String>(), here("public.txt"));
    if std::env::var_os(WRITE).is_some() {
        return fs::write(file, now).unwrap();
    }
    let listed = fs::read_to_string(file).unwrap();
    let [now, listed] = [&now, &listed].map(|text| text.lines().collect::<BTreeSet<_>>());
    let changes: Vec<String> = now
        .difference(&listed)
        .map(|line| format!("+ {line}"))
        .chain(listed.difference(&now).map(|line| format!("- {line}")))
        .collect();
    assert!(
        changes.is_empty(),
        "the public interface has changed; if it should, `{WRITE}=1 cargo test -p nandscape --test interface` renews \
         facade/public.txt:\n{}",
        changes.join("\n")
    );
}
