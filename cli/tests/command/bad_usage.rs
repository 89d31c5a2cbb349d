//! Flags that contradict each other or lead nowhere, and the exit status.

use std::ffi::OsString;
use std::path::Path;
use std::process::Stdio;

use crate::program::{command, refuse, run};

const SMALL: [&str; 9] =
    ["sim", "--drive", "default", "--set", "capacity=64MiB", "--rw", "randread", "--io-count", "100"];

fn small(more: &[&str]) -> Vec<String> {
    SMALL.iter().chain(more).map(|word| (*word).to_owned()).collect()
}

#[test]
fn a_simulation_needs_a_drive_and_a_workload() {
    refuse(&["sim"], &["--drive <P>"]);
    refuse(&["sim", "--drive", "default"], &["no workload: give --rw (for example --rw randread), or --workload"]);
}

#[cfg(target_os = "linux")]
#[test]
fn a_server_needs_a_transport() {
    refuse(&["serve", "--drive", "default"], &["--nbd <ADDR>", "--nvme-tcp <ADDR>", "--vfio-user <[NAME=]PATH>"]);
}

#[test]
fn flags_that_contradict_each_other_are_refused() {
    for (one, other) in [
        (["--workload", "mixed"], ["--rw", "read"]),
        (["--workload", "mixed"], ["--bs", "4k"]),
        (["--workload", "mixed"], ["--rate-iops", "5"]),
        (["--io-count", "5"], ["--runtime", "1s"]),
    ] {
        refuse(
            &[&["sim", "--drive", "default"][..], &one, &other].concat(),
            &["cannot be used with", one[0], other[0]],
        );
    }
    let sim = ["sim", "--drive", "default", "--workload", "mixed"];
    for (word, key) in [("--fsync", "fsync"), ("--rate-iops", "rate_iops")] {
        let sweep = format!("`nandscape sweep --set workload=NAME --vary job.JOB.{key}=...`");
        refuse(
            &[&sim[..], &[word, "1"]].concat(),
            &["cannot be used with", &format!("set {key} in a [[job]]"), &sweep],
        );
    }
    let key = "job.log.rate_iops=100";
    refuse(&[&sim[..], &["--set", key]].concat(), &[&format!("`nandscape sweep --set workload=FILE --vary {key}`")]);
    refuse(&["sim", "--drive", "default", "--rw", "read", "--rate-process", "linear"], &["--rate-iops"]);
    refuse(&["sim", "--drive", "default", "--drive", "default", "--rw", "read"], &["cannot be used multiple times"]);
}

#[test]
fn choices_are_listed() {
    for (flag, choices) in [("--precondition", "none, full, steady"), ("--store", "none, ram")] {
        refuse(&["sim", "--drive", "default", "--rw", "read", flag, "some"], &[flag, choices]);
    }
    for (option, value, most) in [
        ("--seed", "x", u64::MAX),
        ("--seed", "-1", u64::MAX),
        ("--iodepth", "1e6", u32::MAX.into()),
        ("--numjobs", "-1", u32::MAX.into()),
    ] {
        let valid = format!("a whole number from 0 to {most} is valid");
        refuse(&["sim", "--drive", "default", "--rw", "read", option, value], &[option, &valid]);
    }
    #[cfg(target_os = "linux")]
    refuse(
        &["bench", "--to", "nvme-tcp://a:70000/nqn.x", "--rw", "read"],
        &["70000 is no port; a number from 1 to 65535"],
    );
}

/// They are fio's words, which are often given with others than they are for.
#[test]
fn words_without_effect_are_told() {
    for (more, told) in [
        (["--rwmixread", "70"], "note: --rwmixread has no effect on --rw randread: it is for rw and randrw"),
        (["--random-distribution", "zipf:1.1"], ""),
    ] {
        let ran = run(&small(&more));
        assert!(
            ran.code == 0 && ran.err.contains(told) && ran.err.contains("no effect") != told.is_empty(),
            "{}",
            ran.err
        );
    }
    let words = ["sim", "--drive", "default", "--set", "capacity=64MiB", "--io-count", "10", "--rw"];
    let ran = run(&[&words[..], &["rw", "--rwmixread", "70", "--random-distribution", "zipf:1.1"]].concat());
    assert!(ran.code == 0 && ran.err.matches("no effect").count() == 1, "{}", ran.err);
    assert!(ran.err.contains("--random-distribution has no effect on --rw rw"), "{}", ran.err);
}

