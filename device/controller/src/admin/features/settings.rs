//! The values of features: current ones of a controller, and those that hosts have saved, which outlast resets, power cuts
//! and the controller itself.
//!
//! Where a feature has several values, a selector distinguishes them: the threshold that Temperature Threshold names, the
//! namespace of Error Recovery, the vector of Interrupt Vector Configuration.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use nandscape_drive::subsystem::IN_PROCESS_CONTROLLER;
use nandscape_sim::Time;
use nandscape_wire_nvme::NSID_ALL;
use nandscape_wire_nvme::feature::{self, Arbitration, ERROR_RECOVERY_DULBE, InterruptCoalescing, WRITE_CACHE_ENABLE};

use super::data::ms;
use super::table;
use crate::namespace::Registrant;
use crate::notices::Port;

/// A feature and its selector.
pub(super) type Name = (u8, u32);

/// Hosts whose values are kept. When another host saves its first value, the host that saved first loses its values.
const SAVING_HOSTS: usize = 128;

/// Saved values, by host. They belong to the subsystem.
#[derive(Default)]
pub(crate) struct Saved(RefCell<VecDeque<(Registrant, BTreeMap<Name, u32>)>>);

/// A saved value, as noted.
#[derive(serde::Serialize, serde::Deserialize)]
pub(crate) struct SavedNote {
    host: [u8; 16],
    /// The PCI function, if the values belong to the host of one.
    #[serde(default)]
    function: Option<u16>,
    feature: u8,
    selector: u32,
    value: u32,
}

/// The host's settings, as commands use them.
#[derive(Default)]
pub struct Settings {
    /// Values other than the defaults.
    values: RefCell<BTreeMap<Name, u32>>,
    /// The default of Arbitration, which a drive may choose.
    arbitration: Cell<u32>,
    /// Copies of the values that the command path reads.
    hot: Hot,
    /// Milliseconds since 1970 at time zero of the drive, modulo 2^64: a host may set a time below the drive's. `None` until
    /// a host has set it.
    pub(super) epoch_ms: Cell<Option<u64>>,
    /// When the controller was reset last, in milliseconds of the drive's time.
    pub(super) reset_ms: Cell<u64>,
    pub(super) host_behavior: Cell<[u8; 8]>,
    /// The identifier that the host has set, in bytes of memory, and its length.
    pub(super) host_id: Cell<Option<([u8; 16], usize)>>,
    /// Where notices go, if the host has any.
    notices: RefCell<Option<Rc<Port>>>,
    /// The identifier with which the host connected, and the controller.
    connected: Cell<([u8; 16], u16)>,
}

struct Hot {
    burst: Cell<Option<u32>>,
    write_cache: Cell<bool>,
    /// Whether any namespace reports reads of deallocated blocks.
    deallocated: Cell<bool>,
    /// Whether interrupts are coalesced.
    coalesces: Cell<bool>,
    /// Asynchronous Event Configuration.
    events: Cell<u32>,
    /// Whether the temperature is beyond a threshold.
    is_temperature_critical: Cell<bool>,
}

impl Default for Hot {
    fn default() -> Hot {
        let burst = Arbitration(default_of((feature::ARBITRATION, 0))).burst();
        Hot {
            burst: Cell::new(burst),
            write_cache: Cell::new(true),
            deallocated: Cell::new(false),
            coalesces: Cell::new(false),
            events: Cell::new(0),
            is_temperature_critical: Cell::new(false),
        }
    }
}

/// The value of a feature that was never set.
fn default_of((id, selector): Name) -> u32 {
    match (id, selector) {
        // The default of the under temperature threshold is none.
        (feature::TEMPERATURE_THRESHOLD, 1) => 0,
        _ => table::row_of(id).map_or(0, |row| row.default),
    }
}

