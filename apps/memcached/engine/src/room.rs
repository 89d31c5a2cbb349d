//! The room that drives have for segments.

use std::rc::Rc;

use crate::config::{Config, SEGMENT};
use crate::drives::Member;
use crate::error::OpenError;
use crate::slots::Slots;
use crate::zones::{LEAST_ACTIVE, OWN};

/// The fewest slots of a drive.
pub(crate) const LEAST_SLOTS: u64 = 16;

/// The room that the smallest drive has for a log.
pub(crate) struct Room {
    /// That drive, and its bytes.
    pub(crate) smallest: (usize, u64),
    /// Of drives with zones: the bytes from one to the next, how many each takes, and how many zones are for segments.
    pub(crate) zones: Option<(u64, u64, u64)>,
}

impl Room {
    pub(crate) fn of(members: &[Rc<Member>]) -> Result<Room, OpenError> {
        let bytes = |member: &Rc<Member>| Some((member.number(), member.disk()?.info.bytes()));
        let smallest = members.iter().filter_map(bytes).min_by_key(|(_, bytes)| *bytes).unwrap_or_default();
        let mut all = members.iter().filter_map(|member| Some((member.number(), member.zoned()?)));
        let Some((first, like)) = all.next() else { return Ok(Room { smallest, zones: None }) };
        let mut fewest = (first, like.count());
        for (drive, zoned) in std::iter::once((first, like)).chain(all) {
            if (zoned.size(), zoned.capacity) != (like.size(), like.capacity) {
                let [own, other] = [zoned, like].map(|zoned| (zoned.size(), zoned.capacity));
                let what = format!(
                    "zones every {} bytes that take {}, and drive d{first} has zones every {} bytes that take {}; equal zones are valid",
                    own.0, own.1, other.0, other.1
                );
                return Err(OpenError::Zones { drive, what });
            }
            if let Some(most) = zoned.most_active().filter(|most| *most < LEAST_ACTIVE) {
                let what = format!("{most} zones may be active at a time; {LEAST_ACTIVE} or more are valid");
                return Err(OpenError::Zones { drive, what });
            }
            fewest = if zoned.count() < fewest.1 { (drive, zoned.count()) } else { fewest };
        }
        let least = OWN + LEAST_SLOTS as usize;
        if fewest.1 < least {
            let what = format!("{} zones; {least} or more are valid", fewest.1);
            return Err(OpenError::Zones { drive: fewest.0, what });
        }
        Ok(Room { smallest, zones: Some((like.size(), like.capacity, (fewest.1 - OWN) as u64)) })
    }

    /// Bytes of a segment of a new store. Where a zone takes more than the longest one it has several.
    pub(crate) fn segment(&self, config: &Config, block: usize) -> Result<u64, OpenError> {
        let Some((_, capacity, _)) = self.zones else { return Ok(config.segment_for(self.smallest.1)) };
        let block = block as u64;
        let [least, most] = SEGMENT;
        let several = (capacity / capacity.div_ceil(most).max(1)) / block * block;
        let segment = config.segment.unwrap_or(several).next_multiple_of(block);
        if segment < least || segment > capacity {
            let least = segment.max(least);
            let what = format!("zones that take {capacity} bytes; zones that take {least} bytes or more are valid");
            return Err(OpenError::Zones { drive: self.smallest.0, what });
        }
        Ok(segment)
    }

    /// Slots for segments of `segment` bytes.
    pub(crate) fn count(&self, segment: u64) -> u64 {
        match self.zones {
            Some((_, capacity, zones)) => zones * (capacity / segment),
            None => (self.smallest.1 / segment).saturating_sub(1),
        }
    }

    /// Where they are.
    pub(crate) fn slots(&self, segment: u64) -> Slots {
        match self.zones {
            Some((size, capacity, _)) => Slots::in_zones(segment, size, capacity),
            None => Slots::plain(segment),
        }
    }
}
