//! Small experiments: who fails fast evades the tenant, predictions are right, runs repeat themselves, and errors say what is valid.

use nandscape_lab_mitt::{Experiment, Limit, Report, RunError, Spec, Subject, experiment, run};

fn of(name: &str, requests: u64) -> Experiment {
    let mut spec = Spec::new(Subject::named(name).expect("a subject"));
    spec.load.requests = requests;
    spec.seed = seed();
    let policies = ["base", "hedged", "mitt"].map(str::to_owned).to_vec();
    Experiment { spec, policies, deadline: Limit::P95, hedge: Limit::P95 }
}

fn seed() -> u64 {
    std::env::var("NANDSCAPE_TEST_SEED").map_or(1, |text| text.parse().expect("NANDSCAPE_TEST_SEED is a number"))
}

fn report(of: &Experiment) -> Report {
    experiment(of, &mut |_| ()).expect("it runs")
}

/// The quantile of each run.
fn quantiles(report: &Report, quantile: f64) -> Vec<f64> {
    report.runs.iter().map(|(_, outcome)| outcome.gets.quantile(quantile).as_us()).collect()
}

/// The tail of Mitt is below that of Base, and predictions are wrong about a share of gets at the most.
fn holds(name: &str, requests: u64, quantile: f64, most_wrong: f64) {
    let report = report(&of(name, requests));
    let tails = quantiles(&report, quantile);
    let case = format!("{name}, seed {}: {tails:?}", seed());
    assert!(tails[0] < tails[1] && tails[3] < tails[1], "{case}");
    for (_, outcome) in &report.runs {
        assert_eq!((outcome.failed, outcome.gets.count()), (0, requests), "{case}");
    }
    assert!(report.runs[3].1.busy > 0 && report.runs[1].1.busy == 0, "{case}");
    for right in &report.right {
        let accuracy = &right.accuracy;
        let wrong = accuracy.inaccuracy();
        assert!(accuracy.compared > requests / 2 && accuracy.rejected == 0, "{case}, {}", right.load);
        assert!(wrong < most_wrong, "{case}, {}: {wrong}", right.load);
    }
}

#[test]
fn cache() {
    holds("cache", 40_000, 0.99, 0.03);
}

#[test]
fn smr() {
    holds("smr", 4_000, 0.99, 0.2);
}

#[test]
fn vm() {
    holds("vm", 8_000, 0.99, 0.2);
}

#[test]
fn runtime() {
    holds("runtime", 20_000, 0.999, 0.2);
}

#[test]
fn runs_repeat_themselves_and_other_seeds_do_not() {
    for name in Subject::NAMES {
        let spec = |seed| Spec { seed, policy: "mitt".to_owned(), ..of(name, 2_000).spec };
        let figures = |seed| {
            let run = run(&spec(seed)).expect("it runs");
            (run.outcome.gets.sum_ns(), run.outcome.tries, run.outcome.took, run.accuracy.compared)
        };
        assert_eq!(figures(1), figures(1), "{name}");
        assert_ne!(figures(1), figures(2), "{name}");
    }
}

#[test]
fn what_cannot_be_is_told() {
    let failed = |change: fn(&mut Spec)| {
        let mut spec = of("cache", 100).spec;
        change(&mut spec);
        run(&spec).err().expect("an error")
    };
    assert!(matches!(failed(|spec| spec.policy = "fast".to_owned()), RunError::Policy(_)));
    assert!(failed(|spec| spec.noisy = 4).to_string().contains("noise beside as many"));
    assert!(failed(|spec| spec.load.scale = 0).to_string().contains("gets in a request"));
    assert!(failed(|spec| spec.load.records = 1 << 20).to_string().contains("the store is full"));
}
