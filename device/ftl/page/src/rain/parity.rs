//! The parity of units: their exclusive or, byte by byte. A unit may be longer than another, by its metadata: the
//! missing bytes of the shorter one are zeros, and a unit without data is all zeros.

use nandscape_drive::parity;

/// Adds a unit to a parity.
#[inline]
pub(crate) fn add(sum: &mut Vec<u8>, unit: &[u8]) {
    if sum.len() < unit.len() {
        sum.resize(unit.len(), 0);
    }
    parity::add(sum, unit);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_unit_is_the_parity_of_the_others() {
        let units: Vec<Vec<u8>> =
            (1..9u8).map(|unit| (0..4_096 + 64 * usize::from(unit % 2)).map(|at| unit ^ at as u8).collect()).collect();
        let parity_of = |units: &mut dyn Iterator<Item = &Vec<u8>>| {
            let mut parity = Vec::new();
            units.for_each(|unit| add(&mut parity, unit));
            parity
        };
        let parity = parity_of(&mut units.iter());
        for missing in 0..units.len() {
            let others = units.iter().enumerate().filter(|(index, _)| *index != missing).map(|(_, unit)| unit);
            let mut rebuilt = parity_of(&mut others.chain([&parity]));
            assert!(rebuilt.split_off(units[missing].len()).iter().all(|byte| *byte == 0));
            assert_eq!(rebuilt, units[missing]);
        }
    }
}
