//! The sizes of OX-Block's tables at the thesis' geometry, its rule for selecting blocks to collect, and its over-provisioning,
//! as computed by the FTL; and the number of pages that fit a buffer of OX-ELEOS.

use anyhow::{Context as _, Result};
use nandscape_device_ftl_ox::OxBlockConfig;
use nandscape_device_ftl_ox::ox_block::Sizes;
use nandscape_device_media::Geometry;
use nandscape_device_media::geometry::Counts;
use nandscape_device_ssd::Profile;
use nandscape_wire_nvme::lss;

use nandscape_lab_ledger::claim::{Check, Claim, Kind, Paper};
use nandscape_lab_ledger::experiment::{Choice, Clock, Experiment, Parameter, Point};
use nandscape_lab_ledger::figures::{Figures, Results};
use nandscape_lab_ledger::verdict::{Judgement, exact};

pub(crate) static EXPERIMENT: Experiment = Experiment {
    claim: Claim {
        id: "ox-sizes",
        source: &[(Paper::Ox, "eq. 6.1-6.6, Table 6.3, 6.1.2")],
        says: "2 TB: map tables 4 GB, 1 MB, 256 B; checkpoint 17,584 bytes; chunk entry 530 bytes, 4,240 KB a channel, 135 addresses; minimum invalid rate 3,686 then 3,072 at warning rate 0.05 (rounded to nearest); 512 entries in a 32 KiB log page (1 chain pointer + 511); 2,048 GB shows 1,434 GB; up to 252 LPIDs in a 1 MB LSS buffer",
        show: None,
        ruling: Some(
            "an 18-byte header and numbering by channel give three of the four rows; the checkpoint's other \
                      bytes are ours and stay a told difference",
        ),
        check: Check::Exact,
        kind: Kind::Result,
    },
    clock: Clock::Virtual,
    runs: 1,
    published: &[],
    awaits: &["an 18-byte header of a chunk entry, and numbering by channel"],
    parameters: &[
        Parameter { what: "channels, parallel units on each", value: "16, 8", source: "OX 6.1.7.1; 6.1.2" },
        Parameter { what: "chunks of a unit, sectors of a chunk", value: "1,024; 4,096 of 4 KiB", source: "OX 6.1.2" },
        Parameter { what: "page", value: "32 KiB", source: "OX 6.1.2, 6.1.4" },
        Parameter {
            what: "target rate, threshold, chunks in use",
            value: "90%, 70%, 75%",
            source: "OX eq. 6.4 to 6.6",
        },
        Parameter { what: "over-provisioning", value: "42.86% of the capacity", source: "OX 6.1.8: 30% of the flash" },
    ],
    choices: &[
        Choice {
            open: "units",
            taken: "KB, MB, GB and TB are powers of 1,024",
            why: "2 TB of 4 KB sectors are published as 536,870,912",
        },
        Choice {
            open: "a checkpoint",
            taken: "all of its bytes: each entry with its key and its length",
            why: "in addition to the rows of table 6.3 it has three pages and two numbers for the head of the log, the records up to which \
                  log and map_S were written, and the next transaction",
        },
    ],
    points: || vec![Point::new(SIZES, |_| sizes())],
    judge,
};

const OX_BLOCK: [&str; 4] = [
    "ftl.kind=ox_block",
    "ftl.over_provisioning=42.86%",
    "ftl.ox_block.gc_target=90%",
    "ftl.ox_block.gc_threshold=70%",
];
const SIZES: &str = "2 TB";
/// Names and published values.
const PUBLISHED: [(&str, &str); 14] = [
    ("entries of the map", "536,870,912"),
    ("map_L, GB", "4"),
    ("map_S, MB", "1"),
    ("map_T, bytes", "256"),
    ("a chunk entry, bytes", "530"),
    ("chunk entries of a channel, KB", "4,240"),
    ("addresses of a channel in chunk_S", "135"),
    ("bytes of those addresses of all channels", "17,280"),
    ("a checkpoint, bytes", "17,584"),
    ("entries of a log page, its chain pointer included", "512"),
    ("minimum invalid rate at the threshold", "3,686"),
    ("minimum invalid rate at warning rate 0.05", "3,072"),
    ("visible of 2,048 GB", "1,434"),
    ("LPIDs of an LSS buffer of 1 MB", "252"),
];

fn sizes() -> Result<Figures> {
    let counts = Counts {
        channels: 16,
        dies_per_channel: 8,
        planes_per_die: 1,
        blocks_per_plane: 1_024,
        pages_per_block: 512,
        page_size: 32 << 10,
        unit_size: 4 << 10,
    };
    let geometry = Geometry::new(counts)?;
    // The thesis maps all of the flash.
    let sizes = Sizes::of(&geometry, geometry.units());
    let config = config()?;
    let (config, over_provisioning) = (&config.0, config.1);
    let least = |share| f64::from(config.gc.least_garbage(geometry.units_per_block(), share));
    let values = [
        sizes.map_entries as f64,
        sizes.map_large as f64 / (1u64 << 30) as f64,
        sizes.map_small as f64 / (1u64 << 20) as f64,
        sizes.map_tiny as f64,
        sizes.chunk_entry as f64,
        sizes.channel_chunks as f64 / 1_024.0,
        sizes.channel_fragments as f64,
        (sizes.chunk_fragments * sizes.address) as f64,
        sizes.checkpoint as f64,
        (sizes.log_records + 1) as f64,
        least(700),
        least(750),
        2_048.0 / (1.0 + over_provisioning),
        lss::room(1 << 20) as f64,
    ];
    let mut figures = Figures::default();
    PUBLISHED.iter().zip(values).for_each(|((name, _), value)| figures.add(*name, value, ""));
    Ok(figures)
}

/// An OX-Block as a profile resolves to it, with the thesis' rates, and its over-provisioning.
fn config() -> Result<(OxBlockConfig, f64)> {
    let mut profile = Profile::load("default")?;
    for change in OX_BLOCK {
        profile.set(change)?;
    }
    let resolved = profile.resolve()?;
    let over_provisioning = resolved.keys.ftl.over_provisioning.context("it is resolved")?.0.0;
    Ok((resolved.ox_block().context("an OX-Block was asked for")?, over_provisioning))
}

fn judge(results: &Results) -> Result<Judgement> {
    let of = results.of(SIZES)?;
    let mut judgement = Judgement::default();
    for (name, published) in PUBLISHED {
        judgement.criteria.push(exact::number(name, of.number(name)?, "", published));
    }
    judgement.reason =
        "An entry of the table of blocks has 24 bytes before its bits here and 18 in the thesis, and its fragments \
        are numbered over the whole drive, not by channel"
            .to_owned();
    Ok(judgement)
}
