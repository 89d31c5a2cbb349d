//! `[[ftl.parts]]` in a profile.

use nandscape_device_ssd::Profile;

use crate::rig::{DIES, THREE, TWO, profile, resolved};
use crate::tenants::BY_DIES;

fn error(parts: &str, changes: &[&str]) -> String {
    profile(parts, changes).resolve().unwrap_err().to_string()
}

#[test]
fn parts_share_the_capacity_by_channels() {
    let mib = |parts, changes: &[&str]| -> Vec<u64> {
        resolved(parts, changes).namespaces().iter().map(|bytes| bytes >> 20).collect()
    };
    assert_eq!(mib(TWO, &[]), [6, 6]);
    assert_eq!(mib(THREE, &[]), [6, 3, 3]);
    assert_eq!(mib(THREE, &["capacity=13MiB"]), [6, 3, 4], "the last has the rest");
    let given = TWO.replacen("channels = \"0-1\"", "channels = \"0-1\"\ncapacity = \"2MiB\"", 1);
    assert_eq!(mib(&given, &[]), [2, 10]);
    let blocks = resolved(TWO, &["geometry.blocks_per_plane=64"]);
    assert!(blocks.namespaces()[0] > blocks.namespaces()[1], "OX-Block keeps more for itself");
}

#[test]
fn what_was_decided_decides_the_same_again() {
    for parts in [TWO, THREE, DIES] {
        for changes in [&[][..], &["geometry.blocks_per_plane=64"]] {
            let first = resolved(parts, changes);
            let keys = Profile::parse("again", &first.to_toml()).unwrap().keys;
            let again = Profile::of_keys("parts", keys).resolve().unwrap();
            assert_eq!(again.keys, first.keys);
            assert_eq!(again.parts(), first.parts());
            let fast = first.clone().without_delay();
            let keys = Profile::parse("again", &fast.to_toml()).unwrap().keys;
            assert_eq!(Profile::of_keys("parts", keys).resolve().unwrap().parts(), fast.parts());
        }
    }
}

#[test]
fn impossible_parts_are_refused() {
    let with = |from: &str, to: &str| TWO.replacen(from, to, 1);
    for (parts, changes, expected) in [
        (with("0-1", "0"), &[][..], "ftl.parts.channels: channel 1 belongs to no part"),
        (with("0-1", "0-2"), &[], "ftl.parts.channels: channel 2 belongs to several parts"),
        (with("2-3", "2-4"), &[], "ftl.parts.channels: channel 4 is not there; geometry.channels is 4"),
        (with("channels = \"0-1\"", ""), &[], "ftl.parts.channels: is missing"),
        (with("ox_block", "zone"), &[], "ftl.parts.ftl.kind: \"zone\" is for a drive with one FTL, without ftl.parts"),
        (with("ox_block", "open_channel"), &[], "ftl.parts.ftl.kind: \"open_channel\" is for a drive with one FTL"),
        (TWO.to_owned(), &["ftl.kind=zone"], "ftl.kind: \"zone\" is for a drive with one FTL, without ftl.parts"),
        (with("\"archive\"", "\"fast\""), &[], "ftl.parts.name: \"fast\" is the name of two parts"),
        (with("\"archive\"", "\"\""), &[], "ftl.parts.name: \"\" is not valid"),
        (
            TWO[..TWO.find("[[ftl.parts]]\nname = \"archive\"").unwrap()].replace("0-1", "0-3"),
            &[],
            "ftl.parts: has one part",
        ),
        (
            TWO.replace("ftl.kind", "store = \"ram\"\nftl.kind").replace("\"0-1\"", "\"0-1\"\nstore = \"ram\""),
            &[],
            "ftl.parts.store: is \"ram\" for all parts",
        ),
        (with("ftl.kind", "ftl.mapping_unit = \"8KiB\"\nftl.kind"), &[], "ftl.parts.ftl.mapping_unit: is another one"),
        (with("ftl.kind", "capacity = \"20MiB\"\nftl.kind"), &[], "ftl.parts.capacity: parts that give it have 20MiB"),
        (
            with("ftl.kind", "ftl.gc.free_blocks = 1\nftl.kind"),
            &[],
            "ftl.parts, the one with channels 2-3: ftl.gc.free",
        ),
        (
            TWO.to_owned(),
            &["changes=['1s ftl.ox_block.gc_slots=1']"],
            "changes: \"1s ftl.ox_block.gc_slots=1\": ftl.ox_block.gc_slots=1: names no part; of a drive with several",
        ),
        (
            BY_DIES.replace("dies = \"1\"", "dies = \"0\""),
            &[],
            "ftl.parts.dies: die 0 of channel 0 belongs to several parts; each belongs to one",
        ),
        (BY_DIES.replacen("0-3", "0-2", 1), &[], "ftl.parts.dies: die 0 of channel 3 belongs to no part"),
        (
            BY_DIES.replace("dies = \"1\"", "dies = \"1-2\""),
            &[],
            "ftl.parts.dies: die 2 is not there; geometry.dies_per_channel is 2, so dies go to 1",
        ),
        (
            BY_DIES.replace("dies = \"1\"", "dies = \"1\"\nmedia = \"ram\""),
            &[],
            "ftl.parts.media: \"ram\" needs channels of its own: that of channels 0-3, dies 1 shares some with that of",
        ),
        (
            BY_DIES.replace("dies = \"1\"", "dies = \"1\"\ntiming.bus = \"400MB/s\""),
            &[],
            "ftl.parts.timing.bus: differs between \"reader\" and \"writer\", which share a channel",
        ),
        (TWO.to_owned(), &["faults=['slow channel=4']"], "faults: \"slow by=1ms channel=4\": channel 4 is not there"),
    ] {
        let text = error(&parts, changes);
        assert!(text.contains(expected), "{parts}: {text}");
    }
    let wrong = Profile::parse("p.toml", "version = 1\n[[ftl.parts]]\nchannels = \"3-1\"\n").unwrap_err().to_string();
    assert!(wrong.contains("does not name channels"), "{wrong}");
}
