//! The FTL of a host over an open-channel drive: a model of this process, or a remote drive.

use std::path::Path;
use std::rc::Rc;

use nandscape_lab_run::chain::Chain;
use nandscape_lab_run::host_ftl::{Flash, HostedExport, HostedSpec};
use nandscape_lab_run::{DriveSpec, HeldLayers, LayersExport, LiveDrive, MemberSpec, Observed};
use nandscape_layers_array::Config;
use nandscape_sim::Sim;
use nandscape_transport_reactor::Export;

use super::{Building, PlannedDrive, Saving, ServedDrive, size};
use crate::failure::Failure;
use crate::serve::array::ArrayArg;

impl PlannedDrive for HostedSpec {
    fn name(&self) -> &str {
        &self.name
    }

    fn build(&self, with: &mut Building<'_>) -> anyhow::Result<Box<dyn ServedDrive>> {
        let export = HostedSpec::build(self, with.executor, with.seed, with.progress).map_err(anyhow::Error::msg)?;
        Ok(Box::new(Hosted { spec: self.clone(), export: Rc::new(export) }))
    }

    fn models(&self) -> Vec<Option<&DriveSpec>> {
        vec![self.model()]
    }

    fn chain(&self) -> Chain {
        HostedSpec::chain(self, &Chain::default())
    }

    fn has_report(&self) -> bool {
        self.model().is_some()
    }

    fn set_shared(&mut self, is_shared: bool) {
        if let Flash::Model(spec) = &mut self.flash {
            spec.is_shared = is_shared;
        }
    }

    fn member(&self, _: &ArrayArg, _: &Config) -> Result<MemberSpec, Failure> {
        Ok(MemberSpec::Hosted(self.clone()))
    }

    fn check_save(&self, _: Option<&Path>, path: &Path) -> Result<(), String> {
        match &self.flash {
            Flash::Model(spec) => spec.check_can_be_saved(path).map_err(|error| error.to_string()),
            Flash::Remote(target) => Err(format!(
                "the drive is an FTL over {target}, whose state is where it is served; an FTL over a model is valid"
            )),
        }
    }
}

/// Such a drive at work.
struct Hosted {
    spec: HostedSpec,
    export: Rc<HostedExport>,
}

impl ServedDrive for Hosted {
    fn name(&self) -> &str {
        &self.spec.name
    }

    fn export(&self) -> Rc<dyn Export> {
        self.export.clone()
    }

    fn made_from(&self) -> &str {
        self.spec.layer.profile()
    }

    fn note(&self) -> Option<String> {
        let unless = match &self.spec.flash {
            Flash::Model(_) => ", unless --save-state saves it",
            Flash::Remote(_) => "",
        };
        let unmarked = match self.export.is_unmarked() {
            true => "; the remote drive has no reservations, so another FTL on it is not detected",
            false => "",
        };
        Some(format!(
            "drive {} is an FTL of this process over {}: {}; what it holds ends with this process{unless}{unmarked}",
            self.spec.name,
            self.spec.flash,
            size(&*self.export)
        ))
    }

    fn watched(&self) -> Option<Observed> {
        let (model, spec) = self.export.lowest().zip(self.spec.model())?;
        let drive = LiveDrive { model: model.clone(), ftl: Some(self.export.clone()), layers: None };
        Some(Observed::Drive(drive, spec.clone()))
    }

    fn under(&self, in_run: (&Sim, u64), chain: &Chain) -> Result<LayersExport, String> {
        LayersExport::over_hosted(in_run, (&self.spec, &self.export), chain)
    }

    fn check(&self) -> Result<(), String> {
        self.export.check()
    }

    fn save(&self, above: Option<HeldLayers<'_>>, to: &mut Saving<'_>) -> anyhow::Result<()> {
        let saved = self.export.save(&self.spec, above, to.seed, to.executor, to.path);
        saved.map_err(|error| self.unsaved(&error))
    }
}
