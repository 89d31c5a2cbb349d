//! Hosts below workloads: what `sim`, `sweep` and `hosts` show of them, and which are refused.

use serde_json::Value;

use crate::program::{number, refuse, succeed};

const RUN: [&str; 11] = [
    "sim",
    "--drive",
    "default",
    "--set",
    "capacity=256MiB",
    "--rw",
    "randread",
    "--iodepth",
    "2",
    "--io-count",
    "2000",
];

fn with<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&RUN[..], more].concat()
}

fn report(more: &[&str]) -> Value {
    serde_json::from_str(&succeed(&with(&[more, &["--json", "--check"]].concat()))).expect("one JSON object")
}

#[test]
fn the_report_has_the_hosts_stages_and_its_processor_time() {
    let report = report(&["--host", "server", "--set", "host.completion=hybrid", "--set", "host.cores=2"]);
    let read = report["breakdown_us"]["read"].as_object().expect("stages");
    let sum: f64 = read.iter().filter(|(name, _)| !name.ends_with("_by")).filter_map(|(_, us)| us.as_f64()).sum();
    assert!((sum - number(&report, "/latency_us/read/mean")).abs() < 1e-6);
    assert!(number(&report, "/breakdown_us/read/host_by/syscall") > 0.5);
    let cpu = &report["cpu"];
    assert_eq!((&cpu["host"], &cpu["completion"], &cpu["path"]), (&"server".into(), &"hybrid".into(), &"nvme".into()));
    let kinds: f64 = cpu["request_us_by"].as_object().expect("kinds").values().filter_map(Value::as_f64).sum();
    assert!((kinds - number(cpu, "/request_us")).abs() < 1e-9);
    assert_eq!(number(cpu, "/processors"), 2.0);
    assert_eq!(report["inputs"]["host"]["name"], "server");
    assert_eq!(report["inputs"]["host"]["keys"]["host.completion"], "hybrid");
    assert!(report["inputs"]["set"].as_array().unwrap().contains(&"host.cores=2".into()));

    let text = succeed(&with(&["--host", "i7-4770"]));
    for part in
        ["host i7-4770: interrupt, path nvme, 8 processors, 8 queue pairs, 2 threads; busy", "   wakeup", "   switch"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(text.contains("processor time a request") && text.contains("interrupts a request"), "{text}");
}

#[test]
fn the_wait_for_a_processor_is_shown_by_who_has_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().to_str().expect("UTF-8");
    let words = ["--host", "server", "--set", "host.cores=1", "--set", "host.load=2", "--set", "host.slice=1ms"];
    let text = succeed(&with(&[&words[..], &["--out", out]].concat()));
    assert!(text.contains("   run_delay ") && text.contains("     behind load "), "{text}");
    let page = std::fs::read_to_string(folder.path().join("report.html")).expect("a page");
    assert!(page.contains("host, run delay, behind load") && page.contains("behind load"));
    let told = succeed(&["explain", out]);
    assert!(told.contains("waiting for a processor that runs threads that compute"), "{told}");
    assert!(told.contains("--cpus-allowed"), "{told}");
    let over = [&words[..], &["--over", "raid1:2"]].concat();
    assert!(succeed(&with(&over)).contains("   behind load "));
    let delays = report(&over);
    let behind = delays["run_delay_us"]["read"].as_object().expect("holders");
    let sum: f64 = behind.values().filter_map(Value::as_f64).sum();
    assert!((sum - number(&delays, "/layer_causes_us/read/host/run_delay")).abs() < 1e-6);
}

#[test]
fn words_about_threads_reach_the_host_or_have_a_note() {
    let host = ["--host", "server", "--set", "host.cores=2"];
    let lines = |more: &[&str]| report(&[&host[..], more].concat())["inputs"]["workload_lines"][0].to_string();
    let line = lines(&["--nice", "-5", "--cpus-allowed", "0-1", "--cpus-allowed-policy", "split"]);
    assert!(line.contains(" nice=-5 cpus_allowed=0-1 cpus_allowed_policy=split"), "{line}");
    let refused = |more: &[&str], parts: &[&str]| refuse(&with(&[&host[..], more].concat()), parts);
    refused(&["--cpus-allowed", "2"], &["cpus_allowed", "no processor 2", "valid are 0 to 1"]);
    refused(&["--cpus-allowed", "2-1"], &["--cpus_allowed", "such as 0-3,6"]);
    refused(&["--nice", "20"], &["--nice = 20", "-20 to 19"]);
    let without = report(&["--nice", "3"]);
    let notes = without["notes"].to_string();
    assert!(notes.contains("nice has no effect") && notes.contains("--host"), "{notes}");
}

