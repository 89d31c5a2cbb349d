//! A drive by its URL, and connections to it.

use std::fmt;
use std::rc::Rc;
use std::str::FromStr;

use nandscape_drive::Drive;
use nandscape_host_driver::nbd::{NbdAddress, NbdDrive};
use nandscape_host_driver::nvme_tcp::{NvmeTcp, Target};
use nandscape_transport_reactor::WallClock;

use super::in_process::InProcess;
use super::pacer::Source;

/// A drive that a workload can run on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Endpoint {
    /// An export of an NBD server.
    Nbd(NbdAddress),
    /// A namespace of an NVMe/TCP target.
    NvmeTcp(Target),
    /// A drive of this process, by its profile: `ring://P`.
    Ring(String),
}

/// Why a text names no drive.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct BadEndpoint(String);

/// The forms.
const FORMS: &str =
    "nbd://HOST:PORT/EXPORT, nbd+unix:///EXPORT?socket=PATH, nvme-tcp://HOST:PORT/NQN and ring://PROFILE";

impl FromStr for Endpoint {
    type Err = BadEndpoint;

    fn from_str(text: &str) -> Result<Endpoint, BadEndpoint> {
        match text.split_once("://") {
            Some(("nbd" | "nbd+unix", _)) => text.parse().map(Endpoint::Nbd).map_err(BadEndpoint),
            Some(("nvme-tcp", _)) => text.parse().map(Endpoint::NvmeTcp).map_err(BadEndpoint),
            Some(("ring", profile)) if !profile.is_empty() => Ok(Endpoint::Ring(profile.to_owned())),
            _ => Err(BadEndpoint(format!("it names no drive; valid are {FORMS}"))),
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Endpoint::Nbd(address) => address.fmt(f),
            Endpoint::NvmeTcp(target) => target.fmt(f),
            Endpoint::Ring(profile) => write!(f, "ring://{profile}"),
        }
    }
}

/// A connection: the drive as the workload sees it, and as the loop does.
pub(super) struct Connected {
    pub(super) drive: Rc<dyn Drive>,
    pub(super) source: Rc<dyn Source>,
}

impl Connected {
    fn of<T: Drive + Source + 'static>(drive: T) -> Connected {
        let drive = Rc::new(drive);
        Connected { drive: drive.clone(), source: drive }
    }
}

impl Endpoint {
    /// The profile of its drive, where the URL says it.
    pub(super) fn profile(&self) -> Option<&str> {
        match self {
            Endpoint::Nbd(_) | Endpoint::NvmeTcp(_) => None,
            Endpoint::Ring(profile) => Some(profile),
        }
    }

    /// A connection for up to `depth` commands at a time. An error begins with the URL.
    pub(super) fn connect(&self, in_process: Option<&InProcess>, depth: u32) -> Result<Connected, String> {
        match self {
            // Workloads do not look at data.
            Endpoint::Nbd(address) => {
                NbdDrive::connect(address, false).map(Connected::of).map_err(|error| error.to_string())
            }
            Endpoint::NvmeTcp(target) => {
                let (clock, most) = (WallClock::start(), u32::from(target.depth));
                let target = Target { keeps_data: false, depth: depth.clamp(1, most) as u16, ..target.clone() };
                let drive = NvmeTcp::connect(target, Box::new(move || clock.now()));
                drive.map(Connected::of).map_err(|error| format!("{self}: {error}"))
            }
            Endpoint::Ring(_) => {
                let drive = in_process.expect("a drive in this process was started for it");
                drive.connect(depth).map(Connected::of).map_err(|problem| format!("{self}: {problem}"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_name_drives() {
        for text in
            ["nbd://localhost:10809/x", "nbd+unix:///x?socket=n.sock", "ring://default", "nvme-tcp://[::1]:4420/nqn.x"]
        {
            assert_eq!(text.parse::<Endpoint>().unwrap().to_string(), text);
        }
        for text in ["default", "ring://", "http://x", "nbd+unix:///x"] {
            let error = text.parse::<Endpoint>().unwrap_err().to_string();
            assert!(error.contains("valid are") && error.contains("nbd+unix:///EXPORT?socket=PATH"), "{error}");
        }
    }
}
