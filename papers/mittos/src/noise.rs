//! When a noisy tenant is active: spells of a drawn length, with drawn pauses between them.

use nandscape_sim::{Rng, Seed, Sim, Span};

/// See the file. Both times are drawn from exponential distributions.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Spells {
    /// The mean length of a spell.
    pub on: Span,
    /// The mean pause.
    pub off: Span,
}

impl Spells {
    /// Never ends: calls `begin` at the beginning of each spell; the closure that `begin` returns runs at the spell's end.
    pub(crate) async fn run<E: FnOnce()>(self, sim: Sim, seed: Seed, mut begin: impl FnMut(&mut Rng, Span) -> E) {
        let mut rng = seed.rng();
        loop {
            sim.sleep_in_background(rng.exponential(self.off.ns() as f64)).await;
            let length = rng.exponential(self.on.ns() as f64);
            let end = begin(&mut rng, length);
            sim.sleep_in_background(length).await;
            end();
        }
    }
}
