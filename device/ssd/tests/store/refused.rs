//! Profiles that do not fit a file, and names that stay.

use std::sync::Arc;

use nandscape_device_media::durable::{MemoryFile, StoreFile};
use nandscape_device_ssd::{Profile, Ssd};
use nandscape_sim::{Executor, Seed};

use crate::host::{open, small};

#[test]
fn a_profile_that_does_not_fit_is_refused_with_the_key_that_differs() {
    let profile = small("volatile", &[]);
    let spec = profile.store_spec(true, Seed::new(5));
    profile.check_store(&spec).unwrap();
    for (change, expected) in [
        ("capacity=4MiB", "capacity is \"2MiB\" there, and \"4MiB\" in the profile"),
        ("geometry.channels=1", "geometry.blocks_per_plane is "),
        ("buffer.mode=through", "buffer.mode is \"volatile\" there, and \"through\""),
        ("timing.program_unit=word_line", "geometry.blocks_per_plane is "),
        ("identity.serial=A", "identity.serial is \"NS"),
    ] {
        let other = small("volatile", &[change]);
        let error = other.check_store(&spec).unwrap_err();
        assert!(error.contains(expected), "{change}: {error}");
        let backing = Arc::new(MemoryFile::new());
        let file = StoreFile::create_on(backing.clone(), spec.clone(), false).unwrap();
        let writes = backing.writes();
        assert!(Ssd::open(&Executor::new().sim(), &other, file).is_err());
        assert_eq!(backing.writes(), writes, "nothing was written");
    }
    for change in ["timing.read=1us", "ftl.gc.victim=cost_benefit", "faults=[\"slow\"]", "link.latency=9us"] {
        small("volatile", &[change]).check_store(&spec).unwrap_or_else(|error| panic!("{change}: {error}"));
    }
}

/// They would lose write pointers and states.
#[test]
fn drives_with_zones_or_chunks_are_in_no_file() {
    let zoned = ["ftl.kind=zone", "lba_size=4KiB", "buffer.size=64MiB"];
    let chunks = ["ftl.kind=open_channel", "lba_size=4KiB", "buffer.mode=through"];
    for (changes, kind) in [(zoned, "zone"), (chunks, "open_channel")] {
        let mut profile = Profile::load("default").unwrap();
        profile.set_all(changes).unwrap();
        let resolved = profile.resolve().unwrap();
        let told = format!("ftl.kind is \"{kind}\", and only drives with \"page\" or \"ox_block\" can be in files");
        assert_eq!(resolved.check_store(&resolved.store_spec(true, Seed::new(5))), Err(told));
    }
}

#[test]
fn names_stay_whatever_the_seed_of_the_next_run() {
    let profile = small("volatile", &[]);
    let backing = Arc::new(MemoryFile::new());
    drop(StoreFile::create_on(backing.clone(), profile.store_spec(true, Seed::new(5)), false).unwrap());
    let executor = Executor::new();
    let names = |ssd: &Ssd| ssd.subsystem().names().clone();
    let ssd = open(&executor.sim(), &profile, &backing, false);
    let first = names(&ssd);
    drop(ssd);
    let again = open(&executor.sim(), &profile, &Arc::new(backing.survivor()), false);
    assert_eq!(names(&again), first);
    assert!(first.serial.starts_with("NS"));
}
