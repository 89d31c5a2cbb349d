//! A served array as clients and operators see it.

use std::collections::BTreeMap;
use std::rc::Rc;

use nandscape_drive::Offers;
use nandscape_host_driver::nvme_tcp::NvmeTcp;
use nandscape_layers_array::{Array, Recovered, counters};
use nandscape_sim::{Executor, Span};
use nandscape_transport_reactor::{Connect, Export, FaultCount, Fronted, Order, Source};
use nandscape_wire_nvme::Status;

use super::figures;
use super::member::Under;
use super::orders::{check_unnamed, fault_of, obey, of_one, settings_of};
use crate::alone::UNMARKED;
use crate::array_members::in_words;
use crate::forwarded::Forwarded;
use crate::live::SsdExport;
use crate::live_drive::close;
use crate::wall::settle;

/// How long drives of other servers may answer nothing at the end.
const LAST_PATIENCE: Span = Span::from_s(5);
/// An array behind controllers of this process.
pub struct ArrayExport {
    pub(super) array: Rc<Array>,
    pub(super) under: Vec<Under>,
    pub(super) front: Forwarded,
    /// The remote drives that keep no mark of an array.
    pub(super) unmarked: Vec<String>,
}

impl ArrayExport {
    /// The array.
    pub fn array(&self) -> &Rc<Array> {
        &self.array
    }

    /// The commands that it takes.
    pub fn offers(&self) -> Offers {
        self.front.offers()
    }

    /// The models among its drives, by name.
    pub fn models(&self) -> impl Iterator<Item = (&str, &Rc<SsdExport>)> {
        self.under.iter().filter_map(|drive| Some((drive.name(), drive.model()?)))
    }

    /// The array in words: technique, chunks, drives, and members that are missing.
    pub fn describe(&self) -> String {
        let (config, missing) = (self.array.config(), self.array.missing());
        let drives: Vec<&str> = self.under.iter().map(Under::name).collect();
        let named = |numbers: &[usize]| numbers.iter().map(|number| drives[*number]).collect::<Vec<_>>().join(", ");
        let is_member = |number: &usize| self.array.member_of(*number).is_some();
        let members: Vec<usize> = (0..drives.len()).filter(is_member).collect();
        let (spares, recovered) = (self.array.spares(), self.array.recovered());
        let mut text = format!(
            "{} of {}, technique {}, chunks of {} bytes",
            self.array.shape(),
            named(&members),
            config.technique.name(),
            config.chunk
        );
        if !spares.is_empty() {
            text += &format!(", with {} as spare", named(&spares));
        }
        if let Some(chain) = self.under.iter().map(Under::chain).find(|chain| !chain.is_empty()) {
            text += &format!(", over each drive {}", chain.in_words());
        }
        if recovered != Recovered::default() {
            let Recovered { regions, writes } = recovered;
            text += &format!(
                "; what was last under way has been made good: {regions} regions that were being written are consistent, and {writes} writes of the \
                 journal carried out"
            );
        }
        if !missing.is_empty() {
            text += &format!("; it is degraded, {} missing", in_words(&missing));
        }
        let deaf: Vec<&str> = self.under.iter().filter(|drive| !drive.fails_reads()).map(Under::name).collect();
        if config.technique.asks_to_fail() && !deaf.is_empty() {
            text += &format!("; reads wait in {}, which do not fail them as the technique asks", deaf.join(", "));
        }
        for name in &self.unmarked {
            text += &format!("; drive {name}: {UNMARKED}");
        }
        for drive in self.array.older() {
            let name = drives[drive];
            text += &format!(
                "; {name} is as it was at an earlier time, as the array went on without it or it was put back: what it holds is given up"
            );
        }
        if let Some((member, _)) = self.array.rebuilding() {
            let drive = self.array.drives().get(member).map_or("?", |drive| drives[*drive]);
            text += &format!("; member {member} is being rebuilt on {drive}, in place of whatever that held");
        }
        text
    }

    /// The drives that were left out when the array was opened, and why.
    pub fn left_out(&self) -> Vec<String> {
        let line = |(number, status): (usize, Status)| {
            let drive = &self.under[number];
            let unread = || format!("its records cannot be read ({})", status.name());
            let why = drive.problem().map_or_else(unread, str::to_owned);
            format!("{} is left out, and is no spare: {why}", drive.name())
        };
        self.array.unread().into_iter().map(line).collect()
    }

