//! YCSB A to F on the forms of LLAMA's store, in simulated time: the same operations, the same drive, one processor.
//!
//! Run it with `cargo run --release -p nandscape-apps-llama-run --example ycsb`; letters of workloads select some.
#![expect(clippy::print_stdout, reason = "an example prints")]

use nandscape_apps_llama_engine::{ChainConfig, Config, Costs, LogConfig};
use nandscape_apps_llama_run::{Form, Load, Outcome, Spec, run};
use nandscape_device_ssd::Profile;
use nandscape_lab_workload::Mix;
use nandscape_sim::Span;

fn ratio(number: Option<f64>) -> String {
    number.map_or("-".to_owned(), |number| format!("{number:.2}"))
}

fn row(workload: &str, form: &Form, outcome: &Outcome) -> String {
    let at = |quantile| outcome.all.quantile(quantile).as_us();
    let [pages, table, places] = outcome.memory();
    let cleaned = outcome.after.store.cleaned - outcome.before.store.cleaned;
    format!(
        "| {workload} | {} | {:.0} | {:.0} | {:.0} | {:.1} | {:.1} | {:.1}% | {} | {} | {} | {:.1} | {:.0} | {cleaned} |",
        form.name(),
        outcome.rate(),
        at(0.5),
        at(0.99),
        outcome.cpu_us(),
        outcome.device_cpu_us().unwrap_or_default(),
        100.0 * outcome.device_busy().unwrap_or_default(),
        ratio(outcome.application_waf()),
        ratio(outcome.drive_waf()),
        ratio(outcome.total_waf()),
        pages as f64 / 1e6,
        (table + places) as f64 / 1e3,
    )
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let mut profile = Profile::load("default")?;
    for change in [
        "capacity=64MiB",
        "ftl.kind=ox_block",
        "buffer.mode=volatile",
        "controller.max_transfer=1MiB",
        "controller.processors.count=8",
    ] {
        profile.set(change)?;
    }
    let drive = profile.resolve()?;
    let log = LogConfig { segment_bytes: 2 << 20, checkpoint: Some(Span::from_ms(100)), ..LogConfig::default() };
    let chains = ChainConfig::default();
    let forms = [
        Form::Log(LogConfig { pieces: 1, ..log }),
        Form::Log(log),
        Form::Eleos,
        Form::Chains(ChainConfig { pieces: 1, ..chains }),
        Form::Chains(chains),
    ];
    println!(
        "| load | form | operations/s | p50, us | p99, us | host CPU, us | controller CPU, us | busy | store | drive | both | pages, MB | tables, kB | cleaned |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|---|---|---|");
    for (name, mix, choice) in
        Mix::CORE.into_iter().filter(|(name, ..)| wanted.is_empty() || wanted.iter().any(|word| word == name))
    {
        for form in forms {
            let load = Load { mix, choice, records: 10_000, operations: 60_000, warm_up: 6_000, ..Load::default() };
            let tree = Config { memory: 8 << 20, ..Config::default() };
            let spec = Spec {
                drive: drive.clone(),
                below: Default::default(),
                form,
                tree,
                cores: 1,
                costs: Costs::ASSUMED,
                load,
                seed: 1,
            };
            let with = if form == forms[1] { " + deltas" } else { "" };
            println!("{}", row(&format!("{name}{with}"), &form, &run(&spec)?));
        }
    }
    Ok(())
}
