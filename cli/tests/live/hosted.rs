//! `serve --over ftl`: an FTL over an open-channel drive, a model of the same server or a remote drive; and `--store
//! nvme-tcp://HOST:PORT/NQN`, its old name.

use rustix::process::Signal;
use serde_json::Value;

use crate::server::{Ended, SMALL, Server, number, refuse, sim};
use crate::tools::fio;

/// An open-channel drive of 96 MiB: 4 parallel units with 24 chunks of a MiB.
const CHUNKS: [&str; 15] = [
    "--drive",
    "dfc-mlc",
    "--set",
    "geometry.channels=2",
    "--set",
    "geometry.dies_per_channel=2",
    "--set",
    "geometry.blocks_per_plane=24",
    "--set",
    "geometry.pages_per_block=32",
    "--set",
    "geometry.factory_bad_blocks=0%",
    "--set",
    "buffer.mode=through",
    "--no-delay",
];

fn first(more: &[&str]) -> Server {
    let here = ["--nvme-tcp", "127.0.0.1:0", "--check", "--json"];
    Server::start(tempfile::tempdir().unwrap(), &[&CHUNKS[..], more, &here].concat())
}

/// The FTL over it.
fn second(url: &str, more: &[&str]) -> Server {
    let ftl = ["--drive", "small=default", "--set", "buffer.size=1MiB", "--store", url, "--no-delay"];
    let here = ["--nbd", "unix:n.sock", "--check", "--json"];
    Server::start(tempfile::tempdir().unwrap(), &[&ftl[..], more, &here].concat())
}

fn figures(ended: &Ended) -> Value {
    assert_eq!(ended.code, Some(0), "{ended:?}");
    serde_json::from_str(&ended.out).expect("one JSON object")
}

#[test]
fn fio_verifies_an_ftl_whose_flash_is_an_open_channel_drive() {
    let first = first(&[]);
    let url = first.url().to_owned();
    // The second server begins with the chunks as the first has left them.
    for moves in ["copy", "read-write"] {
        let server = second(&url, &["--store-moves", moves, "--store-reset"]);
        let writes = ["--rw=randwrite", "--bs=4k", "--iodepth=16", "--size=24m", "--io_size=120m", "--norandommap=1"];
        // Two writes of a block in flight may end in any order.
        fio(&server, &[&writes[..], &["--serialize_overlap=1", "--verify=crc32c"]].concat());
        fio(&server, &["--rw=randtrim", "--bs=64k", "--offset=32m", "--size=8m"]);
        let ended = server.end();
        let told = format!("drive small is an FTL of this process over {url}: 71MiB in blocks of 512 bytes");
        assert!(ended.err.contains(&told), "{}", ended.err);
        let figures = figures(&ended);
        let counter = |name: &str| number(&figures, &format!("/drives/0/counters/{name}"));
        // Of 120 MiB in 96 MiB of flash, some are moved.
        assert!(counter("flash_chunk_resets_total") > 20.0 && counter("gc_moved_bytes_total") > 0.0, "{figures:#}");
        assert_eq!(counter("flash_copied_bytes_total") > 0.0, moves == "copy", "{figures:#}");
        let programmed = counter("flash_link_written_bytes_total") + counter("flash_copied_bytes_total");
        assert_eq!(counter("flash_programmed_bytes_total"), programmed, "{figures:#}");
    }
    let folder = tempfile::tempdir().unwrap();
    let ended = refuse(folder.path(), &["--drive", "default", "--store", &url, "--nbd", "unix:n.sock"]);
    let told = "hold data; --store-reset resets them";
    assert!(ended.code == Some(2) && ended.err.contains(told), "{ended:?}");
    assert_eq!(first.end().code, Some(0));
}

