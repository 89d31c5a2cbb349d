//! What a run leaves behind: the report of a lone drive, or the figures of layers over drives with the report of each drive.

use nandscape_lab_workload::Direction;
use nandscape_sim::Histogram;
use nandscape_wire_nvme::Status;
use serde_json::{Value, json};

use crate::chain::{LayerSettings, names_of_members};
use crate::damage::is_for_faults;
use crate::flow::FlowReport;
use crate::host_report::HostReport;
use crate::latency::Latencies;
use crate::percentile::Percentile;
use crate::pressure::Arrivals;
use crate::record::HostDetails;
use crate::report::Report;
use crate::rig::DriveFinished;
use crate::search::Measured;
use crate::simulation::{RunError, Simulation};

/// What a run leaves behind.
pub struct Finished {
    /// Its figures.
    pub figures: Figures,
    /// Every event, as a Chrome trace, if that was wanted.
    pub trace: Option<String>,
    /// Whether the state after the run was saved, if it was to be.
    pub saved: Result<(), RunError>,
    pub(crate) latencies: Latencies,
}

/// The figures of a run, in one of two forms.
pub enum Figures {
    /// Those of a lone drive, whose report has what the workload saw.
    Drive(Box<DriveFinished>),
    /// Those of layers over drives, or of several drives.
    Chain(Box<ChainFinished>),
}

/// The figures of layers over drives, or of several drives.
pub struct ChainFinished {
    /// The view of the workload.
    pub host: HostReport,
    /// The view of each drive: its own commands, counters and timeline.
    pub drives: Vec<DriveFinished>,
    /// What was recorded above the drives, if that was wanted.
    pub details: Option<HostDetails>,
}

impl Measured for Finished {
    fn latencies(&self, direction: Direction) -> &Histogram {
        self.latency(direction)
    }

    fn arrivals(&self) -> Option<&Arrivals> {
        match &self.figures {
            Figures::Drive(drive) => drive.report.arrivals.as_ref(),
            Figures::Chain(chain) => chain.host.arrivals.as_ref(),
        }
    }
}

impl Finished {
    /// The drives, at least one.
    pub fn drives(&self) -> &[DriveFinished] {
        match &self.figures {
            Figures::Drive(drive) => std::slice::from_ref(drive),
            Figures::Chain(chain) => &chain.drives,
        }
    }

    /// The same, to be completed.
    pub fn drives_mut(&mut self) -> &mut [DriveFinished] {
        match &mut self.figures {
            Figures::Drive(drive) => std::slice::from_mut(drive),
            Figures::Chain(chain) => &mut chain.drives,
        }
    }

    /// The report of the drive, or of the first of several.
    pub fn report(&self) -> &Report {
        &self.drives()[0].report
    }

    /// The drive, or the first of several.
    pub fn into_drive(self) -> DriveFinished {
        match self.figures {
            Figures::Drive(drive) => *drive,
            Figures::Chain(mut chain) => chain.drives.swap_remove(0),
        }
    }

    /// The figures of layers or of several drives; `None` of a lone drive.
    pub fn chain(&self) -> Option<&ChainFinished> {
        match &self.figures {
            Figures::Drive(_) => None,
            Figures::Chain(chain) => Some(chain),
        }
    }

    /// The same, taken out.
    pub fn into_chain(self) -> Option<ChainFinished> {
        match self.figures {
            Figures::Drive(_) => None,
            Figures::Chain(chain) => Some(*chain),
        }
    }

    /// The latencies of one direction, as the workload saw them.
    pub fn latency(&self, direction: Direction) -> &Histogram {
        self.latencies.of(direction)
    }

    /// Mean latency of all requests in microseconds; `None` without any.
    pub fn mean_us(&self) -> Option<f64> {
        self.latencies.mean_us()
    }

    /// Adds percentiles to the latencies that the workload saw.
    pub fn choose_percentiles(&mut self, chosen: &[Percentile]) {
        let figures = match &mut self.figures {
            Figures::Drive(drive) => &mut drive.report.latency_us,
            Figures::Chain(chain) => &mut chain.host.latency_us,
        };
        self.latencies.choose(figures, chosen);
    }

    /// Each job, where there are several.
    pub fn flows(&self) -> &[FlowReport] {
        match &self.figures {
            Figures::Drive(drive) => &drive.report.flows,
            Figures::Chain(chain) => &chain.host.flows,
        }
    }

    /// Adds the mean latency that each job has alone, in the order of the jobs.
    pub fn compare_with_alone(&mut self, alone_mean_us: &[Option<f64>]) {
        match &mut self.figures {
            Figures::Drive(drive) => drive.report.compare_with_alone(alone_mean_us),
            Figures::Chain(chain) => chain.host.compare_with_alone(alone_mean_us),
        }
    }

