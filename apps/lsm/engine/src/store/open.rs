//! Opening: the existing runs, and the changes in the logs, which become a run of level 0 at once.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use nandscape_apps_store::{Host, StoreError};
use nandscape_sim::signal::Signal;

use super::{Config, Log, Lsm, Memtable, Shared, Stats, weight};
use crate::error::OpenError;
use crate::levels::{LEVELS, Levels};
use crate::log;
use crate::run::Run;
use crate::storage::{Edit, LOG, RunInfo, Storage};

impl<S: Storage> Lsm<S> {
    /// The store that a storage has, or an empty one.
    ///
    /// # Errors
    /// When sizes do not fit, or the storage fails.
    pub async fn open(host: &Host, storage: S, config: Config) -> Result<Lsm<S>, OpenError> {
        config.check(&storage)?;
        let (logs, runs): (Vec<RunInfo>, Vec<RunInfo>) = storage.found().into_iter().partition(|run| run.level == LOG);
        let levels = open_runs(&storage, runs).await?;
        let shared = Rc::new(Shared {
            host: host.clone(),
            config,
            memtable: RefCell::default(),
            full: RefCell::default(),
            log: RefCell::new(Log::default()),
            levels: RefCell::new(Rc::new(levels)),
            turn: RefCell::default(),
            is_rotating: Cell::new(false),
            is_merging: Cell::new(false),
            changed: Signal::new(host.sim()),
            failed: RefCell::default(),
            stats: Cell::new(Stats::default()),
            storage,
        });
        shared.take_over(logs).await?;
        shared.new_log(1).await?;
        shared.merge_if_due();
        Ok(Lsm { shared })
    }
}

async fn open_runs(storage: &impl Storage, mut runs: Vec<RunInfo>) -> Result<Levels, OpenError> {
    let mut levels = Levels::default();
    runs.sort_by_key(|run| std::cmp::Reverse(run.order));
    for info in runs {
        let level = usize::from(info.level);
        if level >= LEVELS {
            return Err(OpenError::Foreign(format!("run {} is of level {level}; there are {LEVELS}", info.id)));
        }
        levels.runs[level].push(Run::open(storage, info).await?);
    }
    levels.runs[1..].iter_mut().for_each(|runs| runs.sort_by(|one, other| one.first().cmp(other.first())));
    levels.check().map_err(StoreError::Corrupt)?;
    Ok(levels)
}

impl<S: Storage> Shared<S> {
    /// The changes of logs become a run; the logs are dropped with it.
    async fn take_over(self: &Rc<Self>, mut logs: Vec<RunInfo>) -> Result<(), StoreError> {
        logs.sort_by_key(|log| log.order);
        let mut memtable = Memtable { logs: logs.iter().map(|log| log.id).collect(), ..Memtable::default() };
        for info in logs {
            for (key, value) in log::replay(&self.storage, info).await? {
                memtable.bytes += weight(&key, value.as_deref());
                memtable.records.insert(key, value);
            }
        }
        match memtable.records.is_empty() {
            true if memtable.logs.is_empty() => Ok(()),
            true => self.storage.commit(&memtable.logs.iter().map(|log| Edit::Drop(*log)).collect::<Vec<_>>()).await,
            false => self.flush(Rc::new(memtable)).await,
        }
    }
}
