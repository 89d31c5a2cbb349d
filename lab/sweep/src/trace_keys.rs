//! A trace as the workload of points: its file, the options of `sim --trace` as keys, and a digest of the requests selected, so that
//! a point is measured again when the file has changed.

use std::collections::BTreeMap;
use std::path::PathBuf;

use nandscape_lab_trace::{Action, Address, Options, Pace, Replay, Selection, Trace, Window};
use nandscape_lab_workload::{JobSpec, Limit, Workload, count, number, runtime};
use serde::{Deserialize, Serialize};
use toml::{Table, Value as Toml};

/// Keys of a trace, after `trace.`.
const KEYS: [&str; 11] = [
    "format",
    "action",
    "disk",
    "host",
    "window",
    "limit",
    "skip_bad",
    "time_scale",
    "replay_no_stall",
    "address",
    "repeat",
];
/// Keys of a workload that apply to a trace.
const WORDS: [&str; 5] = ["iodepth", "rate_iops", "io_count", "runtime", "warmup_count"];

/// A trace and how it is replayed, as text.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct TraceKeys {
    /// The file.
    pub path: String,
    /// Its keys, and the keys of the workload that apply to it.
    pub keys: BTreeMap<String, String>,
    /// Requests, bytes and digest of the selection when the sweep was planned.
    pub digest: String,
}

/// Keys that select requests.
const SELECTING: [&str; 7] = ["format", "action", "disk", "host", "window", "limit", "skip_bad"];

/// Opens a trace with keys that select requests: `disk`, `window` and so on, without `trace.`.
///
/// # Errors
/// When there is no such key, or the trace cannot be read.
pub fn open_trace(path: &str, keys: &[(String, String)]) -> Result<Trace, String> {
    let mut trace = TraceKeys::of(path.to_owned());
    for (key, text) in keys {
        if !SELECTING.contains(&&**key) {
            return Err(format!("{key}: there is no such key; there are {}", SELECTING.join(", ")));
        }
        trace.set(key, text.clone())?;
    }
    trace.open()
}

/// Whether a key is one of a trace.
pub(crate) fn is_key(key: &str) -> bool {
    key == "trace" || key.starts_with("trace.")
}

impl TraceKeys {
    pub(crate) fn of(path: String) -> TraceKeys {
        TraceKeys { path, keys: BTreeMap::new(), digest: String::new() }
    }

    /// Sets a key, `trace.time_scale` or so.
    ///
    /// # Errors
    /// When there is no such key.
    pub(crate) fn set(&mut self, key: &str, text: String) -> Result<(), String> {
        let word = key.strip_prefix("trace.").unwrap_or(key).replace('-', "_");
        if !KEYS.contains(&&*word) {
            return Err(format!("{key}: a trace has no such key; there are trace.{}", KEYS.join(", trace.")));
        }
        self.keys.insert(word, text);
        Ok(())
    }

    /// Takes the keys of a workload's table that apply to a trace.
    ///
    /// # Errors
    /// When it has others.
    pub(crate) fn take(&mut self, workload: &Table) -> Result<(), String> {
        let jobs = workload.get("job").and_then(Toml::as_array).into_iter().flatten();
        let of_jobs = jobs.filter_map(Toml::as_table).flatten();
        let of_run = workload.iter().filter(|(key, _)| *key != "job" && *key != "version");
        for (key, value) in of_jobs.chain(of_run) {
            if !WORDS.contains(&key.as_str()) {
                return Err(format!("{key} does not apply to a trace; {} do", WORDS.join(", ")));
            }
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            self.keys.insert(key.clone(), text);
        }
        Ok(())
    }

    /// Reads the trace, and keeps the digest of the selection.
    ///
    /// # Errors
    /// When it cannot be read, or a key is wrong.
    pub(crate) fn read(&mut self) -> Result<(), String> {
        let trace = self.open()?;
        self.digest = digest(&trace);
        self.replay(trace).map(drop)
    }

    /// The workload.
    ///
    /// # Errors
    /// When the file cannot be read, or has changed.
    pub(crate) fn workload(&self) -> Result<Workload, String> {
        let trace = self.open()?;
        let now = digest(&trace);
        if now != self.digest {
            return Err(format!("{}: it had {} when the sweep was planned, and has {now}", self.path, self.digest));
        }
        self.replay(trace)
    }

    fn key(&self, key: &str) -> Option<&str> {
        self.keys.get(key).map(String::as_str)
    }

    /// A key that is parsed.
    fn parsed<T>(&self, key: &str, parse: impl Fn(&str) -> Result<T, String>) -> Result<Option<T>, String> {
        let parsed =
            self.key(key).map(|text| parse(text).map_err(|problem| format!("trace: {key} = {text}: {problem}")));
        parsed.transpose()
    }

