//! A drive's totals of its life before the run: its reports begin with them.
//!
//! Left out: commands by number and by size, which a life does not define.

use nandscape_sim::{Span, Time};

use super::life::Life;
use crate::geometry::Geometry;
use crate::plain::{Malformed, Reader, Writer};

/// Totals of a life before the run. All zero of a drive that had none.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct Past {
    /// The time with power.
    pub powered: Span,
    /// Power-ons.
    pub starts: u64,
    /// Bytes that the flash programmed.
    pub programmed_bytes: u64,
    /// Bytes that hosts wrote.
    pub written_bytes: u64,
    /// Bytes that hosts read.
    pub read_bytes: u64,
}

impl Past {
    /// The totals of a life in which all blocks together were erased this often: each erase made room for a block of
    /// data.
    pub(crate) fn of(life: &Life, erases: u64, geometry: &Geometry) -> Past {
        if life.is_none() {
            return Past::default();
        }
        let block = u64::from(geometry.page_size()) * u64::from(geometry.pages_per_block());
        let programmed_bytes = erases.saturating_mul(block);
        let read = life.age.as_s() / 86_400.0 * life.reads_a_day * (u64::from(geometry.blocks()) * block) as f64;
        Past {
            powered: life.age,
            starts: 1,
            programmed_bytes,
            written_bytes: libm::round(programmed_bytes as f64 / life.amplification) as u64,
            read_bytes: libm::round(read) as u64,
        }
    }

    /// As of `now`, since which the drive has had power.
    pub(crate) fn save(&self, now: Time, to: &mut Writer) {
        let powered = self.powered.ns().saturating_add(now.ns());
        let numbers = [powered, self.starts, self.programmed_bytes, self.written_bytes, self.read_bytes];
        numbers.iter().for_each(|number| to.long(*number));
    }

    /// Restores the saved totals at `now`. Older states have none.
    pub(crate) fn restore(now: Time, from: &mut Reader<'_>) -> Result<Past, Malformed> {
        if from.is_at_end() {
            return Ok(Past::default());
        }
        let mut next = || from.long();
        let (powered, starts, programmed_bytes, written_bytes, read_bytes) =
            (next()?, next()?, next()?, next()?, next()?);
        let powered = Span::from_ns(powered.saturating_sub(now.ns()));
        Ok(Past { powered, starts, programmed_bytes, written_bytes, read_bytes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::Counts;

    #[test]
    fn a_life_amounts_to_its_erases() {
        let counts = Counts {
            channels: 1,
            dies_per_channel: 1,
            planes_per_die: 1,
            blocks_per_plane: 10,
            pages_per_block: 4,
            page_size: 4_096,
            unit_size: 4_096,
        };
        let geometry = Geometry::new(counts).expect("a possible geometry");
        let age = Span::from_s(86_400 * 10);
        let life = Life { cycles: 3.0, age, amplification: 2.0, reads_a_day: 0.5, ..Life::NONE };
        let past = Past::of(&life, 30, &geometry);
        let block = 4 * 4_096;
        assert_eq!((past.powered, past.starts), (age, 1));
        assert_eq!((past.programmed_bytes, past.written_bytes, past.read_bytes), (30 * block, 15 * block, 50 * block));
        assert_eq!(Past::of(&Life::NONE, 0, &geometry), Past::default());
        let mut writer = Writer::default();
        past.save(Time::from_ns(7), &mut writer);
        let bytes = writer.finish();
        let again = Past::restore(Time::from_ns(7), &mut Reader::new(&bytes));
        assert_eq!(again.ok(), Some(past));
    }
}