#[test]
fn files_that_cannot_be_written_are_found_before_the_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("file");
    std::fs::write(&file, "in the way").expect("a file");
    let inside = file.join("inside").display().to_string();
    // A run that took place would last for minutes.
    let long = ["--io-count", "1000000000"];
    let start = ["sim", "--drive", "default", "--rw", "randread"];
    refuse(&[&start[..], &long, &["--out", &inside]].concat(), &["--out", &inside]);
    refuse(&[&start[..], &long, &["--chrome-trace", &inside]].concat(), &["--chrome-trace", "cannot write", &inside]);
}

/// A rejected command leaves all files unchanged.
#[cfg(unix)]
#[test]
fn no_output_overwrites_an_input_or_another_output() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name).display().to_string();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).expect("a file");
    write("base.toml", "version = 1\nbase = \"default\"\ncapacity = \"64MiB\"\n");
    write("mine.toml", "version = 1\nbase = \"base.toml\"\n");
    write("load.toml", "version = 1\n[[job]]\nrw = \"randread\"\n");
    write("trace", "1 0 R 0 8\n");
    std::fs::hard_link(folder.path().join("trace"), folder.path().join("hard")).expect("a link");
    std::os::unix::fs::symlink("trace", folder.path().join("soft")).expect("a link");
    let (mine, load, trace, out) = (at("mine.toml"), at("load.toml"), at("trace"), at("out"));
    let over = |words: &[&str], output: &str| {
        let start = ["sim", "--drive", "default", "--set", "capacity=64MiB"];
        let words = if words[0] == "--replay" { [&["sim"], words].concat() } else { [&start[..], words].concat() };
        let held: Vec<Vec<u8>> = [&mine, &load, &trace].map(|file| std::fs::read(file).expect("it is there")).to_vec();
        refuse(&[&words[..], &["--chrome-trace", output]].concat(), &["would overwrite", output]);
        let left: Vec<Vec<u8>> = [&mine, &load, &trace].map(|file| std::fs::read(file).expect("it is there")).to_vec();
        assert!(held == left, "{words:?}");
    };
    for name in ["trace", "hard", "soft", "./trace"] {
        over(&["--trace", &trace], &at(name));
        over(&["--replay", &trace], &at(name));
    }
    over(&["--workload", &load], &load);
    for profile in ["mine.toml", "base.toml"] {
        let words = ["sim", "--drive", &mine, "--rw", "read", "--chrome-trace", &at(profile)];
        refuse(&words, &["would overwrite --drive", profile]);
    }
    let inside = at("out/../out/report.json");
    let words = small(&["--out", &out, "--chrome-trace", &inside]);
    refuse(&words.iter().map(String::as_str).collect::<Vec<_>>(), &["are the same file", "report.json"]);
}

/// The data of a drive may be nowhere else.
#[test]
fn no_output_replaces_the_store_of_a_drive() {
    let folder = tempfile::tempdir().expect("a folder");
    let (store, out, trace) = (folder.path().join("d.nand"), folder.path().join("out"), folder.path().join("t.trace"));
    std::fs::write(&store, "NANDFILE and a drive").expect("a file");
    std::fs::write(&trace, "1 0 R 0 8\n").expect("a file");
    std::fs::create_dir(&out).expect("a folder");
    std::fs::hard_link(&store, out.join("report.json")).expect("a link");
    let [at, out, trace] = [&store, &out, &trace].map(|path| path.display().to_string());
    let sim = |more: &[&str]| refuse(&[&SMALL[..], more].concat(), &["holds a drive"]);
    sim(&["--chrome-trace", &at]);
    sim(&["--out", &out]);
    refuse(&["trace", "convert", &trace, &at, "--to", "spc"], &["OUT", "holds a drive"]);
    #[cfg(target_os = "linux")]
    for option in ["--record", "--chrome-trace"] {
        let socket = format!("unix:{out}/n.sock");
        refuse(&["serve", "--drive", "default", "--nbd", &socket, option, &at], &[option, "holds a drive"]);
    }
    assert_eq!(std::fs::read(&store).expect("it is there"), b"NANDFILE and a drive");
}

#[cfg(target_os = "linux")]
#[test]
fn options_of_a_server_that_have_no_effect_are_refused() {
    let serve = ["serve", "--drive", "default", "--nbd", "unix:n.sock"];
    refuse(&[&serve[..], &["--store-sync"]].concat(), &["--store-sync", "no drive is in a file"]);
    refuse(&[&serve[..], &["--doorbells", "shadow"]].concat(), &["--vfio-user"]);
}

