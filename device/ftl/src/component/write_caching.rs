//! P9-WCA (OX table 5.10): when the data that waits in the write cache is programmed.
//!
//! | OX | here |
//! |---|---|
//! | INIT, EXIT | the construction of the component and the drop of it; the FTL empties the cache |
//! | SUBMIT | [`Ftl::accept`](crate::Ftl::accept): the FTL puts units into slots, and asks [`WriteCaching::is_due`] |
//! | CALLBACK | the FTL's own, when a program has ended |

/// How full a write cache is. All figures are mapping units.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct CacheFill {
    /// In line to be programmed.
    pub queued: u32,
    /// In the cache, those that are being programmed included.
    pub used: u32,
    /// The most that the cache holds.
    pub slots: u32,
    /// In a page.
    pub page: u32,
}

/// Decides when data is programmed.
pub trait WriteCaching {
    /// SUBMIT: whether a page of data is programmed now. It is asked when there is data for a page; data that a host waits for
    /// is programmed without asking.
    fn is_due(&self, fill: &CacheFill) -> bool;
}
