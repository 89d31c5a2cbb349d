//! Linux guests as hosts of drives: Debian's kernel under stock QEMU, whose packages are fetched on first use.
//!
//! | file | what |
//! |---|---|
//! | `pci` | a drive as a PCI device: what its tools see, data, file systems, resets |
//! | `network` | a drive over NVMe/TCP |
//! | `upkeep` | sanitize and self-test |
//! | `two_hosts` | two guests on one namespace, with reservations |
//! | `vanishing` | guests that vanish, power that is cut |
//! | `protection` | protection information |
//! | `command` | `nandscape guest` |

mod command;
mod network;
mod pci;
mod protection;
mod two_hosts;
mod upkeep;
mod vanishing;

use std::path::PathBuf;

use nandscape_lab_guest::{Device, Guest, Kit, Machine};

use crate::server::Server;

/// A drive for guests: with as much to spare that ext4 and XFS fit, without delays, so that tests are short.
const DRIVE: [&str; 8] =
    ["--drive", "disk=default", "--set", "capacity=1GiB", "--no-delay", "--check", "--json", "--vfio-user"];

/// Serves the drive at `disk.sock`.
fn serve(more: &[&str]) -> Server {
    Server::start(tempfile::tempdir().unwrap(), &[&DRIVE[..], &["disk.sock"], more].concat())
}

fn machine(sockets: impl IntoIterator<Item = PathBuf>) -> Machine {
    Machine { devices: sockets.into_iter().map(Device::VfioUser).collect(), ..Machine::default() }
}

/// A guest with the server's drive as its only one: /dev/nvme0n1.
fn guest(server: &Server) -> Guest {
    start(&machine([server.path("disk.sock")]))
}

fn start(machine: &Machine) -> Guest {
    let kit = Kit::prepare(&|_| ()).unwrap();
    machine.start(&kit).unwrap_or_else(|error| panic!("{error}"))
}

/// Runs a command in a guest, which must succeed.
#[track_caller]
fn run(guest: &mut Guest, command: &str) -> String {
    guest.run(command).unwrap_or_else(|error| panic!("{error}"))
}

/// A command that ends when a condition holds, and fails when that takes more than a minute.
fn until(condition: &str) -> String {
    format!("timeout 60 sh -c 'until {condition}; do sleep 0.1; done'")
}

/// Runs a script, line by line.
#[track_caller]
fn script(guest: &mut Guest, lines: &str) {
    for line in lines.lines().map(str::trim).filter(|line| !line.is_empty()) {
        run(guest, line);
    }
}
