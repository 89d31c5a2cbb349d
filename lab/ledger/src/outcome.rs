//! The outcome of a claim: the verdict, its criteria, the figures, and the conditions of their measurement. As JSON.

use anyhow::Context as _;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::experiment::{Clock, Experiment};
use crate::figures::Results;
use crate::recorded::Recorded;
use crate::results::{Folder, Held, Inputs, this_program};
use crate::verdict::{Judgement, Published, Role, Verdict};

/// The version of the form of JSON.
pub const SCHEMA: u32 = 1;

/// What came of a claim.
#[derive(Clone)]
pub struct Outcome {
    /// The experiment.
    pub experiment: &'static Experiment,
    /// The verdict.
    pub verdict: Verdict,
    /// The reason for a miss, a missing measurement, or a failure; empty if all criteria hold.
    pub reason: String,
    /// The judged criteria; empty without figures.
    pub judgement: Judgement,
    /// The conditions of the measurement; absent without figures.
    pub circumstances: Option<Circumstances>,
    /// All figures, by run and point.
    pub results: Vec<Results>,
}

/// The conditions of a measurement.
#[derive(Clone, Debug)]
pub struct Circumstances {
    /// The inputs of the figures.
    pub inputs: Inputs,
    /// In real time: the load average of the minute before.
    pub load_before: Option<f64>,
}

impl Outcome {
    /// Of the figures of each run of all points.
    pub fn judged(
        experiment: &'static Experiment,
        results: Vec<Results>,
        inputs: Inputs,
        load_before: Option<f64>,
    ) -> Outcome {
        let (judgement, verdict, reason) = match judged(experiment, &results) {
            Ok(judgement) => {
                let (verdict, reason) = judgement.verdict();
                (judgement, verdict, reason)
            }
            Err(error) => (Judgement::default(), Verdict::Failed, format!("its figures cannot be judged: {error:#}")),
        };
        let circumstances = Some(Circumstances { inputs, load_before });
        Outcome { experiment, verdict, reason, judgement, circumstances, results }
    }

    /// Without figures.
    pub fn without(experiment: &'static Experiment, verdict: Verdict, reason: impl Into<String>) -> Outcome {
        Outcome {
            experiment,
            verdict,
            reason: reason.into(),
            judgement: Judgement::default(),
            circumstances: None,
            results: Vec::new(),
        }
    }

    /// Of the results in a folder.
    pub fn held(experiment: &'static Experiment, folder: &Folder) -> Outcome {
        let missing = |what: String| match experiment.lacks() {
            Some(lack) => format!("{what}, and cannot be measured here: {lack}"),
            None => format!("{what}; `nandscape lab run {}` measures it", experiment.claim.id),
        };
        match folder.held(experiment) {
            Held::Whole { results, inputs, load_before } => Outcome::judged(experiment, results, *inputs, load_before),
            Held::Nothing => {
                Outcome::without(experiment, Verdict::NotMeasured, missing("there are no results".to_owned()))
            }
            Held::Part { done, of } => {
                let what = format!("there are {done} of {of} points");
                Outcome::without(experiment, Verdict::NotMeasured, missing(what))
            }
        }
    }

