//! The host's block layer over the drive of a run.
//!
//! The host knows the flash as a host does that runs the FTL itself, on an open-channel drive (Li 3.1.7): where data is, which
//! operations are sent, and the vendor's times for them.

use std::rc::Rc;

use nandscape_device_media::Priority;
use nandscape_device_ssd::{ManagedFlash, Ssd};
use nandscape_host_block::predictor::{Flash, Order};
use nandscape_host_block::{BlockLayer, Config};
use nandscape_layers_block::ManagedView;
use nandscape_sim::Sim;

/// What a block layer sees of a drive of this process, with the service order of its chips.
pub(crate) fn managed(ssd: &Rc<Ssd>, priority: Priority) -> ManagedView {
    let order = if priority == Priority::Fifo { Order::Fifo } else { Order::ReadsFirst };
    let (of_map, of_media) = (ssd.clone(), ssd.clone());
    let flash = move || {
        let map = ManagedFlash::of(&of_map)?;
        Some(Flash { sheet: map.sheet(), order, map: Box::new(map) })
    };
    ManagedView::new(flash, move |watch| of_media.media().watch(watch))
}

/// The block layer over a drive of this process.
///
/// # Errors
/// When the predictor does not know such a drive, or another layer already gets the reports of its flash.
pub fn layer(sim: &Sim, ssd: &Rc<Ssd>, priority: Priority, config: &Config) -> Result<Rc<BlockLayer>, String> {
    managed(ssd, priority).layer(sim, config)
}
