//! Components by name. The built-in ones are in [`BUILT_IN`]; a program adds its own with [`register`], and from then on profiles
//! can name them (`ftl.ox.*`).
//!
//! Names are of the whole process: register components before the first profile is resolved.

use std::fmt;
use std::sync::RwLock;

use nandscape_device_ftl_core::component::{
    BadBlocks, BlockMetadata, Checkpoint, Fragments, GarbageCollection, LogStart, WriteCaching,
};
use nandscape_device_ftl_core::parts::BadBlockTable;
use nandscape_device_ftl_core::policy::{CostBenefit, Greedy};
use nandscape_device_media::{BlockId, Geometry};
use nandscape_sim::Seed;

use crate::parts::{
    BadBlockList, BlocksPart, ByAddress, ByMerit, ChunkTable, Eager, FlushedFirst, FragmentTable, HalfFull,
    KeyedEntries, LineOrder, Lines, LogBuffer, LogPart, MapPart, Oldest, PagedMap, Part, ProvisioningPart, StreamLine,
};

/// The inputs for making components.
#[derive(Copy, Clone, Debug)]
pub struct Needs<'a> {
    /// The flash.
    pub geometry: Geometry,
    /// Mapping units of the host's address space.
    pub logical_units: u32,
    /// Bytes of memory for fragments of the map.
    pub map_memory: u64,
    /// Mapping units that the write cache holds.
    pub cache_units: u32,
    /// The streams by their numbers.
    pub streams: &'a [StreamLine],
    /// The seed of a component's random choices. Each derives a child seed by its own name, so that none repeats another.
    pub seed: Seed,
}

