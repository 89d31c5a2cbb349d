//! The permitted contents of each sector: the last promised content, and all later ones.

/// The content of a sector.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Content {
    /// Never written, or deallocated.
    Zeros,
    /// Written with this number.
    Data(u32),
    /// Declared unreadable.
    Spoiled,
}

/// See the file.
pub(crate) struct Model(Vec<Vec<Content>>);

impl Model {
    pub(crate) fn new(sectors: usize) -> Model {
        Model(vec![vec![Content::Zeros]; sectors])
    }

    pub(crate) fn sectors(&self) -> usize {
        self.0.len()
    }

    /// A change may take effect.
    pub(crate) fn may(&mut self, sectors: std::ops::Range<usize>, content: Content) {
        self.0[sectors].iter_mut().for_each(|each| each.push(content));
    }

    /// A change has taken effect, durably if it `is_durable`.
    pub(crate) fn done(&mut self, sectors: std::ops::Range<usize>, content: Content, is_durable: bool) {
        for each in &mut self.0[sectors] {
            if is_durable {
                each.clear();
            }
            each.push(content);
        }
    }

    /// All effective changes are durable.
    pub(crate) fn flushed(&mut self) {
        for each in &mut self.0 {
            let last = *each.last().expect("a sector holds something");
            *each = vec![last];
        }
    }

    /// Whether a sector may hold this.
    pub(crate) fn allows(&self, sector: usize, content: Content) -> bool {
        self.0[sector].contains(&content)
    }

    /// The drive was started again, and the sector holds this.
    pub(crate) fn found(&mut self, sector: usize, content: Content) -> Result<(), String> {
        let may = &mut self.0[sector];
        if !may.contains(&content) {
            return Err(format!("sector {sector} holds {content:?}, and may hold {may:?}"));
        }
        *may = vec![content];
        Ok(())
    }

    /// The content of a sector while the drive runs.
    pub(crate) fn now(&self, sector: usize) -> Content {
        *self.0[sector].last().expect("a sector holds something")
    }
}
