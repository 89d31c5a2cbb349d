//! Forms of the store, their drives, and the variations that show why a form is faster: shared by `eleos-cache` and
//! `eleos-scale`.

use anyhow::{Result, ensure};
use nandscape_apps_llama_engine::{ChainConfig, Costs, LogConfig};
use nandscape_apps_llama_run::Form;
use nandscape_device_ssd::{Profile, Resolved};
use nandscape_sim::Span;

/// A form of the store, with its drive.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Store {
    /// The log of the host, with pages at their true length, on the page FTL.
    Host,
    /// The same on the FTL that the offloaded form has.
    HostOnOxBlock,
    /// Offloaded, with pages of 4 KiB as the thesis has them.
    Fixed,
    /// Offloaded, with pages at their true length, as those of the host's log are.
    Variable,
}

impl Store {
    pub(crate) const ALL: [Store; 4] = [Store::Host, Store::HostOnOxBlock, Store::Fixed, Store::Variable];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Store::Host => "conventional",
            Store::HostOnOxBlock => "conventional on OX-Block",
            Store::Fixed => "offloaded",
            Store::Variable => "offloaded, variable",
        }
    }

    /// Whether checkpoints and cleaning are the host's.
    pub(crate) const fn is_in_host(self) -> bool {
        matches!(self, Store::Host | Store::HostOnOxBlock)
    }

    pub(crate) fn form(self, has_checkpoints: bool) -> Form {
        let checkpoint = has_checkpoints.then(|| Span::from_ms(64));
        match self {
            Store::Host | Store::HostOnOxBlock => {
                Form::Log(LogConfig { segment_bytes: 8 << 20, pieces: 1, checkpoint, ..LogConfig::default() })
            }
            Store::Fixed => Form::Eleos,
            Store::Variable => Form::Chains(ChainConfig { pieces: 1, ..ChainConfig::default() }),
        }
    }

    /// Its drive, with keys changed.
    pub(crate) fn drive(self, changes: &[&str], has_checkpoints: bool) -> Result<Resolved> {
        let mut profile = Profile::load("default")?;
        profile.set_all(["geometry.channels=4", "geometry.dies_per_channel=4", "geometry.planes_per_die=1"])?;
        profile.set_all(["geometry.pages_per_block=24", "buffer.mode=volatile", "controller.max_transfer=1MiB"])?;
        profile.set_all(changes.iter().copied())?;
        if self != Store::Host {
            profile.set_all(["ftl.kind=ox_block", "ftl.ox_block.gc_target=50%"])?;
            // The host's checkpoints are those of the host.
            let interval = if has_checkpoints { "64ms" } else { "3600s" };
            profile.set(&format!("ftl.ox_block.checkpoint_interval={interval}"))?;
        }
        let resolved = profile.resolve()?;
        ensure!(!resolved.is_reshaped(), "not the same flash on all lines: {}", resolved.notes.join("; "));
        Ok(resolved)
    }
}

/// What is varied. Figures of it are not judged.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Setting {
    pub(crate) name: &'static str,
    /// Keys of the drive.
    pub(crate) changes: &'static [&'static str],
    /// By how much the host's processors are slower.
    pub(crate) slowness: u64,
    /// The factor of the number of clients.
    pub(crate) clients: u64,
}

impl Setting {
    /// What is judged.
    pub(crate) const JUDGED: Setting = Setting { name: "as judged", changes: &[], slowness: 1, clients: 1 };
    /// 128 planes of a small drive have blocks of few pages; this is 16 planes with blocks of as many pages, for comparison.
    pub(crate) const SMALL_BLOCKS: Setting =
        Setting { name: "16 planes, blocks of 12 pages", changes: &["geometry.pages_per_block=12"], ..Setting::JUDGED };
    /// The thesis' drive (OX 4.4.2, 7.4).
    pub(crate) const MANY_PLANES: Setting = Setting {
        name: "128 planes, blocks of 12 pages",
        changes: &["geometry.pages_per_block=12", "geometry.channels=16", "geometry.dies_per_channel=8"],
        ..Setting::JUDGED
    };
    pub(crate) const SLOW_HOST: Setting =
        Setting { name: "the host's work takes 4 times as long", slowness: 4, ..Setting::JUDGED };
    pub(crate) const MANY_CLIENTS: Setting = Setting { name: "4 times as many clients", clients: 4, ..Setting::JUDGED };

    pub(crate) fn costs(&self) -> Costs {
        let Costs { operation, command, kib, entry } = Costs::ASSUMED;
        let [operation, command, kib, entry] = [operation, command, kib, entry].map(|span| span * self.slowness);
        Costs { operation, command, kib, entry }
    }
}
