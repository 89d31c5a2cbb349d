//! The block layer of a host as a layer over each node.

use std::any::{Any, TypeId};
use std::rc::Rc;
use std::sync::Arc;

use nandscape_drive::layer::{Layer, LayerNode, LayerReport, full_key, only};
use nandscape_drive::{Drive, DriveInfo, Node, Offers, Opening, Refused, Role, Use, foresight, node};
use nandscape_host_block::{BlockLayer, Config, PredictorKind};

use crate::managed::ManagedView;
use crate::report::{BlockReport, counters};

/// A block layer that is to be opened.
#[derive(Clone, PartialEq, Debug)]
pub struct BlockOver {
    /// Settings.
    pub config: Config,
    /// Whether the user has chosen the predictor. One that was not chosen gives way where it knows nothing of what lies below.
    pub is_chosen: bool,
}

impl BlockOver {
    /// With changes of its settings.
    ///
    /// # Errors
    /// The setting that is not valid, and what would be.
    pub fn read(set: &[String]) -> Result<BlockOver, String> {
        let mut config = Config::default();
        let set: Vec<String> = set.iter().map(|change| full_key("block", change)).collect();
        set.iter().try_for_each(|change| config.set(change)).map_err(|error| error.to_string())?;
        let is_chosen = set.iter().any(|change| change.starts_with("block.predictor="));
        Ok(BlockOver { config, is_chosen })
    }
}

impl Layer for BlockOver {
    fn kind(&self) -> &'static str {
        "block"
    }

    fn bars_flash_commands(&self) -> Option<&'static str> {
        None
    }

    fn settings(&self) -> Vec<(&'static str, String)> {
        self.config.settings()
    }

    fn open(&self, how: &Opening<'_>, below: Vec<Rc<dyn Node>>) -> Result<Rc<dyn LayerNode>, String> {
        let (sim, name) = (how.sim, how.name);
        let below = only(below)?;
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
        let layer = || self.layer.clone() as Rc<dyn Any>;
        (of == TypeId::of::<BlockLayer>()).then(layer).or_else(|| foresight::view(of, &self.layer))
    }
}

impl LayerNode for BlockNode {
    fn offers(&self, below: Offers) -> Offers {
        if self.layer.config().predictor == PredictorKind::None { below } else { below.answering() }
    }

    fn begin(&self) {
        self.layer.count_anew();
    }

    fn report(&self) -> Option<Arc<dyn LayerReport>> {
        Some(Arc::new(BlockReport::of(&self.layer)))
    }

    fn counters(&self) -> Vec<(&'static str, f64)> {
        counters(&self.layer).into()
    }
}

#[cfg(test)]
mod tests {
    use nandscape_drive::testing::{FakeDrive, FakeNode, INFO, Servers};
    use nandscape_sim::{Executor, Span};

    use super::*;

    fn read(set: &[&str]) -> Result<BlockOver, String> {
        BlockOver::read(&set.iter().map(|change| (*change).to_owned()).collect::<Vec<_>>())
    }

    fn opened(set: &[&str]) -> Result<Rc<dyn LayerNode>, String> {
        let sim = Executor::new().sim();
        let drive = FakeDrive::new(&sim, INFO, Servers::Unlimited, Span::from_us(9));
        read(set)?.open(&Opening::new(&sim, "low"), vec![Rc::new(FakeNode(drive))])
    }

    #[test]
    fn settings_have_the_kind_before_them_or_not() {
        let (short, long) = (read(&["deadline=2ms"]).unwrap(), read(&["block.deadline=2ms"]).unwrap());
        assert_eq!((short.config.default_deadline(), &short), (Some(Span::from_ms(2)), &long));
        assert!(!short.is_chosen && read(&["predictor=told"]).unwrap().is_chosen);
        assert!(read(&["dedline=2ms"]).unwrap_err().contains("dedline"));
    }

    #[test]
    fn a_predictor_of_flash_needs_flash_below() {
        let refused = opened(&["predictor=ssd"]).map(drop).unwrap_err();
        assert!(refused.ends_with("none and told are valid here"), "{refused}");
        let answers = |set: &[&str]| opened(set).unwrap().offers(Offers::default()).deadlines;
        // One that was not chosen gives way.
        assert!(!answers(&[]) && answers(&["predictor=told"]));
    }

    #[test]
    fn it_reports_and_shows_what_it_is() {
        let layer = opened(&["predictor=told"]).unwrap();
        assert!(node::view::<BlockLayer>(&*layer).is_some_and(|layer| layer.config().layer == "low"));
        let report = layer.report().unwrap();
        assert_eq!((report.key(), &*report.settings()), ("block", "scheduler noop, predictor told"));
        assert!(report.json().starts_with(r#"{"scheduler":"noop","predictor":"told","deadline_us":null,"reads":0,"#));
        assert_eq!(report.shown().len(), 1, "nothing was predicted");
        assert_eq!(layer.counters().len(), 7);
    }
}
