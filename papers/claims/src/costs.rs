//! The costs of the thesis' host: at a factor all together, and one at a time.

use anyhow::{Context as _, Result};
use nandscape_host_path::Profile;
use nandscape_sim::Span;

use nandscape_lab_ledger::experiment::{Costs, Run};

/// The keys of all costs of an I/O.
pub(crate) const OF_IO: &[&str] = &[
    "host.syscall",
    "host.submit",
    "host.midlayer",
    "host.driver",
    "host.handler",
    "host.complete",
    "host.wake",
    "host.poll",
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
/// The additional costs of a server: its network and its own work.
pub(crate) const OF_SERVER: &[&str] =
    &["host.packet_in", "host.message_in", "host.message_out", "host.link_delay", "host.link_interval", "host.user"];

/// Costs of the key-value engine's host, by the names under which its rig varies them.
pub(crate) const OF_ENGINE: &[&str] = &["operation", "command", "kib", "entry", "message"];

/// The claims that costs of a host can decide.
pub(crate) const COSTS: &[Costs] = &[
    Costs { id: "hiops-iops", keys: &[OF_IO] },
    Costs { id: "hiops-handler", keys: &[OF_IO] },
    Costs { id: "hiops-poll", keys: &[OF_IO] },
    Costs { id: "hiops-kv", keys: &[OF_IO, OF_SERVER] },
    Costs { id: "kv-memcached", keys: &[OF_ENGINE] },
    Costs { id: "pre-buffer-hit", keys: &[OF_IO] },
    Costs { id: "pre-window", keys: &[OF_IO] },
    Costs { id: "pre-multidepth", keys: &[OF_IO] },
];

/// The thesis' machine with changes, all costs at a factor, and the cost that a run varies at that of the run.
///
/// # Errors
/// When a change is invalid.
pub(crate) fn host(changes: &[&str], factor: f64, run: &Run<'_>) -> Result<Profile> {
    let mut profile = Profile::load("i7-4770")?;
    profile.set_all(changes)?;
    let settings = profile.config.settings();
    let of_server = if profile.config.network.links > 0 { OF_SERVER } else { &[] };
    let scaled = OF_IO.iter().chain(of_server).map(|key| {
        let (_, given) = settings.iter().find(|(name, _)| name == key).context("a host has all costs")?;
        let cost: Span = if given == "0" { Span::ZERO } else { given.parse().with_context(|| (*key).to_owned())? };
        let scaled = Span::from_ns((cost.ns() as f64 * factor).round() as u64);
        Ok(format!("{key}={}", run.cost(key, scaled)))
    });
    profile.set_all(scaled.collect::<Result<Vec<_>>>()?)?;
    Ok(profile)
}

#[cfg(test)]
mod tests {
    use nandscape_lab_ledger::Effort;
    use nandscape_lab_ledger::experiment::Varied;
    use nandscape_sim::Seed;

    use super::*;

    #[test]
    fn costs_are_scaled_and_settings_are_not() {
        let of = |factor, varied| {
            let run = Run { seed: Seed::new(1), effort: Effort::QUICK, progress: &|_| (), varied };
            host(&["host.path=scsi", "host.links=1"], factor, &run).unwrap().config
        };
        let varied = Varied { key: "host.switch".to_owned(), factor: 0.5 };
        let (given, twice, one) = (of(1.0, None), of(2.0, None), of(1.0, Some(&varied)));
        assert_eq!((twice.costs.syscall, twice.costs.midlayer), (given.costs.syscall * 2, given.costs.midlayer * 2));
        assert_eq!((twice.machine.switch, twice.machine.slice), (given.machine.switch * 2, given.machine.slice));
        assert_eq!((twice.network.packet_in, twice.network.rate), (given.network.packet_in * 2, given.network.rate));
        assert_eq!((one.machine.switch * 2, one.costs), (given.machine.switch, given.costs));
        let locks = |config: &nandscape_host_path::Config| (config.machine.lock, config.machine.lock_transfer);
        assert_eq!(locks(&twice), (locks(&given).0 * 2, locks(&given).1 * 2));
        assert!(!locks(&given).0.is_zero() && !locks(&given).1.is_zero());
    }
}
