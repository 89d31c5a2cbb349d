//! YCSB on all forms: in simulated time, and over NVMe/TCP to a drive that runs in real time.

#[cfg(target_os = "linux")]
#[path = "../../../../transport/nvme_tcp/tests/nvme_tcp/server.rs"]
#[allow(dead_code, reason = "the target's own tests use more of it")]
mod server;

use nandscape_apps_llama_engine::{ChainConfig, Config, Costs, LogConfig};
use nandscape_apps_llama_run::{Form, Load, Outcome, Spec, run};
use nandscape_device_ssd::{Profile, Resolved};
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

/// All forms, the offloaded one with pages of 4 KiB, of any length, and with deltas.
const FORMS: [Form; 4] = [
    Form::Log(LOG),
    Form::Eleos,
    Form::Chains(ChainConfig { page_bytes: 4_096, pieces: 1 }),
    Form::Chains(ChainConfig { page_bytes: 4_096, pieces: 5 }),
];

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
    Spec { drive: drive(), below: Default::default(), form, tree, cores: 1, costs: Costs::ASSUMED, load, seed: 1 }
}

fn shown(outcome: &Outcome) -> String {
    let names: Vec<&str> = outcome.operations.keys().copied().collect();
    format!("{names:?} {:?} {:?} {:?} {:?}", outcome.took, outcome.cpu, outcome.after, outcome.drive)
}

#[test]
fn the_core_workloads_run_on_all_forms_and_the_same_again() {
    for workload in 0..Mix::CORE.len() {
        for form in FORMS {
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

#[test]
fn pages_at_their_true_length_and_deltas_have_less_programmed() {
    let programmed = |form| run(&spec(form, 0)).unwrap().drive.expect("in this process").flash_bytes;
    let [fixed, variable, deltas] = [FORMS[1], FORMS[2], FORMS[3]].map(programmed);
    assert!(variable < fixed && deltas < variable, "{fixed}, {variable} and {deltas} bytes");
}

#[test]
fn a_drive_that_changes_data_unnoticed_ends_the_run() {
    for form in FORMS {
        let mut profile = Profile::load("default").expect("a built-in profile");
        let faults = r#"faults=["corrupt program every=20 from=1us"]"#;
        for change in ["capacity=64MiB", "ftl.kind=ox_block", "buffer.mode=volatile", faults] {
            profile.set(change).expect("a valid change");
        }
        let ran = run(&Spec { drive: profile.resolve().expect("valid"), ..spec(form, 0) });
        let told = ran.map(|outcome| outcome.all.count()).expect_err("data was changed").to_string();
        assert!(!told.contains("fault of the simulator"), "{form:?}: {told}");
    }
}

#[test]
fn pages_of_buffers_cost_the_controller_and_nobody_else() {
    let with = |form, page_time: &str| {
        let mut profile = Profile::load("default").expect("a built-in profile");
        let processors = ["controller.processors.count=2", &format!("controller.processors.page_time={page_time}")];
        for change in ["capacity=64MiB", "ftl.kind=ox_block", "buffer.mode=volatile"].iter().chain(&processors) {
            profile.set(change).expect("a valid change");
        }
        let outcome = run(&Spec { drive: profile.resolve().expect("valid"), ..spec(form, 0) }).unwrap();
        let (us, busy) = (outcome.device_cpu_us().unwrap(), outcome.device_busy().unwrap());
        assert!(busy > 0.0 && busy <= 1.0, "{busy}");
        (us, outcome.cpu_us())
    };
    for (form, is_more) in [(Form::Log(LOG), false), (Form::Eleos, true)] {
        let (cheap, dear) = (with(form, "0ns"), with(form, "20us"));
        assert_eq!(dear.0 > cheap.0 + 1.0, is_more, "{form:?}: {cheap:?} and {dear:?}");
        assert!((dear.1 - cheap.1).abs() < 0.5, "{form:?}: {cheap:?} and {dear:?}");
    }
    assert!(run(&spec(Form::Eleos, 0)).unwrap().device_cpu.is_none(), "a controller without processors");
}

#[cfg(target_os = "linux")]
mod live {
    use std::rc::Rc;

    use nandscape_apps_llama_run::run_live;
    use nandscape_device_media::StoreKind;
    use nandscape_device_ssd::Ssd;
    use nandscape_host_driver::nvme_tcp::Target;
    use nandscape_lab_run::wall::Endpoint;
    use nandscape_sim::{Seed, Sim};

    use super::*;

    use crate::server::{Server, SsdExport};

    fn export(sim: &Sim) -> Rc<SsdExport> {
        let ssd = Ssd::new(sim, &drive().without_delay(), StoreKind::Ram, Seed::new(1)).expect("memory");
        SsdExport::of(sim, ssd)
    }

    #[test]
    fn all_forms_run_on_a_served_drive() {
        for form in FORMS {
            let server = Server::of(None, 1 << 30, export);
            let target = Target::new(&server.address, &server.nqn);
            let endpoint = Endpoint::NvmeTcp(target);
            // A store is reused: records inserted by an earlier run have its values until they are inserted again.
            for workload in [0, 3, 3] {
                let Spec { tree, load, .. } = spec(form, workload);
                let outcome = run_live(&endpoint, form, tree, load, (1, false), None, |_| ()).unwrap();
                assert_eq!(outcome.all.count(), 3_000);
                assert!(outcome.drive.is_none() && outcome.after.store.flushes > 0);
            }
        }
    }
}
