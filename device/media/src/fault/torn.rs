//! The remains of operations that a power cut interrupts.

use nandscape_sim::Rng;

/// The remains of an interrupted operation.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub enum Torn {
    /// The page, or every page of the block, cannot be read.
    #[default]
    Unreadable,
    /// The array had not begun: the page is erased, the block unchanged. A page followed by one in progress cannot be read.
    Untouched,
    /// The array had finished: the page is programmed, the block is erased.
    Whole,
    /// The first sectors of the page are programmed, the others read as erased. A block cannot be read.
    Prefix,
    /// The out-of-band area is programmed, the data reads as erased. A block cannot be read.
    Area,
    /// The data is programmed, the out-of-band area reads as erased. A block cannot be read.
    Data,
    /// One of the others, drawn for each page and each block.
    Any,
}

impl Torn {
    /// All of them, by their names in rules.
    pub const ALL: [(&str, Torn); 7] = [
        ("unreadable", Torn::Unreadable),
        ("untouched", Torn::Untouched),
        ("whole", Torn::Whole),
        ("prefix", Torn::Prefix),
        ("area", Torn::Area),
        ("data", Torn::Data),
        ("any", Torn::Any),
    ];

    /// Its name in rules.
    pub fn name(self) -> &'static str {
        Torn::ALL.iter().find(|(_, torn)| *torn == self).map_or("?", |(name, _)| name)
    }

    /// Whether a page may remain readable with wrong content.
    pub fn misleads(self) -> bool {
        matches!(self, Torn::Prefix | Torn::Area | Torn::Data | Torn::Any)
    }

    /// Draws a concrete variant for `Any`.
    pub(super) fn draw(self, rng: &mut Rng) -> Torn {
        match self {
            Torn::Any => Torn::ALL[rng.below(6) as usize].1,
            other => other,
        }
    }
}
