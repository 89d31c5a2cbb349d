//! The host's block layer over the drive of a run, and its counters.
//!
//! The host knows the flash as a host does that runs the FTL itself, on an open-channel drive (Li 3.1.7): where data is, which
//! operations are sent, and the vendor's times for them.

use std::rc::Rc;

use nandscape_device_media::Priority;
use nandscape_device_ssd::{ManagedFlash, Ssd};
use nandscape_drive::flash::FlashWatch;
use nandscape_host_block::predictor::{Flash, MittSsd, Order, Predictor};
use nandscape_host_block::{Accuracy, BlockLayer, Config, PredictorKind};
use nandscape_sim::{Histogram, Sim, Span};
use serde::Serialize;

use crate::latency::Latency;

/// What a block layer has counted since it began, by the names of metrics.
pub fn counters(layer: &BlockLayer) -> [(&'static str, f64); 7] {
    let counted = layer.counted();
    [
        ("block_reads_total", counted.reads as f64),
        ("block_reads_with_deadline_total", counted.judged as f64),
        ("block_reads_rejected_total", counted.rejected as f64),
        ("block_reads_cancelled_total", counted.cancelled as f64),
        ("block_reads_attached_total", counted.attached as f64),
        ("block_predictions_compared_total", counted.compared as f64),
        ("block_predictions_wrong_total", (counted.false_positives + counted.false_negatives) as f64),
    ]
}

/// What the block layer has counted in the measured phase.
#[derive(Clone, Debug, Serialize)]
pub struct BlockReport {
    /// Its scheduler.
    pub scheduler: &'static str,
    /// Its predictor.
    pub predictor: &'static str,
    /// The deadline of reads, in microseconds; null where they have none.
    pub deadline_us: Option<f64>,
    /// Reads.
    pub reads: u64,
    /// Rejected at once.
    pub rejected: u64,
    /// Rejected while they waited in the layer.
    pub cancelled: u64,
    /// Predicted to be late, and still served (`block.predict_only`).
    pub attached: u64,
    /// Served with a deadline, and compared with their prediction.
    pub compared: u64,
    /// Predicted to be late, and in time.
    pub false_positives: u64,
    /// Predicted to be in time, and late.
    pub false_negatives: u64,
    /// Both as a share of the compared predictions; null without any.
    pub inaccuracy: Option<f64>,
    /// By how much reads took longer than predicted, of those that did.
    pub longer_us: Latency,
    /// By how much reads took less than predicted, of those that did.
    pub shorter_us: Latency,
    /// By how much predictions were off that were wrong about the deadline.
    pub wrong_us: Latency,
}

impl BlockReport {
    pub(crate) fn of(layer: &BlockLayer) -> BlockReport {
        let (config, counted) = (layer.config(), layer.counted());
        let Accuracy { reads, rejected, cancelled, attached, compared, false_positives, false_negatives, .. } = counted;
        let off = |errors: &Histogram| Latency::of(errors);
        BlockReport {
            scheduler: config.scheduler.name(),
            predictor: config.predictor.name(),
            deadline_us: config.default_deadline().map(Span::as_us),
            reads,
            rejected,
            cancelled,
            attached,
            compared,
            false_positives,
            false_negatives,
            inaccuracy: (compared > 0).then(|| counted.inaccuracy()),
            longer_us: off(&counted.longer),
            shorter_us: off(&counted.shorter),
            wrong_us: off(&counted.wrong),
        }
    }
}

/// What a block layer may see of a drive whose flash the host manages (Li 3.1.7).
pub struct ManagedView {
    flash: Box<dyn Fn() -> Option<Flash>>,
    watch: Box<dyn Fn(Rc<dyn FlashWatch>) -> bool>,
}

impl ManagedView {
    /// Of a drive of this process, with the service order of its chips.
    pub fn of(ssd: &Rc<Ssd>, priority: Priority) -> ManagedView {
        let order = if priority == Priority::Fifo { Order::Fifo } else { Order::ReadsFirst };
        let (of_map, of_media) = (ssd.clone(), ssd.clone());
        let flash = move || {
            let map = ManagedFlash::of(&of_map)?;
            Some(Flash { sheet: map.sheet(), order, map: Box::new(map) })
        };
        ManagedView { flash: Box::new(flash), watch: Box::new(move |watch| of_media.media().watch(watch)) }
    }

    /// The block layer over such a drive.
    ///
    /// # Errors
    /// When the predictor does not know such a drive, or another layer already gets the reports of its flash.
    pub(crate) fn layer(&self, sim: &Sim, config: &Config) -> Result<Rc<BlockLayer>, String> {
        config.check().map_err(|error| error.to_string())?;
        let predictor = match config.predictor {
            PredictorKind::None | PredictorKind::Told => None,
            PredictorKind::NoopDisk | PredictorKind::CfqDisk | PredictorKind::SmrDisk => {
                let name = config.predictor.name();
                return Err(format!(
                    "block.predictor: {name} knows disks, and this drive is flash; none, told and ssd are valid for it"
                ));
            }
            PredictorKind::Ssd => Some(self.mitt(sim, config)? as Rc<dyn Predictor>),
        };
        Ok(BlockLayer::new(sim, config.clone(), predictor))
    }

    fn mitt(&self, sim: &Sim, config: &Config) -> Result<Rc<MittSsd>, String> {
        let flash = (self.flash)().ok_or(
            "block.predictor: ssd knows the flash of a drive with one FTL that maps pages; none and told are valid for this drive",
        )?;
        let mitt = MittSsd::new(sim, flash, config);
        match (self.watch)(mitt.clone()) {
            true => Ok(mitt),
            false => Err("another block layer is told of the flash of this drive".to_owned()),
        }
    }
}

/// The block layer over a drive of this process.
///
/// # Errors
/// When the predictor does not know such a drive, or another layer already gets the reports of its flash.
pub fn layer(sim: &Sim, ssd: &Rc<Ssd>, priority: Priority, config: &Config) -> Result<Rc<BlockLayer>, String> {
    ManagedView::of(ssd, priority).layer(sim, config)
}
