//! Drives in files under `kill -9`. A client writes and counts acknowledged writes, while fio writes as well. The server is
//! killed amid these writes and restarted. Acknowledged or flushed data survives, and each block of fio holds one whole write.
//!
//! `NANDSCAPE_TEST_KILLS` gives another number of kills of each mode.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;
use std::sync::mpsc::channel;
use std::time::Duration;

use nandscape_sim::{Rng, Seed};
use rustix::process::Signal;

use crate::patience::{self, PATIENCE};
use crate::server::{SMALL, Server, nandscape, refuse};
use crate::tools::{fio, start_fio};

pub(crate) const BLOCK: usize = 4_096;
/// The client's part of the drive, in blocks; fio has the rest.
const BLOCKS: u64 = 8_192;
/// Magic and command of a simple request (NBD, "Request message").
const REQUEST: u32 = 0x2560_9513;
pub(crate) const READ: u16 = 0;
const WRITE: u16 = 1;
const FLUSH: u16 = 3;

/// An NBD client with one request at a time.
pub(crate) struct Client(UnixStream);

impl Client {
    /// A client of a server. Panics with the server's output if the connection fails.
    pub(crate) fn connect(server: &mut Server) -> Client {
        Client::open(&server.path("n.sock")).unwrap_or_else(|error| {
            server.signal(Signal::KILL);
            panic!("no connection: {error}; {:?}", server.wait());
        })
    }

    fn open(socket: &Path) -> std::io::Result<Client> {
        let mut stream = UnixStream::connect(socket)?;
        stream.set_read_timeout(Some(Duration::from_secs(30)))?;
        let mut greeting = [0; 18];
        stream.read_exact(&mut greeting)?;
        // No zeroes after the size; the option that names the export, which has no reply.
        let mut hello = 3u32.to_be_bytes().to_vec();
        hello.extend(b"IHAVEOPT");
        hello.extend(1u32.to_be_bytes());
        hello.extend((b"small".len() as u32).to_be_bytes());
        hello.extend(b"small");
        stream.write_all(&hello)?;
        stream.read_exact(&mut [0; 10])?;
        Ok(Client(stream))
    }

    /// A request; `None` when the server is gone, or has failed it.
    pub(crate) fn request(&mut self, kind: u16, block: u64, data: &mut [u8]) -> Option<()> {
        let len = if kind == FLUSH { 0 } else { data.len() as u32 };
        let mut request = REQUEST.to_be_bytes().to_vec();
        request.extend([0u16, kind].into_iter().flat_map(u16::to_be_bytes));
        request.extend([7, block * BLOCK as u64].into_iter().flat_map(u64::to_be_bytes));
        request.extend(len.to_be_bytes());
        if kind == WRITE {
            request.extend(&*data);
        }
        self.0.write_all(&request).ok()?;
        let mut reply = [0; 16];
        self.0.read_exact(&mut reply).ok()?;
        if reply[4..8] != [0; 4] {
            return None;
        }
        if kind == READ { self.0.read_exact(data).ok() } else { Some(()) }
    }
}

/// A block that was written for the `number`th time in the test.
fn content(block: u64, number: u64) -> Vec<u8> {
    [block, number].into_iter().flat_map(u64::to_le_bytes).collect::<Vec<u8>>().repeat(BLOCK / 16)
}

/// What each block may hold: the number of the last write that is promised, and those of later ones.
pub(crate) struct Model(Vec<Vec<u64>>);

impl Model {
    /// Of a drive that holds zeros.
    pub(crate) fn new() -> Model {
        Model(vec![vec![0]; BLOCKS as usize])
    }

    /// Writes until the server is gone, or `most` times. `is_durable`: whether an acknowledged write is promised.
    fn write(&mut self, client: &mut Client, rng: &mut Rng, most: u64, promise: (&mut u64, bool)) {
        self.write_telling(client, rng, most, promise, |_| ());
    }