/// Makes P1, of blocks with marks from the factory.
pub type MakeBadBlocks = fn(&Needs<'_>, &dyn Fn(BlockId) -> bool) -> Box<dyn BadBlocks>;
/// Makes P2, with all blocks free that are not bad.
pub type MakeBlocks = fn(&Needs<'_>, &dyn BadBlocks) -> BlocksPart;
/// Makes P3, with the free blocks of P2.
pub type MakeProvisioning = fn(&Needs<'_>, &dyn BlockMetadata) -> ProvisioningPart;
/// Makes P4: a table of locations, of its number of locations and of those that a fragment of it holds.
pub type MakeFragments = fn(u32, u32) -> Box<dyn Fragments>;
/// Makes P5, with its tables of P4.
pub type MakeMap = fn(&Needs<'_>, MakeFragments) -> MapPart;
/// Makes P6.
pub type MakeLog = fn(&LogStart) -> LogPart;
/// Makes P7, without entries.
pub type MakeCheckpoint = fn() -> Box<dyn Checkpoint>;
/// Makes P8.
pub type MakeGarbageCollection = fn(&Needs<'_>) -> Box<dyn GarbageCollection>;
/// Makes P9.
pub type MakeWriteCaching = fn(&Needs<'_>) -> Box<dyn WriteCaching>;

/// A component that can be chosen.
#[derive(Copy, Clone)]
pub struct Choice<F> {
    name: &'static str,
    about: &'static str,
    /// Makes it.
    pub make: F,
}

impl<F> Choice<F> {
    /// A component with a name, a line of description, and its constructor.
    pub const fn new(name: &'static str, about: &'static str, make: F) -> Choice<F> {
        Choice { name, about, make }
    }

    /// Its name.
    pub fn name(&self) -> &'static str {
        self.name
    }
}

impl<F> PartialEq for Choice<F> {
    fn eq(&self, other: &Choice<F>) -> bool {
        self.name == other.name
    }
}

impl<F> Eq for Choice<F> {}

impl<F> fmt::Debug for Choice<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.name)
    }
}

/// Defines the sets, their components, and the choice of one component from each.
macro_rules! sets {
    ($($(#[doc = $doc:literal])* $set:ident $key:ident $make:ty,)*) => {
        /// A set of functions of OX-App.
        #[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
        pub enum Set {
            $($(#[doc = $doc])* $set,)*
        }

        impl Set {
            /// All of them, in the order of OX table 5.1.
            pub const ALL: &[Set] = &[$(Set::$set,)*];

            /// The key in `[ftl.ox]`.
            pub fn key(self) -> &'static str {
                match self {
                    $(Set::$set => stringify!($key),)*
                }
            }
        }

        /// A component of some set.
        #[derive(Copy, Clone, PartialEq, Eq, Debug)]
        pub enum Component {
            $($(#[doc = $doc])* $set(Choice<$make>),)*
        }

        impl Component {
            /// The set that it is of.
            pub fn set(&self) -> Set {
                match self {
                    $(Component::$set(_) => Set::$set,)*
                }
            }

            /// Its name.
            pub fn name(&self) -> &'static str {
                match self {
                    $(Component::$set(choice) => choice.name,)*
                }
            }

            /// Its description.
            pub fn about(&self) -> &'static str {
                match self {
                    $(Component::$set(choice) => choice.about,)*
                }
            }
        }

        /// One component of each set.
        #[derive(Copy, Clone, PartialEq, Eq, Debug)]
        pub struct Components {
            $($(#[doc = $doc])* pub $key: Choice<$make>,)*
        }

        impl Components {
            /// The components that `name` gives for each set, or the first built-in one if it gives none.
            ///
            /// # Errors
            /// The first set without a component of that name, and its components.
            pub fn named<'a>(name: impl Fn(Set) -> Option<&'a str>) -> Result<Components, Unknown> {
                Ok(Components {
                    $($key: match find(Set::$set, name(Set::$set))? {
                        Component::$set(choice) => choice,
                        other => unreachable!("{other:?} is of another set"),
                    },)*
                })
            }

            /// The name of the component of a set.
            pub fn name(&self, set: Set) -> &'static str {
                match set {
                    $(Set::$set => self.$key.name,)*
                }
            }
        }
    };
}

sets! {
    /// P1-BAD: bad blocks.
    BadBlocks bad_blocks MakeBadBlocks,
    /// P2-BLK: block metadata.
    Blocks blocks MakeBlocks,
    /// P3-PRO: provisioning.
    Provisioning provisioning MakeProvisioning,
    /// P4-MPE: persistent mapping.
    PersistentMapping persistent_mapping MakeFragments,
    /// P5-MAP: mapping in memory.
    Mapping mapping MakeMap,
    /// P6-LOG: the log.
    Log log MakeLog,
    /// P7-REC: checkpoints.
    Checkpoint checkpoint MakeCheckpoint,
    /// P8-GC: garbage collection.
    GarbageCollection gc MakeGarbageCollection,
    /// P9-WCA: the write cache.
    WriteCache write_cache MakeWriteCaching,
}

/// The components that come with the crate. The first of each set is the default.
pub static BUILT_IN: &[Component] = &[
    Component::BadBlocks(Choice::new("table", "a flag for each block", |needs, marks| {
        Box::new(BadBlockTable::new(needs.geometry.blocks(), marks))
    })),
    Component::BadBlocks(Choice::new("list", "the bad blocks alone, in order", |needs, marks| {
        Box::new(BadBlockList::new(needs.geometry.blocks(), marks))
    })),
    Component::Blocks(Choice::new(
        "table",
        "a record for each block and a bit for each unit, in pages",
        |needs, bad| Part::BuiltIn(ChunkTable::new(&needs.geometry, bad)),
    )),
    Component::Provisioning(Choice::new("lines", "planes take turns, the channel the fastest", |needs, blocks| {
        Part::BuiltIn(Lines::new(&needs.geometry, LineOrder::ChannelsFirst, needs.streams, blocks))
    })),
    Component::Provisioning(Choice::new(
        "planes_first",
        "all planes of a channel, then the next channel",
        |needs, blocks| Part::BuiltIn(Lines::new(&needs.geometry, LineOrder::PlanesFirst, needs.streams, blocks)),
    )),
    Component::Provisioning(Choice::new(
        "channel_lines",
        "a line of a block per plane for each channel, renewed as a whole; channels take turns",
        |needs, blocks| Part::BuiltIn(Lines::new(&needs.geometry, LineOrder::ChannelLines, needs.streams, blocks)),
    )),
    Component::PersistentMapping(Choice::new("table", "the page of each fragment, in memory", FragmentTable::boxed)),
    Component::Mapping(Choice::new(
        "paged",
        "as many fragments in memory as ftl.ox_block.map_memory holds",
        |needs, table| Part::BuiltIn(map(needs, needs.map_memory, table)),
    )),
    Component::Mapping(Choice::new("whole", "fragments stay in memory once they are there", |needs, table| {
        Part::BuiltIn(map(needs, u64::MAX, table))
    })),
    Component::Log(Choice::new("chain", "pages that each name three pages where the next may be", |start| {
        Part::BuiltIn(LogBuffer::new(start))
    })),
    Component::Checkpoint(Choice::new("keyed", "values under keys", || Box::new(KeyedEntries::default()))),
    Component::Checkpoint(Choice::new(
        "flushed_first",
        "values under keys; tables are written before the head of the log is taken, and again after it",
        || Box::new(FlushedFirst::default()),
    )),
    Component::GarbageCollection(Choice::new("most_garbage", "the block with the most garbage", |_| {
        Box::new(ByMerit(Greedy))
    })),
    Component::GarbageCollection(Choice::new(
        "cost_benefit",
        "garbage times age over the cost of moving the rest",
        |_| Box::new(ByMerit(CostBenefit)),
    )),
    Component::GarbageCollection(Choice::new("oldest", "the block that became full longest ago", |_| {
        Box::new(ByMerit(Oldest))
    })),
    Component::GarbageCollection(Choice::new(
        "by_address",
        "the block with the most garbage; its units are moved in the order of their addresses",
        |_| Box::new(ByAddress(ByMerit(Greedy))),
    )),
    Component::WriteCache(Choice::new("eager", "data is programmed as soon as it fills a page", |_| Box::new(Eager))),
    Component::WriteCache(Choice::new("half_full", "data is programmed when half of the cache is in use", |_| {
        Box::new(HalfFull)
    })),
];

fn map(needs: &Needs<'_>, memory: u64, table: MakeFragments) -> PagedMap {
    PagedMap::new(needs.logical_units, needs.geometry.page_size(), needs.geometry.channels(), memory, table)
}

impl Default for Components {
    fn default() -> Components {
        Components::named(|_| None).expect("each set has a built-in component")
    }
}

static REGISTERED: RwLock<Vec<Component>> = RwLock::new(Vec::new());

/// A component whose name is taken, in the same set.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Taken(pub Component);

impl fmt::Display for Taken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ftl.ox.{}: there is a component \"{}\" already", self.0.set().key(), self.0.name())
    }
}

impl std::error::Error for Taken {}

/// Adds a component.
///
/// # Errors
/// When its set has one with the name.
pub fn register(component: Component) -> Result<(), Taken> {
    let mut registered = REGISTERED.write().expect("no one panics with the lock");
    let is_same = |other: &Component| other.set() == component.set() && other.name() == component.name();
    if BUILT_IN.iter().chain(registered.iter()).any(is_same) {
        return Err(Taken(component));
    }
    registered.push(component);
    Ok(())
}

/// All components of a set, the built-in ones first.
pub fn components(set: Set) -> Vec<Component> {
    let registered = REGISTERED.read().expect("no one panics with the lock");
    BUILT_IN.iter().chain(registered.iter()).filter(|component| component.set() == set).copied().collect()
}

/// A name that no component of a set has.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unknown {
    /// The set.
    pub set: Set,
    /// The name.
    pub name: String,
}

impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = components(self.set).iter().map(Component::name).collect();
        write!(f, "\"{}\" is none of {}", self.name, names.join(", "))
    }
}

