//! A lost drive of `nandscape memcached` is replaced with `nandscape ctl` while clients are served.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::memcached::{Client, Server};
use crate::remote::{ALL, Drive, check, end, over, refused, set, start, statistic, until_lost};

/// The order to replace a drive.
fn order(folder: &Path, drive: &str, url: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nandscape"));
    command.args(["ctl", "memcached", "replace"]).arg(folder.join("m.control")).args([drive, url, "--timeout", "60s"]);
    command
}

/// What `nandscape ctl memcached replace` prints.
pub(crate) fn replace(folder: &Path, drive: &str, url: &str) -> std::io::Result<Output> {
    order(folder, drive, url).output()
}

/// An order to the server's control socket.
fn ctl(folder: &Path, words: &[&str]) -> std::io::Result<Output> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nandscape"));
    let (order, given) = words.split_at(words.len().min(if words[0] == "fault" { 2 } else { 1 }));
    command.arg("ctl").args(order).arg(folder.join("m.control")).args(given).output()
}

/// The events of a dashboard.
pub(crate) struct Events(BufReader<UnixStream>);

impl Events {
    pub(crate) fn open(socket: &Path) -> Events {
        let mut stream = UnixStream::connect(socket).unwrap();
        stream.set_read_timeout(Some(Duration::from_mins(1))).unwrap();
        stream.write_all(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
        Events(BufReader::new(stream))
    }

    /// The next event, and its name.
    fn next(&mut self) -> (String, Value) {
        let mut name = String::new();
        loop {
            let mut line = String::new();
            assert!(self.0.read_line(&mut line).unwrap() > 0, "the stream has ended");
            if let Some(event) = line.trim_end().strip_prefix("event: ") {
                name = event.to_owned();
            } else if let Some(data) = line.trim_end().strip_prefix("data: ") {
                return (name, serde_json::from_str(data).unwrap());
            }
        }
    }

    /// The next event of a name, which comes within a minute.
    pub(crate) fn until(&mut self, name: &str) -> Value {
        // Frames come four times a second.
        let mut others = 0..300;
        loop {
            let (found, data) = self.next();
            if found == name {
                return data;
            }
            assert!(others.next().is_some(), "no {name}, and {data}");
        }
    }
}

#[test]
fn a_lost_remote_drive_is_replaced_while_clients_are_served() {
    for more in [&["--policy", "gc_control"][..], &["--policy", "mixed"], &["--placement", "parity"]] {
        let count = if more[0] == "--placement" { 3 } else { 2 };
        let (folder, mut drives) = (tempfile::tempdir().unwrap(), (0..count).map(Drive::start).collect::<Vec<_>>());
        let control = folder.path().join("m.control");
        let control = ["--control", control.to_str().unwrap()];
        let (server, _) =
            start(folder.path(), &drives.iter().collect::<Vec<_>>(), 2, &[&ALL[..], more, &control].concat());
        let mut client = Client::connect(folder.path());
        set(&mut client, 0..1_000, 0);
        let new = Drive::start(9);
        refused(
            replace(folder.path(), "d1", &new.url),
            "drive d1 is in use; a drive that is missing, has failed or takes no writes is valid",
        );
        refused(replace(folder.path(), "d7", &new.url), "there is no drive \"d7\"");
        drop(drives.remove(1).kill());
        // The server is idle: the end of the connection is noticed. A slow machine sees only the loss that follows.
        while ["engine_unreachable_drives", "engine_lost_drives"].iter().all(|name| statistic(&mut client, name) != 1) {
        }
        until_lost(&mut client, 1);
        assert_eq!(statistic(&mut client, "engine_unreachable_drives"), 0);
        let listed = ctl(folder.path(), &["drives"]).unwrap();
        let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
        let state = |name: &str| {
            listed.lines().map(str::trim_start).find(|line| line.starts_with(name)).unwrap_or_default().to_owned()
        };
        assert!(state("d1").ends_with("lost") && state("d0").ends_with("takes writes"), "{listed}");
        let listed: Value = serde_json::from_slice(&ctl(folder.path(), &["drives", "--json"]).unwrap().stdout).unwrap();
        assert_eq!((&listed["drives"][1], &listed["states"]["d1"]), (&"d1".into(), &"lost".into()), "{listed}");
        let of_process = "new is for drives in files or in memory, and these are remote";
        refused(replace(folder.path(), "d1", "new"), of_process);
        set(&mut client, 0..100, 1);
        refused(replace(folder.path(), "d1", "nvme-tcp://127.0.0.1:1/nqn.x"), "Connection refused");
        refused(replace(folder.path(), "d1", "d1.nand"), "nvme-tcp://HOST:PORT/NQN is valid");
        refused(replace(folder.path(), "d1", &drives[0].url), "is drive d0; another drive is valid");
        let done = replace(folder.path(), "d1", &new.url).unwrap();
        let printed = String::from_utf8_lossy(&done.stdout);
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        assert_eq!(printed, format!("drive d1 is {} now, and is being rebuilt\n", new.url));
        let mut version = 2;
        while statistic(&mut client, "engine_lost_drives") > 0 {
            check(&mut client, 500..510, 0);
            set(&mut client, 100..110, version);
            version += 1;
        }
        assert_eq!(statistic(&mut client, "engine_rebuild_bytes_left"), 0);
        set(&mut client, 110..200, 1);
        // The drive that it was made from, or one of them.
        drop(drives.remove(0).kill());
        check(&mut client, 0..100, 1);
        check(&mut client, 110..200, 1);
        check(&mut client, 200..1_000, 0);
        set(&mut client, 200..300, 1);
        until_lost(&mut client, 1);
        let noted = end(server);
        let closed = " is not used any more: another drive takes its place";
        for wanted in
            ["drive d1 is replaced, and is being rebuilt from ", "drive d1 was rebuilt from ", &new.url, closed]
        {
            assert!(noted.contains(wanted), "{more:?}: {wanted}: {noted}");
        }
        let gone = "nvme-tcp://127.0.0.1:1/nqn.x";
        let urls: Vec<&str> = [gone, &new.url].into_iter().chain(drives.iter().map(|drive| &*drive.url)).collect();
        let output = Server::start_by(&mut over(folder.path(), &urls, more));
        assert!(output.1.contains(": 1000 items found"), "{}", output.1);
        check(&mut Client::connect(folder.path()), 200..300, 1);
        output.0.end("-KILL");
    }
}

/// The connections of replaced drives are closed, and so is all that served them. A drive of the start keeps the three descriptors by which the
/// loop knows it. A lost drive is given up before its rebuild begins; then only the thread of the last attempt to connect to it holds others, until
/// it ends.
#[test]
fn replaced_drives_leave_no_descriptors() {
    let (folder, mut drives) = (tempfile::tempdir().unwrap(), [1, 2].map(Drive::start).into_iter().collect::<Vec<_>>());
    let control = folder.path().join("m.control");
    let args = [&ALL[..], &["--policy", "mixed", "--control", control.to_str().unwrap()]].concat();
    let (server, _) = start(folder.path(), &drives.iter().collect::<Vec<_>>(), 1, &args);
    let mut client = Client::connect(folder.path());
    set(&mut client, 0..50, 0);
    let before = server.descriptors();
    let mut most = before + 3;
    for round in 0..5 {
        drop(drives.remove(1).kill());
        until_lost(&mut client, 1);
        drives.push(Drive::start(10 + round));
        let done = replace(folder.path(), "d1", &drives[1].url).unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        until_lost(&mut client, 0);
        server.until_no_thread("nvme-tcp connect");
        let now = server.descriptors();
        assert!((before..=most).contains(&now), "round {round}: {now} descriptors are open, {before} were before");
        most = now;
    }
    check(&mut client, 0..50, 0);
    end(server);
}

/// The look at a large empty drive takes long. A second order does not join it, and the server does not wait for its end.
#[test]
fn a_server_ends_during_a_replacement() {
    let (folder, mut drives) = (tempfile::tempdir().unwrap(), [1, 2].map(Drive::start).into_iter().collect::<Vec<_>>());
    let control = folder.path().join("m.control");
    let args = [&ALL[..], &["--control", control.to_str().unwrap()]].concat();
    let (server, _) = start(folder.path(), &drives.iter().collect::<Vec<_>>(), 2, &args);
    let mut client = Client::connect(folder.path());
    set(&mut client, 0..100, 0);
    drop(drives.remove(1).kill());
    set(&mut client, 0..100, 1);
    until_lost(&mut client, 1);
    let new = Drive::start_large(9);
    let begin = || {
        let mut order = order(folder.path(), "d1", &new.url);
        order.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    // Whichever comes later is rejected while the other one looks at the drive.
    let mut orders = vec![begin(), begin()];
    let ended = loop {
        match orders.iter_mut().position(|order| order.try_wait().unwrap().is_some()) {
            Some(ended) => break orders.remove(ended),
            None => std::thread::yield_now(),
        }
    };
    refused(ended.wait_with_output(), &format!("drive d1 is being replaced with {} already", new.url));
    let fault = ctl(folder.path(), &["fault", "add", "slow read by=1us", "--drive", "d1"]);
    refused(fault, &format!("drive d1 is being replaced with {}; a drive in use is valid", new.url));
    check(&mut client, 0..100, 1);
    drop(client);
    let noted = end(server);
    assert!(!noted.contains("drive d1 is replaced"), "{noted}");
    assert!(!orders.remove(0).wait().unwrap().success());
}

/// A drive is one drive of a store, whatever URL names it, and mirrors are of two drives.
#[test]
fn a_drive_takes_one_place() {
    let (folder, mut drives) = (tempfile::tempdir().unwrap(), (1..5).map(Drive::start).collect::<Vec<_>>());
    let control = folder.path().join("m.control");
    let args = [&ALL[..], &["--control", control.to_str().unwrap()]].concat();
    let (server, _) = start(folder.path(), &drives.iter().collect::<Vec<_>>(), 2, &args);
    let mut client = Client::connect(folder.path());
    set(&mut client, 0..200, 0);
    for lost in [3, 1] {
        drop(drives.remove(lost).kill());
    }
    set(&mut client, 0..100, 1);
    until_lost(&mut client, 2);
    let [d0, d2] = [0, 1].map(|place: usize| &drives[place].url);
    let same = format!("{d2}?namespace=1");
    refused(replace(folder.path(), "d1", &same), &format!("{same} is the namespace of drive d2; another one is valid"));
    let on_the_same = "is a namespace of the same drive as drive d0, whose items it is to protect; a namespace of another drive is valid";
    refused(replace(folder.path(), "d1", &format!("{d0}?namespace=2")), on_the_same);
    // The look at a large empty drive takes long: one order waits for it, and the other one, whichever comes later, is rejected.
    let new = Drive::start_large(9);
    let begin = |drive: &str| {
        let mut order = order(folder.path(), drive, &new.url);
        order.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let mut orders = vec![begin("d1"), begin("d3")];
    let ended = loop {
        match orders.iter_mut().position(|order| order.try_wait().unwrap().is_some()) {
            Some(ended) => break orders.remove(ended),
            None => std::thread::yield_now(),
        }
    };
    refused(ended.wait_with_output(), &format!("{} is about to be drive d", new.url));
    check(&mut client, 0..100, 1);
    check(&mut client, 100..200, 0);
    drop(client);
    end(server);
    assert!(!orders.remove(0).wait().unwrap().success());
}

/// A drive in a file of the server's folder is made anew. Afterwards it has all items, also after `kill -9`.
#[test]
fn a_lost_drive_of_the_process_is_made_anew_while_clients_are_served() {
    for more in [&["--drives", "2"][..], &["--drives", "3", "--placement", "parity"]] {
        let folder = tempfile::tempdir().unwrap();
        let (store, control) = (folder.path().join("store"), folder.path().join("m.control"));
        let (page, args) = (folder.path().join("page"), ["--store", store.to_str().unwrap(), "--memory", "1MiB"]);
        let dashboard = format!("unix:{}", page.display());
        let places = ["--control", control.to_str().unwrap(), "--dashboard", &dashboard];
        let args = [&ALL[..], &args, &places, more].concat();
        let (server, _) = Server::start(folder.path(), &args);
        set(&mut Client::connect(folder.path()), 0..500, 0);
        server.end("-TERM");
        let lost = store.join("d1.nand");
        std::fs::remove_file(&lost).unwrap();
        let (server, _) = Server::start(folder.path(), &args);
        let mut client = Client::connect(folder.path());
        until_lost(&mut client, 1);
        set(&mut client, 0..100, 1);
        let url = "nvme-tcp://127.0.0.1:1/nqn.x";
        refused(replace(folder.path(), "d1", url), "drive d1 is of this process; new is valid");
        refused(replace(folder.path(), "d1", "anew"), "\"anew\": new is valid");
        refused(
            replace(folder.path(), "d0", "new"),
            "drive d0 is in use; a drive that is missing, has failed or takes no writes is valid",
        );
        let mut events = Events::open(&page);
        let has_parts = |event: &Value| [0, 1].map(|drive: usize| !event["drives"][drive]["layout"].is_null());
        assert_eq!(has_parts(&events.until("hello")), [true, false], "the second is missing");
        assert!(events.until("frame")["drives"][1]["dies"].is_null());
        let fault = ["fault", "add", "slow read by=1us", "--drive", "d1"];
        refused(ctl(folder.path(), &fault), "drive d1 is missing; a drive in use is valid");
        let listed = ctl(folder.path(), &["drives"]).unwrap();
        assert!(
            String::from_utf8_lossy(&listed.stdout).contains("lost; read-only: the drive is missing"),
            "{listed:?}"
        );
        let unnamed = ctl(folder.path(), &["fault", "add", "dead"]);
        refused(unnamed, "`drive` is one of d0, d1");
        std::fs::write(&lost, "the lost drive").unwrap();
        refused(replace(folder.path(), "d1", "new"), "the lost drive has this file; remove it");
        std::fs::remove_file(&lost).unwrap();
        let done = replace(folder.path(), "d1", "new").unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        assert_eq!(String::from_utf8_lossy(&done.stdout), "drive d1 is a new drive now, and is being rebuilt\n");
        while statistic(&mut client, "engine_lost_drives") > 0 {
            check(&mut client, 200..210, 0);
            set(&mut client, 100..110, 1);
        }
        set(&mut client, 110..200, 1);
        // The page begins anew with the parts of the new drive, and then shows them at work.
        assert_eq!(has_parts(&events.until("hello")), [true, true]);
        while events.until("frame")["drives"][1]["dies"]["read"].as_array().is_none_or(Vec::is_empty) {}
        assert!(!events.until("wear")[1].is_null());
        assert_eq!(has_parts(&Events::open(&page).until("hello")), [true, true]);
        // Orders and figures are those of the new drive.
        let done = ctl(folder.path(), &fault).unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        let figures: Value =
            serde_json::from_slice(&ctl(folder.path(), &["statistics", "--json"]).unwrap().stdout).unwrap();
        let drive = &figures["drives"][1];
        assert_eq!((&drive["name"], &drive["read_only"]), (&"d1".into(), &Value::Null), "{drive}");
        assert!(drive["counters"]["host_written_bytes_total"].as_f64() > Some(0.0), "{drive}");
        assert_eq!(drive["faults"].as_array().map(Vec::len), Some(1), "{drive}");
        server.end("-KILL");
        // Without a drive that it was made from.
        std::fs::remove_file(store.join("d0.nand")).unwrap();
        let (server, line) = Server::start(folder.path(), &args);
        assert!(line.contains(": 500 items found"), "{more:?}: {line}");
        let mut client = Client::connect(folder.path());
        check(&mut client, 0..200, 1);
        check(&mut client, 200..500, 0);
        server.end("-TERM");
    }
}

/// Its buffer takes writes for a while, so that no write of the engine need have failed.
#[test]
fn a_drive_that_takes_no_writes_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let control = folder.path().join("m.control");
    let args = [&["--drives", "2", "--control", control.to_str().unwrap()][..], &ALL].concat();
    let (mut server, _) = Server::start_by(
        crate::memcached::command(folder.path(), ":", &args).stdout(Stdio::piped()).stderr(Stdio::piped()),
    );
    let mut client = Client::connect(folder.path());
    set(&mut client, 0..100, 0);
    let done = ctl(folder.path(), &["fault", "add", "dead", "--drive", "d1"]).unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let is_read_only = || {
        let listed = ctl(folder.path(), &["drives"]).unwrap();
        String::from_utf8_lossy(&listed.stdout).contains("read-only: ")
    };
    let mut version = 0;
    while !is_read_only() {
        version += 1;
        assert!(version < 200, "it takes writes");
        set(&mut client, 0..100, version);
    }
    let done = replace(folder.path(), "d1", "new").unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    until_lost(&mut client, 0);
    check(&mut client, 0..100, version);
    let mut notes = server.notes();
    server.end("-TERM");
    let mut noted = String::new();
    std::io::Read::read_to_string(&mut notes, &mut noted).unwrap();
    assert!(noted.contains("it is out of use, and drive d0 serves its items without a mirror"), "{noted}");
}

#[test]
fn a_server_without_drives_to_replace_rejects_the_order() {
    let (folder, drive) = (tempfile::tempdir().unwrap(), Drive::start(1));
    drive.link_control(&folder.path().join("m.control"));
    refused(
        replace(folder.path(), "small", &drive.url),
        "this server replaces no drives; `nandscape memcached --control PATH` does",
    );
}