    /// The verdict, in words. A short run cannot show that a claim is missed.
    pub fn verdict(&self) -> &'static str {
        let is_short = self.circumstances.as_ref().is_some_and(|circumstances| !circumstances.inputs.effort.is_full());
        match self.verdict {
            verdict if verdict.is_miss() && is_short => "too short to tell",
            verdict => verdict.name(self.experiment.claim.kind),
        }
    }

    /// Remarks: those of the experiment, and on the reliability of the figures.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = self.judgement.notes.clone();
        if let Some(Circumstances { inputs, .. }) = &self.circumstances {
            if !inputs.effort.is_full() {
                notes.push(format!("a short run ({}): a first look, not a reliable verdict", inputs.effort));
            }
            if inputs.program != this_program() {
                let nandscape_lab_run::Program { version, sources } = &inputs.program;
                notes.push(format!("measured by another program: version {version}, experiments {sources}"));
            }
            if inputs.machine.as_ref().is_some_and(|machine| machine.build != "release") {
                notes.push(
                    "measured in real time by a debug build, which is optimised less than a release build".to_owned(),
                );
            }
        }
        notes
    }

    /// As one JSON object.
    pub fn to_json(&self) -> Value {
        let Experiment { claim, clock, parameters, choices, .. } = self.experiment;
        let parameters = parameters
            .iter()
            .map(|parameter| json!({"what": parameter.what, "value": parameter.value, "source": parameter.source}));
        let choices =
            choices.iter().map(|choice| json!({"open": choice.open, "taken": choice.taken, "why": choice.why}));
        let points = self.results.iter().zip(1..).flat_map(|(run, number)| {
            let point =
                move |(name, figures): &(String, _)| json!({"point": name, "run": number, "figures": plain(figures)});
            run.0.iter().map(point)
        });
        let mut object = json!({
            "id": claim.id,
            "source": claim.source(),
            "clock": clock.name(),
            "check": claim.check.name(),
            claim.lead(): claim.says,
            "must_show": claim.must_show(),
            "ruling": claim.ruling,
            "verdict": self.verdict(),
            "reason": (!self.reason.is_empty()).then_some(&self.reason),
            "criteria": plain(&self.judgement.criteria),
            "notes": self.notes(),
            "parameters": parameters.collect::<Vec<_>>(),
            "choices": choices.collect::<Vec<_>>(),
            "points": points.collect::<Vec<_>>(),
        });
        if let (Some(circumstances), Some(object)) = (&self.circumstances, object.as_object_mut()) {
            circumstances.add_to(object);
        }
        object
    }
}

/// Judges all runs together. Adds the published figures, and what the rules require and no run measured.
fn judged(experiment: &Experiment, results: &[Results]) -> anyhow::Result<Judgement> {
    let mut runs = results.iter();
    let mut judgement = (experiment.judge)(runs.next().context("there are no results")?)?;
    for run in runs {
        judgement.merge((experiment.judge)(run)?);
    }
    if results.len() > 1 {
        judgement
            .notes
            .push(format!("notes and tables are of the first of {} runs; criteria are of all", results.len()));
    }
    judgement.criteria.iter_mut().for_each(|criterion| Published::mark(experiment.published, criterion));
    judgement.awaits.extend(experiment.awaits.iter().map(|run| (*run).to_owned()));
    let of_chance = judgement.criteria.iter().any(|one| one.role == Role::Judged && one.is_of_chance());
    if of_chance && results.len() < experiment.repeats() as usize {
        judgement.awaits.push(match experiment.clock {
            Clock::Virtual => format!("{} seeds, here {}", experiment.repeats(), results.len()),
            Clock::Wall => {
                format!("{} runs in turn, whose spread is known, here {}", experiment.repeats(), results.len())
            }
        });
    }
    Ok(judgement)
}

impl Circumstances {
    fn add_to(&self, object: &mut Map<String, Value>) {
        let Inputs { seed, effort, program, machine, .. } = &self.inputs;
        object.insert("seed".to_owned(), json!(seed));
        object.insert("effort".to_owned(), plain(effort));
        object.insert("program".to_owned(), plain(program));
        if let Some(machine) = machine {
            object.insert("machine".to_owned(), plain(machine));
            object.insert("load_before".to_owned(), json!(self.load_before));
        }
    }
}

fn plain(data: &impl Serialize) -> Value {
    serde_json::to_value(data).expect("plain data")
}

/// All of them as one JSON object.
pub fn to_json(outcomes: &[Outcome]) -> String {
    as_object(outcomes.iter().map(Outcome::to_json).collect())
}

/// The same with the recorded verdict of each claim.
pub fn to_json_with(outcomes: &[Outcome], recorded: &Recorded) -> String {
    let claim = |outcome: &Outcome| {
        let mut claim = outcome.to_json();
        claim["recorded_verdict"] = recorded.of(outcome.experiment.claim.id).into();
        claim
    };
    as_object(outcomes.iter().map(claim).collect())
}

fn as_object(claims: Vec<Value>) -> String {
    serde_json::to_string_pretty(&json!({"schema": SCHEMA, "claims": claims})).expect("plain data")
}
