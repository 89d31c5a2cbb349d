//! The host on command lines: `--host`, its keys among `--set`, and its lines of a report.

use nandscape_host_path::{Config, LAYER, Profile, stage};
use nandscape_lab_report::format::{count, percent, us, us_or_dash};
use nandscape_lab_run::{CpuReport, NetworkReport, WokenReport};
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

/// The keys of a host that count at the wall clock, where the host is this machine.
#[cfg(target_os = "linux")]
const AT_THE_WALL_CLOCK: [&str; 5] =
    ["host.completion", "host.poll_sleep", "host.poll_gain", "host.window", "host.patience"];

/// How a program of this machine waits for completions, if by a policy, and the other changes.
#[cfg(target_os = "linux")]
pub(crate) fn policy_of(set: &[String]) -> Result<(Option<Config>, Vec<String>), Failure> {
    let (of_host, others): (Vec<&String>, Vec<&String>) = set.iter().partition(|change| Config::is_key(change));
    let others = others.into_iter().cloned().collect();
    let key_of = |change: &str| change.split('=').next().unwrap_or_default().trim().to_owned();
    let Some(first) = of_host.first() else { return Ok((None, others)) };
    let mut config = Config::default();
    for change in &of_host {
        config.set(change).map_err(Failure::input)?;
        if !AT_THE_WALL_CLOCK.contains(&key_of(change).as_str()) {
            return Err(Failure::Input(anyhow::anyhow!(
                "--set {change}: the host is this machine, whose costs are what they are; valid are {}",
                AT_THE_WALL_CLOCK.join(", ")
            )));
        }
    }
    if !of_host.iter().any(|change| key_of(change) == "host.completion") {
        return Err(Failure::Input(anyhow::anyhow!(
            "--set {first}: is a setting of a policy, and no policy is given; give --set host.completion=hybrid, or another"
        )));
    }
    config.check().map_err(Failure::input)?;
    Ok((Some(config), others))
}

/// How a program of this machine has waited for completions.
#[cfg(target_os = "linux")]
pub(crate) fn render_policy(report: Option<&nandscape_lab_run::wall::CompletionReport>) -> String {
    let Some(report) = report else { return String::new() };
    let learnt = report.learnt.iter().filter(|(_, commands)| **commands > 0);
    let learnt: Vec<String> =
        learnt.map(|(name, commands)| format!("{} {}", name.replace('_', " "), count(*commands))).collect();
    let (control, idle) = (&report.control, &report.idle);
    let of_drive = report.drive_cpu_us.map_or(String::new(), |spent| format!(", {} us of the drive", us(spent)));
    let of_idle_drive = idle.drive_cpu.map_or(String::new(), |share| format!(", the drive {}", percent(share)));
    let window = report.window_us.map_or(String::new(), |window| format!(", window {} us", us(window)));
    format!(
        "completions by {}{window}: {} us of CPU time of the thread a request{of_drive}; {}; {} waits, {} sleeps, {} looks\n\
         control without a drive: a signal wakes the thread in {} us (p99 {}), for {} us of CPU time\n\
         control without commands: the thread has {} of a processor{of_idle_drive}\n",
        report.policy,
        us_or_dash(report.thread_cpu_us),
        learnt.join(", "),
        count(report.waits),
        count(report.sleeps),
        count(report.looks),
        us(control.p50_us),
        us(control.p99_us),
        us(control.cpu_us),
        percent(idle.thread_cpu)
    )
}

/// The host's stages of the means of directions, a row each: name and cells. The wait for a processor has a row for each holder.
pub(crate) fn stages(ways: &[&Value]) -> Vec<(String, Vec<f64>)> {
    if ways.iter().all(|stages| stages[LAYER].is_null()) {
        return Vec::new();
    }
    let figure = |value: &Value| value.as_f64().unwrap_or(0.0);
    let cells = |of: &str, name: &str| -> Vec<f64> { ways.iter().map(|stages| figure(&stages[of][name])).collect() };
    let (by, behind) = (format!("{LAYER}_by"), format!("{}_by", stage::RUN_DELAY));
    let mut rows = vec![(LAYER.to_owned(), ways.iter().map(|stages| figure(&stages[LAYER])).collect())];
    for name in stage::ALL {
        rows.push((format!("  {name}"), cells(&by, name)));
        if name == stage::RUN_DELAY {
            rows.extend(stage::HOLDERS.map(|holder| (format!("    behind {holder}"), cells(&behind, holder))));
        }
    }
    rows.retain(|(name, cells): &(String, Vec<f64>)| name == LAYER || cells.iter().any(|cell| *cell > 0.0));
    rows
}

/// The lines of the report.
pub(crate) fn render(cpu: Option<&CpuReport>) -> String {
    let Some(cpu) = cpu else { return String::new() };
    let CpuReport { host, completion, path, processors, queue_pairs, threads, .. } = cpu;
    let shared = completion_queues(cpu);
    let load = cpu.load.map_or(String::new(), |load| format!(", computing threads {}", percent(load)));
    let mut text = format!(
        "host {host}: {completion}, path {path}, {} processors, {} queue pairs{shared}, {} threads; busy {}{load}\n",
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
    text + &network(cpu.network.as_ref()) + &woken(cpu.woken.as_ref())
}

/// The links to clients on another machine.
fn network(report: Option<&NetworkReport>) -> String {
    let Some(NetworkReport { links, to_host, to_clients, interrupts_per_request, clients_busy }) = report else {
        return String::new();
    };
    format!(
        "{} to clients: busy {} to the host, {} to the clients; {:.2} interrupts a request; the clients' machine busy {}\n",
        if *links == 1 { "1 link".to_owned() } else { format!("{} links", count(*links)) },
        percent(*to_host),
        percent(*to_clients),
        interrupts_per_request.unwrap_or(0.0),
        percent(*clients_busy)
    )
}

/// The completion queues, if the settings name any.
fn completion_queues(cpu: &CpuReport) -> String {
    let Some(queues) = &cpu.completion_queues else { return String::new() };
    let processors: Vec<String> = queues.iter().map(|queue| count(queue.processor)).collect();
    match &processors[..] {
        [one] => format!(", 1 completion queue that interrupts processor {one}"),
        several => format!(", {} completion queues that interrupt processors {}", several.len(), several.join(", ")),
    }
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
