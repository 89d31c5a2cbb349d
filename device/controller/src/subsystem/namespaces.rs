//! Changes of namespaces: they are created, attached, deleted and formatted for all controllers at once.
//!
//! A deleted or formatted namespace is first removed from the controllers, or replaced there by its successor, so that no
//! further command begins on it. When its commands have ended, its data is dropped. Changes are made one at a time.

use std::cell::Cell;
use std::rc::Rc;

use nandscape_drive::breakdown::cause;
use nandscape_drive::{Breakdown, Controller as _, Stage};
use nandscape_sim::Sim;
use nandscape_sim::signal::Signal;
use nandscape_wire_nvme::{Status, manage};

use super::NvmSubsystem;
use crate::engine::NvmeController;
use crate::namespace::{Format, Namespace, Registrant};
use crate::refusal::Refusal;

/// The queue of changes, which wait for each other and for commands.
pub(crate) struct Changes {
    busy: Cell<bool>,
    /// Notified when a change has ended.
    ended: Signal,
    /// Notified when a command of a namespace that changes has ended.
    released: Signal,
}

impl Changes {
    pub(super) fn new(sim: &Sim) -> Changes {
        Changes { busy: Cell::new(false), ended: Signal::new(sim), released: Signal::new(sim) }
    }

    /// Waits for the change under way to end, and begins one.
    pub(crate) async fn begin(&self) -> Change<'_> {
        while self.busy.replace(true) {
            self.ended.changed().await;
        }
        Change(self)
    }

    /// A command of a namespace that changes has ended.
    pub(crate) fn released(&self) {
        self.released.notify();
    }
}

/// A change in progress until this is dropped.
pub(crate) struct Change<'a>(&'a Changes);

impl Drop for Change<'_> {
    fn drop(&mut self) {
        self.0.busy.set(false);
        self.0.ended.notify();
    }
}