#[test]
fn a_host_runs_over_drives_on_a_controller() {
    let words = [
        "sim",
        "--drive",
        "840-pro",
        "--set",
        "capacity=1GiB",
        "--over",
        "ahci:2",
        "--host",
        "i7-4770",
        "--set",
        "host.path=cooperative",
        "--rw",
        "randread",
        "--bs",
        "512",
        "--iodepth",
        "80",
        "--io-count",
        "1000",
    ];
    let text = succeed(&words);
    for part in [
        "ahci (2 ports, chunks of 128KiB) of 840-pro",
        "host i7-4770: interrupt, path cooperative, 8 processors, 2 queue pairs, 80 threads",
        "interrupts a request, the longest ",
        "uplink busy ",
        "0 commands waited for one of 32 slots of their port",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let report: Value = serde_json::from_str(&succeed(&[&words[..], &["--json"]].concat())).expect("one JSON object");
    assert!(number(&report, "/cpu/longest_interrupt_us") > 0.5 && number(&report, "/chain/0/ahci/ports") == 2.0);
    assert!(number(&report, "/layer_causes_us/read/host/queue") > 1.0, "80 threads share 64 tags");
    let wrong = |change| [&words[..], &["--set", change]].concat();
    refuse(&wrong("ahci.slots=64"), &["ahci.slots", "from 1 to 32"]);
    refuse(&wrong("host.completion=poll"), &["host.completion", "interrupt with host.path=cooperative"]);
}

#[test]
fn clients_on_another_machine_request_the_ios() {
    let words = ["--host", "i7-4770", "--set", "host.links=2", "--set", "host.user=1us", "--iodepth", "16"];
    let words = [&RUN[..7], &words, &["--io-count", "2000"]].concat();
    let text = succeed(&words);
    for part in [
        "   client",
        "   network",
        "   receive",
        "   send",
        "2 links to clients: busy ",
        "; the clients' machine busy ",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let report: Value =
        serde_json::from_str(&succeed(&[&words[..], &["--json", "--check"]].concat())).expect("one JSON object");
    let network = &report["cpu"]["network"];
    assert_eq!((number(network, "/links"), number(&report, "/cpu/threads")), (2.0, 16.0));
    let [to_host, to_clients, busy] = ["/to_host", "/to_clients", "/clients_busy"].map(|path| number(network, path));
    assert!(0.0 < to_host && to_host < to_clients && to_clients < 1.0 && busy > 0.01, "{network}");
    // 16 gets share an interrupt of a card, which raises one each 50 us at most.
    let interrupts = number(network, "/interrupts_per_request");
    assert!(0.0 < interrupts && interrupts < 1.0, "{interrupts}");
    let read = report["breakdown_us"]["read"].as_object().expect("stages");
    let sum: f64 = read.iter().filter(|(name, _)| !name.ends_with("_by")).filter_map(|(_, us)| us.as_f64()).sum();
    assert!((sum - number(&report, "/latency_us/read/mean")).abs() < 1e-6, "{read:?}");
    refuse(&with(&["--host", "server", "--set", "host.links=65"]), &["host.links", "to 64"]);
    refuse(
        &with(&["--host", "server", "--set", "host.links=1", "--set", "host.ring=sqpoll"]),
        &["off with host.links"],
    );
}

#[test]
fn without_a_host_nothing_tells_of_one() {
    let (report, text) = (report(&[]), succeed(&RUN));
    assert!(report.get("cpu").is_none() && report["inputs"].get("host").is_none());
    assert!(report["breakdown_us"]["read"].get("host").is_none());
    assert!(!text.contains("host server") && !text.contains("processor time"), "{text}");
}

#[test]
fn pages_traces_explanations_and_comparisons_know_the_host() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).to_str().expect("a path in UTF-8").to_owned();
    let (one, other, trace) = (path("one"), path("other"), path("trace.json"));
    succeed(&with(&["--host", "server", "--out", &one, "--chrome-trace", &trace]));
    succeed(&with(&["--host", "server", "--set", "host.completion=poll", "--out", &other]));
    let page = std::fs::read_to_string(folder.path().join("one/report.html")).expect("a page");
    assert!(page.contains("host, wakeup") && page.contains("system call, block layer, interrupt, switches"));
    let trace = std::fs::read_to_string(trace).expect("a trace");
    assert!(trace.contains("processor 0") && trace.contains("interrupt"));
    assert!(succeed(&["explain", &one]).contains("host"));
    let differences = succeed(&["compare", &one, &other]);
    assert!(differences.contains("host.completion"), "{differences}");
}

