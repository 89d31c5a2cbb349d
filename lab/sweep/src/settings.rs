//! A drive, a workload and an initial state, changed key by key, and the resulting inputs of a point.
//!
//! A key is one of `drive`, `precondition`, `precondition_workload`, `from_state`, `no_delay`, `workload`, `percentiles`, `policies`, `trace`
//! and `trace.KEY`; a word of a workload (`iodepth`), of all its jobs or of one (`job.NAME.iodepth`); or a key of the drive's profile
//! (`ftl.gc.victim`), faults included (`faults`).

use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;

use nandscape_device_media::Rule;
use nandscape_device_ssd::Profile as DriveProfile;
use nandscape_host_path::{Config as HostConfig, Profile};
use nandscape_lab_run::chain::Chain;
use nandscape_lab_run::{FromState, Percentile, Precondition, StateFile};
use nandscape_lab_workload::parse_table;
use nandscape_layers_array::{Config, Shape};
use toml::Table;

use crate::error::SweepError;
use crate::layers::{self, LayerInputs};
use crate::point::{Drive, HostInputs, Inputs};
use crate::spec::WorkloadFrom;
use crate::start::Load;
use crate::trace_keys::{self, TraceKeys};
use crate::value::Value;
use crate::workload_table;

/// The settings of a point.
#[derive(Clone)]
pub(crate) struct Settings {
    /// The profile; left out, the default one or that of the saved state.
    drive: Option<String>,
    /// Changes of the profile, `KEY=VALUE` each.
    changes: Vec<String>,
    /// Layers over the drives, and changes of their settings, `NAME.KEY=VALUE` each.
    chain: Chain,
    layer_changes: Vec<String>,
    /// Faults of one of several drives: its name, and the rule.
    drive_faults: Vec<(String, String)>,
    /// The host, and changes of its settings, `host.KEY=VALUE` each.
    host: Option<String>,
    host_changes: Vec<String>,
    precondition: Option<Precondition>,
    /// The load of `precondition = "load"`.
    precondition_workload: Option<Load>,
    /// The saved state that the drive begins in.
    from_state: Option<Rc<StateFile>>,
    no_delay: bool,
    workload_name: String,
    workload: Table,
    /// Whether a workload was given, by name, path or keys of a file.
    has_workload: bool,
    /// The trace, in place of the workload.
    trace: Option<TraceKeys>,
    /// Percentiles in addition to those of every report.
    percentiles: Vec<Percentile>,
    takes_policies: bool,
    /// Policies of the caller, by the text by which they are known.
    policies: Option<String>,
}

/// Profiles that were read, by name or path.
pub(crate) type Profiles = BTreeMap<String, DriveProfile>;

impl Settings {
    /// The default drive, full, under a workload.
    pub(crate) fn new(workload: Option<&WorkloadFrom>, takes_policies: bool) -> Result<Settings, SweepError> {
        let has_workload = workload.is_some();
        let (workload_name, workload) = match workload {
            Some(from) => workload_table::of(from)?,
            None => (String::new(), workload_table::empty()),
        };
        Ok(Settings {
            drive: None,
            changes: Vec::new(),
            chain: Chain::default(),
            layer_changes: Vec::new(),
            drive_faults: Vec::new(),
            host: None,
            host_changes: Vec::new(),
            precondition: None,
            precondition_workload: None,
            from_state: None,
            no_delay: false,
            workload_name,
            workload,
            has_workload,
            trace: None,
            percentiles: Vec::new(),
            takes_policies,
            policies: None,
        })
    }

