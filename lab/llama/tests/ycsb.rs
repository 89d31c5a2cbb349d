//! YCSB on both forms: in virtual time, and over NVMe/TCP to a drive that runs in real time.

#[cfg(target_os = "linux")]
#[path = "../../../transport/nvme_tcp/tests/nvme_tcp/server.rs"]
#[allow(dead_code, reason = "the target's own tests use more of it")]
mod server;

use nandscape_device_ssd::{Profile, Resolved};
use nandscape_host_llama::{Config, Costs, LogConfig};
use nandscape_lab_llama::{Form, Load, Outcome, Spec, run};
use nandscape_lab_workload::Mix;
use nandscape_sim::Span;

const LOG: LogConfig = LogConfig {
    page_bytes: 4_096,
    segment_bytes: 1 << 20,
    pieces: 5,
    checkpoint: Some(Span::from_ms(100)),
    trim: true,
    space: None,
    id: 1,
};

fn drive() -> Resolved {
    let mut profile = Profile::load("default").expect("a built-in profile");
    for change in ["capacity=64MiB", "ftl.kind=ox_block", "buffer.mode=volatile"] {
        profile.set(change).expect("a valid change");
    }
    profile.resolve().expect("valid")
}

/// Half of the records are in memory.
fn spec(form: Form, workload: usize) -> Spec {
    let (_, mix, choice) = Mix::CORE[workload];
    let load = Load { mix, choice, records: 4_000, operations: 3_000, warm_up: 500, max_scan: 20, ..Load::default() };
    let tree = Config { memory: 3 << 20, ..Config::default() };
    Spec { drive: drive(), form, tree, cores: 1, costs: Costs::ASSUMED, load, seed: 1 }
}

fn shown(outcome: &Outcome) -> String {
    let names: Vec<&str> = outcome.operations.keys().copied().collect();
    format!("{names:?} {:?} {:?} {:?} {:?}", outcome.took, outcome.cpu, outcome.after, outcome.drive)
}

#[test]
fn the_core_workloads_run_on_both_forms_and_the_same_again() {
    for workload in 0..Mix::CORE.len() {
        for form in [Form::Log(LOG), Form::Eleos] {
            let outcome = run(&spec(form, workload)).unwrap();
            let (name, ..) = Mix::CORE[workload];
            assert_eq!(outcome.all.count(), 3_000, "{name} {form:?}");
            assert!(outcome.rate() > 1_000.0 && outcome.cpu > Span::ZERO, "{name}: {}", shown(&outcome));
            assert_eq!(outcome.application_waf().is_some(), name != "c", "{name}: {}", shown(&outcome));
            assert!(outcome.after.loads > 0, "{name}: memory held all of it");
            assert_eq!(shown(&outcome), shown(&run(&spec(form, workload)).unwrap()), "{name}");
        }
    }
}

#[test]
fn a_checkpoint_costs_the_host_of_the_conventional_form_processor_time() {
    let with = |checkpoint| run(&spec(Form::Log(LogConfig { checkpoint, ..LOG }), 0)).unwrap();
    let (often, never) = (with(Some(Span::from_ms(2))), with(None));
    assert!(often.after.store.checkpoints > never.after.store.checkpoints + 5, "{}", shown(&often));
    assert!(often.cpu > never.cpu, "{:?} and {:?}", often.cpu, never.cpu);
}

#[cfg(target_os = "linux")]
mod live {
    use std::rc::Rc;

    use nandscape_device_media::StoreKind;
    use nandscape_device_ssd::Ssd;
    use nandscape_host_driver::nvme_tcp::Target;
    use nandscape_lab_llama::run_live;
    use nandscape_lab_run::wall::Endpoint;
    use nandscape_sim::{Seed, Sim};

    use super::*;

    use crate::server::{Server, SsdExport};

    fn export(sim: &Sim) -> Rc<SsdExport> {
        let ssd = Ssd::new(sim, &drive().without_delay(), StoreKind::Ram, Seed::new(1)).expect("memory");
        SsdExport::of(sim, ssd)
    }

    #[test]
    fn both_forms_run_on_a_served_drive() {
        for form in [Form::Log(LOG), Form::Eleos] {
            let server = Server::of(None, 1 << 30, export);
            let target = Target::new(&server.address, &server.nqn);
            let Spec { tree, load, .. } = spec(form, 0);
            let outcome = run_live(&Endpoint::NvmeTcp(target), form, tree, load, (1, false), |_| ()).unwrap();
            assert_eq!(outcome.all.count(), 3_000);
            assert!(outcome.drive.is_none() && outcome.after.store.flushes > 0);
        }
    }
}
