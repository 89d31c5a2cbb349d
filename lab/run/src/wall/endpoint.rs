//! A drive by its URL, and connections to it.

use std::fmt;
use std::path::PathBuf;
use std::rc::Rc;
use std::str::FromStr;
use std::time::Duration;

use nandscape_drive::{Drive, QueueId};
use nandscape_host_driver::nbd::{NbdAddress, NbdDrive};
use nandscape_host_driver::nvme_tcp::{AdminQueue, NvmeTcp, Target};
use nandscape_host_driver::vfio_user::{FunctionDrive, Signals};
use nandscape_sim::Span;
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
/// The forms of drives that are reached with an admin queue.
const FORMS_WITH_ADMIN: &str = "nvme-tcp://HOST:PORT/NQN and vfio-user://PATH";

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

impl Endpoint {
    /// A drive that is reached with an admin queue, as [`on_target`](super::on_target) needs it.
    ///
    /// # Errors
    /// When the text names none, with the forms that do.
    pub fn with_admin(text: &str) -> Result<Endpoint, BadEndpoint> {
        match text.split_once("://") {
            Some(("nvme-tcp", _)) => text.parse(),
            Some(("vfio-user", path)) if !path.is_empty() => text.parse(),
            _ => Err(BadEndpoint(format!("it names no drive with an admin queue; valid are {FORMS_WITH_ADMIN}"))),
        }
    }
}

/// The default for how long a drive may answer nothing, without a setting in its URL or by the user.
const PATIENCE: Span = Span::from_s(60);
/// Commands at a time of a queue pair of a function; more wait in the host.
const MOST_DEPTH: u32 = 1_024;

/// A connection that is wanted.
#[derive(Copy, Clone)]
pub(super) struct Wanted {
    /// Commands at a time.
    pub(super) depth: u32,
    /// The namespace of the URL; `None` is the drive's first.
    pub(super) nsid: Option<u32>,
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

/// The connections of a run.
pub(super) struct Connections {
    /// Those that were wanted.
    pub(super) drives: Vec<Connected>,
    /// An admin queue of the same host, if one was requested.
    pub(super) admin: Option<Connected>,
    /// The completion queue of notices, if they were requested.
    pub(super) notices: Option<QueueId>,
}

impl Endpoint {
    /// The profile of its drive, if the URL has it.
    pub(super) fn profile(&self) -> Option<&str> {
        match self {
            Endpoint::Nbd(_) | Endpoint::NvmeTcp(_) | Endpoint::VfioUser(_) => None,
            Endpoint::Ring(profile) => Some(profile),
        }
    }

    /// How long its drive may answer nothing: the URL's setting, or a minute.
    pub fn patience(&self) -> Span {
        match self {
            Endpoint::NvmeTcp(target) => target.patience,
            Endpoint::Nbd(_) | Endpoint::VfioUser(_) | Endpoint::Ring(_) => PATIENCE,
        }
    }

