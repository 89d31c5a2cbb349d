//! Which hosts are impossible.

use nandscape_sim::Span;

use super::{Config, ConfigError, KEYS, PathKind, RingKind, Window};
use crate::policy::PolicyKind;

/// The longest cost.
const LONGEST: Span = Span::from_s(1);
/// The most threads of the load.
const MOST_LOAD: usize = 1_024;
/// The most links.
const MOST_LINKS: usize = 64;
/// What the slowest link moves in a second: a message takes no longer than the longest cost, or little longer.
const SLOWEST_LINK: u64 = 1_000_000;

fn bad(key: &str, is: String, valid: String) -> Result<(), ConfigError> {
    Err(ConfigError::new(key, format!("{is} is not valid; valid is {valid}")))
}

impl Config {
    /// Whether such a host is possible.
    ///
    /// # Errors
    /// Which setting is not, and what would be valid.
    pub fn check(&self) -> Result<(), ConfigError> {
        self.machine.check()?;
        self.check_queues()?;
        self.check_waiting()?;
        self.check_load_and_links()?;
        self.check_strategy()?;
        let mut copy = self.clone();
        for (key, _) in KEYS {
            if let Some(span) = copy.span_mut(key).filter(|span| **span > LONGEST) {
                return bad(key, span.to_string(), format!("a time from 0ns to {LONGEST}"));
            }
        }
        Ok(())
    }

    fn check_queues(&self) -> Result<(), ConfigError> {
        let cpus = self.machine.cpus();
        if self.queues > cpus {
            let valid = format!("0 to {cpus}, which is one for each processor");
            return bad("host.queues", self.queues.to_string(), valid);
        }
        if self.path == PathKind::Scsi && self.queues > 1 {
            return bad("host.queues", self.queues.to_string(), "0 or 1 with host.path=scsi".to_owned());
        }
        let most = self.queue_pairs(cpus);
        if self.completion_queues > most {
            let valid = format!("0 to {most}, which is one for each submission queue");
            return bad("host.completion_queues", self.completion_queues.to_string(), valid);
        }
        if let Some(cpu) = self.affinity.iter().find(|cpu| **cpu >= cpus) {
            let valid = format!("auto, or processors from 0 to {}", cpus - 1);
            return bad("host.affinity", format!("processor {cpu}"), valid);
        }
        Ok(())
    }

    fn check_waiting(&self) -> Result<(), ConfigError> {
        for (key, part) in [("host.poll_sleep", self.poll_sleep), ("host.poll_gain", self.poll_gain)] {
            if !(0.0..=1.0).contains(&part) {
                return bad(key, format!("{}%", 100.0 * part), "a part from 0% to 100%".to_owned());
            }
        }
        if let Window::Fixed(window) = self.window
            && !(Span::from_ns(1)..=LONGEST).contains(&window)
        {
            return bad("host.window", window.to_string(), format!("a time from 1ns to {LONGEST}"));
        }
        if self.ring != RingKind::Off && self.completion != PolicyKind::Interrupt {
            let valid = format!("interrupt with host.ring={}, which decides by itself", self.ring.name());
            return bad("host.completion", self.completion.name().to_owned(), valid);
        }
        if self.ring == RingKind::Reactor && self.path == PathKind::Scsi {
            let valid = "off, defer_taskrun, iopoll or sqpoll with host.path=scsi";
            return bad("host.ring", self.ring.name().to_owned(), valid.to_owned());
        }
        if !(1..=256).contains(&self.coalesce) {
            return bad("host.coalesce", self.coalesce.to_string(), "1, which is none, to 256".to_owned());
        }
        Ok(())
    }

    fn check_load_and_links(&self) -> Result<(), ConfigError> {
        if self.load > MOST_LOAD {
            return bad("host.load", self.load.to_string(), format!("0 to {MOST_LOAD}"));
        }
        if self.network.links > MOST_LINKS {
            let valid = format!("0, with which the workload runs on the host itself, to {MOST_LINKS}");
            return bad("host.links", self.network.links.to_string(), valid);
        }
        if self.network.rate.time_for(SLOWEST_LINK) > Span::from_s(1) {
            return bad("host.link_rate", self.network.rate.to_string(), "a rate from 1MB/s, or unlimited".to_owned());
        }
        if self.network.links > 0 && self.ring != RingKind::Off {
            return bad("host.ring", self.ring.name().to_owned(), "off with host.links".to_owned());
        }
        Ok(())
    }

