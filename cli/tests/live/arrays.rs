//! `serve --array`: arrays of drives of the server's own, of drives in files, and of drives of other servers, some of which are
//! killed.

use rustix::process::Signal;

use crate::server::{SMALL, Server, number, refuse};
use crate::tools::fio;

/// Four small drives as one. Clients call it as they call the small drive of other tests.
const ARRAY: [&str; 10] = [
    "--array",
    "small=raid5:4",
    "--drive",
    "member=default",
    "--set",
    "capacity=64MiB",
    "--set",
    "geometry.channels=2",
    "--set",
    "array.chunk=16KiB",
];

fn array(more: &[&str]) -> Server {
    let own = ["--nbd", "unix:n.sock", "--check", "--json"];
    Server::start(tempfile::tempdir().unwrap(), &[&ARRAY[..], &own, more].concat())
}

const VERIFY: [&str; 6] =
    ["--rw=randrw", "--bsrange=512-64k", "--iodepth=16", "--io_size=24m", "--size=48m", "--verify=crc32c"];

#[test]
fn fio_verifies_an_array_and_the_figures_tell_of_each_member() {
    let server = array(&["--nvme-tcp", "127.0.0.1:0"]);
    fio(&server, &VERIFY);
    fio(&server, &["--rw=randtrim", "--bs=64k", "--offset=64m", "--size=8m"]);
    let ended = server.end();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let told = "drive small is an array: raid5:4 of member-0, member-1, member-2, member-3, technique base";
    assert!(ended.err.contains(told), "{}", ended.err);
    let figures: serde_json::Value = serde_json::from_str(&ended.out).unwrap();
    let of = |place: &str| number(&figures, &format!("/drives/0/{place}"));
    assert!(of("counters/array_stripe_writes_total") > 500.0, "{figures:#}");
    assert!(of("counters/array_writes_sent_total") > of("counters/array_stripe_writes_total"), "{figures:#}");
    assert_eq!((of("counters/array_members_missing"), of("counters/array_lost"), of("writes/errors")), (0.0, 0.0, 0.0));
}

#[test]
fn an_array_in_files_outlasts_kill_9_and_goes_on() {
    let stores = ["--store", "file:a.nand", "--set", "array.technique=tea2"];
    let first = array(&stores);
    fio(&first, &VERIFY);
    // What is not flushed is in the drives, or in the journal.
    fio(&first, &["--rw=randwrite", "--bs=16k", "--offset=64m", "--size=64m", "--io_size=8m"]);
    let mut first = first;
    first.signal(Signal::KILL);
    first.wait();
    let folder = first.keep_folder();
    for number in 0..4 {
        assert!(folder.path().join(format!("a.nand.{number}")).exists());
    }
    let args = [&ARRAY[..], &["--nbd", "unix:n.sock", "--check", "--json"], &stores].concat();
    let again = Server::start(folder, &args);
    let only = [&VERIFY[..], &["--verify_only=1"]].concat();
    fio(&again, &only);
    let ended = again.end();
    assert_eq!(ended.code, Some(0), "{ended:?}");
}

#[test]
fn a_server_of_a_member_is_killed_and_nothing_is_lost() {
    let member = || {
        let more = ["--nvme-tcp", "127.0.0.1:0"];
        Server::start(tempfile::tempdir().unwrap(), &[&SMALL[..12], &more].concat())
    };
    let mut members: Vec<Server> = (0..4).map(|_| member()).collect();
    let drives: Vec<String> =
        members.iter().enumerate().map(|(at, server)| format!("m{at}={}?patience=1", server.url())).collect();
    let mut args = vec!["--array", "small=raid5:3", "--array-create", "--set", "array.chunk=16KiB"];
    drives.iter().for_each(|drive| args.extend(["--drive", drive]));
    args.extend(["--nbd", "unix:n.sock", "--json"]);
    let server = Server::start(tempfile::tempdir().unwrap(), &args);
    fio(&server, &VERIFY);
    members[1].signal(Signal::KILL);
    members[1].wait();
    fio(&server, &[&VERIFY[..], &["--verify_only=1"]].concat());
    fio(&server, &[&VERIFY[..4], &["--offset=48m", "--size=32m", "--verify=crc32c"]].concat());
    let figures = server.figures();
    assert_eq!(number(&figures, "/drives/0/writes/errors"), 0.0, "{figures:#}");
    assert_eq!(number(&figures, "/drives/0/counters/array_lost"), 0.0);
}

#[test]
fn arrays_that_cannot_be_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let of = |more: &[&str]| {
        let ended = refuse(folder.path(), &[&["--nbd", "unix:n.sock"], more].concat());
        assert_eq!(ended.code, Some(2), "{more:?}: {ended:?}");
        ended.err
    };
    let small = ["--drive", "default", "--set", "capacity=64MiB"];
    for (args, words) in [
        (&["--array", "raid5:2"][..], "raid5"),
        (&["--array", "raid1:2", "--set", "array.technique=rails"], "is for nandscape sim"),
        (&["--array", "raid5:4", "--set", "array.techniqe=base"], "array.techniqe"),
        (&["--array", "raid5:4", "--record", "r"], "--record: a recording is of drives"),
        (&["--array", "raid5:4", "--save-state", "s"], "--save-state: a state is of one drive"),
        (&["--array", "raid5:4", "--reactors", "2"], "give 1 to 1"),
        (&["--array", "raid5:4", "--store", "none", "--set", "array.journal=data"], "keep no journal"),
        (&["--array", "raid5:4", "--set", "array.chunk=3KiB"], "array.chunk"),
        (&["--array", "raid5:4", "--drive", "b=default"], "it needs 4 drives, and there are 2"),
        (&["--array-create"], "--array"),
    ] {
        let told = of(&[&small[..], args].concat());
        assert!(told.contains(words), "{args:?}: {told}");
    }
    let zones = of(&["--array", "raid5:4", "--drive", "wd-zn540", "--set", "capacity=1GiB"]);
    assert!(zones.contains("members are written anywhere"), "{zones}");
}

#[test]
fn a_new_array_refuses_a_state_with_data() {
    let mut server = Server::small(&["--save-state", "used.state"]);
    fio(&server, &["--rw=write", "--bs=64k", "--size=1m"]);
    server.signal(Signal::TERM);
    let ended = server.wait();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let used = ["--array", "raid1:2", "--from-state", "default-0=used.state", "--from-state", "default-1=used.state"];
    let drive = &SMALL[2..SMALL.len() - 2];
    let told = refuse(server.folder.path(), &[&["--nbd", "unix:n.sock", "--drive", "default"], drive, &used].concat());
    assert_eq!(told.code, Some(2), "{told:?}");
    assert!(told.err.contains("has data, which the array's parity would not fit"), "{}", told.err);
}
