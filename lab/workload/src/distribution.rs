//! Distributions of random addresses over a job's part of the drive.
//!
//! `uniform`; `zipf:THETA`, where the k-th most popular block has a probability proportional to 1/k^THETA; `pareto:H`,
//! where a share 1-H of requests goes to a share H of blocks, recursively within each part; `normal:DEV`, around the
//! middle with a deviation of DEV percent; `zoned:A/S:A/S:...`, where A percent of requests go to the next S percent of
//! the space. Popular blocks of `zipf` and `pareto` are scattered, as in fio.

use std::fmt;
use std::str::FromStr;

use nandscape_sim::Rng;
use nandscape_sim::permutation::Permutation;

use crate::words::WordError;

/// A distribution and its parameters.
#[derive(Clone, PartialEq, Debug)]
pub enum Distribution {
    /// All blocks equally likely.
    Uniform,
    /// Zipf with the given exponent.
    Zipf(f64),
    /// Self-similar with the given share.
    Pareto(f64),
    /// Normal with the given deviation in percent of the space.
    Normal(f64),
    /// (percent of requests, percent of the space) in order.
    Zoned(Vec<(f64, f64)>),
}

impl FromStr for Distribution {
    type Err = WordError;

    fn from_str(text: &str) -> Result<Distribution, WordError> {
        let expected = "a distribution: uniform, zipf:1.1, pareto:0.2, normal:10 or zoned:60/10:30/20:10/70";
        let wrong = || WordError::new(text, expected);
        let (name, argument) = text.split_once(':').unwrap_or((text, ""));
        let number = |least: f64, most: f64| {
            let value: f64 = argument.parse().map_err(|_| wrong())?;
            if value > least && value < most { Ok(value) } else { Err(wrong()) }
        };
        match name {
            "uniform" | "random" if argument.is_empty() => Ok(Distribution::Uniform),
            "zipf" => Ok(Distribution::Zipf(number(0.0, 100.0)?)),
            "pareto" => Ok(Distribution::Pareto(number(0.0, 1.0)?)),
            "normal" => Ok(Distribution::Normal(number(0.0, 100.0)?)),
            "zoned" => zones(argument).map(Distribution::Zoned).ok_or_else(wrong),
            _ => Err(wrong()),
        }
    }
}

fn zones(text: &str) -> Option<Vec<(f64, f64)>> {
    let zone = |part: &str| {
        let (access, size) = part.split_once('/')?;
        let (access, size): (f64, f64) = (access.parse().ok()?, size.parse().ok()?);
        (access >= 0.0 && size > 0.0).then_some((access, size))
    };
    let zones: Vec<(f64, f64)> = text.split(':').map(zone).collect::<Option<_>>()?;
    let sum = |part: fn(&(f64, f64)) -> f64| zones.iter().map(part).sum::<f64>();
    let whole = |sum: f64| (sum - 100.0).abs() < 1e-6;
    (whole(sum(|zone| zone.0)) && whole(sum(|zone| zone.1))).then_some(zones)
}

impl fmt::Display for Distribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Distribution::Uniform => f.write_str("uniform"),
            Distribution::Zipf(theta) => write!(f, "zipf:{theta}"),
            Distribution::Pareto(share) => write!(f, "pareto:{share}"),
            Distribution::Normal(deviation) => write!(f, "normal:{deviation}"),
            Distribution::Zoned(zones) => {
                let parts: Vec<String> = zones.iter().map(|(access, size)| format!("{access}/{size}")).collect();
                write!(f, "zoned:{}", parts.join(":"))
            }
        }
    }
}

/// Draws block numbers below a bound.
pub(crate) struct Sampler {
    blocks: u64,
    shape: Shape,
}

enum Shape {
    Uniform,
    Zipf(Box<Zipf>, Permutation),
    Pareto {
        power: f64,
        order: Permutation,
    },
    Normal {
        deviation: f64,
    },
    /// (upper bound of the random number, first block, blocks) of each zone.
    Zoned(Vec<(f64, u64, u64)>),
}

