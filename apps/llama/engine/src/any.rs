//! A store of either form, for programs that choose at run time.

use nandscape_apps_store::StoreError;

use crate::chains::ChainStore;
use crate::log::LogStore;
use crate::offloaded::EleosStore;
use crate::pages::{PageStats, PageStore, Piece, Shape};

/// See the module.
pub enum AnyStore {
    /// The conventional form.
    Log(Box<LogStore>),
    /// The offloaded form with pages of 4 KiB.
    Eleos(EleosStore),
    /// The offloaded form with pages of any length.
    Chains(ChainStore),
}

impl PageStore for AnyStore {
    fn shape(&self) -> Shape {
        match self {
            AnyStore::Log(store) => store.shape(),
            AnyStore::Eleos(store) => store.shape(),
            AnyStore::Chains(store) => store.shape(),
        }
    }

    fn room(&self) -> u64 {
        match self {
            AnyStore::Log(store) => store.room(),
            AnyStore::Eleos(store) => store.room(),
            AnyStore::Chains(store) => store.room(),
        }
    }

    async fn flush(&self, pieces: Vec<Piece>) -> Result<(), StoreError> {
        match self {
            AnyStore::Log(store) => store.flush(pieces).await,
            AnyStore::Eleos(store) => store.flush(pieces).await,
            AnyStore::Chains(store) => store.flush(pieces).await,
        }
    }

    async fn read(&self, lpids: &[u64]) -> Result<Vec<Vec<Vec<u8>>>, StoreError> {
        match self {
            AnyStore::Log(store) => store.read(lpids).await,
            AnyStore::Eleos(store) => store.read(lpids).await,
            AnyStore::Chains(store) => store.read(lpids).await,
        }
    }

    fn stats(&self) -> PageStats {
        match self {
            AnyStore::Log(store) => store.stats(),
            AnyStore::Eleos(store) => store.stats(),
            AnyStore::Chains(store) => store.stats(),
        }
    }
}
