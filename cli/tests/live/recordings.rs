//! Recorded and replayed, and what is no recording.

use crate::server::{SMALL, Server, nandscape, number, refuse, sim};
use crate::tools::fio;

const WORK: [&str; 6] =
    ["--rw=randrw", "--bsrange=4k-64k", "--iodepth=16", "--size=64m", "--io_size=80m", "--fsync=64"];

/// A recorded run of fio: its folder, with the recording and the trace in it, and its figures.
fn recorded() -> (tempfile::TempDir, serde_json::Value) {
    let mut server = Server::small(&["--record", "run.rec", "--chrome-trace", "live.json", "--out", "page"]);
    fio(&server, &WORK);
    fio(&server, &["--rw=randtrim", "--bs=64k", "--size=8m"]);
    server.signal(rustix::process::Signal::TERM);
    let ended = server.wait();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let folder = std::mem::replace(&mut server.folder, tempfile::tempdir().unwrap());
    (folder, serde_json::from_str(&ended.out).unwrap())
}

#[test]
fn a_recorded_run_of_fio_replays_to_the_byte_and_half_of_it_as_far_as_it_goes() {
    let (folder, figures) = recorded();
    let file = |name: &str| std::fs::read(folder.path().join(name)).unwrap();
    let again = sim(folder.path(), &["--replay", "run.rec", "--chrome-trace", "again.json", "--json", "--check"]);
    assert_eq!(again.code, Some(0), "{again:?}");
    assert!(file("live.json") == file("again.json"), "the traces differ");
    let report: serde_json::Value = serde_json::from_str(&again.out).unwrap();
    for (live, replayed) in [
        ("/drives/0/reads/latency_us/mean", "/latency_us/read/mean"),
        ("/drives/0/reads/latency_us/max", "/latency_us/read/max"),
        ("/drives/0/writes/latency_us/mean", "/latency_us/write/mean"),
        ("/drives/0/writes/count", "/latency_us/write/count"),
        ("/drives/0/flushes/count", "/latency_us/flush/count"),
        ("/drives/0/flushes/latency_us/max", "/latency_us/flush/max"),
        ("/drives/0/counters/gc_blocks_total", "/gc/blocks"),
    ] {
        assert_eq!(number(&figures, live), number(&report, replayed), "{live}");
    }
    assert!(number(&report, "/latency_us/flush/count") > 0.0);
    // The report of the server itself, marked as one in wall time.
    let page: serde_json::Value = serde_json::from_slice(&file("page/report.json")).unwrap();
    for figure in
        ["/requests", "/latency_us/read/p99", "/latency_us/flush/max", "/breakdown_us/write/queue", "/gc/blocks"]
    {
        assert_eq!(number(&page, figure), number(&report, figure), "{figure}");
    }
    assert!(page["notes"][0].as_str().unwrap().contains("clock on the wall"), "{}", page["notes"]);
    assert!(String::from_utf8(file("page/report.html")).unwrap().contains("clock on the wall"));
    assert!(!page["details"]["series"]["t_s"].as_array().unwrap().is_empty());
    assert!(number(&report, "/gc/blocks") > 0.0);

    let whole = file("run.rec");
    std::fs::write(folder.path().join("torn.rec"), &whole[..whole.len() / 2]).unwrap();
    let torn = sim(folder.path(), &["--replay", "torn.rec", "--json", "--check"]);
    assert_eq!(torn.code, Some(0), "{torn:?}");
    assert!(torn.err.contains("the recording breaks off"), "{}", torn.err);
    let part: serde_json::Value = serde_json::from_str(&torn.out).unwrap();
    assert!(number(&part, "/requests") < number(&report, "/requests"));

    // Data, and a length, which must not be treated as the end of the file.
    let second_chunk = 8 + 16 + u32::from_le_bytes(*whole[8..].first_chunk().unwrap()) as usize;
    for place in [whole.len() / 2, second_chunk + 2] {
        let mut damaged = whole.clone();
        damaged[place] ^= 0x40;
        std::fs::write(folder.path().join("damaged.rec"), &damaged).unwrap();
        let ended = sim(folder.path(), &["--replay", "damaged.rec"]);
        assert_eq!((ended.code, &ended.out as &str), (Some(2), ""), "{place}: {ended:?}");
        assert!(ended.err.contains("damaged.rec: damaged at record "), "{}", ended.err);
    }
}

