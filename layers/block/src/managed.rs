//! A drive whose flash the host manages, as the predictor `ssd` knows it.

use std::rc::Rc;

use nandscape_drive::flash::FlashWatch;
use nandscape_host_block::predictor::{Flash, MittSsd, Predictor};
use nandscape_host_block::{BlockLayer, Config, PredictorKind};
use nandscape_sim::Sim;

/// What a block layer may see of a drive whose flash the host manages (Li 3.1.7).
pub struct ManagedView {
    flash: Box<dyn Fn() -> Option<Flash>>,
    watch: Box<dyn Fn(Rc<dyn FlashWatch>) -> bool>,
}

impl ManagedView {
    /// Of a drive: what gives its flash, if a predictor knows such flash, and what has a watcher get the reports of that. The latter returns
    /// false if another watcher already gets them.
    pub fn new(
        flash: impl Fn() -> Option<Flash> + 'static,
        watch: impl Fn(Rc<dyn FlashWatch>) -> bool + 'static,
    ) -> ManagedView {
        ManagedView { flash: Box::new(flash), watch: Box::new(watch) }
    }

    /// The block layer over such a drive.
    ///
    /// # Errors
    /// When the predictor does not know such a drive, or another layer already gets the reports of its flash.
    pub fn layer(&self, sim: &Sim, config: &Config) -> Result<Rc<BlockLayer>, String> {
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
