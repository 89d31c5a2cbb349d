//! The settings of a machine, and the keys by which users give them.

mod check;

use nandscape_sim::Span;

use crate::scheduler::SchedulerKind;
use crate::state::Units;

/// See the file. All costs are those of a core of speed 1.
#[derive(Clone, PartialEq, Debug)]
pub struct Config {
    /// Cores.
    pub cores: usize,
    /// Hardware threads of each core, 1 or 2. Each is a processor.
    pub threads: usize,
    /// Work that a core does in a unit of time.
    pub speed: f64,
    /// The part of a core's speed that each of two busy hardware threads has.
    pub share: f64,
    /// Which thread of a run queue is next.
    pub sched: SchedulerKind,
    /// How long a thread runs before another has its turn: the base slice of EEVDF, the least slice of CFS.
    pub slice: Span,
    /// In this time CFS gives each thread a turn, if their least slices allow it.
    pub latency: Span,
    /// By how much a woken thread must be behind to take the processor at once (CFS).
    pub wakeup: Span,
    /// The period of the timer interrupt at which slices are checked; zero checks them when they end, at no cost.
    pub tick: Span,
    /// Whether a processor without a thread takes one from the longest run queue.
    pub balance: bool,
    /// Switching to a thread.
    pub switch: Span,
    /// Loading the caches again after other threads have used them; less if these ran for less.
    pub cold_cache: Span,
    /// Loading the caches for data that is warm on another core.
    pub cold_core: Span,
    /// Entering and leaving a hard interrupt.
    pub interrupt: Span,
    /// Entering and leaving a softirq.
    pub softirq: Span,
    /// Receiving an interrupt from another processor.
    pub ipi: Span,
    /// A timer interrupt: of a tick, or of a sleep that ends.
    pub timer: Span,
    /// Taking a lock that is free.
    pub lock: Span,
    /// Moving a lock's cache line from another core.
    pub lock_transfer: Span,
    /// Leaving the power state of an idle processor.
    pub idle_exit: Span,
    /// How long softirqs of a processor run in a row before a thread continues them, which shares the processor with others (Linux's
    /// ksoftirqd); zero has no such thread.
    pub ksoftirqd: Span,
    /// NUMA nodes, among which the cores are divided evenly.
    pub nodes: usize,
    /// What moving data between cores of two nodes costs, by what it costs within a node.
    pub distance: f64,
}

impl Default for Config {
    /// Four cores of 3 GHz. The costs of locks were measured (`bench/hosts/xeon-vm.toml`); the others are assumptions for such a core.
    /// The slices are those of Linux for eight processors and more.
    fn default() -> Config {
        Config {
            switch: Span::from_ns(1_200),
            cold_cache: Span::from_us(2),
            cold_core: Span::from_us(1),
            interrupt: Span::from_ns(600),
            softirq: Span::from_ns(300),
            ipi: Span::from_us(1),
            timer: Span::from_ns(600),
            lock: Span::from_ns(9),
            lock_transfer: Span::from_ns(64),
            ..Config::free(4)
        }
    }
}

/// Why a setting is not valid.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{key}: {problem}")]
pub struct ConfigError {
    key: String,
    problem: String,
}

impl ConfigError {
    /// Of a key, with what is wrong and what would be valid.
    pub fn new(key: &str, problem: String) -> ConfigError {
        ConfigError { key: key.to_owned(), problem }
    }
}

impl Config {
    /// Cores of speed 1 with one hardware thread each, on which nothing but work takes time.
    pub const fn free(cores: usize) -> Config {
        Config {
            cores,
            threads: 1,
            speed: 1.0,
            // Two busy hardware threads do 1.24 times the work of one.
            share: 0.62,
            sched: SchedulerKind::Eevdf,
            slice: Span::from_ms(3),
            latency: Span::from_ms(24),
            wakeup: Span::from_ms(4),
            tick: Span::ZERO,
            balance: false,
            switch: Span::ZERO,
            cold_cache: Span::ZERO,
            cold_core: Span::ZERO,
            interrupt: Span::ZERO,
            softirq: Span::ZERO,
            ipi: Span::ZERO,
            timer: Span::ZERO,
            lock: Span::ZERO,
            lock_transfer: Span::ZERO,
            idle_exit: Span::ZERO,
            ksoftirqd: Span::ZERO,
            nodes: 1,
            distance: 1.0,
        }
    }

