//! A remote drive. Its data, its state and its tables are where it is served.

use std::path::Path;
use std::rc::Rc;

use nandscape_lab_run::{MemberSpec, Offers, RemoteExport, RemoteSpec};
use nandscape_layers_array::Config;
use nandscape_transport_reactor::Export;

use super::{Building, PlannedDrive, ServedDrive, size};
use crate::failure::Failure;
use crate::serve::array::ArrayArg;

impl PlannedDrive for RemoteSpec {
    fn name(&self) -> &str {
        &self.name
    }

    fn build(&self, with: &mut Building<'_>) -> anyhow::Result<Box<dyn ServedDrive>> {
        let export = self.connect(&with.executor.sim()).map_err(|problem| anyhow::anyhow!("--drive {problem}"))?;
        Ok(Box::new(Remote { name: self.name.clone(), url: self.target.to_string(), export: Rc::new(export) }))
    }

    fn outlasts(&self) -> bool {
        true
    }

    fn member(&self, _: &ArrayArg, _: &Config) -> Result<MemberSpec, Failure> {
        Ok(MemberSpec::Remote(self.clone()))
    }

    fn check_save(&self, _: Option<&Path>, _: &Path) -> Result<(), String> {
        Err("the drive is remote; its state is where it is served".to_owned())
    }
}

/// Such a drive at work.
struct Remote {
    name: String,
    url: String,
    export: Rc<RemoteExport>,
}

impl ServedDrive for Remote {
    fn name(&self) -> &str {
        &self.name
    }

    fn export(&self) -> Rc<dyn Export> {
        self.export.clone()
    }

    fn made_from(&self) -> &str {
        &self.url
    }

    fn offers(&self) -> Offers {
        self.export.offers()
    }

    fn note(&self) -> Option<String> {
        let (identity, size) = (self.export.identity(), size(&*self.export));
        Some(format!("drive {} is {}: {identity}; {size}", self.name, self.url))
    }
}