/// Drops the values of single namespaces: Error Recovery was set for all.
fn forget_namespaces(values: &mut BTreeMap<Name, u32>) {
    values.retain(|(id, nsid), _| *id != feature::ERROR_RECOVERY || *nsid == NSID_ALL);
}

/// Drops the values of a namespace.
fn forget_namespace(values: &mut BTreeMap<Name, u32>, nsid: u32) {
    let is_of_namespace = |id| table::row_of(id).is_some_and(|row| row.capabilities & feature::OF_NAMESPACE != 0);
    values.retain(|(id, selector), _| *selector != nsid || !is_of_namespace(*id));
}

impl Saved {
    /// The value that a host has saved.
    pub(super) fn get(&self, host: Registrant, name: Name) -> Option<u32> {
        let all = self.0.borrow();
        all.iter().find(|(each, _)| *each == host)?.1.get(&name).copied()
    }

    pub(super) fn set(&self, host: Registrant, name: Name, value: u32) {
        let mut all = self.0.borrow_mut();
        if let Some((_, values)) = all.iter_mut().find(|(each, _)| *each == host) {
            if name == (feature::ERROR_RECOVERY, NSID_ALL) {
                forget_namespaces(values);
            }
            values.insert(name, value);
            return;
        }
        if all.len() == SAVING_HOSTS {
            all.pop_front();
        }
        all.push_back((host, BTreeMap::from([(name, value)])));
    }

    /// A namespace was deleted: its saved values must not apply to the next namespace with its number.
    pub(crate) fn forget_namespace(&self, nsid: u32) {
        let mut all = self.0.borrow_mut();
        all.iter_mut().for_each(|(_, values)| forget_namespace(values, nsid));
        all.retain(|(_, values)| !values.is_empty());
    }

    /// Drops the saved values of a host: its controller gets another host.
    pub(crate) fn forget(&self, host: Registrant) {
        self.0.borrow_mut().retain(|(each, _)| *each != host);
    }

    /// The values that outlast the process, to be noted: those of hosts with an identifier, of PCI functions, and of hosts in
    /// the process of the drive, whose identifier is zeros.
    pub(crate) fn note(&self) -> Vec<SavedNote> {
        let mut notes = Vec::new();
        for (host, values) in &*self.0.borrow() {
            let (host, function) = match host {
                Registrant::Host(id) => (*id, None),
                Registrant::Function(number) => ([0; 16], Some(*number)),
                Registrant::Controller(IN_PROCESS_CONTROLLER) => ([0; 16], None),
                Registrant::Controller(_) => continue,
            };
            let note =
                |(&(feature, selector), &value): (&Name, &u32)| SavedNote { host, function, feature, selector, value };
            notes.extend(values.iter().map(note));
        }
        notes
    }

    /// Restores noted values.
    pub(crate) fn restore(&self, notes: &[SavedNote]) {
        self.0.take();
        for note in notes {
            let host = match (note.host, note.function) {
                (_, Some(number)) => Registrant::Function(number),
                (id, None) if id == [0; 16] => Registrant::Controller(IN_PROCESS_CONTROLLER),
                (id, None) => Registrant::Host(id),
            };
            self.set(host, (note.feature, note.selector), note.value);
        }
    }

    /// All saved values of a host.
    fn of(&self, host: Registrant) -> BTreeMap<Name, u32> {
        let all = self.0.borrow();
        all.iter().find(|(each, _)| *each == host).map_or_else(BTreeMap::new, |(_, values)| values.clone())
    }
}

impl Settings {
    /// The settings of a new controller for a host.
    pub(crate) fn new(saved: &Saved, host: Registrant, now: Time, weights: [u32; 3]) -> Settings {
        let settings = Settings::default();
        settings.arbitration.set(default_of((feature::ARBITRATION, 0)) | Arbitration::of_weights(weights));
        settings.reset(saved, host, now);
        settings
    }

    /// A host has connected to a controller. An identifier of zeros is none.
    pub(crate) fn set_connected(&self, hostid: [u8; 16], controller: u16) {
        self.connected.set((hostid, controller));
    }

