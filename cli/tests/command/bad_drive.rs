//! Drives that cannot be: the message names the file, line, change or key, and what would be valid.

use crate::program::{refuse, run};

fn change(changes: &[&str], parts: &[&str]) {
    let mut args = vec!["sim", "--rw", "randread", "--drive", "default"];
    changes.iter().for_each(|change| args.extend(["--set", change]));
    refuse(&args, parts);
}

fn zoned(changes: &[&str], parts: &[&str]) {
    let mut args = vec!["sim", "--rw", "randread", "--drive", "wd-zn540"];
    changes.iter().for_each(|change| args.extend(["--set", change]));
    refuse(&args, parts);
}

fn file(text: impl AsRef<[u8]>, parts: &[&str]) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("mine.toml");
    std::fs::write(&path, text).expect("a profile");
    let path = path.display().to_string();
    refuse(&["sim", "--rw", "randread", "--drive", &path], &[&["mine.toml"], parts].concat());
    refuse(&["drives", "show", &path, "--resolved"], parts);
}

#[test]
fn unknown_keys_are_named_with_what_was_meant() {
    change(
        &["geometry.chanels=4"],
        &["--set geometry.chanels=4", "unknown field `chanels`", "did you mean geometry.channels?"],
    );
    change(&["over_provisioning=12%"], &["--set over_provisioning=12%", "did you mean ftl.over_provisioning?"]);
    change(&["ftl.gc.colour=red"], &["unknown field `colour`, expected one of `scheme`, `owner`, `victim`"]);
    change(&["=1"], &["--set =1", "expected one of `version`"]);
    file(
        "version = 1\nbase = \"default\"\n[ftl.gc]\nvictm = \"greedy\"\n",
        &[":4:1: unknown field `victm`", "did you mean ftl.gc.victim?"],
    );
}

#[test]
fn a_change_needs_a_key_and_a_value() {
    change(&["buffer.mode=plp"], &["\"plp\" is none of ", "; capacitor is power-loss protection"]);
    change(&["capacity"], &["--set capacity", "KEY=VALUE"]);
    change(&["capacity="], &["\"\" is not a size such as \"16KiB\""]);
    change(&["ftl.gc=3"], &["expected a section of keys"]);
    change(&["geometry.channels.x=3"], &["a section of keys", "expected a whole number"]);
    change(&["base=femu-ocssd"], &["belongs into a profile's file"]);
    change(&["version=2"], &["belongs into a profile's file"]);
}

/// Drives that find their tables again in the data on their flash have to be written, and cannot start in a state of use.
#[test]
fn a_drive_that_can_only_start_new_is_refused_in_other_states() {
    for kind in ["pblk", "spdk"] {
        let drive = ["--drive", "default", "--set", "capacity=64MiB", "--set", &format!("ftl.kind={kind}")];
        for (state, words) in [("full", &[][..]), ("steady", &["--precondition", "steady"])] {
            let said = [format!("precondition {state}: "), format!("ftl.kind = \"{kind}\" and can only start new")];
            let valid = "valid are precondition none, and ftl.kind = \"page\" and \"ox_block\"";
            let args = [&["sim", "--rw", "randread"][..], &drive, words].concat();
            refuse(&args, &[&said[0], &said[1], valid]);
            let ran = run(&args);
            assert!(!ran.err.contains("memory") && ran.err.matches(valid).count() == 1, "{}", ran.err);
        }
    }
}

#[test]
fn impossible_geometries_are_refused() {
    for (key, most) in [("channels", 256), ("dies_per_channel", 256), ("planes_per_die", 64)] {
        let range = format!("geometry.{key}: 0 is out of range; from 1 to {most} is valid");
        change(&[&format!("geometry.{key}=0")], &[&range]);
        change(&[&format!("geometry.{key}=100000")], &["geometry.", "100000 is out of range"]);
        change(&[&format!("geometry.{key}=-1")], &["--set geometry.", "expected a whole number"]);
        change(&[&format!("geometry.{key}=99999999999999999999")], &["--set geometry."]);
    }
    change(&["geometry.pages_per_block=3"], &["from 4 to 65536"]);
    change(&["geometry.page_size=5000"], &["5000B is not a power of two from 4KiB to 256KiB"]);
    change(&["geometry.factory_bad_blocks=50%"], &["is not below a half"]);
    change(&["ftl.mapping_unit=64KiB"], &["from 4KiB to 32KiB"]);
    change(&["ftl.mapping_unit=32KiB"], &["32KiB is larger than geometry.page_size, 16KiB"]);
}