    /// Sets a key. `workload` comes before the words that change it.
    ///
    /// # Errors
    /// When the key or its value is none.
    pub(crate) fn set(&mut self, key: &str, value: &Value) -> Result<(), SweepError> {
        let wrong = |problem: String| SweepError::new(format!("{key} = {}", value.text()), problem);
        match key {
            "drive" => self.drive = Some(value.text()),
            "array" => self.chain = shape(&value.text()).map_err(wrong)?,
            "over" => self.chain = value.text().parse().map_err(wrong)?,
            "host" => self.host = Some(value.text()),
            key if HostConfig::is_key(key) => {
                let change = format!("{key}={}", value.text());
                HostConfig::default().set(&change).map_err(|error| SweepError::new(key, after_key(&error)))?;
                self.host_changes.push(change);
            }
            key if self.chain.is_key(key) => {
                let change = format!("{key}={}", value.text());
                if Config::is_key(key) {
                    layers::check_setting(&change).map_err(|problem| SweepError::new(key, problem))?;
                }
                self.layer_changes.push(change);
            }
            "precondition" => self.precondition = Some(precondition(&value.text()).map_err(wrong)?),
            "precondition_workload" | "precondition-workload" => {
                let (name, table) = workload_table::of(&WorkloadFrom::Named(value.text()))?;
                let text = toml::to_string(&table).expect("a table of plain values");
                self.precondition_workload = Some(Load { name, text });
            }
            "from_state" | "from-state" => {
                let file = StateFile::open(Path::new(&value.text()));
                self.from_state = Some(Rc::new(file.map_err(|error| SweepError::new("from_state", error))?));
            }
            "no_delay" | "no-delay" => {
                self.no_delay = value.0.as_bool().ok_or_else(|| wrong("true and false are valid".to_owned()))?;
            }
            "workload" => {
                self.has_workload = true;
                (self.workload_name, self.workload) = workload_table::of(&WorkloadFrom::Named(value.text()))?;
            }
            "trace" => self.trace = Some(TraceKeys::of(value.text())),
            key if trace_keys::is_key(key) => {
                let trace = self.trace.as_mut().ok_or_else(|| wrong("give trace = FILE, too".to_owned()))?;
                trace.set(key, value.text()).map_err(wrong)?;
            }
            "percentiles" => self.percentiles = percentiles(value).map_err(wrong)?,
            "policies" if self.takes_policies => self.policies = Some(value.text()),
            "policies" => {
                return Err(wrong(
                    "policies are functions, which nandscape.sweep of the Python package takes".to_owned(),
                ));
            }
            "seed" | "seeds" => return Err(wrong("seeds are given by seeds = [1, 2] or --seeds".to_owned())),
            key if workload_table::is_key(key) => workload_table::set(&mut self.workload, key, value).map_err(wrong)?,
            // A separate rule, or a list of rules.
            "fault" if layers::of_one_drive(&value.text()).is_some() => {
                let text = value.text();
                let (name, rule) = layers::of_one_drive(&text).expect("it was just found");
                layers::check_rule(rule).map_err(wrong)?;
                self.drive_faults.push((name.to_owned(), rule.to_owned()));
            }
            "fault" => self.changes.push(format!("faults=[{}]", rule(value).map_err(wrong)?)),
            key => {
                if let Some(word) = misspelt(key) {
                    let problem = format!(
                        "no such key; did you mean {word}? Options of workloads and keys of drives, see `nandscape drives keys`, are valid"
                    );
                    return Err(wrong(problem));
                }
                self.changes.push(format!("{key}={}", value.0));
            }
        }
        Ok(())
    }

    /// Reads the trace, if there is one.
    ///
    /// # Errors
    /// When it is none, or there is a workload besides.
    pub(crate) fn read_trace(&mut self) -> Result<(), SweepError> {
        let Some(trace) = &mut self.trace else { return Ok(()) };
        let wrong = |problem: String| SweepError::new(format!("trace = {}", trace.path), problem);
        if self.has_workload {
            return Err(wrong("there is a workload besides; choose one".to_owned()));
        }
        let mut read = trace.clone();
        read.take(&self.workload).and_then(|()| read.read()).map_err(wrong)?;
        *trace = read;
        Ok(())
    }

    /// Refuses keys of the state at the start that contradict each other.
    ///
    /// # Errors
    /// Which ones do.
    pub(crate) fn check_start(&self) -> Result<(), SweepError> {
        let wrong = |key: &str, problem: &str| Err(SweepError::new(key, problem));
        self.check_layers()?;
        match (&self.from_state, self.precondition, &self.precondition_workload) {
            (Some(_), Some(_), _) => wrong("from_state", "there is precondition besides; choose one"),
            (_, state, Some(_)) if state != Some(Precondition::Load) => {
                wrong("precondition_workload", "it is for precondition = \"load\": give that too, or leave it out")
            }
            _ => Ok(()),
        }
    }

    /// Refuses keys of layers without any, and functions with layers, which run in other processes as well.
    fn check_layers(&self) -> Result<(), SweepError> {
        if self.has_layers() {
            let problem = "it is of one drive, and there are layers";
            return self.policies.as_ref().map_or(Ok(()), |_| Err(SweepError::new("policies", problem)));
        }
        if let Some(change) = self.layer_changes.first() {
            let key = change.split('=').next().unwrap_or_default();
            let problem = "there is no such layer; give array = LEVEL:MEMBERS, such as raid5:4, or over = \"cache\"";
            return Err(SweepError::new(key, problem));
        }
        match self.drive_faults.first() {
            Some((name, rule)) => {
                let problem = "there is one drive, and a RULE alone is for it; NAME=RULE is for drives of an array";
                Err(SweepError::new(format!("fault = {name}={rule}"), problem))
            }
            None => Ok(()),
        }
    }

