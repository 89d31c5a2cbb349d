//! The permitted contents of each sector: the last promised content, and all later ones.

use std::ops::Range;

/// The content of a sector.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Content {
    /// Never written, or deallocated.
    Zeros,
    /// Written with this number.
    Data(u32),
    /// Declared unreadable.
    Spoiled,
}

/// See the file.
pub(super) struct Model(Vec<Vec<Content>>);

impl Model {
    pub(super) fn new(sectors: usize) -> Model {
        Model(vec![vec![Content::Zeros]; sectors])
    }

    /// A change may take effect.
    pub(super) fn may(&mut self, sectors: Range<usize>, content: Content) {
        self.0[sectors].iter_mut().for_each(|each| each.push(content));
    }

    /// A change has taken effect, durably if it `is_durable`.
    pub(super) fn done(&mut self, sectors: Range<usize>, content: Content, is_durable: bool) {
        for each in &mut self.0[sectors] {
            if is_durable {
                each.clear();
            }
            each.push(content);
        }
    }

    /// All effective changes are durable.
    pub(super) fn flushed(&mut self) {
        self.0.iter_mut().for_each(|each| drop(each.drain(..each.len() - 1)));
    }

    /// The drive was started again, and a sector holds this.
    pub(super) fn found(&mut self, sector: usize, content: Content) -> Result<(), String> {
        let may = &mut self.0[sector];
        if !may.contains(&content) {
            return Err(format!("sector {sector} holds {content:?}, and may hold {may:?}"));
        }
        *may = vec![content];
        Ok(())
    }
}