    /// The host, as reservations and streams know it.
    pub(crate) fn registrant(&self) -> Registrant {
        let (hostid, controller) = self.connected.get();
        match self.host_id.get().map_or(hostid, |(id, _)| id) {
            id if id == [0; 16] => Registrant::Controller(controller),
            id => Registrant::Host(id),
        }
    }

    /// The current value of a feature.
    pub(crate) fn get(&self, id: u8, selector: u32) -> u32 {
        let name = (id, selector);
        self.values.borrow().get(&name).copied().unwrap_or_else(|| self.default_of(name))
    }

    /// The value of a feature that was never set.
    pub(super) fn default_of(&self, name: Name) -> u32 {
        if name.0 == feature::ARBITRATION { self.arbitration.get() } else { default_of(name) }
    }

    pub(in crate::admin) fn set(&self, name: Name, value: u32) {
        self.values.borrow_mut().insert(name, value);
        self.update_hot();
    }

    /// The port for notices.
    pub(crate) fn notices(&self) -> Option<Rc<Port>> {
        self.notices.borrow().clone()
    }

    /// Sets the port for notices.
    pub(in crate::admin) fn set_notices(&self, port: Option<Rc<Port>>) {
        self.notices.replace(port);
    }

    /// The maximum of entries fetched from one queue in a row.
    #[inline]
    pub(crate) fn arbitration_burst(&self) -> Option<u32> {
        self.hot.burst.get()
    }

    /// Arbitration.
    pub(crate) fn arbitration(&self) -> Arbitration {
        Arbitration(self.get(feature::ARBITRATION, 0))
    }

    /// Whether reads of deallocated blocks of a namespace are reported.
    #[inline]
    pub(crate) fn reports_deallocated(&self, nsid: u32) -> bool {
        self.hot.deallocated.get() && self.error_recovery(nsid) & ERROR_RECOVERY_DULBE != 0
    }

    /// Error Recovery of a namespace: its own value, or else the value for all.
    pub(super) fn error_recovery(&self, nsid: u32) -> u32 {
        let values = self.values.borrow();
        let of = |nsid| values.get(&(feature::ERROR_RECOVERY, nsid)).copied();
        of(nsid).or_else(|| of(NSID_ALL)).unwrap_or_else(|| default_of((feature::ERROR_RECOVERY, nsid)))
    }

    /// Error Recovery is set for all namespaces.
    pub(super) fn forget_namespaces(&self) {
        forget_namespaces(&mut self.values.borrow_mut());
    }

    /// A namespace was deleted.
    pub(crate) fn forget_namespace(&self, nsid: u32) {
        forget_namespace(&mut self.values.borrow_mut(), nsid);
        self.update_hot();
    }

    /// Whether interrupts are coalesced: with a threshold above one completion, and a time.
    #[inline]
    pub(crate) fn coalesces(&self) -> bool {
        self.hot.coalesces.get()
    }

    /// Asynchronous Event Configuration.
    #[inline]
    pub(crate) fn wanted_events(&self) -> u32 {
        self.hot.events.get()
    }

    /// Whether a volatile write cache is used.
    #[inline]
    pub(crate) fn write_cache_enabled(&self) -> bool {
        self.hot.write_cache.get()
    }

    /// Whether the temperature is beyond a threshold.
    #[inline]
    pub(crate) fn is_temperature_critical(&self) -> bool {
        self.hot.is_temperature_critical.get()
    }

    /// The controller is reset: every value is the saved one, or else the default. The timestamp keeps counting (Base
    /// 5.1.25.1.7).
    pub(crate) fn reset(&self, saved: &Saved, host: Registrant, now: Time) {
        self.reset_ms.set(ms(now));
        self.values.replace(saved.of(host));
        self.host_behavior.take();
        self.host_id.set(None);
        self.notices.take();
        self.update_hot();
    }

