//! Numbers from the gamma distribution, by the method of Marsaglia and Tsang (2000).

use nandscape_sim::Rng;

/// A number from the gamma distribution of the given shape and mean.
pub(crate) fn gamma(rng: &mut Rng, shape: f64, mean: f64) -> f64 {
    if shape < 1.0 {
        // For shapes below 1: a variate of the shape plus 1, times a power of a uniform one.
        let above = gamma(rng, shape + 1.0, shape + 1.0);
        return above * libm::pow(1.0 - rng.unit(), 1.0 / shape) / shape * mean;
    }
    let d = shape - 1.0 / 3.0;
    let c = 1.0 / libm::sqrt(9.0 * d);
    loop {
        let x = rng.normal();
        let v = 1.0 + c * x;
        if v <= 0.0 {
            continue;
        }
        let v = v * v * v;
        if libm::log(1.0 - rng.unit()) < 0.5 * x * x + d - d * v + d * libm::log(v) {
            return d * v / shape * mean;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandscape_sim::Seed;

    /// For shape 3/2 the distribution function has a closed form: erf(sqrt y) - 2 sqrt(y / pi) e^-y, y = 3/2 x / mean.
    #[test]
    fn shares_are_those_of_the_distribution_function() {
        let (mut rng, draws, mean) = (Seed::new(4).rng(), 200_000u32, 16_384.0);
        let drawn: Vec<f64> = (0..draws).map(|_| gamma(&mut rng, 1.5, mean)).collect();
        for means in [0.1, 0.5, 1.0, 2.0, 4.0] {
            let y = 1.5 * means;
            let root = libm::sqrt(y);
            let p = libm::erf(root) - 2.0 * root / libm::sqrt(core::f64::consts::PI) * libm::exp(-y);
            let hits = drawn.iter().filter(|x| **x < means * mean).count() as f64;
            let deviation = libm::sqrt(f64::from(draws) * p * (1.0 - p));
            assert!((hits - f64::from(draws) * p).abs() < 5.0 * deviation, "seed 4: {hits} below {means} means");
        }
    }

    /// For shape 1/2, a square of a normal number, it is erf(sqrt y), y = 1/2 x / mean.
    #[test]
    fn shapes_below_one_have_theirs() {
        let (mut rng, draws, mean) = (Seed::new(4).rng(), 200_000u32, 8.0);
        let drawn: Vec<f64> = (0..draws).map(|_| gamma(&mut rng, 0.5, mean)).collect();
        for means in [0.001, 0.1, 1.0, 4.0] {
            let p = libm::erf(libm::sqrt(0.5 * means));
            let hits = drawn.iter().filter(|x| **x < means * mean).count() as f64;
            let deviation = libm::sqrt(f64::from(draws) * p * (1.0 - p));
            assert!((hits - f64::from(draws) * p).abs() < 5.0 * deviation, "seed 4: {hits} below {means} means");
        }
    }
}