/// A limit of 512 bytes a file stands for a full disk.
#[cfg(target_os = "linux")]
#[test]
fn a_disk_that_runs_full_is_an_error() {
    let folder = tempfile::tempdir().expect("a folder");
    let nandscape = env!("CARGO_BIN_EXE_nandscape");
    let words = "sim --drive default --set capacity=64MiB --rw randread --io-count 1000 --chrome-trace events.json";
    let mut command = std::process::Command::new("sh");
    let ended = command.args(["-c", &format!("ulimit -f 1; exec '{nandscape}' {words}")]).current_dir(&folder).output();
    let ended = ended.expect("a shell");
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.code() == Some(1) && said.contains("events.json"), "{ended:?}");
}

#[cfg(target_os = "linux")]
#[test]
fn what_never_ends_is_no_profile_workload_or_report() {
    let folder = tempfile::tempdir().expect("a folder");
    let pipe = folder.path().join("pipe").display().to_string();
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().expect("it is installed").success());
    std::fs::write(folder.path().join("long.toml"), vec![b'#'; (1 << 20) + 1]).expect("a file");
    let long = folder.path().join("long.toml").display().to_string();
    let zero = "/dev/zero".to_owned();
    let device = "it is a character device; a regular file";
    for (path, problem) in [(&zero, device), (&pipe, "it is a pipe (FIFO)"), (&long, "longer than 1 MiB")] {
        refuse(&["drives", "show", path], &[path, problem]);
        refuse(&["sim", "--drive", path, "--rw", "read"], &[path, problem]);
        refuse(&["workloads", "show", path], &[path, problem]);
        refuse(&["sim", "--drive", "default", "--workload", path], &[path, problem]);
        refuse(&["sweep", path], &[path, problem]);
        refuse(&["hosts", "show", path], &[path, problem]);
        refuse(&["hosts", "measure", "--base", path], &[path, problem]);
        refuse(&["sim", "--drive", "default", "--rw", "read", "--host", path], &[path, problem]);
        refuse(&["sim", "--drive", "default", path], &[path, problem]);
    }
    for path in [&zero, &pipe] {
        refuse(&["sim", "--replay", path], &[path]);
        refuse(&["compare", path, path], &[path]);
        refuse(&["sim", "--from-state", path, "--rw", "read"], &[path]);
        refuse(&["inspect", path], &[path]);
        refuse(&["fsck", path], &[path]);
    }
    refuse(&["trace", "info", &zero], &[&zero, "a regular file or a pipe is valid"]);
    refuse(&["sim", "--drive", "default", "--trace", &zero], &[&zero]);
}

/// It looks like a regular file of length 0, and waits for the next message of the kernel.
#[cfg(target_os = "linux")]
#[test]
fn the_log_of_the_kernel_is_no_profile() {
    refuse(&["sim", "--drive", "/proc/kmsg", "--rw", "read"], &["/proc/kmsg"]);
    refuse(&["hosts", "show", "/proc/kmsg"], &["/proc/kmsg"]);
    let traced = run(&["trace", "info", "/proc/kmsg"]);
    assert!(traced.code == 2 && !traced.err.contains("after line 0"), "{}", traced.err);
    // Only root may read it.
    let is_open = std::fs::File::open("/proc/kmsg").is_ok();
    assert!(!is_open || traced.err.contains("the file is endless"), "{}", traced.err);
}