    /// The same. `tell` gets the number of each write before it.
    pub(crate) fn write_telling(
        &mut self,
        client: &mut Client,
        rng: &mut Rng,
        most: u64,
        (next, is_durable): (&mut u64, bool),
        mut tell: impl FnMut(u64),
    ) {
        for count in 0..most {
            tell(count);
            let block = rng.below(BLOCKS);
            *next += 1;
            let may = &mut self.0[block as usize];
            may.push(*next);
            if client.request(WRITE, block, &mut content(block, *next)).is_none() {
                return;
            }
            if is_durable {
                *may = vec![*next];
            } else if count % 64 == 63 && client.request(FLUSH, 0, &mut []).is_some() {
                self.0.iter_mut().for_each(|may| *may = vec![*may.last().unwrap()]);
            }
        }
    }

    /// Blocks with a write that was acknowledged, where each is durable.
    pub(crate) fn durable(&self) -> usize {
        self.0.iter().filter(|may| may.len() == 1 && may[0] > 0).count()
    }

    /// Writes until the server is killed, by another thread, after `after` writes. The last write is cut off.
    pub(crate) fn write_until_killed(
        &mut self,
        server: &Server,
        client: &mut Client,
        rng: &mut Rng,
        after: u64,
        promise: (&mut u64, bool),
    ) {
        let (tell, heard) = channel();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                // A client that is too slow is cut off as well.
                let _ = heard.recv_timeout(PATIENCE);
                server.signal(Signal::KILL);
            });
            self.write_telling(client, rng, u64::MAX, promise, |count| {
                if count == after {
                    tell.send(()).expect("the other thread waits");
                }
            });
        });
    }

    /// Holds that each block holds what it may.
    pub(crate) fn verify(&mut self, client: &mut Client) {
        for (block, may) in (0..).zip(&mut self.0) {
            let mut data = vec![0; BLOCK];
            client.request(READ, block, &mut data).expect("the block is read");
            let number = u64::from_le_bytes(data[8..16].try_into().unwrap());
            assert!(may.contains(&number), "block {block} holds {number}, and may hold {may:?}");
            assert!(number == 0 || data == content(block, number), "block {block} holds parts of several writes");
            *may = vec![number];
        }
    }
}

/// What fio writes while the server is killed: blocks with checksums and their places.
const LOAD: [&str; 7] =
    ["--rw=randwrite", "--bs=4k", "--iodepth=8", "--offset=40m", "--size=16m", "--verify=crc32c", "--do_verify=0"];
/// What it writes and flushes before: blocks with their places and the number of the kill.
const FLUSHED: [&str; 6] =
    ["--rw=randwrite", "--bs=4k", "--iodepth=16", "--offset=32m", "--size=8m", "--verify=pattern"];

fn pattern(kill: u64) -> String {
    format!("--verify_pattern=0x{:04x}%o", 0x1000 + kill)
}

/// fio writes and flushes its blocks before a kill, and those of its load before the first.
fn prepare(server: &Server, kill: u64) {
    if kill == 0 {
        fio(server, &[&LOAD[..], &["--end_fsync=1"]].concat());
    }
    fio(server, &[&FLUSHED[..], &[&pattern(kill), "--do_verify=0", "--end_fsync=1"]].concat());
}

/// After a kill: data that fio had flushed is present, and each block of its load holds one of the writes to it.
fn verify_fio(server: &Server, kill: u64) {
    fio(server, &[&FLUSHED[..], &[&pattern(kill), "--verify_only=1"]].concat());
    fio(server, &[&LOAD[..6], &["--verify_only=1"]].concat());
}

const OX: [&str; 4] = ["--set", "ftl.kind=ox_block", "--set", "ftl.over_provisioning=42.86%"];

fn serve(folder: tempfile::TempDir, more: &[&str]) -> Server {
    let fixed = ["--nbd", "unix:n.sock", "--check", "--json", "--store", "small=file:drive.nand", "--no-delay"];
    Server::start(folder, &[&SMALL[..], &fixed, more].concat())
}

