//! Confidence intervals by Student's t. Each run with its own seed gives one independent value of a figure, whether a mean or
//! a far percentile. The interval is that of the mean of these values.

/// Quantile 0.975 of Student's t for 1 to 30 degrees of freedom, to three decimals, from statistical tables.
const T: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
    2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
];
/// The same for more degrees of freedom. Between two entries the lower one applies, which widens intervals.
const T_MORE: [(usize, f64); 3] = [(40, 2.021), (60, 2.000), (120, 1.980)];

fn t(freedom: usize) -> f64 {
    let more = T_MORE.iter().rev().find(|(least, _)| freedom >= *least).map(|(_, t)| *t);
    more.unwrap_or(T[freedom.clamp(1, T.len()) - 1])
}

/// The mean of values, and half of its 95% confidence interval if there are at least two.
pub(crate) fn mean_and_half_width(values: &[f64]) -> Option<(f64, Option<f64>)> {
    let count = values.len() as f64;
    let mean = (!values.is_empty()).then(|| values.iter().sum::<f64>() / count)?;
    if values.len() < 2 {
        return Some((mean, None));
    }
    let variance = values.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>() / (count - 1.0);
    Some((mean, Some(t(values.len() - 1) * libm::sqrt(variance / count))))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand. 100, 104, 102, 98, 96: mean 100, squares 0 + 16 + 4 + 4 + 16 = 40, s^2 = 10, s / sqrt(5) = 1.41421,
    /// times 2.776 is 3.92585. 10 and 14: mean 12, s^2 = 8, sqrt(8 / 2) = 2, times 12.706.
    #[test]
    fn intervals_are_those_made_by_hand() {
        let (mean, half) = mean_and_half_width(&[100.0, 104.0, 102.0, 98.0, 96.0]).unwrap();
        assert!(mean == 100.0 && (half.unwrap() - 3.925_85).abs() < 1e-5, "{half:?}");
        assert_eq!(mean_and_half_width(&[10.0, 14.0]), Some((12.0, Some(25.412))));
        assert_eq!(mean_and_half_width(&[7.0]), Some((7.0, None)));
        assert_eq!(mean_and_half_width(&[]), None);
    }

    #[test]
    fn more_freedom_never_widens() {
        let all: Vec<f64> = (1..200).map(t).collect();
        assert!(all.windows(2).all(|pair| pair[1] <= pair[0]));
        assert_eq!((t(30), t(35), t(40), t(500)), (2.042, 2.042, 2.021, 1.980));
    }
}
