//! Closed queueing networks of planes and channels, solved by mean value analysis: analytic mean response times,
//! without the model, events or random numbers.
//!
//! N readers with one outstanding read each choose planes uniformly at random. The page is sensed and crosses the
//! plane's channel; both stations are first come, first served. There are two solutions, by the state of a plane while
//! its page waits for the channel and crosses it:
//!
//! - [`Network::pipelined`]: it senses the next page. Planes and channels are stations of a closed network.
//! - [`Network::held`]: the plane is blocked. It is one station, and its service is the whole hold, with a wait for the
//!   channel that depends on the other busy planes of the channel.
//!
//! Assumptions. An arriving read sees the average network with one reader less (the arrival theorem, exact only for
//! exponential times). The read in service has a mean residual of (mean^2 + variance) / (2 mean), and each waiting read
//! a whole service (Reiser's correction for service that is not exponential). In `pipelined` a plane never stops for
//! lack of a register. In `held` the planes of a channel are busy independently of each other, and `m` planes that are
//! always busy have the cycle of machines with constant times that share a repairman: max(sensing + transfer, m
//! transfers), since they settle into a fixed order. The utilisation of a station is capped at 1. Known errors: where
//! it is 1, the residual is too short by half a service, since arrivals there coincide with departures.

/// A service time.
#[derive(Copy, Clone, PartialEq, Debug)]
pub(crate) struct Service {
    /// The mean, in any unit.
    pub(crate) mean: f64,
    /// The variance, in that unit squared.
    pub(crate) variance: f64,
}

impl Service {
    /// Always the same time.
    pub(crate) const fn constant(time: f64) -> Service {
        Service { mean: time, variance: 0.0 }
    }

    /// Different times, each with its share.
    pub(crate) fn mixed(shares: &[(f64, f64)]) -> Service {
        let mean: f64 = shares.iter().map(|(share, time)| share * time).sum();
        let square: f64 = shares.iter().map(|(share, time)| share * time * time).sum();
        Service { mean, variance: square - mean * mean }
    }

    /// The mean residual of a service in progress.
    fn residual(self) -> f64 {
        if self.mean == 0.0 { 0.0 } else { (self.mean * self.mean + self.variance) / (2.0 * self.mean) }
    }
}

/// The state of a station seen by an arrival: customers in it, and its utilisation.
#[derive(Copy, Clone, Default)]
struct Station {
    customers: f64,
    busy: f64,
}

impl Station {
    /// The wait before a service.
    fn wait(self, service: Service) -> f64 {
        (self.customers - self.busy) * service.mean + self.busy * service.residual()
    }

    /// With arrivals at `rate` that stay for `stay` each.
    fn with(rate: f64, stay: f64, service: Service) -> Station {
        Station { customers: rate * stay, busy: (rate * service.mean).min(1.0) }
    }
}

/// Channels, the planes of each, and the service times of a read at both.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Network {
    pub(crate) channels: u32,
    pub(crate) planes_per_channel: u32,
    pub(crate) sensing: Service,
    pub(crate) transfer: Service,
}

impl Network {
    /// Mean time of a read with `readers` readers of one outstanding read each, if a plane senses the next page at
    /// once.
    pub(crate) fn pipelined(&self, readers: u32) -> f64 {
        let (mut plane, mut channel, mut response) = (Station::default(), Station::default(), 0.0);
        for present in 1..=readers {
            let at_plane = plane.wait(self.sensing) + self.sensing.mean;
            let at_channel = channel.wait(self.transfer) + self.transfer.mean;
            response = at_plane + at_channel;
            let rate = f64::from(present) / response;
            plane = Station::with(rate / self.planes(), at_plane, self.sensing);
            channel = Station::with(rate / f64::from(self.channels), at_channel, self.transfer);
        }
        response
    }

    /// The same, if a plane is held until its page has crossed the channel.
    pub(crate) fn held(&self, readers: u32) -> f64 {
        let (mut plane, mut response) = (Station::default(), 0.0);
        for present in 1..=readers {
            let hold = self.hold(plane.busy);
            response = plane.wait(hold) + hold.mean;
            plane = Station::with(f64::from(present) / response / self.planes(), response, hold);
        }
        response
    }

    /// The time that a plane is held, if the others have this utilisation.
    fn hold(&self, busy: f64) -> Service {
        let others = self.planes_per_channel - 1;
        let mean = (0..=others).map(|also| binomial(others, also, busy) * self.cycle(1 + also)).sum();
        Service { mean, variance: self.sensing.variance + self.transfer.variance }
    }

    /// The cycle time of each of `planes` planes that are always busy.
    fn cycle(&self, planes: u32) -> f64 {
        (self.sensing.mean + self.transfer.mean).max(f64::from(planes) * self.transfer.mean)
    }

    fn planes(&self) -> f64 {
        f64::from(self.channels * self.planes_per_channel)
    }
}

