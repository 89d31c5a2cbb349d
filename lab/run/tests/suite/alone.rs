//! A job alone, for `--fairness`, draws the same requests as among other jobs.

use std::cell::RefCell;
use std::rc::Rc;

use nandscape_device_ssd::Profile;
use nandscape_lab_run::{Begin, Observer, Precondition, Simulation};
use nandscape_lab_workload::{Direction, JobSpec, Limit, Rate, RateProcess, Served, Workload};

/// The addresses of reads, with the time of each submission.
#[derive(Default)]
struct Reads(RefCell<Vec<(u64, u64)>>);

impl Observer for Reads {
    fn served(&self, request: &Served<'_>) {
        if request.direction == Direction::Read {
            self.0.borrow_mut().push((request.submitted.ns(), request.offset));
        }
    }
}

/// The addresses of the measured reads in the order of their submission.
fn reads(workload: Workload) -> Vec<u64> {
    let mut profile = Profile::load("default").expect("a profile");
    profile.set_all(&["capacity=64MiB".to_owned()]).expect("keys");
    let profile = profile.resolve().expect("a drive");
    let simulation = Simulation::on(profile, Precondition::Full, workload, 7);
    let seen = Rc::new(Reads::default());
    simulation.run_begun(&Begin::default(), Rc::new(()), Some(seen.clone())).expect("it runs");
    let mut reads = seen.0.take();
    reads.sort_by_key(|(submitted, _)| *submitted);
    reads.into_iter().map(|(_, offset)| offset).collect()
}

#[test]
fn a_job_alone_draws_the_requests_that_it_draws_beside_others() {
    let job = |rw: &str| JobSpec { rw: rw.parse().expect("a pattern"), iodepth: 1, ..JobSpec::default() };
    let rate = Some(Rate { iops: 5_000.0, process: RateProcess::Linear });
    let jobs = vec![JobSpec { rate, ..job("randwrite") }, job("randread")];
    let both = Workload { jobs, limit: Limit::Requests(2_000), warmup: 200, ..Workload::of(job("read")) };
    let beside = reads(both.clone());
    let own = beside.len() as u64;
    let alone = both.alone(1, &[2_000 - own, own]).expect("it issued requests");
    assert_eq!((alone.limit, alone.warmup), (Limit::Requests(own), 200 * own / 2_000));
    // In the warm-up with the other job, about as many requests are of this job.
    let alone = reads(Workload { warmup: 0, limit: Limit::Requests(2_200), ..alone });
    let from = alone.windows(20).position(|window| window == &beside[..20]).expect("the same requests");
    assert_eq!(beside, alone[from..from + beside.len()]);
    assert!(both.alone(0, &[0, 5]).is_none());
}
