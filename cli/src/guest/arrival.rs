//! The way of a drive into a guest, by transport.

use nandscape_lab_guest::Device;

use super::Transport;
use super::server::Server;
use crate::failure::Failure;

/// The devices of the machine, and commands in the guest.
pub(super) struct Arrival {
    pub(super) devices: Vec<Device>,
    /// Shell lines that run first in the guest.
    pub(super) first: String,
}

/// The address of this machine's loopback in QEMU's user network.
const GATEWAY: &str = "10.0.2.2";

/// For a running server.
pub(super) fn of(transport: Transport, server: &Server) -> Result<Arrival, Failure> {
    match transport {
        Transport::VfioUser => Ok(Arrival { devices: vec![Device::VfioUser(server.socket())], first: String::new() }),
        Transport::NvmeTcp => {
            let (port, nqn) = tcp(server.place())
                .ok_or_else(|| Failure::Run(anyhow::anyhow!("the server printed no address: {:?}", server.place())))?;
            let first = format!("nvme connect -t tcp -a {GATEWAY} -s {port} -n '{nqn}'");
            Ok(Arrival { devices: Vec::new(), first })
        }
    }
}

/// Port and NQN in `serving NAME at nvme-tcp://HOST:PORT/NQN`.
fn tcp(line: &str) -> Option<(u16, &str)> {
    let (address, nqn) = line.split_once("nvme-tcp://")?.1.split_once('/')?;
    let nqn = nqn.split_whitespace().next()?;
    Some((address.rsplit_once(':')?.1.parse().ok()?, nqn)).filter(|(_, nqn)| !nqn.contains('\''))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_of_a_drive_is_read_from_what_the_server_says() {
        let line = "note: serving drive at nvme-tcp://127.0.0.1:4420/nqn.2026-11.org.nandscape:drive";
        assert_eq!(tcp(line), Some((4_420, "nqn.2026-11.org.nandscape:drive")));
        assert_eq!(tcp("serving drive at nbd://127.0.0.1:10809/drive"), None);
        assert_eq!(tcp("serving drive at nvme-tcp://127.0.0.1:4420/it's"), None);
    }
}
