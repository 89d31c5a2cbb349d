//! The drives and layers of a served drive, as operators see them: counters, orders, faults, checks.

use std::collections::BTreeMap;
use std::rc::Rc;

use nandscape_drive::layer::Shown;
use nandscape_drive::{DriveInfo, Node, Offers};
use nandscape_layers_array::{Array, Schedule};
use nandscape_sim::{Executor, Sim};
use nandscape_transport_reactor::{FaultCount, Order, Source};

use super::lowest::{self, Lowest};
use crate::chain::{self, FtlNode, Instance, Section};
use crate::live::SsdExport;
use crate::record::Turns;
use crate::served_array::figures;
use crate::served_array::orders::{check_unnamed, drive_of, fault_of, is_scrub, obey, of_one, settings_of, unknown};
use crate::tap::Listener;

/// Counters by the names of metrics.
type Counters = BTreeMap<&'static str, f64>;

/// See the file.
pub(crate) struct Tree {
    pub(crate) drives: Vec<Lowest>,
    pub(crate) layers: Vec<Instance>,
    pub(crate) top: Rc<dyn Node>,
}

impl Tree {
    /// Of layers that are open over these drives, and what is at the top.
    pub(super) fn new(sim: &Sim, mut drives: Vec<Lowest>, (layers, top): (Vec<Instance>, Rc<dyn Node>)) -> Tree {
        for drive in &mut drives {
            let made = |ftl: &FtlNode| SsdExport::new(sim, ftl.ssd().clone(), ftl.profile().clone(), None);
            let ftl = ftl_over(&layers, &drive.name).and_then(|layer| layer.node.as_kind());
            drive.ftl = ftl.map(|ftl| Rc::new(made(ftl)));
        }
        Tree { drives, layers, top }
    }

    /// The only drive, if there is one and it is no member of an array among the layers.
    pub(crate) fn only(&self) -> Option<&Lowest> {
        if let [only] = &self.drives[..] { Some(only).filter(|_| self.arrays().next().is_none()) } else { None }
    }

    /// The model that takes blocks, if it is the only drive.
    pub(crate) fn model(&self) -> Option<&Rc<SsdExport>> {
        self.only().filter(|only| only.ftl.is_none()).and_then(Lowest::model)
    }

    /// The FTL of a host over the only drive, with its name in breakdowns.
    pub(crate) fn ftl(&self) -> Option<(&'static str, &Rc<SsdExport>)> {
        let ftl = self.only()?.ftl.as_ref()?;
        Some((self.layers.first()?.node.as_kind::<FtlNode>()?.name(), ftl))
    }

    /// Whether no layer lies over the drives, but for FTLs of a host.
    pub(crate) fn is_without_layers(&self) -> bool {
        self.layers.iter().all(is_ftl)
    }

    /// What is at the top.
    pub(crate) fn info(&self) -> DriveInfo {
        self.top.info()
    }

    /// The commands that the top takes.
    pub(super) fn offers(&self) -> Offers {
        let info = self.top.info();
        let of_drives = self.drives.iter().map(|drive| drive.offers(&info)).reduce(Offers::of_both);
        match self.layers.is_empty() {
            true => of_drives.unwrap_or_default(),
            false => chain::offers(&self.layers, of_drives.unwrap_or_default()),
        }
    }

    /// Turns models off after a start that has failed.
    pub(crate) fn give_up(&self, executor: &mut Executor) {
        lowest::give_up(&self.drives, executor);
    }

    /// Checks the tables of the drives and of the layers.
    ///
    /// # Errors
    /// The problem, in one sentence.
    pub(crate) fn check(&self) -> Result<(), String> {
        let of_drives = self.drives.iter().map(|drive| (&drive.name, drive.check()));
        let of_layers = self.layers.iter().map(|layer| (&layer.name, layer.node.check()));
        let named =
            |(name, checked): (&String, Result<(), String>)| checked.map_err(|problem| format!("{name}: {problem}"));
        of_drives.chain(of_layers).try_for_each(named)
    }

