//! The state of each channel in memory.

use nandscape_device_ftl_core::component::Channels;

/// One state a channel.
pub struct ChannelTable(Vec<State>);

#[derive(Clone)]
struct State {
    enabled: bool,
    needs_gc: bool,
    contexts: u32,
}

impl ChannelTable {
    /// All channels enabled, without need or contexts.
    pub fn new(channels: u32) -> ChannelTable {
        ChannelTable(vec![State { enabled: true, needs_gc: false, contexts: 0 }; channels as usize])
    }

    /// Bytes of memory.
    pub fn memory(&self) -> usize {
        self.0.len() * size_of::<State>()
    }
}

impl Channels for ChannelTable {
    fn is_enabled(&self, channel: u32) -> bool {
        self.0[channel as usize].enabled
    }

    fn switch(&mut self, channel: u32, enabled: bool) {
        self.0[channel as usize].enabled = enabled;
    }

    fn needs_gc(&self, channel: u32) -> bool {
        self.0[channel as usize].needs_gc
    }

    fn set_needs_gc(&mut self, channel: u32, needs: bool) {
        self.0[channel as usize].needs_gc = needs;
    }

    fn contexts(&self, channel: u32) -> u32 {
        self.0[channel as usize].contexts
    }

    fn begin(&mut self, channel: u32) {
        self.0[channel as usize].contexts += 1;
    }

    fn end(&mut self, channel: u32) {
        let contexts = &mut self.0[channel as usize].contexts;
        *contexts = contexts.checked_sub(1).expect("a context that ends has begun");
    }
}
