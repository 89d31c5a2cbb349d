//! The parts of a latency in words.

use serde_json::Value;

/// A part of a mean latency: its path within a breakdown, in words, and how long.
pub(super) struct Part {
    pub(super) path: String,
    pub(super) words: String,
    pub(super) us: f64,
}

/// The parts of a breakdown, the longest first: waits by cause, other stages unchanged. `rules` are those of
/// [`faults::delaying`](super::faults::delaying).
pub(super) fn parts(breakdown: &Value, rules: &[&str]) -> Vec<Part> {
    let mut parts = Vec::new();
    let has_holders = breakdown.get(HOLDERS).is_some();
    for (key, value) in breakdown.as_object().into_iter().flatten() {
        match (key.strip_suffix("_by"), value) {
            (Some(stage), Value::Object(causes)) => {
                let of_cause = |(cause, us): (&String, &Value)| {
                    let words = match stage {
                        "host" if has_holders && cause == "run_delay" => return None,
                        "run_delay" => format!("the host: waiting for a processor that {}", has(cause)),
                        "host" => format!("the host: {}", in_host(cause)),
                        _ => format!("{} behind {}", wait(stage), behind(cause, rules)),
                    };
                    Some(Part { path: format!("{key}.{cause}"), words, us: us.as_f64()? })
                };
                parts.extend(causes.iter().filter_map(of_cause));
            }
            (None, us) if breakdown.get(format!("{key}_by")).is_none() => {
                let words = stage(key);
                parts.extend(us.as_f64().map(|us| Part { path: key.clone(), words, us }));
            }
            _ => {}
        }
    }
    parts.sort_by(|one, other| other.us.total_cmp(&one.us));
    parts
}

/// The wait for a processor by who had it.
pub(super) const HOLDERS: &str = "run_delay_by";

/// Who has a processor, and what for.
pub(super) fn has(holder: &str) -> String {
    match holder {
        "interrupt" => "handles interrupts",
        "softirq" => "runs softirqs",
        "application" => "runs other threads of the applications",
        "polling" => "runs other threads, which poll or spin",
        "load" => "runs threads that compute",
        "kernel" => "runs threads of the kernel, which poll or issue requests",
        other => return format!("is busy ({})", other.replace('_', " ")),
    }
    .to_owned()
}

fn wait(stage: &str) -> String {
    match stage {
        "queue" => "waiting in the queue or for the write buffer".to_owned(),
        "die_wait" => "waiting for the die".to_owned(),
        "channel_wait" => "waiting for the channel".to_owned(),
        other => format!("waiting ({})", other.replace('_', " ")),
    }
}

/// The rules of the fault plan that struck and take time.
fn faults(rules: &[&str]) -> String {
    match rules {
        [] => "faults: slow operations, dies that do not answer".to_owned(),
        [rule] => format!("the fault rule \"{rule}\""),
        rules => {
            let quoted: Vec<String> = rules.iter().map(|rule| format!("\"{rule}\"")).collect();
            format!("the fault rules {}", quoted.join(", "))
        }
    }
}

fn behind(cause: &str, rules: &[&str]) -> String {
    match cause {
        "host_read" => "reads of the host".to_owned(),
        "host_write" => "writes of the host".to_owned(),
        "gc" => "garbage collection".to_owned(),
        "wear" => "wear levelling".to_owned(),
        "metadata" => "tables and logs".to_owned(),
        "read_modify_write" => "reads that complete partial writes".to_owned(),
        "power" => "power that was cut, until the drive had started again".to_owned(),
        "retry" => "retries: pages that are read again".to_owned(),
        "fault" => faults(rules),
        other => other.replace('_', " "),
    }
}

fn in_host(stage: &str) -> String {
    match stage {
        "thread" => "waiting for a thread that is free",
        "syscall" => "system calls",
        "submit" => "the block layer on the way to the drive",
        "lock" => "locks of the block layer and the driver",
        "driver" => "the driver on the way to the drive",
        "coalescing" => "completions that the drive holds back to save interrupts",
        "interrupt" => "the interrupt and its handler",
        "ipi" => "interrupts between processors",
        "softirq" => "waiting for the softirq",
        "complete" => "the block layer on the way back",
        "wakeup" => "waking the thread",
        "run_delay" => "waiting for a processor",
        "switch" => "switches between threads",
        "oversleep" => "sleeping longer than the drive takes",
        "poll" => "finding the completion",
        "copy" => "copying data",
        "client" => "the machine of the clients",
        "network" => "the wires and cards between the machines",
        "receive" => "receiving requests: interrupts, softirqs and protocols",
        "send" => "the protocols of answers",
        other => return other.replace('_', " "),
    }
    .to_owned()
}

fn stage(stage: &str) -> String {
    match stage {
        "array" => "the flash itself".to_owned(),
        "transfer" => "transfer on the channel".to_owned(),
        "ecc" => "error correction".to_owned(),
        "link" => "the host link".to_owned(),
        other => other.replace('_', " "),
    }
}