#[test]
fn a_host_in_a_file_runs_and_one_that_cannot_be_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("mine.toml");
    let path = file.to_str().expect("a path in UTF-8");
    std::fs::write(&file, "version = 1\n[host]\ncores = 2\ncompletion = \"poll\"\n").expect("a file");
    assert_eq!(report(&["--host", path])["cpu"]["completion"], "poll");
    assert!(succeed(&["hosts", "show", path]).contains("host.completion"));
    std::fs::write(&file, "version = 1\n[host]\ncores = 0\n").expect("a file");
    refuse(&with(&["--host", path]), &["--host", "mine.toml", "host.cores: 0 is not valid", "1 to 1024 cores"]);
    for (words, parts) in [
        (&["--host", "i9"][..], &["--host i9", "valid are server, i7-4770"][..]),
        (&["--set", "host.cores=2"], &["host.cores=2", "give --host server"]),
        (&["--host", "server", "--set", "host.cores=0"], &["host.cores", "1 to 1024 cores"]),
        (
            &["--host", "server", "--set", "host.affinity=99"],
            &["host.affinity: processor 99 is not valid", "from 0 to 15"],
        ),
        (&["--host", "server", "--set", "host.completion=guess"], &["host.completion", "interrupt or poll or hybrid"]),
        (&["--host", "server", "--set", "host.syscall=-1us"], &["host.syscall", "a time such as 500ns"]),
        (&["--host", "server", "--set", "host.colour=red"], &["host.colour", "valid are host.completion"]),
        (&["--host", "server", "--set", "host.switch=1s"], &["host.switch: 1s is not valid", "takes less than 1s"]),
        (&["--host", "server", "--set", "host.link_rate=1B/s"], &["host.link_rate", "from 1MB/s, or unlimited"]),
        (&["--host", "server", "--set", "host.speed=1%", "--set", "host.tick=100us"], &["host.tick", "from 120us"]),
    ] {
        refuse(&with(words), parts);
    }
}

#[test]
fn hosts_are_listed_and_explained_with_the_source_of_each_cost() {
    let list = succeed(&["hosts"]);
    for name in ["server", "i7-4770", "i7-4790", "arm-8"] {
        assert!(list.lines().any(|line| line.split_whitespace().next() == Some(name)), "{name}: {list}");
        let shown = succeed(&["hosts", "show", name]);
        assert!(shown.starts_with(name) && shown.matches("source: ").count() >= 10, "{shown}");
    }
    let shown = succeed(&["hosts", "show", "server", "--set", "host.switch=2us"]);
    let switch =
        shown.lines().skip_while(|line| !line.starts_with("host.switch")).take(2).collect::<Vec<_>>().join(" ");
    assert!(switch.contains("2us") && switch.contains("source: --set"), "{switch}");
    refuse(&["hosts", "show", "server", "--set", "host.queues=99"], &["host.queues", "0 to 16"]);
}

#[test]
fn a_sweep_varies_the_policy_of_a_host() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("out");
    let out = out.to_str().expect("a path in UTF-8");
    let base = ["sweep", "--set", "capacity=256MiB", "--set", "rw=randread", "--set", "io_count=500", "--out", out];
    let vary = ["--host", "server", "--vary", "host.completion=interrupt,poll", "--figure", "cpu.request_us", "--json"];
    let found: Value = serde_json::from_str(&succeed(&[&base[..], &vary].concat())).expect("JSON");
    let text = found.to_string();
    assert!(text.contains("\"completion\":\"poll\"") && text.contains("\"completion\":\"interrupt\""), "{text}");
    refuse(&[&base[..], &["--vary", "host.completion=poll"]].concat(), &["host.completion", "give host = \"server\""]);
    refuse(
        &[&base[..], &["--host", "server", "--vary", "host.completion=guess"]].concat(),
        &["interrupt or poll or hybrid"],
    );
    refuse(&[&base[..], &["--host", "i9", "--vary", "iodepth=1"]].concat(), &["valid are server"]);
}

