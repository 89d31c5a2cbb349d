//! Parity: P is the sum of the data chunks, Q the sum of 2^i times data chunk i, in the field of 256 elements with the polynomial
//! 11Dh (H. P. Anvin, "The mathematics of RAID-6").
//!
//! | file | what |
//! |---|---|
//! | `mod` | Q of data, and its change when data changes; P is that of [`nandscape_drive::parity`] |
//! | `field` | arithmetic of the field, of one element and of many |
//! | `recover` | the missing chunks of a stripe, from the rest |
//!
//! The loops are plain so that the compiler vectorizes them.

pub mod field;
mod recover;

pub use nandscape_drive::parity::{add, of as p_of};
pub use recover::recover;

/// Q of data chunks of the same length, in their order.
pub fn q_of<'a>(chunks: impl DoubleEndedIterator<Item = &'a [u8]>, q: &mut [u8]) {
    q.fill(0);
    for chunk in chunks.rev() {
        q.iter_mut().zip(chunk).for_each(|(sum, byte)| *sum = field::double(*sum) ^ byte);
    }
}

/// Changes Q as the change of data chunk `index` demands; `change` is the sum of its old and its new data.
pub fn change_q(q: &mut [u8], index: usize, change: &[u8]) {
    field::add_multiple(q, change, field::power(index));
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn parity_follows_changes(
            mut data in prop::collection::vec(prop::array::uniform16(any::<u8>()), 1..12), at in any::<prop::sample::Index>(), new in any::<[u8; 16]>(),
        ) {
            let both = |data: &[[u8; 16]]| {
                let (mut p, mut q) = ([0; 16], [0; 16]);
                p_of(data.iter().map(|chunk| &chunk[..]), &mut p);
                q_of(data.iter().map(|chunk| &chunk[..]), &mut q);
                (p, q)
            };
            let (mut p, mut q) = both(&data);
            // Q by its definition.
            let weighted = data.iter().enumerate().fold([0; 16], |mut sum, (index, chunk)| {
                field::add_multiple(&mut sum, chunk, field::power(index));
                sum
            });
            prop_assert_eq!(q, weighted);
            let index = at.index(data.len());
            let mut change = data[index];
            add(&mut change, &new);
            add(&mut p, &change);
            change_q(&mut q, index, &change);
            data[index] = new;
            prop_assert_eq!((p, q), both(&data));
        }
    }
}
