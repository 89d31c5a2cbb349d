//! The host on command lines: `--host`, its keys among `--set`, and its lines of a report.

use nandscape_host_path::{Config, LAYER, Profile, stage};
use nandscape_lab_report::format::{count, percent, us, us_or_dash};
use nandscape_lab_run::{CpuReport, WokenReport};
use serde_json::Value;

use crate::failure::Failure;

/// The host with its settings, if there is one, and the other changes.
pub(crate) fn split(host: Option<&str>, set: &[String]) -> Result<(Option<Profile>, Vec<String>), Failure> {
    let (of_host, others): (Vec<&String>, Vec<&String>) = set.iter().partition(|change| Config::is_key(change));
    let others = others.into_iter().cloned().collect();
    let Some(name) = host else {
        return match of_host.first() {
            None => Ok((None, others)),
            Some(change) => Err(Failure::Input(anyhow::anyhow!(
                "--set {change}: no host is given; give --host server, or another of `nandscape hosts`"
            ))),
        };
    };
    let wrong = |problem: String| Failure::Input(anyhow::anyhow!("--host {name}: {problem}"));
    let mut profile = Profile::load(name).map_err(|error| Failure::Input(anyhow::anyhow!("--host {error}")))?;
    profile.set_all(of_host).map_err(|error| wrong(error.to_string()))?;
    Ok((Some(profile), others))
}

/// The host's stages of the means of directions, a row each: name and cells.
pub(crate) fn stages(ways: &[&Value]) -> Vec<(String, Vec<f64>)> {
    if ways.iter().all(|stages| stages[LAYER].is_null()) {
        return Vec::new();
    }
    let figure = |value: &Value| value.as_f64().unwrap_or(0.0);
    let by = format!("{LAYER}_by");
    let rows = stage::ALL.iter().map(|name| {
        let cells: Vec<f64> = ways.iter().map(|stages| figure(&stages[&by][name])).collect();
        (format!("  {name}"), cells)
    });
    let sum = (LAYER.to_owned(), ways.iter().map(|stages| figure(&stages[LAYER])).collect());
    [sum].into_iter().chain(rows.filter(|(_, cells)| cells.iter().any(|cell| *cell > 0.0))).collect()
}

/// The lines of the report.
pub(crate) fn render(cpu: Option<&CpuReport>) -> String {
    let Some(cpu) = cpu else { return String::new() };
    let CpuReport { host, completion, path, processors, queue_pairs, threads, .. } = cpu;
    let load = cpu.load.map_or(String::new(), |load| format!(", computing threads {}", percent(load)));
    let mut text = format!(
        "host {host}: {completion}, path {path}, {} processors, {} queue pairs, {} threads; busy {}{load}\n",
        count(*processors),
        count(*queue_pairs),
        count(*threads),
        percent(cpu.busy)
    );
    if let (Some(kinds), Some(total)) = (&cpu.request_us_by, cpu.request_us) {
        let kinds: Vec<String> = kinds
            .iter()
            .filter(|(_, spent)| **spent > 0.0)
            .map(|(kind, spent)| format!("{kind} {}", us(*spent)))
            .collect();
        let interrupts = cpu.interrupts_per_request.unwrap_or(0.0);
        text.push_str(&format!(
            "processor time a request {} us: {}; {interrupts:.2} interrupts a request, the longest {} us\n",
            us(total),
            kinds.join(", "),
            us(cpu.longest_interrupt_us)
        ));
    }
    text + &woken(cpu.woken.as_ref())
}

/// How the host used the drive's notices.
fn woken(report: Option<&WokenReport>) -> String {
    let Some(report) = report else { return String::new() };
    let all = report.ready + report.late + report.missing + report.gave_up;
    let share = |part: u64| percent(if all == 0 { 0.0 } else { part as f64 / all as f64 });
    let window = report.window_us.map_or("that of the drive".to_owned(), |window| format!("{} us", us(window)));
    let mut text = format!(
        "threads woken by notices, window {window}: ready {}, late {}, no notice {}, gave up {}; delay mean {} us, p90 {}\n",
        share(report.ready),
        share(report.late),
        share(report.missing),
        share(report.gave_up),
        us_or_dash(report.delay_mean_us),
        us_or_dash(report.delay_p90_us)
    );
    if report.polled_writes > 0 {
        let (writes, waited) = (count(report.polled_writes), count(report.polled_writes_waited));
        text.push_str(&format!(
            "writes polled for, as the write buffer had room: {writes}, of which {waited} took longer\n"
        ));
    }
    text
}