    /// What is counted is counted from here on; `listeners` hear of the commands of each drive.
    pub(crate) fn watch(&self, listeners: Vec<Rc<dyn Listener>>) {
        let each = self.drives.iter().zip(listeners);
        each.for_each(|(drive, listener)| _ = drive.heard.watching.replace(Some(listener)));
        self.layers.iter().for_each(|layer| layer.node.begin());
    }

    /// The part of each layer in a report, the lowest first.
    pub(crate) fn sections(&self) -> Vec<Section> {
        self.layers.iter().map(Section::of).collect()
    }

    /// The turns of the drives, if they take turns.
    pub(crate) fn turns(&self) -> Option<Turns> {
        chain::turns(&self.layers, &self.names())
    }

    /// The windows of the drives that are in force now.
    pub(crate) fn schedule(&self) -> Option<Schedule> {
        chain::schedule(&self.layers)
    }

    fn names(&self) -> Vec<&str> {
        self.drives.iter().map(|drive| &*drive.name).collect()
    }

    pub(crate) fn arrays(&self) -> impl Iterator<Item = (&Instance, Rc<Array>)> {
        chain::arrays(&self.layers)
    }

    /// Of the drives together; of an only drive those of the layers, too: of two layers of a kind the upper one's, as those of each
    /// are parts.
    pub(crate) fn counters(&self) -> Counters {
        let mut all = Counters::new();
        for (name, value) in self.drives.iter().flat_map(|drive| self.of_drive(drive)) {
            *all.entry(name).or_insert(0.0) += value;
        }
        self.layers.iter().filter(|_| self.only().is_some()).for_each(|layer| all.extend(layer.node.counters()));
        all
    }

    /// Of a drive, with the traffic between it and an FTL of a host.
    fn of_drive(&self, drive: &Lowest) -> Counters {
        let mut all = drive.counters();
        all.extend(ftl_over(&self.layers, &drive.name).into_iter().flat_map(|layer| layer.node.counters()));
        all
    }

    /// Those of each drive and layer, or of the parts of an only drive.
    pub(crate) fn parts(&self) -> Vec<(String, Counters)> {
        let of_drive = |drive: &Lowest| {
            let mut all = self.of_drive(drive);
            all.extend(figures::of_reads(&drive.heard.tail));
            (drive.name.clone(), all)
        };
        let mut parts = match self.only() {
            Some(only) => only.parts(),
            None => self.drives.iter().map(of_drive).collect(),
        };
        if self.only().is_none() || self.layers.len() > 1 {
            parts.extend(self.parts_of_layers());
        }
        for (name, counters) in &mut parts {
            let place = |(layer, array): (&Instance, Rc<Array>)| {
                Some((layer.over.iter().position(|over| over == name)?, array))
            };
            let above = self.arrays().find_map(place);
            above.iter().for_each(|(number, array)| counters.extend(figures::of_drive(array, *number)));
        }
        parts
    }

    /// Those of each layer.
    pub(crate) fn parts_of_layers(&self) -> impl Iterator<Item = (String, Counters)> {
        self.layers.iter().map(|layer| (layer.name.clone(), layer.node.counters().into_iter().collect()))
    }

    /// The figures of each layer for people. Those of an array are counters: with its missing members and rebuilds, an array that keeps
    /// records has the same ones, and is no layer.
    pub(crate) fn shown(&self) -> Vec<(String, Vec<Shown>)> {
        let is_array = |layer: &Instance| self.arrays().any(|(array, _)| array.name == layer.name);
        let others = self.layers.iter().filter(|layer| !is_array(layer));
        others.filter_map(|layer| Some((layer.name.clone(), layer.node.report()?.shown()))).collect()
    }

