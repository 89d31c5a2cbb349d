//! Models of this process under layers that take several of them.

use std::rc::Rc;

use nandscape_lab_run::chain::Chain;
use nandscape_lab_run::{DriveSpec, GroupExport, GroupSpec, Observed, Offers};
use nandscape_transport_reactor::Export;

use super::{Building, PlannedDrive, ServedDrive, size};

impl PlannedDrive for GroupSpec {
    fn name(&self) -> &str {
        &self.name
    }

    fn build(&self, with: &mut Building<'_>) -> anyhow::Result<Box<dyn ServedDrive>> {
        let export = GroupSpec::build(self, with.executor, with.seed, with.progress).map_err(anyhow::Error::msg)?;
        let profile = self.drives.first().map_or_else(String::new, |spec| spec.profile_name.clone());
        Ok(Box::new(Group { spec: self.clone(), profile, export: Rc::new(export) }))
    }

    fn models(&self) -> Vec<Option<&DriveSpec>> {
        self.drives.iter().map(Some).collect()
    }

    fn chain(&self) -> Chain {
        self.chain.clone()
    }

    /// The first drive of a recording has it for all of them.
    fn has_report(&self) -> bool {
        true
    }

    fn set_shared(&mut self, is_shared: bool) {
        self.drives.iter_mut().take(1).for_each(|spec| spec.is_shared = is_shared);
    }
}

/// Such a group at work.
struct Group {
    spec: GroupSpec,
    profile: String,
    export: Rc<GroupExport>,
}

impl ServedDrive for Group {
    fn name(&self) -> &str {
        &self.spec.name
    }

    fn export(&self) -> Rc<dyn Export> {
        self.export.clone()
    }

    fn made_from(&self) -> &str {
        &self.profile
    }

    fn offers(&self) -> Offers {
        self.export.offers()
    }

    fn note(&self) -> Option<String> {
        Some(format!(
            "drive {} is {} over {} drives of {}, from the bottom up; {}; what it holds ends with this process",
            self.spec.name,
            self.export.describe(),
            self.export.models().count(),
            self.profile,
            size(&*self.export)
        ))
    }

    fn watched(&self) -> Option<Observed> {
        Some(Observed::Group(self.export.clone(), self.spec.clone()))
    }

    fn on_member_event(&self, line: Box<dyn Fn(&str)>) {
        self.export.on_member_event(line);
    }

    fn check(&self) -> Result<(), String> {
        self.export.check()
    }
}