fn kills(mode: &str, count: u64, more: &[&str]) {
    let (mut rng, mut next) = (Seed::new(1).child(mode).rng(), 0);
    let is_durable = ["capacitor", "through"].contains(&mode);
    let mode_set = format!("buffer.mode={mode}");
    let args = [&["--set", &mode_set], more].concat();
    let mut model = Model::new();
    let mut folder = tempfile::tempdir().unwrap();
    for kill in 0..count {
        let mut server = serve(folder, &args);
        let mut client = Client::connect(&mut server);
        model.verify(&mut client);
        if kill > 0 {
            verify_fio(&server, kill - 1);
        }
        prepare(&server, kill);
        let mut load = start_fio(&server, &[&LOAD[..], &["--time_based", "--runtime=300"]].concat());
        // Each write of a drive that syncs waits for the disk.
        let syncs = more.contains(&"--store-sync");
        let after = if syncs { 100 + rng.below(200) } else { 500 + rng.below(6_000) };
        model.write_until_killed(&server, &mut client, &mut rng, after, (&mut next, is_durable));
        server.wait();
        load.kill().unwrap();
        patience::wait(&mut load, "fio");
        // What fio has left on the socket of a server that is gone.
        std::fs::remove_file(server.path("n.sock")).unwrap();
        folder = server.keep_folder();
        let checked = nandscape(folder.path(), &["fsck", "drive.nand"]);
        assert!(checked.code == Some(0) && checked.out.contains("is sound"), "{checked:?}");
    }
    let mut server = serve(folder, &args);
    model.verify(&mut Client::connect(&mut server));
    verify_fio(&server, count - 1);
    // Data that fio writes to the present drive is read back.
    fio(&server, &["--rw=randwrite", "--bs=4k", "--iodepth=16", "--offset=32m", "--size=8m", "--verify=crc32c"]);
    // After a regular stop all data is present.
    model.write(&mut Client::connect(&mut server), &mut rng, 500, (&mut next, true));
    server.signal(Signal::TERM);
    let ended = server.wait();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let mut server = serve(server.keep_folder(), &args);
    model.verify(&mut Client::connect(&mut server));
    assert_eq!(server.end().code, Some(0));
}

