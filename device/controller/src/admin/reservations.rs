//! The reservation commands (Base 7.5 to 7.8), and the Reservation Notification log (Base 5.1.12.1.32) of each controller.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

use nandscape_drive::{Breakdown, Controller as _, HostMem};
use nandscape_wire_nvme::command::{FLAGS_FUSED, FLAGS_PSDT};
use nandscape_wire_nvme::reservation::{self as wire, Cdw10, Keys, Notification, Registered, RegisteredExtended};
use nandscape_wire_nvme::{IoOpcode, NSID_ALL, Parameter, Status, SubmissionEntry, feature};
use zerocopy::{FromZeros, IntoBytes};

use super::Event;
use crate::command_set::{Command, Reply};
use crate::engine::NvmeController;
use crate::namespace::{Kind, Namespace, Notice, Registrant, Report};
use crate::refusal::Refusal;

/// The maximum of unread notifications; their count is a byte.
const MOST: usize = 255;
/// CNTLID of a registrant without a controller.
const NO_CONTROLLER: u16 = 0xffff;
/// Fields of CDW10: the action, Ignore Existing Key, Reservation Type.
const ACTION: Refusal = Refusal::field(10, 0);
const IGNORE_KEY: Refusal = Refusal::field(10, 3);
const TYPE: Refusal = Refusal::field(10, 8);

/// Notifications that the host has not read.
#[derive(Default)]
pub(crate) struct Notifications {
    waiting: RefCell<VecDeque<Waiting>>,
    /// Notifications since the last controller reset.
    count: Cell<u64>,
}

struct Waiting {
    /// Log Page Count.
    count: u64,
    kind: u8,
    nsid: u32,
}

impl Notifications {
    /// The log page: the oldest unread notification, or an empty one.
    pub(super) fn page(&self) -> Notification {
        let waiting = self.waiting.borrow();
        let mut page = Notification::new_zeroed();
        if let Some(Waiting { count, kind, nsid }) = waiting.front() {
            (page.count, page.kind, page.nsid) = ((*count).into(), *kind, (*nsid).into());
            page.available = waiting.len() as u8 - 1;
        }
        page
    }

    /// The host has read the oldest notification. Returns whether others wait.
    pub(super) fn was_read(&self) -> bool {
        self.waiting.borrow_mut().pop_front();
        !self.waiting.borrow().is_empty()
    }

    /// Adds a notification. Without room it is lost, and the count in the newest one shows the loss (Base 5.1.12.1.32).
    fn add(&self, kind: u8, nsid: u32) {
        let mut waiting = self.waiting.borrow_mut();
        let (count, waiting_is_full) = (self.count.get() + 1, waiting.len() == MOST);
        self.count.set(count);
        match waiting.back_mut() {
            Some(last) if waiting_is_full => last.count = count,
            _ => waiting.push_back(Waiting { count, kind, nsid }),
        }
    }

    /// The controller is reset.
    pub(super) fn clear(&self) {
        self.waiting.borrow_mut().clear();
        self.count.set(0);
    }
}

impl NvmeController {
    /// Serves a reservation command.
    pub(crate) async fn serve_reservation(&self, command: Command<'_>, breakdown: &mut Breakdown) -> Reply {
        let Command { entry, namespace, mem, .. } = command;
        let done = match IoOpcode(entry.opcode) {
            _ if entry.flags & (FLAGS_FUSED | FLAGS_PSDT) != 0 => Err(Refusal::flags(entry.flags)),
            IoOpcode::RESERVATION_REGISTER => self.register_host(entry, namespace, mem),
            IoOpcode::RESERVATION_ACQUIRE => self.acquire(command, breakdown).await,
            IoOpcode::RESERVATION_RELEASE => self.release(entry, namespace, mem),
            _ => self.report(command, breakdown).await,
        };
        if command.namespace.reservations.persists() && done.is_ok() {
            self.subsystem.note();
        }
        done.map_err(final_).into()
    }

    fn register_host(&self, entry: &SubmissionEntry, namespace: &Namespace, mem: &HostMem) -> Result<(), Refusal> {
        let (fields, keys) = (Cdw10(entry.cdw10.get()), keys(mem, size_of::<Keys>())?);
        let (host, all) = (self.registrant(), &namespace.reservations);
        let current = (!fields.ignores_key()).then(|| keys.current.get());
        let is_here = |host| self.subsystem.all_controllers().iter().any(|each| each.registrant() == host);
        let persists = match fields.persistence() {
            0 => None,
            0b10 => Some(false),
            0b11 => Some(true),
            _ => return Err(Refusal::field(10, 30)),
        };
        let notices = match fields.action() {
            wire::REGISTER => all.register(host, keys.other.get(), is_here).map(|()| Vec::new())?,
            wire::UNREGISTER => all.unregister(host, current)?,
            wire::REPLACE => all.replace(host, current, keys.other.get(), is_here).map(|()| Vec::new())?,
            _ => return Err(ACTION),
        };
        if let Some(persists) = persists {
            all.set_persists(persists);
            self.subsystem.note();
        }
        self.changed(namespace, notices);
        Ok(())
    }

