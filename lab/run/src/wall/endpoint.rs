//! A drive by its URL, and connections to it.

use std::fmt;
use std::path::PathBuf;
use std::rc::Rc;
use std::str::FromStr;

use nandscape_drive::Drive;
use nandscape_host_driver::nbd::{NbdAddress, NbdDrive};
use nandscape_host_driver::nvme_tcp::{NvmeTcp, Target};
use nandscape_host_driver::vfio_user::FunctionDrive;
use nandscape_transport_reactor::WallClock;

use super::function::Polled;
use super::in_process::InProcess;
use super::pacer::Source;

/// A drive that a workload can run on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Endpoint {
    /// An export of an NBD server.
    Nbd(NbdAddress),
    /// A namespace of an NVMe/TCP target.
    NvmeTcp(Target),
    /// A PCI function behind a vfio-user socket: `vfio-user://PATH`.
    VfioUser(PathBuf),
    /// A drive of this process, by its profile: `ring://P`.
    Ring(String),
}

/// Why a text names no drive.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct BadEndpoint(String);

/// The forms.
const FORMS: &str = "nbd://HOST:PORT/EXPORT, nbd+unix:///EXPORT?socket=PATH, nvme-tcp://HOST:PORT/NQN, vfio-user://PATH and \
                     ring://PROFILE";

impl FromStr for Endpoint {
    type Err = BadEndpoint;

    fn from_str(text: &str) -> Result<Endpoint, BadEndpoint> {
        match text.split_once("://") {
            Some(("nbd" | "nbd+unix", _)) => text.parse().map(Endpoint::Nbd).map_err(BadEndpoint),
            Some(("nvme-tcp", _)) => text.parse().map(Endpoint::NvmeTcp).map_err(BadEndpoint),
            Some(("vfio-user", path)) if !path.is_empty() => Ok(Endpoint::VfioUser(path.into())),
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
            Endpoint::VfioUser(path) => write!(f, "vfio-user://{}", path.display()),
            Endpoint::Ring(profile) => write!(f, "ring://{profile}"),
        }
    }
}

/// Commands at a time of a queue pair of a function; more wait in the host.
const MOST_DEPTH: u32 = 1_024;

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
            Endpoint::Nbd(_) | Endpoint::NvmeTcp(_) | Endpoint::VfioUser(_) => None,
            Endpoint::Ring(profile) => Some(profile),
        }
    }

    /// A connection for each of `depths`: commands at a time. An error begins with the URL.
    pub(super) fn connect(&self, in_process: Option<&InProcess>, depths: &[u32]) -> Result<Vec<Connected>, String> {
        match self {
            // It has one client at a time, with a queue pair for each.
            Endpoint::VfioUser(path) => {
                let depths: Vec<u16> = depths.iter().map(|depth| (*depth).min(MOST_DEPTH) as u16).collect();
                let drives =
                    FunctionDrive::connect(path, &depths, false).map_err(|error| format!("{self}: {error}"))?;
                Ok(drives.into_iter().map(|drive| Connected::of(Polled(drive))).collect())
            }
            _ => depths.iter().map(|depth| self.connect_one(in_process, *depth)).collect(),
        }
    }

    fn connect_one(&self, in_process: Option<&InProcess>, depth: u32) -> Result<Connected, String> {
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
            Endpoint::VfioUser(_) => unreachable!("its queue pairs are made together"),
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
        for text in [
            "nbd://localhost:10809/x",
            "nbd+unix:///x?socket=n.sock",
            "nvme-tcp://[::1]:4420/nqn.x",
            "vfio-user://run/n.sock",
            "vfio-user:///run/n.sock",
            "ring://default",
        ] {
            assert_eq!(text.parse::<Endpoint>().unwrap().to_string(), text);
        }
        for text in ["default", "ring://", "vfio-user://", "http://x", "nbd+unix:///x"] {
            let error = text.parse::<Endpoint>().unwrap_err().to_string();
            assert!(error.contains("valid are") && error.contains("nbd+unix:///EXPORT?socket=PATH"), "{error}");
        }
    }
}