#[test]
fn capacities_have_bounds() {
    for small in ["0", "4KiB", "1020KiB"] {
        change(&[&format!("capacity={small}")], &["capacity: ", " is too small; from 1MiB on is valid"]);
    }
    let valid = "is not a multiple of the mapping unit, 4KiB; valid are its multiples from 1MiB on";
    change(&["capacity=1000001"], &["capacity: 1000001B", valid]);
    change(&["capacity=16TiB"], &["more than addresses reach: 16 TiB"]);
    change(&["capacity=99999999999999999999TiB"], &["is not a size such as"]);
    change(&["capacity=1e300"], &["\"1e300\" is not a size such as"]);
    change(&["geometry.blocks_per_plane=4294967295"], &["more than addresses reach"]);
    change(&["geometry.blocks_per_plane=3"], &["geometry.blocks_per_plane: 3 leave no room for data"]);
    let both = "version = 1\nbase = \"default\"\ncapacity = \"1GiB\"\n[geometry]\nblocks_per_plane = 7\n";
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("both.toml");
    std::fs::write(&path, both).expect("a profile");
    let path = path.display().to_string();
    let parts =
        ["geometry.blocks_per_plane: 7 does not agree with capacity = 1GiB, which needs", "only one of the two"];
    refuse(&["sim", "--rw", "read", "--drive", &path], &parts);
    // On the command line it is the same.
    let parts = ["geometry.blocks_per_plane: 999 does not agree with capacity = 1GiB, which needs"];
    change(&["capacity=1GiB", "geometry.blocks_per_plane=999"], &parts);
    change(&["geometry.blocks_per_plane=999", "capacity=1GiB"], &parts);
    let show = ["drives", "show", "default", "--resolved", "--set", "capacity=1GiB"];
    refuse(&[&show[..], &["--set", "geometry.blocks_per_plane=999"]].concat(), &parts);
}

#[test]
fn values_out_of_range_and_wrong_units_are_refused() {
    for time in ["40", "40lightyears", "-40us", "\"\""] {
        change(&[&format!("timing.erase={time}")], &["such as \"40us\""]);
        change(&[&format!("timing.read={time}")], &["such as \"40us\""]);
    }
    change(&["timing.read=[\"1us\"]"], &["has 1 times, but tlc has 3 page types"]);
    change(&["timing.cell=plc"], &["\"plc\" is none of slc, mlc, tlc, qlc"]);
    for key in ["timing.read", "timing.program", "timing.erase", "link.latency", "controller.firmware_time"] {
        change(&[&format!("{key}=18446744073s")], &[key, "from 0ns to 10s is valid"]);
    }
    for key in ["timing.bus", "link.bandwidth"] {
        change(&[&format!("{key}=0B/s")], &["such as \"800MB/s\""]);
        change(&[&format!("{key}=-1")], &["such as \"800MB/s\""]);
        change(&[&format!("{key}=1B/1000s")], &[key, "1KB/s or more"]);
    }
    change(&["wear.erase_failures=100%"], &["wear.erase_failures: 100% is out of range; up to \"99%\" is valid"]);
    change(&["wear.rber=[1e308,0,0,0,0,0,0,0,0]"], &["wear.rber: 1e308 is out of range; from 0 to 1e6 is valid"]);
    for share in ["-1", "nan", "inf", "much"] {
        change(&[&format!("ftl.over_provisioning={share}")], &["is not a share such as \"12%\""]);
    }
    change(&["ftl.over_provisioning=7"], &["--set ftl.over_provisioning=7", "write \"7%\" or 0.07, or \"700%\""]);
    change(&["ftl.over_provisioning=10100%"], &["from 0 to 1, or from \"0%\" to \"10000%\""]);
    change(&["ftl.gc.scheme=sideways"], &["none of", "controller", "channel", "plane", "none"]);
    change(&["ftl.gc.free_blocks=0"], &["ftl.gc.free_blocks: 0 is out of range"]);
    change(&["ftl.gc.copyback=maybe"], &["--set ftl.gc.copyback=maybe"]);
    change(&["buffer.size=0"], &["buffer.size: 0B is out of range; from two pages, 32KiB"]);
    change(&["controller.queue_pairs=65535"], &["from 1 to 65534"]);
    change(&["controller.queue_entries=1"], &["from 2 to 65536"]);
    change(&["controller.command_slots=0"], &["from 1 to 65536"]);
    change(&["controller.max_transfer=3MiB"], &["not a power of two from 8KiB to 32MiB"]);
    // One page of 4 KiB would be MDTS 0, which is no limit.
    change(&["controller.max_transfer=4KiB"], &["controller.max_transfer: 4KiB is not a power of two from 8KiB"]);
    change(&["lba_size=520"], &["lba_size: 520 is not valid; 512 and 4096 are"]);
}