#[test]
fn fio_verifies_the_layer_ftl_over_a_remote_drive_and_over_a_model() {
    let first = first(&[]);
    let drive = format!("small={}", first.url());
    let here = ["--nbd", "unix:n.sock", "--check", "--json", "--no-delay"];
    let remote = ["--drive", &drive, "--over", "ftl,buffer.size=1MiB,reset=true"];
    let named: Vec<&str> = CHUNKS.iter().copied().filter(|word| *word != "--no-delay").collect();
    let named = [&["--drive", "small=dfc-mlc"], &named[2..]].concat();
    let model = [&named[..], &["--over", "ftl", "--set", "host_ftl.buffer.size=1MiB"]].concat();
    for (drive, of) in [(&remote[..], first.url()), (&model[..], "dfc-mlc")] {
        let over = [drive, &["--over", "block", "--over", "cache,memory=1MiB"], &here].concat();
        let server = Server::start(tempfile::tempdir().unwrap(), &over);
        fio(&server, &["--rw=randwrite", "--bs=4k", "--iodepth=8", "--size=8m", "--verify=crc32c"]);
        let ended = server.end();
        let told = format!("drive small is an FTL of this process over {of}: 71MiB in blocks of 512 bytes");
        assert!(ended.err.contains(&told), "{}", ended.err);
        let figures = figures(&ended);
        let counter = |name: &str| number(&figures, &format!("/drives/0/counters/{name}"));
        assert!(counter("flash_link_written_bytes_total") > 0.0, "{figures:#}");
        assert!(counter("cache_hits_total") + counter("cache_loaded_pages_total") > 0.0, "{figures:#}");
    }
    assert_eq!(first.end().code, Some(0));
}

/// The drives of a server differ in their NQNs, which their hosts know them by, also where they have equal FTLs.
#[test]
fn drives_with_equal_ftls_of_the_host_are_served_together() {
    let flash = [first(&[]), first(&[])];
    let [a, b] = [("a", &flash[0]), ("b", &flash[1])].map(|(name, of)| format!("{name}={}", of.url()));
    let remote = ["--drive", &*a, "--drive", &*b, "--no-delay"];
    let models = [&["--drive", "a=dfc-mlc", "--drive", "b=dfc-mlc"], &CHUNKS[2..]].concat();
    for drives in [&remote[..], &models] {
        let over = ["--over", "ftl,buffer.size=1MiB", "--nvme-tcp", "127.0.0.1:0"];
        let server = Server::start(tempfile::tempdir().unwrap(), &[drives, &over].concat());
        let (a, b) = (server.url().to_owned(), server.next_place("serving b at "));
        let nqn = |url: &str| url.rsplit('/').next().unwrap().to_owned();
        assert_ne!(nqn(&a), nqn(&b), "{a} and {b}");
        assert_eq!(server.end().code, Some(0));
    }
    flash.into_iter().for_each(|server| assert_eq!(server.end().code, Some(0)));
}

/// A recorded mirror of two FTLs has the traffic of both in its figures, and that of each in its parts.
#[test]
fn the_figures_of_a_recorded_array_have_the_ftls_below_it() {
    let drive: Vec<&str> = ["--drive", "small=dfc-mlc"].into_iter().chain(CHUNKS[2..].iter().copied()).collect();
    let over = ["--over", "ftl,buffer.size=1MiB", "--over", "small=raid1:2", "--record", "run.rec"];
    let here = ["--nbd", "unix:n.sock", "--check", "--json"];
    let server = Server::start(tempfile::tempdir().unwrap(), &[&drive[..], &over, &here].concat());
    fio(&server, &["--rw=randwrite", "--bs=4k", "--iodepth=8", "--size=8m", "--verify=crc32c"]);
    let figures = figures(&server.end());
    for counter in ["flash_link_written_bytes_total", "host_written_bytes_total"] {
        let of = |place: &str| number(&figures, &format!("/drives/0/{place}/{counter}"));
        let each = ["parts/small-0", "parts/small-1"].map(of);
        assert!(each[0] >= 8.0 * 1_048_576.0 / 2.0 && each[1] > 0.0, "{counter}: {figures:#}");
        assert_eq!(of("counters"), each[0] + each[1], "{counter}: {figures:#}");
    }
}

