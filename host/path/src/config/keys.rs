//! The keys by which users give the settings of a host.

use nandscape_host_machine::Config as MachineConfig;
use nandscape_sim::Span;

use super::{Config, ConfigError, PathKind, RingKind, Window};
use crate::policy::PolicyKind;

/// The keys, with a line on each; those of the machine follow.
pub const KEYS: [(&str, &str); 33] = [
    ("host.completion", "how a thread learns of a completion: interrupt, poll, hybrid, adaptive or precompletion"),
    (
        "host.path",
        "nvme: a queue pair and an interrupt a processor; scsi: one of each, and softirqs; non_blocking, lazy, cooperative",
    ),
    (
        "host.poll_thread",
        "interval at which a thread polls instead of interrupts, such as 16us; off (non_blocking and further)",
    ),
    ("host.queues", "submission queues of path nvme; 0 is one a processor, or as many as the drive has"),
    (
        "host.completion_queues",
        "completion queues, which submission queues use in turn; 0 is one for each submission queue",
    ),
    (
        "host.affinity",
        "processors that the completion queues interrupt, in turn, such as 0:2; auto is the first that submits",
    ),
    ("host.poll_sleep", "part of the mean that hybrid sleeps before it polls, such as 50%"),
    ("host.poll_gain", "part of the latency that polling has to save so that adaptive polls, such as 5%"),
    ("host.window", "how long ahead precompletion is notified: drive, adaptive, or a time such as 16us"),
    ("host.patience", "how long precompletion polls beyond the expected end, such as 20us"),
    (
        "host.ring",
        "whether applications use io_uring: off, defer_taskrun, iopoll or sqpoll; or a polling thread a processor: reactor",
    ),
    ("host.sqpoll_idle", "how long the kernel's thread looks for entries before it sleeps, such as 1ms"),
    ("host.coalesce", "completions that the drive gathers before an interrupt, 1 to 256"),
    ("host.coalesce_time", "longest time for which it gathers them, such as 100us"),
    ("host.load", "threads that compute all the time next to the jobs"),
    ("host.syscall", "cost of entering and leaving the kernel for an I/O, such as 550ns"),
    ("host.submit", "cost of the block layer on the way to the drive, such as 379ns"),
    ("host.midlayer", "cost of the SCSI layers for an I/O, half of it on the way back (path scsi), such as 4us"),
    ("host.driver", "cost of the driver on the way to the drive, such as 113ns"),
    ("host.handler", "cost of the driver's handler for a completion, such as 100ns"),
    ("host.complete", "cost of the end of an I/O in the block layer, such as 200ns"),
    ("host.wake", "cost of waking a thread, such as 300ns"),
    ("host.poll", "cost of a look at the queue that finds a completion, such as 100ns"),
    ("host.copy", "cost of copying 4 KiB to or from the application; 0 is direct I/O"),
    ("host.user", "what the application does for an I/O, such as 500ns"),
    ("host.ring_entry", "cost of an entry of io_uring, by application and kernel, such as 50ns"),
    ("host.links", "links to a machine like this one, whose clients request the I/Os; 0: they are requested here"),
    ("host.link_rate", "data rate of each link, such as 125MB/s, or unlimited"),
    ("host.link_delay", "time of a packet between the wire and the interrupt of the card, such as 2us"),
    ("host.link_interval", "least time between two interrupts of a card, such as 50us"),
    ("host.packet_in", "cost of the protocols for a packet that is received, such as 924ns"),
    ("host.message_in", "cost of handing a received message to its thread, such as 176ns"),
    ("host.message_out", "cost of the protocols and the copy for a message that is sent, such as 1093ns"),
];

/// The keys of costs, each of which has a source or none: [`crate::Profile::source_of`].
pub const COSTS: [&str; 26] = [
    "host.syscall",
    "host.submit",
    "host.midlayer",
    "host.driver",
    "host.handler",
    "host.complete",
    "host.wake",
    "host.poll",
    "host.copy",
    "host.user",
    "host.ring_entry",
    "host.link_delay",
    "host.link_interval",
    "host.packet_in",
    "host.message_in",
    "host.message_out",
    "host.switch",
    "host.cold_cache",
    "host.cold_core",
    "host.interrupt",
    "host.softirq",
    "host.ipi",
    "host.timer",
    "host.lock",
    "host.lock_transfer",
    "host.idle_exit",
];

/// Interrupts are raised where the first processor of a queue submits.
const AUTO: &str = "auto";
/// No thread polls.
const OFF: &str = "off";
impl Config {
    /// All keys with a line on each, those of the machine last.
    pub fn keys() -> impl Iterator<Item = (&'static str, &'static str)> {
        KEYS.into_iter().chain(MachineConfig::KEYS)
    }

