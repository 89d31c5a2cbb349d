//! The age of a drive in `nandscape inspect`, if its flash ages: time with power, the ages of its data, and reads.

use nandscape_device_media::aging::BlockHealth;
use nandscape_device_media::{BlockId, Media};
use serde_json::{Value, json};

const HOURS_A_DAY: f64 = 24.0;

/// What is known of all blocks with data.
struct Ages {
    /// The least and the most hours since a block was written, and the mean.
    hours: (f64, f64, f64),
    /// Reads of each page since then: the mean, and of the block that was read most.
    reads: (f64, f64),
}

impl Ages {
    /// `None` where no block has data, or the flash does not age.
    fn of(media: &Media) -> Option<Ages> {
        let blocks = (0..media.geometry().blocks()).map(BlockId);
        let all: Vec<BlockHealth> = blocks.filter_map(|block| of_block(media, block)).collect();
        let mean = |of: fn(&BlockHealth) -> f64| all.iter().map(of).sum::<f64>() / all.len() as f64;
        let most = |of: fn(&BlockHealth) -> f64| all.iter().map(of).fold(0.0, f64::max);
        let least = all.iter().map(|block| block.hours).reduce(f64::min)?;
        Some(Ages {
            hours: (least, most(|block| block.hours), mean(|block| block.hours)),
            reads: (mean(|block| block.reads), most(|block| block.reads)),
        })
    }
}

/// What is known of a block with data, if its flash ages.
pub(super) fn of_block(media: &Media, block: BlockId) -> Option<BlockHealth> {
    media.block_health(block).filter(|_| media.pages_programmed(block) > 0)
}

/// A line for a person, if the flash ages.
pub(super) fn row(media: &Media) -> Option<String> {
    let powered = media.powered()?;
    let days = |hours: f64| hours / HOURS_A_DAY;
    let data = Ages::of(media).map_or_else(
        || "no block has data".to_owned(),
        |Ages { hours, reads }| {
            format!(
                "data written {:.1} to {:.1} days ago, mean {:.1}; each page read {:.1} times since, at most {:.1}",
                days(hours.0),
                days(hours.1),
                days(hours.2),
                reads.0,
                reads.1
            )
        },
    );
    Some(format!("{:.1} days with power; {data}", days(powered.as_s() / 3_600.0)))
}

/// What belongs to the line of wear: the rated erases, and blocks that a life before the first start has left bad.
pub(super) fn wear(media: &Media) -> String {
    let rated = media.aging().map_or_else(String::new, |aging| format!(", of {} rated", aging.rated));
    match media.grown_bad_blocks() {
        0 => rated,
        bad => format!("{rated}; {bad} blocks went bad before the first start"),
    }
}

/// The same for programs.
pub(super) fn as_json(media: &Media) -> Value {
    let (Some(powered), Some(aging)) = (media.powered(), media.aging()) else { return Value::Null };
    let data = Ages::of(media).map(|Ages { hours, reads }| {
        json!({
            "hours_since_program": { "least": hours.0, "most": hours.1, "mean": hours.2 },
            "reads_of_each_page": { "mean": reads.0, "most": reads.1 },
        })
    });
    json!({
        "powered_s": powered.as_s(), "rated_erases": aging.rated,
        "bad_before_first_start": media.grown_bad_blocks(), "data": data,
    })
}