/// Over a model of the server, the state of the drive and of its FTL is saved together, with the pages of a cache above.
#[test]
fn an_ftl_over_a_model_is_saved_and_served_again_with_its_data() {
    let over = ["--over", "ftl,buffer.size=1MiB", "--over", "cache,memory=1MiB", "--nbd", "unix:n.sock", "--check"];
    let drive: Vec<&str> = ["--drive", "small=dfc-mlc"].into_iter().chain(CHUNKS[2..].iter().copied()).collect();
    let writes = ["--rw=randwrite", "--bs=4k", "--iodepth=8", "--size=8m", "--verify=crc32c"];
    let server =
        Server::start(tempfile::tempdir().unwrap(), &[&drive[..], &over, &["--save-state", "used.state"]].concat());
    fio(&server, &[&writes[..], &["--do_verify=0"]].concat());
    let (ended, folder) = server.end_keeping();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let server = Server::start(folder, &[&drive[..], &over, &["--from-state", "used.state"]].concat());
    fio(&server, &[&writes[..], &["--verify_only"]].concat());
    let (ended, folder) = server.end_keeping();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let simulated = ["--from-state", "used.state", "--rw", "randread", "--io-count", "300", "--json", "--check"];
    let report = figures(&sim(folder.path(), &simulated));
    assert_eq!(number(&report, "/requests"), 300.0, "{report:#}");
    let state = report["initial_state"].as_str().unwrap();
    assert!(state.contains("then served to hosts, which wrote 8MiB"), "{state}");
}

/// The recording of an FTL over a model has the drive and the layers. Its replay has the same events, to the byte.
#[test]
fn the_recording_of_an_ftl_over_a_model_replays_to_the_byte() {
    let over = ["--over", "low=ftl,buffer.size=1MiB", "--nbd", "unix:n.sock", "--record", "run.rec", "--check"];
    // Its name is that of the drive that clients ask for.
    let drive: Vec<&str> =
        ["--drive", "small=dfc-mlc"].into_iter().chain(CHUNKS[2..CHUNKS.len() - 1].iter().copied()).collect();
    let server = Server::start(
        tempfile::tempdir().unwrap(),
        &[&drive[..], &over, &["--precondition", "full", "--chrome-trace", "live.json"]].concat(),
    );
    fio(&server, &["--rw=randrw", "--bs=4k", "--iodepth=8", "--size=8m"]);
    let (ended, folder) = server.end_keeping();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let again = ["--replay", "run.rec", "--chrome-trace", "again.json", "--json", "--check"];
    let report = figures(&sim(folder.path(), &again));
    let trace = |name: &str| std::fs::read(folder.path().join(name)).unwrap();
    assert!(trace("live.json") == trace("again.json"), "the traces differ");
    let ftl = &report["chain"][0];
    assert!(ftl["layer"] == "low" && ftl["ftl"]["precondition"] == "full", "{ftl:#}");
    let layers = report["layers_us"]["read"].as_object().unwrap();
    let sum: f64 = layers.values().filter_map(Value::as_f64).sum();
    assert!((sum - number(&report, "/latency_us/read/mean")).abs() < 1e-6, "{layers:?}");
    assert!(layers["low"].as_f64() > Some(0.0) && layers["drive"].as_f64() > Some(0.0), "{layers:?}");
}

#[test]
fn fio_verifies_a_mirror_of_two_ftls_under_a_page_cache() {
    let flash = [first(&[]), first(&[])];
    let stores = flash.each_ref().map(Server::url);
    let (a, b) = (format!("a={}", stores[0]), format!("b={}", stores[1]));
    let drives = ["--drive", "a=default", "--store", &a, "--drive", "b=default", "--store", &b];
    let array = ["--array", "small=raid1:2", "--over", "cache,memory=4MiB", "--set", "buffer.size=1MiB", "--no-delay"];
    let here = ["--nbd", "unix:n.sock", "--check", "--json"];
    let server = Server::start(tempfile::tempdir().unwrap(), &[&drives[..], &array, &here].concat());
    fio(&server, &["--rw=randwrite", "--bs=4k", "--iodepth=8", "--size=8m", "--verify=crc32c"]);
    let figures = figures(&server.end());
    let counter = |name: &str| number(&figures, &format!("/drives/0/counters/{name}"));
    assert!(
        counter("array_writes_sent_total") >= 2.0 * 2_048.0 && counter("array_members_missing") == 0.0,
        "{figures:#}"
    );
    assert!(counter("cache_hits_total") + counter("cache_loaded_pages_total") > 0.0, "{figures:#}");
    flash.into_iter().for_each(|server| assert_eq!(server.end().code, Some(0)));
}