/// Drives that have much to do when they are shut down: both traces end before that.
#[test]
fn a_replay_has_the_events_of_the_run_in_each_mode() {
    const OX: [&str; 4] = ["--set", "ftl.kind=ox_block", "--set", "ftl.over_provisioning=42.86%"];
    for (mode, more) in [("volatile", &OX[..]), ("capacitor", &OX), ("capacitor", &[])] {
        let mode = format!("buffer.mode={mode}");
        let record = ["--record", "run.rec", "--chrome-trace", "live.json", "--set", &mode];
        let mut server = Server::small(&[&record[..], more].concat());
        fio(&server, &["--rw=randwrite", "--bs=4k", "--iodepth=4", "--size=2m"]);
        server.signal(rustix::process::Signal::TERM);
        let ended = server.wait();
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let again = sim(server.folder.path(), &["--replay", "run.rec", "--chrome-trace", "again.json", "--json"]);
        assert_eq!(again.code, Some(0), "{again:?}");
        // Most of the flash's work follows the last completion.
        let report: serde_json::Value = serde_json::from_str(&again.out).unwrap();
        let busy = number(&report, "/busy/die/max");
        assert!((f64::MIN_POSITIVE..=1.0).contains(&busy), "{mode} {more:?}: busy for {busy} of the time");
        let [live, again] = ["live.json", "again.json"].map(|name| std::fs::read(server.path(name)).unwrap());
        assert!(live == again, "{mode} {more:?}: the traces differ");
    }
}

#[test]
fn a_drive_under_layers_is_recorded_with_them_and_replays_to_the_byte() {
    let layers = ["--over", "block,depth=8,deadline=50ms", "--over", "top=cache,memory=4MiB"];
    let files = ["--record", "run.rec", "--chrome-trace", "live.json"];
    let mut server = Server::small(&[&layers[..], &files].concat());
    fio(&server, &["--rw=randrw", "--bs=4k", "--iodepth=8", "--size=16m", "--io_size=16m"]);
    server.signal(rustix::process::Signal::TERM);
    let ended = server.wait();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let figures: serde_json::Value = serde_json::from_str(&ended.out).unwrap();
    let folder = server.keep_folder();
    let again = sim(folder.path(), &["--replay", "run.rec", "--chrome-trace", "again.json", "--json", "--check"]);
    assert_eq!(again.code, Some(0), "{again:?}");
    let file = |name: &str| std::fs::read(folder.path().join(name)).unwrap();
    assert!(file("live.json") == file("again.json"), "the traces differ");
    let report: serde_json::Value = serde_json::from_str(&again.out).unwrap();
    assert_eq!((&report["chain"][0]["layer"], &report["chain"][1]["layer"]), (&"block".into(), &"top".into()));
    for (live, replayed) in [
        ("/drives/0/reads/latency_us/mean", "/latency_us/read/mean"),
        ("/drives/0/writes/count", "/latency_us/write/count"),
        ("/drives/0/counters/cache_hits_total", "/chain/1/cache/hits"),
    ] {
        assert_eq!(number(&figures, live), number(&report, replayed), "{live}");
    }
    let text = sim(folder.path(), &["--replay", "run.rec", "--set", "top.memory=1MiB"]);
    assert!(text.code == Some(0) && text.out.contains("top over block:\n"), "{text:?}");
}

