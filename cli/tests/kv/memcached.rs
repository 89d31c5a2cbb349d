//! `nandscape memcached` as a process: killed and started again, and with hostile clients.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::Duration;

use rustix::event::{Timespec, poll};

use crate::remote::refused;
use crate::replace::replace;

/// Between two looks at a server.
const PAUSE: Timespec = Timespec { tv_sec: 0, tv_nsec: 5_000_000 };

pub(crate) struct Server(Child);

/// A command that starts a server, after a word to the shell that limits it.
pub(crate) fn command(folder: &Path, limit: &str, args: &[&str]) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("{limit}; exec \"$@\""), "sh", env!("CARGO_BIN_EXE_nandscape")]);
    let listen = format!("unix:{}", folder.join("m.sock").display());
    command.args(["memcached", "--set", "capacity=64MiB", "--listen", &listen]).args(args);
    command.args(["--set", "geometry.channels=2", "--set", "geometry.dies_per_channel=2"]);
    command.stdin(Stdio::null());
    command
}

impl Server {
    /// A server, and what it prints once clients can connect.
    pub(crate) fn start(folder: &Path, args: &[&str]) -> (Server, String) {
        Server::start_by(command(folder, ":", args).stdout(Stdio::piped()))
    }

    pub(crate) fn start_by(command: &mut Command) -> (Server, String) {
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert!(line.starts_with("memcached at unix:"), "{line:?}");
        (Server(child), line)
    }

    /// A server that runs.
    pub(crate) fn of(child: Child) -> Server {
        Server(child)
    }

    pub(crate) fn signal(&self, signal: &str) {
        let status = Command::new("kill").args([signal, &self.0.id().to_string()]).status().unwrap();
        assert!(status.success(), "kill {signal}");
    }

    /// Descriptors that it has open.
    pub(crate) fn descriptors(&self) -> usize {
        std::fs::read_dir(format!("/proc/{}/fd", self.0.id())).unwrap().count()
    }

    /// Waits until its threads of a name have ended: for a minute at most. Linux keeps 15 bytes of a name.
    pub(crate) fn until_no_thread(&self, name: &str) {
        let (tasks, comm) = (format!("/proc/{}/task", self.0.id()), &name[..name.len().min(15)]);
        let has_name = |task: std::fs::DirEntry| {
            // A thread may end meanwhile.
            std::fs::read_to_string(task.path().join("comm")).is_ok_and(|found| found.trim_end() == comm)
        };
        let mut pauses = 0..12_000;
        while std::fs::read_dir(&tasks).unwrap().flatten().any(has_name) {
            assert!(pauses.next().is_some(), "a thread \"{name}\" does not end");
            poll(&mut [], Some(&PAUSE)).unwrap();
        }
    }

    /// What it prints on standard error, if that was piped.
    pub(crate) fn notes(&mut self) -> ChildStderr {
        self.0.stderr.take().unwrap()
    }