    /// Whether a change is one of a host.
    pub fn is_key(change: &str) -> bool {
        MachineConfig::is_key(change)
    }

    /// Changes a setting: `host.completion=poll`.
    ///
    /// # Errors
    /// What is wrong with it, and what would be valid.
    pub fn set(&mut self, change: &str) -> Result<(), ConfigError> {
        let Some((key, value)) = change.split_once('=') else {
            return Err(ConfigError::new(change, "the value is missing; KEY=VALUE is valid".to_owned()));
        };
        let (key, value) = (key.trim(), value.trim());
        let wrong = |valid: &str| ConfigError::new(key, format!("{value:?} is not valid; valid is {valid}"));
        let whole = || value.parse().map_err(|_| wrong("a whole number such as 4"));
        match key {
            "host.completion" => self.completion = named(&PolicyKind::ALL, value).map_err(|valid| wrong(&valid))?,
            "host.path" => self.path = named(&PathKind::ALL, value).map_err(|valid| wrong(&valid))?,
            "host.ring" => self.ring = named(&RingKind::ALL, value).map_err(|valid| wrong(&valid))?,
            "host.poll_thread" if value == OFF => self.poll_thread = None,
            "host.poll_thread" => {
                self.poll_thread = Some(time(value).ok_or_else(|| wrong("off, 0, or a time such as 16us"))?);
            }
            "host.queues" => self.queues = whole()?,
            "host.completion_queues" => self.completion_queues = whole()?,
            "host.affinity" if value == AUTO => self.affinity.clear(),
            "host.affinity" => {
                let numbers = value.split(':').map(|number| number.trim().parse().ok());
                let valid = "auto, or processors such as 0:2";
                self.affinity = numbers.collect::<Option<_>>().ok_or_else(|| wrong(valid))?;
            }
            "host.links" => self.network.links = whole()?,
            "host.link_rate" => {
                self.network.rate = value.parse().map_err(|_| wrong("a rate such as 125MB/s, or unlimited"))?;
            }
            "host.load" => self.load = whole()?,
            "host.coalesce" => self.coalesce = value.parse().map_err(|_| wrong("a whole number from 1 to 256"))?,
            "host.poll_sleep" => self.poll_sleep = part(value).ok_or_else(|| wrong("a percentage such as 50%"))?,
            "host.poll_gain" => self.poll_gain = part(value).ok_or_else(|| wrong("a percentage such as 5%"))?,
            "host.window" => {
                self.window = Window::parse(value).ok_or_else(|| wrong("drive, adaptive, or a time such as 16us"))?;
            }
            _ if let Some(span) = self.span_mut(key) => {
                *span = time(value).ok_or_else(|| wrong("0, or a time such as 500ns"))?;
            }
            _ if MachineConfig::KEYS.iter().any(|(of_machine, _)| *of_machine == key) => {
                self.machine.set(change)?;
            }
            _ => {
                let all: Vec<&str> = Config::keys().map(|(key, _)| key).collect();
                return Err(ConfigError::new(key, format!("no such key exists; valid are {}", all.join(", "))));
            }
        }
        Ok(())
    }

    /// All settings as users give them: key and value, those of the machine last.
    pub fn settings(&self) -> Vec<(&'static str, String)> {
        let mut copy = self.clone();
        let value = |(key, _): (&'static str, _)| {
            let text = match key {
                "host.completion" => self.completion.name().to_owned(),
                "host.path" => self.path.name().to_owned(),
                "host.ring" => self.ring.name().to_owned(),
                "host.poll_thread" => self.poll_thread.map_or_else(|| OFF.to_owned(), |span| span.to_string()),
                "host.queues" => self.queues.to_string(),
                "host.completion_queues" => self.completion_queues.to_string(),
                "host.affinity" if self.affinity.is_empty() => AUTO.to_owned(),
                "host.affinity" => self.affinity.iter().map(usize::to_string).collect::<Vec<_>>().join(":"),
                "host.links" => self.network.links.to_string(),
                "host.link_rate" => self.network.rate.to_string(),
                "host.poll_sleep" => percentage(self.poll_sleep),
                "host.poll_gain" => percentage(self.poll_gain),
                "host.window" => self.window.to_string(),
                "host.coalesce" => self.coalesce.to_string(),
                "host.load" => self.load.to_string(),
                _ => copy.span_mut(key).map_or_else(String::new, |span| span.to_string()),
            };
            (key, text)
        };
        KEYS.into_iter().map(value).chain(self.machine.settings()).collect()
    }

