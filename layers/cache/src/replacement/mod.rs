//! Eviction when memory is full.
//!
//! | file | what |
//! |---|---|
//! | `lru` | the least recently used page |
//! | `clock` | the first page that was not used since the hand passed it |
//!
//! Left out: active and inactive lists, and ghosts of evicted pages.

mod clock;
mod lru;

pub use clock::Clock;
pub use lru::Lru;

/// Keeps account of the use of frames, which are numbered from zero. The work of each call does not depend on their number, on average.
pub trait Replacement {
    /// A page was inserted into a frame.
    fn inserted(&mut self, frame: usize);

    /// The page in a frame is used.
    fn used(&mut self, frame: usize);

    /// The page in a frame was removed.
    fn removed(&mut self, frame: usize);

    /// The frame whose page is evicted next; `None` without pages.
    fn victim(&mut self) -> Option<usize>;
}

/// The policies.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum ReplacementKind {
    /// [`Lru`].
    Lru,
    /// [`Clock`].
    Clock,
}

impl ReplacementKind {
    /// All, by the names that users give them.
    pub const ALL: [(&str, ReplacementKind); 2] = [("lru", ReplacementKind::Lru), ("clock", ReplacementKind::Clock)];

    /// The policy of a name.
    pub fn named(name: &str) -> Option<ReplacementKind> {
        ReplacementKind::ALL.iter().find(|(other, _)| *other == name).map(|(_, kind)| *kind)
    }

    /// A policy that knows no page yet.
    pub fn make(self) -> Box<dyn Replacement> {
        match self {
            ReplacementKind::Lru => Box::new(Lru::default()),
            ReplacementKind::Clock => Box::new(Clock::default()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandscape_sim::Seed;

    /// Any policy names frames with pages, and eventually all of them.
    #[test]
    fn victims_are_pages_that_are_there_and_all_go_in_the_end() {
        for (name, kind) in ReplacementKind::ALL {
            for seed in 1..20 {
                let (mut policy, mut rng) = (kind.make(), Seed::new(seed).rng());
                let mut there = std::collections::BTreeSet::new();
                for _ in 0..2_000 {
                    let frame = rng.below(40) as usize;
                    match rng.below(4) {
                        0 if there.insert(frame) => policy.inserted(frame),
                        1 if there.remove(&frame) => policy.removed(frame),
                        2 if there.contains(&frame) => policy.used(frame),
                        3 if !there.is_empty() => {
                            let victim = policy.victim().expect("there are pages");
                            assert!(there.remove(&victim), "{name}, seed {seed}: {victim} is not there");
                            policy.removed(victim);
                        }
                        _ => {}
                    }
                }
                while let Some(victim) = policy.victim() {
                    assert!(there.remove(&victim), "{name}, seed {seed}");
                    policy.removed(victim);
                }
                assert!(there.is_empty(), "{name}, seed {seed}: {there:?} never go");
            }
        }
    }
}