    pub(crate) fn end(mut self, signal: &str) {
        self.signal(signal);
        let ended = self.0.wait().unwrap();
        assert!(signal == "-KILL" || ended.success(), "{ended}");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It has ended where a test waited for it.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Waits until a server has rebuilt its drives.
fn rebuilt(folder: &Path) {
    let mut client = Client::connect(folder);
    while !client.ask("stats\r\n", "END").contains("STAT engine_lost_drives 0\r\n") {}
}

/// A client that waits for answers, for a minute at most.
pub(crate) struct Client(BufReader<UnixStream>);

impl Client {
    pub(crate) fn connect(folder: &Path) -> Client {
        let stream = UnixStream::connect(folder.join("m.sock")).unwrap();
        stream.set_read_timeout(Some(Duration::from_mins(1))).unwrap();
        Client(BufReader::new(stream))
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.0.get_mut().write_all(bytes).unwrap();
    }

    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        self.0.read_line(&mut line).unwrap();
        line
    }

    /// The lines of an answer up to the one that begins with one of these words.
    pub(crate) fn ask(&mut self, command: &str, last: &str) -> String {
        self.send(command.as_bytes());
        let mut answer = String::new();
        loop {
            let line = self.line();
            assert!(!line.is_empty(), "closed after {answer:?}");
            answer += &line;
            if line.starts_with(last) {
                return answer;
            }
        }
    }
}

#[test]
fn what_was_acknowledged_by_all_replicas_outlasts_kill_9() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store");
    let store = ["--store", store.to_str().unwrap(), "--ack", "all", "--drives", "2"];
    let (server, line) = Server::start(folder.path(), &store);
    assert!(line.contains(": 0 items found"), "{line}");
    let mut client = Client::connect(folder.path());
    for number in 0..40 {
        let value = format!("{number} ").repeat(number);
        let command = format!("set key{number} {number} 0 {}\r\n{value}\r\n", value.len());
        assert_eq!(client.ask(&command, "STORED"), "STORED\r\n");
    }
    assert_eq!(client.ask("delete key7\r\n", "DELETED"), "DELETED\r\n");
    server.end("-KILL");
    let (server, line) = Server::start(folder.path(), &store);
    assert!(line.contains(": 39 items found"), "{line}");
    let mut client = Client::connect(folder.path());
    for number in 0..40 {
        let value = format!("{number} ").repeat(number);
        let there = format!("VALUE key{number} {number} {}\r\n{value}\r\n", value.len());
        let expected = if number == 7 { String::new() } else { there };
        assert_eq!(client.ask(&format!("get key{number}\r\n"), "END"), expected + "END\r\n");
    }
    let stats = client.ask("stats\r\n", "END");
    for wanted in ["STAT curr_items 39", "STAT hit_ratio 0.97", "engine_drive_bytes_written", "STAT engine_policy gc_c"]
    {
        assert!(stats.contains(wanted), "{wanted}: {stats}");
    }
    // What waits in memory is on the drives after an end in order.
    assert_eq!(client.ask("set late 0 0 1\r\nx\r\n", "STORED"), "STORED\r\n");
    server.end("-TERM");
    let words = [&store[..4], &["--drives", "2", "--policy", "epochs", "--flush-after", "50ms"]].concat();
    let mut child = command(folder.path(), ":", &words).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let (server, line) = (Server::of(child), lines.next().unwrap());
    assert!(line.contains(": 40 items found"), "{line}");
    assert_eq!(Client::connect(folder.path()).ask("get none\r\n", "END"), "END\r\n");
    server.end("-TERM");
    let line = lines.next().unwrap_or_default();
    assert!(line.starts_with("40 items; 0 of 1 gets were hits; ") && line.ends_with(" written to drives"), "{line}");
}

/// The first start has made no files then.
#[test]
fn a_control_socket_that_cannot_be_had_is_reported_before_anything_is_served() {
    let folder = tempfile::tempdir().unwrap();
    let (store, control) = (folder.path().join("store"), folder.path().join("none/m.control"));
    let args = ["--drives", "2", "--store", store.to_str().unwrap(), "--control", control.to_str().unwrap()];
    let refused = command(folder.path(), ":", &args).output().unwrap();
    let printed = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && refused.stdout.is_empty(), "{printed}");
    assert!(printed.contains("--control ") && printed.contains("none/m.control: "), "{printed}");
    assert_eq!(
        store.read_dir().map_or(0, |files| files.filter(|file| file.as_ref().unwrap().path().is_file()).count()),
        0
    );
}

/// The port is free when the options are checked, and taken once one of the two listens.
#[test]
fn a_dashboard_at_the_address_of_clients_is_reported_before_anything_is_served() {
    let folder = tempfile::tempdir().unwrap();
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap().to_string();
    drop(free);
    let store = folder.path().join("store");
    let args = ["--drives", "2", "--store", store.to_str().unwrap(), "--listen", &address, "--dashboard", &address];
    let refused = command(folder.path(), ":", &args).output().unwrap();
    let printed = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && refused.stdout.is_empty(), "{printed}");
    assert!(printed.contains(&address) && !printed.contains("dashboard at"), "{printed}");
    assert_eq!(
        store.read_dir().map_or(0, |files| files.filter(|file| file.as_ref().unwrap().path().is_file()).count()),
        0
    );
}