    /// The layers that are given, or else those of a saved state.
    fn given_chain(&self) -> &Chain {
        let of_file = self.from_state.as_ref().and_then(|file| file.chain()).filter(|_| self.chain.layers.is_empty());
        of_file.unwrap_or(&self.chain)
    }

    /// Whether there are layers: a setting of a block layer suffices.
    fn has_layers(&self) -> bool {
        !self.given_chain().layers.is_empty() || self.layer_changes.iter().any(|change| change.starts_with("block."))
    }

    /// The layers of a point whose drives are these, if there are any; the error is that of layers that cannot be.
    fn layers(&self, drive: &Drive) -> Result<Option<LayerInputs>, String> {
        if !self.has_layers() {
            return Ok(None);
        }
        let mut chain = self.given_chain().clone();
        let others = chain.take_with_block(&self.layer_changes)?;
        if self.no_delay {
            chain.without_delay();
        }
        if let Some(change) = others.first() {
            return Err(format!("{change}: there is no such layer over the drives; they are {chain}"));
        }
        let layers = LayerInputs { chain, faults: self.drive_faults.clone() };
        let drives = layers.drives(drive)?;
        if let Some(file) = &self.from_state {
            let drives: Vec<_> = drives.iter().collect();
            let fits = file.check_fits_layers(&layers.chain.resolve()?, &drives);
            fits.map_err(|error| format!("from_state: {error}"))?;
        }
        Ok(Some(layers))
    }

    /// The host of a point, if there is one.
    fn host(&self) -> Result<Option<HostInputs>, SweepError> {
        let Some(name) = &self.host else {
            let problem = "no host is given; give host = \"server\", or another of `nandscape hosts`";
            let change = self.host_changes.first().and_then(|change| change.split('=').next());
            return change.map_or(Ok(None), |key| Err(SweepError::new(key, problem)));
        };
        let mut profile = Profile::load(name).map_err(|error| SweepError::new("host", error))?;
        profile.set_all(&self.host_changes).map_err(|error| SweepError::new(format!("host = {name}"), error))?;
        let settings = profile.config.settings().into_iter().map(|(key, value)| format!("{key}={value}"));
        Ok(Some(HostInputs { name: profile.name, settings: settings.collect() }))
    }

    /// The drive's profile as written, with the values that were chosen when it was saved.
    fn profile(&self, profiles: &mut Profiles) -> Result<(DriveProfile, Vec<String>), SweepError> {
        if let (None, Some(file)) = (&self.drive, &self.from_state) {
            let profile = file.profile().map_err(|error| SweepError::new("from_state", error))?;
            return Ok((profile, file.notes().to_vec()));
        }
        let name = self.drive.as_deref().unwrap_or("default");
        if !profiles.contains_key(name) {
            let loaded = DriveProfile::load(name).map_err(|error| SweepError::new(error.origin, error.problem))?;
            profiles.insert(name.to_owned(), loaded);
        }
        Ok((profiles[name].clone(), Vec::new()))
    }

    /// The name of the workload, which is checked.
    fn checked_workload(&self) -> Result<String, SweepError> {
        if let Some(trace) = &self.trace {
            return Ok(trace.path.clone());
        }
        let workload = parse_table(self.name_of_workload(), self.workload.clone());
        workload
            .map(|workload| workload.name)
            .map_err(|error| SweepError { origin: error.origin, problem: error.problem })
    }

