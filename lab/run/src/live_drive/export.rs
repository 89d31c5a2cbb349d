//! A served drive as a whole: for clients, for operators, for reports, and at its end.

use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;

use nandscape_device_ssd::Ssd;
use nandscape_drive::Offers;
use nandscape_drive::layer::Shown;
use nandscape_layers_array::Schedule;
use nandscape_sim::Executor;
use nandscape_sim::units::Bytes;
use nandscape_transport_reactor::inside::{Inside, Layout};
use nandscape_transport_reactor::{Connect, Export, FaultCount, Fronted, Order, Source};

use super::lowest::{Lowest, Place};
use super::{LiveDrive, LiveSpec, LowestSpec};
use crate::chain::Section;
use crate::live::{DriveSpec, SsdExport};
use crate::record::Turns;
use crate::saved::{self, StateError};
use crate::served_array::figures;
use crate::tap::Listener;

/// The only drive of this process, and what it was made from.
pub(crate) type Only<'a> = (&'a Rc<SsdExport>, &'a DriveSpec);

impl LiveDrive {
    /// What it was made from.
    pub fn spec(&self) -> &LiveSpec {
        &self.spec
    }

    /// The name that clients use.
    pub fn name(&self) -> &str {
        &self.spec.name
    }

    /// The commands that it takes.
    pub fn offers(&self) -> Offers {
        self.offers
    }

    /// The models below its layers, by name.
    pub fn models(&self) -> impl Iterator<Item = (&str, &Rc<SsdExport>)> {
        self.tree.drives.iter().filter_map(|drive| Some((&*drive.name, drive.model()?)))
    }

    /// The model, if it is the only drive.
    pub(crate) fn only(&self) -> Option<Only<'_>> {
        match (&self.tree.only()?.at, self.spec.only()?) {
            (Place::Model(model), LowestSpec::Model(spec)) => Some((model, spec)),
            _ => None,
        }
    }

    /// The model, if clients reach it without layers.
    pub(crate) fn alone(&self) -> Option<&Rc<SsdExport>> {
        self.only().filter(|_| self.tree.layers.is_empty()).map(|(model, _)| model)
    }

    /// The name of the FTL of a host among layers, if clients reach it directly.
    pub(crate) fn lone_ftl(&self) -> Option<&'static str> {
        self.tree.ftl().filter(|_| self.tree.is_without_layers()).map(|(name, _)| name)
    }

    /// What is counted is counted from here on; `listeners` hear of the commands of each drive.
    pub(crate) fn watch(&self, listeners: Vec<Rc<dyn Listener>>) {
        self.tree.watch(listeners);
    }

    /// The part of each layer in a report, the lowest first.
    pub(crate) fn sections(&self) -> Vec<Section> {
        self.tree.sections()
    }

    /// The turns of the drives, if they take turns.
    pub(crate) fn turns(&self) -> Option<Turns> {
        self.tree.turns()
    }

    /// The windows of the drives that are in force now.
    pub(crate) fn schedule(&self) -> Option<Schedule> {
        self.tree.schedule()
    }

    /// Calls `line` with a line of text for each event of the members of its arrays from now on.
    pub fn on_member_event(&self, line: impl Fn(&str) + 'static) {
        let line = Rc::new(line);
        for array in self.tree.drives.iter().filter_map(Lowest::array) {
            let line = line.clone();
            array.on_member_event(move |text| line(text));
        }
        let are_several = self.tree.arrays().count() > 1;
        for (layer, array) in self.tree.arrays() {
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
        self.tree.check()
    }

    /// Turns its drives off in order, and closes their files.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn close(&self, executor: &mut Executor) -> Result<(), String> {
        self.tree.only().map_or(Ok(()), |only| only.close(executor))
    }

    /// Saves the state of its only drive to a file, with its layers and their contents. A run with this seed has built it, and no
    /// host is connected any more. If that succeeds, it must not be used afterwards.
    ///
    /// # Errors
    /// When it is no model, or a layer or the drive cannot come to rest, or hosts have made namespaces, or the file cannot be written.
    pub fn save(&self, seed: u64, executor: &mut Executor, path: &Path) -> Result<(), StateError> {
        let Some((model, spec)) = self.only() else {
            return Err(StateError::Drive("a state is of one drive of this process".to_owned()));
        };
        let top = self.tree.ftl().map_or(model, |(_, ftl)| ftl);
        top.check_namespaces()?;
        let (history, sim) = (spec.history_after(model, top, seed), executor.sim());
        let rested = executor.block_on(saved::at_rest(&sim, &self.tree.layers));
        let held = rested.map_err(|stalled| stalled.to_string()).and_then(|rested| rested);
        let held = held.and_then(|()| saved::held(&self.tree.layers)).map_err(StateError::Drive)?;
        let layers = (!self.spec.chain.is_empty()).then_some((&self.spec.chain, held));
        let rest = |ssd: &Ssd| executor.block_on(ssd.come_to_rest());
        saved::save(model.ssd(), model.profile(), &history, (path, layers), rest)
    }
}

