//! Stores in files of the system: one process at a time, and other files are not touched.

use std::os::unix::fs::FileExt as _;
use std::os::unix::fs::MetadataExt as _;

use nandscape_device_media::Media;
use nandscape_device_media::durable::{Membership, Owner, StoreError, StoreFile};
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

/// Only a file that its server left is unfinished: while the server is at work, nothing is to be removed.
#[test]
fn a_file_whose_server_brings_it_into_a_state_is_whole_later() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("drive");
    let file = StoreFile::create(&path, spec(), false).unwrap();
    let mut executor = Executor::new();
    let media = Media::open(&executor.sim(), flash().config(), file).unwrap();
    agree(&mut executor, &media, &mut vec![Default::default(); BLOCKS as usize]);
    media.durable().unwrap().set_filling(true).unwrap();
    assert!(matches!(StoreFile::open_to_read(&path), Err(StoreError::Filling)));
    drop(media);
    assert!(matches!(StoreFile::open_to_read(&path), Err(StoreError::Unfinished)));
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

/// A store is created under another name first. The remains of a killed server there are replaced, and no other file
/// is.
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
    // Remains of kills: an empty file, one without a superblock, and a store that was never used.
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
    // A drive existed: the new one replaces it atomically.
    file.set_len(0).unwrap();
    assert!(StoreFile::exists(&path).unwrap());
    refused("it has 0 bytes");
    let error = StoreFile::open(folder.path(), false).err().unwrap().to_string();
    assert_eq!(error, "it is a directory; a regular file is valid");
}

#[test]
fn a_link_that_leads_nowhere_is_not_replaced_by_a_new_drive() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::os::unix::fs::symlink("nothing", at("drive")).unwrap();
    assert!(!StoreFile::exists(&at("drive")).unwrap());
    let error = StoreFile::create(&at("drive"), spec(), false).err().unwrap().to_string();
    assert!(error.contains("it is a symbolic link; name the file that it leads to, nothing"), "{error}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    // A file that occupies the path at which a store is made.
    std::os::unix::fs::symlink("drive", at("other.new")).unwrap();
    let error = StoreFile::create(&at("other"), spec(), false).err().unwrap();
    assert!(matches!(error, StoreError::NameTaken(_)), "{error}");
    // A drive behind a link is that drive.
    drop(StoreFile::create(&at("nothing"), spec(), false).unwrap());
    assert!(StoreFile::exists(&at("drive")).unwrap());
    StoreFile::open(&at("drive"), false).unwrap();
}

#[test]
fn a_file_that_is_removed_or_emptied_in_use_is_a_failure() {
    type Change = fn(&std::path::Path);
    let remove: Change = |path| std::fs::remove_file(path).unwrap();
    let replace: Change = |path| {
        std::fs::write(path.with_extension("new"), "another").unwrap();
        std::fs::rename(path.with_extension("new"), path).unwrap();
    };
    // Later writes make it as long as it was.
    let empty: Change = |path| {
        let file = std::fs::OpenOptions::new().write(true).open(path).unwrap();
        let len = file.metadata().unwrap().len();
        file.set_len(0).unwrap();
        file.set_len(len).unwrap();
    };
    for (change, syncs, told) in [
        (remove, false, "another process has removed it"),
        (remove, true, "another process has removed it"),
        (replace, false, "another process has removed it, or replaced it with another file"),
        (empty, false, "another process has changed it: at byte "),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("drive");
        let file = StoreFile::create(&path, spec(), syncs).unwrap();
        let media = Media::open(&Executor::new().sim(), flash().config(), file).unwrap();
        change(&path);
        let durable = media.durable().unwrap();
        if syncs {
            let _ = durable.set_notes(b"notes");
            assert!(durable.has_failed());
        }
        assert!(media.close().is_err());
        let problem = durable.failure().unwrap();
        assert!(problem.contains(told), "{problem}");
    }
}

/// The array detects that a member was used alone even if the process is killed at once and one copy of the superblock is
/// damaged.
#[test]
fn a_member_of_an_array_that_is_used_alone_is_marked() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("drive");
    let begin = |file: StoreFile| Media::open(&Executor::new().sim(), flash().config(), file).unwrap();
    let found = || StoreFile::open(&path, false).unwrap();
    let media = begin(StoreFile::create(&path, spec(), false).unwrap());
    media.close().unwrap();
    drop(media);
    let mut alone = found();
    alone.stray();
    drop(begin(alone));
    assert_eq!(found().before().membership, Membership::None, "it is no member");
    let damage_one = |copy: u64| {
        let file = std::fs::OpenOptions::new().read(true).write(true).open(&path).unwrap();
        let mut before = [0; 8];
        file.read_exact_at(&mut before, (copy << 16) + 40).unwrap();
        file.write_all_at(&[0xff; 8], (copy << 16) + 40).unwrap();
        let membership = found().before().membership;
        file.write_all_at(&before, (copy << 16) + 40).unwrap();
        membership
    };
    let media = begin(found());
    media.durable().unwrap().join(Owner::Array).unwrap();
    drop(media);
    assert_eq!([damage_one(0), damage_one(1)], [Membership::Member(Owner::Array); 2]);
    drop(begin(found()));
    assert_eq!(found().before().membership, Membership::Member(Owner::Array));
    let mut alone = found();
    alone.stray();
    assert_eq!(found_again(alone, &path), Membership::Member(Owner::Array), "it was not used");
    let mut alone = found();
    alone.stray();
    drop(begin(alone));
    assert_eq!([damage_one(0), damage_one(1)], [Membership::Strayed(Owner::Array); 2]);
    let media = begin(found());
    media.durable().unwrap().join(Owner::Array).unwrap();
    media.close().unwrap();
    drop(media);
    assert_eq!(found().before().membership, Membership::Member(Owner::Array));
}

fn found_again(file: StoreFile, path: &std::path::Path) -> Membership {
    drop(file);
    StoreFile::open(path, false).unwrap().before().membership
}