/// The probability that exactly `some` of `all` occur, each with probability `chance`.
fn binomial(all: u32, some: u32, chance: f64) -> f64 {
    let ways: f64 = (0..some).map(|number| f64::from(all - number) / f64::from(number + 1)).product();
    let power = |base: f64, times: u32| (0..times).map(|_| base).product::<f64>();
    ways * power(chance, some) * power(1.0 - chance, all - some)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exponential(mean: f64) -> Service {
        Service { mean, variance: mean * mean }
    }

    fn network(channels: u32, planes_per_channel: u32, sensing: Service, transfer: Service) -> Network {
        Network { channels, planes_per_channel, sensing, transfer }
    }

    fn assert_near(measured: f64, expected: f64, within: f64) {
        assert!((measured / expected - 1.0).abs() <= within, "{measured} instead of {expected}");
    }

    /// Product form: with K stations visited alike and exponential times of mean s, a visit takes s (1 + (N - 1) / K).
    #[test]
    fn balanced_networks_with_exponential_times_are_exact() {
        for (channels, readers) in [(1, 1), (1, 16), (4, 16), (16, 16), (16, 3)] {
            let stations = f64::from(2 * channels);
            let both = network(channels, 1, exponential(60.0), exponential(60.0));
            let visit = 60.0 * (1.0 + f64::from(readers - 1) / stations);
            assert_near(both.pipelined(readers), 2.0 * visit, 1e-12);
        }
        for (channels, planes, readers) in [(1, 1, 16), (2, 8, 16), (16, 16, 16)] {
            let planes_alone = network(channels, planes, exponential(50.0), Service::constant(0.0));
            let expected = 50.0 * (1.0 + f64::from(readers - 1) / f64::from(channels * planes));
            assert_near(planes_alone.held(readers), expected, 1e-12);
            assert_near(planes_alone.pipelined(readers), expected, 1e-12);
        }
    }

    /// Two exponential stations in a circle: the rate is G(N - 1) / G(N), G(n) the sum of a^i b^(n - i).
    #[test]
    fn two_stations_in_a_circle_are_exact() {
        let g = |n: i32| (0..=n).map(|i| 50.0_f64.powi(i) * 80.0_f64.powi(n - i)).sum::<f64>();
        for readers in 1..=16 {
            let circle = network(1, 1, exponential(50.0), exponential(80.0));
            let rate = g(readers as i32 - 1) / g(readers as i32);
            assert_near(circle.pipelined(readers), f64::from(readers) / rate, 1e-12);
        }
    }

    /// Pollaczek and Khinchine: among very many readers and planes, each is a queue with Poisson arrivals.
    #[test]
    fn many_planes_with_constant_times_are_queues_of_their_own() {
        let planes = network(1_000, 1, Service::constant(50.0), Service::constant(0.0));
        for readers in [200, 1_000, 3_000] {
            let response = planes.held(readers);
            let busy = f64::from(readers) / response / 1_000.0 * 50.0;
            assert_near(response, 50.0 + busy * 50.0 / (2.0 * (1.0 - busy)), 2e-3);
        }
    }

    /// Machines with constant times that share a repairman, by hand: 56 us of work, 60 us of repair.
    #[test]
    fn planes_that_never_rest_take_turns_at_the_channel() {
        let shared = network(1, 16, Service::constant(56.0), Service::constant(60.0));
        assert_eq!([1, 2, 3, 16].map(|planes| shared.cycle(planes)), [116.0, 120.0, 180.0, 960.0]);
        assert_eq!(shared.hold(0.0).mean, 116.0);
        assert_near(shared.hold(1.0).mean, 960.0, 1e-12);
        assert_near(network(1, 2, shared.sensing, shared.transfer).hold(0.25).mean, 0.75 * 116.0 + 0.25 * 120.0, 1e-12);
    }

    #[test]
    fn one_reader_waits_for_nobody() {
        for (channels, planes) in [(1, 1), (16, 1), (1, 16), (4, 4)] {
            let alone = network(channels, planes, Service::constant(56.0), Service::constant(60.0));
            assert_eq!((alone.held(1), alone.pipelined(1)), (116.0, 116.0));
        }
    }

    /// A bottleneck that is always busy: N services, less the half that the residual lacks.
    #[test]
    fn a_single_plane_serves_one_after_the_other() {
        let one = network(1, 1, Service::constant(56.0), Service::constant(60.0));
        assert_near(one.held(16), 15.5 * 116.0, 1e-3);
    }

    #[test]
    fn times_are_mixed_and_chances_are_whole() {
        let mixed = Service::mixed(&[(0.5, 48.0), (0.5, 64.0)]);
        assert_eq!((mixed.mean, mixed.variance, mixed.residual()), (56.0, 64.0, (56.0 * 56.0 + 64.0) / 112.0));
        for chance in [0.0, 0.3, 1.0] {
            assert_near((0..=15).map(|some| binomial(15, some, chance)).sum(), 1.0, 1e-12);
        }
        assert_near(binomial(4, 2, 0.5), 6.0 / 16.0, 1e-12);
    }
}