/// All options that write a file, with every kind of file that none of them replaces.
#[cfg(unix)]
#[test]
fn no_output_replaces_a_pipe_a_socket_or_a_link() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    let write = |name: &str, text: &str| std::fs::write(at(name), text).expect("a file");
    write("trace", "1 0 R 0 8\n");
    write("precious", "precious");
    let report = at("run");
    assert_eq!(run(&small(&["--out", report.to_str().expect("UTF-8")])).code, 0);
    let report = report.join("report.json").display().to_string();
    type Make = fn(&Path);
    let make: [(&str, Make); 4] = [
        ("a pipe (FIFO)", |path| {
            assert!(std::process::Command::new("mkfifo").arg(path).status().expect("it is installed").success());
        }),
        ("a socket", |path| drop(std::os::unix::net::UnixListener::bind(path).expect("a socket"))),
        ("a symbolic link", |path| std::os::unix::fs::symlink("precious", path).expect("a link")),
        ("a symbolic link", |path| std::os::unix::fs::symlink("nothing", path).expect("a link")),
    ];
    for (kind, make) in make {
        let refused = |words: &[&str], name: &str| {
            let path = at(name);
            path.parent().map(std::fs::create_dir_all).expect("a folder").expect("it is made");
            make(&path);
            let found = || path.symlink_metadata().expect("it is there").file_type();
            let before = found();
            refuse(words, &[path.to_str().expect("UTF-8"), &format!("it is {kind}; ")]);
            assert!(found() == before, "{words:?}");
            std::fs::remove_file(&path).expect("it is removed");
        };
        let [file, out] = [at("file"), at("out")].map(|path| path.display().to_string());
        for option in ["--save-state", "--save-state-after", "--chrome-trace", "--requests"] {
            let words = small(&[option, &file]);
            refused(&words.iter().map(String::as_str).collect::<Vec<_>>(), "file");
        }
        let words = small(&["--out", &out]);
        refused(&words.iter().map(String::as_str).collect::<Vec<_>>(), "out/report.json");
        let trace = at("trace").display().to_string();
        refused(&["trace", "convert", &trace, &file, "--to", "msr"], "file");
        refused(&["compare", &report, &report, "--out", &out], "out/compare.json");
        refused(&["demo", "--out", &out], "out/report.html");
        let set = ["--set", "capacity=64MiB", "--set", "rw=randread", "--vary", "bs=4k,8k"];
        let sweep = [&["sweep", "--drive", "default"][..], &set, &["--out", &out]].concat();
        refused(&sweep, "out/sweep.csv");
        std::fs::remove_dir_all(&out).expect("it is removed");
    }
    assert_eq!(std::fs::read(at("precious")).expect("it is there"), b"precious");
    assert!(!at("nothing").exists());
}

#[cfg(unix)]
#[test]
fn arguments_that_are_no_text_are_refused() {
    use std::os::unix::ffi::OsStringExt as _;
    for flag in ["--drive", "--set", "--rw", "--workload", "--bs"] {
        let odd = OsString::from_vec(vec![b'a', 0xff]);
        let ran = run(&[OsString::from("sim"), OsString::from(flag), odd]);
        assert!(ran.code == 2 && ran.err.contains("UTF-8"), "{flag}: {}", ran.err);
    }
}

#[test]
fn all_is_well_is_zero_and_goes_to_standard_output() {
    let ran = run(&small(&[]));
    assert_eq!(ran.code, 0);
    assert!(ran.out.contains("IOPS"), "{}", ran.out);
    assert!(ran.err.lines().all(|line| line.starts_with("note: ")), "no progress in a pipe: {}", ran.err);
}

#[cfg(target_os = "linux")]
#[test]
fn results_that_cannot_be_written_are_a_failed_run() {
    let full = || std::fs::OpenOptions::new().write(true).open("/dev/full").expect("Linux has it");
    let words = ["drives", "workloads", "--help", "--version"].map(|word| vec![word.to_owned()]);
    for args in [small(&[]), small(&["--json"])].into_iter().chain(words) {
        let output = command(&args).stdout(full()).output().expect("the program starts");
        let err = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            output.status.code() == Some(1) && err.contains("error: cannot write to standard output"),
            "{args:?}: {err}"
        );
    }
    // A file that cannot be written does not lose the figures.
    let folder = tempfile::tempdir().expect("a folder");
    let words = format!(
        "ulimit -f 0; exec '{}' {}",
        env!("CARGO_BIN_EXE_nandscape"),
        small(&["--chrome-trace", "e.json"]).join(" ")
    );
    let output = std::process::Command::new("sh").args(["-c", &words]).current_dir(&folder).output().expect("a shell");
    let [out, err] = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    assert!(output.status.code() == Some(1) && err.contains("cannot write e.json"), "{err}");
    assert!(out.contains("latency, us"), "{out}");
}

#[test]
fn a_reader_that_has_gone_is_no_failure() {
    for args in [small(&["--json"]), small(&[]), vec!["drives".to_owned(), "keys".to_owned()]] {
        let mut child = command(&args).stdout(Stdio::piped()).spawn().expect("the program starts");
        drop(child.stdout.take());
        let output = child.wait_with_output().expect("it ends");
        let err = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success() && !err.contains("panicked"), "{args:?}: {err}");
    }
}

