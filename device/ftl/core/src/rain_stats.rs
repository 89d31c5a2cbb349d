//! Counters of stripes with parity.

/// Counters since the drive was made. All zero of a drive without stripes.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct RainStats {
    /// Units programmed with parity.
    pub parity_units: u64,
    /// Units programmed again because their page could not be read.
    pub repaired_units: u64,
    /// Pages of host reads that were reconstructed from the others of their stripe.
    pub reconstructed_reads: u64,
    /// Pages read for those, in addition to the host's reads.
    pub extra_reads: u64,
    /// Collections that began next to another one of their group, because the plane had no page for the host.
    pub overloads: u64,
    /// Writes that found the write buffer full.
    pub foreground_flushes: u64,
    /// Stripes whose pages left the write buffer before the last, which a collection held up.
    pub held_stripes: u64,
    /// Stripes that wear levelling has moved.
    pub moved_stripes: u64,
    /// Pages that scrubbing has read.
    pub scrubbed_pages: u64,
}

impl RainStats {
    /// All of them, with the names of the figures.
    pub fn by_name(&self) -> [(&'static str, u64); 9] {
        [
            ("parity_units", self.parity_units),
            ("repaired_units", self.repaired_units),
            ("reconstructed_reads", self.reconstructed_reads),
            ("extra_reads", self.extra_reads),
            ("overloads", self.overloads),
            ("foreground_flushes", self.foreground_flushes),
            ("held_stripes", self.held_stripes),
            ("moved_stripes", self.moved_stripes),
            ("scrubbed_pages", self.scrubbed_pages),
        ]
    }

    fn each(&self, other: &RainStats, of: impl Fn(u64, u64) -> u64) -> RainStats {
        RainStats {
            parity_units: of(self.parity_units, other.parity_units),
            repaired_units: of(self.repaired_units, other.repaired_units),
            reconstructed_reads: of(self.reconstructed_reads, other.reconstructed_reads),
            extra_reads: of(self.extra_reads, other.extra_reads),
            overloads: of(self.overloads, other.overloads),
            foreground_flushes: of(self.foreground_flushes, other.foreground_flushes),
            held_stripes: of(self.held_stripes, other.held_stripes),
            moved_stripes: of(self.moved_stripes, other.moved_stripes),
            scrubbed_pages: of(self.scrubbed_pages, other.scrubbed_pages),
        }
    }

    /// The counters of two FTLs of one drive together.
    pub fn plus(&self, other: &RainStats) -> RainStats {
        self.each(other, |one, other| one + other)
    }

    /// The counts since `earlier`.
    pub fn since(&self, earlier: &RainStats) -> RainStats {
        self.each(earlier, |now, earlier| now - earlier)
    }
}
