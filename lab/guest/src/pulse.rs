//! Distinguishes a stuck guest from a slow one. Under emulation on a loaded machine any time limit is wrong. A guest is
//! stuck if it prints nothing and either computes nothing, or computes for long.

use std::fs;

/// Seconds without output in which the guest hardly computes.
const IDLE_LIMIT_S: u32 = 120;
/// Seconds of processor time without output.
const BUSY_LIMIT_S: u64 = 600;
/// Processor time that an idle guest may use in a second, in ticks: for its own timers.
const IDLE_TICKS: u64 = 10;
/// Ticks a second in /proc/PID/stat: USER_HZ, which is 100 on x86.
const TICKS_A_SECOND: u64 = 100;

/// Signs of life of a guest.
pub(crate) struct Pulse {
    process: u32,
    /// Processor time of QEMU at the last look.
    ticks: u64,
    /// The length of its console at the last look.
    console: u64,
    /// Looks in a row that found it idle.
    idle: u32,
    /// Processor time since the last output.
    silent_ticks: u64,
}

impl Pulse {
    /// Of a QEMU process.
    pub(crate) fn of(process: u32) -> Pulse {
        Pulse { process, ticks: ticks(process), console: 0, idle: 0, silent_ticks: 0 }
    }

    /// The guest has printed something.
    pub(crate) fn output(&mut self) {
        self.idle = 0;
        self.silent_ticks = 0;
    }

    /// Looks at it, after a second without output, when its console has this length: how it is stuck, if it is.
    pub(crate) fn look(&mut self, console: u64) -> Option<String> {
        self.look_at(ticks(self.process), console)
    }

    fn look_at(&mut self, ticks: u64, console: u64) -> Option<String> {
        let used = ticks.saturating_sub(self.ticks);
        self.ticks = ticks;
        if console != self.console {
            self.console = console;
            self.output();
        }
        self.idle = if used <= IDLE_TICKS { self.idle + 1 } else { 0 };
        self.silent_ticks += used;
        if self.idle >= IDLE_LIMIT_S {
            return Some(format!("it has been silent and idle for {IDLE_LIMIT_S} s"));
        }
        let busy = self.silent_ticks >= BUSY_LIMIT_S * TICKS_A_SECOND;
        busy.then(|| format!("it has used {BUSY_LIMIT_S} s of processor time and said nothing"))
    }
}

/// Processor time of a process in ticks; 0 when it has ended.
fn ticks(process: u32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    parse(&stat).unwrap_or(0)
}

/// User and system time, fields 14 and 15. The second field is a name in parentheses, which may hold anything.
fn parse(stat: &str) -> Option<u64> {
    let mut fields = stat.rsplit_once(") ")?.1.split(' ').skip(11);
    Some(fields.next()?.parse::<u64>().ok()? + fields.next()?.parse::<u64>().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processor_time_is_read() {
        assert_eq!(parse("7 (a ) b) S 1 7 7 0 -1 4194304 90 0 0 0 120 30 0 0 20 0 1 0 5 100 200"), Some(150));
        assert_eq!(parse(""), None);
    }

    #[test]
    fn slow_is_not_stuck_but_idle_and_endless_are() {
        let mut pulse = Pulse::of(0);
        for look in 1..IDLE_LIMIT_S {
            assert_eq!(pulse.look_at(u64::from(look), 0), None);
        }
        assert!(pulse.look_at(u64::from(IDLE_LIMIT_S), 0).unwrap().contains("idle"));

        let (mut pulse, mut ticks) = (Pulse::of(0), 0);
        let mut work = |pulse: &mut Pulse, console| {
            ticks += 100;
            pulse.look_at(ticks, console)
        };
        assert!((1..BUSY_LIMIT_S).all(|_| work(&mut pulse, 0).is_none()));
        // The console has grown.
        assert!((1..BUSY_LIMIT_S).all(|_| work(&mut pulse, 1).is_none()));
        assert!(work(&mut pulse, 1).is_some_and(|symptom| symptom.contains("processor time")));
    }
}