impl Sampler {
    pub(crate) fn new(distribution: &Distribution, blocks: u64, rng: &mut Rng) -> Sampler {
        let shape = match distribution {
            Distribution::Uniform => Shape::Uniform,
            Distribution::Zipf(theta) => {
                Shape::Zipf(Box::new(Zipf::new(blocks, *theta)), Permutation::new(blocks, rng))
            }
            Distribution::Pareto(share) => {
                let power = libm::log(*share) / libm::log(1.0 - share);
                Shape::Pareto { power, order: Permutation::new(blocks, rng) }
            }
            Distribution::Normal(deviation) => Shape::Normal { deviation: deviation / 100.0 * blocks as f64 },
            Distribution::Zoned(zones) => Shape::Zoned(zone_bounds(zones, blocks)),
        };
        Sampler { blocks, shape }
    }

    #[inline(always)]
    pub(crate) fn next(&self, rng: &mut Rng) -> u64 {
        match self.shape {
            Shape::Uniform => rng.below(self.blocks),
            _ => self.next_uneven(rng),
        }
    }

    #[inline(never)]
    fn next_uneven(&self, rng: &mut Rng) -> u64 {
        match &self.shape {
            Shape::Uniform => rng.below(self.blocks),
            Shape::Zipf(zipf, order) => order.at(zipf.rank(rng) - 1),
            Shape::Pareto { power, order } => {
                let rank = self.blocks as f64 * libm::pow(rng.unit(), *power);
                order.at((rank as u64).min(self.blocks - 1))
            }
            Shape::Normal { deviation } => loop {
                let block = self.blocks as f64 / 2.0 + rng.normal() * deviation;
                if block >= 0.0 && (block as u64) < self.blocks {
                    return block as u64;
                }
            },
            Shape::Zoned(zones) => {
                let draw = rng.unit();
                let zone = zones.iter().find(|(upto, _, _)| draw < *upto).or(zones.last());
                let &(_, first, blocks) = zone.expect("there is a zone");
                first + rng.below(blocks)
            }
        }
    }
}

fn zone_bounds(zones: &[(f64, f64)], blocks: u64) -> Vec<(f64, u64, u64)> {
    let (mut access_sum, mut size_sum, mut first) = (0.0, 0.0, 0);
    let mut bounds = Vec::with_capacity(zones.len());
    for (access, size) in zones {
        access_sum += access / 100.0;
        size_sum += size / 100.0;
        let end = ((blocks as f64 * size_sum) as u64).clamp(first + 1, blocks.max(first + 1));
        bounds.push((access_sum, first.min(blocks - 1), (end - first).min(blocks - first.min(blocks - 1))));
        first = end.min(blocks - 1);
    }
    bounds
}

/// Zipf's distribution over the ranks 1 to n, by rejection-inversion (Hörmann and Derflinger 1996): no table, and the
/// expected number of tries is below 1.1 for any exponent.
pub(crate) struct Zipf {
    n: f64,
    theta: f64,
    h_x1: f64,
    h_n: f64,
    s: f64,
}

impl Zipf {
    pub(crate) fn new(n: u64, theta: f64) -> Zipf {
        let mut zipf = Zipf { n: n as f64, theta, h_x1: 0.0, h_n: 0.0, s: 0.0 };
        zipf.h_x1 = zipf.h_integral(1.5) - 1.0;
        zipf.h_n = zipf.h_integral(zipf.n + 0.5);
        zipf.s = 2.0 - zipf.h_integral_inverse(zipf.h_integral(2.5) - zipf.h(2.0));
        zipf
    }

    pub(crate) fn rank(&self, rng: &mut Rng) -> u64 {
        loop {
            let u = self.h_n + rng.unit() * (self.h_x1 - self.h_n);
            let x = self.h_integral_inverse(u);
            let k = libm::round(x).clamp(1.0, self.n);
            if k - x <= self.s || u >= self.h_integral(k + 0.5) - self.h(k) {
                return k as u64;
            }
        }
    }

    /// 1 / x^theta.
    fn h(&self, x: f64) -> f64 {
        libm::exp(-self.theta * libm::log(x))
    }

    /// An integral of `h`, also where theta is 1.
    fn h_integral(&self, x: f64) -> f64 {
        let log_x = libm::log(x);
        expm1_over((1.0 - self.theta) * log_x) * log_x
    }

    fn h_integral_inverse(&self, x: f64) -> f64 {
        let t = (x * (1.0 - self.theta)).max(-1.0);
        libm::exp(log1p_over(t) * x)
    }
}

/// (e^x - 1) / x, also near zero.
fn expm1_over(x: f64) -> f64 {
    if x.abs() > 1e-8 { libm::expm1(x) / x } else { 1.0 + x * 0.5 }
}