#[test]
fn a_sweep_varies_the_path_of_a_host_over_drives_on_a_controller() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().to_str().expect("UTF-8");
    let words = ["sweep", "--out", out, "--drive", "840-pro", "--over", "ahci:2", "--host", "i7-4770"];
    let load = ["capacity=1GiB", "rw=randread", "bs=512", "iodepth=80", "io_count=500"];
    let load: Vec<&str> = load.iter().flat_map(|change| ["--set", change]).collect();
    let vary = ["--vary", "host.path=scsi,cooperative", "--vary", "ahci.slots=8,32", "--json"];
    let json = succeed(&[&words[..], &load, &vary].concat());
    let sweep: Value = serde_json::from_str(&json).expect("JSON");
    let points = sweep["points"].as_array().expect("a list");
    assert_eq!(points.len(), 4);
    for (point, (path, slots)) in
        points.iter().zip([("scsi", 8.0), ("scsi", 32.0), ("cooperative", 8.0), ("cooperative", 32.0)])
    {
        let report = &point["report"];
        assert_eq!((&report["cpu"]["host"], &report["cpu"]["path"]), (&"i7-4770".into(), &path.into()), "{point:#}");
        assert_eq!((number(report, "/chain/0/ahci/slots"), number(report, "/requests")), (slots, 500.0));
        assert!(number(report, "/cpu/request_us") > 1.0 && number(report, "/layer_causes_us/read/host/syscall") > 0.0);
    }
    // The point is that of `sim`.
    let alone =
        ["sim", "--drive", "840-pro", "--over", "ahci:2", "--host", "i7-4770", "--rw", "randread", "--bs", "512"];
    let more =
        ["--iodepth", "80", "--io-count", "500", "--set", "capacity=1GiB", "--set", "host.path=cooperative", "--json"];
    let alone: Value = serde_json::from_str(&succeed(&[&alone[..], &more].concat())).expect("JSON");
    assert_eq!(alone["latency_us"], points[3]["report"]["latency_us"]);
}

/// The question of the guide, on a small drive.
#[test]
fn the_guide_on_completions_works_in_a_short_form() {
    let guide = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/guides/completion.toml");
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().to_str().expect("UTF-8");
    let short = ["--set", "capacity=256MiB", "--set", "io_count=2000", "--set", "warmup_count=100"];
    // `NANDSCAPE_TEST_WHOLE_GRID=1`: the guide's own size and all its points.
    let is_whole = std::env::var_os("NANDSCAPE_TEST_WHOLE_GRID").is_some();
    let (size, depths): (&[&str], _) = if is_whole { (&[], "iodepth=1,2,4,8,16") } else { (&short, "iodepth=1,8") };
    let all: &[f64] = if is_whole { &[1.0, 2.0, 4.0, 8.0, 16.0] } else { &[1.0, 8.0] };
    let json = succeed(&[&["sweep", guide, "--out", out, "--json", "--vary", depths][..], size].concat());
    let sweep: Value = serde_json::from_str(&json).expect("JSON");
    let points = sweep["points"].as_array().expect("a list");
    assert_eq!(points.len(), 8 * all.len());
    let of = |completion: &str, threads: f64, figure: &str| -> Vec<f64> {
        let chosen = points.iter().filter(|point| {
            point["values"]["completion"] == completion && point["values"]["threads"].as_f64() == Some(threads)
        });
        chosen.map(|point| number(point, figure)).collect()
    };
    let mean = "/report/latency_us/read/mean";
    for (drive, (poll, interrupt)) in of("poll", 1.0, mean).into_iter().zip(of("interrupt", 1.0, mean)).enumerate() {
        assert!(poll < interrupt, "one thread on drive {drive}: {poll} and {interrupt}");
    }
    let tail = "/report/latency_us/read/p99_9";
    for (drive, (poll, interrupt)) in of("poll", 8.0, tail).into_iter().zip(of("interrupt", 8.0, tail)).enumerate() {
        assert!(poll > 5.0 * interrupt, "eight threads on four cores, drive {drive}: {poll} and {interrupt}");
    }
    let time = |completion| of(completion, 1.0, "/report/cpu/request_us");
    for (hybrid, poll) in time("hybrid").into_iter().zip(time("poll")) {
        assert!(hybrid < 0.7 * poll, "{hybrid} of {poll}");
    }
    // The policy that decides is as good as the better of the two, and takes the processor time of that one.
    for &threads in all {
        let both = |figure| of("interrupt", threads, figure).into_iter().zip(of("poll", threads, figure));
        let cpu: Vec<(f64, f64)> = both("/report/cpu/request_us").collect();
        let adaptive = of("adaptive", threads, mean).into_iter().zip(of("adaptive", threads, "/report/cpu/request_us"));
        for (drive, ((interrupt, poll), (latency, time))) in both(mean).zip(adaptive).enumerate() {
            // At this size the fast drive has one die, which eight threads keep busy: requests that wait at a processor do not
            // wait for the die.
            if threads > 4.0 && drive > 0 && !is_whole {
                continue;
            }
            let (most, spent) = if poll < interrupt { (cpu[drive].1, "poll") } else { (cpu[drive].0, "interrupt") };
            assert!(
                latency <= 1.05 * interrupt.min(poll),
                "{threads} threads, drive {drive}: {latency}, {interrupt}, {poll}"
            );
            assert!(time <= 1.1 * most, "{threads} threads, drive {drive}: {time}, {spent} takes {most}");
        }
    }
}

