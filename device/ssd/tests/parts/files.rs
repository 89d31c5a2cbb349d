//! Drives of several FTLs in files: stopped, killed and started again, and the identifiers on their channels.

use std::rc::Rc;
use std::sync::Arc;

use nandscape_device_media::durable::{Backing as _, MemoryFile, StoreFile};
use nandscape_device_media::{BlockId, identifier::Found};
use nandscape_device_ssd::{Resolved, Ssd};
use nandscape_drive::conformance::Host;
use nandscape_sim::{Executor, Seed, Sim};

use crate::rig::{DIES, THREE, TWO, queue, read, resolved, write};

fn create(profile: &Resolved) -> Arc<MemoryFile> {
    let backing = Arc::new(MemoryFile::new());
    let specs = profile.store_specs(true, Seed::new(5));
    drop(StoreFile::create_all_on(backing.clone(), specs, false).unwrap());
    backing
}

fn try_open(sim: &Sim, profile: &Resolved, backing: &Arc<MemoryFile>) -> std::io::Result<Rc<Ssd>> {
    let file = StoreFile::open_on(backing.clone(), false).map_err(std::io::Error::other)?;
    Ok(Rc::new(Ssd::open(sim, profile, file)?))
}

/// Why a drive does not start.
fn refusal(profile: &Resolved, backing: &Arc<MemoryFile>) -> String {
    match try_open(&Executor::new().sim(), profile, backing) {
        Ok(_) => panic!("it was to be refused"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn data_of_every_part_outlasts_stops_and_kills() {
    for parts in [TWO, THREE, DIES] {
        for mode in ["buffer.mode=capacitor", "buffer.mode=through"] {
            let profile = resolved(parts, &[mode]);
            let count = profile.parts().len() as u32;
            let mut backing = create(&profile);
            for round in 0..6u8 {
                let mut executor = Executor::new();
                let sim = executor.sim();
                let ssd = try_open(&sim, &profile, &backing).unwrap();
                let host = Host::new(&sim, queue(&sim, &ssd, 1, 1));
                let done = executor.block_on(async {
                    ssd.in_service().await;
                    ssd.check().unwrap();
                    for nsid in 1..=count {
                        for block in 0..40 {
                            let expected = if round == 0 { 0 } else { nsid as u8 * 40 + round - 1 };
                            assert_eq!(read(&host, nsid, block * 8).await, Ok(expected), "round {round}, {nsid}");
                            write(&host, nsid, block * 8, nsid as u8 * 40 + round).await.unwrap();
                        }
                    }
                    if round % 2 == 0 {
                        ssd.shut_down().await;
                    }
                });
                done.unwrap();
                if round % 2 == 0 {
                    ssd.close().unwrap();
                }
                backing = Arc::new(backing.survivor());
            }
        }
    }
}

/// One part in the file and one in memory: at each start the first is unchanged, and the other is new.
#[test]
fn a_part_in_memory_is_new_at_each_start() {
    let in_memory = |part: &str| {
        let (name, kept) = (format!("name = \"{part}\""), format!("name = \"{part}\"\nstore = \"ram\""));
        TWO.replace(&name, &kept)
    };
    for (part, kept) in [("fast", 2), ("archive", 1)] {
        for changes in [&["buffer.mode=capacitor"][..], &["buffer.mode=through", "ftl.tables=rebuilt"]] {
            let profile = resolved(&in_memory(part), changes);
            assert_eq!(profile.store_specs(true, Seed::new(5)).len(), 1);
            let mut backing = create(&profile);
            for round in 0..5u8 {
                let mut executor = Executor::new();
                let sim = executor.sim();
                let ssd = try_open(&sim, &profile, &backing).unwrap();
                let host = Host::new(&sim, queue(&sim, &ssd, 1, 1));
                let done = executor.block_on(async {
                    ssd.in_service().await;
                    ssd.check().unwrap();
                    for (nsid, block) in [1, 2].into_iter().flat_map(|nsid| (0..40).map(move |block| (nsid, block))) {
                        let expected = if nsid == kept { round } else { 0 };
                        assert_eq!(read(&host, nsid, block * 8).await, Ok(expected), "round {round}, {nsid}");
                        write(&host, nsid, block * 8, round + 1).await.unwrap();
                    }
                    ssd.shut_down().await;
                });
                done.unwrap();
                if round % 2 == 0 {
                    ssd.close().unwrap();
                }
                backing = Arc::new(backing.survivor());
                let names = ssd.parts().iter().map(|part| part.name());
                assert!(names.eq(["fast", "archive"]), "the numbers of namespaces stay");
            }
            let problem = refusal(&resolved(TWO, changes), &backing);
            assert!(problem.contains("ftl.parts.store is \"ram\" there, and \"drive\" in the profile"), "{problem}");
        }
    }
}

/// The profiles on the page about parts.
#[test]
fn profiles_of_the_page_can_be_in_files() {
    let page = include_str!("../../../../docs/techniques/parts.md");
    let profiles: Vec<&str> = page.split("```toml\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    assert_eq!(profiles.len(), 2);
    for (text, stores) in profiles.into_iter().zip([3, 2]) {
        let profile = nandscape_device_ssd::Profile::parse("page.toml", text).unwrap().resolve().unwrap();
        assert_eq!(profile.store_specs(true, Seed::new(1)).len(), stores);
        assert_eq!(profile.check_store(&profile.store_spec(true, Seed::new(1))), Ok(()));
    }
}

/// A drive whose parts share channels holds an identifier on the first die that each has of them.
#[test]
fn dies_keep_their_owners() {
    let profile = resolved(DIES, &[]);
    let backing = create(&profile);
    let ssd = try_open(&Executor::new().sim(), &profile, &backing).unwrap();
    for part in ssd.parts() {
        for (found, number) in part.media().identifiers().into_iter().zip(0..) {
            let Found::Identifier { channel, owner } = found else { panic!("{found:?}") };
            assert_eq!(
                (channel, owner.name.as_str(), owner.dies.as_slice()),
                (number, part.name(), part.media().dies_of_drive())
            );
        }
    }
    drop(ssd);
    let other = DIES.replace("dies = \"0\"", "#").replace("dies = \"1\"", "dies = \"0\"").replace('#', "dies = \"1\"");
    let problem = refusal(&resolved(&other, &[]), &Arc::new(backing.survivor()));
    assert!(problem.contains("ftl.parts."), "{problem}");
    let problem = refusal(&resolved(TWO, &[]), &Arc::new(backing.survivor()));
    assert!(problem.contains("ftl.parts.channels is \"0-3\" there, and \"0-1\""), "{problem}");
}

/// The profiles of the page on partitioning are valid, and can be in files.
#[test]
fn profiles_of_the_partitioning_page_are_valid() {
    let page = include_str!("../../../../docs/techniques/partitioning.md");
    let profiles: Vec<&str> = page.split("```toml\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    assert_eq!(profiles.len(), 2);
    for text in profiles {
        let profile = nandscape_device_ssd::Profile::parse("page.toml", text).unwrap().resolve().unwrap();
        assert_eq!(profile.check_store(&profile.store_spec(true, Seed::new(1))), Ok(()));
    }
}

/// The profile's order does not matter; which FTL owns which channels does.
#[test]
fn channels_keep_their_owners() {
    let profile = resolved(TWO, &[]);
    let backing = create(&profile);
    drop(try_open(&Executor::new().sim(), &profile, &backing).unwrap());
    let swap = |from: &str, to: &str| TWO.replace(from, "#").replace(to, from).replace('#', to);
    let reordered = {
        let second = TWO.find("[[ftl.parts]]\nname = \"archive\"").unwrap();
        format!("{}{}", &TWO[second..], &TWO[..second])
    };
    let survivor = Arc::new(backing.survivor());
    let again = try_open(&Executor::new().sim(), &resolved(&reordered, &[]), &survivor).unwrap();
    assert_eq!(again.parts()[0].name(), "fast");
    drop(again);
    for (parts, expected) in [
        (swap("0-1", "2-3"), "ftl.parts.name is \"fast\" there, and \"archive\""),
        (TWO.replace("ox_block", "page"), "ftl.parts.ftl.kind is \"ox_block\" there, and \"page\""),
        (TWO.replace("0-1", "0").replace("2-3", "1-3"), "ftl.parts.channels is \"0-1\" there, and \"0\""),
        (String::new(), "it has 2 parts there, and one FTL in the profile"),
        (THREE.to_owned(), "it has 2 parts there, and 3 parts in the profile"),
    ] {
        let survivor = Arc::new(backing.survivor());
        let before = survivor.writes();
        let problem = refusal(&resolved(&parts, &[]), &survivor);
        assert!(problem.contains(expected) || problem.contains("capacity"), "{parts}: {problem}");
        assert_eq!(survivor.writes(), before, "nothing was written");
    }
}

/// A drive whose identifiers contradict its profile, or are damaged, does not start.
#[test]
fn identifiers_are_read_at_every_start() {
    let profile = resolved(TWO, &["buffer.mode=through"]);
    let damage = |what: &dyn Fn(&Ssd)| {
        let backing = create(&profile);
        let mut executor = Executor::new();
        let sim = executor.sim();
        let ssd = try_open(&sim, &profile, &backing).unwrap();
        let host = Host::new(&sim, queue(&sim, &ssd, 1, 1));
        executor.block_on(write(&host, 1, 0, 1)).unwrap().unwrap();
        what(&ssd);
        Arc::new(backing.survivor())
    };
    let first_block = |ssd: &Ssd, part: usize, channel: u32| {
        let media = ssd.parts()[part].media();
        let counts = *media.geometry().counts();
        let block = BlockId(channel * counts.dies_per_channel * counts.planes_per_die * counts.blocks_per_plane);
        assert!(media.holds_identifier(block) && media.is_factory_bad(block), "no FTL uses it");
        block
    };
    let erased = damage(&|ssd| ssd.parts()[1].media().plant_erase(first_block(ssd, 1, 1)));
    assert!(refusal(&profile, &erased).contains("channel 3 has no identifier"));
    let one_copy = damage(&|ssd| {
        let media = ssd.parts()[0].media();
        media.plant_unreadable(media.geometry().page_at(first_block(ssd, 0, 0), 0));
    });
    drop(try_open(&Executor::new().sim(), &profile, &one_copy).expect("the second copy counts"));
    let both = damage(&|ssd| {
        let media = ssd.parts()[0].media();
        (0..2).for_each(|page| media.plant_unreadable(media.geometry().page_at(first_block(ssd, 0, 1), page)));
    });
    assert!(refusal(&profile, &both).contains("the identifier of channel 1 cannot be read"));
    let foreign = damage(&|ssd| {
        let media = ssd.parts()[0].media();
        let Found::Identifier { mut owner, .. } = media.identifiers().remove(0) else { panic!("there is one") };
        (0..2).for_each(|channel| media.plant_erase(first_block(ssd, 0, channel)));
        owner.kind = "ox_block".to_owned();
        media.write_identifiers(&owner);
    });
    let problem = refusal(&profile, &foreign);
    assert!(
        problem.contains("channel 0 belongs to \"fast\", an FTL of kind \"ox_block\" with channels 0-1"),
        "{problem}"
    );
    assert!(problem.contains("in the profile to \"fast\", an FTL of kind \"page\""), "{problem}");
}

#[test]
fn a_file_that_lacks_a_store_is_refused() {
    let profile = resolved(TWO, &[]);
    let backing = create(&profile);
    let lone = Arc::new(backing.survivor());
    let begins = |at: &u64| {
        let mut magic = [0; 8];
        lone.read_at(*at, &mut magic).unwrap();
        magic == *b"NANDFILE"
    };
    // Each store has two superblocks.
    let superblocks: Vec<u64> = lone.used().into_iter().filter(begins).collect();
    assert_eq!(superblocks.len(), 4);
    superblocks[2..].iter().for_each(|at| lone.write_at(*at, &[0; 8]).unwrap());
    assert!(refusal(&profile, &lone).contains("one of its stores is missing"));
    drop(try_open(&Executor::new().sim(), &profile, &backing).unwrap());
}
