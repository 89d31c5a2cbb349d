//! `nandscape sim --over` and `--array`: drives with layers of a host over them under a workload, in simulated time.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use comfy_table::{CellAlignment, Table};
use nandscape_device_ssd::Resolved;
use nandscape_lab_report::ArrayDocument;
use nandscape_lab_report::format::{bytes, count, rounded, seconds, us, us_or_dash};
use nandscape_lab_run::chain::{Named, Section, check_over, drives_of_members, lowest_array, stacked};
use nandscape_lab_run::{ArrayLayer, ArrayReport, ChainFinished, Gc, HostReport, Report};
use nandscape_layers_array::{Config, Shape, Technique, WindowMode};

use crate::failure::Failure;
use crate::sim::{FaultWord, SimArgs};
use crate::{host_words, output, table};

/// Settings of an array that may outlast the process among changes of keys, and the changes of the drives' keys.
pub(crate) fn parts(shape: Shape, set: &[String]) -> Result<(Config, Vec<String>), Failure> {
    let (of_array, of_drives): (Vec<&String>, Vec<&String>) = set.iter().partition(|change| Config::is_key(change));
    let mut config = Config::default();
    for change in of_array {
        config.set(change).map_err(Failure::input)?;
    }
    config.check(shape).map_err(Failure::input)?;
    Ok((config, of_drives.into_iter().cloned().collect()))
}

/// Whether a member's drive takes the windows of the array.
pub(crate) fn check_windows(config: &Config, drive: (&str, &Resolved)) -> Result<(), Failure> {
    nandscape_lab_run::takes_windows(config, drive).map_err(|problem| Failure::Input(anyhow::anyhow!(problem)))
}

/// Whether layers work in real time, over such a drive.
pub(crate) fn check_live(layers: &[Named], drive: (&str, &Resolved)) -> Result<(), Failure> {
    let mut arrays = layers.iter().filter_map(|one| one.layer.as_kind::<ArrayLayer>());
    if arrays.any(|array| array.config.technique == Technique::Rails) {
        return Err(Failure::Input(anyhow::anyhow!(
            "array.technique=rails keeps writes of seconds in the host's memory, and is for nandscape sim"
        )));
    }
    check_over(layers, drive.1).map_err(|problem| Failure::Input(anyhow::anyhow!("--over: {problem}")))?;
    lowest_array(layers).map_or(Ok(()), |array| check_windows(&array.config, drive))
}

fn name_of(number: usize) -> String {
    nandscape_lab_run::name_of_drive(number)
}

/// The files that `--out` writes; `drives` counts members and spares.
pub(crate) fn file_names(drives: usize) -> Vec<PathBuf> {
    ArrayDocument::file_names((0..drives).map(name_of))
}

/// The profile of each of `count` drives, with its own faults.
pub(crate) fn profiles(
    args: &SimArgs,
    count: usize,
    resolve: impl Fn(usize, &[FaultWord]) -> Result<Resolved, Failure>,
) -> Result<Vec<Resolved>, Failure> {
    let delayed = |profile: Resolved| if args.no_delay { profile.without_delay() } else { profile };
    with_faults(&args.fault, count, |number, faults| resolve(number, faults).map(delayed))
}

/// The profile of each of `count` drives, with its own of these faults.
pub(crate) fn with_faults(
    faults: &[FaultWord],
    count: usize,
    resolve: impl Fn(usize, &[FaultWord]) -> Result<Resolved, Failure>,
) -> Result<Vec<Resolved>, Failure> {
    let names: Vec<String> = (0..count).map(name_of).collect();
    let unknown = |word: &&FaultWord| word.drive.as_ref().is_some_and(|drive| !names.contains(drive));
    if let Some(FaultWord { drive: Some(drive), text, .. }) = faults.iter().find(unknown) {
        return Err(Failure::Input(anyhow::anyhow!(
            "--fault \"{text}\": there is no drive {drive:?}; NAME=RULE names one of {}, a RULE alone is for all",
            listed(&names)
        )));
    }
    let of = |(number, name): (usize, &String)| {
        let meant = faults.iter().filter(|word| word.drive.as_ref().is_none_or(|drive| drive == name));
        resolve(number, &meant.cloned().collect::<Vec<_>>())
    };
    names.iter().enumerate().map(of).collect()
}