    /// What the figures alone do not show.
    pub fn notes(&self) -> &[String] {
        match &self.figures {
            Figures::Drive(drive) => &drive.report.notes,
            Figures::Chain(chain) => &chain.host.notes,
        }
    }

    /// Whether the user ended the run before its limit.
    pub fn is_interrupted(&self) -> bool {
        match &self.figures {
            Figures::Drive(drive) => drive.report.interrupted,
            Figures::Chain(chain) => chain.host.interrupted,
        }
    }

    /// Requests that failed because of planned faults or of wear, and for other reasons.
    pub fn failures(&self) -> (u64, u64) {
        match &self.figures {
            Figures::Drive(drive) => drive.report.failures(),
            Figures::Chain(chain) => chain.failures(),
        }
    }

    /// All figures of this run of `simulation` as one object. `set` are the changed keys as given; `command` ran it.
    pub fn to_value(&mut self, simulation: &Simulation, set: &[String], command: Option<&str>) -> Value {
        match &mut self.figures {
            Figures::Drive(drive) => {
                let report = &mut drive.report;
                report.inputs.set = set.to_vec();
                report.host.command = command.map(str::to_owned);
                json!(report)
            }
            Figures::Chain(chain) => {
                let (profile, settings) = (&simulation.drives[0].profile.name, LayerSettings::of(&simulation.layers));
                json!(chain.whole(profile, &settings, set, command))
            }
        }
    }
}

impl ChainFinished {
    /// Requests that failed because of planned faults or of wear, and for other reasons.
    pub fn failures(&self) -> (u64, u64) {
        let damaged = self.drives.iter().filter(|drive| drive.report.damage.is_some()).count();
        // What an array makes good must not fail.
        let tolerated = self.host.array.as_ref().map_or(0, |array| array.tolerates);
        // It cannot mask a power cut: commands in progress end.
        let is_power_cut = |status: &str| damaged > 0 && status == Status::ABORTED_POWER_LOSS.to_string();
        let is_planned = |status: &str| (damaged > tolerated && is_for_faults(status)) || is_power_cut(status);
        let sum = |wanted: bool| {
            let errors = self.host.errors.iter().filter(|(status, _)| is_planned(status) == wanted);
            errors.map(|(_, count)| count).sum()
        };
        (sum(true), sum(false))
    }
}

/// Notes of several drives by name. A note of several drives appears once, for all drives or with the names of its drives. Notes
/// of one drive stay unchanged.
pub fn notes_of_each(drives: &[(&str, &[String])]) -> Vec<String> {
    let mut told: Vec<(&String, Vec<&str>)> = Vec::new();
    for (name, notes) in drives {
        for note in *notes {
            match told.iter_mut().find(|(other, _)| *other == note) {
                Some((_, names)) => names.push(name),
                None => told.push((note, vec![name])),
            }
        }
    }
    let text = |(note, names): (&String, Vec<&str>)| match (names.len(), drives.len()) {
        (_, 1) => note.clone(),
        (of, all) if of == all => format!("each of {all} drives: {note}"),
        (1, _) => format!("drive {}: {note}", names[0]),
        _ => format!("drives {}: {note}", names.join(", ")),
    };
    told.into_iter().map(text).collect()
}

/// What the drives note, and the lowest array.
pub(crate) fn notes_of_layers(host: &HostReport, drives: &[DriveFinished]) -> Vec<String> {
    let refused = host.array.as_ref().filter(|array| array.windows_refused).map(|_| {
        "the drives have refused the array's windows, and collect at any time: drives with ftl.kind=\"page\" have windows, and \
         array.ranges has to be 1 or their ftl.windows.ranges"
            .to_owned()
    });
    let of_drives: Vec<_> = drives.iter().map(|drive| (&*drive.name, &drive.report.notes[..])).collect();
    let mut notes: Vec<String> = refused.into_iter().chain(notes_of_each(&of_drives)).collect();
    if let Some(array) = &host.array {
        let names: Vec<&str> = drives.iter().map(|drive| &*drive.name).collect();
        let members = names_of_members(&host.chain, &names);
        notes.extend(array.failures(&members));
        notes.extend(array.short_of_a_cycle(host.virtual_s));
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_said_once_with_the_drives_that_it_is_of() {
        let notes = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let (both, more) = (notes(&["small"]), notes(&["small", "old"]));
        let three = notes_of_each(&[("a", &both), ("b", &more), ("c", &more)]);
        assert_eq!(three, ["each of 3 drives: small", "drives b, c: old"]);
        assert_eq!(notes_of_each(&[("a", &more), ("b", &both)]), ["each of 2 drives: small", "drive a: old"]);
        assert_eq!(notes_of_each(&[("a", &more)]), ["small", "old"]);
    }
}