    /// The keys, with a line on each.
    pub const KEYS: [(&str, &str); 23] = [
        ("host.cores", "cores"),
        ("host.threads", "hardware threads of each core: 1 or 2"),
        ("host.speed", "work that a core does in a unit of time, such as 1 or 150%"),
        ("host.share", "part of a core's speed that each of two busy hardware threads has, such as 62%"),
        ("host.sched", "which thread of a run queue is next: cfs or eevdf"),
        ("host.slice", "how long a thread runs before another has its turn, such as 3ms"),
        ("host.latency", "time in which cfs gives each thread a turn, such as 24ms"),
        ("host.wakeup", "by how much a woken thread must be behind to take the processor (cfs), such as 4ms"),
        ("host.tick", "period of the interrupt that checks slices, such as 4ms; 0 checks them when they end"),
        ("host.balance", "whether an idle processor takes a thread from the longest run queue: true or false"),
        ("host.switch", "cost of switching to a thread, such as 1200ns"),
        ("host.cold_cache", "cost of cold caches after other threads have run, such as 2us"),
        ("host.cold_core", "cost of data that is warm on another core, such as 1us"),
        ("host.interrupt", "cost of entering and leaving a hard interrupt, such as 600ns"),
        ("host.softirq", "cost of entering and leaving a softirq, such as 300ns"),
        ("host.ipi", "cost of receiving an interrupt from another processor, such as 1us"),
        ("host.timer", "cost of a timer interrupt, such as 600ns"),
        ("host.lock", "cost of taking a lock that is free, such as 9ns"),
        ("host.lock_transfer", "cost of moving a lock from another core, such as 64ns"),
        ("host.idle_exit", "cost of leaving the power state of an idle processor, such as 2us"),
        (
            "host.ksoftirqd",
            "how long softirqs run in a row before a thread continues them, such as 2ms; 0 has no such thread",
        ),
        ("host.nodes", "NUMA nodes, among which the cores are divided evenly; 1 has none"),
        ("host.distance", "costs of data and locks from another NUMA node, by those within a node, such as 2.1"),
    ];

    /// Whether a change is one of the machine.
    pub fn is_key(change: &str) -> bool {
        change.trim_start().starts_with("host.")
    }

    /// Changes a setting: `host.switch=2us`.
    ///
    /// # Errors
    /// What is wrong with it, and what would be valid.
    pub fn set(&mut self, change: &str) -> Result<(), ConfigError> {
        let Some((key, value)) = change.split_once('=') else {
            return Err(ConfigError::new(change, "the value is missing; KEY=VALUE is valid".to_owned()));
        };
        let (key, value) = (key.trim(), value.trim());
        let wrong = |valid: &str| ConfigError::new(key, format!("{value:?} is not valid; valid is {valid}"));
        let number = || value.parse().map_err(|_| wrong("a number such as 4"));
        let part = || decimal(value).ok_or_else(|| wrong("a number such as 1.5, or a percentage such as 150%"));
        match key {
            "host.cores" => self.cores = number()?,
            "host.threads" => self.threads = number()?,
            "host.speed" => self.speed = part()?,
            "host.share" => self.share = part()?,
            "host.nodes" => self.nodes = number()?,
            "host.distance" => self.distance = part()?,
            "host.sched" => {
                let named = SchedulerKind::ALL.iter().find(|(name, _)| *name == value);
                self.sched = named.ok_or_else(|| wrong("cfs or eevdf"))?.1;
            }
            "host.balance" => self.balance = value.parse().map_err(|_| wrong("true or false"))?,
            _ => match self.span_mut(key) {
                Some(span) => *span = time(value).ok_or_else(|| wrong("0, or a time such as 2us"))?,
                None => {
                    let all: Vec<&str> = Config::KEYS.iter().map(|(key, _)| *key).collect();
                    return Err(ConfigError::new(key, format!("no such key exists; valid are {}", all.join(", "))));
                }
            },
        }
        Ok(())
    }

    /// All settings as users give them: key and value.
    pub fn settings(&self) -> Vec<(&'static str, String)> {
        let mut copy = self.clone();
        let value = |(key, _): (&'static str, _)| {
            let text = match key {
                "host.cores" => self.cores.to_string(),
                "host.threads" => self.threads.to_string(),
                "host.speed" => self.speed.to_string(),
                "host.share" => self.share.to_string(),
                "host.nodes" => self.nodes.to_string(),
                "host.distance" => self.distance.to_string(),
                "host.sched" => {
                    let name = SchedulerKind::ALL.iter().find(|(_, kind)| *kind == self.sched);
                    name.map_or_else(String::new, |(name, _)| (*name).to_owned())
                }
                "host.balance" => self.balance.to_string(),
                _ => copy.span_mut(key).map_or_else(String::new, |span| span.to_string()),
            };
            (key, text)
        };
        Config::KEYS.into_iter().map(value).collect()
    }

