//! memcached's own tests against `nandscape memcached`: each gives what docs/validation/memcached.md lists.
//!
//! The tests are Perl programs that print a line for each of their points. They find a server that runs already by T_MEMD_USE_DAEMON. Here
//! each has a separate server, because several count all commands so far. The tests ask memcached's program for its optional features: they run from a
//! folder with a stub of it that reports none.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;

/// memcached's source, which `cargo xtask tools` fetches.
const SOURCE: &str = "memcached-1.6.18";
/// The page with what each test gives.
const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/validation/memcached.md");
/// Tests that run at the same time. Most wait for seconds to pass.
const AT_ONCE: usize = 6;
/// How long a test may take, in seconds.
const LIMIT: &str = "120";
/// Set to anything, the tests that need much processor time run, too.
const LONG: &str = "NANDSCAPE_LONG";

/// Waits where memcached's debug command would move its clock, and a little longer: the server's clock begins before it has opened its drives.
const CLOCK: &str = "package Clock;
INIT {
    no warnings 'redefine';
    no strict 'refs';
    my $wait = sub { select undef, undef, undef, $_[1] + 0.5 };
    *{\"MemcachedTest::mem_move_time\"} = $wait;
    *{\"main::mem_move_time\"} = $wait;
}
1;
";

/// What a test gives: the number of its points and those that fail. A test that ends early has no number.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Given {
    points: Option<u32>,
    failed: BTreeSet<u32>,
}

/// A row of the page.
#[derive(Clone, Debug)]
struct Row {
    /// `None`: it is not run.
    given: Option<Given>,
    is_long: bool,
    reason: String,
}

/// The numbers of a list such as `3, 5-7`.
fn numbers(list: &str) -> BTreeSet<u32> {
    let one = |part: &str| {
        let (first, last) = part.trim().split_once('-').unwrap_or((part.trim(), part.trim()));
        first.parse::<u32>().unwrap_or_else(|_| panic!("{list:?}"))
            ..=last.parse().unwrap_or_else(|_| panic!("{list:?}"))
    };
    if list.is_empty() { BTreeSet::new() } else { list.split(',').flat_map(one).collect() }
}

/// The same as a list.
fn list(numbers: &BTreeSet<u32>) -> String {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for number in numbers {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == *number => *last = *number,
            _ => ranges.push((*number, *number)),
        }
    }
    let range = |(first, last): (u32, u32)| if first == last { first.to_string() } else { format!("{first}-{last}") };
    ranges.into_iter().map(range).collect::<Vec<_>>().join(", ")
}

/// The rows of the page by the names of tests.
fn page() -> BTreeMap<String, Row> {
    let text = std::fs::read_to_string(PAGE).unwrap();
    let mut rows = BTreeMap::new();
    for line in text.lines().filter(|line| line.starts_with("| `") && line.contains(".t` |")) {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [name, points, failed, reason] = cells[..] else { panic!("{line}") };
        let (points, is_long) = points.strip_suffix(" (long)").map_or((points, false), |points| (points, true));
        let given = match points {
            "not run" => None,
            "ends" => Some(Given { points: None, failed: numbers(failed) }),
            points => Some(Given { points: Some(points.parse().unwrap()), failed: numbers(failed) }),
        };
        let row = Row { given, is_long, reason: reason.to_owned() };
        assert!(rows.insert(name.trim_matches('`').to_owned(), row).is_none(), "{name} twice");
    }
    rows
}

struct Server(Child, String);