#[test]
fn a_host_is_woken_by_the_notices_of_its_drive() {
    let base = ["sim", "--host", "i7-4770", "--rw", "randread", "--io-count", "2000", "--set", "capacity=256MiB"];
    let precompletion = ["--precondition", "full", "--set", "host.completion=precompletion"];
    let text = succeed(&[&base[..], &precompletion, &["--drive", "cosmos"]].concat());
    assert!(text.contains("threads woken by notices, window that of the drive: ready 9"), "{text}");
    let json = [&base[..], &precompletion, &["--drive", "vc709", "--set", "host.window=adaptive", "--json"]].concat();
    let report: Value = serde_json::from_str(&succeed(&json)).expect("JSON");
    let woken = &report["cpu"]["woken"];
    let number = |key: &str| woken[key].as_f64().unwrap_or_else(|| panic!("{key} of {woken}"));
    assert!(number("ready") > 0.8 * number("reads") && number("window_us") < 8.0, "{woken}");
    assert_eq!(number("ready") + number("late") + number("missing") + number("gave_up"), number("reads"));
    assert!(number("delay_p90_us") < 1.3 * number("window_us"), "{woken}");
    refuse(
        &[&base[..], &precompletion, &["--drive", "default"]].concat(),
        &["host.completion", "announces the ends of reads", "controller.precompletion.window"],
    );
}

#[test]
fn a_host_over_several_drives_shows_its_stages_and_what_bounds_the_rate() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().to_str().expect("UTF-8");
    let over = ["--over", "raid1:2", "--host", "server", "--set", "host.cores=1", "--set", "host.completion=poll"];
    let words = [&RUN[..7], &over, &["--iodepth", "16", "--io-count", "2000"]].concat();
    let text = succeed(&[&words[..], &["--out", out]].concat());
    for part in ["mean time in the host, us", "syscall ", "run_delay ", "limited by the host's processors: busy "] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(
        text.lines().any(|line| line.starts_with(" read ") && line.contains('.')),
        "not whole microseconds: {text}"
    );
    let page = std::fs::read_to_string(folder.path().join("report.html")).expect("a page");
    assert!(page.contains("busy: host processors") && page.contains("processor time a request"));
    let report = std::fs::read_to_string(folder.path().join("report.json")).expect("a report");
    let report: Value = serde_json::from_str(&report).expect("JSON");
    assert_eq!(report["limited_by"], "host_processors");
    assert!(succeed(&["explain", out]).contains("--set host.completion=adaptive"));

    let compared = succeed(&["compare", out, out]);
    for row in ["processor time a request, us", "read in the host, mean, us"] {
        assert!(compared.contains(row), "{row}: {compared}");
    }
}