    async fn acquire(&self, command: Command<'_>, breakdown: &mut Breakdown) -> Result<(), Refusal> {
        let Command { entry, namespace, mem, .. } = command;
        let (fields, keys) = (Cdw10(entry.cdw10.get()), keys(mem, size_of::<Keys>())?);
        if fields.ignores_key() {
            return Err(IGNORE_KEY);
        }
        let kind = Kind::of(fields.kind()).ok_or(TYPE)?;
        let (host, all) = (self.registrant(), &namespace.reservations);
        match fields.action() {
            wire::ACQUIRE => {
                all.acquire(host, keys.current.get(), kind)?;
                self.changed(namespace, Vec::new());
            }
            action @ (wire::PREEMPT | wire::PREEMPT_AND_ABORT) => {
                let (victims, notices) = all.preempt(host, keys.current.get(), keys.other.get(), kind)?;
                self.changed(namespace, notices);
                if action == wire::PREEMPT_AND_ABORT {
                    self.subsystem.abort_commands(namespace, &victims, breakdown).await;
                }
            }
            _ => return Err(ACTION),
        }
        Ok(())
    }

    fn release(&self, entry: &SubmissionEntry, namespace: &Namespace, mem: &HostMem) -> Result<(), Refusal> {
        let (fields, key) = (Cdw10(entry.cdw10.get()), keys(mem, 8)?.current.get());
        let (host, all) = (self.registrant(), &namespace.reservations);
        let notices = match (fields.action(), Kind::of(fields.kind())) {
            _ if fields.ignores_key() => return Err(IGNORE_KEY),
            (wire::RELEASE, Some(kind)) => all.release(host, key, kind)?,
            (wire::CLEAR, _) => all.clear(host, key)?,
            (wire::RELEASE, None) => return Err(TYPE),
            _ => return Err(ACTION),
        };
        self.changed(namespace, notices);
        Ok(())
    }

    /// The reservations of a namespace have changed.
    fn changed(&self, namespace: &Namespace, notices: Vec<Notice>) {
        namespace.update_guard();
        self.subsystem.notify_hosts(namespace.nsid, &notices);
    }

    /// Notifies the host of this controller that another host changed its registration or reservation.
    pub(crate) fn notify_host(&self, kind: u8, nsid: u32) {
        // A set mask bit suppresses the type.
        if self.admin.settings.get(feature::RESERVATION_MASK, nsid) & 1 << kind == 0 {
            self.admin.notifications.add(kind, nsid);
            self.raise(Event::RESERVATION);
        }
    }

    async fn report(&self, command: Command<'_>, breakdown: &mut Breakdown) -> Result<(), Refusal> {
        let Command { entry, namespace, mem, link, .. } = command;
        // Number of dwords, counted from zero, and Extended Data Structure.
        let bytes = (u64::from(entry.cdw10.get()) + 1) * 4;
        let extended = entry.cdw11.get() & 1 != 0;
        if bytes > self.subsystem.config.max_transfer.into() {
            return Err(Refusal::field(10, 0));
        }
        if extended != self.has_long_host_id() {
            return Err(Status::HOST_ID_INCONSISTENT.into());
        }
        let mut data = self.subsystem.reservation_report(&namespace.reservations.report(), extended);
        data.truncate(bytes as usize);
        mem.must_fit(bytes as usize)?;
        link.send(bytes, breakdown).await;
        mem.write(0, &data);
        // The command may ask for more than the report has.
        mem.clear(data.len(), bytes as usize - data.len());
        Ok(())
    }
}

/// Features (Base 5.1.25.1.29, 5.1.25.1.30).
impl NvmeController {
    /// Sets the mask of notifications of one namespace or of all.
    pub(super) fn mask_reservations(&self, nsid: u32, mask: u32) {
        for nsid in self.named_here(nsid) {
            self.admin.settings.set((feature::RESERVATION_MASK, nsid), mask);
        }
    }