/// Items of 100 to 300 bytes have few bytes each in memory, and are the same after `kill -9` and with another limit.
#[test]
fn small_items_have_no_entries_in_memory() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store");
    let store = ["--store", store.to_str().unwrap(), "--drives", "2", "--ack", "all", "--dirty", "4MiB"];
    let with = |limit: &'static str| [&store[..], &["--small-items", limit]].concat();
    let value = |number: usize, round: usize| "x".repeat(100 + (number + round) % 200);
    let (server, _) = Server::start(folder.path(), &with("400"));
    let mut client = Client::connect(folder.path());
    let mut commands = String::new();
    for (round, number) in (0..4_000).map(|number| (0, number)).chain((0..300).map(|number| (1, number))) {
        // Some of the second round outgrow the limit.
        let value = value(number, round).repeat(if round == 1 && number % 3 == 0 { 5 } else { 1 });
        commands += &format!("set key{number} {number} 0 {} noreply\r\n{value}\r\n", value.len());
    }
    client.send(commands.as_bytes());
    assert_eq!(client.ask("mn\r\n", "MN"), "MN\r\n");
    assert_eq!(client.ask("delete key3999\r\n", "DELETED"), "DELETED\r\n");
    let stats = client.ask("stats\r\n", "END");
    let figure = |name: &str| -> f64 {
        let line = stats.lines().find_map(|line| line.strip_prefix(&format!("STAT {name} "))).expect("a statistic");
        line.parse().unwrap()
    };
    assert_eq!((figure("curr_items"), figure("engine_small_items")), (3_999.0, 3_899.0));
    assert!(figure("engine_index_bytes") < 400_000.0, "{stats}");
    server.end("-KILL");
    for limit in ["400", "0", "1024"] {
        let (server, line) = Server::start(folder.path(), &with(limit));
        assert!(line.contains(": 3999 items found"), "{line}");
        let mut client = Client::connect(folder.path());
        for number in (0..4_000).step_by(37).chain([3, 299, 3_999]) {
            let round = usize::from(number < 300);
            let value = value(number, round).repeat(if round == 1 && number % 3 == 0 { 5 } else { 1 });
            let there = format!("VALUE key{number} {number} {}\r\n{value}\r\n", value.len());
            let expected = if number == 3_999 { String::new() } else { there };
            assert_eq!(client.ask(&format!("get key{number}\r\n"), "END"), expected + "END\r\n");
        }
        server.end("-TERM");
    }
    let refused = command(folder.path(), ":", &with("2KiB")).output().unwrap();
    let printed = String::from_utf8_lossy(&refused.stderr);
    assert!(printed.contains("2KiB is too much; 0 to 1024 are valid"), "{printed}");
}

#[test]
fn hostile_clients_cost_others_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (server, _) = Server::start(folder.path(), &["--drives", "2", "--memory", "8MiB", "--dirty", "2MiB"]);
    let mut good = Client::connect(folder.path());
    let value = "v".repeat(100_000);
    assert_eq!(good.ask(&format!("set big 0 0 {}\r\n{value}\r\n", value.len()), "STORED"), "STORED\r\n");
    // Half a line, half an item, and one that takes no answers.
    let mut others: Vec<Client> = (0..20).map(|_| Client::connect(folder.path())).collect();
    for (number, other) in others.iter_mut().enumerate() {
        match number % 3 {
            0 => other.send(b"get bi"),
            1 => other.send(b"set other 0 0 100000\r\nhalf"),
            _ => other.send("get big big big big big big big big\r\n".repeat(60).as_bytes()),
        }
    }
    let mut long = Client::connect(folder.path());
    long.send(&vec![b'x'; 100_000][..70_000]);
    assert_eq!(long.line(), "CLIENT_ERROR line too long\r\n");
    let answer = good.ask("get big\r\n", "END");
    assert_eq!(answer, format!("VALUE big 0 {}\r\n{value}\r\nEND\r\n", value.len()));
    // The one beyond the limit finds the place of an idle one.
    let crowd: Vec<Client> = (0..1_020).map(|_| Client::connect(folder.path())).collect();
    let mut good = Client::connect(folder.path());
    assert_eq!(good.ask("mn\r\n", "MN"), "MN\r\n");
    drop(crowd);
    // One that sends a command and hangs up has been heard.
    let mut last = Client::connect(folder.path());
    last.send(b"set last 0 0 1\r\nx\r\n");
    last.0.get_mut().shutdown(std::net::Shutdown::Write).unwrap();
    let mut rest = String::new();
    last.0.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "STORED\r\n");
    assert_eq!(good.ask("get last\r\n", "END"), "VALUE last 0 1\r\nx\r\nEND\r\n");
    server.end("-TERM");
}

