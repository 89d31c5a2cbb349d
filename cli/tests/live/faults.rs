//! Faults ordered of a running drive, as an unmodified client meets them: data that cannot be read, that is lost until
//! it is written anew, that is wrong without a word; and the same run again.

use serde_json::{Value, json};

use crate::hang_ups::ask;
use crate::patience;
use crate::server::{SMALL, Server, number, refuse, sim};
use crate::tools::{fio, tool};

fn fault(server: &Server, rule: &str) {
    let reply = ask(server, &json!({ "command": "fault", "drive": "small", "rule": rule }));
    assert_eq!(reply["faults"].as_array().unwrap().last().unwrap()["rule"], rule, "{reply}");
}

/// Runs commands of qemu-io on the drive, each with its expected end.
fn qemu_io(server: &Server, commands: &[(&str, Ends)]) {
    for (command, ends) in commands {
        let output = patience::output(&mut tool("qemu-io", &["-f", "raw", "-c", command, &server.uri()]));
        let output = output.unwrap_or_else(|error| panic!("qemu-io: {error}; run: cargo xtask tools"));
        let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        let found = match () {
            // The second is that of a drive which refuses writes: it may be read-only before the write that made it so has ended.
            () if text.contains("Input/output error") || text.contains("Operation not permitted") => Ends::WithAnError,
            () if text.contains("Pattern verification failed") => Ends::WithOtherData,
            () if output.status.success() => Ends::Well,
            () => panic!("{command}: {text}"),
        };
        assert_eq!(found, *ends, "{command}: {text}");
    }
}

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Ends {
    Well,
    WithAnError,
    WithOtherData,
}
use Ends::{Well, WithAnError, WithOtherData};

#[test]
fn faults_on_order_reach_the_client_and_writing_heals() {
    let record = ["--record", "run.rec", "--chrome-trace", "live.json"];
    let mut server = Server::small(&[&["--set", "buffer.mode=volatile", "--control", "control"][..], &record].concat());
    qemu_io(&server, &[("write -P 1 0 16k", Well), ("flush", Well), ("read -P 1 0 16k", Well)]);
    // As long as the rule stands it strikes, and the data is still there when it does not.
    fault(&server, "uncorrectable lba=0-7");
    qemu_io(&server, &[("read 0 4k", WithAnError), ("read 0 512", WithAnError)]);
    let faults = ask(&server, &json!({ "command": "faults" }));
    assert_eq!(number(&faults, "/drives/0/faults/0/struck"), 2.0);
    let cleared = ask(&server, &json!({ "command": "clear_faults" }));
    assert_eq!(cleared, json!({ "name": "small", "faults": [] }));
    qemu_io(&server, &[("read -P 1 0 4k", Well)]);
    // A write of a part needs the rest, which cannot be read once: it is lost for good.
    fault(&server, "uncorrectable lba=0-7 count=1");
    qemu_io(&server, &[("write -P 2 512 512", Well), ("flush", Well)]);
    qemu_io(&server, &[("read 0 512", WithAnError), ("read 0 512", WithAnError), ("read -P 2 512 512", Well)]);
    qemu_io(&server, &[("write -P 3 0 4k", Well), ("flush", Well), ("read -P 3 0 4k", Well)]);
    // Bits that are wrong without an error stay wrong until they are written.
    fault(&server, "corrupt read lba=0-7 count=1");
    qemu_io(&server, &[("read -P 3 0 4k", WithOtherData), ("read -P 3 0 4k", WithOtherData)]);
    qemu_io(&server, &[("write -P 4 0 4k", Well), ("flush", Well), ("read -P 4 0 4k", Well)]);

    server.signal(rustix::process::Signal::TERM);
    let ended = server.wait();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let figures: Value = serde_json::from_str(&ended.out).unwrap();
    assert_eq!(number(&figures, "/drives/0/media_errors"), 4.0);
    assert_eq!(number(&figures, "/drives/0/counters/lost_units_total"), 1.0);
    let folder = server.folder.path();
    let again = sim(folder, &["--replay", "run.rec", "--chrome-trace", "again.json", "--json", "--check"]);
    assert_eq!(again.code, Some(0), "{again:?}");
    let file = |name: &str| std::fs::read(folder.join(name)).unwrap();
    assert!(file("live.json") == file("again.json"), "the traces differ");
    let report: Value = serde_json::from_str(&again.out).unwrap();
    assert_eq!((number(&report, "/damage/lost_units"), number(&report, "/faults/1/struck")), (1.0, 1.0));
}

