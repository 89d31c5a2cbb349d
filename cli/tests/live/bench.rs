//! `nandscape bench`: workloads at the wall clock, on served drives and on one of the same process.

use std::process::Command;

use serde_json::Value;

use crate::ending::until_at_work;
use crate::server::{Ended, Server, number, run};

fn bench(args: &[&str]) -> Ended {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nandscape"));
    command.arg("bench").args(args);
    run(command)
}

fn report(args: &[&str]) -> Value {
    let ended = bench(&[args, &["--json"]].concat());
    assert_eq!(ended.code, Some(0), "{ended:?}");
    serde_json::from_str(&ended.out).expect("one JSON object")
}

#[test]
fn jobs_run_on_a_served_drive_and_the_server_counts_the_same() {
    let server = Server::small(&[]);
    let uri = server.uri();
    let jobs = ["--rw", "randrw", "--numjobs", "2", "--iodepth", "8", "--io-count", "3000", "--warmup-count", "100"];
    let report = report(&[&["--to", &uri], &jobs[..]].concat());
    assert_eq!((number(&report, "/requests"), number(&report, "/bytes")), (3_000.0, 3_000.0 * 4_096.0));
    let (reads, writes) = (number(&report, "/latency_us/read/count"), number(&report, "/latency_us/write/count"));
    assert_eq!(reads + writes, 3_000.0);
    assert!(number(&report, "/latency_us/read/mean") > 0.0 && number(&report, "/iops") > 0.0);
    for unknown in ["/profile", "/precondition", "/waf", "/gc", "/breakdown_us/read/array"] {
        assert_eq!(report.pointer(unknown), Some(&Value::Null), "{unknown}: {report:#}");
    }
    assert_eq!(report["endpoint"], uri.as_str());
    let figures = server.figures();
    assert_eq!(number(&figures, "/drives/0/reads/count") + number(&figures, "/drives/0/writes/count"), 3_100.0);
}

#[test]
fn each_of_several_jobs_is_reported() {
    let server = Server::small(&[]);
    let folder = tempfile::tempdir().unwrap();
    let jobs = folder.path().join("jobs.toml");
    let job = |name: &str, class| format!("[[job]]\nname = \"{name}\"\nrw = \"randread\"\nclass = {class}\n");
    let text = ["version = 1\nio_count = 1000\n".to_owned(), job("urgent", 1), job("bulk", 15)].concat();
    std::fs::write(&jobs, text).unwrap();
    let load = ["--to", &server.uri(), "--workload", jobs.to_str().unwrap()].map(str::to_owned);
    let load: Vec<&str> = load.iter().map(String::as_str).collect();
    let report = report(&load);
    let flows = report["flows"].as_array().expect("two jobs");
    assert_eq!(flows.iter().map(|flow| number(flow, "/requests")).sum::<f64>(), 1_000.0);
    assert_eq!((&flows[0]["name"], &flows[1]["class"]), (&"urgent".into(), &15.into()));
    assert_eq!(flows[1].pointer("/breakdown_us/read/array"), Some(&Value::Null), "NBD has no breakdown");
    assert!(bench(&load).out.contains("bulk (class 15)"));
}

#[test]
fn loads_of_dependent_requests_and_trims_run_too() {
    let server = Server::small(&[]);
    let uri = server.uri();
    let of = |words: &[&str]| report(&[&["--to", &uri, "--io-count", "500"], words].concat());
    assert!(number(&of(&["--workload", "ycsb-a"]), "/operations_us/update/count") > 0.0);
    assert_eq!(number(&of(&["--rw", "randtrim"]), "/latency_us/trim/count"), 500.0);
    let open = of(&["--rw", "randread", "--rate-iops", "5000"]);
    assert_eq!(number(&open, "/arrivals/count"), 500.0);
}

