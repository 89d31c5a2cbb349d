//! The built-in functions of OX-App (OX table 5.11): the state of each channel, by which collectors and the host's writes
//! avoid each other.

/// Keeps the state of channels.
pub trait Channels {
    /// SWITCH: whether the host's data may be written to a channel.
    fn is_enabled(&self, channel: u32) -> bool;

    /// SWITCH ENABLE and DISABLE.
    fn switch(&mut self, channel: u32, enabled: bool);

    /// STATUS: whether a channel needs garbage collection.
    fn needs_gc(&self, channel: u32) -> bool;

    /// STATUS SET.
    fn set_needs_gc(&mut self, channel: u32, needs: bool);

    /// CONTEXTS: writes of the host that are under way on a channel.
    fn contexts(&self, channel: u32) -> u32;

    /// CONTEXT BEGIN: one more is.
    fn begin(&mut self, channel: u32);

    /// CONTEXT END: one has ended.
    fn end(&mut self, channel: u32);
}
