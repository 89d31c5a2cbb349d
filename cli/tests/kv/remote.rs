//! `nandscape memcached` over drives that other processes serve over NVMe/TCP: killed, stopped, started again, and used twice.

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread::JoinHandle;

use crate::memcached::{Client, Server};

/// The server of a drive.
pub(crate) struct Drive {
    child: Child,
    folder: tempfile::TempDir,
    pub(crate) url: String,
    /// What it prints on standard error from then on.
    notes: Option<JoinHandle<String>>,
}

impl Drive {
    /// A drive in memory.
    pub(crate) fn start(number: usize) -> Drive {
        Drive::start_in(tempfile::tempdir().unwrap(), "127.0.0.1:0", &["--seed", &number.to_string()])
    }

    /// An empty drive in memory with space for 8 GiB.
    pub(crate) fn start_large(number: usize) -> Drive {
        let args = ["--seed", &number.to_string(), "--set", "capacity=8GiB"];
        Drive::start_in(tempfile::tempdir().unwrap(), "127.0.0.1:0", &args)
    }

    /// A drive in a file.
    fn start_in_file(folder: tempfile::TempDir, address: &str, number: usize) -> Drive {
        Drive::start_in(folder, address, &["--seed", &number.to_string(), "--store", "small=file:drive.nand"])
    }

    /// A drive in a file with an FTL on each of its two channels, so that it has two namespaces.
    fn start_with_halves(folder: tempfile::TempDir, address: &str, number: usize) -> Drive {
        let parts = "ftl.parts=[{name=\"even\", channels=\"0\"}, {name=\"odd\", channels=\"1\"}]";
        let (seed, capacity) = (number.to_string(), "capacity=128MiB");
        let args = ["--seed", &seed, "--set", capacity, "--set", parts, "--store", "small=file:drive.nand"];
        Drive::start_in(folder, address, &args)
    }

    fn start_in(folder: tempfile::TempDir, address: &str, args: &[&str]) -> Drive {
        let mut command = Command::new(env!("CARGO_BIN_EXE_nandscape"));
        command.args(["serve", "--drive", "small=default", "--set", "capacity=64MiB", "--set", "lba_size=4KiB"]);
        command.args(["--set", "geometry.channels=2", "--set", "geometry.dies_per_channel=2"]);
        command.args(["--nvme-tcp", address, "--control", "c.sock"]).args(args).current_dir(folder.path());
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap());
        let mut printed = String::new();
        while !printed.contains("serving small at ") {
            assert!(lines.read_line(&mut printed).unwrap() > 0, "it does not serve: {printed}");
        }
        let url = printed.split("serving small at ").nth(1).unwrap().trim().to_owned();
        let notes = std::thread::spawn(move || {
            let mut rest = String::new();
            // It may be killed within a line.
            let _ = lines.read_to_string(&mut rest);
            rest
        });
        Drive { child, folder, url, notes: Some(notes) }
    }

    fn address(&self) -> &str {
        self.url.strip_prefix("nvme-tcp://").and_then(|rest| rest.split('/').next()).unwrap()
    }

    fn signal(&self, signal: &str) {
        let status = Command::new("kill").args([signal, &self.child.id().to_string()]).status().unwrap();
        assert!(status.success(), "kill {signal}");
    }

    /// Kills it; its folder remains.
    pub(crate) fn kill(mut self) -> tempfile::TempDir {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        drop(self.notes.take().map(JoinHandle::join));
        std::mem::replace(&mut self.folder, tempfile::tempdir().unwrap())
    }

    /// What `nandscape ctl` prints of it.
    fn ctl(&self, words: &[&str]) -> String {
        let mut command = Command::new(env!("CARGO_BIN_EXE_nandscape"));
        let output = command.arg("ctl").args(words).current_dir(self.folder.path()).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// Makes its control socket reachable at a path.
    pub(crate) fn link_control(&self, path: &Path) {
        std::os::unix::fs::symlink(self.folder.path().join("c.sock"), path).unwrap();
    }

    /// A counter of it.
    fn counter(&self, name: &str) -> f64 {
        let figures: serde_json::Value = serde_json::from_str(&self.ctl(&["statistics", "c.sock", "--json"])).unwrap();
        figures.pointer(&format!("/drives/0/counters/{name}")).and_then(serde_json::Value::as_f64).unwrap()
    }
}

