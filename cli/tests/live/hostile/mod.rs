//! One server with NBD, NVMe/TCP, vfio-user and a control socket, and hostile clients of every kind on each, one kind after
//! another. Meanwhile a well-behaved client on every transport writes and verifies. Afterwards the server answers, and has
//! the clients, descriptors and threads that it had before.
//!
//! | file | what |
//! |---|---|
//! | `neighbours` | the well-behaved clients |
//! | `nbd`, `nvme_tcp`, `vfio_user`, `control` | the hostile ones |
//!
//! Garbled and forged input is that of the fuzzer's sessions, from seeds. It goes to a separate drive, since any client
//! may write, format and sanitize; all other kinds are on the drive of the neighbours.
//!
//! Left out: the answer to each violation, which the tests of each transport check.

mod control;
mod nbd;
mod neighbours;
mod nvme_tcp;
mod vfio_user;

use std::path::PathBuf;

use nandscape_lab_fuzz::{NvmeTcpTarget, cases};
use nandscape_sim::{Rng, Seed};
use serde_json::json;

use crate::hang_ups::{ask, until};
use crate::patience;
use crate::server::{SMALL, Server, number};
use neighbours::Neighbours;

/// A kind of hostile client.
type Kind = (&'static str, fn(&mut Scene<'_>));

/// All of them.
const KINDS: [&[Kind]; 4] = [&nbd::KINDS, &nvme_tcp::KINDS, &vfio_user::KINDS, &control::KINDS];

/// Inputs of each kind that has them.
const INPUTS: u64 = 60;
/// Clients that come and go.
const CROWD: usize = 100;
/// Times that all kinds come. After the first, the server has what it keeps for later clients, such as buffers.
const PASSES: u64 = 3;
/// The most additional memory of the server after the last pass, in bytes. The clients of each pass ask for gigabytes. One
/// client's limit of data in work grows to 64 MiB as it reads, so the first pass does not always need as much as a later one.
const MORE_MEMORY: u64 = 32 << 20;

/// Where the server's drives are. `prey` is the drive that is forged input's.
pub(super) struct Places {
    nbd: PathBuf,
    nvme_tcp: NvmeTcpTarget,
    nvme_tcp_prey: NvmeTcpTarget,
    /// The function of the neighbour.
    own_function: PathBuf,
    function: PathBuf,
    function_prey: PathBuf,
    control: PathBuf,
}

/// What a hostile client finds.
pub(super) struct Scene<'a> {
    places: &'a Places,
    neighbours: &'a Neighbours,
    rng: Rng,
}

impl Scene<'_> {
    /// Has a session for each of some inputs at random.
    fn inputs(&mut self, session: impl Fn(&Places, &[u8])) {
        for _ in 0..INPUTS {
            session(self.places, &cases::input(self.rng.bits(), &[]));
        }
    }
}

/// The server with its two drives.
fn serve() -> (Server, Places) {
    let folder = tempfile::tempdir().unwrap();
    let more = ["--drive", "prey=default", "--nbd", "unix:n.sock", "--nvme-tcp", "127.0.0.1:0", "--control", "control"];
    let functions = ["--vfio-user", "own", "--vfio-user", "other", "--vfio-user", "prey=prey", "--check", "--json"];
    let server = Server::start_measured(folder, &[&SMALL[..], &more, &functions].concat());
    let target = |name: &str| {
        let url = server.next_place(&format!("serving {name} at nvme-tcp://"));
        let (address, nqn) = url.split_once('/').expect("it has a name");
        NvmeTcpTarget { address: address.to_owned(), nqn: nqn.to_owned() }
    };
    let (nvme_tcp, nvme_tcp_prey) = (target("small"), target("prey"));
    // The last socket.
    server.next_place("serving prey to a guest");
    let places = Places {
        nbd: server.path("n.sock"),
        nvme_tcp,
        nvme_tcp_prey,
        own_function: server.path("own"),
        function: server.path("other"),
        function_prey: server.path("prey"),
        control: server.path("control"),
    };
    (server, places)
}

/// What the server's process uses.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
struct Usage {
    descriptors: usize,
    threads: u64,
    /// Bytes of its memory.
    memory: u64,
}

/// The usage now.
fn usage(server: &Server) -> Usage {
    let process = PathBuf::from(format!("/proc/{}", server.id()));
    let descriptors = std::fs::read_dir(process.join("fd")).unwrap().count();
    let status = std::fs::read_to_string(process.join("status")).unwrap();
    let field = |name: &str| -> u64 {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_else(|| panic!("no {name}"));
        line.split_whitespace().next().and_then(|value| value.parse().ok()).expect("a number")
    };
    Usage { descriptors, threads: field("Threads:"), memory: field("VmRSS:") << 10 }
}

#[test]
fn hostile_clients_of_every_kind_leave_the_server_and_the_other_clients_alone() {
    let seed = std::env::var("NANDSCAPE_TEST_SEED").map_or(7, |seed| seed.parse().expect("a number"));
    let (mut server, places) = serve();
    let neighbours = Neighbours::start(&places);
    neighbours.advance();
    // Before any question over the control socket, whose threads end a moment later.
    let before = usage(&server);
    let clients = number(&ask(&server, &json!({ "command": "statistics" })), "/clients");
    let mut after_first = None;
    for pass in 0..PASSES {
        for (name, run) in KINDS.into_iter().flatten() {
            let rng = Seed::new(seed).child(name).nth(pass).rng();
            let mut scene = Scene { places: &places, neighbours: &neighbours, rng };
            let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| run(&mut scene)));
            let told = format!("{name}, pass {pass}: NANDSCAPE_TEST_SEED={seed} shows it");
            assert!(outcome.is_ok(), "{told}");
            assert!(server.is_running(), "the server has ended: {told}");
            neighbours.advance();
            until(&server, &format!("{clients} clients are left: {told}"), |statistics| {
                number(statistics, "/clients") == clients
            });
            until_settled(&server, before, &told);
        }
        after_first.get_or_insert(usage(&server).memory);
    }
    neighbours.end();
    let (first, last) = (after_first.expect("there is a first pass"), usage(&server).memory);
    assert!(last < first + MORE_MEMORY, "{last} bytes of memory after {PASSES} passes, {first} after the first");
    let figures = server.figures();
    for drive in 0..2 {
        assert_eq!(figures["drives"][drive]["name"], ["small", "prey"][drive]);
    }
    for kind in ["reads", "writes"] {
        assert!(number(&figures, &format!("/drives/0/{kind}/count")) > 0.0);
    }
}

/// Waits until the server has the descriptors and threads of `right`: those of the last question over the control
/// socket disappear a moment after its answer.
fn until_settled(server: &Server, right: Usage, told: &str) {
    patience::until(&format!("descriptors and threads are those of before, {right:?}: {told}"), || {
        let now = usage(server);
        (now.descriptors, now.threads) == (right.descriptors, right.threads)
    });
}
