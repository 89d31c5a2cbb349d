//! When a write is admitted to the write buffer. Without a policy, as soon as enough slots are free.

/// How full the write buffer is when a write requests slots. All figures are slots, a mapping unit each.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct BufferFill {
    /// In all.
    pub slots: u32,
    /// Free.
    pub free: u32,
    /// That the write needs.
    pub wanted: u32,
}

/// Holds writes back. Writes are admitted in the order of arrival: a waiting write keeps those behind it waiting.
pub trait BufferPolicy {
    /// How many slots must be free, in addition to those that the write needs, before the write is admitted. It is
    /// called once for each write. A number that the buffer cannot reach with this write means as many as it can.
    fn spare(&self, fill: &BufferFill) -> u32;
}