#[test]
fn zones_beyond_the_addresses_of_a_drive_are_refused() {
    zoned(&["ftl.zone.size=1TiB"], &["ftl.zone.size: 1TiB is too large for 904 zones", "from 2GiB to 16GiB is valid"]);
    zoned(&["ftl.zone.size=3GiB"], &["ftl.zone.size: 3GiB is no power of two from 2GiB on"]);
    zoned(&["capacity=9TiB"], &["capacity: makes 8762 zones of 2GiB", "end at 16TiB; up to 8821707MiB is valid"]);
}

#[test]
fn files_that_are_no_profiles_are_refused() {
    file("", &["the first line must be: version = 1"]);
    file("version = 2\n", &["version = 2 is not known"]);
    file("version = 1\n", &["is missing; a profile gives it, or starts from one that does"]);
    file("version = 1\nbase = \"nothing\"\n", &["no such profile; there are default,"]);
    file("version = 1\nbase = \"./mine.toml\"\n", &["in a circle"]);
    file("version = 1\n[geometry\n", &[":2:"]);
    file("version = 1\nversion = 1\n", &[":2:", "duplicate key"]);
    file(b"version = 1\n# \xff\xfe\n", &["valid UTF-8"]);
    file([0; 64], &[":1:"]);
}

#[test]
fn what_is_not_there_or_no_file_is_refused() {
    refuse(
        &["sim", "--rw", "read", "--drive", "nothing"],
        &["nothing: no such profile; there are default,", "a path to a .toml file"],
    );
    refuse(&["sim", "--rw", "read", "--drive", "./nowhere.toml"], &["./nowhere.toml: cannot be read"]);
    refuse(&["sim", "--rw", "read", "--drive", ""], &["no such profile"]);
    refuse(&["drives", "show", "nothing"], &["no such profile"]);
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().display().to_string();
    refuse(&["sim", "--rw", "read", "--drive", &path], &[&path, "cannot be read"]);
}

/// Faulty or not: no profile has sections of jobs.
#[test]
fn a_workload_in_place_of_a_drive_is_told() {
    for text in ["[[job]]\nrw = \"read\"\n", "[[job]]\ncolour = 3\n", "[[ycsb]]\nworkload = \"a\"\n"] {
        let told = ["mine.toml: this is a workload, which `nandscape sim --workload ", "see `nandscape drives`"];
        file(format!("version = 1\n{text}"), &told);
    }
    refuse(&["sim", "--rw", "read", "--drive", "mixed"], &["drive mixed: this is a workload", "--workload mixed"]);
}

#[test]
fn a_mistake_leaves_nothing_behind() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("out").display().to_string();
    let ran = run(&["sim", "--rw", "read", "--drive", "default", "--set", "capacity=1", "--out", &out]);
    assert_eq!(ran.code, 2);
    assert!(!folder.path().join("out").exists());
}
