//! The table of docs/techniques/lsm.md: overwrites on both forms at several utilisations of the same flash, and the other loads at one.
//!
//! `cargo run --release -p nandscape-apps-lsm-run --example db_bench`. Names of loads, and `full`, limit what is measured.

use std::io::Write as _;

use nandscape_apps_lsm_engine::{BlockConfig, Config, LevelConfig};
use nandscape_apps_lsm_run::{Benchmark, Form, Load, Outcome, Spec, run};
use nandscape_apps_store::Costs;
use nandscape_device_ssd::{Profile, Resolved};

/// 4 planes of blocks of 1 MiB, with little over-provisioning: an LSM-tree leaves its own free space.
const FLASH: [&str; 10] = [
    "capacity=208MiB",
    "ftl.over_provisioning=3%",
    "geometry.channels=4",
    "geometry.dies_per_channel=1",
    "geometry.planes_per_die=1",
    "geometry.pages_per_block=64",
    "lba_size=4KiB",
    "buffer.mode=capacitor",
    "buffer.size=4MiB",
    "controller.processors.count=8",
];
const RUNS: [&str; 2] = ["ftl.kind=lsm", "ftl.zone.mapping=dies"];

fn drive(changes: &[&str]) -> Resolved {
    let mut profile = Profile::load("default").expect("a built-in profile");
    FLASH.iter().chain(changes).for_each(|change| profile.set(change).expect("a valid change"));
    profile.resolve().expect("a valid profile")
}

fn spec(form: usize, load: Load) -> Spec {
    let forms: [(&[&str], Form); 3] =
        [(&[], Form::Block(BlockConfig::default())), (&RUNS[..1], Form::Runs), (&RUNS, Form::Runs)];
    let (changes, form) = forms[form];
    let levels = LevelConfig { trigger: 4, base: 2 << 20, ratio: 10, debt: 8 << 20 };
    let store = Config { memtable: 1 << 20, run: 1 << 20, levels, ..Config::default() };
    Spec {
        drive: drive(changes),
        below: Default::default(),
        form,
        store,
        cores: 2,
        costs: Costs::ASSUMED,
        load,
        seed: 1,
    }
}

fn row(name: &str, form: &str, outcome: &Outcome) -> std::io::Result<()> {
    let ratio = |number: Option<f64>| number.map_or("-".into(), |number| format!("{number:.2}"));
    let mut out = std::io::stdout().lock();
    write!(
        out,
        "| {name} | {form} | {:.0} % | {:.0} | {:.1} | {:.1} | {:.1} % | {:.2} | {} | {} | {} | {:.0} |",
        outcome.utilisation() * 100.0,
        outcome.rate(),
        outcome.cpu_us(),
        outcome.device_cpu_us().unwrap_or_default(),
        100.0 * outcome.device_busy().unwrap_or_default(),
        (outcome.after.memory + outcome.after.storage.memory) as f64 / 1e6,
        ratio(outcome.application_waf()),
        ratio(outcome.drive_waf()),
        ratio(outcome.total_waf()),
        outcome.drive.unwrap_or_default().moved_bytes as f64 / (1 << 20) as f64,
    )?;
    for (operation, latency) in &outcome.operations {
        let at = |quantile| latency.quantile(quantile).as_us();
        write!(out, " {operation} {:.0} / {:.0} / {:.0} |", latency.mean_ns() / 1e3, at(0.99), latency.max().as_us())?;
    }
    writeln!(out)
}

fn measure(name: &str, load: Load) -> std::io::Result<()> {
    for (form, form_name) in ["generic", "lsm, zones of 4 MiB", "lsm, zones of 1 MiB"].iter().enumerate() {
        match run(&spec(form, load)) {
            Ok(outcome) => row(name, form_name, &outcome)?,
            Err(error) => writeln!(std::io::stdout(), "| {name}, {} keys | {form_name} | {error} |", load.keys)?,
        }
    }
    Ok(())
}

fn main() -> std::io::Result<()> {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let is_wanted = |name: &str| wanted.is_empty() || wanted.iter().any(|wanted| wanted == name);
    if is_wanted("full") {
        for keys in [150_000, 220_000, 280_000, 310_000] {
            measure("overwrite", Load { keys, operations: keys, warm_up: 2 * keys, ..Load::default() })?;
        }
    }
    let base = Load { keys: 250_000, operations: 100_000, warm_up: 250_000, clients: 4, ..Load::default() };
    for benchmark in Benchmark::ALL.into_iter().filter(|benchmark| is_wanted(benchmark.name())) {
        measure(benchmark.name(), Load { benchmark, ..base })?;
    }
    Ok(())
}
