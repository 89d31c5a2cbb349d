//! Random inputs, made from seeds and from known inputs: bytes of any kind, and known inputs with changes.
//!
//! Left out: guidance by coverage, which the fuzzer has.

use nandscape_sim::{Rng, Seed};

/// The most bytes of an input.
const MOST_BYTES: u64 = 2_048;

/// The input that a seed stands for.
pub fn input(seed: u64, known: &[Vec<u8>]) -> Vec<u8> {
    let mut rng = Seed::new(seed).child("input").rng();
    if known.is_empty() || rng.chance(0.3) {
        return any_bytes(&mut rng);
    }
    let mut bytes = known[rng.below(known.len() as u64) as usize].clone();
    for _ in 0..1 + rng.below(8) {
        change(&mut bytes, &mut rng, known);
    }
    bytes.truncate(MOST_BYTES as usize);
    bytes
}

/// Mostly short inputs, and mostly small bytes: both reach further into a script than others.
fn any_bytes(rng: &mut Rng) -> Vec<u8> {
    let most = if rng.chance(0.8) { 200 } else { MOST_BYTES };
    let small = rng.unit();
    (0..rng.below(most)).map(|_| if rng.chance(small) { rng.below(16) as u8 } else { rng.below(256) as u8 }).collect()
}

fn change(bytes: &mut Vec<u8>, rng: &mut Rng, known: &[Vec<u8>]) {
    let at = rng.below(bytes.len() as u64 + 1) as usize;
    let len = (rng.below(20) as usize).min(bytes.len() - at);
    match rng.below(6) {
        0 if at < bytes.len() => bytes[at] = rng.below(256) as u8,
        1 if at < bytes.len() => bytes[at] ^= 1 << rng.below(8),
        2 => drop(bytes.drain(at..at + len)),
        3 => {
            let repeated = bytes[at..at + len].to_vec();
            bytes.splice(at..at, repeated);
        }
        4 => drop(bytes.splice(at..at, any_bytes(rng).into_iter().take(20)).count()),
        _ => {
            let other = &known[rng.below(known.len() as u64) as usize];
            let from = rng.below(other.len() as u64 + 1) as usize;
            bytes.truncate(at);
            bytes.extend(&other[from..]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_stands_for_one_input() {
        let known = [vec![1, 2, 3], vec![]];
        assert!((0..200).all(|seed| input(seed, &known) == input(seed, &known)));
        assert_ne!(input(1, &known), input(2, &known));
        assert!((0..200).all(|seed| input(seed, &[]).len() <= MOST_BYTES as usize));
    }
}
