//! Linux guests as hosts of drives: Debian's kernel under stock QEMU, whose packages are fetched on first use.
//!
//! | file | what |
//! |---|---|
//! | `steps` | what guests do with their drive, over either transport |
//! | `transport` | a drive that is served over a transport, and guests that are its hosts |
//! | `pci` | the steps over vfio-user |
//! | `network` | the steps over NVMe/TCP, and a network that breaks |
//! | `two_hosts` | two guests on one namespace, with reservations, over both |
//! | `vanishing` | guests that vanish, and power that is cut, over both |
//! | `protection` | protection information |
//! | `zones` | a drive with zones |
//! | `command` | `nandscape guest` |

mod command;
mod network;
mod pci;
mod protection;
mod steps;
mod transport;
mod two_hosts;
mod vanishing;
mod zones;

use nandscape_lab_guest::Guest;

/// Runs a command in a guest, which must succeed.
#[track_caller]
fn run(guest: &mut Guest, command: &str) -> String {
    guest.run(command).unwrap_or_else(|error| panic!("{error}"))
}

/// A command that ends when a condition holds, and fails when that takes more than two minutes.
fn until(condition: &str) -> String {
    format!("timeout 120 sh -c 'until {condition}; do sleep 0.3; done'")
}

/// Runs a script, line by line.
#[track_caller]
fn script(guest: &mut Guest, lines: &str) {
    for line in lines.lines().map(str::trim).filter(|line| !line.is_empty()) {
        run(guest, line);
    }
}