    /// The inputs of a point with these settings; the second error is that of a drive that cannot be.
    ///
    /// # Errors
    /// When a key or a value is none.
    pub(crate) fn inputs(&self, seed: u64, profiles: &mut Profiles) -> Result<Result<Inputs, String>, SweepError> {
        let wrong = |origin: String, problem: String| SweepError { origin, problem };
        let (mut profile, mut notes) = self.profile(profiles)?;
        profile.set_all(&self.changes).map_err(|error| wrong(error.origin, error.problem))?;
        let workload_name = self.checked_workload()?;
        let resolved = match profile.resolve() {
            Ok(resolved) if self.no_delay => resolved.without_delay(),
            Ok(resolved) => resolved,
            Err(error) => return Ok(Err(error.to_string())),
        };
        let from_state = self.from_state.as_deref();
        let of_one = from_state.filter(|_| !self.has_layers());
        let fits = of_one.map_or(Ok(()), |file| file.check_fits(&resolved));
        fits.map_err(|error| SweepError::new("from_state", error))?;
        notes.retain(|note| !resolved.notes.contains(note));
        notes.extend_from_slice(&resolved.notes);
        let drive = Drive { name: resolved.name.clone(), keys: resolved.to_toml(), notes };
        let layers = match self.layers(&drive) {
            Ok(layers) => layers,
            Err(problem) => return Ok(Err(problem)),
        };
        Ok(Ok(Inputs {
            drive,
            set: self.changes.iter().chain(&self.layer_changes).chain(&self.host_changes).cloned().collect(),
            layers,
            host: self.host()?,
            workload_name,
            workload: match self.trace {
                Some(_) => String::new(),
                None => toml::to_string(&self.workload).expect("a table of plain values"),
            },
            trace: self.trace.clone(),
            percentiles: self.percentiles.iter().map(Percentile::to_string).collect(),
            precondition: from_state
                .map(|file| file.history().precondition)
                .or(self.precondition)
                .unwrap_or(Precondition::Full),
            precondition_workload: self.precondition_workload.clone(),
            from_state: from_state.map(FromState::of),
            policies: self.policies.clone(),
            seed,
        }))
    }

    /// The workload's name in reports: its own, or the pattern of its first job.
    fn name_of_workload(&self) -> &str {
        let pattern = || self.workload.get("job")?.get(0)?.get("rw")?.as_str();
        if self.workload_name.is_empty() { pattern().unwrap_or("workload") } else { &self.workload_name }
    }
}

/// What is wrong with a setting, without its key.
fn after_key(error: &nandscape_host_path::ConfigError) -> String {
    let text = error.to_string();
    text.split_once(": ").map_or_else(|| text.clone(), |(_, problem)| problem.to_owned())
}

/// An array of this level with so many members.
fn shape(text: &str) -> Result<Chain, String> {
    text.parse::<Shape>().map_err(|error| error.to_string())?.to_string().parse()
}

/// A state at the start by its name.
fn precondition(text: &str) -> Result<Precondition, String> {
    let states = Precondition::ALL.into_iter().chain([("load", Precondition::Load)]);
    let found = states.into_iter().find(|(name, _)| *name == text).map(|(_, state)| state);
    found.ok_or_else(|| "none, full, steady and load are valid".to_owned())
}

/// Percentiles as a list, or as text with commas.
fn percentiles(value: &Value) -> Result<Vec<Percentile>, String> {
    let texts: Vec<String> = match &value.0 {
        toml::Value::Array(list) => list.iter().map(|one| Value(one.clone()).text()).collect(),
        _ => value.text().split(',').map(str::to_owned).collect(),
    };
    texts.iter().map(|text| text.parse().map_err(|error| format!("{error}"))).collect()
}

/// A fault rule as an element of a list.
fn rule(value: &Value) -> Result<String, String> {
    let rule: Rule = value.text().parse().map_err(|error| format!("{error}"))?;
    // A rule contains no quotation mark.
    Ok(format!("\"{rule}\""))
}