#[test]
fn a_store_with_other_drives_is_left_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store");
    let store = ["--store", store.to_str().unwrap()];
    let (server, _) = Server::start(folder.path(), &[&store[..], &["--drives", "2"]].concat());
    server.end("-TERM");
    let refused = command(folder.path(), ":", &[&store[..], &["--drives", "4"]].concat()).output().unwrap();
    let printed = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(2), "{printed}");
    assert!(printed.contains("it has 2 drives, and --drives is 4; 2 is valid"), "{printed}");
    let files: Vec<_> = std::fs::read_dir(store[1]).unwrap().map(|file| file.unwrap().path()).collect();
    assert_eq!(files.len(), 2);
    for file in files {
        let inspected = Command::new(env!("CARGO_BIN_EXE_nandscape")).arg("inspect").arg(&file).output().unwrap();
        let printed = String::from_utf8_lossy(&inspected.stdout);
        assert!(printed.contains(" closed in order") && !printed.contains("not closed"), "{printed}");
    }
    let refused = |more: &[&str], wanted: &str| {
        let words = [&store[..], &["--drives", "2"], more].concat();
        let printed = command(folder.path(), ":", &words).output().unwrap();
        let error = String::from_utf8_lossy(&printed.stderr);
        assert!(printed.status.code() == Some(2) && error.contains(wanted), "{error}");
    };
    refused(&["--policy", "raid0"], "the store has mirrors; any --policy but raid0 is valid\n");
    refused(
        &["--set", "ftl.kind=ox_block"],
        "drives with ftl.kind = \"page\" and without parity stripes do; --policy epochs or mixed is valid",
    );
    // With --memory alone, changes that wait have a part of it.
    let again = ["--drives", "2", "--memory", "16MiB", "--store-sync"];
    let (server, _) = Server::start(folder.path(), &[&store[..], &again].concat());
    server.end("-TERM");
}

#[test]
fn clients_that_finish_no_command_keep_nobody_out() {
    let folder = tempfile::tempdir().unwrap();
    // The server has descriptors for 40 clients.
    let mut limited = command(folder.path(), "ulimit -n 200", &["--drives", "2"]);
    let (server, _) = Server::start_by(limited.stdout(Stdio::piped()));
    let mut idle = Client::connect(folder.path());
    assert_eq!(idle.ask("mn\r\n", "MN"), "MN\r\n");
    let mut crowd = Vec::new();
    for _ in 0..60 {
        let mut client = Client::connect(folder.path());
        client.send(b"g");
        crowd.push(client);
    }
    let mut good = Client::connect(folder.path());
    assert_eq!(good.ask("mn\r\n", "MN"), "MN\r\n");
    // One that has been served before stays, although it sends nothing.
    assert_eq!(idle.ask("mn\r\n", "MN"), "MN\r\n");
    // Neither do they keep the server from its end.
    server.end("-TERM");
}