/// At a depth of one, fio writes its only buffer again and again. At a greater depth the order in which buffers return decides how
/// far apart equal data lies.
#[test]
fn a_recording_takes_little_room_where_data_repeats() {
    let mut server = Server::small(&["--record", "run.rec"]);
    fio(&server, &["--rw=write", "--bs=64k", "--iodepth=1", "--size=16m"]);
    server.signal(rustix::process::Signal::TERM);
    let ended = server.wait();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let figures: serde_json::Value = serde_json::from_str(&ended.out).unwrap();
    let recorded = server.path("run.rec").metadata().unwrap().len() as f64;
    let written = number(&figures, "/drives/0/writes/bytes");
    assert!(recorded < 0.1 * written, "{recorded} bytes for {written} bytes written");
}

#[test]
fn what_is_no_recording_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| std::fs::write(folder.path().join(name), bytes).unwrap();
    write("empty", b"");
    write("garbage", &[0x5a; 10_000]);
    write("magic", b"NSCREC8\n");
    write("old", b"NSCREC5\n and what follows");
    // A record with a header that is not ours: its kind, length and body. Before it, the header of a chunk: its length
    // twice, its checksum, and that of the first three and of the chunk's number.
    let text = b"{\"color\": \"blue\"}";
    let record = [&[0, text.len() as u8][..], text].concat();
    let lengths = [(record.len() as u32).to_le_bytes(); 2].concat();
    let chunk = [&lengths[..], &crc32(&record).to_le_bytes()].concat();
    let check = crc32(&[&chunk[..], &0u32.to_le_bytes()].concat()).to_le_bytes();
    write("foreign", &[&b"NSCREC8\n"[..], &chunk, &check, &record].concat());
    for (file, words) in [
        ("missing", "missing: No such file"),
        ("empty", "empty: not a recording"),
        ("garbage", "garbage: not a recording"),
        ("magic", "the header is missing"),
        ("old", "old: a recording of format 5; this program reads format 8"),
        ("foreign", "foreign: the header cannot be read"),
        (".", "directory"),
    ] {
        let ended = sim(folder.path(), &["--replay", file]);
        assert_eq!((ended.code, &ended.out as &str), (Some(2), ""), "{file}: {ended:?}");
        assert!(ended.err.contains(words), "{file} does not say {words:?}: {}", ended.err);
    }
}

fn crc32(bytes: &[u8]) -> u32 {
    bytes.iter().fold(!0, |sum, byte| {
        (0..8).fold(sum ^ u32::from(*byte), |sum: u32, _| sum >> 1 ^ if sum & 1 == 1 { 0xedb8_8320 } else { 0 })
    }) ^ !0
}

#[test]
fn a_place_that_takes_no_recording_is_refused_before_anything_is_served() {
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink("nothing", folder.path().join("link")).unwrap();
    for (place, words) in [
        (&["--record", "link"][..], "--record link: it is a symbolic link; name the file that it leads to, nothing"),
        (&["--record", "no/such/folder/run.rec"], "--record no/such/folder/run.rec: No such file"),
        (&["--record", "."], "--record .: it is a directory; name a file in it"),
        (&["--chrome-trace", "no/such/folder/run.json"], "--chrome-trace: cannot write no/such/folder/run.json"),
        (&["--record", "run", "--chrome-trace", "run"], "are the same file; name two"),
    ] {
        let mut args = SMALL.to_vec();
        args.extend(["--nbd", "unix:n.sock"]);
        args.extend(place);
        let ended = refuse(folder.path(), &args);
        assert_eq!((ended.code, &ended.out as &str), (Some(2), ""), "{place:?}: {ended:?}");
        assert!(ended.err.contains(words), "{place:?} does not say {words:?}: {}", ended.err);
        assert!(!folder.path().join("n.sock").exists());
    }
}

