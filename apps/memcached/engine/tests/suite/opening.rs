//! Drives that are not those of a store.

use nandscape_apps_memcached_engine::{Config, EngineError, Expect, New, OpenError, format_on};
use nandscape_apps_store::{Disk, Host, Range};
use nandscape_sim::Executor;

use crate::client::{SMALL, disks, drives, open};

#[test]
fn only_the_drives_of_one_store_in_their_order_are_opened() {
    let (four, others) = (disks(4), disks(4));
    let try_open = |disks: &[_], config: Config| {
        let mut executor = Executor::new();
        let sim = executor.sim();
        let drives = drives(&sim, disks);
        let opened = executor.block_on(async {
            let engine = open(&sim, &drives, "epochs", config).await?;
            let new = New { flags: 0, expiry: 0, value: vec![1; 100].into() };
            for number in 0..100u32 {
                engine.put(&number.to_le_bytes(), Expect::Any, new.clone()).await.unwrap();
            }
            engine.close().await?;
            Ok::<u64, OpenError>(engine.stats().items)
        });
        opened.unwrap()
    };
    assert_eq!(try_open(&four[..3], SMALL), Err(OpenError::Count(3)));
    assert_eq!(try_open(&four, SMALL), Ok(100));
    assert_eq!(try_open(&others, Config { id: 8, ..SMALL }), Ok(100));
    assert!(matches!(try_open(&four[..2], SMALL), Err(OpenError::Other { drive: 0, .. })));
    let swapped = [0, 2, 1, 3].map(|drive| four[drive].clone());
    assert!(matches!(try_open(&swapped, SMALL), Err(OpenError::Other { drive: 1, .. })));
    let mixed = [&four[0], &four[1], &others[2], &four[3]].map(Clone::clone);
    assert!(matches!(try_open(&mixed, SMALL), Err(OpenError::Other { drive: 2, .. })));
    let mut replaced = four.clone();
    replaced[0] = disks(1).remove(0);
    // An empty drive in the place of one is rebuilt, and the other is not one of the store any more.
    assert_eq!(try_open(&replaced, SMALL), Ok(100));
    replaced[1] = disks(1).remove(0);
    assert_eq!(try_open(&replaced, SMALL), Ok(100));
    // The first two drives from before lack what the others know of.
    let lacks = "lacks what was written while it was lost";
    assert_eq!(try_open(&four, SMALL), Err(OpenError::Gone { drive: 0, what: lacks, twin: 1 }));
    // The form of a store that is there counts.
    assert_eq!(try_open(&replaced, Config { segment: None, id: 9, ..SMALL }), Ok(100));
    replaced[0] = disks(1).remove(0);
    replaced[1] = replaced[0].clone();
    let gone = OpenError::Gone { drive: 0, what: "is empty", twin: 1 };
    assert_eq!(try_open(&replaced, SMALL), Err(gone));
    four[1].spoil(3);
    assert_eq!(try_open(&four, SMALL), Err(OpenError::Foreign(1)));
    let control = try_control();
    assert!(matches!(control, Err(OpenError::Engine(EngineError::Control { drive: 0, .. }))), "{control:?}");
}

/// A store that another version of the program wrote is not treated as something else.
#[test]
fn a_store_of_another_format_is_named() {
    let all = disks(2);
    let mut executor = Executor::new();
    let sim = executor.sim();
    let ran = executor.block_on(async {
        open(&sim, &drives(&sim, &all), "epochs", SMALL).await.unwrap().close().await.unwrap();
        let disk = Disk::new(&Host::free(&sim), drives(&sim, &all[1..]).remove(0));
        let first = disk.read(&[Range { slba: 0, blocks: 1 }]).await.unwrap().concat();
        let with = async |digit: u8| {
            let mut block = first.clone();
            block[7] = digit;
            disk.write(0, &block).await.unwrap();
            let error = open(&sim, &drives(&sim, &all), "epochs", SMALL).await.map(drop).unwrap_err();
            (error, format_on(&disk).await.unwrap().map(|format| format.to_string()))
        };
        assert_eq!(with(b'a').await, (OpenError::Foreign(1), None));
        let (error, format) = with(b'2').await;
        assert!(matches!(error, OpenError::Format { drive: 1, .. }), "{error:?}");
        let error = error.to_string();
        assert!(error.starts_with("drive d1 has a store of format 2, and this program reads format 5; "), "{error}");
        assert_eq!(format.as_deref(), Some("2"));
    });
    ran.unwrap();
}

/// Drives that take no orders.
fn try_control() -> Result<(), OpenError> {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let drives = drives(&sim, &disks(2));
    executor.block_on(async { open(&sim, &drives, "gc_control", SMALL).await.map(drop) }).unwrap()
}
