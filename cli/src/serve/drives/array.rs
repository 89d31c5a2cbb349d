//! An array of drives, which may outlast the server.

use std::rc::Rc;

use nandscape_lab_run::{ArrayExport, ArraySpec, DriveSpec, MemberSpec, Offers, SsdExport};
use nandscape_sim::Executor;
use nandscape_transport_reactor::Export;

use super::{Building, PlannedDrive, ServedDrive, close, size};
use crate::serve::stores::Role;

impl PlannedDrive for ArraySpec {
    fn name(&self) -> &str {
        &self.name
    }

    fn build(&self, with: &mut Building<'_>) -> anyhow::Result<Box<dyn ServedDrive>> {
        let files = std::mem::take(&mut with.files);
        let export =
            ArraySpec::build(self, with.executor, with.seed, files, with.progress).map_err(anyhow::Error::msg)?;
        let (name, level) = (self.name.clone(), self.shape.to_string());
        Ok(Box::new(Array { name, level, export: Rc::new(export) }))
    }

    fn models(&self) -> Vec<Option<&DriveSpec>> {
        self.members.iter().map(MemberSpec::model).collect()
    }

    fn role(&self) -> Role {
        if self.creates { Role::NewMember } else { Role::Member }
    }

    /// The array may start without some members.
    fn start_without(&mut self, store: usize, problem: String) -> Result<(), String> {
        let member = &mut self.members[store];
        let spec = member.model().cloned().ok_or_else(|| problem.clone())?;
        *member = MemberSpec::Unreadable(spec, problem);
        Ok(())
    }
}

/// Such an array at work.
struct Array {
    name: String,
    level: String,
    export: Rc<ArrayExport>,
}

impl ServedDrive for Array {
    fn name(&self) -> &str {
        &self.name
    }

    fn export(&self) -> Rc<dyn Export> {
        self.export.clone()
    }

    fn made_from(&self) -> &str {
        &self.level
    }

    fn offers(&self) -> Offers {
        self.export.offers()
    }

    fn note(&self) -> Option<String> {
        let (export, name) = (&self.export, &self.name);
        Some(format!("drive {name} is an array: {}{}; {}", export.describe(), export.left_out(), size(&**export)))
    }

    fn on_member_event(&self, line: Box<dyn Fn(&str)>) {
        self.export.on_member_event(line);
    }

    fn check(&self) -> Result<(), String> {
        let checked = |(name, model): (&str, &Rc<SsdExport>)| {
            model.ssd().check().map_err(|problem| format!("drive {name}: {problem}"))
        };
        self.export.models().try_for_each(checked)
    }

    fn close(&self, executor: &mut Executor) -> anyhow::Result<()> {
        self.export.shut_down(executor);
        // All of them are to be closed.
        let closed: Vec<_> = self.export.models().map(|(name, model)| close(executor, name, model)).collect();
        closed.into_iter().collect()
    }
}