    /// Ends the array in order, so that it opens without a member, too. Drives of other servers get a few seconds for it; where they do not
    /// answer, the array is as after a crash.
    fn shut_down(&self, executor: &mut Executor) {
        let array = self.array.clone();
        // One that is not there would answer nothing, and keep the others waiting.
        let is_there = |number: &usize| self.under[*number].connection().is_none_or(|drive| !drive.is_lost());
        let there: Vec<usize> = (0..self.under.len()).filter(is_there).collect();
        let task = async move {
            array.shut_down().await;
            if array.turns().is_some() {
                array.end_windows(&there).await;
            }
        };
        let remote: Vec<Rc<NvmeTcp>> =
            self.under.iter().filter_map(Under::connection).filter(|drive| !drive.is_lost()).collect();
        // Whatever keeps it from its end, the next start makes good.
        match remote.is_empty() {
            true => drop(executor.block_on(task)),
            false => drop(settle(executor, ("the array", LAST_PATIENCE), &remote, task)),
        }
    }

    /// Checks the tables of its models.
    ///
    /// # Errors
    /// The problem, in one sentence.
    pub fn check(&self) -> Result<(), String> {
        let checked = |(name, model): (&str, &Rc<SsdExport>)| {
            model.ssd().check().map_err(|problem| format!("drive {name}: {problem}"))
        };
        self.models().try_for_each(checked)
    }

    /// Ends the array, turns its models off, and closes their files.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn close(&self, executor: &mut Executor) -> Result<(), String> {
        self.shut_down(executor);
        // All of them are to be closed.
        let closed: Vec<_> = self.models().map(|(name, model)| close(executor, name, model)).collect();
        closed.into_iter().collect()
    }

    /// Calls `line` with a line of text for each event of the members from now on.
    pub fn on_member_event(&self, line: impl Fn(&str) + 'static) {
        figures::on_event(&self.array, self.names().into_iter().map(str::to_owned).collect(), line);
    }

    fn names(&self) -> Vec<&str> {
        self.under.iter().map(Under::name).collect()
    }

    /// Faults go to the drive that they name, or to all models.
    fn add_fault(&self, text: &str) -> Result<(), String> {
        match fault_of(&self.names(), text)? {
            Some((number, rule)) => self.under[number].order(&Order::AddFault(rule.to_owned())),
            None => self.to_models(&Order::AddFault(text.to_owned())),
        }
    }

    fn to_models(&self, order: &Order) -> Result<(), String> {
        self.under.iter().filter(|drive| drive.model().is_some()).try_for_each(|drive| drive.order(order))
    }

    fn set(&self, setting: &str) -> Result<(), String> {
        if let Some((number, own)) = of_one(&self.names(), setting) {
            return self.under[number].order(&Order::Set(own.to_owned()));
        }
        check_unnamed(&self.names(), setting)?;
        let is_absent = |number: usize| self.under[number].problem().is_some();
        let obeyed = obey(&self.array, &self.names(), is_absent, setting);
        obeyed.unwrap_or_else(|| self.to_models(&Order::Set(setting.to_owned())))
    }
}

impl Fronted for ArrayExport {
    fn front(&self) -> &dyn Connect {
        &self.front
    }
}

impl Export for ArrayExport {
    fn counters(&self) -> BTreeMap<&'static str, f64> {
        counters(&self.array).into_iter().collect()
    }

    fn parts(&self) -> Vec<(String, BTreeMap<&'static str, f64>)> {
        let part = |(number, drive): (usize, &Under)| {
            let mut counters = drive.counters();
            counters.extend(figures::of_drive(&self.array, number));
            (drive.name().to_owned(), counters)
        };
        let of_layers = self.under.iter().enumerate().flat_map(|(number, drive)| drive.parts(number, self.under.len()));
        self.under.iter().enumerate().map(part).chain(of_layers).collect()
    }

    fn read_only(&self) -> Option<String> {
        figures::lost(&self.array)
    }

    fn order(&self, order: &Order) -> Result<(), String> {
        match order {
            Order::AddFault(text) => self.add_fault(text),
            Order::ClearFaults => self.to_models(order),
            Order::Set(setting) => self.set(setting),
        }
    }

    fn sources(&self) -> Vec<Rc<dyn Source>> {
        self.under.iter().flat_map(Under::sources).collect()
    }

    /// Those of each model, with its name.
    fn settings(&self) -> Vec<(String, String)> {
        let models = self.under.iter().filter_map(|drive| Some((drive.name(), drive.model()?)));
        models.flat_map(|(name, model)| settings_of(name, model.settings())).collect()
    }

    fn faults(&self) -> Vec<FaultCount> {
        self.under.iter().flat_map(Under::faults).collect()
    }
}
