//! The same layers over each of several members: names, commands and figures are those of a chain over all drives.

use nandscape_device_media::StoreKind;
use nandscape_drive::{Role, Use};
use nandscape_lab_run::chain::{Chain, Named, Opening, is_over_chunks};
use nandscape_lab_run::{MemberLayers, Members, Precondition, Rig, RigDrive, Wanted, name_of_drive};
use nandscape_sim::Seed;

use crate::chains::{FTL, profile_of_chunks, profile_with};

fn layers(words: &[&str]) -> Vec<Named> {
    Chain { layers: words.iter().map(|word| word.parse().expect("a valid layer")).collect() }.resolve().expect("layers")
}

/// Two members with such layers over as many drives as they need, of which the last has a fault plan.
fn two(words: &[&str]) -> Result<(Rig, Members), String> {
    let over = MemberLayers { layers: layers(words), profiles: Vec::new() };
    let (count, is_over_chunks) = (2 * over.drives_each(), is_over_chunks(&over.layers));
    let profile = |number: usize| match (is_over_chunks, number + 1 == count) {
        (true, _) => profile_of_chunks(),
        (false, true) => profile_with(&["faults=[\"slow read by=1ms every=2\"]"]),
        (false, false) => profile_with(&[]),
    };
    let drive = |number: usize| RigDrive {
        name: name_of_drive(number),
        profile: profile(number),
        store: StoreKind::Ram,
        precondition: over.of_drives(Precondition::Full),
        seed: Seed::new(1).nth(number as u64),
    };
    let mut rig =
        Rig::build((0..count).map(drive).collect(), Wanted::default(), &()).map_err(|error| error.to_string())?;
    let sim = rig.sim().clone();
    let how = Opening { precondition: Precondition::Full, ..Opening::new(&sim, "") };
    let members = rig.members(&how, &over.layers).map_err(|error| error.to_string())?;
    Ok((rig, members))
}

/// The sections of the report, as `layer: over`.
fn sections(words: &[&str]) -> Vec<String> {
    let (_rig, members) = two(words).expect("layers that fit");
    assert_eq!(members.tops().len(), 2);
    let chain = members.report().chain;
    chain.iter().map(|one| format!("{}: {}", one.layer, one.over.join(" "))).collect()
}

#[test]
fn layers_have_the_names_of_a_chain_over_all_drives_from_the_bottom_up() {
    assert_eq!(
        sections(&["block", "raid1:2", "cache,memory=1MiB"]),
        [
            "block/0: drive-0",
            "block/1: drive-1",
            "block/2: drive-2",
            "block/3: drive-3",
            "array/0: block/0 block/1",
            "array/1: block/2 block/3",
            "cache/0: array/0",
            "cache/1: array/1",
        ]
    );
    assert_eq!(
        sections(&["fast=cache,over=drive-0,memory=1MiB", "raid1:2,over=fast+drive-1"]),
        ["fast/0: drive-0", "fast/1: drive-2", "array/0: fast/0 drive-1", "array/1: fast/1 drive-3"]
    );
    assert!(sections(&[]).is_empty());
}

#[test]
fn faults_are_those_of_the_drives_that_have_a_plan() {
    let (_rig, members) = two(&["raid1:2"]).expect("layers that fit");
    let drives = members.report().drives;
    let faults: Vec<(&str, usize)> = drives.iter().map(|of| (&*of.drive, of.faults.len())).collect();
    assert_eq!(faults, [("drive-3", 1)]);
}

#[test]
fn what_does_not_fit_is_refused_before_any_member_is_used() {
    let refused = two(&["ftl"]).err();
    assert_eq!(refused, None, "an open-channel drive");
    let refused = two(&["raid1:2", "block,predictor=ssd"]).err().unwrap_or_default();
    assert!(refused.contains("none and told are valid here"), "{refused}");
}

#[test]
fn the_figures_over_chunks_are_those_of_the_hosts_ftls() {
    let (_rig, members) = two(&[FTL]).expect("layers that fit");
    members.begin();
    assert_eq!(members.figures(), nandscape_lab_run::DriveFigures::default());
    let blocks: Vec<u64> = members.tops().iter().map(|top| top.info().blocks).collect();
    assert!(blocks[0] > 0 && blocks[0] == blocks[1]);
    let admin = Use { role: Role::Admin, entries: 32 };
    assert!(members.tops()[0].connect(admin).is_ok(), "the FTL takes orders");
}

#[test]
fn only_a_block_layer_that_predicts_rejects_late_reads_at_the_top() {
    for (words, rejects) in [
        (&["block"][..], true),
        (&["block", "cache,memory=1MiB"], true),
        (&["block", "raid1:2"], false),
        (&["raid1:2", "block"], false),
        (&["block,predictor=none"], false),
        (&["cache,memory=1MiB"], false),
        (&[], false),
    ] {
        let (_rig, members) = two(words).expect("layers that fit");
        assert_eq!(members.offers().deadlines, rejects, "{words:?}");
    }
}

#[test]
fn orders_and_zones_end_at_layers_that_place_data() {
    let of = |words: &[&str]| MemberLayers { layers: layers(words), profiles: Vec::new() };
    for (words, orders, zones) in [
        (&[][..], None, None),
        (&["block"], None, None),
        (&["block", "cache"], None, Some("cache")),
        (&["ftl"], None, Some("host_ftl")),
        (&["cache", "mirror=raid1:2"], Some("mirror"), Some("cache")),
        (&["ahci:2"], Some("ahci"), Some("ahci")),
    ] {
        let ends = |checked: Result<(), String>, of: Option<&str>| match (checked, of) {
            (Ok(()), None) => true,
            (Err(problem), Some(name)) => problem.starts_with(&format!("layer {name} passes no ")),
            _ => false,
        };
        assert!(ends(of(words).check_orders(), orders), "{words:?}");
        assert!(ends(of(words).check_zones(), zones), "{words:?}");
    }
    assert!(of(&["block", "cache"]).keeps_addresses() && !of(&["raid1:2"]).keeps_addresses());
}