/// Names of drives in a message: the first and the last of many.
fn listed(names: &[String]) -> String {
    match names {
        [first, .., last] if names.len() > 8 => format!("{first} to {last}"),
        all => all.join(", "),
    }
}

/// Settings without effect next to the others, in sentences.
pub(crate) fn without_effect(config: &Config, set: &[String], is_served: bool) -> Vec<String> {
    let (technique, has_windows) = (config.technique, config.window_mode() != WindowMode::None);
    let keys = [
        ("array.timeout", technique == Technique::Speculative, "it is of technique speculative"),
        ("array.swap", technique == Technique::Rails, "it is of technique rails"),
        ("array.window", has_windows, "the drives have no windows; array.windows=static or dynamic sets them"),
        ("array.ranges", has_windows, "the drives have no windows; array.windows=static or dynamic sets them"),
        ("array.force", is_served, "an array of a simulation is new"),
    ];
    let is_given = |key: &str| set.iter().any(|change| change.split('=').next().is_some_and(|name| name.trim() == key));
    let idle = keys.iter().filter(|(key, has_effect, _)| !has_effect && is_given(key));
    let mut notes: Vec<String> = idle.map(|(key, _, why)| format!("{key} has no effect: {why}")).collect();
    if technique == Technique::TeaFa && !has_windows {
        notes.push("array.windows=none: teafa without turns is tea2".to_owned());
    }
    notes
}

/// That drives do not do what a technique asks for, in a sentence; `drives` are those that do not.
fn unheard_of(config: &Config, drives: &[String]) -> Option<String> {
    let technique = config.technique;
    (technique.asks_to_fail() && !drives.is_empty()).then(|| {
        format!(
            "array.technique={} asks drives to fail reads rather than have them wait, which {} do not, so that these are waited for as by base: \
             models do with ftl.kind=\"page\" and ftl.read.policy=\"fail_fast\"",
            technique.name(),
            drives.join(", ")
        )
    })
}

/// Checks layers against the drives below them, and prints notes for the user.
pub(crate) fn check(args: &SimArgs, layers: &[Named], profiles: &[Resolved]) -> Result<(), Failure> {
    let profile = &profiles[0];
    let words = match (args.array, args.state.file_name()) {
        (Some(shape), _) if args.over.is_empty() => format!("--array {shape}"),
        (None, Some(file)) if args.over.is_empty() => format!("--from-state {file}: its layers"),
        _ => "--over".to_owned(),
    };
    check_over(layers, profile).map_err(|problem| Failure::Input(anyhow::anyhow!("{words}: {problem}")))?;
    if profile.parts().len() > 1 {
        let (name, parts) = (&profile.name, profile.parts().len());
        output::note(&format!(
            "{name} has {parts} parts with a namespace each: layers are over the first of each drive, the others are left out"
        ));
    }
    // What an array asks for goes to the drives if it lies directly over them.
    lowest_array(layers).map_or(Ok(()), |array| check_array(args, &array.config, profiles))
}

fn check_array(args: &SimArgs, config: &Config, profiles: &[Resolved]) -> Result<(), Failure> {
    let unheard: Vec<String> =
        (0..).zip(profiles).filter(|(_, drive)| !drive.fails_reads()).map(|(number, _)| name_of(number)).collect();
    unheard_of(config, &unheard).iter().for_each(|note| output::note(note));
    if config.technique == Technique::Preempt && !profiles[0].lets_urgent_reads_in() {
        output::note(
            "array.technique=preempt asks drives to let reads into collections, and these do so with ftl.gc.preempt_on_request=true only",
        );
    }
    let mut numbered = profiles.iter().enumerate();
    numbered.try_for_each(|(number, profile)| check_windows(config, (&name_of(number), profile)))?;
    without_effect(config, &args.set, false).iter().for_each(|note| output::note(note));
    Ok(())
}

/// Makes the folder of each drive before the run, and checks that it has no page of another program.
pub(crate) fn prepare(folder: &Path, drives: usize) -> Result<(), Failure> {
    for of_drive in (0..drives).map(|number| folder.join(name_of(number))) {
        output::create_folder(&of_drive).map_err(Failure::Input)?;
        output::check_page(&of_drive.join("report.html"))?;
    }
    Ok(())
}