/// ln(1 + x) / x, also near zero.
fn log1p_over(x: f64) -> f64 {
    if x.abs() > 1e-8 { libm::log1p(x) / x } else { 1.0 - x * 0.5 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandscape_sim::Seed;

    fn counts(distribution: &str, blocks: u64, draws: u32) -> Vec<u32> {
        let mut rng = Seed::new(7).rng();
        let sampler = Sampler::new(&distribution.parse().unwrap(), blocks, &mut rng);
        let mut counts = vec![0; blocks as usize];
        (0..draws).for_each(|_| counts[sampler.next(&mut rng) as usize] += 1);
        counts
    }

    #[test]
    fn zipf_ranks_have_their_probabilities() {
        for theta in [0.6, 1.0, 1.1, 2.0] {
            let mut sorted = counts(&format!("zipf:{theta}"), 100, 400_000);
            sorted.sort_unstable_by(|a, b| b.cmp(a));
            let norm: f64 = (1..=100).map(|k| libm::pow(f64::from(k), -theta)).sum();
            for rank in [1, 2, 5, 20] {
                let expected = libm::pow(f64::from(rank), -theta) / norm * 400_000.0;
                let got = f64::from(sorted[rank as usize - 1]);
                assert!((got - expected).abs() < 0.06 * expected + 40.0, "theta {theta} rank {rank}: {got} {expected}");
            }
        }
    }

    #[test]
    fn pareto_20_sends_80_percent_to_20_percent() {
        let mut sorted = counts("pareto:0.2", 1_000, 200_000);
        sorted.sort_unstable_by(|a, b| b.cmp(a));
        let hot: u32 = sorted[..200].iter().sum();
        assert!((155_000..165_000).contains(&hot), "{hot}");
    }

    #[test]
    fn zones_get_their_shares() {
        let counts = counts("zoned:60/10:30/20:10/70", 1_000, 100_000);
        let sum = |range: std::ops::Range<usize>| counts[range].iter().sum::<u32>();
        assert!((59_000..61_000).contains(&sum(0..100)));
        assert!((29_000..31_000).contains(&sum(100..300)));
    }

    /// Checks that `hits` of `draws` are a share `p`, within five standard deviations of the binomial distribution.
    fn expect_share(what: &str, hits: u32, draws: u32, p: f64) {
        let (mean, deviation) = (f64::from(draws) * p, libm::sqrt(f64::from(draws) * p * (1.0 - p)));
        let off = (f64::from(hits) - mean).abs();
        assert!(off <= 5.0 * deviation + 0.5, "{what}, seed 7: {hits} of {draws} instead of {mean:.0}");
    }

    /// The k most popular of n blocks have H(k) / H(n) of the requests, with H(k) the sum of 1/i^theta up to k.
    #[test]
    fn zipf_shares_are_those_of_the_generalised_harmonic_numbers() {
        for theta in [0.5, 0.99, 1.0, 1.2, 2.5] {
            let draws = 200_000;
            let mut sorted = counts(&format!("zipf:{theta}"), 10_000, draws);
            sorted.sort_unstable_by(|a, b| b.cmp(a));
            let harmonic = |upto: u32| (1..=upto).map(|rank| libm::pow(f64::from(rank), -theta)).sum::<f64>();
            // The few most popular blocks differ by many deviations, so their counts have the order of ranks.
            for upto in [1, 2, 3] {
                let hits = sorted[..upto as usize].iter().sum();
                expect_share(&format!("zipf:{theta}, first {upto}"), hits, draws, harmonic(upto) / harmonic(10_000));
            }
        }
    }

    /// Each rank at its own position, without the scatter, instead of sorting the results.
    #[test]
    fn zipf_ranks_far_down_have_their_shares() {
        for theta in [0.5, 1.0, 1.2] {
            let (zipf, mut rng, draws) = (Zipf::new(10_000, theta), Seed::new(7).rng(), 200_000);
            let ranks: Vec<u64> = (0..draws).map(|_| zipf.rank(&mut rng)).collect();
            let harmonic = |upto: u32| (1..=upto).map(|rank| libm::pow(f64::from(rank), -theta)).sum::<f64>();
            for upto in [1, 10, 100, 1_000, 5_000, 9_999] {
                let hits = ranks.iter().filter(|rank| **rank <= u64::from(upto)).count() as u32;
                expect_share(&format!("zipf:{theta}, to rank {upto}"), hits, draws, harmonic(upto) / harmonic(10_000));
            }
        }
    }

    /// A share h of blocks has 1-h of the requests, a share h of these has 1-h of those, and so on.
    #[test]
    fn pareto_is_self_similar() {
        for h in [0.1, 0.2, 0.4] {
            let (blocks, draws) = (1_000_000, 200_000);
            let mut rng = Seed::new(7).rng();
            let sampler = Sampler::new(&Distribution::Pareto(h), blocks, &mut rng);
            let Shape::Pareto { order, .. } = &sampler.shape else { panic!("another shape") };
            // The rank of each block in popularity.
            let mut rank = vec![0; blocks as usize];
            (0..blocks).for_each(|at| rank[order.at(at) as usize] = at);
            let ranks: Vec<u64> = (0..draws).map(|_| rank[sampler.next(&mut rng) as usize]).collect();
            for level in 1..=4 {
                let (space, share) = (libm::pow(h, f64::from(level)), libm::pow(1.0 - h, f64::from(level)));
                let upto = libm::round(space * blocks as f64) as u64;
                let hits = ranks.iter().filter(|rank| **rank < upto).count() as u32;
                expect_share(&format!("pareto:{h}, level {level}"), hits, draws, share);
            }
        }
    }

    /// The normal distribution cut off at both ends: erf(x / sqrt 2) within x deviations, over that of all the space.
    #[test]
    fn normal_shares_are_those_of_the_error_function() {
        for percent in [5.0, 10.0, 30.0] {
            let (blocks, draws) = (1_000_000u64, 200_000);
            let mut rng = Seed::new(7).rng();
            let sampler = Sampler::new(&Distribution::Normal(percent), blocks, &mut rng);
            let drawn: Vec<u64> = (0..draws).map(|_| sampler.next(&mut rng)).collect();
            let (middle, deviation) = (blocks as f64 / 2.0, percent / 100.0 * blocks as f64);
            let within = |deviations: f64| libm::erf(deviations / core::f64::consts::SQRT_2);
            for deviations in [0.1, 0.5, 1.0, 1.5] {
                let near = |block: &&u64| (**block as f64 + 0.5 - middle).abs() < deviations * deviation;
                let hits = drawn.iter().filter(near).count() as u32;
                let share = within(deviations) / within(middle / deviation);
                expect_share(&format!("normal:{percent} within {deviations}"), hits, draws, share);
            }
            let lower = drawn.iter().filter(|block| **block < blocks / 2).count() as u32;
            expect_share(&format!("normal:{percent}, lower half"), lower, draws, 0.5);
        }
    }

    #[test]
    fn zones_have_their_shares_and_are_even_inside() {
        let (draws, counts) = (200_000, counts("zoned:60/10:30/20:0/30:10/40", 1_000, 200_000));
        let cases = [(0..100, 0.6), (100..300, 0.3), (300..600, 0.0), (600..1_000, 0.1)];
        for (zone, share) in cases {
            let (blocks, middle) = (zone.len() as f64, (zone.start + zone.end) / 2);
            expect_share(&format!("{zone:?}"), counts[zone.clone()].iter().sum(), draws, share);
            expect_share(&format!("half of {zone:?}"), counts[zone.start..middle].iter().sum(), draws, share / 2.0);
            expect_share(&format!("first of {zone:?}"), counts[zone.start], draws, share / blocks);
        }
    }

    #[test]
    fn every_distribution_stays_inside_small_spaces() {
        for text in ["uniform", "zipf:1.2", "pareto:0.3", "normal:10", "zoned:50/50:50/50"] {
            for blocks in [1, 2, 3] {
                assert_eq!(counts(text, blocks, 1_000).iter().sum::<u32>(), 1_000, "{text}");
            }
        }
    }

    #[test]
    fn words_are_read_and_refused() {
        for text in ["uniform", "zipf:1.1", "pareto:0.2", "normal:10", "zoned:60/10:40/90"] {
            assert_eq!(text.parse::<Distribution>().unwrap().to_string(), text);
        }
        for text in ["zipf", "zipf:0", "pareto:1.5", "zoned:50/50", "zoned:x", "gauss"] {
            assert!(text.parse::<Distribution>().is_err(), "{text}");
        }
    }
}