    /// A connection for each of `wanted`, at least one, and their host's admin queue if requested. An error begins with the
    /// URL.
    pub(super) fn connect(
        &self,
        in_process: Option<&InProcess>,
        wanted: &[Wanted],
        (with_admin, signals): (bool, Signals),
        patience: Span,
    ) -> Result<Connections, String> {
        match self {
            Endpoint::Nbd(_) | Endpoint::NvmeTcp(_) if signals.notices.is_some() => Err(format!(
                "{self}: host.completion: precompletion needs notices, which no socket carries; interrupt, poll, hybrid and adaptive are \
                 valid here, and precompletion over vfio-user:// and ring://"
            )),
            // It has one client at a time, with a queue pair for each.
            Endpoint::VfioUser(path) => {
                let pairs = wanted.iter().map(|Wanted { depth, nsid }| ((*depth).min(MOST_DEPTH) as u16, *nsid));
                let pairs: Vec<_> = pairs.collect();
                let connected = FunctionDrive::connect_signalled(path, &pairs, false, with_admin, signals);
                let (admin, drives) = connected.map_err(|error| format!("{self}: {error}"))?;
                Ok(Connections {
                    notices: drives.first().and_then(FunctionDrive::notice_queue).map(QueueId),
                    drives: drives.into_iter().map(|drive| Connected::of(Polled(drive))).collect(),
                    admin: admin.map(|admin| Connected::of(Polled(admin))),
                })
            }
            Endpoint::NvmeTcp(target) if with_admin => {
                let drives = wanted.iter().map(|wanted| self.over_tcp(target, *wanted, patience).map(Rc::new));
                let drives = drives.collect::<Result<Vec<_>, String>>()?;
                // All connections are of one host, and any of their controllers takes its commands.
                let admin = Rc::new(AdminQueue::of(&drives[0]));
                let admin = Some(Connected { drive: admin, source: drives[0].clone() });
                let connected = |drive: Rc<NvmeTcp>| Connected { drive: drive.clone(), source: drive };
                Ok(Connections { drives: drives.into_iter().map(connected).collect(), admin, notices: None })
            }
            Endpoint::Nbd(_) if with_admin => Err(format!(
                "{self}: it has no admin queue for its clients; nvme-tcp://, vfio-user:// and ring:// have"
            )),
            Endpoint::Ring(_) => {
                let drive = in_process.expect("a drive in this process was started for it");
                let is_announced = drive.notices().is_some();
                assert_eq!(signals.notices.is_some(), is_announced, "the drive was started for another policy");
                let of_url = |problem| format!("{self}: {problem}");
                let one = |Wanted { depth, nsid }: &Wanted| drive.connect(*depth, *nsid, signals.interrupts);
                let drives = wanted.iter().map(|wanted| one(wanted).map(Connected::of).map_err(of_url));
                let drives = drives.collect::<Result<_, String>>()?;
                let admin = with_admin.then(|| drive.connect_admin(signals.interrupts).map(Connected::of));
                let admin = admin.transpose().map_err(of_url)?;
                Ok(Connections { drives, admin, notices: drive.notices() })
            }
            Endpoint::Nbd(_) | Endpoint::NvmeTcp(_) => {
                let drives = wanted.iter().map(|wanted| self.connect_one(*wanted, patience));
                Ok(Connections { drives: drives.collect::<Result<_, _>>()?, admin: None, notices: None })
            }
        }
    }

    fn over_tcp(&self, target: &Target, Wanted { depth, nsid }: Wanted, patience: Span) -> Result<NvmeTcp, String> {
        let (clock, most) = (WallClock::start(), u32::from(target.depth));
        let (depth, namespace) = (depth.clamp(1, most) as u16, nsid.or(target.namespace));
        let target = Target { keeps_data: false, depth, namespace, patience, ..target.clone() };
        NvmeTcp::connect(target, Box::new(move || clock.now())).map_err(|error| format!("{self}: {error}"))
    }

    fn connect_one(&self, Wanted { depth, nsid }: Wanted, patience: Span) -> Result<Connected, String> {
        match self {
            Endpoint::Nbd(_) if nsid.is_some() => {
                Err(format!("{self}: an export is one namespace; the export's name chooses it, such as NAME/2"))
            }
            // Workloads do not check data.
            Endpoint::Nbd(address) => {
                let patience = NbdDrive::PATIENCE.min(Duration::from_nanos(patience.ns()));
                NbdDrive::connect(address, false, patience).map(Connected::of).map_err(|error| error.to_string())
            }
            Endpoint::NvmeTcp(target) => self.over_tcp(target, Wanted { depth, nsid }, patience).map(Connected::of),
            Endpoint::VfioUser(_) | Endpoint::Ring(_) => unreachable!("their queue pairs are made together"),
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

    #[test]
    fn some_urls_name_drives_with_an_admin_queue() {
        for text in ["nvme-tcp://[::1]:4420/nqn.x", "vfio-user://run/n.sock"] {
            assert_eq!(Endpoint::with_admin(text), text.parse::<Endpoint>());
        }
        for text in ["http://x", "nbd://localhost:10809/x", "ring://default", "vfio-user://"] {
            let error = Endpoint::with_admin(text).unwrap_err().to_string();
            assert!(error.ends_with("; valid are nvme-tcp://HOST:PORT/NQN and vfio-user://PATH"), "{error}");
        }
    }
}
