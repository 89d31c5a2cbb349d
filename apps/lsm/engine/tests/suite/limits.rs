//! Input that a store rejects, and its requirements for a drive.

use std::rc::Rc;

use nandscape_apps_lsm_engine::{
    BlockConfig, BlockStorage, Change, Config, Error, Lsm, MAX_KEY, MAX_RECORD, OpenError,
};
use nandscape_apps_store::Host;
use nandscape_apps_store::testing::{Disk, QueueingDrive, Times};
use nandscape_sim::{Executor, Seed};

use crate::rig::{Form, Rig, open};

#[test]
fn keys_and_values_have_their_limits() {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let form = Form::block(&mut Seed::new(1).rng());
    let rig = Rig::new(&sim, form);
    let ran = executor.block_on(async {
        let store = rig.open().await.unwrap();
        let length = |key, value| Err(Error::Length { key, value, max_key: MAX_KEY, most: MAX_RECORD });
        assert_eq!(store.put(b"", b"x").await, length(0, 1));
        assert_eq!(store.delete(&[1; MAX_KEY + 1]).await, length(MAX_KEY + 1, 0));
        assert_eq!(store.put(&[1; 20], &[2; MAX_RECORD - 19]).await, length(20, MAX_RECORD - 19));
        let most = form.store.memtable / 2;
        let many: Vec<_> = (0..40u8).map(|number| Change::Put(vec![number + 1], vec![7; 4_000])).collect();
        assert!(matches!(store.apply(&many).await, Err(Error::Batch { most: told, .. }) if told == most));
        store.put(&[1; MAX_KEY], &vec![2; MAX_RECORD - MAX_KEY]).await.unwrap();
        assert_eq!(store.get(&[1; MAX_KEY]).await.unwrap(), Some(vec![2; MAX_RECORD - MAX_KEY]));
        assert_eq!(store.scan(b"", 9).await.unwrap().len(), 1);
    });
    ran.unwrap();
}

#[test]
fn sizes_that_do_not_fit_are_refused_and_so_is_what_is_no_store() {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let (host, disk) = (Host::free(&sim), Disk::new(4 << 20));
    let drive = QueueingDrive::new(&sim, &disk, Times::FLASH);
    let ran = executor.block_on(async {
        let wrong = async |config: BlockConfig| {
            matches!(BlockStorage::open(&host, drive.clone(), config).await, Err(OpenError::Size(_)))
        };
        let right = BlockConfig { chunk: 64 << 10, run: 512 << 10, trim: false, ..BlockConfig::default() };
        assert!(wrong(BlockConfig { chunk: 1_000, ..right }).await);
        assert!(wrong(BlockConfig { chunk: 1 << 20, run: 1 << 20, ..right }).await);
        let storage = async || BlockStorage::open(&host, drive.clone(), right).await.unwrap();
        let config = Config { memtable: 128 << 10, run: 128 << 10, ..Config::default() };
        for wrong in [
            Config { memtable: 1 << 20, ..config },
            Config { memtable: 1, ..config },
            Config { run: 8 << 20, ..config },
            Config { stop: 1, ..config },
            Config { ahead: 0, ..config },
        ] {
            assert!(matches!(Lsm::open(&host, storage().await, wrong).await, Err(OpenError::Size(_))), "{wrong:?}");
        }
        let config = Config { log_buffer: 1, ..config };
        let store = Lsm::open(&host, storage().await, config).await.unwrap();
        store.put(b"key", b"value").await.unwrap();
        let other = BlockConfig { id: 2, ..right };
        let opened = BlockStorage::open(&host, drive.clone(), other).await;
        assert!(matches!(opened, Err(OpenError::Foreign(_))), "the store of another");
        let again = Lsm::open(&host, storage().await, config).await.unwrap();
        assert_eq!(again.get(b"key").await.unwrap(), Some(b"value".to_vec()));
    });
    ran.unwrap();
    (0..8_192).for_each(|place| disk.spoil(place * 512));
    let drive = QueueingDrive::new(&sim, &disk, Times::FLASH);
    let ran = executor.block_on(async {
        let form = Form::block(&mut Seed::new(1).rng());
        assert!(matches!(
            open(&sim, Rc::new(Over(drive)), &form).await,
            Err(OpenError::Foreign(_) | OpenError::Size(_))
        ));
    });
    ran.unwrap();
}

/// A drive, unchanged.
struct Over(Rc<QueueingDrive>);

impl nandscape_drive::Drive for Over {
    fn info(&self) -> nandscape_drive::DriveInfo {
        self.0.info()
    }

    fn submit(&self, io: nandscape_drive::Io) {
        self.0.submit(io);
    }
}