    pub(crate) fn read_only(&self) -> Option<String> {
        let lost = self.arrays().find_map(|(layer, array)| Some(format!("{}: {}", layer.name, figures::lost(&array)?)));
        lost.or_else(|| self.only()?.read_only())
    }

    /// Faults go to the drive that they name, or to all of them; so do settings that are of no array.
    pub(crate) fn order(&self, order: &Order) -> Result<(), String> {
        let is_of = |layer: &Instance, setting: &str| {
            setting.strip_prefix(&*layer.name).is_some_and(|rest| rest.starts_with('.'))
        };
        match order {
            Order::Set(setting) if setting.starts_with("array.") && self.arrays().next().is_some() => {
                self.order_arrays(setting)
            }
            Order::Set(setting) if self.layers.iter().any(|layer| is_of(layer, setting)) => {
                Err(format!("{setting}: settings of layers do not change at work"))
            }
            Order::AddFault(text) if self.only().is_none() => match fault_of(&self.names(), text)? {
                Some((number, rule)) => self.drives[number].order(&Order::AddFault(rule.to_owned())),
                None => self.order_all(order),
            },
            Order::Set(setting) if self.only().is_none() => match of_one(&self.names(), setting) {
                Some((number, own)) => self.drives[number].order(&Order::Set(own.to_owned())),
                None => check_unnamed(&self.names(), setting).and_then(|()| self.order_all(order)),
            },
            Order::AddFault(_) | Order::Set(_) | Order::ClearFaults => self.order_all(order),
        }
    }

    fn order_all(&self, order: &Order) -> Result<(), String> {
        self.drives.iter().try_for_each(|drive| drive.order(order))
    }

    /// An order goes to the array over the drive or array that it names; a scrub to all arrays that have something to compare.
    fn order_arrays(&self, setting: &str) -> Result<(), String> {
        let of = |layer: &Instance, array: &Rc<Array>| {
            let members: Vec<&str> = layer.over.iter().map(String::as_str).collect();
            obey(array, &members, |_| false, setting).unwrap_or(Ok(()))
        };
        if is_scrub(setting) && self.arrays().any(|(_, array)| array.shape().level().tolerates() > 0) {
            let mut compares = self.arrays().filter(|(_, array)| array.shape().level().tolerates() > 0);
            return compares.try_for_each(|(layer, array)| of(layer, &array));
        }
        let name = drive_of(setting);
        let is_over = |layer: &Instance| name.is_none_or(|name| layer.over.iter().any(|over| over == name));
        match self.arrays().find(|(layer, _)| is_over(layer)) {
            Some((layer, array)) => of(layer, &array),
            None => {
                let all: Vec<&str> = self.arrays().flat_map(|(layer, _)| &layer.over).map(String::as_str).collect();
                Err(unknown(&all, setting, name.unwrap_or_default()))
            }
        }
    }

    pub(crate) fn sources(&self) -> Vec<Rc<dyn Source>> {
        self.drives.iter().flat_map(Lowest::sources).collect()
    }

    /// Those of each drive; of several with their names.
    pub(crate) fn faults(&self) -> Vec<FaultCount> {
        match self.only() {
            Some(only) => only.faults(),
            None => self.drives.iter().flat_map(|drive| figures::named(&drive.name, drive.faults())).collect(),
        }
    }

    /// The same of settings.
    pub(crate) fn settings(&self) -> Vec<(String, String)> {
        match self.only() {
            Some(only) => only.settings(),
            None => self.drives.iter().flat_map(|drive| settings_of(&drive.name, drive.settings())).collect(),
        }
    }
}

fn is_ftl(layer: &Instance) -> bool {
    layer.node.as_kind::<FtlNode>().is_some()
}

/// The FTL of a host over a drive of this name.
fn ftl_over<'a>(layers: &'a [Instance], drive: &str) -> Option<&'a Instance> {
    layers.iter().find(|layer| is_ftl(layer) && layer.over == [drive])
}