#[test]
fn a_command_that_runs_when_the_server_ends_is_finished() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store");
    let store = ["--store", store.to_str().unwrap(), "--drives", "2", "--ack", "all"];
    let (server, _) = Server::start(folder.path(), &store);
    let mut client = Client::connect(folder.path());
    let mut commands = String::new();
    for number in 0..200 {
        commands += &format!("set key{number} 0 0 100\r\n{}\r\n", "v".repeat(100));
    }
    client.send(commands.as_bytes());
    assert_eq!(client.line(), "STORED\r\n");
    server.end("-TERM");
    let mut rest = Vec::new();
    // Commands that the server has not read are a reset.
    let _ = client.0.read_to_end(&mut rest);
    let rest = String::from_utf8(rest).unwrap();
    assert!(rest.lines().all(|line| line == "STORED"), "{rest}");
    let stored = 1 + rest.lines().count();
    let (server, line) = Server::start(folder.path(), &store);
    let found: usize = line.split(": ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
    assert!(found >= stored, "{found} found, {stored} acknowledged");
    server.end("-TERM");
}

/// The files of a drive cannot be written beyond a size, as on a full disk.
#[test]
fn a_server_whose_drives_fail_ends_and_reports_which_file_and_why() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store");
    let words = ["--store", store.to_str().unwrap(), "--drives", "2", "--ack", "all", "--policy", "epochs"];
    let (server, _) = Server::start(folder.path(), &words);
    server.end("-TERM");
    let mut limited = command(folder.path(), "trap '' XFSZ; ulimit -f 8192", &words);
    let (mut server, _) = Server::start_by(limited.stdout(Stdio::piped()).stderr(Stdio::piped()));
    let mut client = Client::connect(folder.path());
    let value = "v".repeat(100_000);
    for number in 0..400 {
        let command = format!("set key{number} 0 0 {}\r\n{value}\r\n", value.len());
        let mut line = String::new();
        let sent = client.0.get_mut().write_all(command.as_bytes()).and_then(|()| client.0.read_line(&mut line));
        if sent.is_err() || line != "STORED\r\n" {
            break;
        }
    }
    let mut reported = String::new();
    server.0.stderr.take().unwrap().read_to_string(&mut reported).unwrap();
    assert_eq!(server.0.wait().unwrap().code(), Some(1), "{reported}");
    for wanted in ["failed: drive ", ".nand takes no writes: ", "File too large"] {
        assert!(reported.contains(wanted), "{wanted}: {reported}");
    }
}

#[test]
fn a_store_with_a_lost_file_is_served_and_rebuilt() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store");
    let words = ["--store", store.to_str().unwrap(), "--drives", "2", "--ack", "all"];
    let start = |more: &[&str]| {
        let words = [&words[..], more].concat();
        Server::start_by(command(folder.path(), ":", &words).stdout(Stdio::piped()).stderr(Stdio::piped()))
    };
    let end = |mut server: Server| {
        let mut notes = server.0.stderr.take().unwrap();
        server.end("-TERM");
        let mut reported = String::new();
        notes.read_to_string(&mut reported).unwrap();
        reported
    };
    let (server, _) = start(&[]);
    let mut client = Client::connect(folder.path());
    assert_eq!(client.ask("set a 0 0 1\r\n1\r\n", "STORED"), "STORED\r\n");
    end(server);
    for gone in ["d1.nand", "d0.nand"] {
        let file = store.join(gone);
        let kept = folder.path().join("kept");
        std::fs::rename(&file, &kept).unwrap();
        let (server, line) = start(&[]);
        assert!(line.contains(": 1 item found"), "{line}");
        let mut client = Client::connect(folder.path());
        assert_eq!(client.ask(&format!("set a 0 0 7\r\n{gone}\r\n"), "STORED"), "STORED\r\n");
        assert!(client.ask("stats\r\n", "END").contains("STAT engine_lost_drives 1\r\n"));
        let reported = end(server);
        assert!(
            reported.contains(&format!("is missing: drive d{}", if gone == "d1.nand" { 0 } else { 1 })),
            "{reported}"
        );
        assert!(reported.contains(&format!("{})", file.display())) && reported.contains("--rebuild"), "{reported}");
        let order = format!("nandscape ctl memcached replace SOCKET {} new", gone.trim_end_matches(".nand"));
        assert!(reported.contains(&order), "{reported}");
        assert!(!file.exists());
        // The old file is older than its mirror: it is rebuilt, not read.
        if gone == "d1.nand" {
            std::fs::rename(&kept, &file).unwrap();
        }
        let (server, _) = start(&["--rebuild"]);
        let mut client = Client::connect(folder.path());
        assert_eq!(client.ask("get a\r\n", "END"), format!("VALUE a 0 7\r\n{gone}\r\nEND\r\n"));
        rebuilt(folder.path());
        let reported = end(server);
        assert!(reported.contains("was rebuilt from drive"), "{reported}");
    }
}

