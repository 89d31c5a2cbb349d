//! Words of `nandscape paper engine`, and what of them is valid together.
//!
//! Left out: the words of other loads than the paper's ([`LoadWords`]), and what drives and layers allow.

use std::path::{Path, PathBuf};

use clap::Args;
use nandscape_apps_memcached_engine::Placement;
use nandscape_apps_memcached_run::Tenant;
use nandscape_sim::units::Bytes;

use super::loads::LoadWords;
use super::words::{COPIES, NO_LAYER, known, placement, scheduler, small_items, tenant};
use crate::failure::Failure;
use crate::files::Files;
use crate::numbers::whole;
use crate::output;
use crate::over::OverWords;
use crate::sim::can_write;

/// Measure the tail of reads on the storage engine over several drives, under each policy.
///
/// Readers ask for small items, which the engine does not keep in memory, while writers put large ones as fast as the drives take them. All policies have the
/// same engine, load and drives, and all but raid0 the same layout (RAID-1+0, or --placement parity). mixed and raid0 read and write at all drives at any time;
/// epochs writes to even and odd drives in turn and reads from the others; rails does the same, and the turns are of a fixed time;
/// gc_control also orders when the drives collect garbage, and waits until they are ready for reads. predictable_latency, fdp and zoned take
/// turns as epochs does: drives that are read are in the deterministic window of Predictable Latency Mode, or the log has a reclaim unit handle
/// for itself (Flexible Data Placement), or its segments lie in zones (ZNS). First the log of each drive is written once.
///
/// With --server, the same loads run on a live server of memcached's protocol, in wall time.
///
/// With --over, each drive of the engine is a chain of layers over as many drives as they need, called drive-0, drive-1 and so on. A
/// drive that fails is done without, and its twin has the items.
#[derive(Args)]
#[command(after_help = "\
Examples:
  nandscape paper engine
        all policies on four drives
  nandscape paper engine --policy raid0,gc_control --threads 2 --uplink 1500MB
        a host of four cores with two threads each, whose drives share an uplink
  nandscape paper engine --policy mixed,gc_control --readers 32 --reads 1000000
  nandscape paper engine \\
      --policy gc_control,predictable_latency,fdp,zoned --passes 4
        orders of a vendor, and what drives on sale offer in their place
  nandscape paper engine --policy mixed,gc_control --tenants 4:1,64:12 \\
      --scheduler none,noop,cfq
        four readers of one tenant next to 64 of another, without a block
        layer and with two of its schedulers
  nandscape paper engine --policy epochs,gc_control --placement copies,parity
        mirrored pairs, and data on three of four drives with parity
  nandscape paper engine --policy epochs,gc_control --drives 1 \\
      --drive halves.toml
        one drive with two FTLs on channels of their own: each in turn
  nandscape paper engine --policy mixed,gc_control \\
      --cache-trace cluster052.zst --requests 1000000
        hit ratio, latency and drive writes a day under a trace of a cache
  nandscape paper engine --policy mixed,gc_control --ycsb b --readers 64 \\
      --read-size 1000 --reads 20000
        YCSB behind memcached's protocol
  nandscape memcached --listen unix:m.sock
  nandscape paper engine --server unix:m.sock --ycsb b --items 100000
        YCSB on a live server of memcached's protocol, in wall time
  nandscape paper engine --over raid1:2 --policy mixed,epochs --reads 20000
        each drive of the engine is a mirror of two
  nandscape paper engine --over block,scheduler=cfq --tenants 4:1,64:12
        a block layer over each drive
  nandscape paper engine --policy epochs \\
      --fault 'drive-1=dead channel=0-3 from=2s'
        a drive vanishes: its twin serves
  nandscape paper engine --in-place --policy raid0,mixed,epochs,gc_control
        blocks at fixed places, as the thesis has them
  nandscape paper engine --policy gc_control --drives 2 --json
  nandscape paper engine --policy mixed,epochs,gc_control --page turns.html
        a page with the tails, and the turns of the drives
  nandscape paper engine --policy gc_control --reads 5000 \\
      --chrome-trace turns.json
        a timeline of the turns of the drives

