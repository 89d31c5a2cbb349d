//! The kinds of drive that are tested, by name.

use nandscape_device_ftl_core::FirmwareTimes;
use nandscape_device_ftl_core::ftl::Milestone;
use nandscape_device_media::{Priority, StoreKind};
use nandscape_device_rig::TestFlash;
use nandscape_sim::Span;

use crate::OxBlockConfig;
use crate::ox_block::{CheckpointConfig, Layout, OxGcConfig};
use crate::registry::{Components, Set};

/// The parameters of a drive.
#[derive(Clone, Debug)]
pub(super) struct Setup {
    pub(super) flash: TestFlash,
    pub(super) config: OxBlockConfig,
    /// Whether the write cache and the log survive a power cut in memory.
    pub(super) keeps: bool,
    /// The stage that a write must have reached when it completes.
    pub(super) completes_at: Option<Milestone>,
}

/// The names of the kinds without a log.
pub(super) const LINES: [&str; 4] = ["pblk", "spdk", "pblk_through", "spdk_capacitors"];

/// The names of all other kinds; the first three are the quickest.
pub(super) const KINDS: [&str; 6] = ["plain", "transactions", "capacitors", "through", "paged", "tiny"];

/// The names of kinds that seeds do not draw: the drives of a seed stay the same.
pub(super) const MORE: [&str; 5] = ["channel_lines", "programmed", "appended", "by_address", "flushed_first"];

impl Setup {
    /// The drive of a kind, if there is one of that name.
    pub(super) fn of(kind: &str) -> Option<Setup> {
        Some(match kind {
            "plain" => Setup::small(),
            "transactions" => Setup::small().transactions(),
            "capacitors" => Setup::small().capacitors(),
            "through" => Setup::small().through(),
            "programmed" => Setup::small().programmed(),
            "appended" => Setup::small().transactions().programmed().appended(),
            "paged" => Setup::paged(),
            "tiny" => Setup::tiny(),
            "channel_lines" => Setup::small().component(Set::Provisioning, "channel_lines"),
            "flushed_first" => Setup::small().component(Set::Checkpoint, "flushed_first"),
            "by_address" => Setup::small().component(Set::GarbageCollection, "by_address"),
            "pblk" => Setup::small().layout(Layout::PBLK),
            "spdk" => Setup::small().layout(Layout::SPDK),
            "pblk_through" => Setup::small().layout(Layout::PBLK).through(),
            "spdk_capacitors" => Setup::small().layout(Layout::SPDK).capacitors(),
            _ => return None,
        })
    }

    /// A drive of two channels with two planes each, small enough to be collected after a few hundred writes.
    pub(super) fn small() -> Setup {
        let flash = TestFlash {
            channels: 2,
            planes: 2,
            blocks: 20,
            pages: 8,
            units_per_page: 2,
            erase: Span::from_ms(1),
            store: StoreKind::Ram,
            ..TestFlash::default()
        };
        let config = OxBlockConfig {
            logical_units: 380,
            buffer_units: 24,
            priority: Priority::Fifo,
            firmware: FirmwareTimes::default(),
            transactions: false,
            keeps_log: false,
            waits_for_log: false,
            waits_for_commit: true,
            map_memory: 0,
            checkpoint: CheckpointConfig { interval: Span::from_ms(40), log_pages: 12 },
            gc: OxGcConfig { slots: 1, threshold: 600, target: 900, batch: 2 },
            layout: Layout::Log,
            components: Components::default(),
        };
        Setup { flash, config, keeps: false, completes_at: None }
    }

    /// A drive of one channel with as few blocks as there may be, for many short runs.
    fn tiny() -> Setup {
        let mut setup = Setup::small();
        setup.flash = TestFlash { channels: 1, planes: 2, blocks: 20, units_per_page: 1, ..setup.flash };
        setup.config.logical_units = 48;
        setup.config.buffer_units = 8;
        setup.config.checkpoint.log_pages = 4;
        setup
    }

    /// With transactions.
    pub(super) fn transactions(mut self) -> Setup {
        self.config.transactions = true;
        self
    }

    /// A drive whose map is larger than its memory for it.
    pub(super) fn paged() -> Setup {
        let mut setup = Setup::small();
        setup.flash = TestFlash { channels: 1, planes: 4, blocks: 70, units_per_page: 1, ..setup.flash };
        setup.config.logical_units = 1_250;
        setup
    }

    /// On a drive that reports no volatile cache.
    pub(super) fn through(mut self) -> Setup {
        self.config.waits_for_log = true;
        self
    }

    /// A write completes when its data is programmed.
    pub(super) fn programmed(mut self) -> Setup {
        self.completes_at = Some(Milestone::Programmed);
        self
    }

    /// A transaction completes when its Commit is in the log, durable or not.
    pub(super) fn appended(mut self) -> Setup {
        self.config.waits_for_commit = false;
        self
    }

    /// With another layout.
    fn layout(mut self, layout: Layout) -> Setup {
        self.config.layout = layout;
        self
    }

    /// With another component of a set.
    fn component(mut self, set: Set, name: &'static str) -> Setup {
        self.config.components = Components::named(|other| (other == set).then_some(name)).expect("it is built in");
        self
    }

    /// With capacitors.
    pub(super) fn capacitors(mut self) -> Setup {
        (self.config.keeps_log, self.keeps) = (true, true);
        self
    }
}
