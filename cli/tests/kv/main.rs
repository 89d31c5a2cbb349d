//! Three servers of the key-value store in processes of their own. One is killed under load, and comes back. Others have hostile clients.
#![cfg(target_os = "linux")]

mod hostile;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::rc::Rc;

use nandscape_host_kv::Client;
use nandscape_host_kv::client::Order;
use nandscape_host_kv::policy::Tuning;
use nandscape_lab_kv::Load;
use nandscape_lab_kv::live::{Clients, Connected, with_clients};
use nandscape_sim::{Rng, Seed, Span};
use nandscape_transport_reactor::socket::Address;

/// A server process, ended when it is dropped.
struct Server {
    child: Child,
}

impl Server {
    fn start(folder: &Path, number: usize) -> Server {
        let mut command = Command::new(env!("CARGO_BIN_EXE_nandscape"));
        command.args(["kv", "serve", "--drive", "default", "--set", "capacity=256MiB"]);
        command.args(["--set", "geometry.channels=2", "--set", "geometry.dies_per_channel=2"]);
        command.arg("--store").arg(format!("file:{}", folder.join(format!("{number}.nand")).display()));
        command.arg("--listen").arg(format!("unix:{}", socket(folder, number).display()));
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert!(line.starts_with("serving at unix:"), "{line:?}");
        Server { child }
    }

    /// As kill -9 does.
    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn socket(folder: &Path, number: usize) -> PathBuf {
    folder.join(format!("{number}.sock"))
}

fn key(number: u64) -> Vec<u8> {
    format!("key {number}").into_bytes()
}

fn value(number: u64, version: u64) -> Vec<u8> {
    let len = 700 + nandscape_sim::rng::mix(number ^ version << 20) % 700;
    (0..len).map(|place| (place ^ number ^ (version * 3)) as u8).collect()
}

/// By key: the number of the last acknowledged put, and of the last that was begun.
type Model = Rc<RefCell<BTreeMap<u64, (u64, u64)>>>;

async fn puts(client: Rc<Client>, model: Model, mut rng: Rng, lane: u64, acknowledged: Rc<Cell<u64>>) {
    for version in 1.. {
        let number = lane * 1_000 + rng.below(40);
        model.borrow_mut().entry(number).or_default().1 = version;
        if client.put(&key(number), &value(number, version)).await.is_ok() {
            model.borrow_mut().entry(number).or_default().0 = version;
            acknowledged.set(acknowledged.get() + 1);
        }
        let _ = client.get(&key(number)).await;
    }
}

#[test]
fn one_of_three_processes_is_killed_under_load_and_nothing_acknowledged_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_owned();
    let mut servers: Vec<Option<Server>> = (0..3).map(|number| Some(Server::start(&path, number))).collect();
    let spec = Clients {
        servers: (0..3).map(|number| Address::Unix(socket(&path, number))).collect(),
        replicas: 3,
        order: Order::Primary,
        policy: "mitt".to_owned(),
        tuning: Tuning { deadline: Span::from_ms(1), busy_share: None, hedge: None, clients: 4 },
        load: Load { clients: 5, ..Load::default() },
        puts: false,
        epoch_us: 0,
        seed: 1,
    };
    let work = async move |Connected { sim, clients, .. }: Connected| {
        let (model, acknowledged): (Model, Rc<Cell<u64>>) = Default::default();
        for lane in 0..4 {
            let rng = Seed::new(1).nth(lane).rng();
            let client = clients[lane as usize].clone();
            sim.spawn(puts(client, model.clone(), rng, lane, acknowledged.clone()));
        }
        let reader = &clients[4];
        for victim in [1, 0, 2] {
            let more = async |count: u64| {
                let enough = acknowledged.get() + count;
                while acknowledged.get() < enough {
                    sim.sleep(Span::from_ms(1)).await;
                }
            };
            more(60).await;
            servers[victim].take().unwrap().kill();
            // Two are enough to go on.
            more(60).await;
            servers[victim] = Some(Server::start(&path, victim));
            let keys: Vec<u64> = model.borrow().keys().copied().collect();
            for number in keys {
                let known = model.borrow()[&number].0;
                let found = reader.get_latest(&key(number)).await.unwrap();
                let begun = model.borrow()[&number].1;
                let is_known = (known..=begun).any(|version| match &found {
                    Some(found) => version > 0 && found.value == value(number, version),
                    None => version == 0,
                });
                assert!(is_known, "key {number} after the death of {victim}: not of the puts {known} to {begun}");
            }
        }
        acknowledged.get()
    };
    let count = with_clients(&spec, work).unwrap();
    assert!(count >= 360, "{count}");
}

#[test]
fn wrong_usage_says_what_would_be_right() {
    let failed = |args: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_nandscape")).arg("kv").args(args).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    assert!(failed(&["sim", "--policy", "fast"]).contains("hedged-mitt"));
    assert!(failed(&["sim", "--noise", "steady:0"]).contains("1 to 1,024"));
    assert!(failed(&["sim", "--servers", "2"]).contains("as many as replicas"));
    assert!(failed(&["sim", "--set", "block.hop=soon"]).contains("a time such as"));
    assert!(failed(&["sim", "--set", "block.deadline=1ms"]).contains("--deadline sets them here"));
    assert!(failed(&["sim", "--set", "block.scheduler=cfq"]).contains("block.depth=1"));
    assert!(failed(&["sim", "--set", "block.predictor=noop-disk"]).contains("none, told and ssd are valid"));
    assert!(failed(&["serve", "--listen", "here"]).contains("HOST:PORT"));
}

#[test]
fn a_cluster_in_virtual_time_gives_the_same_figures_again() {
    let run = || {
        let args = [
            "kv",
            "sim",
            "--requests",
            "2000",
            "--records",
            "500",
            "--set",
            "capacity=1GiB",
            "--set",
            "block.scheduler=ssd",
            "--set",
            "block.depth=32",
            "--policy",
            "base,mitt",
            "--json",
        ];
        let output = Command::new(env!("CARGO_BIN_EXE_nandscape")).args(args).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let first = run();
    assert!(first.contains("\"policy\": \"no noise\"") && first.contains("\"p99_9\""), "{first}");
    assert_eq!(first, run());
}
