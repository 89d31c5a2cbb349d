//! The missing chunks of a stripe, from the rest: up to two chunks of a stripe with P and Q, one of a stripe with P.

use super::{add, field, p_of, q_of};

/// Fills in the missing ones of `data` chunks and then P and Q, in this order, as many as exist; returns whether enough
/// chunks were present. All present ones have the same length, and at least one is present.
pub fn recover(data: usize, chunks: &mut [Option<Vec<u8>>]) -> bool {
    let Some(len) = chunks.iter().flatten().map(Vec::len).next() else { return false };
    let (parts, checks) = chunks.split_at_mut(data);
    let lost: Vec<usize> = (0..data).filter(|index| parts[*index].is_none()).collect();
    let (p, q) = (checks.first().and_then(Option::as_deref), checks.get(1).and_then(Option::as_deref));
    match (&lost[..], p, q) {
        ([], ..) => {}
        ([one], Some(p), _) => {
            let mut sum = p.to_vec();
            parts.iter().flatten().for_each(|chunk| add(&mut sum, chunk));
            parts[*one] = Some(sum);
        }
        ([one], None, Some(q)) => {
            let mut rest = weighted(parts, len);
            add(&mut rest, q);
            field::scale(&mut rest, field::inverse(field::power(*one)));
            parts[*one] = Some(rest);
        }
        ([x, y], Some(p), Some(q)) => {
            // P' = Dx + Dy and Q' = 2^x Dx + 2^y Dy are the remainders of P and Q without the rest.
            let (mut p, mut of_q) = (p.to_vec(), weighted(parts, len));
            parts.iter().flatten().for_each(|chunk| add(&mut p, chunk));
            add(&mut of_q, q);
            let between = field::power(y - x);
            let divisor = field::inverse(between ^ 1);
            let mut dx = vec![0; len];
            field::add_multiple(&mut dx, &p, field::multiply(between, divisor));
            let of_x = field::multiply(field::inverse(field::power(*x)), divisor);
            field::add_multiple(&mut dx, &of_q, of_x);
            add(&mut p, &dx);
            (parts[*x], parts[*y]) = (Some(dx), Some(p));
        }
        _ => return false,
    }
    let all = || parts.iter().flatten().map(Vec::as_slice);
    for (number, check) in checks.iter_mut().enumerate().filter(|(_, check)| check.is_none()) {
        let mut sum = vec![0; len];
        if number == 0 {
            p_of(all(), &mut sum)
        } else {
            q_of(all(), &mut sum)
        }
        *check = Some(sum);
    }
    true
}

/// The sum of 2^i times chunk i, without those that are missing.
fn weighted(parts: &[Option<Vec<u8>>], len: usize) -> Vec<u8> {
    let mut sum = vec![0; len];
    for (index, chunk) in parts.iter().enumerate() {
        if let Some(chunk) = chunk {
            field::add_multiple(&mut sum, chunk, field::power(index));
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_missing_comes_back_unless_it_is_too_much(
            data in prop::collection::vec(prop::collection::vec(any::<u8>(), 24), 1..9), checks in 1usize..3, lost in prop::collection::vec(any::<prop::sample::Index>(), 0..4),
        ) {
            let mut whole: Vec<Option<Vec<u8>>> = data.iter().cloned().map(Some).collect();
            whole.resize(data.len() + checks, None);
            prop_assert!(recover(data.len(), &mut whole));
            let mut holes = whole.clone();
            lost.iter().for_each(|at| holes[at.index(whole.len())] = None);
            let missing = holes.iter().filter(|chunk| chunk.is_none()).count();
            if missing == whole.len() {
                return Ok(());
            }
            let done = recover(data.len(), &mut holes);
            prop_assert_eq!(done, missing <= checks);
            if done {
                prop_assert_eq!(holes, whole);
            }
        }
    }
}