#[test]
fn the_report_has_a_line_for_each_processor_by_kind_of_time() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().to_str().expect("UTF-8");
    succeed(&with(&["--host", "i7-4770", "--set", "host.completion=poll", "--out", out]));
    let report = std::fs::read_to_string(folder.path().join("report.json")).expect("a report");
    let report: Value = serde_json::from_str(&report).expect("JSON");
    let processors = &report["details"]["processors"];
    let names = processors["names"].as_array().expect("names");
    assert_eq!((names.len(), &names[0], &names[7]), (8, &"core 0 processor 0".into(), &"core 3 processor 7".into()));
    let shares = processors["parts_per_million"].as_object().expect("kinds");
    let all = |kind: &str| -> f64 {
        let rows =
            shares[kind].as_array().expect("a row a processor").iter().flat_map(|row| row.as_array().expect("cells"));
        rows.filter_map(Value::as_f64).sum()
    };
    assert!(all("kernel") > 0.0 && all("spin") > all("kernel") && shares.len() == 7, "two threads poll");
    let intervals = shares["spin"][0].as_array().expect("cells").len();
    for number in 0..8 {
        for at in 0..intervals {
            let sum: f64 = shares.values().filter_map(|rows| rows[number][at].as_f64()).sum();
            assert!(sum <= 1_000_007.0, "processor {number}, interval {at}: {sum}");
        }
    }
    let spun = all("spin") / intervals as f64 / 1e6;
    let of = |kind: &str| number(&report, &format!("/cpu/request_us_by/{kind}"));
    let expected = of("spin") * number(&report, "/requests") / number(&report, "/virtual_s") / 1e6;
    assert!((spun / expected - 1.0).abs() < 0.02, "{spun} processors spin, by the account {expected}");
    let page = std::fs::read_to_string(folder.path().join("report.html")).expect("a page");
    assert!(page.contains("What the host's processors did"));
}

#[test]
fn a_host_is_shown_in_columns_with_the_source_of_each_cost() {
    let text = succeed(&["hosts", "show", "i7-4770"]);
    let start = |key: &str, meaning: &str| {
        let line =
            text.lines().find(|line| line.starts_with(&format!("{key} "))).unwrap_or_else(|| panic!("{key}: {text}"));
        line.find(meaning).unwrap_or_else(|| panic!("{meaning}: {line}"))
    };
    assert_eq!(start("host.completion_queues", "completion queues"), start("host.wake", "cost of waking"));
    for line in ["host.poll_sleep  ", "  50% ", "  5% "] {
        assert!(text.contains(line), "{line}: {text}");
    }
    for source in
        ["source: as server: measured: an atomic exchange", "source: calibration: ", "source: as server: estimate"]
    {
        assert!(text.contains(source), "{source}: {text}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn this_machine_is_measured_and_its_profile_runs() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name).to_str().expect("UTF-8").to_owned();
    let mine = at("mine.toml");
    let table = succeed(&["hosts", "measure", "--rounds", "4", "--out", &mine]);
    let parts = [
        "host.syscall",
        "host.lock ",
        "host.nodes",
        "not measured, taken from server:",
        "host.submit",
        "use it with --host ",
    ];
    for part in parts {
        assert!(table.contains(part), "{part}: {table}");
    }
    let report = report(&["--host", &mine]);
    assert_eq!(report["inputs"]["host"]["name"], "mine");
    let shown = succeed(&["hosts", "show", &mine]);
    assert!(
        shown.contains("measured by nandscape ") && shown.contains("a read() of one byte of /dev/zero: median of 4")
    );
    assert!(shown.contains("source: not measured: ") && shown.contains("; server: "), "{shown}");

    // Without a file the profile is printed, and a profile can be the base of another.
    let printed = succeed(&["hosts", "measure", "--rounds", "1", "--base", &mine]);
    assert!(printed.contains("[source]") && printed.contains("# Taken from mine."), "{printed}");

    std::fs::create_dir(at("folder")).expect("a folder");
    std::os::unix::fs::symlink(&mine, at("link.toml")).expect("a link");
    for (words, parts) in [
        (&["--base", &mine, "--out", &mine][..], &["--out ", "would overwrite --base "][..]),
        (&["--out", "/dev/null"], &["--out /dev/null: it is a character device", "regular file"]),
        (&["--out", &at("folder")], &["it is a directory"]),
        (&["--out", &at("link.toml")], &["it is a symbolic link"]),
        (&["--out", &at("none/mine.toml")], &["there is no folder"]),
        (&["--base", "i9"], &["--base i9", "valid are server"]),
        (&["--rounds", "0"], &["--rounds", "1..=1000000"]),
    ] {
        refuse(&[&["hosts", "measure"][..], words].concat(), parts);
    }
}
