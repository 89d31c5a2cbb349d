//! The machine of real-time figures. Unknown properties are left out.

use serde::{Deserialize, Serialize};

/// The properties of the machine that a real-time figure depends on.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Machine {
    /// Cores that this program may use.
    pub cores: usize,
    /// The processor.
    pub processor: String,
    /// The system and its kernel.
    pub system: String,
    /// The program's build: `release` or `debug`.
    pub build: String,
}

impl Machine {
    /// This one.
    pub fn here() -> Machine {
        let kernel = read("/proc/sys/kernel/osrelease").unwrap_or_default();
        Machine {
            cores: cores(),
            processor: processor().unwrap_or_else(|| std::env::consts::ARCH.to_owned()),
            system: format!("{} {}", std::env::consts::OS, kernel.trim()).trim().to_owned(),
            build: if cfg!(debug_assertions) { "debug" } else { "release" }.to_owned(),
        }
    }
}

impl std::fmt::Display for Machine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Machine { cores, processor, system, build } = self;
        write!(f, "{cores} cores of {processor}, {system}, {build} build")
    }
}

/// Cores that this program may use.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// The first requirement of experiments in real time that this machine lacks, if any.
pub fn lacks() -> Option<String> {
    if !cfg!(target_os = "linux") {
        return Some("drives in real time need Linux".to_owned());
    }
    match cores() {
        2.. => None,
        cores => Some(format!("it takes two cores, one for the drive and one for its client; here is {cores}")),
    }
}

/// The load average of the last minute, which shows whether the machine was otherwise idle.
pub(crate) fn load_average() -> Option<f64> {
    read("/proc/loadavg")?.split_whitespace().next()?.parse().ok()
}

fn processor() -> Option<String> {
    let info = read("/proc/cpuinfo")?;
    let line = info.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

fn read(path: &str) -> Option<String> {
    std::fs::read_to_string(path).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_is_known_and_stays_the_same() {
        let machine = Machine::here();
        assert!(machine.cores > 0 && !machine.processor.is_empty(), "{machine}");
        assert!(machine.system.starts_with(std::env::consts::OS), "{machine}");
        assert_eq!(machine, Machine::here());
    }
}