/// One client is all that a function takes: its jobs are queue pairs of one controller.
#[test]
fn jobs_run_on_a_pci_function() {
    for more in [&[][..], &["--doorbells", "mapped"]] {
        let server = Server::small(&[&["--vfio-user", "f.sock"], more].concat());
        let url = format!("vfio-user://{}", server.folder.path().join("f.sock").display());
        let jobs = [
            "--rw",
            "randrw",
            "--numjobs",
            "3",
            "--iodepth",
            "40",
            "--io-count",
            "3000",
            "--bs",
            "512/30:8k/30:256k/40",
        ];
        let jobs = report(&[&["--to", &url], &jobs[..]].concat());
        assert_eq!((number(&jobs, "/requests"), &jobs["endpoint"]), (3_000.0, &Value::from(url.as_str())));
        let load = report(&["--to", &url, "--workload", "ycsb-a", "--io-count", "200"]);
        assert!(number(&load, "/operations_us/update/count") > 0.0);
    }
    let server = Server::small(&["--vfio-user", "f.sock", "--record", "run.rec"]);
    let url = format!("vfio-user://{}", server.folder.path().join("f.sock").display());
    let endless = std::thread::spawn(move || bench(&["--to", &url, "--rw", "randwrite", "--runtime", "3600s"]));
    until_at_work(&server);
    server.figures();
    let ended = endless.join().unwrap();
    assert!(ended.code == Some(1) && ended.err.contains("is lost"), "{ended:?}");
}

/// The host enables the directive before it writes, by a separate admin queue.
#[test]
fn jobs_write_by_streams_over_every_transport_with_an_admin_queue() {
    let streams = ["--set", "ftl.streams.count=4", "--vfio-user", "f.sock", "--nvme-tcp", "127.0.0.1:0"];
    let server = Server::small(&streams);
    let place = server.next_place("nvme-tcp://");
    let function = format!("vfio-user://{}", server.path("f.sock").display());
    let words = ["--rw", "randwrite", "--bs", "4k", "--io-count", "600", "--numjobs", "2", "--iodepth", "4"];
    let placed = ["--dataplacement", "streams", "--plids", "1,3"];
    for url in [&format!("nvme-tcp://{place}"), &function] {
        let report = report(&[&["--to", url.as_str()], &words[..], &placed].concat());
        assert_eq!((number(&report, "/requests"), &report["errors"]), (600.0, &serde_json::json!({})), "{url}");
    }
    let ring = ["--to", "ring://default", "--set", "capacity=64MiB", "--set", "ftl.streams.count=4"];
    let report = report(&[&ring, &words[..], &placed].concat());
    assert_eq!((number(&report, "/requests"), &report["errors"]), (600.0, &serde_json::json!({})));
    let ended = bench(&[&["--to", server.uri().as_str()], &words[..], &placed].concat());
    assert!(ended.code == Some(2) && ended.err.contains("it has no admin queue"), "{ended:?}");
    server.end();
    let without = Server::small(&["--nvme-tcp", "127.0.0.1:0"]);
    let url = format!("nvme-tcp://{}", without.next_place("nvme-tcp://"));
    let ended = bench(&[&["--to", url.as_str()], &words[..], &placed].concat());
    assert!(ended.code == Some(2) && ended.err.contains("the drive refuses them"), "{ended:?}");
}