#[test]
fn a_drive_says_why_it_takes_no_more_writes() {
    for kind in ["page", "ox_block"] {
        let kind = format!("ftl.kind={kind}");
        let more = ["--set", "buffer.mode=through", "--set", "ftl.over_provisioning=42.86%", "--set", &kind];
        let mut server = Server::small(&[&more[..], &["--control", "control"]].concat());
        let drive = || ask(&server, &json!({ "command": "statistics" }))["drives"][0].clone();
        assert_eq!(drive().get("read_only"), None);
        fault(&server, "fail program");
        qemu_io(&server, &[("write -P 1 0 64k", WithAnError)]);
        let why = drive()["read_only"].as_str().unwrap().to_owned();
        // No spare blocks are left, or the table of bad blocks could not be written: what fails first depends on the clock.
        assert!(why.contains("left") || why.contains("can be written"), "{kind}: {why}");
        server.signal(rustix::process::Signal::TERM);
        let ended = server.wait();
        assert_eq!(ended.err.matches(&format!("drive small is read-only: {why}\n")).count(), 1, "{ended:?}");
        let figures: Value = serde_json::from_str(&ended.out).unwrap();
        assert_eq!(figures["drives"][0]["read_only"], *why);
    }
}

#[test]
fn rules_on_the_command_line_are_for_the_drive_they_name() {
    let server = Server::small(&[
        "--drive",
        "other=default",
        "--control",
        "control",
        "--fault",
        "other=slow read nth=1",
        "--fault",
        "fail erase",
    ]);
    let faults = ask(&server, &json!({ "command": "faults" }));
    let rules = |drive: usize| -> Vec<&Value> {
        faults["drives"][drive]["faults"].as_array().unwrap().iter().map(|fault| &fault["rule"]).collect()
    };
    assert_eq!(rules(0), ["fail erase"]);
    assert_eq!(rules(1), ["slow read by=1ms nth=1", "fail erase"]);
    let error = |order: Value| ask(&server, &order)["error"].as_str().unwrap().to_owned();
    let told = error(json!({ "command": "fault", "rule": "fail" }));
    assert_eq!(told, "there are several drives; `drive` is one of small, other (nandscape ctl: --drive small)");
    let told = error(json!({ "command": "fault", "drive": "big", "rule": "fail" }));
    assert_eq!(told, "there is no drive \"big\"; `drive` is one of small, other");
    let told = error(json!({ "command": "fault", "drive": "small", "rule": "fail read" }));
    assert!(told.contains("fail strikes program or erase, not read"), "{told}");
    let told = error(json!({ "command": "fault", "drive": "small", "rule": "fail channel=2" }));
    assert!(told.contains("channel 2 is not there; from 0 to 1 is valid"), "{told}");
    server.figures();

    let folder = tempfile::tempdir().unwrap();
    for (rule, words) in [("third=fail", "there is no drive \"third\""), ("fails", "is no kind of fault")] {
        let ended = refuse(folder.path(), &[&SMALL[..], &["--nbd", "unix:n.sock", "--fault", rule]].concat());
        assert!(ended.code == Some(2) && ended.err.contains(words), "{ended:?}");
    }
}

#[test]
fn a_served_ttflash_drive_reads_a_dead_die_from_its_stripes() {
    let args = ["--drive", "small=ttflash", "--set", "capacity=256MiB", "--set", "ftl.over_provisioning=60%"];
    let own = ["--nbd", "unix:n.sock", "--control", "control", "--check", "--json"];
    let server = Server::start(tempfile::tempdir().unwrap(), &[&args[..], &own].concat());
    let verify = ["--rw=randrw", "--bsrange=4k-64k", "--iodepth=16", "--io_size=96m", "--size=128m", "--verify=crc32c"];
    fio(&server, &verify);
    fault(&server, "dead timeout=0ns channel=0 die=0");
    fio(&server, &[&verify[..], &["--verify_only=1"]].concat());
    fio(&server, &verify);
    let figures = server.figures();
    assert_eq!(number(&figures, "/drives/0/reads/errors"), 0.0, "{figures:#}");
    assert!(number(&figures, "/drives/0/counters/planes_out_of_use") > 0.0, "{figures:#}");
}
