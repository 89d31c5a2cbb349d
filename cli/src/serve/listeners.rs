//! The sockets at which clients find the drives: NBD and NVMe/TCP.

use std::time::Duration;

use nandscape_lab_report::format::size;
use nandscape_transport_reactor::socket::Address;

use super::notes::Notes;
use super::reactors::{LiveDrive, Running};
use super::{ServeArgs, args, descriptors, no_place};
use crate::failure::Failure;
use crate::output;

/// The longest time that a client may take to negotiate.
const PATIENCE: Duration = Duration::from_secs(10);

/// Listeners; dropping them ends them.
pub(super) struct Listeners {
    _nbd: Vec<nandscape_transport_nbd::Listener>,
    _nvme_tcp: Vec<nandscape_transport_nvme_tcp::Listener>,
}

impl ServeArgs {
    /// Where clients connect, each with its option.
    pub(super) fn addresses(&self) -> impl Iterator<Item = (&'static str, &Address)> {
        let nbd = self.nbd.iter().map(|address| ("--nbd", address));
        nbd.chain(self.nvme_tcp.iter().map(|address| ("--nvme-tcp", address)))
    }
}

/// Starts to listen, which creates the sockets.
pub(super) fn listen(args: &ServeArgs, running: &Running, notes: &Notes) -> Result<Listeners, Failure> {
    let max_clients = descriptors::clients_each(args.addresses().count());
    let mut listeners = Listeners { _nbd: Vec::new(), _nvme_tcp: Vec::new() };
    for address in &args.nbd {
        let notes = notes.clone();
        let config = nandscape_transport_nbd::ListenerConfig {
            address: address.clone(),
            allow_remote: args.allow_remote,
            max_clients,
            patience: PATIENCE,
            exports: running.drives.iter().map(nbd_export).collect(),
            log: Box::new(move |text| notes.say(text)),
        };
        let listener = nandscape_transport_nbd::Listener::start(config);
        let listener = listener.map_err(|error| no_place("--nbd", address, &error))?;
        warn_if_remote(args);
        running.drives.iter().for_each(|drive| output::note(&args::how_to_connect(listener.address(), &drive.name)));
        listeners._nbd.push(listener);
    }
    for address in &args.nvme_tcp {
        let notes = notes.clone();
        let config = nandscape_transport_nvme_tcp::ListenerConfig {
            address: address.clone(),
            allow_remote: args.allow_remote,
            max_clients,
            patience: PATIENCE,
            subsystems: running.drives.iter().map(subsystem).collect(),
            log: Box::new(move |text| notes.say(text)),
        };
        let listener = nandscape_transport_nvme_tcp::Listener::start(config);
        let listener = listener.map_err(|error| no_place("--nvme-tcp", address, &error))?;
        warn_if_remote(args);
        for LiveDrive { name, nqn, .. } in &running.drives {
            output::note(&format!("serving {name} at nvme-tcp://{}/{nqn}", listener.address()));
        }
        listeners._nvme_tcp.push(listener);
    }
    Ok(listeners)
}

fn nbd_export(drive: &LiveDrive) -> (nandscape_transport_nbd::Exported, nandscape_transport_reactor::Handle, u16) {
    let description = format!("{}, {}", drive.profile, size(drive.info.bytes()));
    let exported = nandscape_transport_nbd::Exported { name: drive.name.clone(), description };
    (exported, drive.handle.clone(), drive.number)
}

fn subsystem(drive: &LiveDrive) -> nandscape_transport_nvme_tcp::Subsystem {
    let LiveDrive { nqn, handle, number, .. } = drive;
    nandscape_transport_nvme_tcp::Subsystem { nqn: nqn.clone(), handle: handle.clone(), number: *number }
}

fn warn_if_remote(args: &ServeArgs) {
    if args.allow_remote {
        output::note("unauthenticated: any client that reaches this address can read and write the drives");
    }
}