/// Layers over drives of the same process: over one, and over several that clients reach as one, each with its report.
#[test]
fn layers_lie_over_drives_of_the_same_process() {
    let drive = ["--to", "ring://default", "--set", "capacity=64MiB", "--no-delay", "--precondition", "full"];
    let load = ["--rw", "randrw", "--io-count", "2000"];
    let folder = tempfile::tempdir().unwrap();
    for (over, names, parts) in [
        (&["--over", "block", "--over", "top=cache,memory=1MiB"][..], &["block", "top"][..], &[][..]),
        (
            &["--over", "raid1:2", "--over", "cache", "--set", "cache.memory=1MiB"],
            &["array", "cache"],
            &["drive-0", "drive-1"],
        ),
    ] {
        let out = folder.path().join(names[0]);
        let own = ["--out", out.to_str().unwrap()];
        let seen = report(&[&drive[..], over, &load, &own].concat());
        assert_eq!((number(&seen, "/requests"), &seen["errors"]), (2_000.0, &serde_json::json!({})));
        let file = |name: &str| std::fs::read_to_string(out.join(name)).unwrap();
        let below: Value = serde_json::from_str(&file("report.json")).unwrap();
        let chain: Vec<&str> =
            below["chain"].as_array().unwrap().iter().map(|one| one["layer"].as_str().unwrap()).collect();
        assert_eq!(chain, names);
        let sum: f64 = below["layers_us"]["read"].as_object().unwrap().values().filter_map(Value::as_f64).sum();
        assert!((sum - number(&below, "/latency_us/read/mean")).abs() < 1e-6, "{below:#}");
        assert!(parts.iter().all(|drive| file(&format!("{drive}/report.html")).contains("<svg")));
        assert!(file("report.html").contains("<svg"));
    }
    for (words, problem) in [
        (&["--over", "blok"][..], "there is no layer \"blok\""),
        (&["--over", "ftl"], "that of an open-channel drive"),
        (&["--over", "cache", "--set", "host.completion=precompletion"], "layers pass no notices of a drive"),
    ] {
        let ended = bench(&[&drive[..], &load, words].concat());
        assert!(ended.code == Some(2) && ended.err.contains(problem), "{words:?}: {ended:?}");
    }
    let ended = bench(&["--to", "nbd://127.0.0.1:1/x", "--rw", "randread", "--over", "cache"]);
    assert!(ended.code == Some(2) && ended.err.contains("--over is for drives of this process"), "{ended:?}");
}

#[test]
fn a_drive_of_the_same_process_needs_no_server() {
    let drive = ["--to", "ring://default", "--set", "capacity=64MiB", "--no-delay"];
    for store in ["none", "ram"] {
        let words = ["--rw", "randrw", "--io-count", "2000", "--store", store, "--precondition", "full"];
        let report = report(&[&drive[..], &words].concat());
        assert_eq!((number(&report, "/requests"), &report["profile"]), (2_000.0, &Value::from("default")));
        assert!(number(&report, "/latency_us/read/p50") > 0.0, "{report:#}");
    }
    // With the report of the drive, and the figures as this program saw them.
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let words = ["--rw", "randread", "--io-count", "500", "--precondition", "full", "--out", out.to_str().unwrap()];
    let seen = report(&[&drive[..], &words].concat());
    let file = |name: &str| std::fs::read_to_string(out.join(name)).unwrap();
    let of_drive: Value = serde_json::from_str(&file("report.json")).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&file("bench.json")).unwrap()["requests"], seen["requests"]);
    let reads = number(&of_drive, "/latency_us/read/count");
    assert_eq!(
        (reads, number(&of_drive, "/flash/page_reads"), &of_drive["clock"]),
        (500.0, 500.0, &Value::from("wall"))
    );
    assert!(file("report.html").contains("clock on the wall"));
    let refused = bench(&["--to", "nbd://127.0.0.1:1/x", "--rw", "randread", "--out", out.to_str().unwrap()]);
    assert!(refused.code == Some(2) && refused.err.contains("give --out to `nandscape serve`"), "{refused:?}");
    let text = bench(&[&drive[..], &["--rw", "randread", "--io-count", "1000"]].concat());
    assert!(text.out.contains("at the wall clock") && text.out.contains(" read "), "{text:?}");
}