impl Drop for Drive {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// `nandscape memcached` over drives of these URLs, with little memory: most gets read at drives.
pub(crate) fn over(folder: &Path, urls: &[&str], args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nandscape"));
    let listen = format!("unix:{}", folder.join("m.sock").display());
    command.args(["memcached", "--listen", &listen, "--memory", "1MiB"]).args(args);
    for url in urls {
        command.args(["--drive", url]);
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Acknowledgement by all drives.
pub(crate) const ALL: [&str; 2] = ["--ack", "all"];

/// A server over drives with a patience in seconds, and how many items it has found.
pub(crate) fn start(folder: &Path, drives: &[&Drive], patience: u32, args: &[&str]) -> (Server, usize) {
    let urls: Vec<String> = drives.iter().map(|drive| format!("{}?patience={patience}", drive.url)).collect();
    let urls: Vec<&str> = urls.iter().map(String::as_str).collect();
    let (server, line) = Server::start_by(&mut over(folder, &urls, args));
    let found = line.split(": ").nth(1).and_then(|rest| rest.split(' ').next()).unwrap();
    (server, found.parse().unwrap())
}

/// The end of a server in order, and what it has noted.
pub(crate) fn end(mut server: Server) -> String {
    let mut notes = server.notes();
    server.end("-TERM");
    let mut noted = String::new();
    notes.read_to_string(&mut noted).unwrap();
    noted
}

fn value(number: usize, version: usize) -> String {
    format!("{number} of {version};").repeat(200)
}

pub(crate) fn set(client: &mut Client, numbers: std::ops::Range<usize>, version: usize) {
    for number in numbers {
        let value = value(number, version);
        let command = format!("set key{number} {version} 0 {}\r\n{value}\r\n", value.len());
        assert_eq!(client.ask(&command, "STORED"), "STORED\r\n");
    }
}

/// Checks that items have their values.
pub(crate) fn check(client: &mut Client, numbers: std::ops::Range<usize>, version: usize) {
    for number in numbers {
        let value = value(number, version);
        let there = format!("VALUE key{number} {version} {}\r\n{value}\r\nEND\r\n", value.len());
        assert_eq!(client.ask(&format!("get key{number}\r\n"), "END"), there);
    }
}

pub(crate) fn statistic(client: &mut Client, name: &str) -> u64 {
    let stats = client.ask("stats\r\n", "END");
    let found = stats.lines().find_map(|line| line.strip_prefix(&format!("STAT {name} ")));
    found.and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("{name}: {stats}"))
}

/// Waits until as many drives are lost.
pub(crate) fn until_lost(client: &mut Client, count: u64) {
    while statistic(client, "engine_lost_drives") != count {}
}

#[test]
fn remote_drives_have_the_items_and_collect_at_the_engines_order() {
    let (folder, drives) = (tempfile::tempdir().unwrap(), [Drive::start(1), Drive::start(2)]);
    let both: Vec<&Drive> = drives.iter().collect();
    let (server, found) = start(folder.path(), &both, 10, &[]);
    assert_eq!(found, 0);
    let mut client = Client::connect(folder.path());
    // The log is written more than once, until the drives have to collect.
    let collects = |drive: &Drive| drive.counter("gc_blocks_total") > 0.0;
    let mut last = 0;
    set(&mut client, 0..1_500, last);
    while !drives.iter().all(collects) {
        last += 1;
        assert!(last < 200, "nothing is collected");
        set(&mut client, 0..1_500, last);
    }
    check(&mut client, 0..1_500, last);
    assert!(statistic(&mut client, "engine_drive_hits") > 500);
    for drive in &drives {
        let status = drive.ctl(&["gc", "status", "c.sock"]);
        let row = |name: &str| {
            let line = status.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("{status}"));
            line[name.len()..].trim().to_owned()
        };
        let blocks: u32 =
            row("erase block").split(", ").nth(1).and_then(|rest| rest.split(' ').next()).unwrap().parse().unwrap();
        // What the policy sets, and what it leaves behind.
        assert_eq!(row("low watermark"), (blocks / 64).max(1).to_string(), "{status}");
        assert_eq!(row("ready for read"), "yes", "{status}");
    }
    // One server at a time has the drives.
    let urls: Vec<&str> = drives.iter().map(|drive| drive.url.as_str()).collect();
    let second = tempfile::tempdir().unwrap();
    refused(over(second.path(), &urls, &[]).output(), "drive d0 belongs to a memcached server already");
    end(server);
    for (version, policy) in ["epochs", "mixed"].into_iter().enumerate() {
        let (server, found) = start(folder.path(), &both, 10, &[&ALL[..], &["--policy", policy]].concat());
        assert_eq!(found, 1_500, "{policy}");
        let mut client = Client::connect(folder.path());
        check(&mut client, 100..1_500, last);
        set(&mut client, 0..100, version);
        server.end("-KILL");
    }
    let (server, _) = start(folder.path(), &both, 10, &[]);
    check(&mut Client::connect(folder.path()), 0..100, 1);
    end(server);
    let more = ["--policy", "predictable_latency"];
    refused(over(folder.path(), &urls, &more).output(), "no Predictable Latency Mode");
    // The drives are reserved for it.
    let mut other = Command::new(env!("CARGO_BIN_EXE_nandscape"));
    other.args(["bench", "--to", urls[0], "--rw", "randwrite", "--io-count", "1"]);
    let printed = String::from_utf8_lossy(&other.output().unwrap().stdout).into_owned();
    assert!(printed.contains("Reservation Conflict"), "{printed}");
}

pub(crate) fn refused(output: std::io::Result<Output>, words: &str) {
    refused_as(output, 2, words);
}

fn refused_as(output: std::io::Result<Output>, code: i32, words: &str) {
    let output = output.unwrap();
    let printed = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{printed}");
    assert!(printed.contains(words), "{words}: {printed}");
}

#[test]
fn gets_are_answered_when_the_server_of_a_drive_is_killed_or_stops() {
    let mirrored: [&[&str]; 2] = [&["--policy", "gc_control"], &["--policy", "mixed"]];
    let parity: &[&str] = &["--placement", "parity"];
    for (signal, more, count) in
        [("-KILL", mirrored[0], 2), ("-KILL", mirrored[1], 2), ("-STOP", mirrored[0], 2), ("-KILL", parity, 3)]
    {
        let (folder, drives) = (tempfile::tempdir().unwrap(), (0..count).map(Drive::start).collect::<Vec<_>>());
        let all: Vec<&Drive> = drives.iter().collect();
        let (server, _) = start(folder.path(), &all, 2, &[&ALL[..], more].concat());
        let mut client = Client::connect(folder.path());
        set(&mut client, 0..1_000, 0);
        drives[1].signal(signal);
        check(&mut client, 0..1_000, 0);
        set(&mut client, 500..1_000, 1);
        until_lost(&mut client, 1);
        check(&mut client, 0..500, 0);
        check(&mut client, 500..1_000, 1);
        let noted = end(server);
        for wanted in ["drive d1: ", "it is out of use, and ", &format!("({} is out of reach: ", drives[1].url)] {
            assert!(noted.contains(wanted), "{signal} {more:?}: {wanted}: {noted}");
        }
    }
}

#[test]
fn features_of_nvme_pass_to_remote_drives() {
    for (policy, key) in [("fdp", "ftl.fdp.handles=2"), ("predictable_latency", "controller.predictable_latency=true")]
    {
        let drive =
            |seed: &str| Drive::start_in(tempfile::tempdir().unwrap(), "127.0.0.1:0", &["--seed", seed, "--set", key]);
        let (folder, drives) = (tempfile::tempdir().unwrap(), ["1", "2"].map(drive));
        let both: Vec<&Drive> = drives.iter().collect();
        let (server, _) = start(folder.path(), &both, 10, &["--policy", policy]);
        let mut client = Client::connect(folder.path());
        set(&mut client, 0..1_500, 0);
        set(&mut client, 0..1_500, 1);
        check(&mut client, 0..1_500, 1);
        assert_eq!(statistic(&mut client, "engine_lost_drives"), 0);
        end(server);
        assert_eq!(start(folder.path(), &both, 10, &["--policy", "epochs"]).1, 1_500, "{policy}");
    }
}

#[test]
fn a_drive_whose_server_starts_again_is_used_if_it_kept_its_data() {
    let memory = Drive::start(1);
    let file = Drive::start_in_file(tempfile::tempdir().unwrap(), "127.0.0.1:0", 2);
    let folder = tempfile::tempdir().unwrap();
    let (server, _) = start(folder.path(), &[&memory, &file], 60, &ALL);
    let mut client = Client::connect(folder.path());
    set(&mut client, 0..1_000, 0);
    let address = file.address().to_owned();
    let kept = file.kill();
    check(&mut client, 0..500, 0);
    let file = Drive::start_in_file(kept, &address, 2);
    set(&mut client, 0..500, 1);
    assert_eq!(statistic(&mut client, "engine_lost_drives"), 0);
    check(&mut client, 0..500, 1);
    check(&mut client, 500..1_000, 0);
    // It has lost its data: it is out of use, although there would be more patience.
    let address = memory.address().to_owned();
    drop(memory.kill());
    let memory = Drive::start_in(tempfile::tempdir().unwrap(), &address, &["--seed", "1"]);
    set(&mut client, 0..500, 2);
    until_lost(&mut client, 1);
    check(&mut client, 0..500, 2);
    check(&mut client, 500..1_000, 0);
    let noted = end(server);
    assert!(noted.contains("is not used any more: the last writes of the store are missing"), "{noted}");
    // It is rebuilt at the next start.
    let (server, found) = start(folder.path(), &[&memory, &file], 60, &[]);
    assert_eq!(found, 1_000);
    let mut client = Client::connect(folder.path());
    until_lost(&mut client, 0);
    drop(file.kill());
    check(&mut client, 0..500, 2);
    server.end("-KILL");
}

#[test]
fn a_drive_that_is_out_of_reach_at_the_start_is_missing_and_rebuilt_later() {
    let drives = [1, 2].map(|number| Drive::start_in_file(tempfile::tempdir().unwrap(), "127.0.0.1:0", number));
    let folder = tempfile::tempdir().unwrap();
    let [first, second] = drives;
    let (server, _) = start(folder.path(), &[&first, &second], 5, &[]);
    set(&mut Client::connect(folder.path()), 0..500, 0);
    end(server);
    let (address, url) = (second.address().to_owned(), second.url.clone());
    let kept = second.kill();
    let mut command = over(folder.path(), &[&first.url, &url], &[]);
    let (server, line) = Server::start_by(&mut command);
    assert!(line.contains(": 500 items found"), "{line}");
    let mut client = Client::connect(folder.path());
    assert_eq!(statistic(&mut client, "engine_lost_drives"), 1);
    set(&mut client, 0..250, 1);
    let noted = end(server);
    for wanted in
        ["drive d1 is out of reach: ", "Connection refused", "drive d1 is missing: drive d0 serves its items", &url]
    {
        assert!(noted.contains(wanted), "{wanted}: {noted}");
    }
    let second = Drive::start_in_file(kept, &address, 2);
    let (server, _) = start(folder.path(), &[&first, &second], 5, &[]);
    let mut client = Client::connect(folder.path());
    until_lost(&mut client, 0);
    drop(first.kill());
    check(&mut client, 0..250, 1);
    check(&mut client, 250..500, 0);
    drop(client);
    server.end("-KILL");
    // Without any drive, and with a new one that misses its fellow.
    refused_as(
        over(folder.path(), &["nvme-tcp://127.0.0.1:1/nqn.x", "nvme-tcp://127.0.0.1:1/nqn.y"], &[]).output(),
        1,
        "no drive can be reached",
    );
    let alone = Drive::start(3);
    let incomplete = over(folder.path(), &[&alone.url, "nvme-tcp://127.0.0.1:1/nqn.y"], &[]).output();
    refused(incomplete, "drive d1 is missing, and the others have no store");
}

#[test]
fn a_server_that_stood_still_while_another_one_took_its_drives_writes_nothing_more() {
    let (folder, drives) = (tempfile::tempdir().unwrap(), [Drive::start(1), Drive::start(2)]);
    let both: Vec<&Drive> = drives.iter().collect();
    let (mut first, _) = start(folder.path(), &both, 30, &ALL);
    let mut late = Client::connect(folder.path());
    set(&mut late, 0..100, 0);
    first.signal("-STOP");
    // The drives end its connections once it has not answered for some seconds.
    let other = tempfile::tempdir().unwrap();
    let urls: Vec<&str> = drives.iter().map(|drive| drive.url.as_str()).collect();
    let (second, line) = loop {
        let mut child = over(other.path(), &urls, &ALL).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let second = Server::of(child);
        if !line.is_empty() {
            break (second, line);
        }
    };
    assert!(line.contains(": 100 items found"), "{line}");
    let mut client = Client::connect(other.path());
    set(&mut client, 0..100, 1);
    first.signal("-CONT");
    let mut noted = String::new();
    late.send(b"set key0 0 0 1\r\nx\r\n");
    first.notes().read_to_string(&mut noted).unwrap();
    assert!(noted.contains("another memcached server has opened its store since"), "{noted}");
    assert!(!late.line().starts_with("STORED"), "{noted}");
    set(&mut client, 50..100, 2);
    check(&mut client, 0..50, 1);
    check(&mut client, 50..100, 2);
    end(second);
}

#[test]
fn a_remote_drive_with_other_data_is_left_as_it_is() {
    let (folder, drives) = (tempfile::tempdir().unwrap(), [Drive::start(1), Drive::start(2)]);
    let urls: Vec<&str> = drives.iter().map(|drive| drive.url.as_str()).collect();
    let mut other = Command::new(env!("CARGO_BIN_EXE_nandscape"));
    // A store of another kind, not at the drive's beginning alone.
    other.args(["paper", "lsm", "--to", urls[1], "--keys", "2000", "--form", "generic"]);
    let output = other.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    refused(over(folder.path(), &urls, &[]).output(), "has data, and the drive belongs to no store");
    let both: Vec<&Drive> = drives.iter().collect();
    let (server, _) = start(folder.path(), &both, 5, &["--overwrite"]);
    set(&mut Client::connect(folder.path()), 0..100, 0);
    end(server);
    let (server, found) = start(folder.path(), &both, 5, &[]);
    assert_eq!(found, 100);
    end(server);
    let (server, found) = start(folder.path(), &both, 5, &["--overwrite"]);
    assert_eq!(found, 0);
    end(server);
}

/// Each namespace is a drive with its own connection. The connections of this server are no other server, also when they are made again.
#[test]
fn each_ftl_of_a_remote_drive_is_a_drive_of_the_store() {
    let drive = |number| Drive::start_with_halves(tempfile::tempdir().unwrap(), "127.0.0.1:0", number);
    let (folder, first, second) = (tempfile::tempdir().unwrap(), drive(1), drive(2));
    let at = |drive: &Drive, namespace: u32| format!("{}?namespace={namespace}&patience=60", drive.url);
    let urls = [at(&first, 1), at(&second, 1), at(&first, 2), at(&second, 2)];
    let urls: Vec<&str> = urls.iter().map(String::as_str).collect();
    let (server, _) = Server::start_by(&mut over(folder.path(), &urls, &ALL));
    let mut client = Client::connect(folder.path());
    set(&mut client, 0..400, 0);
    let other = tempfile::tempdir().unwrap();
    refused(over(other.path(), &urls, &[]).output(), "drive d0 belongs to a memcached server already");
    // Both connections to a drive are made again.
    let address = second.address().to_owned();
    let second = Drive::start_with_halves(second.kill(), &address, 2);
    set(&mut client, 0..200, 1);
    check(&mut client, 0..200, 1);
    check(&mut client, 200..400, 0);
    assert_eq!(statistic(&mut client, "engine_lost_drives"), 0);
    drop(client);
    end(server);
    // The loss of a drive is that of one copy.
    let urls: Vec<String> = urls.iter().map(|url| url.replace("=60", "=2")).collect();
    let urls: Vec<&str> = urls.iter().map(String::as_str).collect();
    let (server, line) = Server::start_by(&mut over(folder.path(), &urls, &ALL));
    assert!(line.contains(": 400 items found"), "{line}");
    let mut client = Client::connect(folder.path());
    drop(second.kill());
    set(&mut client, 200..300, 1);
    until_lost(&mut client, 2);
    check(&mut client, 0..300, 1);
    check(&mut client, 300..400, 0);
    server.end("-KILL");
}

#[test]
fn namespaces_of_a_drive_are_named_and_mirrors_are_of_two_drives() {
    let (folder, drive) =
        (tempfile::tempdir().unwrap(), Drive::start_with_halves(tempfile::tempdir().unwrap(), "127.0.0.1:0", 1));
    let wrong = |urls: &[&str], args: &[&str], words| refused(over(folder.path(), urls, args).output(), words);
    let [whole, one, two] = ["", "?namespace=1", "?namespace=2"].map(|option| format!("{}{option}", drive.url));
    let [whole, one, two] = [&whole, &one, &two].map(|url| url.as_str());
    let far = "nvme-tcp://127.0.0.1:1/nqn.x";
    wrong(&[whole, far], &[], " has 2 namespaces; ?namespace=N behind the URL is valid, with N of 1, 2");
    let [near, farther] = ["nvme-tcp://127.0.0.1:1/nqn.x?namespace=2", "nvme-tcp://127.0.0.1:2/nqn.x"];
    let order = "an order in which d0 and d1, d2 and d3 and so on are of two drives is valid";
    wrong(&[one, two, far, near], &[], order);
    wrong(&[one, far, two, farther], &["--placement", "parity"], "one namespace of each drive is valid");
    let (server, _) = Server::start_by(&mut over(folder.path(), &[one, two], &[]));
    set(&mut Client::connect(folder.path()), 0..10, 0);
    assert!(end(server).contains("all namespaces are of one drive: the loss of the drive is the loss of all items"));
}

/// Two URLs may name one namespace: the server detects that once it is connected.
#[test]
fn a_namespace_is_one_drive_whatever_url_names_it() {
    let (folder, drives) = (tempfile::tempdir().unwrap(), [Drive::start(1), Drive::start(2)]);
    let again = drives.each_ref().map(|drive| format!("{}?namespace=1", drive.url));
    let urls = [&drives[0].url, &drives[1].url, &again[0], &again[1]].map(String::as_str);
    let twice = "drive d2: it is the namespace of drive d0; each namespace once is valid";
    refused(over(folder.path(), &urls, &[]).output(), twice);
    // Nothing was written, and no reservation is left.
    let (server, found) = start(folder.path(), &[&drives[0], &drives[1]], 5, &[]);
    assert_eq!(found, 0);
    end(server);
}

#[test]
fn what_remote_drives_do_not_take_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let (one, two) = ("nvme-tcp://127.0.0.1:1/nqn.x", "nvme-tcp://127.0.0.1:2/nqn.x");
    let wrong = |urls: &[&str], args: &[&str], words| refused(over(folder.path(), urls, args).output(), words);
    wrong(&[one, two], &["--store", "s"], "--store: the drives are remote, and the server of each keeps its data");
    wrong(&[one, two], &["--set", "capacity=1GiB"], "--set: the drives are remote");
    wrong(
        &[one, two],
        &["--rebuild"],
        "--rebuild: the drives are remote, and a lost or empty drive is rebuilt without it",
    );
    wrong(&[one, two], &["--policy", "zoned"], "remote drives with zones are not supported");
    wrong(&[one, two], &["--drives", "4"], "--drives 4: 2 remote drives are named; 2 is valid");
    wrong(&[one], &[], "one --drive is given; 2, 4, 6 and so on are valid");
    wrong(&[one, two], &["--placement", "parity"], "2 --drive are given; 3 to 16 are valid with --placement parity");
    wrong(&[one, "default"], &[], "--drive default: profiles and remote drives cannot be mixed");
    wrong(&[one, &format!("{one}?patience=7")], &[], "it is named twice");
    wrong(&[one, "nvme-tcp://127.0.0.1/nqn.x"], &[], "host and port are missing");
    wrong(&["default", "default"], &[], "one profile, or the URL of each drive, is valid");
    wrong(&[], &["--overwrite"], "--overwrite: no drive is remote");
}
