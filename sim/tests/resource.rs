//! The resource against a plain step-by-step simulation of the same queue, under spurious polls, and with waiters
//! dropped at every await.

use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use nandscape_sim::account::{CAUSES, CLASSES};
use nandscape_sim::{Cause, Class, Executor, Resource, Sim, Span, Time, Who};
use proptest::prelude::*;

/// One customer of the resource.
#[derive(Clone, Debug)]
struct Job {
    arrival: u64,
    cost: u64,
    class: u8,
    /// Taken and held for this long before `cost`, both while the job has the resource.
    held: Option<u64>,
    /// Dropped when it is polled for the n-th time.
    dropped_at: Option<u32>,
}

fn jobs(drops: bool) -> impl Strategy<Value = Vec<Job>> {
    let dropped_at = if drops { prop::option::of(1u32..5).boxed() } else { Just(None).boxed() };
    let held = prop_oneof![4 => Just(None), 1 => (0u64..20).prop_map(Some)];
    let job = (0u64..200, 1u64..40, 0..CLASSES as u8, held, dropped_at)
        .prop_map(|(arrival, cost, class, held, dropped_at)| Job { arrival, cost, class, held, dropped_at });
    prop::collection::vec(job, 1..25)
}

/// When each job ended, and how long it waited by cause; `None` for a job that was dropped.
type Outcome = Vec<Option<(u64, Vec<u64>)>>;

fn who(index: usize, job: &Job) -> Who {
    Who::new(Cause::new((index % CAUSES) as u8), Class::new(job.class))
}

/// Drops its future when it is polled for the `at`-th time.
struct DropAt<F> {
    future: Option<Pin<Box<F>>>,
    at: Option<u32>,
}

impl<F: Future> Future for DropAt<F> {
    type Output = Option<F::Output>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if let Some(at) = &mut self.at {
            *at -= 1;
            if *at == 0 {
                self.future = None;
                return Poll::Ready(None);
            }
        }
        self.future.as_mut().expect("not polled after it was ready").as_mut().poll(context).map(Some)
    }
}

async fn customer(sim: Sim, resource: Rc<Resource>, who: Who, job: Job) -> (u64, Vec<u64>) {
    let mut waited = nandscape_sim::Wait::ZERO;
    match job.held {
        None => resource.occupy(Span::from_ns(job.cost), who, &mut waited).await,
        Some(held) => {
            let _hold = resource.take(who, &mut waited).await;
            sim.sleep(Span::from_ns(held)).await;
            sim.sleep(Span::from_ns(job.cost)).await;
        }
    }
    (sim.now().ns(), (0..CAUSES as u8).map(|cause| waited.by(Cause::new(cause)).ns()).collect())
}

fn run(executor: Executor, jobs: &[Job]) -> Outcome {
    run_on(executor, jobs).1
}

fn run_on(mut executor: Executor, jobs: &[Job]) -> (Rc<Resource>, Outcome) {
    let sim = executor.sim();
    let resource = Rc::new(Resource::new(&sim));
    let outcome = Rc::new(RefCell::new(vec![None; jobs.len()]));
    for (index, job) in jobs.iter().enumerate() {
        let (sim, resource, outcome, job) = (sim.clone(), resource.clone(), outcome.clone(), job.clone());
        executor.sim().spawn(async move {
            sim.sleep_until(Time::from_ns(job.arrival)).await;
            let at = job.dropped_at;
            let future = customer(sim.clone(), resource, who(index, &job), job);
            let result = DropAt { future: Some(Box::pin(future)), at }.await;
            outcome.borrow_mut()[index] = result;
        });
    }
    executor.block_on(sim.sleep(Span::from_ns(1_000_000))).unwrap();
    assert!(resource.is_idle(), "somebody was left behind");
    let outcome = outcome.take();
    (resource, outcome)
}

