//! Three servers of the key-value store in separate processes. One is killed under load, and restarts. Others have hostile
//! clients. And a server of memcached's protocols.
#![cfg(target_os = "linux")]

mod failures;
mod hostile;
mod loads;
mod memcached;
mod remote;
mod replace;
mod side_by_side;
mod suite;
mod traffic;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::rc::Rc;

use nandscape_apps_kv_engine::Client;
use nandscape_apps_kv_engine::client::Order;
use nandscape_apps_kv_engine::policy::Tuning;
use nandscape_apps_kv_run::Load;
use nandscape_apps_kv_run::live::{Clients, Connected, with_clients};
use nandscape_sim::{Rng, Seed, Span};
use nandscape_transport_reactor::socket::Address;

/// A server process, ended when it is dropped.
struct Server {
    child: Child,
}

/// A small drive.
const SMALL: [&str; 6] =
    ["--set", "capacity=256MiB", "--set", "geometry.channels=2", "--set", "geometry.dies_per_channel=2"];

impl Server {
    fn start(folder: &Path, number: usize) -> Server {
        let store = format!("file:{}", folder.join(format!("{number}.nand")).display());
        let listen = format!("unix:{}", socket(folder, number).display());
        Server::with(&["--store", &store, "--listen", &listen]).0
    }

    /// A server, and where it is.
    fn with(args: &[&str]) -> (Server, Address) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_nandscape"));
        command.args(["kv", "serve", "--drive", "default"]).args(SMALL).args(args);
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim_end().strip_prefix("serving at ").unwrap_or_else(|| panic!("{line:?}"));
        (Server { child }, address.parse().unwrap())
    }

    /// Stops its process, or lets it continue.
    fn signal(&self, signal: &str) {
        let status = Command::new("kill").args([signal, &self.child.id().to_string()]).status().unwrap();
        assert!(status.success(), "kill {signal}");
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
            // Two are enough to continue.
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

/// Clients with `policy` that ask the first server first.
fn clients_of(servers: Vec<Address>, policy: &str) -> Clients {
    Clients {
        servers,
        replicas: 3,
        order: Order::Server(0),
        policy: policy.to_owned(),
        tuning: Tuning { deadline: Span::from_ms(1), busy_share: None, hedge: None, clients: 1 },
        load: Load::default(),
        puts: false,
        epoch_us: 0,
        seed: 1,
    }
}

#[test]
fn over_tcp_values_are_put_and_found_behind_block_layers_that_predict() {
    let layer = ["--set", "block.predictor=ssd", "--listen", "127.0.0.1:0"];
    let noisy = ["--set", "block.predictor=ssd", "--listen", "127.0.0.1:0", "--noise", "steady:4"];
    let (servers, addresses): (Vec<_>, Vec<_>) = [&noisy[..], &layer, &layer].into_iter().map(Server::with).unzip();
    assert!(addresses.iter().all(|address| address.to_string().starts_with("127.0.0.1:")), "{addresses:?}");
    let work = async |Connected { clients, .. }: Connected| {
        let client = &clients[0];
        for number in 0..50 {
            client.put(&key(number), &value(number, 1)).await.unwrap();
        }
        for number in 0..50 {
            let found = client.get(&key(number)).await.unwrap().expect("it was put");
            assert!(found.value == value(number, 1), "key {number}");
        }
        assert_eq!(client.get(&key(1_000)).await.unwrap(), None);
    };
    with_clients(&clients_of(addresses, "mitt"), work).unwrap();
    drop(servers);
}

#[test]
fn a_process_that_hangs_is_passed_by_and_has_its_values_when_it_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_owned();
    let servers: Vec<Server> = (0..3).map(|number| Server::start(&path, number)).collect();
    let addresses = (0..3).map(|number| Address::Unix(socket(&path, number))).collect();
    let work = async move |Connected { clients, .. }: Connected| {
        let client = &clients[0];
        for number in 0..10 {
            client.put(&key(number), &value(number, 1)).await.unwrap();
        }
        servers[0].signal("-STOP");
        for number in 0..10 {
            let found = client.get(&key(number)).await.unwrap().expect("the others have it");
            assert!(found.value == value(number, 1), "key {number}");
        }
        for number in 0..5 {
            client.put(&key(number), &value(number, 2)).await.unwrap();
        }
        servers[0].signal("-CONT");
        for number in 0..10 {
            let version = if number < 5 { 2 } else { 1 };
            let found = client.get_latest(&key(number)).await.unwrap().expect("two of three have it");
            assert!(found.value == value(number, version), "key {number}");
        }
    };
    with_clients(&clients_of(addresses, "base"), work).unwrap();
}

