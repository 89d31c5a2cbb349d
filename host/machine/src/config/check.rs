//! Which machines are impossible.

use nandscape_sim::Span;

use super::{Config, ConfigError};
use crate::affinity::Affinity;
use crate::state::Units;

/// The longest time of a setting.
const LONGEST: Span = Span::from_s(1);
/// The shortest slice and period.
const SHORTEST: Span = Span::from_ns(100);
/// What a switch to a thread costs, each part by its key.
const PARTS_OF_SWITCH: [&str; 4] = ["host.switch", "host.idle_exit", "host.cold_cache", "host.cold_core"];

fn bad(key: &str, is: String, valid: &str) -> Result<(), ConfigError> {
    Err(ConfigError::new(key, format!("{is} is not valid; valid is {valid}")))
}

impl Config {
    /// Whether such a machine is possible.
    ///
    /// # Errors
    /// Which setting is not, and what would be valid.
    pub fn check(&self) -> Result<(), ConfigError> {
        self.check_cores()?;
        self.check_nodes()?;
        self.check_times()?;
        self.check_turns()
    }

    fn check_cores(&self) -> Result<(), ConfigError> {
        if !(1..=2).contains(&self.threads) {
            return bad("host.threads", self.threads.to_string(), "1 or 2");
        }
        if self.cores == 0 || self.cpus() > Affinity::MOST {
            let valid = format!("1 to {} cores with {} threads each", Affinity::MOST / self.threads, self.threads);
            return bad("host.cores", self.cores.to_string(), &valid);
        }
        if !(0.01..=100.0).contains(&self.speed) {
            return bad("host.speed", self.speed.to_string(), "a number from 0.01 to 100");
        }
        if !(0.1..=1.0).contains(&self.share) {
            return bad("host.share", self.share.to_string(), "a share from 10% to 100%");
        }
        Ok(())
    }

    fn check_nodes(&self) -> Result<(), ConfigError> {
        if self.nodes == 0 || !self.cores.is_multiple_of(self.nodes) {
            return bad("host.nodes", self.nodes.to_string(), &format!("a divisor of host.cores, {}", self.cores));
        }
        if !(1.0..=100.0).contains(&self.distance) {
            return bad("host.distance", self.distance.to_string(), "a number from 1 to 100");
        }
        Ok(())
    }

    fn check_times(&self) -> Result<(), ConfigError> {
        let mut copy = self.clone();
        for (key, _) in Config::KEYS {
            let Some(span) = copy.span_mut(key).copied() else { continue };
            let is_turn = ["host.slice", "host.latency"].contains(&key)
                || ["host.tick", "host.ksoftirqd"].contains(&key) && !span.is_zero();
            if span > LONGEST || is_turn && span < SHORTEST {
                let from = if is_turn { SHORTEST } else { Span::ZERO };
                return bad(key, span.to_string(), &format!("a time from {from} to {LONGEST}"));
            }
        }
        Ok(())
    }

    /// Slices and ticks are long enough for some work: else a thread never gets on.
    fn check_turns(&self) -> Result<(), ConfigError> {
        let slowest = |cost: Span| Units::of(cost).time(self.rates()[self.threads - 1]);
        // Shorter slices would end before a thread has begun its work.
        let cold_core = if self.nodes > 1 { self.between_nodes(self.cold_core) } else { self.cold_core };
        let least = slowest(self.switch + self.idle_exit + self.cold_cache.max(cold_core) + cold_core);
        if least >= LONGEST {
            let mut copy = self.clone();
            let cost = |key: &&str| copy.span_mut(key).map_or(Span::ZERO, |span| *span);
            let longest = PARTS_OF_SWITCH.into_iter().max_by_key(cost).unwrap_or("host.switch");
            let is = copy.span_mut(longest).map_or_else(String::new, |span| span.to_string());
            let valid = format!(
                "a cost with which a switch takes less than {LONGEST}, the longest slice; it takes {least} by {} at this host.speed",
                PARTS_OF_SWITCH.join(", ")
            );
            return bad(longest, is, &valid);
        }
        if self.slice <= least {
            let valid = format!("more than {least}, the time of a switch with cold caches");
            return bad("host.slice", self.slice.to_string(), &valid);
        }
        let least = slowest(self.timer) * 2;
        if !self.tick.is_zero() && self.tick < least {
            let valid = format!("0, or a time from {least}, twice that of host.timer on the slowest processor");
            return bad("host.tick", self.tick.to_string(), &valid);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(changes: &[&str]) -> String {
        let mut config = Config::default();
        changes.iter().for_each(|change| config.set(change).unwrap());
        config.check().unwrap_err().to_string()
    }

    #[test]
    fn impossible_machines_are_refused_with_the_key_and_what_is_valid() {
        for (change, part) in [
            ("host.cores=0", "1 to 1024 cores"),
            ("host.cores=1025", "1 to 1024 cores"),
            ("host.threads=3", "1 or 2"),
            ("host.speed=0", "0.01 to 100"),
            ("host.share=0", "10% to 100%"),
            ("host.slice=0", "from 100ns to 1s"),
            ("host.latency=2s", "from 100ns to 1s"),
            ("host.switch=2s", "from 0ns to 1s"),
            ("host.ksoftirqd=50ns", "from 100ns to 1s"),
            ("host.nodes=0", "a divisor of host.cores, 4"),
            ("host.nodes=3", "a divisor of host.cores, 4"),
            ("host.distance=0.5", "1 to 100"),
            ("host.slice=4us", "more than 4200ns"),
            ("host.tick=500ns", "from 1200ns, twice that of host.timer"),
        ] {
            let error = problem(&[change]);
            assert!(error.contains(part) && error.starts_with("host."), "{error}");
        }
    }

    /// Costs that no slice can hold are the fault of the cost, and a tick has to leave time on the slowest processor.
    #[test]
    fn what_would_never_get_on_is_refused() {
        for cost in ["switch", "cold_cache", "cold_core", "idle_exit"] {
            let (change, start) = (format!("host.{cost}=1s"), format!("host.{cost}: 1s is not valid"));
            let error = problem(&[&change]);
            assert!(error.starts_with(&start) && error.contains("a switch takes less than 1s"), "{error}");
        }
        let error = problem(&["host.speed=1%", "host.cold_cache=50ms"]);
        assert!(error.starts_with("host.cold_cache: 50ms") && error.contains("at this host.speed"), "{error}");
        let error = problem(&["host.speed=1%", "host.tick=100us"]);
        assert!(error.starts_with("host.tick: 100us is not valid; valid is 0, or a time from 120us"), "{error}");
        let error = problem(&["host.threads=2", "host.share=10%", "host.tick=10us"]);
        assert!(error.contains("a time from 12us"), "{error}");
    }
}