    /// The strategies of HIOPS, which decide by themselves, and what only they have.
    fn check_strategy(&self) -> Result<(), ConfigError> {
        let path = self.path.name();
        if self.path.strategy().is_some() {
            if self.ring != RingKind::Off {
                return bad("host.ring", self.ring.name().to_owned(), format!("off with host.path={path}"));
            }
            if self.completion != PolicyKind::Interrupt {
                return bad(
                    "host.completion",
                    self.completion.name().to_owned(),
                    format!("interrupt with host.path={path}"),
                );
            }
            if self.coalesce > 1 {
                return bad("host.coalesce", self.coalesce.to_string(), format!("1 with host.path={path}"));
            }
        }
        if let Some(interval) = self.poll_thread {
            if self.path.strategy().is_none() {
                return bad("host.poll_thread", interval.to_string(), format!("off with host.path={path}"));
            }
            if interval > LONGEST {
                return bad("host.poll_thread", interval.to_string(), format!("off, or a time from 0ns to {LONGEST}"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impossible_hosts_are_refused_with_the_key_and_what_is_valid() {
        for (change, problem) in [
            ("host.cores=0", "1 to 1024 cores"),
            ("host.queues=5", "0 to 4"),
            ("host.completion_queues=5", "0 to 4, which is one for each submission queue"),
            ("host.affinity=0:4", "host.affinity: processor 4 is not valid; valid is auto, or processors from 0 to 3"),
            ("host.poll_sleep=101%", "0% to 100%"),
            ("host.poll_gain=101%", "0% to 100%"),
            ("host.window=0ns", "1ns to 1s"),
            ("host.patience=2s", "0ns to 1s"),
            ("host.coalesce=0", "1, which is none, to 256"),
            ("host.poll_thread=16us", "off with host.path=nvme"),
            ("host.load=1025", "0 to 1024"),
            ("host.copy=2s", "from 0ns to 1s"),
            ("host.packet_in=2s", "from 0ns to 1s"),
            ("host.link_rate=1B/s", "host.link_rate: 1B/s is not valid; valid is a rate from 1MB/s, or unlimited"),
            ("host.links=65", "0, with which the workload runs on the host itself, to 64"),
        ] {
            let mut config = Config::default();
            config.set(change).unwrap();
            let error = config.check().unwrap_err().to_string();
            assert!(error.contains(problem) && error.starts_with("host."), "{error}");
        }
        let mut config = Config::default();
        ["host.path=scsi", "host.queues=2"].iter().for_each(|change| config.set(change).unwrap());
        assert!(config.check().unwrap_err().to_string().contains("0 or 1 with host.path=scsi"));
        let mut config = Config::default();
        ["host.queues=2", "host.completion_queues=3"].iter().for_each(|change| config.set(change).unwrap());
        assert!(config.check().unwrap_err().to_string().contains("3 is not valid; valid is 0 to 2"));
        let mut config = Config::default();
        ["host.ring=reactor", "host.path=scsi"].iter().for_each(|change| config.set(change).unwrap());
        assert!(config.check().unwrap_err().to_string().contains("reactor is not valid; valid is off, defer_taskrun"));
        let mut config = Config::default();
        ["host.ring=iopoll", "host.completion=poll"].iter().for_each(|change| config.set(change).unwrap());
        assert!(config.check().unwrap_err().to_string().contains("interrupt with host.ring=iopoll"));
        let mut config = Config::default();
        ["host.ring=iopoll", "host.links=1"].iter().for_each(|change| config.set(change).unwrap());
        assert!(
            config
                .check()
                .unwrap_err()
                .to_string()
                .contains("host.ring: iopoll is not valid; valid is off with host.links")
        );
        for (change, problem) in [
            ("host.completion=poll", "host.completion: poll is not valid; valid is interrupt with host.path=lazy"),
            ("host.completion=adaptive", "adaptive is not valid; valid is interrupt with host.path=lazy"),
            ("host.completion=precompletion", "precompletion is not valid; valid is interrupt with host.path=lazy"),
            ("host.ring=sqpoll", "host.ring: sqpoll is not valid; valid is off with host.path=lazy"),
            ("host.coalesce=2", "1 with host.path=lazy"),
            ("host.poll_thread=2s", "off, or a time from 0ns to 1s"),
        ] {
            let mut config = Config::default();
            ["host.path=lazy", change].iter().for_each(|change| config.set(change).unwrap());
            assert!(config.check().unwrap_err().to_string().contains(problem), "{change}");
        }
    }

    /// Values of other keys, of no key, and at the limits of numbers.
    #[test]
    fn whatever_a_key_is_given_makes_a_possible_host_or_is_refused_with_a_key_and_what_is_valid() {
        let wild = [
            "",
            "0",
            "-0",
            "-1",
            "1",
            "2",
            "1024",
            "1025",
            "4294967296",
            "18446744073709551615",
            "18446744073709551616",
            "nan",
            "NaN%",
            "inf",
            "1e400",
            "1.5",
            "100%",
            "99999999999999999999%",
            "0ns",
            "1ns",
            "1s",
            "2s",
            "-1us",
            "18446744073709551615ns",
            "99999999999999999999s",
            "0.0000001ns",
            "true",
            "a",
            "0:9999",
            "0:",
            "::",
            "1:18446744073709551616",
            "auto",
            "off",
            "1B/s",
            "0MB/s",
            "99999999999GB/s",
            "unlimited",
            "\u{e9}",
            "host.cores=2",
            "drive",
            "cfs",
            "reactor",
        ];
        for (key, _) in Config::keys() {
            for value in wild {
                let mut config = Config::default();
                let Err(error) = config.set(&format!("{key}={value}")).and_then(|()| config.check()) else { continue };
                let error = error.to_string();
                assert!(error.starts_with("host.") && error.contains("is not valid; valid "), "{key}={value}: {error}");
            }
        }
    }
}