pub(crate) fn count(default: u64) -> u64 {
    std::env::var("NANDSCAPE_TEST_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

#[test]
fn what_was_acknowledged_outlasts_kills() {
    kills("capacitor", count(3), &[]);
}

#[test]
fn what_was_flushed_outlasts_kills() {
    kills("volatile", count(1), &[]);
}

/// Through the redo log.
#[test]
fn what_was_acknowledged_outlasts_kills_with_syncs() {
    kills("capacitor", count(1), &["--store-sync"]);
    kills("capacitor", count(1), &[&OX[..], &["--store-sync"]].concat());
}

#[test]
fn what_was_acknowledged_outlasts_kills_without_a_cache() {
    kills("through", count(1), &["--store-sync"]);
}

/// Writes to the truncated file do not fail, so the server checks its length.
#[test]
fn a_file_that_is_cut_short_while_it_is_served_is_a_failed_run() {
    let args = [&SMALL[..], &["--nbd", "unix:n.sock", "--store", "small=file:drive.nand"]].concat();
    let server = Server::start(tempfile::tempdir().unwrap(), &args);
    let file = std::fs::OpenOptions::new().write(true).open(server.path("drive.nand")).unwrap();
    file.set_len(1 << 20).unwrap();
    let ended = server.end();
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.err.contains("another process has cut it short: "), "{}", ended.err);
}

#[test]
fn a_file_that_is_removed_while_it_is_served_is_a_failed_run_and_an_empty_one_is_no_new_drive() {
    let args = [&SMALL[..], &["--nbd", "unix:n.sock", "--store", "small=file:drive.nand"]].concat();
    let mut server = Server::start(tempfile::tempdir().unwrap(), &args);
    std::fs::remove_file(server.path("drive.nand")).unwrap();
    server.signal(Signal::TERM);
    let ended = server.wait();
    assert!(ended.code == Some(1) && ended.err.contains("another process has removed it"), "{ended:?}");
    let folder = server.keep_folder();
    std::fs::write(folder.path().join("drive.nand"), "").unwrap();
    for store in ["small=file:drive.nand", "file:drive.nand"] {
        let args = if store.contains('=') { &SMALL[..12] } else { &[] };
        let refused = refuse(folder.path(), &[args, &["--nbd", "unix:n.sock", "--store", store]].concat());
        for words in ["it has 0 bytes", "or remove it, and a new drive is made in its place"] {
            assert!(refused.code == Some(2) && refused.err.contains(words), "{words}: {refused:?}");
        }
    }
    assert_eq!(folder.path().join("drive.nand").metadata().unwrap().len(), 0);
}

/// The same with OX-Block, whose tables are in the flash.
#[test]
fn what_was_acknowledged_outlasts_kills_of_ox_block() {
    kills("capacitor", count(2), &OX);
}

#[test]
fn what_was_flushed_outlasts_kills_of_ox_block() {
    kills("volatile", count(2), &OX);
}

/// OX's own acknowledgement: a write ends when its data is programmed.
#[test]
fn what_was_flushed_outlasts_kills_of_ox_block_that_waits_for_programs() {
    kills("programmed", count(1), &OX);
}

#[test]
fn what_was_acknowledged_outlasts_kills_of_ox_block_without_a_cache() {
    kills("through", count(1), &[&OX[..], &["--store-sync"]].concat());
}

/// The same for a drive with two FTLs; the first has the namespace that the client uses.
#[test]
fn what_was_acknowledged_outlasts_kills_of_two_ftls() {
    let ox = "ftl={kind=\"ox_block\",over_provisioning=\"42.86%\"}";
    for (first, second) in [(ox, "name=\"other\""), ("name=\"first\"", ox)] {
        let parts = format!("ftl.parts=[{{channels=\"0\",{first}}},{{channels=\"1\",{second}}}]");
        kills("capacitor", count(1), &["--set", "capacity=128MiB", "--set", &parts]);
    }
}

/// The log and the map of a killed OX-Block, as they are in the file.
#[test]
fn log_and_map_of_a_killed_ox_block_are_shown() {
    // No checkpoint cuts the log meanwhile.
    let rare = "ftl.ox_block.checkpoint_interval=3600s";
    let args = [&OX[..], &["--set", "buffer.mode=through", "--set", rare]].concat();
    let mut server = serve(tempfile::tempdir().unwrap(), &args);
    let mut model = Model::new();
    let (mut rng, mut next) = (Seed::new(5).rng(), 0);
    let mut client = Client::connect(&mut server);
    model.write(&mut client, &mut rng, 30, (&mut next, true));
    client.request(WRITE, 77, &mut content(77, 1_000)).unwrap();
    server.signal(Signal::KILL);
    server.wait();
    let folder = server.keep_folder();
    let run = |words: &[&str]| nandscape(folder.path(), &[&["inspect", "drive.nand"], words].concat());
    let json = |words: &[&str]| -> serde_json::Value { serde_json::from_str(&run(words).out).unwrap() };
    let log = json(&["--log", "--json"]);
    let writes = log["records"]["user write"].as_u64().unwrap();
    assert_eq!(writes, 31, "{log}");
    let address = log["pages"].as_array().unwrap().last().unwrap()["address"].as_str().unwrap().to_owned();
    assert!(run(&["--log"]).out.contains(&address));
    let page = run(&["--page", &address]).out;
    assert!(page.contains("of the log, epoch"), "{page}");
    let (block, _) = address.rsplit_once('/').unwrap();
    let blocks = run(&["--blocks"]).out;
    let line = blocks.lines().find(|line| line.split_whitespace().nth(1) == Some(block)).unwrap();
    assert!(line.ends_with("log"), "{line}");
    let found = json(&["--lba", "616", "--json"]);
    assert_eq!((&found["logical_unit"], &found["in_buffer"]), (&77.into(), &false.into()));
    let place = found["on_flash"]["address"].as_str().unwrap();
    let page = run(&["--page", place]).out;
    let unit = found["on_flash"]["unit"].to_string();
    let is_it = |line: &str| line.split_whitespace().take(2).eq([&*unit, "77"]);
    assert!(page.lines().any(is_it), "{page}");
    let wrong = run(&["--lba", "999999999"]);
    assert!(wrong.code == Some(2) && wrong.err.contains("blocks of 512 bytes go from 0 to"), "{wrong:?}");
}

/// One part in the file and one in memory: the first outlasts a kill, and `inspect` prints where the other is.
#[test]
fn a_part_in_memory_is_no_part_of_the_file() {
    let parts = "ftl.parts=[{channels=\"0\",name=\"kept\"},{channels=\"1\",name=\"scratch\",store=\"ram\"}]";
    let args = ["--set", "capacity=128MiB", "--set", parts];
    let mut server = serve(tempfile::tempdir().unwrap(), &args);
    let mut model = Model::new();
    let (mut rng, mut next) = (Seed::new(4).rng(), 0);
    model.write(&mut Client::connect(&mut server), &mut rng, 300, (&mut next, true));
    server.signal(Signal::KILL);
    server.wait();
    let folder = server.keep_folder();
    let run = |words: &[&str]| nandscape(folder.path(), words);
    let checked = run(&["fsck", "drive.nand"]);
    assert!(checked.code == Some(0) && checked.out.contains("; channels 1 are in memory, and the file"), "{checked:?}");
    let shown = run(&["inspect", "drive.nand", "--blocks"]).out;
    assert!(shown.contains("part  scratch: an FTL of kind page with channels 1, in memory; it is new at"), "{shown}");
    let json: serde_json::Value = serde_json::from_str(&run(&["inspect", "drive.nand", "--json"]).out).unwrap();
    assert_eq!((&json["parts"][0]["part"], &json["parts"][1]["store"]), (&"kept".into(), &"ram".into()));
    let page = run(&["inspect", "drive.nand", "--part", "scratch", "--page", "0"]);
    assert!(page.code == Some(2) && page.err.contains("part scratch is in memory; the file"), "{page:?}");
    let mut server = serve(folder, &args);
    model.verify(&mut Client::connect(&mut server));
    assert_eq!(server.end().code, Some(0));
}

/// Two FTLs whose file has all that is needed to start them: their profile, and the owner of each channel. The
/// faults of the run before are not kept.
#[test]
fn a_drive_starts_from_its_file_alone() {
    let parts = "ftl.parts=[{channels=\"0\",ftl={kind=\"ox_block\",over_provisioning=\"42.86%\"}},{channels=\"1\"}]";
    let args = ["--set", "capacity=128MiB", "--set", parts, "--fault", "uncorrectable read nth=1000000000"];
    let mut server = serve(tempfile::tempdir().unwrap(), &args);
    let mut model = Model::new();
    let (mut rng, mut next) = (Seed::new(6).rng(), 0);
    model.write(&mut Client::connect(&mut server), &mut rng, 300, (&mut next, true));
    server.signal(Signal::KILL);
    server.wait();
    let alone = ["--nbd", "unix:n.sock", "--check", "--json", "--store", "small=file:drive.nand"];
    let mut server = Server::start(server.keep_folder(), &alone);
    model.verify(&mut Client::connect(&mut server));
    server.signal(Signal::TERM);
    let ended = server.wait();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let figures: serde_json::Value = serde_json::from_str(&ended.out).unwrap();
    assert_eq!(figures["drives"][0].get("faults"), None);
    assert_eq!(figures["drives"][0]["parts"].as_object().unwrap().len(), 2);
    for (more, problem) in
        [("file:other.nand", "--store file:other.nand holds no drive yet; give --drive"), ("ram", "yet")]
    {
        let refused = nandscape(server.folder.path(), &["serve", "--nbd", "unix:m.sock", "--store", more]);
        assert!(refused.code == Some(2) && refused.err.contains(problem), "{refused:?}");
    }
}

#[test]
fn options_that_a_drive_in_a_file_has_no_use_for_are_told() {
    let mut folder = tempfile::tempdir().unwrap();
    let told = ["--precondition has no effect on drive small", "--seed has no effect on drive small"];
    let runs = [(vec!["--seed", "7"], [false, false]), (vec![], [true, false]), (vec!["--seed", "7"], [true, false])];
    for (more, expected) in runs.into_iter().chain([(vec!["--seed", "8"], [true, true])]) {
        let mut server = serve(folder, &more);
        server.signal(Signal::TERM);
        let ended = server.wait();
        assert_eq!(told.map(|note| ended.err.contains(note)), expected, "{more:?}: {}", ended.err);
        folder = server.keep_folder();
    }
}

/// A new drive in a file has the requested life, and keeps it: stopped, killed, started from its file alone. Another life is
/// rejected.
#[test]
fn a_drive_in_a_file_keeps_its_life() {
    let life = ["--set", "wear.age=18months", "--set", "wear.shelf=3months", "--set", "wear.cycles=1500"];
    let shown = |folder: &Path| {
        let json = nandscape(folder, &["inspect", "drive.nand", "--json", "--blocks"]);
        let json: serde_json::Value =
            serde_json::from_str(&json.out).unwrap_or_else(|error| panic!("{error}: {json:?}"));
        (json["erases"]["least"].as_u64().unwrap(), json["age"].clone(), json["block_list"][0].clone())
    };
    let mut server = serve(tempfile::tempdir().unwrap(), &life);
    server.signal(Signal::TERM);
    assert_eq!(server.wait().code, Some(0));
    let folder = server.keep_folder();
    let (least, age, block) = shown(folder.path());
    let days = |age: &serde_json::Value| age["powered_s"].as_f64().unwrap() / 86_400.0;
    assert!(least >= 1_500 && (540.0..550.0).contains(&days(&age)), "{least}, {age}");
    assert!(age["data"]["hours_since_program"]["least"].as_f64().unwrap() > 2_000.0, "{age}");
    assert!(block["hours_since_program"].as_f64().unwrap() > 2_000.0, "{block}");
    let text = nandscape(folder.path(), &["inspect", "drive.nand"]).out;
    assert!(text.contains(" of 3000 rated") && text.contains(" days with power; data written "), "{text}");
    for (change, told) in [
        ("wear.cycles=2500", "wear.cycles is 1500 there, and 2500 in the profile"),
        ("wear.age=2years", "wear.age is \"18months\" there, and \"2years\" in the profile"),
        ("ftl.gc.victim=greedy", "its flash ages there, with wear.rber = \"tlc-72-layers\""),
    ] {
        let args = [&SMALL[..], &["--nbd", "unix:o.sock", "--store", "drive.nand", "--set", change]].concat();
        let ended = refuse(folder.path(), &args);
        assert!(ended.code == Some(2) && ended.err.contains(told), "{change}: {}", ended.err);
    }
    let alone = ["--nbd", "unix:n.sock", "--store", "small=file:drive.nand"];
    let mut server = Server::start(folder, &alone);
    server.signal(Signal::KILL);
    server.wait();
    let mut server = serve(server.keep_folder(), &life);
    server.signal(Signal::TERM);
    assert_eq!(server.wait().code, Some(0));
    let folder = server.keep_folder();
    let (least_now, age_now, _) = shown(folder.path());
    assert!(least_now == least && days(&age_now) >= days(&age) && days(&age_now) < days(&age) + 0.1, "{age_now}");
    let checked = nandscape(folder.path(), &["fsck", "drive.nand"]);
    assert_eq!(checked.code, Some(0), "{checked:?}");
}

#[test]
fn a_file_that_is_not_the_drives_is_refused_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let server = serve(folder, &[]);
    let path = server.path("drive.nand");
    let args = |more: &[&'static str]| [&SMALL[..], &["--nbd", "unix:o.sock"], more].concat();
    let ended = refuse(server.folder.path(), &args(&["--store", "drive.nand"]));
    assert_eq!(ended.code, Some(2));
    assert!(ended.err.contains("--store drive.nand: another process has the file open"), "{}", ended.err);
    let mut server = server;
    server.signal(Signal::TERM);
    server.wait();
    let folder = server.keep_folder();
    let refused = |more: &[&'static str], expected: &str| {
        let ended = refuse(folder.path(), &args(more));
        assert!(ended.code == Some(2) && ended.err.contains(expected), "{more:?}: {}", ended.err);
    };
    let modified = || path.metadata().unwrap().modified().unwrap();
    let before = modified();
    refused(
        &["--store", "drive.nand", "--set", "capacity=128MiB"],
        "it holds another drive: capacity is \"64MiB\" there",
    );
    refused(&["--store", "drive.nand", "--set", "buffer.mode=through"], "buffer.mode is \"capacitor\" there");
    refused(&["--store", "drive.nand", "--record", "r"], "drives in files cannot be recorded");
    refused(&["--store", "other=x"], "--store other=x: there is no such drive; the only one is small");
    refused(&["--store", "drive.nand", "--chrome-trace", "./drive.nand"], "would overwrite --store drive.nand");
    refused(&["--store", "new.nand", "--chrome-trace", "new.nand"], "would overwrite --store new.nand");
    assert_eq!(modified(), before);
    let made = Command::new("mkfifo").arg(folder.path().join("pipe")).status().unwrap();
    assert!(made.success());
    for command in ["fsck", "inspect"] {
        let ended = nandscape(folder.path(), &[command, "pipe"]);
        assert!(
            ended.code == Some(2) && ended.err.contains("it is a pipe (FIFO); a regular file is valid"),
            "{ended:?}"
        );
    }
    std::fs::write(folder.path().join("letter"), "Dear reader").unwrap();
    refused(&["--store", "letter"], "--store letter: it is no store of a drive");
    assert_eq!(nandscape(folder.path(), &["fsck", "letter"]).code, Some(2));
    look_at(folder.path());
    // Both superblocks.
    let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    for copy in 0..2 {
        std::os::unix::fs::FileExt::write_all_at(&file, &[0xff; 8], (copy << 16) + 40).unwrap();
    }
    let damaged = nandscape(folder.path(), &["fsck", "drive.nand"]);
    assert!(damaged.code == Some(1) && damaged.err.contains("its superblock is damaged"), "{damaged:?}");
}

/// What `inspect` shows of a drive that was filled and closed.
fn look_at(folder: &Path) {
    let shown = nandscape(folder, &["inspect", "drive.nand"]);
    for expected in ["64MiB", "2 channels x 4 dies", "closed in order", "1 starts", "64MiB of data on flash"] {
        assert!(shown.out.contains(expected), "{expected}: {}", shown.out);
    }
    let json: serde_json::Value =
        serde_json::from_str(&nandscape(folder, &["inspect", "drive.nand", "--json"]).out).unwrap();
    assert_eq!((&json["map"]["on_flash"], &json["closed_in_order"]), (&16_384.into(), &true.into()));
    let blocks = nandscape(folder, &["inspect", "drive.nand", "--blocks"]).out;
    assert!(blocks.lines().any(|line| line.contains("1/3/1/0")) && blocks.contains(" full "), "{blocks}");
    let page = nandscape(folder, &["inspect", "drive.nand", "--page", "0/0/0/0/0"]).out;
    assert!(page.contains("page 0 at 0/0/0/0/0: programmed") && page.contains("logical unit"), "{page}");
    let wrong = nandscape(folder, &["inspect", "drive.nand", "--page", "2/0/0/0/0"]);
    assert!(wrong.code == Some(2) && wrong.err.contains("channel 2 is not there; from 0 to 1"), "{wrong:?}");
    assert_eq!(nandscape(folder, &["fsck", "drive.nand"]).code, Some(0));
}

/// A full disk, emulated by a limit on the length of files: writes fail, nothing crashes, and written data is present.
#[test]
fn a_full_disk_fails_writes_and_the_server_says_so() {
    full_disk(&[]);
    full_disk(&OX);
}

fn full_disk(more: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let fixed = ["--nbd", "unix:n.sock", "--json", "--store", "small=file:drive.nand", "--no-delay"];
    let mut model = Model::new();
    let (mut rng, mut next) = (Seed::new(2).rng(), 0);
    // The first start makes the file, which no limit would let it make.
    let mut server = serve(folder, more);
    server.signal(Signal::TERM);
    server.wait();
    let folder = server.keep_folder();
    let len = std::fs::metadata(folder.path().join("drive.nand")).unwrap().len();
    let limit = len - (40 << 20);
    let mut server = Server::start_limited(folder, &[&SMALL[..], &fixed, more].concat(), limit);
    let mut client = Client::connect(&mut server);
    model.write(&mut client, &mut rng, 100_000, (&mut next, true));
    assert!(next < 100_000, "the disk was never full");
    server.signal(Signal::TERM);
    let ended = server.wait();
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.err.contains("the file of drive small cannot be written"), "{}", ended.err);
    let mut server = serve(server.keep_folder(), more);
    model.verify(&mut Client::connect(&mut server));
    assert_eq!(server.end().code, Some(0));
}
