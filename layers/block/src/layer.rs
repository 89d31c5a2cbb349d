//! The block layer of a host as a layer over each node. Its predictor `ssd` knows the flash of the drive directly below it; over
//! anything else deadlines are passed on, or answered as the node below says.

use std::any::{Any, TypeId};
use std::rc::Rc;

use nandscape_device_controller::Offers;
use nandscape_drive::{Drive, DriveInfo, Node, Refused, Role, Use, node};
use nandscape_host_block::{BlockLayer, Config, PredictorKind};

use super::{Layer, LayerNode, Opening, Part, answering};
use crate::block::{BlockReport, ManagedView};

/// See the file.
#[derive(Clone, PartialEq, Debug)]
pub struct BlockOver {
    /// Settings.
    pub config: Config,
    /// Whether the user has chosen the predictor. One that was not chosen gives way where it knows nothing of what lies below.
    pub is_chosen: bool,
}

impl Layer for BlockOver {
    fn kind(&self) -> &'static str {
        "block"
    }

    fn keeps_from_chunks(&self) -> Option<&'static str> {
        None
    }

    fn settings(&self) -> Vec<(&'static str, String)> {
        self.config.settings()
    }

    fn open(&self, how: &Opening<'_>, below: Vec<Rc<dyn Node>>) -> Result<Rc<dyn LayerNode>, String> {
        let (sim, name) = (how.sim, how.name);
        let below = below.into_iter().next().ok_or("there is nothing below it")?;
        let config = Config { layer: name, ..self.config.clone() };
        let layer = match node::view::<ManagedView>(&*below) {
            Some(view) => view.layer(sim, &config)?,
            None => {
                let predictor = if self.is_chosen { config.predictor } else { PredictorKind::None };
                let config = Config { predictor, ..config };
                config.check().map_err(|error| error.to_string())?;
                if !matches!(config.predictor, PredictorKind::None | PredictorKind::Told) {
                    return Err(format!(
                        "block.predictor: {} knows the flash or the disk directly below it, and there is none; none and told are \
                         valid here",
                        config.predictor.name()
                    ));
                }
                BlockLayer::new(sim, config, None)
            }
        };
        Ok(Rc::new(BlockNode { layer, below }))
    }
}

struct BlockNode {
    layer: Rc<BlockLayer>,
    below: Rc<dyn Node>,
}

impl Node for BlockNode {
    fn info(&self) -> DriveInfo {
        self.below.info()
    }

    /// Admin commands pass: they are no work for a scheduler.
    fn connect(&self, wanted: Use) -> Result<Rc<dyn Drive>, Refused> {
        let below = self.below.connect(wanted)?;
        Ok(match wanted.role {
            Role::Admin => below,
            Role::Any | Role::Reads | Role::Writes => self.layer.over(below),
        })
    }

    fn view(&self, of: TypeId) -> Option<Rc<dyn Any>> {
        (of == TypeId::of::<BlockLayer>()).then(|| self.layer.clone() as Rc<dyn Any>)
    }
}

impl LayerNode for BlockNode {
    fn offers(&self, below: Offers) -> Offers {
        if self.layer.config().predictor == PredictorKind::None { below } else { answering(below) }
    }

    fn begin(&self) {
        self.layer.count_anew();
    }

    fn part(&self) -> Part {
        Part::Block(Box::new(BlockReport::of(&self.layer)))
    }
}
