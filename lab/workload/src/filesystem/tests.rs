//! The file system against a simple list of its blocks, and the requests it issues.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use crate::record::Direction::{Flush, Read, Write};
use crate::testing::on_a_drive;

const OPTIONS: Options = Options { cache: 0, journal: true, commit_interval: Span::from_s(5) };

/// Blocks that files have, checked: none twice, none outside, as many as their bytes need.
fn owned(fs: &FileSystem) -> u64 {
    let mut seen = BTreeSet::new();
    for file in fs.files.borrow().iter() {
        assert_eq!(file.allocated(), file.bytes.div_ceil(BLOCK));
        for block in file.extents.iter().flat_map(|extent| extent.start..extent.end()) {
            assert!(fs.layout.data.contains(&block), "{block} is no block for data");
            assert!(seen.insert(block), "{block} belongs to two files, or twice to one");
        }
    }
    seen.len() as u64
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn no_two_files_overlap_and_no_space_is_lost(steps in prop::collection::vec((0u32..12, 0u8..4, 1u64..200_000), 1..120)) {
        on_a_drive(8 << 20, true, |drive, client| async move {
            let fs = FileSystem::new(&client, 12, OPTIONS).unwrap();
            let names = fs.lay_out_directory(12).unwrap();
            (0..12).for_each(|number| assert_eq!(fs.add_file(names), FileId(number)));
            let room = fs.free_bytes() / BLOCK;
            for (number, what, bytes) in steps {
                let file = FileId(number);
                match what {
                    0 => fs.remove(file).await.unwrap(),
                    1 => fs.read(file, bytes / 2, bytes).await.unwrap(),
                    _ if fs.free_bytes() < bytes + BLOCK => {}
                    _ => fs.append(file, bytes).await.unwrap(),
                }
                assert_eq!(owned(&fs) + fs.free_bytes() / BLOCK, room);
            }
            // Data and metadata stay within their areas.
            for (direction, start, blocks) in drive.service().asked() {
                let data = start >= fs.layout.data.start && start + blocks <= fs.layout.data.end;
                assert!(data || direction != Read, "a read of {start}");
            }
        });
    }
}

#[test]
fn calls_ask_for_blocks() {
    on_a_drive(64 << 20, true, |drive, client| async move {
        let fs = FileSystem::new(&client, 100, OPTIONS).unwrap();
        let names = fs.lay_out_directory(100).unwrap();
        let (ring, data) = (fs.layout.journal.start, fs.layout.data.start);
        // Two blocks of names.
        assert_eq!((names, ring), (data, 1));
        let (file, other) = (fs.add_file(names), fs.add_file(names + 1));
        fs.create(file).await.unwrap();
        assert_eq!(drive.service().asked(), []);
        fs.append(file, 5_000).await.unwrap();
        assert_eq!(drive.service().asked(), [(Write, data + 2, 2)]);
        // Inside the second block, which holds data: read first. Then from the third on, and none is read.
        fs.append(file, 3_192).await.unwrap();
        assert_eq!(drive.service().asked(), [(Read, data + 3, 1), (Write, data + 3, 1)]);
        fs.append(file, 1).await.unwrap();
        assert_eq!(drive.service().asked(), [(Write, data + 4, 1)]);
        // Descriptor, bitmap, inode, names, commit.
        fs.fsync().await.unwrap();
        assert_eq!(drive.service().asked(), [(Write, ring, 5), (Flush, 0, 0)]);
        fs.fsync().await.unwrap();
        assert_eq!(drive.service().asked(), [(Flush, 0, 0)]);
        // Another file follows, so the first continues after it; both extents are read at once.
        fs.append(other, 4_096).await.unwrap();
        fs.append(file, 8_000).await.unwrap();
        drive.service().asked();
        fs.read(file, 0, 1 << 20).await.unwrap();
        assert_eq!(drive.service().asked(), [(Read, data + 2, 3), (Read, data + 6, 1)]);
        fs.read(file, 4_095, 2).await.unwrap();
        assert_eq!(drive.service().asked(), [(Read, data + 2, 2)]);
        fs.read(file, 1 << 20, 1).await.unwrap();
        assert_eq!(drive.service().asked(), []);
        // 2 KiB in the middle of a block, and a whole block.
        fs.overwrite_all(&[(file, 2_048, 2_048), (other, 0, 4_096)]).await.unwrap();
        assert_eq!(drive.service().asked(), [(Read, data + 2, 1), (Write, data + 2, 1), (Write, data + 5, 1)]);
    });
}