    fn update_hot(&self) {
        self.hot.burst.set(Arbitration(self.get(feature::ARBITRATION, 0)).burst());
        self.hot.write_cache.set(self.get(feature::VOLATILE_WRITE_CACHE, 0) & WRITE_CACHE_ENABLE != 0);
        self.hot.events.set(self.get(feature::ASYNC_EVENT_CONFIG, 0));
        let threshold = |kind| self.get(feature::TEMPERATURE_THRESHOLD, kind) as u16;
        let is_critical = table::TEMPERATURE >= threshold(0) || table::TEMPERATURE <= threshold(1);
        self.hot.is_temperature_critical.set(is_critical);
        let coalescing = InterruptCoalescing(self.get(feature::INTERRUPT_COALESCING, 0));
        self.hot.coalesces.set(coalescing.threshold_z() > 0 && coalescing.time() > 0);
        let values = self.values.borrow();
        let mut recovery = values.iter().filter(|((id, _), _)| *id == feature::ERROR_RECOVERY);
        self.hot.deallocated.set(recovery.any(|(_, value)| value & ERROR_RECOVERY_DULBE != 0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn saved_values_belong_to_a_host_and_are_bounded() {
        let (saved, name) = (Saved::default(), (feature::ARBITRATION, 0));
        let host = |number: u8| Registrant::Host([number; 16]);
        (1..=SAVING_HOSTS as u8 + 1).for_each(|number| saved.set(host(number), name, number.into()));
        assert_eq!(saved.get(host(1), name), None, "the first has made room");
        assert_eq!((saved.get(host(2), name), saved.get(host(129), name)), (Some(2), Some(129)));
        assert_eq!(saved.0.borrow().len(), SAVING_HOSTS);
        // Hosts without an identifier are distinguished by controller.
        saved.set(Registrant::Controller(2), name, 7);
        assert_eq!(saved.of(Registrant::Controller(3)), BTreeMap::new());
        // Saved values of a namespace end with it.
        let of_namespace = |nsid| (feature::ERROR_RECOVERY, nsid);
        saved.set(host(200), of_namespace(NSID_ALL), 5);
        saved.set(host(200), of_namespace(1), 6);
        saved.set(host(200), of_namespace(2), 6);
        saved.set(host(200), (feature::TEMPERATURE_THRESHOLD, 1), 7);
        saved.forget_namespace(1);
        let kept = [of_namespace(1), of_namespace(2), of_namespace(NSID_ALL), (feature::TEMPERATURE_THRESHOLD, 1)];
        assert_eq!(kept.map(|name| saved.get(host(200), name)), [None, Some(6), Some(5), Some(7)]);
        saved.forget(Registrant::Controller(2));
        assert_eq!(saved.get(Registrant::Controller(2), name), None);
    }

    #[test]
    fn values_of_a_function_outlast_its_hosts_and_the_process() {
        let (saved, name) = (Saved::default(), (feature::ARBITRATION, 0));
        saved.set(Registrant::Function(0), name, 5);
        saved.forget(Registrant::Controller(2));
        assert_eq!(saved.get(Registrant::Function(0), name), Some(5));
        let noted = serde_json::to_vec(&saved.note()).unwrap();
        let next = Saved::default();
        next.restore(&serde_json::from_slice::<Vec<SavedNote>>(&noted).unwrap());
        assert_eq!((next.get(Registrant::Function(0), name), next.get(Registrant::Function(1), name)), (Some(5), None));
        assert_eq!(next.get(Registrant::Controller(IN_PROCESS_CONTROLLER), name), None);
        // The older form of notes, without values of PCI functions.
        let old = br#"[{"host":[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1],"feature":1,"selector":0,"value":3}]"#;
        next.restore(&serde_json::from_slice::<Vec<SavedNote>>(old).unwrap());
        assert_eq!(next.get(Registrant::Host([1; 16]), name), Some(3));
    }
}
