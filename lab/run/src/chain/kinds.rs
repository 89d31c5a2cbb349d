//! The list of the kinds of layers. A new kind is a crate or a file, and a line here: words, files, keys, errors and help follow from it.

use std::sync::Arc;

use nandscape_layers_array::ArrayLayer;
use nandscape_layers_block::BlockOver;
use nandscape_layers_cache::CacheLayer;

use super::{AhciLayer, FtlLayer, Layer, LayerWords, ftl};

/// A kind of layers.
pub struct Kind {
    /// What its layers are called that have no name.
    pub name: &'static str,
    /// Its words, with `N` for the number of nodes that a layer takes: `ahci:N`.
    pub forms: &'static [&'static str],
    /// What it is, in a few words; `None` of one whose forms show it.
    pub what: Option<&'static str>,
    read: Read,
}

type Read = fn(&LayerWords) -> Result<Arc<dyn Layer>, String>;

/// All kinds, as they are listed.
static KINDS: [Kind; 5] = [
    Kind::new("block", &["block"], Some("a block layer with deadlines"), |words| of(BlockOver::read(&words.set))),
    Kind::new("cache", &["cache"], Some("a page cache"), |words| of(CacheLayer::read(&words.set))),
    Kind::new(ftl::NAME, &["ftl"], Some(ftl::WHAT), |words| of(FtlLayer::read(words))),
    Kind::new("ahci", &["ahci:N"], Some("an AHCI controller"), |words| of(AhciLayer::read(&words.kind, &words.set))),
    Kind::new("array", &LEVELS, None, |words| of(ArrayLayer::read(&words.kind, &words.set))),
];

const LEVELS: [&str; 5] = ["raid0:N", "raid1:N", "raid5:N", "raid6:N", "raid10:N"];

fn of<L: Layer>(read: Result<L, String>) -> Result<Arc<dyn Layer>, String> {
    read.map(|layer| Arc::new(layer) as Arc<dyn Layer>)
}

/// All kinds.
pub fn kinds() -> &'static [Kind] {
    &KINDS
}

/// All kinds with what they are, in a list: `block (a block layer with deadlines), cache (a page cache), ...`.
pub fn kinds_in_words() -> String {
    let one = |kind: &Kind| match kind.what {
        Some(what) => format!("{} ({what})", kind.forms.join(", ")),
        None => kind.forms.join(", "),
    };
    KINDS.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// The words of all kinds: `block, cache, ... and raid10:N`.
pub(super) fn forms() -> String {
    let forms: Vec<&str> = KINDS.iter().flat_map(|kind| kind.forms).copied().collect();
    match forms.split_last() {
        Some((last, others)) => format!("{} and {last}", others.join(", ")),
        None => String::new(),
    }
}

impl Kind {
    const fn new(name: &'static str, forms: &'static [&'static str], what: Option<&'static str>, read: Read) -> Kind {
        Kind { name, forms, what, read }
    }

    /// The kind of a word. One that takes a number has any word that begins as its own: the kind reports what is wrong with it.
    pub(super) fn of(word: &str) -> Option<&'static Kind> {
        KINDS.iter().find(|kind| match kind.forms[0].strip_suffix(":N") {
            Some(form) => word.starts_with(form.trim_end_matches(|letter: char| letter.is_ascii_digit())),
            None => kind.forms.contains(&word),
        })
    }

    /// The kind whose layers a change of a key addresses by the name of the kind: `block.deadline=2ms`.
    pub fn of_change(change: &str) -> Option<&'static Kind> {
        let (name, _) = change.trim_start().split_once('.')?;
        KINDS.iter().find(|kind| kind.name == name)
    }

    /// The layer of its words.
    pub(super) fn read(&self, words: &LayerWords) -> Result<Arc<dyn Layer>, String> {
        (self.read)(words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_names_its_kind() {
        for kind in kinds() {
            let named = |change: String| Kind::of_change(&change).map(|kind| kind.name);
            assert_eq!(named(format!(" {}.key=1", kind.name)), Some(kind.name));
            assert_eq!(named(format!("{}=1", kind.name)), None);
        }
        assert!(Kind::of_change("ftl.over_provisioning=7%").is_none());
    }

    #[test]
    fn a_word_has_the_kind_that_its_layer_has() {
        for kind in kinds() {
            for form in kind.forms {
                let word = form.replace('N', "4");
                assert_eq!(Kind::of(&word).map(|kind| kind.name), Some(kind.name), "{word}");
                let words: LayerWords = word.parse().unwrap_or_else(|problem| panic!("{problem}"));
                assert_eq!(kind.read(&words).unwrap().kind(), kind.name, "{word}");
            }
        }
        assert!(Kind::of("blocks").is_none() && Kind::of("").is_none());
    }

    #[test]
    fn lists_have_all_kinds() {
        assert_eq!(forms(), "block, cache, ftl, ahci:N, raid0:N, raid1:N, raid5:N, raid6:N and raid10:N");
        assert!(
            kinds_in_words()
                .starts_with("block (a block layer with deadlines), cache (a page cache), ftl (the FTL of a host")
        );
        assert!(
            kinds_in_words().ends_with("ahci:N (an AHCI controller), raid0:N, raid1:N, raid5:N, raid6:N, raid10:N")
        );
    }
}
