//! Noisy neighbours: bursts of 64 KiB writes to a drive (Li 3.5).
//!
//! Bursts are recorded, or drawn: heavy-tailed times with and without noise, as on shared machines.

use std::rc::Rc;
use std::str::FromStr;

use nandscape_drive::{Drive, HostMem, Issuer};
use nandscape_sim::{Rng, Seed, Sim, Span, Time};
use nandscape_wire_nvme::{IoOpcode, SubmissionEntry};

use crate::store::Extent;

/// A burst.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Burst {
    /// The quiet time before it.
    pub gap: Span,
    /// How long it lasts.
    pub length: Span,
    /// Writes at a time.
    pub depth: u32,
}

/// The longest gap and the longest burst of a recording: no run outlasts it.
const LONGEST: Span = Span::from_s(86_400);
/// Less than this makes a recording that a run repeats for ever without coming forward.
const SHORTEST: Span = Span::from_us(1);

/// The times of noise.
#[derive(Clone, PartialEq, Debug)]
pub enum Pattern {
    /// These bursts, over and over again.
    Recorded(Vec<Burst>),
    /// Drawn.
    Drawn(OnOff),
    /// Always.
    Steady {
        /// Writes at a time.
        depth: u32,
    },
}

/// Bursts with lengths and gaps from Pareto distributions.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct OnOff {
    /// The mean length of a burst.
    pub on: Span,
    /// The mean gap.
    pub off: Span,
    /// The exponent of both: the lower, the heavier the tails. Above 1.
    pub alpha: f64,
    /// The most writes at a time; a burst has any number from one on.
    pub depth: u32,
}

impl OnOff {
    /// Bursts of 100 ms on average, in a tenth of the time, of 1 to 4 writes at a time.
    pub const DEFAULT: OnOff = OnOff { on: Span::from_ms(100), off: Span::from_ms(900), alpha: 1.5, depth: 4 };

    fn draw(&self, rng: &mut Rng) -> Burst {
        let mut pareto = |mean: Span| {
            let least = mean.ns() as f64 * (self.alpha - 1.0) / self.alpha;
            let drawn = least * libm::pow(1.0 - rng.unit(), -1.0 / self.alpha);
            // One in 10^4 would be longer than a run.
            Span::from_ns(drawn.min(mean.ns() as f64 * 50.0) as u64)
        };
        let (gap, length) = (pareto(self.off), pareto(self.on));
        Burst { gap, length, depth: 1 + rng.below(self.depth.max(1).into()) as u32 }
    }
}

impl FromStr for Pattern {
    type Err = String;

    /// A recording: a line for each burst with its gap, its length and its depth, as in `900ms 100ms 4`.
    fn from_str(text: &str) -> Result<Pattern, String> {
        let mut bursts = Vec::new();
        for (number, line) in text.lines().enumerate() {
            let line = line.split('#').next().unwrap_or_default().trim();
            if line.is_empty() {
                continue;
            }
            let wrong =
                || format!("line {}: {line:?} is no burst: gap, length and depth are, as in 900ms 100ms 4", number + 1);
            let words: Vec<&str> = line.split_whitespace().collect();
            let [gap, length, depth] = words[..] else { return Err(wrong()) };
            let (gap, length): (Span, Span) = (gap.parse().map_err(|_| wrong())?, length.parse().map_err(|_| wrong())?);
            if gap.max(length) > LONGEST || gap.max(length) < SHORTEST {
                return Err(format!(
                    "line {}: {line:?}: gap and length are up to {LONGEST}, and one is {SHORTEST} or more",
                    number + 1
                ));
            }
            let depth = depth.parse().ok().filter(|depth| (1..=1_024).contains(depth)).ok_or_else(wrong)?;
            bursts.push(Burst { gap, length, depth });
        }
        if bursts.is_empty() {
            return Err("a recording of noise has a burst at the least".to_owned());
        }
        Ok(Pattern::Recorded(bursts))
    }
}