/// The same queue, nanosecond by nanosecond, with nothing in common with the code under test.
fn oracle(jobs: &[Job]) -> Outcome {
    #[derive(Clone)]
    struct State {
        rest: u64,
        held: u64,
        waited: Vec<u64>,
        ended: Option<u64>,
    }
    let mut states: Vec<State> = jobs
        .iter()
        .map(|job| State { rest: job.cost, held: job.held.unwrap_or(0), waited: vec![0; CAUSES], ended: None })
        .collect();
    let mut arrivals: Vec<usize> = (0..jobs.len()).collect();
    arrivals.sort_by_key(|&index| jobs[index].arrival);
    let (mut next, mut serving) = (0, None::<usize>);
    let mut queues: Vec<std::collections::VecDeque<usize>> = vec![Default::default(); CLASSES];
    let mut now = 0;
    while states.iter().any(|state| state.ended.is_none()) {
        while next < arrivals.len() && jobs[arrivals[next]].arrival == now {
            let (new, class) = (arrivals[next], usize::from(jobs[arrivals[next]].class));
            next += 1;
            match serving {
                None => serving = Some(new),
                Some(_) => queues[class].push_back(new),
            }
        }
        if let Some(current) = serving {
            for waiting in queues.iter().flatten() {
                states[*waiting].waited[current % CAUSES] += 1;
            }
            let state = &mut states[current];
            if state.held > 0 {
                state.held -= 1;
            } else {
                state.rest -= 1;
                if state.rest == 0 {
                    state.ended = Some(now + 1);
                    serving = queues.iter_mut().find_map(|queue| queue.pop_front());
                }
            }
        }
        now += 1;
    }
    states.into_iter().map(|state| Some((state.ended.unwrap(), state.waited))).collect()
}

/// The executor orders two events of one nanosecond, and the oracle cannot know how. Give each job its own arrival, and
/// no arrival the instant of an ending.
fn untangled(jobs: &[Job]) -> Vec<Job> {
    let mut jobs = jobs.to_vec();
    for (index, job) in jobs.iter_mut().enumerate() {
        job.arrival = job.arrival * 64 + 2 * index as u64 + 1;
        job.cost *= 64;
        job.held = job.held.map(|held| held * 64);
    }
    // Arrivals are odd multiples plus distinct offsets. Sums of services stay at the offset of the job that began the
    // busy period, so an arrival can only coincide with an ending if the offsets are equal.
    jobs
}

proptest! {
    #[test]
    fn serves_as_the_oracle_does(jobs in jobs(false)) {
        let jobs = untangled(&jobs);
        prop_assert_eq!(run(Executor::new(), &jobs), oracle(&jobs));
    }

    #[test]
    fn spurious_polls_change_nothing(jobs in jobs(false)) {
        prop_assert_eq!(run(Executor::with_spurious_polls(), &jobs), run(Executor::new(), &jobs));
    }

    #[test]
    fn a_dropped_customer_passes_its_turn_on(jobs in jobs(true)) {
        let outcome = run(Executor::new(), &jobs);
        for (job, outcome) in jobs.iter().zip(&outcome) {
            prop_assert!(outcome.is_some() || job.dropped_at.is_some());
        }
    }

    /// Other customers may be dropped: the wait of a dropped customer is not charged to the next.
    #[test]
    fn waits_and_service_sum_to_the_time_spent(jobs in jobs(true)) {
        for (job, outcome) in jobs.iter().zip(run(Executor::new(), &jobs)) {
            let Some((ended, waited)) = outcome else { continue };
            let service = job.cost + job.held.unwrap_or(0);
            prop_assert_eq!(ended - job.arrival, service + waited.iter().sum::<u64>());
        }
    }
}

proptest! {
    /// Busy time is the sum of the services of all served customers.
    #[test]
    fn busy_time_is_the_sum_of_services(jobs in jobs(false)) {
        let executor = Executor::new();
        let sim = executor.sim();
        let (resource, outcome) = run_on(executor, &jobs);
        prop_assert!(outcome.iter().all(Option::is_some));
        let services: u64 = jobs.iter().map(|job| job.cost + job.held.unwrap_or(0)).sum();
        prop_assert_eq!(resource.usage().total().ns(), services);
        prop_assert!(sim.now().ns() >= services);
    }
}