    fn open(&self) -> Result<Trace, String> {
        let text = |error: &dyn std::fmt::Display| error.to_string();
        let window = self.parsed("window", |given| given.parse::<Window>())?.unwrap_or_default();
        let list = |key| self.key(key).map(list).unwrap_or_default();
        let format = |given: &str| match given {
            "auto" => Ok(None),
            given => given.parse().map(Some).map_err(|error| text(&error)),
        };
        let action = |given: &str| match given {
            "Q" | "q" => Ok(Action::Queued),
            "D" | "d" => Ok(Action::Issued),
            _ => Err("Q and D are valid".to_owned()),
        };
        if self.path == "-" {
            return Err("trace = -: standard input cannot be read for each point; give a file".to_owned());
        }
        let options = Options {
            path: PathBuf::from(&self.path),
            format: self.parsed("format", format)?.flatten(),
            action: self.parsed("action", action)?.unwrap_or_default(),
            selection: Selection { disks: list("disk"), hosts: list("host") },
            from: window.from,
            until: window.until,
            limit: self.parsed("limit", |given| count(given).map_err(|error| text(&error)))?,
            skip_bad: self.parsed("skip_bad", yes)?.unwrap_or(false),
        };
        Trace::open(options).map_err(|error| text(&error))
    }

    fn replay(&self, trace: Trace) -> Result<Workload, String> {
        let rate = self.parsed("rate_iops", |given| number(given).map_err(|error| error.to_string()))?;
        let scale = self.parsed("time_scale", |given| number(given).map_err(|error| error.to_string()))?;
        let depth = |given: &str| given.parse::<u32>().map_err(|_| "a whole number is valid".to_owned());
        let depth = self.parsed("iodepth", depth)?;
        let pace = match (self.parsed("replay_no_stall", yes)?.unwrap_or(false), depth, rate, scale) {
            (true, depth, None, None) => Pace::NoStall(depth.unwrap_or(JobSpec::default().iodepth)),
            (true, ..) => {
                return Err("trace: replay_no_stall ignores times; leave out rate_iops and time_scale".to_owned());
            }
            (false, Some(_), ..) => return Err("trace: iodepth is for replay_no_stall = true".to_owned()),
            (false, None, Some(_), Some(_)) => return Err("trace: give rate_iops or time_scale".to_owned()),
            (false, None, Some(rate), None) => Pace::Rate(rate),
            (false, None, None, scale) => Pace::Scaled(scale.unwrap_or(1.0)),
        };
        let address = |given: &str| given.parse::<Address>().map_err(|error| error.to_string());
        let address = self.parsed("address", address)?.unwrap_or_default();
        let repeat = self.parsed("repeat", |given| count(given).map_err(|error| error.to_string()))?.unwrap_or(1);
        let workload = Replay::repeated(trace, pace, address, repeat).map_err(|error| error.to_string())?;
        let workload = self.limited(workload)?;
        workload.jobs.iter().try_for_each(JobSpec::check)?;
        Ok(workload)
    }

    fn limited(&self, mut workload: Workload) -> Result<Workload, String> {
        let whole = |given: &str| count(given).map_err(|error| error.to_string());
        let warmup = self.parsed("warmup_count", whole)?.unwrap_or(0);
        if let Limit::Requests(all) = workload.limit {
            let left = all.checked_sub(warmup).filter(|left| *left > 0);
            let left = left.ok_or_else(|| format!("warmup_count = {warmup} leaves nothing of {all} requests"))?;
            workload.limit = Limit::Requests(left);
        }
        workload.warmup = warmup;
        if let Some(count) = self.parsed("io_count", whole)? {
            workload.limit = Limit::Requests(count);
        }
        if let Some(span) = self.parsed("runtime", |given| runtime(given).map_err(|error| error.to_string()))? {
            workload.limit = Limit::Runtime(span);
        }
        Ok(workload)
    }
}

/// What was selected.
fn digest(trace: &Trace) -> String {
    let totals = trace.totals();
    format!("{} requests, {} bytes, digest {:08x}", totals.requests(), totals.bytes(), totals.digest())
}

fn yes(given: &str) -> Result<bool, String> {
    given.parse().map_err(|_| "true and false are valid".to_owned())
}

/// Names of a list such as `["sda", "sdb"]`, or one name.
fn list(text: &str) -> Vec<String> {
    let listed = toml::from_str::<Table>(&format!("list = {text}")).ok();
    let listed = listed.and_then(|table| Some(table.get("list")?.as_array()?.iter().map(name).collect()));
    listed.unwrap_or_else(|| vec![text.to_owned()])
}

fn name(value: &Toml) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