impl Server {
    fn start() -> Server {
        let mut command = Command::new(env!("CARGO_BIN_EXE_nandscape"));
        command.args(["memcached", "--listen", "127.0.0.1:0", "--drives", "2", "--policy", "epochs"]);
        command.args([
            "--set",
            "capacity=512MiB",
            "--set",
            "geometry.channels=2",
            "--set",
            "geometry.dies_per_channel=2",
        ]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let port = line.split("127.0.0.1:").nth(1).and_then(|rest| rest.split(',').next());
        let address = format!("127.0.0.1:{}", port.unwrap_or_else(|| panic!("{line:?}")));
        Server(child, address)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A folder from which the tests can run.
fn stage(source: &Path) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("memcached-debug");
    std::fs::write(&program, "#!/bin/sh\n").unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    std::fs::write(folder.path().join("Clock.pm"), CLOCK).unwrap();
    symlink(source.join("t"), folder.path().join("t")).unwrap();
    folder
}

/// What a test prints, and what it gives by that.
fn run(folder: &Path, name: &str) -> (String, Given) {
    let server = Server::start();
    let mut command = Command::new("timeout");
    command.args([LIMIT, "perl", &format!("t/{name}")]).current_dir(folder).env("T_MEMD_USE_DAEMON", &server.1);
    command.env("PERL5OPT", format!("-I{} -MClock", folder.display())).env_remove("PERL5LIB");
    // The tests end a server that they have not started by sending a signal to their group.
    let output = command.stdin(Stdio::null()).process_group(0).output();
    let output = output.unwrap_or_else(|error| panic!("timeout: {error}"));
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let given = given(&printed);
    (printed + &String::from_utf8_lossy(&output.stderr), given)
}

/// What a test gives, by what it printed (the Test Anything Protocol).
fn given(printed: &str) -> Given {
    let plan = printed.lines().find_map(|line| line.strip_prefix("1..")?.split(' ').next()?.parse().ok());
    let number = |line: &str, word: &str| line.strip_prefix(word)?.split(' ').next()?.parse::<u32>().ok();
    let passed: BTreeSet<u32> = printed.lines().filter_map(|line| number(line, "ok ")).collect();
    let failed: BTreeSet<u32> = printed.lines().filter_map(|line| number(line, "not ok ")).collect();
    match plan {
        Some(points) => {
            Given { points: Some(points), failed: (1..=points).filter(|point| !passed.contains(point)).collect() }
        }
        None => Given { points: None, failed },
    }
}

fn row(name: &str, given: &Given) -> String {
    let points = given.points.map_or("ends".to_owned(), |points| points.to_string());
    format!("| `{name}` | {points} | {} |", list(&given.failed))
}

#[expect(clippy::print_stderr, reason = "reports why nothing is tested")]
fn source() -> Option<PathBuf> {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent()?;
    let source = target.join("tools").join(SOURCE);
    let is_there = source.join("t/lib/MemcachedTest.pm").exists();
    if !is_there {
        eprintln!("skipped: {} is missing; cargo xtask tools fetches it from Debian's archive", source.display());
    }
    is_there.then_some(source)
}

#[test]
fn memcacheds_own_tests_give_what_the_page_lists() {
    let (Some(source), rows) = (source(), page()) else { return };
    let tests = std::fs::read_dir(source.join("t")).unwrap().flatten().map(|entry| entry.file_name());
    let tests = tests.filter_map(|name| name.into_string().ok()).filter(|name| name.ends_with(".t"));
    assert_eq!(tests.collect::<BTreeSet<_>>(), rows.keys().cloned().collect(), "each test has a row");
    let is_long = std::env::var_os(LONG).is_some();
    let wanted = |row: &Row| row.given.is_some() && (is_long || !row.is_long);
    let folder = stage(&source);
    let (left, wrong) = (Mutex::new(rows.iter().filter(|(_, row)| wanted(row))), Mutex::new(String::new()));
    let work = || {
        loop {
            let Some((name, row)) = left.lock().unwrap().next() else { return };
            let (printed, given) = run(folder.path(), name);
            if row.given.as_ref() != Some(&given) {
                writeln!(wrong.lock().unwrap(), "{}\n{printed}", self::row(name, &given)).unwrap();
            }
        }
    };
    std::thread::scope(|scope| (0..AT_ONCE).for_each(|_| drop(scope.spawn(work))));
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn the_page_gives_a_reason_for_all_that_fails() {
    let rows = page();
    assert!(rows.len() > 70, "{} rows", rows.len());
    for (name, row) in &rows {
        let is_whole = row.given.as_ref().is_some_and(|given| given.points.is_some() && given.failed.is_empty());
        assert!(is_whole || !row.reason.is_empty(), "{name}");
    }
    assert!(rows.values().any(|row| row.is_long) && rows.values().any(|row| row.given.is_none()));
    assert_eq!(list(&numbers("1, 3-5, 9")), "1, 3-5, 9");
    let printed = "1..4\nok 1 - a\nnot ok 2 - b\n# why\nok 3\n";
    assert_eq!(given(printed), Given { points: Some(4), failed: numbers("2, 4") });
    assert_eq!(given("ok 1\nnot ok 2 - x\n"), Given { points: None, failed: numbers("2") });
}