/// Records some commands of `bench` at a place of the small drive, without the data of writes; the folder and the live trace.
fn recorded_by_bench(more: &[&str], url: impl FnOnce(&Server) -> String) -> tempfile::TempDir {
    let record = ["--record", "run.rec", "--record-data", "none", "--chrome-trace", "live.json"];
    let server = Server::small(&[&record[..], more].concat());
    let url = url(&server);
    let mix = ["--rw", "randrw", "--bs", "4k", "--iodepth", "8", "--io-count", "3000"];
    let ended = nandscape(server.folder.path(), &[&["bench", "--to", &url, "--json"], &mix[..]].concat());
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let mut server = server;
    server.signal(rustix::process::Signal::TERM);
    let ended = server.wait();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    server.keep_folder()
}

fn json(folder: &tempfile::TempDir, args: &[&str]) -> serde_json::Value {
    let ended = sim(folder.path(), &[args, &["--json"]].concat());
    assert_eq!(ended.code, Some(0), "{ended:?}");
    serde_json::from_str(&ended.out).unwrap()
}

/// Where a server's drive is.
type Url = fn(&Server) -> String;

/// The requests of [`recorded_by_bench`], and the flush with which a server ends.
const WITH_FLUSH: f64 = 3_001.0;

/// Over each transport: the replay has the same events, and a what-if the same requests. The data of 6 MB of writes is not
/// in the recording.
#[test]
fn a_recording_without_data_is_small_and_replays_to_the_byte() {
    let transports: [(&[&str], Url); 3] = [
        (&[], Server::uri),
        (&["--nvme-tcp", "127.0.0.1:0"], |server| format!("nvme-tcp://{}", server.next_place("nvme-tcp://"))),
        (&["--vfio-user", "f.sock"], |server| format!("vfio-user://{}", server.path("f.sock").display())),
    ];
    for (more, url) in transports {
        let folder = recorded_by_bench(more, url);
        let bytes = folder.path().join("run.rec").metadata().unwrap().len();
        assert!(bytes < 3_000 * 60, "{more:?}: {bytes} bytes for 3000 commands");
        let exact = json(&folder, &["--replay", "run.rec", "--chrome-trace", "again.json", "--check"]);
        let [live, again] = ["live.json", "again.json"].map(|name| std::fs::read(folder.path().join(name)).unwrap());
        assert!(live == again, "{more:?}: the traces differ");
        assert_eq!((number(&exact, "/requests"), &exact["replay"]["kind"]), (WITH_FLUSH, &"exact".into()), "{more:?}");
        assert_eq!(number(&exact, "/latency_us/flush/count"), 1.0, "{more:?}");
        assert!(exact["notes"].to_string().contains("data of writes is not recorded"), "{exact:#}");
        let other = json(&folder, &["--replay", "run.rec", "--set", "timing.read=300us", "--check"]);
        assert_eq!((number(&other, "/requests"), &other["replay"]["kind"]), (3_000.0, &"what-if".into()), "{more:?}");
        let mean = |report| number(report, "/latency_us/read/mean");
        assert!(mean(&other) > mean(&exact) + 100.0, "{more:?}: {} and {}", mean(&other), mean(&exact));
    }
}

