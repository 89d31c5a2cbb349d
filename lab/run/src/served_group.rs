//! Drives of this process under layers that take several of them, served as one drive in wall time: arrays, and arrays of arrays, as
//! a simulation has them. Each command has the times of a simulated one. All of it is in memory and ends with the server.
//!
//! A recording has the drives and the layers; its replay builds them here, too.
//!
//! Left out: drives in files, remote drives and journals, with which a served [array](crate::ArraySpec) outlasts the server.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use nandscape_device_controller::Offers;
use nandscape_drive::{Names, Node, Role, Use, node};
use nandscape_lab_workload::Served;
use nandscape_layers_array::{Array, Schedule};
use nandscape_sim::{Executor, Seed};
use nandscape_transport_reactor::{Connect, Export, FaultCount, Fronted, Order};

use crate::build::Precondition;
use crate::chain::{self, Chain, Instance, ModelNode, Opening, Section};
use crate::forwarded::Forwarded;
use crate::live::{DriveSpec, SsdExport, offers_of_model};
use crate::record::Turns;
use crate::served_array::figures;
use crate::served_array::orders::{drive_of, fault_of, is_scrub, obey, of_one, settings_of, unknown};
use crate::served_layers::counters;
use crate::simulation::Progress;
use crate::tap::{Listener, Tail};

/// See the file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GroupSpec {
    /// The name that clients use.
    pub name: String,
    /// The drives, as many as the layers take.
    pub drives: Vec<DriveSpec>,
    /// The layers, the lowest first.
    pub chain: Chain,
}

impl GroupSpec {
    /// Builds the drives and opens the layers over them.
    ///
    /// # Errors
    /// A drive that cannot be built, or a layer that cannot lie over what is below it, and what would be valid.
    pub fn build(&self, executor: &mut Executor, seed: u64, progress: &dyn Progress) -> Result<GroupExport, String> {
        let failed = |problem: String| format!("drive {}: {problem}", self.name);
        let (sim, layers) = (executor.sim(), self.chain.resolve().map_err(failed)?);
        let is_over_chunks = chain::is_over_chunks(&layers);
        let (mut drives, mut nodes) = (Vec::new(), Vec::<(String, Rc<dyn Node>)>::new());
        for spec in &self.drives {
            // Clients reach the layers. The FTL of a host brings its drive into the state.
            let precondition = if is_over_chunks { Precondition::None } else { spec.precondition };
            let below = DriveSpec { precondition, is_shared: false, ..spec.clone() };
            sim.trace().set_prefix(&format!("{} ", spec.name));
            let built = below.build(&sim, seed, progress);
            sim.trace().set_prefix("");
            let export = Rc::new(built.map_err(|error| format!("drive {}: {error}", spec.name))?);
            let heard = Rc::<Heard>::default();
            let of_drive = (&sim, export.ssd(), export.profile());
            let node = ModelNode::with(of_drive, 1, Rc::default(), Some(heard.clone()));
            if is_over_chunks {
                executor.block_on(node.open_chunks()).map_err(|stalled| stalled.to_string())??;
            }
            nodes.push((spec.name.clone(), Rc::new(node)));
            drives.push(GroupDrive { name: spec.name.clone(), export, heard });
        }
        let how = Opening {
            seed: Seed::new(seed).child("live layers"),
            precondition: self.drives.first().map_or(Precondition::None, |spec| spec.precondition),
            progress,
            ..Opening::new(&sim, "")
        };
        let opened = chain::open_in(&how, &layers, nodes, &[]).map_err(failed)?;
        let [top] = &opened.tops[..] else {
            return Err(failed(format!("{} layers are at the top, and one is served", opened.tops.len())));
        };
        let top = top.connect(Use { role: Role::Any, entries: u32::MAX });
        let top = top.map_err(|refused| failed(refused.to_string()))?;
        let offers = chain::offers(&opened.layers, offers_of_model(&top.info()));
        let front = Forwarded::new(&sim, top, offers, self.names(seed)).map_err(failed)?;
        if self.drives.iter().any(|spec| spec.is_shared) {
            front.subsystem().iter().for_each(|subsystem| subsystem.report_several());
        }
        Ok(GroupExport { drives, layers: opened.layers, chain: self.chain.clone(), front })
    }

    fn names(&self, seed: u64) -> Names {
        let own = Seed::new(seed).child("served group").child(&self.chain.to_string()).value();
        Names {
            nqn: format!("nqn.2026-11.org.nandscape:array-{own:016x}"),
            serial: format!("NA{own:016x}"),
            model: "Nandscape array".to_owned(),
            firmware: env!("CARGO_PKG_VERSION").chars().take(8).collect(),
        }
    }
}

/// The latencies of a drive, whose commands are passed on to whoever watches it.
#[derive(Default)]
pub(crate) struct Heard {
    tail: Tail,
    watching: RefCell<Option<Rc<dyn Listener>>>,
}

impl Listener for Heard {
    fn passed(&self, served: &Served<'_>) {
        self.tail.passed(served);
        self.watching.borrow().iter().for_each(|listener| listener.passed(served));
    }
}