/// Two FTLs would write into the same chunks. An FTL that has ended, or was killed, does not block another.
#[test]
fn a_drive_has_one_ftl_at_a_time() {
    let first = first(&[]);
    let url = first.url().to_owned();
    let mut server = second(&url, &[]);
    let folder = tempfile::tempdir().unwrap();
    let told = "another server has an FTL over the drive";
    for more in [&[][..], &["--store-reset"]] {
        let args = [&["--drive", "default", "--store", &url, "--nbd", "unix:n.sock"], more].concat();
        let ended = refuse(folder.path(), &args);
        assert!(ended.code == Some(2) && ended.err.contains(told), "{args:?}: {ended:?}");
    }
    fio(&server, &["--rw=write", "--bs=64k", "--size=4m", "--verify=crc32c"]);
    server.signal(Signal::KILL);
    server.wait();
    // Two drives of one server would be two FTLs, too.
    let twice = [
        "--drive",
        "a=default",
        "--store",
        &format!("a={url}"),
        "--drive",
        "b=default",
        "--store",
        &format!("b={url}"),
    ];
    let ended = refuse(folder.path(), &[&twice[..], &["--store-reset", "--nbd", "unix:n.sock"]].concat());
    assert!(ended.code == Some(2) && ended.err.contains(told), "{ended:?}");
    let next = second(&url, &["--store-reset"]);
    fio(&next, &["--rw=write", "--bs=64k", "--size=4m", "--verify=crc32c"]);
    assert_eq!(next.end().code, Some(0));
    assert_eq!(first.end().code, Some(0));
}

#[test]
fn an_ftl_without_its_flash_fails_commands_and_ends() {
    let first = first(&[]);
    let url = format!("{}?patience=1", first.url());
    let mut server = second(&url, &[]);
    assert_eq!(first.end().code, Some(0));
    assert!(server.is_running());
    // What is in its buffer has nowhere to go.
    let mut command = std::process::Command::new("fio");
    let uri = format!("--uri={}", server.uri());
    command.args(["--name=a", "--ioengine=nbd", &uri, "--rw=write", "--bs=64k", "--size=8m", "--fsync_on_close=1"]);
    let ended = crate::server::run(command);
    assert_ne!(ended.code, Some(0), "{ended:?}");
    let ended = server.end();
    assert!(ended.err.contains("is lost"), "{ended:?}");
}

#[test]
fn what_cannot_have_such_flash_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let none = "nvme-tcp://127.0.0.1:1/nqn.x";
    let block = Server::start(tempfile::tempdir().unwrap(), &[&SMALL[..], &["--nvme-tcp", "127.0.0.1:0"]].concat());
    let write_back = first(&["--set", "buffer.mode=register"]);
    let over = |url: &'static str| ["--drive", "default", "--store", url];
    for (args, words) in [
        (&over(none)[..], "--store default=nvme-tcp://127.0.0.1:1/nqn.x: "),
        (&["--drive", "default", "--store", block.url()], "it is no open-channel drive"),
        (&["--drive", "default", "--store", write_back.url()], "buffer.mode = \"through\" has none"),
        (&[&over(none)[..], &["--record", "r"]].concat(), "--record: the flash of drive \"default\" is nvme-tcp://"),
        (&[&over(none)[..], &["--fault", "slow"]].concat(), "faults are set where it is served"),
        (&[&over(none)[..], &["--precondition", "full"]].concat(), "an FTL over it begins empty"),
        (&["--drive", "default", "--store-reset"], "--store-reset: no drive has its flash in an open-channel drive"),
        (&["--drive", none, "--store", none], "its data is where it is served"),
        (&["--drive", "default", "--over", "ftl"], "--over: drive default has its own FTL"),
        (&["--drive", block.url(), "--over", "ftl"], "it is no open-channel drive"),
        (&["--drive", "dfc-mlc", "--over", "cache"], "drive dfc-mlc has chunks"),
        (&[&CHUNKS[..], &["--over", "ftl", "--store", "file:x"]].concat(), "an open-channel drive is in no file"),
        (&over("nbd+unix:///x?socket=n.sock"), "nbd+unix:// names no flash"),
        (&over("nvme-tcp://127.0.0.1/nqn.x"), "host and port are missing"),
    ] {
        let ended = refuse(folder.path(), &[&["--nbd", "unix:n.sock"], args].concat());
        assert!(ended.code == Some(2) && ended.err.contains(words), "{args:?}: {ended:?}");
    }
}
