//! The common trait of resources: a forecast for a request, its service, and the gate in front of both.

use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;

use nandscape_host_block::{Accuracy, Busy};
use nandscape_sim::{Sim, Span};

/// The prediction for a request that arrives now.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct Forecast {
    /// From its arrival to its end.
    pub latency: Span,
    /// The part spent waiting for others.
    pub wait: Span,
}

/// A request in service.
pub type Serving = Pin<Box<dyn Future<Output = ()>>>;

/// A resource that requests need.
pub trait Resource {
    /// The predicted latency of a request that arrives now. The work of a forecast does not depend on the number of
    /// waiting requests (Li 3.1.4).
    fn forecast(&self) -> Forecast;

    /// A request arrives now.
    fn serve(&self) -> Serving;

    /// A request with this forecast was rejected.
    fn rejected(&self, _forecast: &Forecast) {}
}

/// Admits requests, and rejects those that would be late.
pub struct Gate {
    sim: Sim,
    resource: Rc<dyn Resource>,
    /// How long it takes to reject a request.
    reject: Span,
    /// Whether predictions are only attached to requests, which are all served.
    predict_only: bool,
    counted: RefCell<Accuracy>,
}

impl Gate {
    /// The gate of a resource. A rejection takes `reject`; with `predict_only` there is none.
    pub fn new(sim: &Sim, resource: Rc<dyn Resource>, reject: Span, predict_only: bool) -> Gate {
        Gate { sim: sim.clone(), resource, reject, predict_only, counted: RefCell::default() }
    }

    /// How right its predictions were.
    pub fn counted(&self) -> Accuracy {
        self.counted.borrow().clone()
    }

    /// Counts from the beginning.
    pub fn count_anew(&self) {
        self.counted.take();
    }

    /// A request, with a deadline or without one: it has ended, or is rejected.
    ///
    /// # Errors
    /// That it would be late.
    pub async fn pass(&self, deadline: Option<Span>) -> Result<(), Busy> {
        let (begun, forecast) = (self.sim.now(), self.resource.forecast());
        let late = deadline.filter(|deadline| forecast.latency > *deadline);
        self.judged(deadline.is_some(), late.is_some());
        if let Some(deadline) = late.filter(|_| !self.predict_only) {
            self.resource.rejected(&forecast);
            self.sim.sleep(self.reject).await;
            return Err(Busy { wait: forecast.wait, latency: forecast.latency, deadline });
        }
        self.resource.serve().await;
        if let Some(deadline) = deadline {
            self.counted.borrow_mut().compare(forecast.latency, self.sim.now() - begun, deadline);
        }
        Ok(())
    }

    fn judged(&self, has_deadline: bool, is_late: bool) {
        let mut counted = self.counted.borrow_mut();
        counted.reads += 1;
        counted.judged += u64::from(has_deadline);
        counted.attached += u64::from(is_late && self.predict_only);
        counted.rejected += u64::from(is_late && !self.predict_only);
    }
}

/// A moving average, with an initial value.
pub(crate) struct Average {
    ns: f64,
    weight: f64,
}

impl Average {
    pub(crate) fn new(at_first: Span, weight: f64) -> Average {
        Average { ns: at_first.ns() as f64, weight }
    }

    pub(crate) fn add(&mut self, value: Span) {
        self.ns += (value.ns() as f64 - self.ns) * self.weight;
    }

    pub(crate) fn get(&self) -> Span {
        Span::from_ns(self.ns as u64)
    }
}

/// A straight line through recent pairs, with weights that decrease with age.
#[derive(Default)]
pub(crate) struct Fit {
    count: f64,
    x: f64,
    y: f64,
    xx: f64,
    xy: f64,
}

/// The weight of a pair after the next one.
const FADES: f64 = 0.9;

impl Fit {
    pub(crate) fn add(&mut self, x: f64, y: f64) {
        for (sum, more) in
            [(&mut self.count, 1.0), (&mut self.x, x), (&mut self.y, y), (&mut self.xx, x * x), (&mut self.xy, x * y)]
        {
            *sum = *sum * FADES + more;
        }
    }

    /// The line's value at `x`; 0 without pairs, and the mean if the pairs determine no slope.
    pub(crate) fn at(&self, x: f64) -> f64 {
        if self.count == 0.0 {
            return 0.0;
        }
        let (mean_x, mean_y) = (self.x / self.count, self.y / self.count);
        let spread = self.xx / self.count - mean_x * mean_x;
        // For pairs close together, rounding would determine the slope.
        if spread <= 1e-6 * mean_x * mean_x + 1e-9 {
            return mean_y;
        }
        let slope = (self.xy / self.count - mean_x * mean_y) / spread;
        (mean_y + slope * (x - mean_x)).max(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandscape_sim::Executor;

    #[test]
    fn a_line_is_found_and_follows_a_change() {
        let mut fit = Fit::default();
        assert_eq!(fit.at(3.0), 0.0);
        fit.add(2.0, 7.0);
        assert_eq!(fit.at(100.0), 7.0, "no slope is known");
        (0..10).for_each(|x| fit.add(f64::from(x), 3.0 + 2.0 * f64::from(x)));
        assert!((fit.at(20.0) - 43.0).abs() < 1.0, "{}", fit.at(20.0));
        (0..200).for_each(|x| fit.add(f64::from(x % 10), 1.0 + 5.0 * f64::from(x % 10)));
        assert!((fit.at(20.0) - 101.0).abs() < 1e-3, "{}", fit.at(20.0));
        assert_eq!(fit.at(-100.0), 0.0);
    }

    /// Predicts 2 ms and takes 3.
    struct Wrong(Sim);

    impl Resource for Wrong {
        fn forecast(&self) -> Forecast {
            Forecast { latency: Span::from_ms(2), wait: Span::from_ms(1) }
        }

        fn serve(&self) -> Serving {
            let sim = self.0.clone();
            Box::pin(async move { sim.sleep(Span::from_ms(3)).await })
        }
    }

    #[test]
    fn late_requests_are_rejected_at_once_and_others_are_compared() {
        let mut executor = Executor::new();
        let sim = executor.sim();
        let ms = Span::from_ms;
        let gate = |only| Gate::new(&sim, Rc::new(Wrong(sim.clone())), Span::from_us(5), only);
        executor
            .block_on(async {
                let rejects = gate(false);
                let busy = rejects.pass(Some(ms(1))).await.unwrap_err();
                assert_eq!((busy.wait, busy.latency, sim.now().ns()), (ms(1), ms(2), 5_000));
                assert!(rejects.pass(Some(ms(2))).await.is_ok() && rejects.pass(None).await.is_ok());
                let counted = rejects.counted();
                assert_eq!((counted.reads, counted.rejected, counted.compared, counted.false_negatives), (3, 1, 1, 1));
                let only = gate(true);
                assert!(only.pass(Some(ms(1))).await.is_ok());
                assert_eq!((only.counted().attached, only.counted().false_positives), (1, 0));
                only.count_anew();
                assert_eq!(only.counted().reads, 0);
            })
            .unwrap();
    }
}
