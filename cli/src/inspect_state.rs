//! `nandscape inspect` of a saved state: the drive or the drives under layers, and the history of the state. It checks all
//! checksums.

use std::path::Path;

use anyhow::anyhow;
use nandscape_lab_run::chain::Chain;
use nandscape_lab_run::{History, Settled, StateFile};
use nandscape_sim::units::Bytes;
use serde_json::json;

use crate::failure::Failure;
use crate::output;

/// Shows it.
pub(crate) fn run(path: &Path, as_json: bool) -> Result<(), Failure> {
    let input = |error| Failure::Input(anyhow!("{error}"));
    let file = StateFile::open(path).map_err(input)?;
    let layers =
        file.chain().map_or(Ok(Vec::new()), Chain::resolve).map_err(|problem| Failure::Input(anyhow!(problem)))?;
    let drives = file.load_all().map_err(input)?.len();
    file.load_held(&layers).map_err(input)?;
    let profile = file.profile().map_err(input)?;
    let name = profile.name.clone();
    let resolved = profile.resolve().map_err(Failure::input)?;
    let history = file.history();
    if as_json {
        let mut value = json!({
            "schema": 1,
            "profile": name,
            "capacity_bytes": resolved.capacity(),
            "keeps_data": file.keeps_data(),
            "history": history,
        });
        if let Some(chain) = file.chain() {
            value["drives"] = drives.into();
            value["layers"] = chain.layers.iter().map(ToString::to_string).collect::<Vec<_>>().into();
        }
        return output::result(&serde_json::to_string_pretty(&value).expect("plain data"));
    }
    let data = if file.keeps_data() { "with data" } else { "without data" };
    let of = match drives {
        1 => "a drive".to_owned(),
        drives => format!("{drives} drives"),
    };
    let mut lines = vec![
        format!("state of {of} {name}, {}, {data}", Bytes(resolved.capacity())),
        format!("state          {}", history.words),
        format!("made by        {}, seed {}", history.program, history.seed),
    ];
    let over = |chain: &Chain| format!("under layers   {}", chain.to_string().replace(' ', ", then "));
    lines.extend(file.chain().map(over));
    lines.extend(load_lines(history));
    output::result(&lines.join("\n"))
}

fn load_lines(history: &History) -> Vec<String> {
    let Some(Settled { workload_lines, waf, virtual_s, .. }) = &history.settled else { return Vec::new() };
    let waf: Vec<String> = waf.iter().map(|waf| format!("{waf:.3}")).collect();
    let load = workload_lines.iter().map(|line| format!("load           {line}"));
    load.chain([format!("write amplification, window by window, in {virtual_s:.1} s: {}", waf.join(" "))]).collect()
}
