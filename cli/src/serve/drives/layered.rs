//! A drive of another kind with layers of a host over it. Whatever the layers do not change is the drive's.

use std::path::Path;
use std::rc::Rc;

use nandscape_lab_run::chain::Chain;
use nandscape_lab_run::{DriveSpec, HeldLayers, LayersExport, LiveDrive, Observed, Offers};
use nandscape_sim::Executor;
use nandscape_transport_reactor::Export;

use super::{Building, PlannedDrive, Saving, ServedDrive, size};
use crate::failure::Failure;
use crate::serve::stores::Role;

/// See the file.
pub(in crate::serve) struct Layered {
    below: Box<dyn PlannedDrive>,
    chain: Chain,
}

impl Layered {
    /// Layers over a drive.
    pub(in crate::serve) fn over(below: Box<dyn PlannedDrive>, chain: &Chain) -> Result<Layered, Failure> {
        below.check_below_layers()?;
        Ok(Layered { below, chain: chain.clone() })
    }
}

impl PlannedDrive for Layered {
    fn name(&self) -> &str {
        self.below.name()
    }

    fn build(&self, with: &mut Building<'_>) -> anyhow::Result<Box<dyn ServedDrive>> {
        let below = self.below.build(with)?;
        match below.under((&with.executor.sim(), with.seed), &self.chain) {
            Ok(layers) => Ok(Box::new(ServedLayers { below, export: Rc::new(layers) })),
            Err(problem) => {
                // The start fails for the first reason, which is printed.
                let _ = below.close(with.executor);
                Err(anyhow::Error::msg(problem))
            }
        }
    }

    fn models(&self) -> Vec<Option<&DriveSpec>> {
        self.below.models()
    }

    fn chain(&self) -> Chain {
        let Chain { mut layers } = self.below.chain();
        layers.extend(self.chain.layers.iter().cloned());
        Chain { layers }
    }

    fn set_shared(&mut self, is_shared: bool) {
        self.below.set_shared(is_shared);
    }

    fn has_report(&self) -> bool {
        self.below.has_report()
    }

    fn role(&self) -> Role {
        self.below.role()
    }

    fn start_without(&mut self, store: usize, problem: String) -> Result<(), String> {
        self.below.start_without(store, problem)
    }

    fn check_save(&self, store: Option<&Path>, path: &Path) -> Result<(), String> {
        self.below.check_save(store, path)
    }
}

/// Such layers at work.
struct ServedLayers {
    below: Box<dyn ServedDrive>,
    export: Rc<LayersExport>,
}

impl ServedDrive for ServedLayers {
    fn name(&self) -> &str {
        self.below.name()
    }

    fn export(&self) -> Rc<dyn Export> {
        self.export.clone()
    }

    fn made_from(&self) -> &str {
        self.below.made_from()
    }

    fn offers(&self) -> Offers {
        self.export.offers()
    }

    fn note(&self) -> Option<String> {
        let of_drive = self.below.note().map_or(String::new(), |note| format!("; {note}"));
        let (name, layers, size) = (self.name(), self.export.describe(), size(&*self.export));
        Some(format!("over drive {name} lies {layers}; {size}{of_drive}"))
    }

    fn watched(&self) -> Option<Observed> {
        match self.below.watched()? {
            Observed::Drive(drive, spec) => {
                Some(Observed::Drive(LiveDrive { layers: Some(self.export.clone()), ..drive }, spec))
            }
            Observed::Group(..) => None,
        }
    }

    fn on_member_event(&self, line: Box<dyn Fn(&str)>) {
        self.below.on_member_event(line);
    }

    fn check(&self) -> Result<(), String> {
        self.below.check()
    }

    fn save(&self, above: Option<HeldLayers<'_>>, to: &mut Saving<'_>) -> anyhow::Result<()> {
        let (own, mut held) = self.export.take_held(to.executor).map_err(|problem| self.unsaved(&problem))?;
        let mut chain = own.clone();
        if let Some((upper, more)) = above {
            chain.layers.extend(upper.layers.iter().cloned());
            held.extend(more);
        }
        self.below.save(Some((&chain, held)), to)
    }

    fn close(&self, executor: &mut Executor) -> anyhow::Result<()> {
        self.below.close(executor)
    }
}