    /// The setting of a key whose value is a time.
    fn span_mut(&mut self, key: &str) -> Option<&mut Span> {
        Some(match key {
            "host.slice" => &mut self.slice,
            "host.latency" => &mut self.latency,
            "host.wakeup" => &mut self.wakeup,
            "host.tick" => &mut self.tick,
            "host.switch" => &mut self.switch,
            "host.cold_cache" => &mut self.cold_cache,
            "host.cold_core" => &mut self.cold_core,
            "host.interrupt" => &mut self.interrupt,
            "host.softirq" => &mut self.softirq,
            "host.ipi" => &mut self.ipi,
            "host.timer" => &mut self.timer,
            "host.lock" => &mut self.lock,
            "host.lock_transfer" => &mut self.lock_transfer,
            "host.idle_exit" => &mut self.idle_exit,
            "host.ksoftirqd" => &mut self.ksoftirqd,
            _ => return None,
        })
    }

    /// Processors: hardware threads of all cores.
    pub fn cpus(&self) -> usize {
        self.cores.saturating_mul(self.threads)
    }

    /// The NUMA node of a core.
    pub(crate) fn node(&self, core: usize) -> usize {
        core / (self.cores / self.nodes)
    }

    /// A cost within a node, between two of them.
    pub(crate) fn between_nodes(&self, cost: Span) -> Span {
        Span::from_ns((cost.ns() as f64 * self.distance).round() as u64)
    }

    /// Units of work a nanosecond of a processor whose core is not shared, and of one whose core is.
    pub(crate) fn rates(&self) -> [u64; 2] {
        let one = Units::PER_NS as f64;
        [self.speed * one, self.speed * self.share * one].map(|rate| (rate.round() as u64).max(1))
    }
}

fn time(value: &str) -> Option<Span> {
    if value == "0" { Some(Span::ZERO) } else { value.parse().ok() }
}

/// A number, or a percentage.
fn decimal(value: &str) -> Option<f64> {
    let (digits, exponent) = value.strip_suffix('%').map_or((value, ""), |digits| (digits.trim(), "e-2"));
    let is_decimal = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    is_decimal.then(|| format!("{digits}{exponent}").parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_is_set_and_checked() {
        let mut config = Config::default();
        for (key, _) in Config::KEYS {
            let value = match key {
                "host.cores" | "host.threads" | "host.nodes" => "2",
                "host.speed" => "150%",
                "host.share" => "0.7",
                "host.sched" => "cfs",
                "host.balance" => "true",
                "host.slice" => "1ms",
                "host.distance" => "2.1",
                _ => "10us",
            };
            config.set(&format!("{key}={value}")).unwrap();
            assert!(Config::is_key(key));
        }
        config.set("host.timer=0").unwrap();
        assert_eq!((config.cpus(), config.speed, config.share, config.balance), (4, 1.5, 0.7, true));
        assert_eq!(
            (config.sched, config.idle_exit, config.rates()),
            (SchedulerKind::Cfs, Span::from_us(10), [15_000, 10_500])
        );
        assert_eq!((config.check(), Config::default().check()), (Ok(()), Ok(())));
        let mut again = Config::free(1);
        config.settings().iter().for_each(|(key, value)| again.set(&format!("{key}={value}")).unwrap());
        assert_eq!(again, config, "settings are read as they are shown");
    }

    #[test]
    fn what_is_no_setting_is_refused_with_the_key_and_what_is_valid() {
        for (change, problem) in [
            ("host.cores=-1", "a number such as 4"),
            ("host.sched=o1", "cfs or eevdf"),
            ("host.switch=-2us", "a time such as 2us"),
            ("host.switch=3", "a time such as 2us"),
            ("host.speed=-1", "a percentage such as 150%"),
            ("host.balance=1", "true or false"),
            ("host.colour=red", "valid are host.cores, host.threads"),
            ("host.slice", "KEY=VALUE"),
        ] {
            let error = Config::default().set(change).unwrap_err().to_string();
            assert!(error.contains(problem) && error.starts_with("host."), "{error}");
        }
    }
}