/// Descriptions for users.
impl LiveDrive {
    /// Its profile, its URL, or its level.
    pub fn made_from(&self) -> String {
        match self.spec.chain.clone().take_ftl() {
            Ok(Some(layer)) if self.tree.only().is_some() => layer.profile().to_owned(),
            _ => self.spec.drives.first().map_or(String::new(), LowestSpec::made_from),
        }
    }

    /// What the command line does not describe: the drive, and each drive that its array was opened without.
    pub fn notes(&self) -> Vec<String> {
        let arrays = self.tree.drives.iter().filter_map(Lowest::array);
        let left_out = arrays.flat_map(|array| array.left_out());
        self.note().into_iter().chain(left_out.map(|line| format!("drive {}: {line}", self.name()))).collect()
    }

    fn note(&self) -> Option<String> {
        let (name, own, mut above) = (self.name(), self.note_of_drive(), self.spec.chain.clone());
        if self.tree.only().is_none() {
            let (layers, size) = (above.in_words(), size(self));
            let drives = match self.spec.drives.len() {
                1 => "one drive".to_owned(),
                count => format!("{count} drives"),
            };
            return Some(format!(
                "drive {name} is {layers} over {drives} of {}, from the bottom up; {size}; what it holds ends with this process",
                self.made_from(),
            ));
        }
        let _ = above.take_ftl();
        if above.is_empty() {
            return own;
        }
        let of_drive = own.map_or(String::new(), |note| format!("; {note}"));
        Some(format!("over drive {name} lies {}; {}{of_drive}", above.in_words(), size(self)))
    }

    /// What the command line does not describe of its only drive, and of the FTL of a host over it.
    fn note_of_drive(&self) -> Option<String> {
        let (name, drive) = (self.name(), self.tree.only()?);
        if let Some((_, ftl)) = self.tree.ftl() {
            let (flash, unless) = match self.spec.only()? {
                LowestSpec::Remote(spec) => (spec.target.to_string(), ""),
                LowestSpec::Model(spec) => (spec.profile_name.clone(), ", unless --save-state saves it"),
                LowestSpec::Unreadable(..) | LowestSpec::Array(_) => return None,
            };
            let unmarked = match drive.at {
                Place::Flash(_, false) => {
                    "; the remote drive has no reservations, so another FTL on it is not detected"
                }
                _ => "",
            };
            return Some(format!(
                "drive {name} is an FTL of this process over {flash}: {}; what it holds ends with this process{unless}{unmarked}",
                size(&**ftl)
            ));
        }
        match &drive.at {
            Place::Model(_) | Place::Flash(..) => None,
            Place::Remote(far) => {
                Some(format!("drive {name} is {}: {}; {}", far.url(), far.connection().identity(), size(self)))
            }
            Place::Array(array) => Some(format!("drive {name} is an array: {}; {}", array.describe(), size(&**array))),
        }
    }
}

/// Capacity and format in words.
fn size(of: &dyn Connect) -> String {
    let info = of.info();
    format!("{} in blocks of {} bytes", Bytes(info.bytes()), info.lba_bytes)
}

impl Fronted for LiveDrive {
    fn front(&self) -> &dyn Connect {
        &*self.front
    }
}

impl Export for LiveDrive {
    fn counters(&self) -> BTreeMap<&'static str, f64> {
        self.tree.counters()
    }

    fn parts(&self) -> Vec<(String, BTreeMap<&'static str, f64>)> {
        self.tree.parts()
    }

    fn layers(&self) -> Vec<(String, Vec<Shown>)> {
        self.tree.shown()
    }

    fn read_only(&self) -> Option<String> {
        self.tree.read_only()
    }

    fn layout(&self) -> Option<Layout> {
        self.tree.only()?.shown()?.layout()
    }

    fn inside(&self, with_wear: bool) -> Option<Inside> {
        self.tree.only()?.shown()?.inside(with_wear)
    }

    fn order(&self, order: &Order) -> Result<(), String> {
        self.tree.order(order)
    }

    fn sources(&self) -> Vec<Rc<dyn Source>> {
        self.tree.sources()
    }

    fn faults(&self) -> Vec<FaultCount> {
        self.tree.faults()
    }

    fn settings(&self) -> Vec<(String, String)> {
        self.tree.settings()
    }
}