/// The option of a workload that an unknown key stands for. `None` if it resembles a key of drives as much, or nothing.
fn misspelt(key: &str) -> Option<&'static str> {
    let (word, likeness) = workload_table::nearest(key);
    let of_drive = |doc: &nandscape_device_ssd::KeyDoc| {
        let full = if doc.section.is_empty() { doc.key.to_owned() } else { format!("{}.{}", doc.section, doc.key) };
        strsim::jaro_winkler(key, doc.key).max(strsim::jaro_winkler(key, &full))
    };
    let drives = nandscape_device_ssd::key_docs().iter().map(of_drive).fold(0.0, f64::max);
    (!key.contains('.') && likeness > 0.85 && likeness > drives).then_some(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(keys: &[(&str, &str)]) -> Result<Settings, SweepError> {
        let mut settings = Settings::new(None, false)?;
        keys.iter().try_for_each(|(key, value)| settings.set(key, &Value::parse(value)))?;
        Ok(settings)
    }

    fn inputs(keys: &[(&str, &str)]) -> Result<Result<Inputs, String>, SweepError> {
        settings(keys)?.inputs(7, &mut Profiles::new())
    }

    #[test]
    fn keys_reach_the_drive_the_workload_and_the_state() {
        let keys = [
            ("rw", "randread"),
            ("capacity", "64MiB"),
            ("ftl.gc.victim", "cost_benefit"),
            ("precondition", "steady"),
            ("fault", "fail program every=500"),
            ("no_delay", "true"),
            ("iodepth", "3"),
        ];
        let inputs = inputs(&keys).unwrap().unwrap();
        assert_eq!(
            (inputs.seed, inputs.precondition, inputs.workload_name.as_str()),
            (7, Precondition::Steady, "randread")
        );
        assert!(inputs.drive.keys.contains("cost_benefit") && inputs.drive.keys.contains("fail program every=500"));
        assert!(inputs.drive.keys.contains("erase = \"0ns\""), "{}", inputs.drive.keys);
        assert!(inputs.workload.contains("iodepth = 3"));
        assert_eq!(inputs.set[1], "ftl.gc.victim=\"cost_benefit\"");
    }

    #[test]
    fn a_trace_is_read_and_its_keys_are_checked() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "0 0 8 8 1\n1000000 0 16 8 0\n2000000 0 24 8 0\n").unwrap();
        let path = file.path().to_str().unwrap();
        let with = |keys: &[(&str, &str)]| -> Result<Inputs, SweepError> {
            let all: Vec<_> = [("trace", path), ("trace.format", "disksim"), ("capacity", "64MiB")]
                .iter()
                .chain(keys)
                .copied()
                .collect();
            let mut settings = settings(&all)?;
            settings.read_trace()?;
            Ok(settings.inputs(7, &mut Profiles::new())?.unwrap())
        };
        let inputs = with(&[("trace.time_scale", "2"), ("percentiles", "95,99.95")]).unwrap();
        let stored = inputs.measure(|_| ()).unwrap();
        assert_eq!(stored.report["requests"], 3);
        assert!(stored.report["latency_us"]["read"].get("p99_95").is_some(), "{}", stored.report);
        let refused = |key, value| with(&[(key, value)]).unwrap_err().to_string();
        assert!(refused("trace.speed", "2").contains("there are trace.format, "));
        assert!(refused("trace.time_scale", "0").contains("time scale of 0"));
        assert!(refused("bs", "4k").contains("bs does not apply to a trace"));
        assert!(refused("iodepth", "4").contains("replay_no_stall"));
        assert!(refused("workload", "mixed").contains("a workload besides"));
        assert!(refused("percentiles", "100").contains("not a percentile"));
        let missing = settings(&[("trace.limit", "3")]).map(drop).unwrap_err().to_string();
        assert!(missing.contains("give trace = FILE"), "{missing}");
        // A file that has changed since is not measured.
        std::fs::write(file.path(), "0 0 8 8 1\n").unwrap();
        assert!(inputs.measure(|_| ()).unwrap_err().contains("when the sweep was planned"));
    }

    #[test]
    fn mistakes_are_of_the_sweep_and_impossible_drives_of_the_point() {
        let mistake = |key, value| inputs(&[("rw", "randread"), (key, value)]).unwrap_err().to_string();
        assert!(mistake("ftl.gc.victims", "greedy").contains("unknown field"));
        assert!(mistake("iodepth", "0").contains("iodepth = 0 is out of range"));
        assert!(mistake("depth", "1").contains("unknown field"));
        assert!(mistake("drive", "nothing").contains("no such profile"));
        assert!(mistake("precondition", "worn").contains("none, full, steady and load"));
        assert!(mistake("seed", "3").contains("--seeds"));
        assert!(mistake("fault", "burn").contains("fault = burn"));
        assert!(mistake("no_delay", "3").contains("true and false"));
        assert!(inputs(&[]).unwrap_err().to_string().contains("rw"));
        let impossible = inputs(&[("rw", "randread"), ("geometry.channels", "1000")]).unwrap().unwrap_err();
        assert!(impossible.contains("channels"), "{impossible}");
    }

    #[test]
    fn a_misspelt_option_of_a_workload_is_recognised() {
        let problem = |key| settings(&[(key, "4")]).err().map(|error| error.to_string()).unwrap_or_default();
        for (key, meant) in [("iodpeth", "iodepth"), ("rwmixraed", "rwmixread"), ("io-cuont", "io_count")] {
            let problem = problem(key);
            assert!(problem.starts_with(key) && problem.contains(&format!("did you mean {meant}?")), "{problem}");
        }
        // The profile names similar keys.
        for key in ["chanels", "capacty", "capacity", "ftl.iodpeth", "xyzzy"] {
            assert_eq!(problem(key), "");
        }
    }
}
