//! How a collection learns to which logical unit the data that it moves belongs.

/// Where the owner is found.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum OwnerSource {
    /// A table from flash to logical units in the controller's memory, which takes no time. The model keeps no second copy
    /// of it: the out-of-band areas hold the same numbers.
    Table,
    /// The out-of-band areas of the pages, which cross the channel with the data, or alone where pages are copied within
    /// their plane. They have a separate error correction code: a page whose data cannot be corrected still shows whose
    /// data is lost.
    OutOfBand,
}

impl OwnerSource {
    /// All sources, by their names in profiles.
    pub const ALL: [(&str, OwnerSource); 2] = [("table", OwnerSource::Table), ("out_of_band", OwnerSource::OutOfBand)];
}