#[test]
fn a_drive_that_loses_nothing_gets_no_flush_and_no_journal_means_places() {
    on_a_drive(64 << 20, false, |drive, client| async move {
        let fs = FileSystem::new(&client, 100, Options { journal: false, ..OPTIONS }).unwrap();
        let names = fs.lay_out_directory(1).unwrap();
        let file = fs.add_file(names);
        fs.create(file).await.unwrap();
        fs.append(file, 4_096).await.unwrap();
        drive.service().asked();
        fs.fsync().await.unwrap();
        // The bitmap's block and that of the inodes lie side by side.
        assert_eq!(drive.service().asked(), [(Write, fs.layout.bitmap.start, 2), (Write, names, 1)]);
        fs.fsync().await.unwrap();
        assert_eq!(drive.service().asked(), []);
    });
}

/// The ring wraps; its blocks are in place before they are overwritten.
#[test]
fn the_journal_goes_round_and_loses_nothing() {
    on_a_drive(2 << 20, true, |drive, client| async move {
        let fs = FileSystem::new(&client, 64, OPTIONS).unwrap();
        let names = fs.lay_out_directory(64).unwrap();
        let file = fs.add_file(names);
        let ring = fs.layout.journal.clone();
        assert_eq!(ring.end - ring.start, 16);
        let inode = fs.layout.inode(0);
        let mut since_place = 0;
        for _ in 0..100 {
            fs.create(file).await.unwrap();
            fs.fsync().await.unwrap();
            for (direction, start, blocks) in drive.service().asked() {
                match direction {
                    Write if ring.contains(&start) => {
                        assert!(start + blocks <= ring.end);
                        since_place += blocks;
                    }
                    Write if start == inode => since_place = 0,
                    _ => {}
                }
                assert!(since_place <= 16, "{since_place} blocks of the ring without a checkpoint");
            }
        }
        assert!(!fs.journal.has_changes());
    });
}

#[test]
fn those_who_ask_at_the_same_time_share_a_commit() {
    on_a_drive(64 << 20, true, |drive, client| async move {
        let fs = FileSystem::new(&client, 100, OPTIONS).unwrap();
        let names = fs.lay_out_directory(1).unwrap();
        let ended = Rc::new(RefCell::new(0));
        for _ in 0..8 {
            let (fs, ended) = (fs.clone(), ended.clone());
            let file = fs.add_file(names);
            client.sim().spawn(async move {
                fs.create(file).await.unwrap();
                fs.fsync().await.unwrap();
                *ended.borrow_mut() += 1;
            });
        }
        client.sim().sleep(Span::from_ms(1)).await;
        assert_eq!(*ended.borrow(), 8);
        // The first alone, the other seven together.
        let writes = drive.service().asked().into_iter().filter(|(direction, _, _)| *direction == Write).count();
        assert_eq!(writes, 2);
    });
}

#[test]
fn what_the_cache_holds_is_not_asked_for() {
    on_a_drive(64 << 20, true, |drive, client| async move {
        let fs = FileSystem::new(&client, 100, Options { cache: 16 << 10, ..OPTIONS }).unwrap();
        let file = fs.add_file(fs.lay_out_directory(1).unwrap());
        fs.append(file, 4 * BLOCK + 100).await.unwrap();
        let begun = client.sim().now();
        drive.service().asked();
        fs.read(file, BLOCK, 4 * BLOCK).await.unwrap();
        assert_eq!((drive.service().asked(), (client.sim().now() - begun).ns()), (Vec::new(), 1_000));
        // Room for four of the five: the first has gone, and takes the place of the second.
        let first = fs.extents(file)[0].start;
        fs.read(file, 0, 2 * BLOCK).await.unwrap();
        assert_eq!(drive.service().asked(), [(Read, first, 1)]);
        fs.read(file, BLOCK, BLOCK).await.unwrap();
        fs.append(file, 10).await.unwrap();
        assert_eq!(drive.service().asked(), [(Write, first + 4, 1)]);
        // Deleted files leave the cache, and another file uses their blocks.
        fs.remove(file).await.unwrap();
        fs.append(file, 1).await.unwrap();
        drive.service().asked();
        fs.read(file, 0, 1).await.unwrap();
        assert_eq!(drive.service().asked(), []);
    });
}
