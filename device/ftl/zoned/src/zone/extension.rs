//! Zone descriptor extensions (ZNS 2.1.1.6): a host's note about an empty zone, which is active from then on. A reset
//! removes it.

use std::rc::Rc;

use super::ZoneFtl;
use super::table::{ZoneError, ZoneState, ZoneTable};

impl ZoneTable {
    /// Notes an extension of an empty zone, which is closed then.
    ///
    /// # Errors
    /// Why not. Then nothing changes.
    pub fn set_extension(&mut self, zone: u32, extension: &[u8]) -> Result<(), ZoneError> {
        if self.zone(zone).state != ZoneState::Empty {
            return Err(ZoneError::InvalidTransition);
        }
        self.check_active(zone)?;
        self.enter(zone, ZoneState::Closed);
        self.extensions.insert(zone, extension.into());
        Ok(())
    }
}

impl ZoneFtl {
    /// Notes an extension, of as many bytes as extensions have.
    ///
    /// # Errors
    /// Why the zone rejects it.
    pub fn set_extension(&self, zone: u32, extension: &[u8]) -> Result<(), ZoneError> {
        debug_assert_eq!(extension.len(), self.config.extension as usize, "an extension has its size");
        self.state.borrow_mut().table.set_extension(zone, extension)
    }

    /// The extension of a zone, if it was set.
    pub fn extension(&self, zone: u32) -> Option<Rc<[u8]>> {
        self.state.borrow().table.extensions.get(&zone).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::zone::Zrwa;
    use crate::zone::table::ZoneAction;

    #[test]
    fn an_extension_makes_an_empty_zone_active_and_goes_with_a_reset() {
        let mut table = ZoneTable::new(3, 8, (1, 1), Zrwa::default());
        assert_eq!(table.set_extension(1, &[7; 64]), Ok(()));
        assert_eq!((table.zone(1).state, table.counts()), (ZoneState::Closed, (1, 0)));
        assert_eq!(table.set_extension(1, &[8; 64]), Err(ZoneError::InvalidTransition));
        assert_eq!(table.set_extension(2, &[8; 64]), Err(ZoneError::TooManyActive));
        assert_eq!(table.extensions[&1][..], [7; 64]);
        assert_eq!(table.act(1, ZoneAction::Finish), Ok(true));
        assert!(table.extensions.contains_key(&1));
        assert_eq!(table.act(1, ZoneAction::Reset), Ok(true));
        assert!(table.extensions.is_empty());
    }
}
