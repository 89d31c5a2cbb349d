//! A saved state in `nandscape inspect`: how it came about, the layers over its drives, and the drives. All checksums are checked.

use std::path::Path;

use anyhow::{Context as _, anyhow};
use nandscape_device_ssd::{Profile, SavedDrive};
use nandscape_lab_run::chain::Chain;
use nandscape_lab_run::{History, Settled, StateFile};
use nandscape_sim::units::Bytes;
use serde_json::{Value, json};

use super::drive::Inspected;
use crate::failure::Failure;

/// What a state has besides its drives.
pub(super) struct Head {
    file: StateFile,
    /// The name and the capacity of the first drive.
    first: (String, u64),
    drives: usize,
}

/// Opens a state, and starts its drives.
pub(super) fn open(path: &Path) -> Result<(Head, Vec<Inspected>), Failure> {
    let input = |error| Failure::Input(anyhow!("{error}"));
    let file = StateFile::open(path).map_err(input)?;
    let layers =
        file.chain().map_or(Ok(Vec::new()), Chain::resolve).map_err(|problem| Failure::Input(anyhow!(problem)))?;
    let saved = file.load_all().map_err(input)?;
    file.load_held(&layers).map_err(input)?;
    let profiles = file.profiles().map_err(input)?.iter().map(Profile::resolve).collect::<Result<Vec<_>, _>>();
    let profiles = profiles.map_err(Failure::input)?;
    // The start of an OX-Block changes its flash.
    let again: Vec<Option<SavedDrive>> = match profiles.iter().any(|profile| profile.has_ox_block()) {
        true => file.load_all().map_err(input)?.into_iter().map(Some).collect(),
        false => saved.iter().map(|_| None).collect(),
    };
    let first = (profiles[0].name.clone(), profiles[0].capacity());
    let seed = file.history().seed;
    let started = profiles.into_iter().zip(saved.into_iter().zip(again)).enumerate();
    let started = started.map(|(number, (profile, (saved, again)))| {
        let started = Inspected::of_state(number, (profile, seed), saved, again);
        started.with_context(|| format!("{}: drive {number}", path.display())).map_err(Failure::Input)
    });
    let drives: Vec<Inspected> = started.collect::<Result<_, _>>()?;
    Ok((Head { file, first, drives: drives.len() }, drives))
}

impl Head {
    /// As JSON, with the contents of the drives.
    pub(super) fn as_json(&self, contents: Vec<Value>) -> Value {
        let mut value = json!({
            "schema": 1,
            "profile": self.first.0,
            "capacity_bytes": self.first.1,
            "keeps_data": self.file.keeps_data(),
            "history": self.file.history(),
            "contents": contents,
        });
        if let Some(chain) = self.file.chain() {
            value["drives"] = self.drives.into();
            value["layers"] = chain.layers.iter().map(ToString::to_string).collect::<Vec<_>>().into();
        }
        value
    }

    /// In lines.
    pub(super) fn text(&self) -> String {
        let (history, (name, capacity)) = (self.file.history(), &self.first);
        let data = if self.file.keeps_data() { "with data" } else { "without data" };
        let of = match self.drives {
            1 => "a drive".to_owned(),
            drives => format!("{drives} drives"),
        };
        let mut lines = vec![
            format!("state of {of} {name}, {}, {data}", Bytes(*capacity)),
            format!("state          {}", history.words),
            format!("made by        {}, seed {}", history.program, history.seed),
        ];
        let over = |chain: &Chain| format!("under layers   {}", chain.to_string().replace(' ', ", then "));
        lines.extend(self.file.chain().map(over));
        lines.extend(load_lines(history));
        lines.join("\n") + "\n"
    }
}

fn load_lines(history: &History) -> Vec<String> {
    let Some(Settled { workload_lines, waf, virtual_s, .. }) = &history.settled else { return Vec::new() };
    let waf: Vec<String> = waf.iter().map(|waf| format!("{waf:.3}")).collect();
    let load = workload_lines.iter().map(|line| format!("load           {line}"));
    load.chain([format!("write amplification, window by window, in {virtual_s:.1} s: {}", waf.join(" "))]).collect()
}