#[test]
fn what_a_drive_without_placement_does_not_take_is_refused() {
    let sim = |more: &[&'static str]| [&["sim", "--drive", "default", "--set", "capacity=1GiB"][..], more].concat();
    refuse(
        &sim(&["--rw", "write", "--fdp"]),
        &["the drive has no reclaim unit handles, which ftl.fdp.handles gives it"],
    );
    refuse(
        &sim(&["--rw", "write", "--dataplacement", "streams", "--plids", "1"]),
        &["the drive has no streams, which ftl.streams.count gives it"],
    );
    refuse(&sim(&["--rw", "write", "--dataplacement", "hints"]), &["none, fdp and streams are valid"]);
    refuse(&sim(&["--rw", "write", "--plids", "1"]), &["--plids is for jobs that place writes"]);
    refuse(&sim(&["--rw", "randread", "--fdp"]), &["--dataplacement is for jobs that write, which randread does not"]);
    refuse(&sim(&["--rw", "write", "--offset", "2GiB"]), &["offset = 2GiB of a drive of 1GiB leaves no room"]);
    refuse(&sim(&["--rw", "write", "--set", "ftl.streams.count=64"]), &["64 is out of range; from 0 to 63 is valid"]);
}

/// Half of such a drive's addresses hold no data. A job that knows zones stays off them, and so does one within a zone.
#[test]
fn reads_where_zones_hold_no_data_are_told() {
    let sim = |more: &[&'static str]| {
        let zoned = ["sim", "--drive", "wd-zn540", "--set", "capacity=32GiB", "--rw", "randread", "--io-count", "1000"];
        let ran = run(&[&zoned[..], more].concat());
        assert_eq!(ran.code, 0, "{}", ran.err);
        ran.err.lines().filter(|line| line.contains("zone")).map(str::to_owned).collect::<Vec<String>>()
    };
    let told = sim(&[]);
    assert!(told.len() == 1 && told[0].starts_with("note: job \"randread\" also reads where no data is"), "{told:?}");
    for part in
        ["capacity of a zone, 1077MiB, is below its size, 2GiB", "no flash", "--zonemode zbd", "written data only"]
    {
        assert!(told[0].contains(part), "{told:?}");
    }
    for more in [&["--zonemode", "zbd"][..], &["--size", "1GiB"], &["--size", "1GiB", "--offset", "2GiB"]] {
        assert!(sim(more).is_empty(), "{more:?}");
    }
}

/// Jobs that know no zones write where they like, and NBD has no zones.
#[test]
fn what_a_drive_with_zones_does_not_take_is_refused() {
    let zoned = ["--drive", "wd-zn540", "--set", "capacity=32GiB"];
    let sim = |more: &[&'static str]| [&["sim"], &zoned[..], more].concat();
    refuse(
        &sim(&["--rw", "randwrite"]),
        &[
            "job \"randwrite\": the drive has zones",
            "jobs with zonemode = zbd (--zonemode zbd) are valid, for writes and for reads",
        ],
    );
    let zbd = |more: &[&'static str]| [&sim(&["--zonemode", "zbd"])[..], more].concat();
    refuse(
        &zbd(&["--rw", "write", "--max-open-zones", "15"]),
        &["write 15 zones at a time, the drive has 14 open at most"],
    );
    refuse(&zbd(&["--rw", "write", "--size", "1GiB"]), &["size = 1GiB holds no whole zone, which has 2GiB"]);
    refuse(&zbd(&["--rw", "write", "--rate-iops", "5"]), &["--zonemode = zbd is for closed loops"]);
    refuse(&zbd(&["--rw", "write", "--zone-fill", "0"]), &["--zone-fill = 0B is out of range"]);
    refuse(&zbd(&["--rw", "randread", "--precondition", "none"]), &["no zone has data to read"]);
    refuse(
        &zbd(&["--rw", "write", "--zone-fill", "101%"]),
        &["--zone-fill", "a share such as \"50%\", up to \"100%\""],
    );
    refuse(
        &zbd(&["--rw", "write", "--zone-fill", "1"]),
        &["zone_fill = 1B leaves zones active", "zone_finish (--zone-finish), or size (--size) up to 28GiB, is valid"],
    );
    refuse(
        &zbd(&["--rw", "randread", "--offset", "10%"]),
        &["--offset does not go with zonemode = zbd", "give size (--size) alone, such as \"10%\""],
    );
    refuse(
        &["sim", "--drive", "default", "--rw", "write", "--zonemode", "zbd"],
        &["the drive has no zones; one with ftl.kind = \"zone\" has them, such as --drive wd-zn540"],
    );
    refuse(&sim(&["--rw", "randrw"]), &["the drive has zones"]);
    let steady = ["--rw", "randread", "--precondition", "steady"];
    refuse(&sim(&steady), &["precondition steady: drive wd-zn540 has zones", "none and full are valid"]);
    let nbd = [&["serve"], &zoned[..], &["--nbd", "unix:zones.sock"]].concat();
    refuse(&nbd, &["--nbd unix:zones.sock: drive wd-zn540 has zones", "--vfio-user and --nvme-tcp can"]);
}