/// With parity: after `kill -9`, without any one file, and after that file was made anew from the others.
#[test]
fn a_store_with_parity_is_served_without_one_file_and_rebuilt() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store");
    let path = store.to_str().unwrap();
    let words = ["--store", path, "--drives", "3", "--placement", "parity", "--ack", "all"];
    let (server, _) = Server::start(folder.path(), &words);
    let mut client = Client::connect(folder.path());
    for number in 0..20 {
        assert_eq!(client.ask(&format!("set key{number} 0 0 2\r\n{number:02}\r\n"), "STORED"), "STORED\r\n");
    }
    server.end("-KILL");
    let check = || {
        let mut client = Client::connect(folder.path());
        for number in 0..20 {
            let there = format!("VALUE key{number} 0 2\r\n{number:02}\r\nEND\r\n");
            assert_eq!(client.ask(&format!("get key{number}\r\n"), "END"), there);
        }
    };
    for gone in ["d2.nand", "d0.nand"] {
        std::fs::remove_file(store.join(gone)).unwrap();
        for more in [&[][..], &["--rebuild"]] {
            let words = [&words[..], more].concat();
            let (server, line) = Server::start(folder.path(), &words);
            assert!(line.contains(": 20 items found"), "{line}");
            check();
            if !more.is_empty() {
                rebuilt(folder.path());
            }
            server.end("-TERM");
            assert_eq!(store.join(gone).exists(), !more.is_empty());
        }
    }
    let refused = |words: &[&str], reason: &str| {
        let ran = command(folder.path(), ":", words).stderr(Stdio::piped()).output().unwrap();
        let error = String::from_utf8(ran.stderr).unwrap();
        assert!(ran.status.code() == Some(2) && error.contains(reason), "{error}");
    };
    refused(&["--store", path, "--drives", "4"], "the store has 3 drives and parity");
    let copies = folder.path().join("copies");
    let words = ["--store", copies.to_str().unwrap(), "--drives", "4"];
    Server::start(folder.path(), &words).0.end("-TERM");
    let parity = [&words[..], &["--placement", "parity"]].concat();
    refused(&parity, "the store has copies on pairs; --placement copies is valid\n");
}