Exit status: 0 when done, 1 when a run has failed, 2 for bad usage or input.")]
pub(crate) struct EngineArgs {
    /// Policies. predictable_latency, fdp and zoned are for drives that have the feature of NVMe; built-in drives are given it
    /// [default: mixed,epochs,gc_control,raid0,rails, without those whose orders the layers do not pass]
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', value_parser = known)]
    pub(super) policy: Vec<String>,
    /// How drives hold the items, each with all policies: copies on pairs of drives, or parity: data on all drives but one, and their parity on
    /// that one, another for each segment
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', default_value = COPIES, value_parser = placement)]
    pub(super) placement: Vec<Placement>,
    /// Drives, in pairs of an even and an odd one; with parity, 3 to 16. Each part of a drive with several FTLs counts as a drive; of
    /// several such drives, two have the copies of each other. With --over, each is what lies at the top of the layers
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u64).range(1..=64))]
    pub(super) drives: u64,
    /// Each of the drives
    #[arg(long, value_name = "P", default_value = "default")]
    pub(super) drive: String,
    /// Change a key of the drive's profile; may be repeated. Unless they are set, built-in drives have capacity 128MiB, 4 channels of a die
    /// of two planes, 64 pages a block, lba_size 4KiB, buffer.mode capacitor and buffer.size 2MiB
    #[arg(long, value_name = "KEY=VALUE")]
    pub(super) set: Vec<String>,
    /// Readers, each with one get at a time
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u64).range(1..=4_096))]
    pub(super) readers: u64,
    /// Readers of several tenants, in place of --readers: how many, and the class of their reads: 0 is none, 1 to 4 real time, 5 to 12
    /// best effort, 15 idle. Reads at drives carry the class and the tenant's number, counted from 1
    #[arg(long, value_name = "READERS:CLASS,...", value_delimiter = ',', value_parser = tenant, conflicts_with = "readers")]
    pub(super) tenants: Vec<Tenant>,
    /// Schedulers of a block layer over each drive, each with all policies: none is no block layer. cfq is --over
    /// block,predictor=none,depth=8,slice=1ms,scheduler=cfq; --set block.depth and block.slice change the depth and the length of a turn
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', default_value = NO_LAYER, value_parser = scheduler, conflicts_with = "over")]
    pub(super) scheduler: Vec<String>,
    #[command(flatten)]
    pub(super) over: OverWords,
    /// Bytes of the values that are read
    #[arg(long, value_name = "BYTES", default_value = "4KiB")]
    pub(super) read_size: Bytes,
    /// Writers, each with one put at a time
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u64).range(0..=4_096))]
    pub(super) writers: u64,
    /// Bytes of the values that are put; half a segment at most, which is a 256th of a drive
    #[arg(long, value_name = "BYTES", default_value = "256KiB")]
    pub(super) write_size: Bytes,
    /// Reads that are measured
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    pub(super) reads: u64,
    /// How full the items of the readers make the log, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 50, value_parser = clap::value_parser!(u64).range(1..=70))]
    pub(super) fill: u64,
    /// Items of at most this many bytes of key and value share blocks of 4 KiB; 0 is off. The output then has the index's bytes of an item,
    /// and the bytes that drives write for each that is put
    #[arg(long, value_name = "BYTES", value_parser = small_items)]
    pub(super) small_items: Option<Bytes>,
    /// Reads of keys that have no item, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 0, value_parser = clap::value_parser!(u64).range(0..=90))]
    pub(super) absent: u64,
    /// Bytes of changes that may wait for their drives
    #[arg(long, value_name = "BYTES", default_value = "8MiB")]
    pub(super) dirty: Bytes,
    /// Cores of the host
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u64).range(1..=64))]
    pub(super) cores: u64,
    /// Hardware threads of each core, 1 or 2
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=2))]
    pub(super) threads: u64,
    /// Bytes a second of the uplink that all drives share, in each direction; left out, there is no limit
    #[arg(long, value_name = "BYTES")]
    pub(super) uplink: Option<Bytes>,
    /// How often the log of each drive is written before the measurement
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=20))]
    pub(super) passes: u64,
    /// Seed of all random choices
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole, allow_negative_numbers = true)]
    pub(super) seed: u64,
    #[command(flatten)]
    pub(super) loads: LoadWords,
    #[cfg(target_os = "linux")]
    #[command(flatten)]
    pub(super) server: super::server::ServerWords,
    /// Print the result as JSON
    #[arg(long)]
    pub(super) json: bool,
    /// Write the tokens and reads of each drive, and the activity of its dies and channels, to this file, for chrome://tracing or
    /// ui.perfetto.dev; with one policy
    #[arg(long, value_name = "FILE")]
    pub(super) chrome_trace: Option<PathBuf>,
    /// Write a page to this file, which opens in any browser: the tails of all runs, and for each the tokens, reads and flash of its drives
    /// over time
    #[arg(long, value_name = "FILE")]
    pub(super) page: Option<PathBuf>,
}

impl EngineArgs {
    pub(super) fn check(&self) -> Result<(), Failure> {
        let wrong = |text: &str| Err(Failure::Input(anyhow::anyhow!("{text}")));
        if self.read_size.0 == 0 || self.write_size.0 == 0 {
            return wrong("--read-size, --write-size: 1 byte or more is valid");
        }
        if self.read_size.0.max(self.write_size.0) > 1 << 30 {
            return wrong("--read-size, --write-size: 1GiB or less is valid");
        }
        if let Some(file) = &self.chrome_trace {
            if self.cases()?.len() > 1 {
                return wrong(
                    "--chrome-trace: the file has one run; one --policy is valid, with one --placement and one --scheduler",
                );
            }
            Files::default().writes("--chrome-trace", file).check()?;
            can_write(file).map_err(|error| Failure::Input(error.context("--chrome-trace")))?;
        }
        if let Some(file) = &self.page {
            let mut files = Files::default().reads("--drive", Path::new(&self.drive)).writes("--page", file);
            if let Some(trace) = &self.chrome_trace {
                files = files.writes("--chrome-trace", trace);
            }
            files.check()?;
            output::check_page_of(file, "another file with --page")?;
            can_write(file).map_err(|error| Failure::Input(error.context("--page")))?;
        }
        if self.uplink.is_some_and(|uplink| uplink.0 < 1_000_000) {
            return wrong("--uplink: 1MB or more is valid");
        }
        if self.dirty.0 < 1 << 16 || self.dirty.0 > 1 << 32 {
            return wrong("--dirty: 64KiB to 4GiB are valid");
        }
        if self.tenants.iter().map(|tenant| tenant.readers).sum::<u64>() > 4_096 {
            return wrong("--tenants: 4096 readers at most, of all tenants together, are valid");
        }
        self.check_layer()
    }
}
