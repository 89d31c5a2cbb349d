//! One of three servers listens without accepting, and its backlog is full: puts and gets continue with the other
//! two.
#![cfg(target_os = "linux")]

use std::net::TcpListener;
use std::os::unix::net::UnixListener;

use nandscape_apps_kv_engine::client::Order;
use nandscape_apps_kv_engine::policy::Tuning;
use nandscape_apps_kv_run::Load;
use nandscape_apps_kv_run::live::{Clients, ServeSpec, Serving, bench, serve};
use nandscape_device_ssd::Profile;
use nandscape_host_block::Config;
use nandscape_lab_run::{DriveSpec, Precondition};
use nandscape_sim::Span;
use nandscape_transport_reactor::connecting::Progress;
use nandscape_transport_reactor::socket::{Address, Stream};

fn server(listen: Address) -> Serving {
    let mut profile = Profile::load("default").expect("a built-in profile");
    for change in ["capacity=256MiB", "geometry.channels=2", "geometry.dies_per_channel=2"] {
        profile.set(change).expect("a valid change");
    }
    let resolved = profile.resolve().expect("a possible drive");
    let drive = DriveSpec {
        name: "kv".to_owned(),
        number: 0,
        profile_name: resolved.name.clone(),
        profile: resolved.to_toml(),
        keeps_data: true,
        precondition: Precondition::None,
        from_state: None,
        is_shared: false,
        own_seed: None,
    };
    let (allow_remote, noise, seed, log) = (false, None, 1, Box::new(|_: &str| ()));
    let spec = ServeSpec { drive, file: None, listen, allow_remote, block: Config::default(), noise, seed, log };
    serve(spec).expect("a server")
}

/// Fills the backlog of a server that does not accept; returns the connections.
fn fill(address: &Address) -> Vec<Stream> {
    let target = address.targets().expect("an address").remove(0);
    let mut streams = Vec::new();
    loop {
        let stream = target.socket().expect("a socket");
        let progress = target.try_connect(&stream).expect("it listens");
        let is_full = progress == Progress::BacklogFull || !stream.is_connected();
        streams.push(stream);
        if is_full {
            return streams;
        }
    }
}

fn outcome_beside(hung: Address, others: [Address; 2]) {
    let full = fill(&hung);
    let servers: Vec<Serving> = others.into_iter().map(server).collect();
    let mut addresses = vec![hung];
    addresses.extend(servers.iter().map(|server| server.address().expect("it serves").clone()));
    let clients = Clients {
        servers: addresses,
        replicas: 3,
        order: Order::Server(0),
        policy: "base".to_owned(),
        tuning: Tuning { deadline: Span::from_ms(1), busy_share: None, hedge: None, clients: 2 },
        load: Load { clients: 2, records: 100, requests: 400, ..Load::default() },
        puts: true,
        epoch_us: 0,
        seed: 1,
    };
    let outcome = bench(&clients).expect("two servers make a majority");
    assert_eq!((outcome.failed, outcome.gets.count()), (0, 400));
    drop(full);
}

#[test]
fn a_tcp_server_with_a_full_backlog_holds_nobody_up() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = Address::Tcp(listener.local_addr().expect("bound").to_string());
    let any = || Address::Tcp("127.0.0.1:0".to_owned());
    outcome_beside(address, [any(), any()]);
}

#[test]
fn a_unix_server_with_a_full_backlog_holds_nobody_up() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    let _listener = UnixListener::bind(at("hung")).expect("a socket");
    outcome_beside(Address::Unix(at("hung")), ["1", "2"].map(|name| Address::Unix(at(name))));
}
