//! `serve --array` over remote drives; some are killed, stall, or return as others.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use nandscape_sim::Seed;
use rustix::process::Signal;
use serde_json::json;

use crate::arrays::{LOAD, VERIFY, VERIFY_ONLY};
use crate::hang_ups::{ask, until};
use crate::patience;
use crate::server::{SMALL, Server, number, refuse};
use crate::store::{BLOCK, Client, Model, READ};
use crate::tools::{fio, start_fio};

/// An array of three drives, which clients call as they call the small drive of other tests.
const OWN: [&str; 9] = [
    "--array",
    "small=raid5:3",
    "--set",
    "array.chunk=16KiB",
    "--nbd",
    "unix:n.sock",
    "--control",
    "control",
    "--json",
];

/// Three servers of a drive each, and the words that make them an array.
fn servers_of_three() -> (Vec<Server>, Vec<String>) {
    let member =
        || Server::start(tempfile::tempdir().unwrap(), &[&SMALL[..12], &["--nvme-tcp", "127.0.0.1:0"]].concat());
    let members: Vec<Server> = (0..3).map(|_| member()).collect();
    let drives = members.iter().enumerate().map(|(at, server)| format!("m{at}={}?patience=1", server.url()));
    let words = drives.flat_map(|drive| ["--drive".to_owned(), drive]).collect();
    (members, words)
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
fn a_member_that_is_a_server_is_killed_under_load_and_the_array_goes_on() {
    let member = |_| {
        let more = ["--nvme-tcp", "127.0.0.1:0"];
        Server::start(tempfile::tempdir().unwrap(), &[&SMALL[..12], &more].concat())
    };
    let mut members: Vec<Server> = (0..3).map(member).collect();
    let drives: Vec<String> =
        members.iter().enumerate().map(|(at, server)| format!("m{at}={}?patience=1", server.url())).collect();
    let mut args = vec!["--array", "all=raid5:3", "--array-create", "--set", "array.chunk=16KiB"];
    drives.iter().for_each(|drive| args.extend(["--drive", drive]));
    args.extend(["--nvme-tcp", "127.0.0.1:0", "--json"]);
    let array = Server::start(tempfile::tempdir().unwrap(), &args);
    // Its client is a server that reaches it over NVMe/TCP.
    let drive = format!("small={}", array.url());
    let mut front = Server::start(tempfile::tempdir().unwrap(), &["--drive", &drive, "--nbd", "unix:n.sock", "--json"]);
    let (mut rng, mut next, mut model) = (Seed::new(1).rng(), 0, Model::new());
    let mut client = Client::connect(&mut front);
    let mut load = start_fio(&front, &LOAD);
    let writes = 1_200;
    model.write_telling(&mut client, &mut rng, writes, (&mut next, true), |count| {
        if count == writes / 3 {
            members[1].signal(Signal::KILL);
        }
    });
    assert_eq!(next, writes, "a write has failed");
    members[1].wait();
    load.kill().unwrap();
    patience::wait(&mut load, "fio");
    model.verify(&mut client);
    fio(&front, &VERIFY);
    let figures = front.figures();
    assert_eq!(number(&figures, "/drives/0/writes/errors"), 0.0, "{figures:#}");
    let figures = array.figures();
    let counter = |name: &str| number(&figures, &format!("/drives/0/counters/{name}"));
    assert_eq!((counter("array_members_missing"), counter("array_lost")), (1.0, 0.0), "{figures:#}");
}

#[test]
fn an_array_is_opened_without_a_drive_that_is_out_of_reach_if_that_is_asked() {
    let (mut members, drives) = servers_of_three();
    let with = |more: &[&str]| {
        [&OWN[..], &drives.iter().map(String::as_str).collect::<Vec<_>>(), more]
            .concat()
            .into_iter()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let start =
        |folder, more: &[&str]| Server::start(folder, &with(more).iter().map(String::as_str).collect::<Vec<_>>());
    let mut first = start(tempfile::tempdir().unwrap(), &["--array-create"]);
    fio(&first, &VERIFY);
    first.signal(Signal::TERM);
    assert_eq!(first.wait().code, Some(0));
    let folder = first.keep_folder();
    members[1].signal(Signal::KILL);
    members[1].wait();
    let args = with(&[]);
    let refused = refuse(folder.path(), &args.iter().map(String::as_str).collect::<Vec<_>>());
    assert!(
        refused.code == Some(2) && refused.err.contains("--array-degraded opens the array without it"),
        "{refused:?}"
    );
    let again = start(folder, &["--array-degraded"]);
    fio(&again, &[&VERIFY[..], &["--verify_only=1"]].concat());
    fio(&again, &[&VERIFY[..4], &["--offset=48m", "--size=16m", "--verify=crc32c"]].concat());
    let told = ask(&again, &json!({ "command": "set", "key": "array.spare", "value": "m1" })).to_string();
    assert!(told.contains("was missing when the array was opened"), "{told}");
    until(&again, "a member is missing", |figures| number(figures, "/drives/0/counters/array_members_missing") == 1.0);
    let ended = again.end();
    assert!(ended.code == Some(0) && ended.err.contains("it is degraded, member 1 is missing"), "{ended:?}");
    let url = members[1].url();
    let line = format!("note: drive small: m1 is left out, and is no spare: {url}: ");
    assert!(ended.err.contains(&line), "{}", ended.err);
}

/// Without a healthy member, the next start would take it for outdated.
#[test]
fn a_member_whose_layer_does_not_fit_is_not_left_out() {
    let far = Server::start(tempfile::tempdir().unwrap(), &[&SMALL[..12], &["--nvme-tcp", "127.0.0.1:0"]].concat());
    let url = format!("b={}", far.url());
    let drives = ["--drive", "a=default", "--store", "a=file:a.nand", "--drive", &url];
    let array = |over: &[&str], more: &[&str]| {
        [&SMALL[2..12], &drives, over, &["--over", "small=raid1:2", "--nbd", "unix:n.sock"], more].concat().join(" ")
    };
    let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let first = words(&array(&[], &["--array-create"]));
    let first: Vec<&str> = first.iter().map(String::as_str).collect();
    let (ended, folder) = Server::start(tempfile::tempdir().unwrap(), &first).end_keeping();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let again = words(&array(&["--over", "block,predictor=ssd"], &["--array-degraded"]));
    let again: Vec<&str> = again.iter().map(String::as_str).collect();
    let refused = refuse(folder.path(), &again);
    let problem =
        "drive b: block: block.predictor: ssd knows the flash or the disk directly below it, and there is none";
    assert!(refused.code == Some(2) && refused.err.contains(problem), "{refused:?}");
    assert_eq!(far.end().code, Some(0));
}

#[test]
fn an_array_over_drives_of_other_servers_has_them_to_itself() {
    let (members, drives) = servers_of_three();
    let drives: Vec<&str> = drives.iter().map(String::as_str).collect();
    let own = ["--array", "small=raid5:3", "--set", "array.chunk=16KiB", "--nbd", "unix:n.sock"];
    let array = Server::start(tempfile::tempdir().unwrap(), &[&own[..], &drives, &["--array-create"]].concat());
    for more in [&["--array-create"][..], &[]] {
        let folder = tempfile::tempdir().unwrap();
        let refused = refuse(folder.path(), &[&own[..], &drives, more].concat());
        assert!(refused.code == Some(2) && refused.err.contains("drive m0 belongs to an array already"), "{refused:?}");
    }
    fio(&array, &VERIFY);
    assert_eq!(array.end().code, Some(0));
    // One drive by two names.
    let other = format!("m1={}", members[0].url().replace("127.0.0.1", "localhost"));
    let twice = [drives[0], drives[1], "--drive", &other, drives[4], drives[5]];
    let folder = tempfile::tempdir().unwrap();
    let refused = refuse(folder.path(), &[&own[..], &twice, &["--array-create"]].concat());
    assert!(refused.code == Some(2) && refused.err.contains("name the drive once"), "{refused:?}");
}

/// Writes that a client of a drive has had acknowledged; a refusal ends them.
fn written(server: &mut Server) -> usize {
    let (mut rng, mut next) = (Seed::new(3).rng(), 0);
    let mut model = Model::new();
    model.write_telling(&mut Client::connect(server), &mut rng, 5, (&mut next, true), |_| ());
    model.durable()
}

#[test]
fn a_member_takes_writes_of_its_array_alone() {
    let member = |number: usize| {
        let own = ["--nvme-tcp", "127.0.0.1:0", "--nbd", "unix:n.sock", "--store", "small=file:drive.nand"];
        let seed = number.to_string();
        Server::start(tempfile::tempdir().unwrap(), &[&SMALL[..12], &own, &["--seed", &seed]].concat())
    };
    let mut members: Vec<Server> = (1..4).map(member).collect();
    assert!(written(&mut members[0]) > 0, "it is in no array yet");
    let places: Vec<String> = members.iter().map(|server| server.next_place("nvme-tcp://")).collect();
    let drives = places.iter().enumerate();
    let drives: Vec<String> = drives.map(|(at, place)| format!("m{at}=nvme-tcp://{place}?patience=600")).collect();
    let drives: Vec<&str> = drives.iter().flat_map(|drive| ["--drive", drive.as_str()]).collect();
    let mut array = Server::start(tempfile::tempdir().unwrap(), &[&OWN[..], &drives, &["--array-create"]].concat());
    let (mut rng, mut next, mut model) = (Seed::new(1).rng(), 0, Model::new());
    let mut client = Client::connect(&mut array);
    model.write_telling(&mut client, &mut rng, 200, (&mut next, true), |_| ());
    let beside = |members: &mut [Server]| {
        assert_eq!(written(&mut members[0]), 0, "an NBD client of the member's server");
        let drive = format!("small=nvme-tcp://{}", places[0]);
        let mut other = Server::start(tempfile::tempdir().unwrap(), &["--drive", &drive, "--nbd", "unix:n.sock"]);
        assert_eq!(written(&mut other), 0, "another host of the member");
        let mut client = Client::connect(&mut members[0]);
        assert!(client.request(READ, 0, &mut vec![0; BLOCK]).is_some(), "reads are for everyone");
    };
    beside(&mut members);
    // The server of a member starts again, as one that was killed.
    let address = places[0].split_once('/').unwrap().0;
    members[0].signal(Signal::KILL);
    members[0].wait();
    let own = ["--nvme-tcp", address, "--nbd", "unix:n.sock", "--store", "small=file:drive.nand", "--seed", "1"];
    let folder = members.remove(0).keep_folder();
    members.insert(0, Server::start(folder, &[&SMALL[..12], &own].concat()));
    assert_eq!(written(&mut members[0]), 0, "before the array is back");
    model.write_telling(&mut client, &mut rng, 200, (&mut next, true), |_| ());
    assert_eq!(next, 400, "a write of the array has failed");
    drop(client);
    beside(&mut members);
    assert_eq!(array.end().code, Some(0));
    // No array is running to notice a write.
    beside(&mut members);
    let mut array = Server::start(tempfile::tempdir().unwrap(), &[&OWN[..], &drives].concat());
    model.verify(&mut Client::connect(&mut array));
    assert_eq!(array.end().code, Some(0));
}

#[test]
fn a_member_that_comes_back_without_its_data_is_not_used() {
    let (mut members, drives) = servers_of_three();
    let drives: Vec<String> = drives.iter().map(|word| word.replace("patience=1", "patience=600")).collect();
    let args = [&OWN[..], &["--array-create"], &drives.iter().map(String::as_str).collect::<Vec<_>>()].concat();
    let array = Server::start(tempfile::tempdir().unwrap(), &args);
    fio(&array, &VERIFY);
    let address =
        members[1].url().strip_prefix("nvme-tcp://").and_then(|rest| rest.split('/').next()).unwrap().to_owned();
    members[1].signal(Signal::KILL);
    members[1].wait();
    let _empty = Server::start(tempfile::tempdir().unwrap(), &[&SMALL[..12], &["--nvme-tcp", &address]].concat());
    fio(&array, &VERIFY_ONLY);
    until(&array, "the member is out of use", |figures| {
        number(figures, "/drives/0/counters/array_members_missing") == 1.0
    });
    let ended = array.end();
    let told = "the drive has lost data, or was restored to an earlier state";
    assert!(ended.code == Some(0) && ended.err.contains(told), "{ended:?}");
}

#[test]
fn a_drive_of_another_server_that_is_of_no_array_is_written_over_only_if_that_is_asked() {
    let (members, drives) = servers_of_three();
    let drives: Vec<&str> = drives.iter().map(String::as_str).collect();
    let array = Server::start(tempfile::tempdir().unwrap(), &[&OWN[..], &drives, &["--array-create"]].concat());
    fio(&array, &VERIFY);
    assert_eq!(array.end().code, Some(0));
    let (others, _) = servers_of_three();
    let other = format!("m1={}?patience=1", others[0].url());
    let replaced = [drives[0], drives[1], "--drive", &other, drives[4], drives[5]];
    let folder = tempfile::tempdir().unwrap();
    let refused = refuse(folder.path(), &[&OWN[..], &replaced].concat());
    for words in ["drive m1 holds data of no array, or may", "--array-overwrite gives it up"] {
        assert!(refused.code == Some(2) && refused.err.contains(words), "{words}: {refused:?}");
    }
    let more = ["--array-overwrite", "--set", "array.rebuild_rate=0"];
    let array = Server::start(folder, &[&OWN[..], &replaced, &more].concat());
    fio(&array, &VERIFY_ONLY);
    until(&array, "it is rebuilt", |figures| number(figures, "/drives/0/counters/array_members_missing") == 0.0);
    assert_eq!(array.end().code, Some(0));
    drop(members);
}

#[test]
fn a_server_that_stood_still_while_another_one_took_its_array_over_writes_nothing_more() {
    let (_members, drives) = servers_of_three();
    let drives: Vec<&str> = drives.iter().map(String::as_str).collect();
    let own = ["--array", "small=raid5:3", "--set", "array.chunk=16KiB", "--nbd", "unix:n.sock", "--json"];
    let args = [&own[..], &drives].concat();
    let mut first = Server::start(tempfile::tempdir().unwrap(), &[&args[..], &["--array-create"]].concat());
    let (mut rng, mut next, mut model) = (Seed::new(1).rng(), 0, Model::new());
    let mut late = Client::connect(&mut first);
    model.write_telling(&mut late, &mut rng, 200, (&mut next, true), |_| ());
    first.signal(Signal::STOP);
    // The drives end its connections once it has not answered for some seconds.
    let mut second = None;
    patience::until("another server takes the array over", || {
        let started = Server::try_start(tempfile::tempdir().unwrap(), &args);
        let told = "belongs to an array already";
        assert!(started.as_ref().err().is_none_or(|ended| ended.err.contains(told)), "{started:?}");
        second = started.ok();
        second.is_some()
    });
    let mut second = second.expect("it serves");
    let mut client = Client::connect(&mut second);
    model.write_telling(&mut client, &mut rng, 400, (&mut next, true), |_| ());
    first.signal(Signal::CONT);
    let mut refused = 0;
    for _ in 0..3 {
        let before = refused;
        // Each client would continue after a successful write.
        Model::new().write_telling(&mut late, &mut rng, 10, (&mut refused, true), |_| ());
        assert_eq!(refused, before + 1, "a write of the first server has ended well");
    }
    model.write_telling(&mut client, &mut rng, 100, (&mut next, true), |_| ());
    model.verify(&mut client);
    assert_eq!(next, 700, "a write of the second server has failed");
    let ended = first.end();
    assert!(ended.err.contains("is not used any more: another server has continued the array"), "{ended:?}");
    assert_eq!(second.end().code, Some(0));
}

/// A network between an array and a member, which can break.
struct Network {
    address: String,
    connections: Arc<Mutex<Vec<TcpStream>>>,
}

impl Network {
    /// To a member's server. Its threads end with their connections, the one that accepts with the test.
    fn to(member: &str) -> Network {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let network = Network { address: listener.local_addr().unwrap().to_string(), connections: Arc::default() };
        let (member, connections) = (member.to_owned(), network.connections.clone());
        std::thread::spawn(move || {
            for near in listener.incoming() {
                let (near, far) = (near.unwrap(), TcpStream::connect(&member).unwrap());
                for (mut from, mut to) in [
                    (near.try_clone().unwrap(), far.try_clone().unwrap()),
                    (far.try_clone().unwrap(), near.try_clone().unwrap()),
                ] {
                    std::thread::spawn(move || {
                        let mut bytes = vec![0; 1 << 16];
                        while let Ok(count @ 1..) = from.read(&mut bytes) {
                            if to.write_all(&bytes[..count]).is_err() {
                                break;
                            }
                        }
                        // One end has gone: the other is to notice.
                        let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
                    });
                }
                connections.lock().unwrap().extend([near, far]);
            }
        });
        network
    }

    /// Breaks all connections.
    fn cut(&self) {
        for connection in self.connections.lock().unwrap().drain(..) {
            // It may have ended.
            let _ = connection.shutdown(Shutdown::Both);
        }
    }
}

#[test]
fn an_array_has_its_drives_back_after_connections_that_broke() {
    let (members, _) = servers_of_three();
    let place =
        |server: &Server| server.url().strip_prefix("nvme-tcp://").unwrap().split_once('/').unwrap().0.to_owned();
    let networks: Vec<Network> = members.iter().map(|server| Network::to(&place(server))).collect();
    let drive = |(number, server): (usize, &Server)| {
        let url = server.url().replace(&place(server), &networks[number].address);
        ["--drive".to_owned(), format!("m{number}={url}?patience=60")]
    };
    let drives: Vec<String> = members.iter().enumerate().flat_map(drive).collect();
    let own =
        ["--array", "small=raid5:3", "--array-create", "--set", "array.chunk=16KiB", "--nbd", "unix:n.sock", "--json"];
    let args = [&own[..], &drives.iter().map(String::as_str).collect::<Vec<_>>()].concat();
    let mut array = Server::start(tempfile::tempdir().unwrap(), &args);
    let (mut rng, mut next, mut model) = (Seed::new(1).rng(), 0, Model::new());
    let mut client = Client::connect(&mut array);
    for cut in [&networks[..], &networks[1..2], &networks[..2]] {
        model.write_telling(&mut client, &mut rng, 60, (&mut next, true), |count| {
            if count == 30 {
                cut.iter().for_each(Network::cut);
            }
        });
    }
    assert_eq!(next, 180, "a write has failed");
    model.verify(&mut client);
    let figures = array.figures();
    let counter = |name: &str| number(&figures, &format!("/drives/0/counters/{name}"));
    assert_eq!((counter("array_members_missing"), counter("array_lost")), (0.0, 0.0), "{figures:#}");
}