#[test]
fn what_cannot_be_reached_or_does_not_fit_is_bad_input() {
    let folder = tempfile::tempdir().unwrap();
    let none = format!("nbd+unix:///x?socket={}", folder.path().join("none").display());
    for (args, problem) in [
        (vec!["--to", "http://localhost", "--rw", "read"], "valid are nbd://"),
        (vec!["--to", &none, "--rw", "read"], "No such file"),
        (vec!["--to", &none, "--rw", "read", "--no-delay"], "--no-delay is for drives of this process"),
        (vec!["--to", "ring://no-such-profile", "--rw", "read"], "no-such-profile"),
        (vec!["--to", &none], "no workload"),
    ] {
        let ended = bench(&args);
        assert!(ended.code == Some(2) && ended.err.contains(problem), "{args:?}: {ended:?}");
        assert!(ended.err.matches(args[1]).count() <= 1, "the URL is told once: {ended:?}");
    }
    let server = Server::small(&[]);
    let other = server.uri().replace("small", "other");
    let ended = bench(&["--to", &other, "--rw", "read"]);
    assert!(ended.code == Some(2) && ended.err.contains("no export \"other\""), "{ended:?}");
    let ended = bench(&["--to", &server.uri(), "--rw", "read", "--size", "1GiB"]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
}

/// Reads take longer than the patience. Each transport keeps its connection up meanwhile.
#[test]
fn a_drive_that_answers_nothing_is_given_up() {
    let slow = ["--set", "capacity=64MiB", "--set", "timing.read=10s", "--precondition", "full"];
    let job = ["--rw", "randread", "--patience", "1", "--runtime", "3600s"];
    let given_up = |url: &str, more: &[&str]| {
        let ended = bench(&[&["--to", url], &job[..], more].concat());
        assert_eq!(ended.code, Some(1), "{ended:?}");
        assert!(ended.err.contains(&format!("{url} is lost: no answer for 1 s, with ")), "{ended:?}");
    };
    let folder = tempfile::tempdir().unwrap();
    let places = ["--drive", "slow=default", "--nbd", "unix:n.sock", "--nvme-tcp", "127.0.0.1:0", "--vfio-user", "f"];
    let server = Server::start(folder, &[&places[..], &slow].concat());
    let tcp = format!("nvme-tcp://{}", server.next_place("nvme-tcp://"));
    server.next_place("serving slow to a guest");
    let nbd = format!("nbd+unix:///?socket={}", server.path("n.sock").display());
    given_up(&format!("vfio-user://{}", server.path("f").display()), &[]);
    for load in [&[][..], &["--rate-iops", "100"]] {
        given_up(&nbd, load);
        given_up(&tcp, load);
    }
    given_up("ring://default", &slow);
    server.signal(rustix::process::Signal::KILL);
}

/// The server accepts connections and sends nothing, or does not even accept them.
#[test]
fn a_server_that_does_not_negotiate_is_given_up() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("n.sock");
    let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
    let job = ["--rw", "randread", "--patience", "1", "--runtime", "3600s"];
    let nbd = format!("nbd+unix:///?socket={}", path.display());
    let ended = bench(&[&["--to", &nbd], &job[..]].concat());
    assert!(ended.code == Some(2) && ended.err.contains("no answer within 1 s"), "{ended:?}");
    // The connection of before is still in its queue, which is full with it.
    rustix::net::listen(&listener, 0).unwrap();
    let ended = bench(&[&["--to", &nbd], &job[..]].concat());
    assert!(ended.code == Some(2) && ended.err.contains("no answer within 1 s"), "{ended:?}");
}

#[test]
fn failed_requests_and_lost_servers_fail_the_run() {
    let server = Server::small(&["--fault", "uncorrectable read lba=0-131071"]);
    let ended = bench(&["--to", &server.uri(), "--rw", "randread", "--io-count", "100"]);
    assert!(ended.code == Some(1) && ended.err.contains("some requests failed"), "{ended:?}");
    drop(server);
    let server = Server::small(&["--record", "run.rec"]);
    lost_under_load(server.uri(), server);
    let server = Server::small(&["--nvme-tcp", "127.0.0.1:0", "--record", "run.rec"]);
    let url = format!("nvme-tcp://{}?patience=1", server.next_place("nvme-tcp://"));
    let told = lost_under_load(url, server);
    assert!(told.contains("it is tried again for 1 s (?patience=SECONDS of the URL)"), "{told}");
}

/// Ends a server under the load of a client. Returns the client's output.
fn lost_under_load(url: String, server: Server) -> String {
    let endless = std::thread::spawn(move || bench(&["--to", &url, "--rw", "randwrite", "--runtime", "3600s"]));
    until_at_work(&server);
    server.figures();
    let ended = endless.join().unwrap();
    assert!(ended.code == Some(1) && ended.err.contains("is lost"), "{ended:?}");
    ended.err
}

