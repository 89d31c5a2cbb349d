//! A component that is called directly if it is the built-in one, and through a pointer otherwise. The choice therefore costs
//! reads and writes nothing.

use nandscape_device_ftl_core::address::Lpn;
use nandscape_device_ftl_core::component::{
    BlockInfo, BlockMetadata, BlockState, CachedMapping, ChainedLog, Entry, Eviction, FragmentMiss, Fragments,
    LineProvisioning, Log, LogHead, LogPosition, Mapping, NoteRecord, Outgoing, Record, StoredBlocks, Stream,
};
use nandscape_device_media::{BlockId, PageId, PlaneId, UnitId};

use super::{ChunkTable, Lines, LogBuffer, PagedMap};

/// The built-in component or another one.
pub enum Part<B, D: ?Sized> {
    /// The built-in one.
    BuiltIn(B),
    /// Another one.
    Other(Box<D>),
}

/// P2: block metadata.
pub type BlocksPart = Part<ChunkTable, dyn StoredBlocks>;
/// P3: provisioning.
pub type ProvisioningPart = Part<Lines, dyn LineProvisioning>;
/// P5: the map.
pub type MapPart = Part<PagedMap, dyn CachedMapping<Miss = FragmentMiss, Value = Entry>>;
/// P6: the log.
pub type LogPart = Part<LogBuffer, dyn ChainedLog<Record = Record, Head = LogHead>>;

/// Passes the functions of a trait on.
macro_rules! pass_on {
    ($trait:ident for $part:ty {
        $($(#[$meta:meta])* type $name:ident = $type:ty;)*
        of { $(fn $get:ident($($g:ident: $gt:ty),*) $(-> $gr:ty)?;)* }
        on { $(fn $set:ident($($s:ident: $st:ty),*) $(-> $sr:ty)?;)* }
    }) => {
        impl $trait for $part {
            $(type $name = $type;)*
            $(#[inline]
            fn $get(&self, $($g: $gt),*) $(-> $gr)? {
                match self {
                    Part::BuiltIn(part) => part.$get($($g),*),
                    Part::Other(part) => part.$get($($g),*),
                }
            })*
            $(#[inline]
            fn $set(&mut self, $($s: $st),*) $(-> $sr)? {
                match self {
                    Part::BuiltIn(part) => part.$set($($s),*),
                    Part::Other(part) => part.$set($($s),*),
                }
            })*
        }
    };
}

pass_on! { BlockMetadata for BlocksPart {
    of {
        fn get(block: BlockId) -> &BlockInfo;
        fn pins(block: BlockId) -> u32;
        fn is_valid(unit: UnitId) -> bool;
        fn next_valid(from: UnitId, end: UnitId) -> Option<UnitId>;
    }
    on {
        fn get_mut(block: BlockId) -> &mut BlockInfo;
        fn pin(block: BlockId);
        fn unpin(block: BlockId) -> u32;
        fn validate(unit: UnitId);
        fn invalidate(unit: UnitId) -> BlockId;
    }
} }

pass_on! { StoredBlocks for BlocksPart {
    of {
        fn pages() -> u32;
        fn page(index: u32) -> Vec<u8>;
        fn stream(block: BlockId) -> Stream;
        fn memory() -> usize;
    }
    on {
        fn take_dirty() -> Vec<u32>;
        fn load(index: u32, bytes: &[u8]);
        fn set_state(block: BlockId, state: BlockState);
        fn handed_out(block: BlockId, stream: Stream);
        fn set_valid(unit: UnitId, valid: bool);
    }
} }

pass_on! { LineProvisioning for ProvisioningPart {
    of {
        fn has_room(stream: Stream, usable: &dyn Fn(PlaneId) -> bool) -> bool;
        fn free_blocks(plane: PlaneId) -> u32;
        fn free_lines() -> u32;
        fn open(plane: PlaneId, stream: Stream) -> Option<BlockId>;
        fn sequence() -> u64;
        fn turns() -> Vec<u64>;
        fn memory() -> usize;
    }
    on {
        fn get(blocks: &mut dyn BlockMetadata, stream: Stream, usable: &dyn Fn(PlaneId) -> bool) -> Option<PageId>;
        fn programmed(blocks: &mut dyn BlockMetadata, page: PageId) -> Option<BlockId>;
        fn close(block: BlockId);
        fn retired(block: BlockId);
        fn plane_died(plane: PlaneId);
        fn put(blocks: &mut dyn BlockMetadata, block: BlockId);
        fn relist(blocks: &dyn BlockMetadata);
        fn set_turns(turns: &[u64]);
    }
} }

pass_on! { Mapping for MapPart {
    type Miss = FragmentMiss;
    type Value = Entry;
    of {
        fn lookup(lpn: Lpn) -> Result<Entry, FragmentMiss>;
        fn prefetch(lpn: Lpn);
        fn units() -> u32;
    }
    on {
        fn upsert(lpn: Lpn, to: Entry) -> Result<Entry, FragmentMiss>;
        fn loaded(miss: FragmentMiss, bytes: &[u8]);
    }
} }

pass_on! { CachedMapping for MapPart {
    of {
        fn fragment_of(lpn: Lpn) -> u32;
        fn is_cached(index: u32) -> bool;
        fn is_writing(index: u32) -> bool;
        fn unwritten() -> Vec<u32>;
        fn small() -> &dyn Fragments;
        fn tiny() -> &dyn Fragments;
        fn cache_memory() -> usize;
        fn table_memory() -> usize;
    }
    on {
        fn evict(index: u32) -> Eviction;
        fn pin(index: u32);
        fn unpin(index: u32);
        fn begin_write(index: u32) -> Option<Vec<u8>>;
        fn end_write(index: u32);
        fn write_failed(index: u32);
        fn lose(index: u32);
        fn small_mut() -> &mut dyn Fragments;
        fn tiny_mut() -> &mut dyn Fragments;
    }
} }

pass_on! { Log for LogPart {
    type Record = Record;
    type Head = LogHead;
    of {
        fn is_durable(upto: LogPosition) -> bool;
        fn last() -> LogPosition;
    }
    on {
        fn append(record: Record) -> LogPosition;
        fn persist(upto: LogPosition);
        fn truncate(head: LogHead);
    }
} }

pass_on! { ChainedLog for LogPart {
    of {
        fn lacking() -> usize;
        fn is_upcoming(is_it: &dyn Fn(PageId) -> bool) -> bool;
        fn is_due() -> bool;
        fn backlog() -> usize;
        fn breaks() -> u32;
        fn is_broken() -> bool;
        fn is_written(upto: LogPosition) -> bool;
        fn kept() -> Vec<(u64, Record)>;
        fn written_up_to() -> u64;
        fn epoch() -> u64;
        fn number() -> u64;
        fn appended() -> u64;
        fn pages() -> u64;
        fn memory() -> usize;
    }
    on {
        fn offer(page: PageId);
        fn withdraw(gone: &dyn Fn(PageId) -> bool);
        fn outgoing() -> Option<Outgoing>;
        fn written(outgoing: &Outgoing);
        fn mark() -> LogHead;
        fn keep(note: Option<NoteRecord<Record>>);
    }
} }