pub(crate) fn tell_of_faults(finished: &ChainFinished) {
    if finished.failures().0 > 0 {
        let each: Vec<String> =
            finished.host.errors.iter().map(|(status, failed)| format!("{failed} with {status}")).collect();
        output::note(&format!(
            "requests failed because of planned faults, or of the age of the flash: {}",
            each.join(", ")
        ));
    }
}

pub(crate) fn render(profile: &str, finished: &ChainFinished) -> String {
    let host = &finished.host;
    let sections = match &host.chain[..] {
        // The head names it.
        [only] => counted(only),
        all => sections(all),
    };
    let latencies = table::latencies(&host.latency_us, &host.latency_corrected_us, &host.operations_us);
    let flows = table::flows(&host.flows, host.fairness);
    table::joined(&[
        head(profile, host),
        latencies,
        flows,
        layers(&host.chain, &host.layers_us, host.cpu.is_some()) + &of_host(host),
        sections + &windows(finished),
        drives(finished),
    ])
}

/// The host's stages, and what its processors did.
fn of_host(host: &HostReport) -> String {
    let none = BTreeMap::new();
    let ways: Vec<_> = host.layers_us.keys().collect();
    let of = |way: &str, stage: &str| {
        let layers = host.layer_causes_us.get(way).unwrap_or(&none);
        layers.get(nandscape_host_path::LAYER).and_then(|stages| stages.get(stage)).copied().unwrap_or(0.0)
    };
    let heads: Vec<&str> = ["mean time in the host, us"].into_iter().chain(ways.iter().map(|way| **way)).collect();
    let mut rows = table::table(&heads);
    for stage in nandscape_host_path::stage::ALL {
        let times: Vec<f64> = ways.iter().map(|way| of(way, stage)).collect();
        if times.iter().any(|time| *time > 0.0) {
            rows.add_row([stage.to_owned()].into_iter().chain(times.into_iter().map(us)));
        }
        for holder in
            nandscape_host_path::stage::HOLDERS.iter().filter(|_| stage == nandscape_host_path::stage::RUN_DELAY)
        {
            let by = |way: &&&'static str| {
                host.run_delay_us.get(**way).and_then(|by| by.get(holder)).copied().unwrap_or(0.0)
            };
            let times: Vec<f64> = ways.iter().map(by).collect();
            if times.iter().any(|time| *time > 0.0) {
                rows.add_row([format!("  behind {holder}")].into_iter().chain(times.into_iter().map(us)));
            }
        }
    }
    let stages = if rows.is_empty() { String::new() } else { format!("{}\n", rows.trim_fmt()) };
    let limit = table::host_limit(host.cpu.as_ref(), host.limited_by);
    stages + &limit + &host_words::render(host.cpu.as_ref())
}

/// What a layer has counted.
fn counted(section: &Section) -> String {
    table::shown(section.shown())
}

fn head(profile: &str, host: &HostReport) -> String {
    let HostReport { workload, seed, requests, virtual_s, .. } = host;
    let layers = stacked(&host.chain, Section::called_with_settings);
    let of = if layers.is_empty() { String::new() } else { format!("{layers} of ") };
    let speed = host.iops.map_or(String::new(), |iops| format!(": {} IOPS", rounded(iops)));
    format!(
        "{of}{profile} under {workload}, seed {seed}\n\n{} requests, {} in {} of drive time{speed}\n{}",
        count(*requests),
        bytes(host.bytes as f64),
        seconds(*virtual_s),
        table::arrivals(host.arrivals.as_ref())
    )
}

/// What each layer has counted, under its name.
pub(crate) fn sections(chain: &[Section]) -> String {
    chain.iter().map(|one| format!("{} over {}:\n{}", one.layer, one.over.join(", "), counted(one))).collect()
}

/// Mean time in each layer itself, from the top down, and in the drives.
pub(crate) fn layers(
    chain: &[Section],
    layers_us: &BTreeMap<&'static str, BTreeMap<&'static str, f64>>,
    has_host: bool,
) -> String {
    let mut names: Vec<&str> = chain.iter().rev().map(|one| one.layer.split('/').next().unwrap_or("")).collect();
    names.dedup();
    names.splice(..0, has_host.then_some(nandscape_host_path::LAYER));
    let heads: Vec<&str> = ["mean time, us"].into_iter().chain(names.iter().copied()).chain(["drives"]).collect();
    let mut rows = table::table(&heads);
    for (way, layers) in layers_us {
        let of = |layer: &str| us(layers.get(layer).copied().unwrap_or(0.0));
        let times = names.iter().copied().chain([nandscape_lab_run::DRIVE]).map(of);
        rows.add_row([(*way).to_owned()].into_iter().chain(times));
    }
    format!("{rows}\n")
}