/// A drive below.
struct GroupDrive {
    name: String,
    export: Rc<SsdExport>,
    heard: Rc<Heard>,
}

/// See the file.
pub struct GroupExport {
    drives: Vec<GroupDrive>,
    layers: Vec<Instance>,
    chain: Chain,
    front: Forwarded,
}

impl GroupExport {
    /// The drives below, by name.
    pub fn models(&self) -> impl Iterator<Item = (&str, &Rc<SsdExport>)> {
        self.drives.iter().map(|drive| (&*drive.name, &drive.export))
    }

    /// The commands that it takes.
    pub fn offers(&self) -> Offers {
        self.front.offers()
    }

    /// The layers in words, from the bottom up.
    pub fn describe(&self) -> String {
        self.chain.in_words()
    }

    /// Calls `line` with a line of text for each event of the members of its arrays from now on.
    pub fn on_member_event(&self, line: impl Fn(&str) + 'static) {
        let (line, are_several) = (Rc::new(line), self.arrays().count() > 1);
        for (layer, array) in self.arrays() {
            let of = if are_several { format!("{}: ", layer.name) } else { String::new() };
            let line = line.clone();
            figures::on_event(&array, layer.over.clone(), move |text| line(&format!("{of}{text}")));
        }
    }

    /// Checks the tables of the drives and of the layers.
    ///
    /// # Errors
    /// The problem, in one sentence.
    pub fn check(&self) -> Result<(), String> {
        let of_drives = self.drives.iter().map(|drive| (&drive.name, drive.export.ssd().check()));
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
        let names: Vec<&str> = self.models().map(|(name, _)| name).collect();
        chain::turns(&self.layers, &names)
    }

    /// The windows of the drives that are in force now.
    pub(crate) fn schedule(&self) -> Option<Schedule> {
        self.layers.iter().find_map(|layer| layer.node.schedule())
    }

    fn arrays(&self) -> impl Iterator<Item = (&Instance, Rc<Array>)> {
        self.layers.iter().filter_map(|layer| Some((layer, node::view::<Array>(&*layer.node)?)))
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
}

impl Fronted for GroupExport {
    fn front(&self) -> &dyn Connect {
        &self.front
    }
}

impl Export for GroupExport {
    /// Of the drives together; those of each drive and layer are parts.
    fn counters(&self) -> BTreeMap<&'static str, f64> {
        let mut all = BTreeMap::new();
        for (name, value) in self.drives.iter().flat_map(|drive| drive.export.counters()) {
            *all.entry(name).or_insert(0.0) += value;
        }
        all
    }

    fn parts(&self) -> Vec<(String, BTreeMap<&'static str, f64>)> {
        let of_drive = |drive: &GroupDrive| {
            let mut all = drive.export.counters();
            all.extend(figures::of_reads(&drive.heard.tail));
            (drive.name.clone(), all)
        };
        let of_layer = |layer: &Instance| (layer.name.clone(), counters(layer));
        let mut parts: Vec<_> = self.drives.iter().map(of_drive).chain(self.layers.iter().map(of_layer)).collect();
        for (name, counters) in &mut parts {
            let place = |(layer, array): (&Instance, Rc<Array>)| {
                Some((layer.over.iter().position(|over| over == name)?, array))
            };
            let above = self.arrays().find_map(place);
            above.iter().for_each(|(number, array)| counters.extend(figures::of_drive(array, *number)));
        }
        parts
    }

    fn read_only(&self) -> Option<String> {
        self.arrays().find_map(|(layer, array)| Some(format!("{}: {}", layer.name, figures::lost(&array)?)))
    }

    /// Faults go to the drive that they name, or to all of them.
    fn order(&self, order: &Order) -> Result<(), String> {
        let is_of = |name: &str, setting: &str| setting.strip_prefix(name).is_some_and(|rest| rest.starts_with('.'));
        let names: Vec<&str> = self.drives.iter().map(|drive| &*drive.name).collect();
        match order {
            Order::AddFault(text) => match fault_of(&names, text)? {
                Some((number, rule)) => self.drives[number].export.order(&Order::AddFault(rule.to_owned())),
                None => self.drives.iter().try_for_each(|drive| drive.export.order(order)),
            },
            Order::Set(setting) if setting.starts_with("array.") => self.order_arrays(setting),
            Order::Set(setting) if self.layers.iter().any(|layer| is_of(&layer.name, setting)) => {
                Err(format!("{setting}: settings of layers do not change at work"))
            }
            Order::Set(setting) if of_one(&names, setting).is_some() => {
                let (number, own) = of_one(&names, setting).expect("it was just found");
                self.drives[number].export.order(&Order::Set(own.to_owned()))
            }
            Order::Set(_) | Order::ClearFaults => self.drives.iter().try_for_each(|drive| drive.export.order(order)),
        }
    }

    /// Those of each drive, with its name.
    fn settings(&self) -> Vec<(String, String)> {
        self.drives.iter().flat_map(|drive| settings_of(&drive.name, &*drive.export)).collect()
    }

    fn faults(&self) -> Vec<FaultCount> {
        self.drives.iter().flat_map(|drive| figures::faults(&drive.name, &drive.export)).collect()
    }
}