/// Reads one at a time of 2 ms by a policy. What is asserted are counts: how the thread has learnt of each completion.
fn policed(url: &str, policy: &str, more: &[&str]) -> Value {
    let policy = format!("host.completion={policy}");
    let words = ["--to", url, "--rw", "randread", "--iodepth", "1", "--io-count", "40", "--set", &policy];
    let report = report(&[&words, more].concat());
    let completion = &report["completion"];
    let learnt = completion["learnt"].as_object().expect("counts").values().filter_map(Value::as_f64).sum::<f64>();
    assert_eq!((number(&report, "/requests"), learnt), (40.0, 40.0), "{report:#}");
    assert!(number(completion, "/control/wakes") > 0.0 && number(completion, "/thread_cpu_us") > 0.0);
    // The thread waits without commands, whatever the policy. The drive's time is known of a ring, and by a control socket.
    let idle = &completion["idle"];
    assert!(number(idle, "/s") >= 0.2 && number(idle, "/thread_cpu") < 0.5, "{completion:#}");
    let is_known = url.starts_with("ring://") || more.contains(&"--control");
    let of_drive = [&completion["drive_cpu_us"], &idle["drive_cpu"]];
    assert!(of_drive.iter().all(|time| time.as_f64().is_some_and(|time| time >= 0.0) == is_known), "{completion:#}");
    completion.clone()
}

/// Each policy waits as it says, on a drive behind a socket and on one of the same process.
fn policies_wait_as_they_say(url: &str, more: &[&str]) {
    let of = |policy, added: &[&str]| {
        let completion = policed(url, policy, &[more, added].concat());
        let counts = ["/waits", "/sleeps", "/looks"].map(|key| number(&completion, key));
        let learnt = |how: &str| number(&completion["learnt"], &format!("/{how}"));
        (counts, learnt("woken") + learnt("at_once"), learnt("polled"))
    };
    let ([waits, sleeps, looks], learnt, polled) = of("interrupt", &[]);
    assert!(waits > 0.0 && (sleeps, looks, learnt, polled) == (0.0, 0.0, 40.0, 0.0), "{waits} {sleeps} {looks}");
    let ([waits, sleeps, looks], learnt, polled) = of("poll", &[]);
    assert!(looks > 0.0 && (waits, sleeps, learnt, polled) == (0.0, 0.0, 0.0, 40.0), "{waits} {sleeps} {looks}");
    let ([waits, sleeps, _], learnt, polled) = of("hybrid", &["--set", "host.poll_sleep=80%"]);
    assert!(sleeps > 0.0 && (waits, learnt, polled) == (0.0, 0.0, 40.0), "{waits} {sleeps}");
    // The first commands are waited for, and so is all that polling saves little of.
    let ([waits, sleeps, _], learnt, _) = of("adaptive", &["--set", "host.poll_gain=100%"]);
    assert!(waits > 0.0 && (sleeps, learnt) == (0.0, 40.0), "{waits} {sleeps} {learnt}");
}

/// The drive announces ends: by its own window, by a given one, and by one that follows the delay of the thread.
fn notices_wake_the_thread(url: &str, more: &[&str]) {
    let of = |window: &str| {
        let window = format!("host.window={window}");
        policed(url, "precompletion", &[more, &["--set", "host.patience=1s", "--set", &window]].concat())
    };
    for window in ["drive", "300us"] {
        let announced = of(window);
        let noticed = ["ready", "late"].map(|how| number(&announced["learnt"], &format!("/{how}")));
        assert!(noticed[0] + noticed[1] > 0.0 && number(&announced, "/waits") > 0.0, "{announced:#}");
        assert_eq!(number(&announced["learnt"], "/polled") + number(&announced["learnt"], "/woken"), 0.0);
        assert!(announced["window_us"].is_null(), "{announced:#}");
    }
    // The first window is 16 us. Nothing that depends on how fast the thread is woken is asserted.
    let adapted = of("adaptive");
    assert!((1.0..=1_000.0).contains(&number(&adapted, "/window_us")), "{adapted:#}");
}