/// A file that is written to alone no longer fits its mirror: it is not served alone without a word, and not taken back afterwards.
#[test]
fn a_file_of_a_store_is_served_alone_on_request_only() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store");
    let words = ["--store", store.to_str().unwrap(), "--drives", "2", "--ack", "all"];
    let (server, _) = Server::start(folder.path(), &words);
    assert_eq!(Client::connect(folder.path()).ask("set a 0 0 1\r\n1\r\n", "STORED"), "STORED\r\n");
    server.end("-TERM");
    let alone = |more: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_nandscape"));
        command.current_dir(folder.path()).args(["serve", "--drive", "default", "--store", "file:store/d0.nand"]);
        command.args([
            "--set",
            "capacity=64MiB",
            "--set",
            "geometry.channels=2",
            "--set",
            "geometry.dies_per_channel=2",
        ]);
        command.args(["--set", "lba_size=4KiB", "--set", "buffer.mode=capacitor", "--nbd", "unix:n.sock"]).args(more);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        command
    };
    let refused = alone(&[]).output().unwrap();
    let printed = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(2), "{printed}");
    for words in
        ["d0.nand: its drive is a member of a memcached store", "nandscape memcached --store", "--outside-array"]
    {
        assert!(printed.contains(words), "{words}: {printed}");
    }
    let inspected = Command::new(env!("CARGO_BIN_EXE_nandscape")).arg("inspect").arg(store.join("d0.nand")).output();
    let inspected = String::from_utf8(inspected.unwrap().stdout).unwrap();
    let is_shown = |line: &str| line.contains("member of a memcached store") && line.ends_with("yes");
    assert!(inspected.lines().any(is_shown), "{inspected}");
    // Nothing has changed: the store opens as before.
    let (server, line) = Server::start(folder.path(), &words);
    assert!(line.contains(": 1 item found"), "{line}");
    server.end("-TERM");
    let mut child = alone(&["--outside-array"]).spawn().unwrap();
    let mut notes = BufReader::new(child.stderr.take().unwrap()).lines();
    assert!(notes.any(|line| line.unwrap().contains("serving ")), "it does not serve");
    let outside = Server(child);
    outside.end("-TERM");
    let refused = command(folder.path(), ":", &words).output().unwrap();
    let printed = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(2), "{printed}");
    assert!(
        printed.contains("d0.nand: it was served outside of its store") && printed.contains("--rebuild"),
        "{printed}"
    );
    std::fs::remove_file(store.join("d0.nand")).unwrap();
    let (server, line) = Server::start(folder.path(), &[&words[..], &["--rebuild"]].concat());
    assert!(line.contains(": 1 item found"), "{line}");
    server.end("-TERM");
}

/// libmemcached's own test of a server's text protocol, and its tools.
#[test]
fn libmemcached_and_its_test_of_servers_are_content() {
    let folder = tempfile::tempdir().unwrap();
    let tcp = ["--drives", "2", "--listen", "127.0.0.1:0"];
    let (server, line) = Server::start(folder.path(), &tcp);
    let port = line.split("127.0.0.1:").nth(1).and_then(|rest| rest.split([',', ' ']).next()).unwrap().to_owned();
    let to = format!("--servers=127.0.0.1:{port}");
    let run = |name: &str, args: &[&str]| {
        let output = Command::new(name).current_dir(folder.path()).args(args).stdin(Stdio::null()).output();
        let output = output.unwrap_or_else(|error| panic!("{name}, which cargo xtask tools installs: {error}"));
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        (output.status.success(), printed + &String::from_utf8_lossy(&output.stderr))
    };
    let (passed, printed) = run("memccapable", &["-h", "127.0.0.1", "-p", &port, "-a", "-t", "60"]);
    assert!(passed && printed.contains("All tests passed"), "{printed}");
    std::fs::write(folder.path().join("item"), "what it holds").unwrap();
    for (name, words, wanted) in [
        ("memccp", &["--set", "item"][..], ""),
        ("memccat", &["item"], "what it holds"),
        ("memcexist", &["item"], ""),
        ("memctouch", &["--expire=100", "item"], ""),
        ("memcstat", &[], "engine_policy: gc_control"),
        ("memcrm", &["item"], ""),
        ("memcping", &[], ""),
        ("memcflush", &[], ""),
    ] {
        let (is_done, printed) = run(name, &[&[to.as_str()], words].concat());
        assert!(is_done && printed.contains(wanted), "{name}: {printed}");
    }
    assert!(!run("memcexist", &[&to, "item"]).0, "it was removed");
    // The load tool's keys begin with bytes of any value.
    let load = ["-s", to.trim_start_matches("--servers="), "-x", "2000", "-c", "4", "-T", "1"];
    let (is_done, printed) = run("memcaslap", &load);
    for wanted in ["cmd_get: 1800", "cmd_set: 200", "get_misses: 0"] {
        assert!(is_done && printed.contains(wanted) && !printed.contains("ERROR"), "{wanted}: {printed}");
    }
    server.end("-TERM");
}