fn right(mut rows: Table) -> String {
    rows.column_iter_mut().skip(1).for_each(|column| {
        column.set_cell_alignment(CellAlignment::Right);
    });
    format!("{rows}\n")
}

/// How long windows were, and the work of the drives' own that was not in them.
fn windows(finished: &ChainFinished) -> String {
    let Some(ms) = finished.host.array.as_ref().and_then(|array| array.window_ms) else { return String::new() };
    let sum = |of: fn(&Gc) -> u64| finished.drives.iter().map(|drive| of(&drive.report.gc)).sum::<u64>();
    format!(
        "windows of {} ms; outside of them began {} steps of collections and {} programs of buffered data\n",
        rounded(ms),
        count(sum(|gc| gc.forced_steps)),
        count(sum(|gc| gc.forced_programs))
    )
}

/// The tail of each drive, below the array.
fn drives(finished: &ChainFinished) -> String {
    let is_padded = finished.drives.iter().any(|drive| table::is_padded(&drive.report.flash));
    let mut heads =
        vec!["drive", "reads", "p50, us", "p99, us", "p99.9, us", "max, us", "rejected", "behind GC", "writes", "waf"];
    heads.extend(is_padded.then_some("padding"));
    let mut rows = table::table(&heads);
    let names: Vec<&str> = finished.drives.iter().map(|drive| &*drive.name).collect();
    let members = drives_of_members(&finished.host.chain, &names);
    for (number, drive) in finished.drives.iter().enumerate() {
        let Report { latency_us, gc, waf, flash, .. } = &drive.report;
        let read = latency_us.get("read");
        let figure = |of: Option<f64>| us_or_dash(of);
        let writes = latency_us.get("write").map_or(0, |latency| latency.count);
        let array = finished.host.array.as_ref();
        let of_drive = |array: &&ArrayReport| {
            array.members.iter().find(|member| members.get(member.drive) == Some(&Some(number))).copied()
        };
        let sent = array.as_ref().and_then(of_drive).map_or(0, |member| member.reads);
        let mut cells = vec![
            drive.name.clone(),
            count(read.map_or(sent, |latency| latency.count)),
            figure(read.and_then(|latency| latency.p50)),
            figure(read.and_then(|latency| latency.p99)),
            figure(read.and_then(|latency| latency.p99_9)),
            figure(read.and_then(|latency| latency.max)),
            count(drive.report.rejected()),
            count(gc.blocked_reads),
            count(writes),
            waf.map_or("-".to_owned(), |waf| format!("{waf:.2}")),
        ];
        cells.extend(is_padded.then(|| count(flash.units_padding)));
        rows.add_row(cells);
    }
    right(rows) + &causes(finished)
}

/// The stages and causes of a single drive, and the faults of each.
fn causes(finished: &ChainFinished) -> String {
    let stages = match &finished.drives[..] {
        [only] if !only.report.latency_us.is_empty() => format!("\n{}", table::breakdowns(&only.report)),
        _ => String::new(),
    };
    stages
        + &finished
            .drives
            .iter()
            .map(|drive| table::faults(&drive.report, &format!("{}: ", drive.name)))
            .collect::<String>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_without_effect_are_told() {
        let told = |words: &[&str]| {
            let set: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            let mut config = Config::default();
            set.iter().for_each(|word| config.set(word).unwrap());
            without_effect(&config, &set, false).join("; ")
        };
        assert_eq!(told(&["array.technique=teafa", "array.window=100ms"]), "");
        assert_eq!(told(&["array.technique=speculative", "array.timeout=1ms"]), "");
        assert!(told(&["array.window=100ms"]).starts_with("array.window has no effect: the drives have no windows"));
        assert!(told(&["array.swap=1s"]).contains("of technique rails"));
        assert!(told(&["array.technique=teafa", "array.windows=none"]).contains("is tea2"));
    }
}
