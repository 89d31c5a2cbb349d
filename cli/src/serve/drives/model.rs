//! A model of this process, in memory or in a file.

use std::path::Path;
use std::rc::Rc;

use nandscape_lab_run::chain::Chain;
use nandscape_lab_run::{DriveSpec, HeldLayers, LayersExport, LiveDrive, MemberSpec, Observed, SsdExport, StateFile};
use nandscape_layers_array::Config;
use nandscape_sim::{Executor, Sim};
use nandscape_transport_reactor::Export;

use super::{Building, PlannedDrive, Saving, ServedDrive, close};
use crate::failure::Failure;
use crate::serve::args::input;
use crate::serve::array::ArrayArg;
use crate::sim_layers::check_windows;

impl PlannedDrive for DriveSpec {
    fn name(&self) -> &str {
        &self.name
    }

    fn build(&self, with: &mut Building<'_>) -> anyhow::Result<Box<dyn ServedDrive>> {
        let file = with.files.pop().flatten();
        let export = Rc::new(self.build_in(&with.executor.sim(), with.seed, file, with.progress)?);
        Ok(Box::new(Model { spec: self.clone(), export }))
    }

    fn models(&self) -> Vec<Option<&DriveSpec>> {
        vec![Some(self)]
    }

    fn set_shared(&mut self, is_shared: bool) {
        self.is_shared = is_shared;
    }

    fn written_in_order(&self) -> Option<&'static str> {
        nandscape_lab_run::written_in_order(&self.resolve().ok()?)
    }

    fn has_report(&self) -> bool {
        true
    }

    fn check_below_layers(&self) -> Result<(), Failure> {
        let name = &self.name;
        if let Some(has) = self.written_in_order() {
            return input(format!("--over: drive {name} has {has}, and layers pass on reads and writes anywhere"));
        }
        let parts = self.resolve().map_err(Failure::input)?.parts().len();
        if parts > 1 {
            return input(format!(
                "--over: drive {name} has {parts} parts with a namespace each, and a layer is over one; leave out --over and the keys of \
                 block"
            ));
        }
        Ok(())
    }

    fn member(&self, array: &ArrayArg, config: &Config) -> Result<MemberSpec, Failure> {
        if let Some(has) = self.written_in_order() {
            return Err(array.refused(format!("drive {} has {has}, and members are written anywhere", self.name)));
        }
        check_windows(config, (&self.name, &self.resolve().map_err(Failure::input)?))?;
        // A new array takes its drives to hold zeros, which its parity fits.
        if self.keeps_data
            && let Some(path) = &self.from_state
            && StateFile::open(path).map_err(Failure::input)?.keeps_data()
        {
            return Err(array.refused(format!(
                "the state of drive {} in {} has data, which the array's parity would not fit; give --store none, \
                 which leaves it out, or a state without data",
                self.name,
                path.display()
            )));
        }
        Ok(MemberSpec::Model(self.clone()))
    }

    fn check_save(&self, store: Option<&Path>, path: &Path) -> Result<(), String> {
        match store {
            Some(store) => Err(format!("the drive is in {}, which has its state", store.display())),
            None => self.check_can_be_saved(path).map_err(|error| error.to_string()),
        }
    }
}

/// Such a drive at work.
struct Model {
    spec: DriveSpec,
    export: Rc<SsdExport>,
}

impl ServedDrive for Model {
    fn name(&self) -> &str {
        &self.spec.name
    }

    fn export(&self) -> Rc<dyn Export> {
        self.export.clone()
    }

    fn made_from(&self) -> &str {
        &self.spec.profile_name
    }

    fn watched(&self) -> Option<Observed> {
        let drive = LiveDrive { model: self.export.clone(), ftl: None, layers: None };
        Some(Observed::Drive(drive, self.spec.clone()))
    }

    fn under(&self, in_run: (&Sim, u64), chain: &Chain) -> Result<LayersExport, String> {
        LayersExport::over_model(in_run, (&self.spec, &self.export), chain)
    }

    fn check(&self) -> Result<(), String> {
        self.export.ssd().check()
    }

    fn save(&self, above: Option<HeldLayers<'_>>, to: &mut Saving<'_>) -> anyhow::Result<()> {
        let saved = self.spec.save(&self.export, above, to.seed, to.executor, to.path);
        saved.map_err(|error| self.unsaved(&error))
    }

    fn close(&self, executor: &mut Executor) -> anyhow::Result<()> {
        close(executor, &self.spec.name, &self.export)
    }
}
