//! The page `docs/keys.md` agrees with the code: it is generated from the documentation of the keys and from resolved
//! profiles, and this test fails if it is out of date.
//!
//! `NANDSCAPE_RENEW=1 cargo test -p nandscape-device-ssd --test keys_page` rewrites it.

use std::fmt::Write as _;

use nandscape_device_ssd::{KeyDoc, Profile, key_docs};
use toml::{Table, Value};

/// Every key that has no default, and nothing else.
const BARE: &str = r#"version = 1
capacity = "1GiB"
[geometry]
channels = 8
dies_per_channel = 8
planes_per_die = 1
pages_per_block = 256
page_size = "4KiB"
[timing]
cell = "slc"
read = "40us"
program = "200us"
erase = "2ms"
bus = "800MB/s"
registers = "single"
[buffer]
mode = "capacitor"
size = "4MiB"
"#;

const HEAD: &str = "\
<!-- Generated from device/ssd/src/keys.rs by device/ssd/tests/keys_page.rs. To renew:
     NANDSCAPE_RENEW=1 cargo test -p nandscape-device-ssd --test keys_page -->

# The keys of a profile

A profile is a TOML file. Its first line is `version = 1`; it may start from another with `base = \"default\"`, and
every key can be changed on the command line: `--set ftl.gc.victim=cost_benefit`. The names that come with it are on
the page on [profiles](profiles.md).

Times are written `\"40us\"` (ns, us, ms, s). Sizes are `\"16KiB\"`: KiB, MiB, GiB, TiB are powers of 1024 and KB, MB,
GB, TB powers of 1000; the bare K, M, G, T are powers of 1024, as in fio. Rates are a size in a time, `\"800MB/s\"` or
`\"16KiB/60us\"`, or `\"unlimited\"`. Shares are `\"12%\"` or `0.12`. An unknown key or a value out of range is an error
that names the place and what would be valid.

\"Left out\" is the value that counts when neither the profile nor its base gives the key; **needed** keys have none.
`nandscape drives show P --resolved` prints a profile with all of them filled in.
";

fn resolved(profile: &Profile) -> Table {
    toml::from_str(&profile.resolve().unwrap().to_toml()).unwrap()
}

/// The value at a section and key, as a profile would have it.
fn value(table: &Table, doc: &KeyDoc) -> Option<Value> {
    let path = doc.section.split('.').filter(|part| !part.is_empty());
    let mut section = table;
    for part in path {
        section = section.get(part)?.as_table()?;
    }
    section.get(doc.key).cloned()
}

fn code(value: &Value) -> String {
    format!("`{value}`")
}

/// The value when the key is left out.
fn left_out(doc: &KeyDoc, bare: &Table, filled: &Table) -> String {
    match (value(bare, doc), value(filled, doc), (doc.section, doc.key)) {
        (_, _, ("", "capacity")) | (_, _, ("geometry", "blocks_per_plane")) => "derived from the other".to_owned(),
        (_, _, ("identity", _)) => "derived".to_owned(),
        (Some(_), _, _) => "**needed**".to_owned(),
        (None, Some(value), _) => code(&value),
        (None, None, _) => "none".to_owned(),
    }
}

fn page() -> String {
    let bare: Table = toml::from_str(BARE).unwrap();
    let filled = resolved(&Profile::parse("bare.toml", BARE).unwrap());
    let default = resolved(&Profile::load("default").unwrap());
    let mut page = HEAD.to_owned();
    let mut section = None;
    for doc in key_docs() {
        if section != Some(doc.section) {
            let heading = if doc.section.is_empty() { "At the top".to_owned() } else { format!("`[{}]`", doc.section) };
            write!(page, "\n## {heading}\n\n| key | left out | in `default` | meaning |\n|---|---|---|---|\n").unwrap();
            section = Some(doc.section);
        }
        let meaning: Vec<&str> = doc.doc.lines().map(str::trim).collect();
        let in_default = match value(&default, &doc) {
            Some(_) if doc.key == "description" => "one line".to_owned(),
            Some(value) => code(&value),
            None => "none".to_owned(),
        };
        let (key, meaning) = (doc.key, meaning.join(" "));
        writeln!(page, "| `{key}` | {} | {in_default} | {} |", left_out(&doc, &bare, &filled), meaning.trim()).unwrap();
    }
    page
}

#[test]
#[allow(clippy::print_stderr, reason = "tells the developer what was done")]
fn the_page_of_keys_is_up_to_date() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/keys.md");
    let page = page();
    if std::env::var_os("NANDSCAPE_RENEW").is_some() {
        std::fs::write(path, &page).unwrap();
        eprintln!("written: {path}");
    }
    let on_disk = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        on_disk == page,
        "docs/keys.md is out of date; renew it with\n  NANDSCAPE_RENEW=1 cargo test -p nandscape-device-ssd --test keys_page"
    );
}

/// The column "left out" has **needed** for exactly the keys without which a profile is rejected.
#[test]
fn every_key_called_needed_is() {
    let bare: Table = toml::from_str(BARE).unwrap();
    for doc in key_docs().iter().filter(|doc| value(&bare, doc).is_some()) {
        let mut without = bare.clone();
        let section = match doc.section {
            "" => &mut without,
            name => without.get_mut(name).unwrap().as_table_mut().unwrap(),
        };
        section.remove(doc.key);
        let text = toml::to_string(&without).unwrap();
        let resolved = Profile::parse("bare.toml", &text).and_then(|profile| profile.resolve());
        assert!(resolved.is_err(), "{}.{} is called needed and can be left out", doc.section, doc.key);
    }
}
