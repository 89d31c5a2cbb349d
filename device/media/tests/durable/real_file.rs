//! Stores in files of the system: one process at a time, and what is no store is left alone.

use std::os::unix::fs::FileExt as _;
use std::os::unix::fs::MetadataExt as _;

use nandscape_device_media::Media;
use nandscape_device_media::durable::{StoreError, StoreFile};
use nandscape_sim::{Executor, Seed};

use crate::rig::{BLOCKS, Model, agree, flash, spec, work};

#[test]
fn a_file_is_created_sparse_used_by_one_and_found_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("drive");
    assert!(!StoreFile::exists(&path).unwrap());
    let (mut model, mut rng): (Model, _) = (vec![Default::default(); BLOCKS as usize], Seed::new(3).rng());
    let mut file = StoreFile::create(&path, spec(), false).unwrap();
    for _ in 0..3 {
        let mut executor = Executor::new();
        let media = Media::open(&executor.sim(), flash().config(), file).unwrap();
        assert!(matches!(StoreFile::open(&path, false), Err(StoreError::InUse)));
        agree(&mut executor, &media, &mut model);
        work(&mut executor, &media, &mut model, &mut rng, 40);
        media.save_snapshot(&[], &mut |_, _| ()).unwrap();
        media.close().unwrap();
        drop(media);
        file = StoreFile::open(&path, false).unwrap();
        assert_eq!(file.spec(), &spec());
    }
    let found = path.metadata().unwrap();
    assert!(found.blocks() * 512 < found.len() / 4, "{} of {}", found.blocks() * 512, found.len());
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

/// Writes do not fail then. With syncs each sync sees it, without them the end of use does.
#[test]
fn a_file_that_is_cut_short_in_use_is_a_failure() {
    for syncs in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("drive");
        let executor = Executor::new();
        let file = StoreFile::create(&path, spec(), syncs).unwrap();
        let media = Media::open(&executor.sim(), flash().config(), file).unwrap();
        std::fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(1 << 17).unwrap();
        let durable = media.durable().unwrap();
        if syncs {
            let _ = durable.set_notes(b"notes");
        }
        assert_eq!(durable.has_failed(), syncs);
        assert!(media.close().is_err());
        let problem = durable.failure().unwrap();
        assert!(problem.contains("another process has cut it short: "), "{problem}");
    }
}

/// A store is made under another name first. What a killed server has left there is replaced, and no other file is.
#[test]
fn a_file_with_the_name_of_one_that_is_made_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let (path, new) = (folder.path().join("drive"), folder.path().join("drive.new"));
    let refused = || {
        let before = std::fs::read(&new).unwrap();
        let told = StoreFile::create(&path, spec(), false).err().expect("the name is taken").to_string();
        assert!(told.contains("drive.new is there"), "{told}");
        assert!(std::fs::read(&new).unwrap() == before && !path.exists());
        std::fs::remove_file(&new).unwrap();
    };
    let taken_over = || {
        drop(StoreFile::create(&path, spec(), false).unwrap());
        assert!(path.exists() && !new.exists());
        std::fs::remove_file(&path).unwrap();
    };
    for other in ["my thesis", "NAND", "NANDFILE of another kind"] {
        std::fs::write(&new, other).unwrap();
        refused();
    }
    std::fs::write(&new, vec![0; 200_000]).unwrap();
    refused();
    // Another drive, which happens to have the name.
    let file = StoreFile::create(&new, spec(), false).unwrap();
    let media = Media::open(&Executor::new().sim(), flash().config(), file).unwrap();
    media.durable().unwrap().set_notes(b"notes").unwrap();
    drop(media);
    refused();
    // What kills leave: an empty file, one without a superblock, and a store that was never used.
    std::fs::write(&new, b"").unwrap();
    taken_over();
    let mut begun = b"NANDMAKE".to_vec();
    begun.resize(300_000, 0);
    std::fs::write(&new, begun).unwrap();
    taken_over();
    drop(StoreFile::create(&new, spec(), true).unwrap());
    taken_over();
}

#[test]
fn what_is_no_store_is_refused_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("drive");
    let refused = |text: &str| {
        let before = std::fs::read(&path).unwrap();
        let error = StoreFile::open(&path, false).err().expect("it was opened").to_string();
        assert!(error.contains(text), "{error}");
        assert_eq!(std::fs::read(&path).unwrap(), before);
    };
    std::fs::write(&path, "a letter").unwrap();
    refused("no store of a drive");
    std::fs::write(&path, vec![0; 1 << 20]).unwrap();
    refused("no store of a drive");
    drop(StoreFile::create(&path, spec(), false).unwrap());
    let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    file.set_len(file.metadata().unwrap().len() - 1).unwrap();
    refused("truncated");
    file.set_len(1_000).unwrap();
    refused("cut short");
    drop(StoreFile::create(&path, spec(), false).unwrap());
    let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    for copy in 0..2 {
        file.write_all_at(&[9], (copy << 16) + 8).unwrap();
    }
    refused("format 9");
    assert!(matches!(StoreFile::open(folder.path(), false), Err(StoreError::NoFile)));
}