impl std::error::Error for Unknown {}

/// The component of a set with a name, or the first.
fn find(set: Set, name: Option<&str>) -> Result<Component, Unknown> {
    let found = components(set).into_iter().find(|component| name.is_none_or(|name| component.name() == name));
    found.ok_or_else(|| Unknown { set, name: name.unwrap_or_default().to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn components_are_found_by_name_and_a_name_is_taken_once() {
        let default = Components::default();
        assert_eq!((default.gc.name(), default.mapping.name()), ("most_garbage", "paged"));
        let chosen = Components::named(|set| (set == Set::GarbageCollection).then_some("oldest")).unwrap();
        assert_eq!((chosen.gc.name(), chosen.log.name()), ("oldest", "chain"));
        let unknown = Components::named(|set| (set == Set::WriteCache).then_some("none")).unwrap_err();
        assert_eq!(unknown.to_string(), "\"none\" is none of eager, half_full");
        let own = Choice::new("of_this_test", "nothing", (|_| Box::new(Eager)) as MakeWriteCaching);
        register(Component::WriteCache(own)).unwrap();
        assert!(Components::named(|set| (set == Set::WriteCache).then_some("of_this_test")).is_ok());
        let taken = register(Component::WriteCache(own)).unwrap_err();
        assert_eq!(taken.to_string(), "ftl.ox.write_cache: there is a component \"of_this_test\" already");
        for set in Set::ALL {
            assert_eq!(components(*set)[0].name(), default.name(*set), "{set:?}");
        }
    }
}
