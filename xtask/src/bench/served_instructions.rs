//! Instructions of a server for a 4 KiB read of a host, 32 at a time: callgrind counts those of the server, in two runs of
//! different lengths; the host runs at full speed. Callgrind slows the server so much that the host always has the
//! next commands ready: the server neither sleeps nor polls in vain.

use std::process::Command;

use serde_json::json;

use super::instructions::{callgrind, counts_in, difference, has_valgrind};
use super::servers::Folder;
use super::subject::Subject;
use super::suite::{Figure, Measured};
use super::target::{Target, Transport, load};

/// Reads of the two runs.
const COUNTED: (u32, u32) = (10_000, 30_000);

/// Over NVMe/TCP on loopback.
pub(crate) fn nvme_tcp(subject: &Subject) -> Measured {
    measure(subject, Transport::NvmeTcp)
}

/// Over vfio-user: the host is a polled driver in user space, with its doorbells in memory.
pub(crate) fn vfio_user(subject: &Subject) -> Measured {
    measure(subject, Transport::VfioUser(&Folder::new()?))
}

fn measure(subject: &Subject, transport: Transport<'_>) -> Measured {
    if !has_valgrind() {
        return Ok(None);
    }
    let count = |requests: u32| {
        let (command, file) = callgrind(subject);
        let target = Target::start(command, transport, "adaptive")?;
        let words = ["--poll", "busy", "--warmup-count", "1000", "--io-count", &requests.to_string()];
        load(Command::new(subject.program()), &target.url, "32", &words)?;
        target.end()?;
        counts_in(&file)
    };
    let (short, long) = COUNTED;
    let stages = difference(&count(short)?, &count(long)?, long - short);
    let value = stages.values().sum();
    let figure = Figure { name: "instructions of the server, a read", value, aim: "", more_is_better: false };
    Ok(Some((vec![figure], json!({"requests": [short, long], "stages": stages}))))
}