/// A profile with an FTL for each half of a drive's channels.
fn halves(folder: &Path) -> String {
    let path = folder.join("halves.toml");
    let profile = "version = 1\nbase = \"default\"\ncapacity = \"64MiB\"\nlba_size = \"4KiB\"\n[geometry]\nchannels = 4\ndies_per_channel = 1\n\
                   planes_per_die = 2\npages_per_block = 64\n[buffer]\nsize = \"2MiB\"\nmode = \"capacitor\"\n\
                   [[ftl.parts]]\nname = \"even\"\nchannels = \"0-1\"\n[[ftl.parts]]\nname = \"odd\"\nchannels = \"2-3\"\n";
    std::fs::write(&path, profile).unwrap();
    path.display().to_string()
}

/// A server of drives with two FTLs each.
fn of_halves(folder: &Path, args: &[&str]) -> (Server, String) {
    let listen = format!("unix:{}", folder.join("m.sock").display());
    let mut command = Command::new(env!("CARGO_BIN_EXE_nandscape"));
    command.args(["memcached", "--listen", &listen, "--drive", &halves(folder)]).args(args);
    Server::start_by(command.stdin(Stdio::null()).stdout(Stdio::piped()))
}

/// Each FTL of a drive is a drive of the engine. One drive alone mirrors its FTLs; of two, each may be lost.
#[test]
fn ftls_of_drives_are_drives_of_the_engine() {
    let folder = tempfile::tempdir().unwrap();
    let fill = |folder: &Path, drives: u64| {
        let mut client = Client::connect(folder);
        for number in 0..40 {
            let value = format!("{number} ").repeat(1_000 + number);
            let answer = client.ask(&format!("set key{number} 0 0 {}\r\n{value}\r\n", value.len()), "STORED");
            assert_eq!(answer, "STORED\r\n");
        }
        assert!(client.ask("stats\r\n", "END").contains(&format!("STAT engine_drives {drives}\r\n")));
    };
    let check = |folder: &Path| {
        let mut client = Client::connect(folder);
        for number in 0..40 {
            let value = format!("{number} ").repeat(1_000 + number);
            let answer = client.ask(&format!("get key{number}\r\n"), "END");
            assert_eq!(answer, format!("VALUE key{number} 0 {}\r\n{value}\r\nEND\r\n", value.len()));
        }
    };
    let (server, _) = of_halves(folder.path(), &["--drives", "1"]);
    fill(folder.path(), 2);
    check(folder.path());
    server.end("-TERM");
    for drives in [1, 2] {
        let (store, count) = (folder.path().join(format!("store{drives}")), drives.to_string());
        let args = ["--drives", &count, "--ack", "all", "--store", store.to_str().unwrap()];
        let (server, _) = of_halves(folder.path(), &args);
        fill(folder.path(), 2 * drives);
        server.end("-KILL");
        let (server, line) = of_halves(folder.path(), &args);
        assert!(line.contains(": 40 items found"), "{line}");
        check(folder.path());
        server.end("-TERM");
    }
    // The file of one drive has two drives of the engine, which are made anew.
    let store = folder.path().join("store2");
    std::fs::remove_file(store.join("d1.nand")).unwrap();
    let control = folder.path().join("m.control");
    let args = ["--drives", "2", "--store", store.to_str().unwrap(), "--control", control.to_str().unwrap()];
    let (server, line) = of_halves(folder.path(), &args);
    assert!(line.contains(": 40 items found"), "{line}");
    assert!(Client::connect(folder.path()).ask("stats\r\n", "END").contains("STAT engine_lost_drives 2\r\n"));
    refused(replace(folder.path(), "d3", "new"), "drive d3: its drive has 2 FTLs");
    check(folder.path());
    server.end("-TERM");
    let (server, _) = of_halves(folder.path(), &[&args[..], &["--rebuild"]].concat());
    rebuilt(folder.path());
    server.end("-TERM");
    std::fs::remove_file(store.join("d0.nand")).unwrap();
    let (server, _) = of_halves(folder.path(), &args);
    check(folder.path());
    server.end("-TERM");
}
