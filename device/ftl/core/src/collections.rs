//! Garbage collection at a host's command (Shin 5.3.2, Table 5.1): two watermarks, collections for a time, and a hold in which nothing
//! internal disturbs reads.
//!
//! | event | effect |
//! |---|---|
//! | free blocks fall below the low watermark | the drive collects until they reach it again |
//! | [`Collections::run`] below the high watermark | the drive collects until the time is over or the high watermark is reached |
//! | [`Collections::run`] at the high watermark or above | ignored |
//! | [`Collections::is_ready_for_read`] | ends collections at their next step, holds buffered data back, and answers `false` until that is done; then nothing internal runs |
//! | a write, a flush of buffered data, a run, fewer free blocks than the low watermark, a sanitize operation, a power cut | ends the hold |
//!
//! A low watermark of zero leaves the drive's own collections to its own policy, which is how a drive begins.

use std::fmt;

use nandscape_sim::Span;

/// Numbers of erased blocks, of all planes together.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct Watermarks {
    /// Below it the drive collects by itself; zero leaves that to the policy of the drive.
    pub low: u32,
    /// Collections that a host requests end at this watermark.
    pub high: u32,
}

/// A drive's report of its space and its collections.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct CollectionStatus {
    /// Bytes of the host's address space.
    pub user_bytes: u64,
    /// Bytes of the flash.
    pub device_bytes: u64,
    /// Bytes of an erase block.
    pub block_bytes: u64,
    /// Erase blocks of the flash.
    pub blocks: u32,
    /// Erased blocks.
    pub free: u32,
    /// The watermarks in force.
    pub watermarks: Watermarks,
    /// Whether a collection is under way.
    pub is_collecting: bool,
    /// Whether nothing internal runs, or will run before one of the events that end a hold.
    pub is_held: bool,
}

/// Watermarks that a drive rejects.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum BadWatermarks {
    /// The low watermark is above the high one.
    LowAboveHigh {
        /// The low watermark.
        low: u32,
        /// The high watermark.
        high: u32,
    },
    /// The high watermark is above the blocks of the flash.
    HighAboveAll {
        /// The high watermark.
        high: u32,
        /// Blocks of the flash.
        blocks: u32,
    },
}

impl fmt::Display for BadWatermarks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BadWatermarks::LowAboveHigh { low, high } => {
                write!(f, "the low watermark {low} is above the high watermark {high}; at most {high} is valid")
            }
            BadWatermarks::HighAboveAll { high, blocks } => {
                write!(
                    f,
                    "the high watermark {high} is above the {blocks} blocks of the flash; at most {blocks} is valid"
                )
            }
        }
    }
}

impl std::error::Error for BadWatermarks {}

impl Watermarks {
    /// Checks the watermarks for a flash of `blocks` blocks.
    ///
    /// # Errors
    /// Which of them is too high, and what would be valid.
    pub fn check(self, blocks: u32) -> Result<(), BadWatermarks> {
        let Watermarks { low, high } = self;
        match () {
            () if high > blocks => Err(BadWatermarks::HighAboveAll { high, blocks }),
            () if low > high => Err(BadWatermarks::LowAboveHigh { low, high }),
            () => Ok(()),
        }
    }
}

/// See the file. All calls return at once; the work that they begin continues in drive time.
pub trait Collections {
    /// The space, and the state of the drive.
    fn status(&self) -> CollectionStatus;

    /// Sets both watermarks, from now on until power is lost.
    ///
    /// # Errors
    /// Which of them is out of range. Nothing is changed then.
    fn set_watermarks(&self, watermarks: Watermarks) -> Result<(), BadWatermarks>;

    /// Collects for `time`, or until the high watermark is reached. Returns whether the order was accepted: it is
    /// ignored at the high watermark and above. A second run replaces the first; a run of no time ends it.
    fn run(&self, time: Span) -> bool;

    /// Requests reads without internal work in their way. Returns whether nothing internal runs. While writes are under
    /// way, or fewer blocks are free than the low watermark, the drive continues with them and answers `false`.
    fn is_ready_for_read(&self) -> bool;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn watermarks_are_in_order_and_within_the_flash() {
        let check = |low, high| Watermarks { low, high }.check(100);
        assert_eq!((check(0, 0), check(100, 100), check(3, 7)), (Ok(()), Ok(()), Ok(())));
        assert_eq!(check(8, 7), Err(BadWatermarks::LowAboveHigh { low: 8, high: 7 }));
        assert_eq!(check(0, 101), Err(BadWatermarks::HighAboveAll { high: 101, blocks: 100 }));
        let told = check(8, 7).unwrap_err().to_string();
        assert_eq!(told, "the low watermark 8 is above the high watermark 7; at most 7 is valid");
    }
}
