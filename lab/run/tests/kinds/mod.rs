//! The kinds of layers of which tests draw chains.

use nandscape_lab_run::Chain;
use nandscape_lab_run::chain::drives_below;
use nandscape_sim::Rng;

/// Every kind over drives with logical blocks, with settings that make it work: small memory, small queues, a technique that evades.
pub(crate) const KINDS: [&str; 6] = [
    "block,depth=8,scheduler=ssd",
    "cache,memory=64KiB",
    "raid0:2",
    "raid1:2,technique=tea2",
    "raid5:3,chunk=8KiB",
    "ahci:2,slots=8",
];

/// Drives of a drawn chain at most.
pub(crate) const MOST_DRIVES: usize = 6;

/// Drives that layers need.
pub(crate) fn takes(words: &[&str]) -> usize {
    let chain: Chain = words.join(" ").parse().expect("valid layers");
    drives_below(&chain.resolve().expect("valid layers"))
}

/// A chain of four over a few drives; `lowest` is its lowest layer if there is one.
pub(crate) fn drawn<'a>(rng: &mut Rng, lowest: Option<&'a str>) -> Vec<&'a str> {
    let mut words: Vec<&str> = lowest.into_iter().collect();
    while words.len() < 4 {
        words.push(KINDS[rng.below(KINDS.len() as u64) as usize]);
        if takes(&words) > MOST_DRIVES {
            words.pop();
        }
    }
    words
}