#[test]
fn the_demo_has_three_rows_and_no_get_fails() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nandscape"));
    command.args(["kv", "demo", "--requests", "200", "--depth", "2", "--json"]).args(SMALL);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let told: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let rows = told["runs"].as_array().unwrap();
    let names: Vec<&str> = rows.iter().map(|row| row["policy"].as_str().unwrap()).collect();
    assert_eq!(names, ["no neighbour", "Base", "Mitt"]);
    for row in rows {
        assert_eq!((row["failed"].as_u64(), row["get_latency_us"]["count"].as_u64()), (Some(0), Some(200)), "{row}");
    }
}

#[test]
fn the_demo_says_each_note_once() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nandscape"));
    // Too small for all of its dies, which is a note of each server.
    command.args(["kv", "demo", "--requests", "20", "--depth", "1", "--set", "capacity=256MiB"]);
    let output = command.output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && said.starts_with("note: "), "{said}");
    let lines: Vec<&str> = said.lines().collect();
    let once: std::collections::BTreeSet<&str> = lines.iter().copied().collect();
    assert_eq!(lines.len(), once.len(), "{said}");
}

#[test]
fn requests_of_several_gets_and_deadlines_that_follow_rejections_run_on_live_servers() {
    let layer = ["--set", "block.predictor=ssd", "--listen", "127.0.0.1:0"];
    let (servers, addresses): (Vec<_>, Vec<_>) = (0..3).map(|_| Server::with(&layer)).unzip();
    let bench = |more: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_nandscape"));
        command.args(["kv", "bench", "--records", "200", "--requests", "400", "--clients", "2", "--scale", "5"]);
        for address in &addresses {
            command.args(["--to", &address.to_string()]);
        }
        let output = command.args(["--policy", "mitt"]).args(more).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let run = |more: &[&str]| {
        let told: serde_json::Value = serde_json::from_str(&bench(&[&["--json"], more].concat())).unwrap();
        told["runs"][0].clone()
    };
    let number = |run: &serde_json::Value, key: &str| run[key].as_u64().unwrap_or_else(|| panic!("{key}: {run}"));
    // Flash takes longer than that, so that a deadline that stays rejects all; one that follows rises.
    let stays = run(&["--deadline", "20us"]);
    assert_eq!(number(&stays["request_latency_us"], "count"), 400, "{stays}");
    assert_eq!(number(&stays["get_latency_us"], "count"), 2_000, "{stays}");
    assert!(number(&stays, "failed") == 0 && number(&stays, "tries") > 2_000, "{stays}");
    assert_eq!(number(&stays, "deadline_us"), 20, "{stays}");
    let rises = run(&["--loaded", "--deadline", "20us", "--busy-share", "50%"]);
    assert!(number(&rises, "deadline_us") > 20 && number(&rises, "rejected") > 0, "{rises}");
    // Nothing takes a second of the drive's time: it falls.
    let text = bench(&["--loaded", "--deadline", "1s", "--busy-share", "50%"]);
    let told = text.lines().last().and_then(|line| line.strip_prefix("mitt: a deadline of "));
    let us = told.and_then(|rest| rest.split(' ').next()).map(|us| us.replace(',', "")).and_then(|us| us.parse().ok());
    assert!(us.is_some_and(|us: u64| us < 1_000_000), "{text}");
    drop(servers);
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
    let bench = |flag, value| failed(&["bench", "--to", "unix:none.sock", flag, value]);
    assert!(bench("--scale", "0").contains("1 to 1000 are valid"));
    assert!(bench("--busy-share", "100%").contains("a share such as 5% is valid"));
    assert!(failed(&["serve", "--listen", "here"]).contains("HOST:PORT"));
    assert!(failed(&["serve", "--listen", "0.0.0.0:0"]).contains("--allow-remote"));
    let serve = |set: &str| failed(&["serve", "--drive", "default", "--listen", "unix:none.sock", "--set", set]);
    assert!(serve("block.deadline=1ms").contains("--deadline sets them here"));
    assert!(serve("block.scheduler=ssd").contains("block.depth=1"));
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