    /// Whether the reservations of a namespace outlast a loss of power.
    pub(super) fn reservations_persist(&self, nsid: u32) -> Result<bool, Refusal> {
        let namespace = self.namespaces.get(nsid).ok_or(Refusal::of(Status::INVALID_FIELD, Parameter::NSID))?;
        Ok(namespace.reservations.persists())
    }

    pub(super) fn persist_reservations(&self, nsid: u32, persist: bool) {
        for namespace in self.named_here(nsid).into_iter().filter_map(|nsid| self.namespaces.get(nsid)) {
            namespace.reservations.set_persists(persist);
            self.subsystem.note();
        }
    }

    fn named_here(&self, nsid: u32) -> Vec<u32> {
        if nsid == NSID_ALL { self.namespaces.above(0) } else { vec![nsid] }
    }
}

impl crate::NvmSubsystem {
    /// Notifies hosts on all their controllers.
    pub(crate) fn notify_hosts(&self, nsid: u32, notices: &[Notice]) {
        for controller in self.all_controllers() {
            let own = notices.iter().filter(|(host, _)| *host == controller.registrant());
            own.for_each(|(_, kind)| controller.notify_host(*kind, nsid));
        }
    }

    /// The data of Reservation Report: each registrant with each of its controllers.
    fn reservation_report(&self, report: &Report, extended: bool) -> Vec<u8> {
        let mut entries = Vec::new();
        let mut count = 0u16;
        for (host, key, holds) in &report.registrants {
            let controllers = self.all_controllers();
            let ids = controllers.iter().filter(|each| each.registrant() == *host).map(|each| each.id());
            let mut ids: Vec<u16> = ids.collect();
            if ids.is_empty() {
                ids.push(NO_CONTROLLER);
            }
            for id in ids {
                count += 1;
                entries.extend(registered(id, *host, *key, *holds, extended));
            }
        }
        let mut header = wire::StatusHeader::new_zeroed();
        (header.generation, header.kind) = (report.generation.into(), report.kind);
        (header.registered, header.persists) = (count.into(), report.persists.into());
        let mut data = header.as_bytes().to_vec();
        if extended {
            data.resize(size_of::<RegisteredExtended>(), 0);
        }
        data.extend(entries);
        data
    }
}

fn registered(cntlid: u16, host: Registrant, key: u64, holds: bool, extended: bool) -> Vec<u8> {
    let id = match host {
        Registrant::Host(id) => id,
        Registrant::Controller(_) | Registrant::Function(_) => [0; 16],
    };
    if extended {
        let mut entry = RegisteredExtended::new_zeroed();
        (entry.cntlid, entry.status, entry.key, entry.hostid) = (cntlid.into(), holds.into(), key.into(), id);
        return entry.as_bytes().to_vec();
    }
    let mut entry = Registered::new_zeroed();
    (entry.cntlid, entry.status, entry.key) = (cntlid.into(), holds.into(), key.into());
    entry.hostid.copy_from_slice(&id[..8]);
    entry.as_bytes().to_vec()
}

/// The keys in the first `len` bytes of a command's data.
fn keys(mem: &HostMem, len: usize) -> Result<Keys, Status> {
    let mut keys = Keys::default();
    mem.must_fit(len)?;
    mem.read(0, &mut keys.as_mut_bytes()[..len]);
    if mem.has_failed() { Err(Status::DATA_TRANSFER_ERROR) } else { Ok(keys) }
}

/// A retry can only help if the memory was unreachable. The end of a conflict is reported by a notification.
fn final_(refusal: Refusal) -> Refusal {
    if refusal.status.meaning() == Status::DATA_TRANSFER_ERROR { refusal } else { refusal.final_() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A notification without room is lost, and the newest one has its count (Base 5.1.12.1.32).
    #[test]
    fn notifications_are_counted_when_they_are_lost() {
        let all = Notifications::default();
        let page = || {
            let page = all.page();
            (page.count.get(), page.nsid.get(), page.available)
        };
        assert_eq!(page(), (0, 0, 0));
        (1..=MOST as u32 + 3).for_each(|nsid| all.add(1, nsid));
        assert_eq!(page(), (1, 1, MOST as u8 - 1));
        for _ in 1..MOST {
            assert!(all.was_read());
        }
        assert_eq!(page(), (MOST as u64 + 3, MOST as u32, 0));
        assert!(!all.was_read());
        assert_eq!(page(), (0, 0, 0));
        all.add(2, 7);
        assert_eq!(page(), (MOST as u64 + 4, 7, 0));
        all.clear();
        all.add(2, 7);
        assert_eq!(page(), (1, 7, 0), "a reset sets the count to zero");
    }
}