    /// The setting of a key whose value is a time.
    pub(super) fn span_mut(&mut self, key: &str) -> Option<&mut Span> {
        let (costs, network) = (&mut self.costs, &mut self.network);
        Some(match key {
            "host.link_delay" => &mut network.delay,
            "host.link_interval" => &mut network.interval,
            "host.packet_in" => &mut network.packet_in,
            "host.message_in" => &mut network.message_in,
            "host.message_out" => &mut network.message_out,
            "host.coalesce_time" => &mut self.coalesce_time,
            "host.patience" => &mut self.patience,
            "host.sqpoll_idle" => &mut self.sqpoll_idle,
            "host.ring_entry" => &mut costs.ring_entry,
            "host.syscall" => &mut costs.syscall,
            "host.submit" => &mut costs.submit,
            "host.midlayer" => &mut costs.midlayer,
            "host.driver" => &mut costs.driver,
            "host.handler" => &mut costs.handler,
            "host.complete" => &mut costs.complete,
            "host.wake" => &mut costs.wake,
            "host.poll" => &mut costs.poll,
            "host.copy" => &mut costs.copy,
            "host.user" => &mut costs.user,
            _ => return None,
        })
    }
}

/// The value of a name; the error lists the names.
fn named<T: Copy>(all: &[(&str, T)], value: &str) -> Result<T, String> {
    let found = all.iter().find(|(name, _)| *name == value).map(|(_, of)| *of);
    found.ok_or_else(|| all.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(" or "))
}

fn time(value: &str) -> Option<Span> {
    if value == "0" { Some(Span::ZERO) } else { value.parse().ok() }
}

/// A part as a percentage, to a millionth of it.
fn percentage(part: f64) -> String {
    format!("{}%", (part * 1e8).round() / 1e6)
}

/// A percentage, or a part of one.
fn part(value: &str) -> Option<f64> {
    let (digits, by) = value.strip_suffix('%').map_or((value, 1.0), |digits| (digits.trim(), 100.0));
    let is_decimal = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    is_decimal.then(|| digits.parse::<f64>().ok()).flatten().map(|value| value / by)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_is_set_and_checked() {
        let mut config = Config::default();
        assert_eq!(config.check(), Ok(()));
        for (key, _) in KEYS {
            let value = match key {
                "host.completion" => "hybrid",
                "host.path" => "scsi",
                "host.queues" | "host.completion_queues" => "1",
                "host.affinity" => "1:0",
                "host.links" => "0",
                "host.link_rate" => "1GB/s",
                "host.poll_sleep" => "25%",
                "host.poll_gain" => "10%",
                "host.window" => "adaptive",
                "host.ring" => "off",
                "host.poll_thread" => "off",
                "host.coalesce" | "host.load" => "8",
                _ => "3us",
            };
            config.set(&format!("{key}={value}")).unwrap();
            assert!(Config::is_key(key));
        }
        let keys: std::collections::BTreeSet<&str> = Config::keys().map(|(key, _)| key).collect();
        assert_eq!(keys.len(), Config::keys().count(), "no key of a path is one of the machine");
        config.set("host.cores=2").unwrap();
        config.set("host.syscall=0").unwrap();
        assert_eq!((config.completion.name(), config.path.name(), config.poll_sleep), ("hybrid", "scsi", 0.25));
        assert_eq!((config.costs.user, config.costs.syscall), (Span::from_us(3), Span::ZERO));
        assert_eq!((config.machine.cores, config.check()), (2, Ok(())));
        let mut again = Config::default();
        config.settings().iter().for_each(|(key, value)| again.set(&format!("{key}={value}")).unwrap());
        assert_eq!(again, config, "settings are read as they are shown");
    }

    #[test]
    fn what_is_no_setting_is_refused_with_the_key_and_what_is_valid() {
        for (change, problem) in [
            ("host.completion=guess", "interrupt or poll or hybrid or adaptive or precompletion"),
            ("host.window=wide", "drive, adaptive, or a time such as 16us"),
            ("host.ring=aio", "off or defer_taskrun or iopoll or sqpoll or reactor"),
            ("host.poll_gain=much", "a percentage such as 5%"),
            ("host.path=ahci", "nvme or scsi"),
            ("host.syscall=-1us", "a time such as 500ns"),
            ("host.poll_sleep=half", "a percentage such as 50%"),
            ("host.coalesce=-1", "from 1 to 256"),
            ("host.load=-1", "a whole number"),
            ("host.completion_queues=all", "a whole number"),
            ("host.affinity=0:x", "auto, or processors such as 0:2"),
            ("host.affinity=", "auto, or processors such as 0:2"),
            ("host.links=two", "a whole number"),
            ("host.link_rate=fast", "a rate such as 125MB/s"),
            ("host.cores=none", "a number such as 4"),
            ("host.colour=red", "valid are host.completion"),
            ("host.syscall", "KEY=VALUE"),
        ] {
            let error = Config::default().set(change).unwrap_err().to_string();
            assert!(error.contains(problem) && error.starts_with("host."), "{error}");
        }
    }
}
