//! Parity: the exclusive or of data, byte by byte, for drives with parity stripes and for arrays of drives.
//!
//! The loop is plain so that the compiler vectorizes it.
//!
//! Left out: a second parity, which the array has.

/// Adds `source` to `sum`, byte by byte, as far as both are long.
#[inline]
pub fn add(sum: &mut [u8], source: &[u8]) {
    sum.iter_mut().zip(source).for_each(|(sum, byte)| *sum ^= byte);
}

/// Makes `sum` the parity of `parts` of its length.
pub fn of<'a>(parts: impl IntoIterator<Item = &'a [u8]>, sum: &mut [u8]) {
    sum.fill(0);
    parts.into_iter().for_each(|part| add(sum, part));
}

#[cfg(test)]
mod tests {
    use nandscape_sim::Seed;

    use super::*;

    #[test]
    fn any_part_is_the_parity_of_the_others() {
        let mut rng = Seed::new(3).rng();
        for bytes in [1, 7, 512, 4_096 + 8] {
            let parts: Vec<Vec<u8>> = (0..8).map(|_| (0..bytes).map(|_| rng.below(256) as u8).collect()).collect();
            let mut sum = vec![0xff; bytes];
            of(parts.iter().map(Vec::as_slice), &mut sum);
            for lost in 0..parts.len() {
                let others = parts.iter().enumerate().filter(|(number, _)| *number != lost).map(|(_, part)| &part[..]);
                let mut found = vec![0xff; bytes];
                of(others.chain([&sum[..]]), &mut found);
                assert!(found == parts[lost], "part {lost} of {bytes} bytes, seed 3");
            }
        }
    }
}