/// Bytes of a write.
const WRITE: u32 = 64 << 10;

/// Makes noise on a part of a drive.
pub struct Noise {
    sim: Sim,
    drive: Rc<dyn Drive>,
    extent: Extent,
    issuer: Issuer,
}

impl Noise {
    /// Writes to the whole units of an extent, which must have no other user.
    pub fn new(sim: &Sim, drive: Rc<dyn Drive>, extent: Extent) -> Rc<Noise> {
        Rc::new(Noise { sim: sim.clone(), drive, extent, issuer: Issuer::new(sim) })
    }

    /// Runs for ever.
    pub async fn run(self: Rc<Self>, pattern: Pattern, seed: Seed) {
        let mut rng = seed.rng();
        for number in 0.. {
            let burst = match &pattern {
                Pattern::Recorded(bursts) => bursts[number % bursts.len()],
                Pattern::Drawn(drawn) => drawn.draw(&mut rng),
                Pattern::Steady { depth } => Burst { gap: Span::ZERO, length: Span::from_s(1), depth: *depth },
            };
            self.sim.sleep_in_background(burst.gap).await;
            let end = self.sim.now() + burst.length;
            for _ in 1..burst.depth {
                let (noise, rng) = (self.clone(), Seed::new(rng.bits()).rng());
                self.sim.spawn(async move { noise.write_until(end, rng).await });
            }
            self.write_until(end, Seed::new(rng.bits()).rng()).await;
            if burst.gap.is_zero() && self.sim.now() < end {
                return;
            }
        }
    }

    /// Writes at random places, one after the other, until a time. Ends early if the drive fails.
    async fn write_until(&self, end: Time, mut rng: Rng) {
        let info = self.drive.info();
        let blocks = (WRITE / info.lba_bytes).min(info.max_blocks);
        let places = self.extent.blocks / u64::from(blocks);
        let mem = HostMem::zeroed((blocks * info.lba_bytes) as usize);
        while self.sim.now() < end && places > 0 {
            let slba = self.extent.slba + rng.below(places) * u64::from(blocks);
            let entry = SubmissionEntry::blocks(IoOpcode::WRITE, info.nsid, slba, blocks);
            let ended = self.issuer.execute(&*self.drive, entry, mem.clone()).await;
            if !ended.status.is_success() {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recordings_are_read_and_bad_lines_are_told() {
        let read: Result<Pattern, String> = "# noise\n900ms 100ms 4\n\n1s 5ms 1 # short\n".parse();
        let burst = |gap, length, depth| Burst { gap: Span::from_ms(gap), length: Span::from_ms(length), depth };
        assert_eq!(read, Ok(Pattern::Recorded(vec![burst(900, 100, 4), burst(1_000, 5, 1)])));
        let wrong = [("1s 1s", "line 1"), ("\n1s x 1", "line 2"), ("1s 1s 0", "line 1"), ("", "a burst")];
        for (text, place) in
            wrong.into_iter().chain([("1ns 0ns 1", "is 1us or more"), ("100000s 1s 1", "up to 86400s")])
        {
            let error = text.parse::<Pattern>().unwrap_err();
            assert!(error.contains(place), "{error}");
        }
    }

    #[test]
    fn drawn_bursts_have_their_means_and_heavy_tails() {
        let mut rng = Seed::new(4).rng();
        let drawn: Vec<Burst> = (0..100_000).map(|_| OnOff::DEFAULT.draw(&mut rng)).collect();
        let mean = |of: fn(&Burst) -> Span| drawn.iter().map(of).sum::<Span>().as_s() / drawn.len() as f64;
        let (on, off) = (mean(|burst| burst.length), mean(|burst| burst.gap));
        assert!((0.08..0.1).contains(&on) && (0.7..0.9).contains(&off), "{on} {off}: less what is cut off");
        let long = drawn.iter().filter(|burst| burst.length > Span::from_ms(1_000)).count();
        assert!((300..1_200).contains(&long), "{long} bursts of ten times the mean");
    }
}