/// Reads that take long: a thread finds none of them at its end at once, unless it is held up each time.
const SLOW: [&str; 2] = ["--set", "timing.read=2ms"];

#[test]
fn policies_on_completions_wait_as_they_say_over_vfio_user() {
    let announcing = ["--set", "timing.read=2ms", "--set", "controller.precompletion.window=500us"];
    for more in [&[][..], &["--doorbells", "mapped"]] {
        let function = ["--vfio-user", "f.sock", "--control", "c.sock"];
        let server = Server::small(&[&function[..], &announcing, more].concat());
        let url = format!("vfio-user://{}", server.path("f.sock").display());
        let control = server.path("c.sock");
        policies_wait_as_they_say(&url, &[]);
        notices_wake_the_thread(&url, &["--control", control.to_str().expect("UTF-8")]);
        server.end();
    }
    let server = Server::small(&["--vfio-user", "f.sock", "--record", "run.rec"]);
    let url = format!("vfio-user://{}", server.path("f.sock").display());
    let ended = bench(&["--to", &url, "--rw", "randread", "--set", "host.completion=precompletion"]);
    assert!(ended.code == Some(2) && ended.err.contains("does not announce the ends of reads"), "{ended:?}");
    // A server that ends ends a host that sleeps.
    let endless = std::thread::spawn(move || {
        bench(&["--to", &url, "--rw", "randwrite", "--runtime", "3600s", "--set", "host.completion=interrupt"])
    });
    until_at_work(&server);
    server.end();
    let ended = endless.join().unwrap();
    assert!(ended.code == Some(1) && ended.err.contains("is lost"), "{ended:?}");
}

#[test]
fn policies_on_completions_wait_as_they_say_on_a_ring_and_over_sockets() {
    let drive = [&["--set", "capacity=64MiB", "--precondition", "full"][..], &SLOW].concat();
    policies_wait_as_they_say("ring://default", &drive);
    notices_wake_the_thread(
        "ring://default",
        &[&drive[..], &["--set", "controller.precompletion.window=500us"]].concat(),
    );
    let server = Server::small(&[&SLOW[..], &["--nvme-tcp", "127.0.0.1:0"]].concat());
    policies_wait_as_they_say(&server.uri(), &[]);
    for url in [server.uri(), format!("nvme-tcp://{}", server.next_place("nvme-tcp://"))] {
        let ended = bench(&["--to", &url, "--rw", "randread", "--set", "host.completion=precompletion"]);
        assert!(ended.code == Some(2) && ended.err.contains("needs notices, which no socket carries"), "{ended:?}");
    }
    let text = bench(
        &[
            &["--to", "ring://default", "--rw", "randread", "--io-count", "20"][..],
            &drive,
            &["--set", "host.completion=poll"],
        ]
        .concat(),
    );
    assert!(text.out.contains("completions by poll: ") && text.out.contains("control without a drive: "), "{text:?}");
    assert!(text.out.contains("us of the drive; ") && text.out.contains("control without commands: "), "{text:?}");
    for (to, more, problem) in [
        ("ring://default", &[][..], "--control c.sock: the drive of ring:// is in this process"),
        ("vfio-user://f.sock", &[], "give --set host.completion=interrupt"),
        ("vfio-user://f.sock", &["--set", "host.completion=poll"], "--control c.sock: "),
    ] {
        let ended = bench(&[&["--to", to, "--rw", "randread", "--control", "c.sock"][..], more].concat());
        assert!(ended.code == Some(2) && ended.err.contains(problem), "{ended:?}");
    }
    for (set, problem) in [
        ("host.completion=precompletion", "--set controller.precompletion.window=16us makes one"),
        ("host.completion=guess", "interrupt or poll or hybrid"),
        ("host.cores=2", "the host is this machine"),
        ("host.poll_sleep=20%", "no policy is given"),
    ] {
        let ended = bench(&[&["--to", "ring://default", "--rw", "randread"][..], &["--set", set]].concat());
        assert!(ended.code == Some(2) && ended.err.contains(problem), "{set}: {ended:?}");
    }
}