impl NvmSubsystem {
    /// Begins a change on behalf of a command. The drive may have been sanitized while the command waited for its turn.
    async fn begin_change(&self) -> Result<Change<'_>, Status> {
        let change = self.changes.begin().await;
        self.sanitizing.refuses().map_or(Ok(change), Err)
    }

    /// Deletes namespaces, all or none: their data is dropped, and their space is free. Controllers that had them are
    /// notified. `which` names and checks them when no other change is in progress.
    pub(crate) async fn delete_namespaces(
        &self,
        which: impl FnOnce() -> Result<Vec<u32>, Refusal>,
    ) -> Result<(), Refusal> {
        let _change = self.begin_change().await?;
        let removed: Vec<_> = which()?.into_iter().filter_map(|nsid| self.remove_namespace(nsid)).collect();
        for namespace in removed {
            self.drain(&namespace).await;
            self.erase(&namespace).await;
            self.namespaces.give_back(&namespace);
            self.note();
        }
        Ok(())
    }

    /// Drops all data of a namespace that no command uses.
    pub(crate) async fn erase(&self, namespace: &Namespace) {
        if let Some(set) = self.set.administration() {
            set.erase(namespace).await;
        }
    }

    /// Takes a namespace from the table and from all controllers.
    fn remove_namespace(&self, nsid: u32) -> Option<Rc<Namespace>> {
        let namespace = self.namespaces.remove(nsid)?;
        self.self_tests.namespace_changes(nsid, manage::SELF_TEST_NAMESPACE_REMOVED, self.sim.now());
        self.saved.forget_namespace(nsid);
        if let Some(streams) = self.set.streams() {
            streams.release(|(_, of)| *of == nsid);
        }
        for controller in self.controllers.all() {
            controller.admin.settings.forget_namespace(nsid);
            if controller.namespaces.detach(nsid) {
                controller.namespace_changed(nsid);
            }
        }
        Some(namespace)
    }

    /// Drops all data of namespaces and gives them another format, all or none. Commands on them fail meanwhile. `which` is
    /// as in [`NvmSubsystem::delete_namespaces`].
    pub(crate) async fn format_namespaces(
        &self,
        format: Format,
        which: impl FnOnce() -> Result<Vec<u32>, Refusal>,
    ) -> Result<(), Refusal> {
        let _change = self.begin_change().await?;
        let replace = |nsid| {
            let replaced = self.replace(nsid, format);
            replaced.1.set_formatting(true);
            if let Some(streams) = self.set.streams() {
                streams.close(|(_, of), _| *of == nsid);
            }
            self.self_tests.namespace_changes(nsid, manage::SELF_TEST_FORMATTED, self.sim.now());
            replaced
        };
        let replaced: Vec<_> = which()?.into_iter().map(replace).collect();
        for (old, new, users) in replaced {
            self.drain(&old).await;
            self.erase(&new).await;
            new.set_formatting(false);
            self.note();
            users.iter().for_each(|user| user.namespace_changed(new.nsid));
        }
        Ok(())
    }

    /// Waits for the end of the commands on a namespace; new ones are rejected. `None` if it does not exist.
    pub(super) async fn drain_to_sanitize(&self, nsid: u32) -> Option<Rc<Namespace>> {
        let format = self.namespaces.get(nsid)?.format;
        let (old, new, _) = self.replace(nsid, format);
        new.set_sanitizing(Some(Status::SANITIZE_IN_PROGRESS));
        self.drain(&old).await;
        Some(new)
    }

    /// Replaces a namespace, in the table and in its controllers, by one of the same number and place. Returns the old one,
    /// the new one, and these controllers.
    fn replace(&self, nsid: u32, format: Format) -> (Rc<Namespace>, Rc<Namespace>, Vec<Rc<NvmeController>>) {
        let (old, new) = self.namespaces.replace(nsid, format);
        let users: Vec<_> = self.controllers.all().into_iter().filter(|user| user.namespaces.detach(nsid)).collect();
        users.iter().for_each(|user| user.namespaces.attach(&new));
        (old, new, users)
    }

    /// Aborts the commands of hosts on a namespace (Preempt and Abort) on behalf of a command that holds it: waiting commands
    /// are interrupted, and the others run to their end.
    pub(crate) async fn abort_commands(&self, namespace: &Namespace, of: &[Registrant], breakdown: &mut Breakdown) {
        let (begun, nsid) = (self.sim.now(), namespace.nsid);
        for controller in self.controllers.all().iter().filter(|controller| of.contains(&controller.registrant())) {
            controller.waiters.stop_on(nsid, Status::ABORTED_PREEMPT);
        }
        namespace.set_waiting(true);
        self.changes.released();
        {
            let _change = self.changes.begin().await;
            // A replacement has already waited for its commands.
            if self.namespaces.get(nsid).is_some_and(|now| std::ptr::eq(&*now, namespace)) {
                let (old, ..) = self.replace(nsid, namespace.format);
                self.drain(&old).await;
            }
        }
        namespace.set_waiting(false);
        breakdown.waits(Stage::Queue).add(cause::HOST_WRITE, self.sim.now() - begun);
    }

    /// Waits for the end of the commands in progress on a namespace, and until data in the volatile cache is on flash.
    pub(crate) async fn end_writes(&self, nsid: u32) {
        let _change = self.changes.begin().await;
        if let Some(format) = self.namespaces.get(nsid).map(|namespace| namespace.format) {
            let (old, ..) = self.replace(nsid, format);
            self.drain(&old).await;
        }
        self.set.storage().flush().await;
    }

    /// The controllers, by identifier.
    pub(crate) fn all_controllers(&self) -> Vec<Rc<NvmeController>> {
        self.controllers.all()
    }

    /// Registrations of a controller whose host has no identifier end with a reset.
    pub(crate) fn forget_registrations(&self, id: u16) {
        for namespace in self.namespaces.all() {
            let notices = namespace.reservations.forget(Registrant::Controller(id));
            namespace.update_guard();
            self.notify_hosts(namespace.nsid, &notices);
        }
    }

    /// A controller is reset or dropped: hosts without another enabled controller lose their streams.
    pub(crate) fn end_streams(&self, id: u16) {
        let Some(streams) = self.set.streams() else { return };
        let others = self.controllers.all().into_iter().filter(|other| other.id() != id && other.is_enabled());
        let hosts: Vec<Registrant> = others.map(|other| other.registrant()).collect();
        streams.release(|(host, _)| !hosts.contains(host));
    }

    /// Power was lost: reservations that do not persist have ended, as has write protection until a power cycle.
    pub(super) fn forget_until_power_loss(&self) {
        if let Some(streams) = self.set.streams() {
            streams.release(|_| true);
        }
        for namespace in self.namespaces.all() {
            namespace.reservations.power_lost();
            namespace.set_write_protection(namespace.write_protection().after_power_loss());
        }
    }

    /// Waits until no command uses a namespace that was removed from controllers and table.
    async fn drain(&self, namespace: &Rc<Namespace>) {
        namespace.set_leaving();
        while Rc::strong_count(namespace) > 1 + namespace.waiting() {
            self.changes.released.changed().await;
        }
    }

    /// Attaches a namespace to controllers, all of which exist.
    pub(crate) fn attach_namespace(&self, namespace: &Rc<Namespace>, to: &[Rc<NvmeController>]) -> Result<(), Status> {
        let nsid = namespace.nsid;
        let users = self.controllers_with(nsid);
        if to.iter().any(|controller| users.contains(&controller.id())) {
            return Err(Status::NAMESPACE_ALREADY_ATTACHED);
        }
        if !namespace.is_shared && users.len() + to.len() > 1 {
            return Err(Status::NAMESPACE_IS_PRIVATE);
        }
        for controller in to {
            controller.namespaces.attach(namespace);
            controller.namespace_changed(nsid);
        }
        self.namespaces.set_in_use(nsid, true);
        self.note();
        Ok(())
    }

    /// Detaches a namespace from controllers, all of which exist.
    pub(crate) fn detach_namespace(&self, nsid: u32, from: &[Rc<NvmeController>]) -> Result<(), Status> {
        if from.iter().any(|controller| controller.namespaces.get(nsid).is_none()) {
            return Err(Status::NAMESPACE_NOT_ATTACHED);
        }
        for controller in from {
            controller.namespaces.detach(nsid);
            controller.namespace_changed(nsid);
        }
        self.namespaces.set_in_use(nsid, !self.controllers_with(nsid).is_empty());
        self.note();
        Ok(())
    }

    /// The controllers of a list of identifiers; `None` when some do not exist.
    pub(crate) fn controllers_of(&self, ids: &[u16]) -> Option<Vec<Rc<NvmeController>>> {
        let all = self.controllers.all();
        ids.iter().map(|id| all.iter().find(|controller| controller.id() == *id).cloned()).collect()
    }

    /// Attaches the namespaces in use to a new controller: a private one only if no other controller has it.
    pub(super) fn attach_in_use(&self, controller: &NvmeController) {
        for namespace in self.namespaces.in_use() {
            if namespace.is_shared || self.controllers_with(namespace.nsid).is_empty() {
                controller.namespaces.attach(&namespace);
            }
        }
    }
}