#[test]
fn a_live_run_has_a_page_and_a_what_if_beside_it() {
    let folder = recorded_by_bench(&[], Server::uri);
    let exact =
        json(&folder, &["--replay", "run.rec", "--out", "live", "--requests", "all.csv", "--percentiles", "95"]);
    assert!(number(&exact, "/replay/release_lag_us/p50") >= 0.0 && exact["notes"].to_string().contains("release lag"));
    assert!(number(&exact, "/latency_us/read/p95") > 0.0);
    let rows = std::fs::read_to_string(folder.path().join("all.csv")).unwrap();
    assert_eq!(rows.lines().count() as f64, WITH_FLUSH + 1.0, "a row for each request, and the header");
    let page = std::fs::read_to_string(folder.path().join("live/report.html")).unwrap();
    assert!(page.contains("run.rec") && page.contains("release lag"));
    // The same state as recorded: nothing is other than in the run, whose commands came one by one.
    let same = json(&folder, &["--replay", "run.rec", "--precondition", "full", "--out", "same"]);
    for figure in ["/latency_us/read/mean", "/latency_us/write/max", "/gc/blocks", "/flash/page_programs"] {
        assert_eq!(number(&same, figure), number(&exact, figure), "{figure}");
    }
    let other =
        ["--replay", "run.rec", "--drive", "small=default", "--set", "capacity=16MiB", "--fault", "slow read by=1ms"];
    let other = json(&folder, &[&other[..], &["--out", "other"]].concat());
    let notes = other["notes"].to_string();
    assert!(notes.contains("a what-if") && notes.contains("moved into it"), "{notes}");
    assert_eq!(other["replay"]["changes"].as_array().unwrap().len(), 3);
    let beside = nandscape(folder.path(), &["compare", "live/report.json", "other/report.json"]);
    assert_eq!(beside.code, Some(0), "{beside:?}");
    for (args, words) in [
        (&["--drive", "none=default"][..], "has no drive \"none\"; there are small"),
        (&["--drive", "no-such"], "no-such"),
        (&["--set", "no.such=1"], "no.such"),
        (&["--store", "ram"], "is for a what-if"),
    ] {
        let ended = sim(folder.path(), &[&["--replay", "run.rec"], args].concat());
        assert!(ended.code == Some(2) && ended.err.contains(words), "{args:?}: {ended:?}");
    }
}

/// A recording is a trace: the same requests, directly and converted, from any transport.
#[test]
fn a_recording_is_described_converted_and_run_as_a_trace() {
    let folder = recorded_by_bench(&["--vfio-user", "f.sock"], |server| {
        format!("vfio-user://{}", server.path("f.sock").display())
    });
    let info = |file: &str| -> serde_json::Value {
        let ended = nandscape(folder.path(), &["trace", "info", file, "--json"]);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        serde_json::from_str(&ended.out).unwrap()
    };
    let of_recording = info("run.rec");
    assert_eq!((&of_recording["format"], number(&of_recording, "/all/requests")), (&"recording".into(), 3_000.0));
    let ended = nandscape(folder.path(), &["trace", "convert", "run.rec", "run.csv", "--to", "msr"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let converted = info("run.csv");
    for figure in ["/all/bytes", "/by/read/requests", "/by/write/requests", "/all/footprint_bytes"] {
        assert_eq!(number(&of_recording, figure), number(&converted, figure), "{figure}");
    }
    let drive = ["--drive", "default", "--set", "capacity=64MiB", "--trace"];
    for file in ["run.rec", "run.csv"] {
        assert_eq!(number(&json(&folder, &[&drive[..], &[file]].concat()), "/requests"), 3_000.0, "{file}");
    }
    let ended = nandscape(folder.path(), &["trace", "convert", "run.rec", "out", "--to", "recording"]);
    assert!(ended.code == Some(2) && ended.err.contains("is not a format"), "{ended:?}");
    let whole = std::fs::read(folder.path().join("run.rec")).unwrap();
    std::fs::write(folder.path().join("torn"), &whole[..whole.len() - 40]).unwrap();
    let ended = nandscape(folder.path(), &["trace", "info", "torn"]);
    // What was written within the last tenth of a second may be in the piece that is cut: all of it, on a fast machine.
    let found = match ended.code {
        Some(0) => ended.err.contains("breaks off"),
        _ => ended.code == Some(2) && ended.err.contains("torn: has no request"),
    };
    assert!(found, "{ended:?}");
    let mut damaged = whole;
    let middle = damaged.len() / 2;
    damaged[middle] ^= 1;
    std::fs::write(folder.path().join("damaged"), damaged).unwrap();
    let ended = nandscape(folder.path(), &["trace", "info", "damaged"]);
    assert!(ended.code == Some(2) && ended.err.contains("damaged at record "), "{ended:?}");
    std::fs::write(folder.path().join("old"), b"NSCREC4\n").unwrap();
    let ended = nandscape(folder.path(), &["trace", "info", "old"]);
    assert!(ended.code == Some(2) && ended.err.contains("a recording of format 4"), "{ended:?}");
}
