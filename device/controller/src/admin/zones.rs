//! The Changed Zone List and its event (ZNS 4.1.4.1, 3.1): zones that the drive itself changed. Each controller has its own
//! list.

use std::cell::RefCell;
use std::collections::BTreeSet;

use nandscape_wire_nvme::zns::{CHANGED_MAX, CHANGED_TOO_MANY};

use super::Event;
use crate::engine::NvmeController;

/// The first blocks of zones that have changed since the host read the list.
#[derive(Default)]
pub(crate) struct ChangedZones(RefCell<BTreeSet<u64>>);

impl ChangedZones {
    /// The log page.
    pub(super) fn page(&self) -> Vec<u8> {
        let zones = self.0.borrow();
        let (count, zones) = match zones.len() <= CHANGED_MAX {
            true => (zones.len() as u16, &*zones),
            false => (CHANGED_TOO_MANY, &BTreeSet::new()),
        };
        let mut page = vec![0; 8];
        page[..2].copy_from_slice(&count.to_le_bytes());
        page.extend(zones.iter().flat_map(|zone| zone.to_le_bytes()));
        page.resize((CHANGED_MAX + 1) * 8, 0);
        page
    }

    /// The host has read the list, or the controller is reset.
    pub(super) fn clear(&self) {
        self.0.borrow_mut().clear();
    }
}

impl NvmeController {
    /// The drive itself has changed the zone that begins at a block.
    pub(crate) fn zone_changed(&self, zslba: u64) {
        self.admin.changed_zones.0.borrow_mut().insert(zslba);
        self.raise(Event::ZONE_CHANGED);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_that_is_too_long_says_no_more_than_that() {
        let zones = ChangedZones::default();
        zones.0.borrow_mut().extend([4_096, 8_192]);
        let page = zones.page();
        assert_eq!((page.len(), &page[..9], page[9]), (4_096, &[2, 0, 0, 0, 0, 0, 0, 0, 0][..], 16));
        zones.0.borrow_mut().extend(0..600);
        let page = zones.page();
        assert_eq!(page[..2], [0xff, 0xff]);
        assert!(page[2..].iter().all(|byte| *byte == 0));
    }
}
