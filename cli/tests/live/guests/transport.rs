//! A drive that is served over a transport, and guests that are its hosts: each finds it as /dev/nvme0 and /dev/nvme0n1.

use std::ops::Deref;

use nandscape_lab_guest::{Device, Guest, Kit, Machine};

use rustix::process::Signal;

use super::{run, until};
use crate::server::Server;

/// A drive for guests: with as much to spare that ext4 and XFS fit, without delays, so that tests are short.
const DRIVE: [&str; 9] = [
    "--drive",
    "disk=default",
    "--set",
    "capacity=1GiB",
    "--set",
    "identity.nqn=nqn.2026-11.org.example:disk",
    "--no-delay",
    "--check",
    "--json",
];

/// Bytes of the drive.
pub(super) const CAPACITY: u64 = 1 << 30;
/// The drive's subsystem.
pub(super) const NQN: &str = "nqn.2026-11.org.example:disk";

/// How guests reach the drive.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Transport {
    /// vfio-user: a PCI device, for at most two guests.
    Pci,
    /// NVMe/TCP, over QEMU's user network.
    Network,
}

/// The sockets for guests with a PCI device.
const SOCKETS: [&str; 2] = ["disk.sock", "other.sock"];

/// A server with the drive.
pub(super) struct Served {
    server: Server,
    transport: Transport,
}

impl Deref for Served {
    type Target = Server;

    fn deref(&self) -> &Server {
        &self.server
    }
}

impl Served {
    /// Serves the drive.
    pub(super) fn over(transport: Transport, more: &[&str]) -> Served {
        let place = match transport {
            Transport::Pci => vec!["--vfio-user", SOCKETS[0], "--vfio-user", SOCKETS[1]],
            Transport::Network => vec!["--nvme-tcp", "127.0.0.1:0"],
        };
        let server = Server::start(tempfile::tempdir().unwrap(), &[&DRIVE[..], &place, more].concat());
        Served { server, transport }
    }

    /// Ends the server, which has its PCI drive in drive.nand, and starts another one with it.
    pub(super) fn again(mut self) -> Served {
        self.server.signal(Signal::TERM);
        assert_eq!(self.server.wait().code, Some(0));
        let place = ["--vfio-user", SOCKETS[0], "--vfio-user", SOCKETS[1], "--store", "file:drive.nand"];
        let server = Server::start(self.server.keep_folder(), &[&DRIVE[..], &place].concat());
        Served { server, transport: self.transport }
    }

    /// A guest that has the drive.
    pub(super) fn guest(&self) -> Guest {
        self.host(0)
    }

    /// The first guest, which boots with the drive on its PCI bus: firmware and kernel find it at their start.
    pub(super) fn booted(&self) -> Guest {
        start(vec![Device::VfioUser(self.path(SOCKETS[0]))], true)
    }

    /// The first or the second guest of the drive. Each is a separate host, with a separate identifier.
    pub(super) fn host(&self, number: usize) -> Guest {
        match self.transport {
            Transport::Pci => {
                let mut guest = start(vec![Device::VfioUser(self.path(SOCKETS[number]))], false);
                // The value is EXHID: an identifier of 16 bytes.
                let feature = "/dev/nvme0 -f 0x81 -l 16";
                run(&mut guest, &format!("printf 'the {number}. test host' > /run/id"));
                run(&mut guest, &format!("nvme set-feature {feature} --value=1 -d /run/id"));
                let set = run(&mut guest, &format!("nvme get-feature {feature} --cdw11=1 -b; echo"));
                assert_eq!(set, format!("the {number}. test host"));
                guest
            }
            Transport::Network => {
                let mut guest = start(Vec::new(), false);
                run(&mut guest, &self.connect(number));
                run(&mut guest, &until("[ -e /dev/nvme0n1 ]"));
                guest
            }
        }
    }

    /// The address of the drive in the words of nvme-cli. The guest reaches this machine's loopback at 10.0.2.2.
    pub(super) fn address(&self) -> String {
        let (_, place) = self.url().split_once("nvme-tcp://").expect("it is served over NVMe/TCP");
        let port = place.split(['/', ' ']).next().and_then(|place| place.rsplit_once(':')).expect("it has a port").1;
        format!("-t tcp -a 10.0.2.2 -s {port}")
    }

    fn connect(&self, number: usize) -> String {
        let id = format!("5c8b2f6e-0d2a-4c6b-9f5e-00000000000{number}");
        let host = format!("--hostid={id} --hostnqn=nqn.2014-08.org.nvmexpress:uuid:{id}");
        format!("nvme connect {} -n {NQN} {host} -k 5 --reconnect-delay=1", self.address())
    }

    /// Ends the server, which must have nothing to complain of; its figures.
    pub(super) fn figures(self) -> serde_json::Value {
        self.server.figures()
    }
}

fn start(devices: Vec<Device>, is_booted: bool) -> Guest {
    let kit = Kit::prepare(&|_| ()).unwrap();
    Machine { devices, is_booted, ..Machine::default() }.start(&kit).unwrap_or_else(|error| panic!("{error}"))
}
