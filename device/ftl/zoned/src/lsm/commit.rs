//! Edits of runs: all of them or none, at one instant.

use std::collections::BTreeMap;

use super::table::{Edit, RunError, RunState};
use super::{LEVELS, LsmFtl};
use crate::zone::table::ZoneAction;

impl LsmFtl {
    /// Makes edits, in their order.
    ///
    /// # Errors
    /// The number of the first that cannot be made, and why. Nothing has changed then.
    pub fn commit(&self, edits: &[Edit]) -> Result<(), (usize, RunError)> {
        let mut states = BTreeMap::new();
        for (edit, number) in edits.iter().zip(0..) {
            self.check_edit(*edit, &mut states).map_err(|error| (number, error))?;
        }
        edits.iter().for_each(|edit| self.edit(*edit));
        self.tidy();
        Ok(())
    }

    /// Checks an edit after others. `states` has the runs after those edits; `None` for a dropped one.
    fn check_edit(&self, edit: Edit, states: &mut BTreeMap<u32, Option<RunState>>) -> Result<(), RunError> {
        let (Edit::Publish(run) | Edit::Close(run) | Edit::Seal(run) | Edit::Relevel(run, _) | Edit::Drop(run)) = edit;
        let (table, is_busy) = (self.table.borrow(), self.table.borrow().run(run).is_ok_and(|run| run.is_busy));
        let state = states.get(&run).copied().unwrap_or_else(|| table.run(run).ok().map(|run| run.state));
        let state = state.ok_or(RunError::NoRun)?;
        let next = match edit {
            Edit::Publish(_) | Edit::Seal(_) if state == RunState::Sealed => return Err(RunError::Sealed),
            Edit::Close(_) | Edit::Seal(_) | Edit::Drop(_) if is_busy => return Err(RunError::Busy),
            Edit::Relevel(_, level) if usize::from(level) >= LEVELS => return Err(RunError::NoLevel),
            Edit::Publish(_) => Some(RunState::Published),
            Edit::Seal(_) => Some(RunState::Sealed),
            Edit::Close(_) | Edit::Relevel(..) => Some(state),
            Edit::Drop(_) => None,
        };
        states.insert(run, next);
        Ok(())
    }

    fn edit(&self, edit: Edit) {
        match edit {
            Edit::Publish(run) => self.count(run, RunState::Published),
            Edit::Close(run) => {
                if let Ok(run) = self.table.borrow_mut().run_mut(run) {
                    run.is_closed = true;
                }
                self.give_zones(run);
            }
            Edit::Seal(run) => {
                self.count(run, RunState::Sealed);
                self.give_zones(run);
            }
            Edit::Relevel(run, level) => {
                if let Ok(run) = self.table.borrow_mut().run_mut(run) {
                    run.level = level;
                }
            }
            Edit::Drop(run) => {
                self.give_zones(run);
                let mut table = self.table.borrow_mut();
                table.cut(run, 0);
                table.runs[run as usize] = None;
            }
        }
    }

    fn count(&self, run: u32, state: RunState) {
        let mut table = self.table.borrow_mut();
        let order = table.next_order();
        if let Ok(run) = table.run_mut(run) {
            (run.state, run.order) = (state, order);
        }
    }

    /// A run ends: its last zone goes to the next run of its level, or is finished.
    fn give_zones(&self, run: u32) {
        let Ok((level, zones)) =
            self.table.borrow_mut().run_mut(run).map(|run| (run.level, std::mem::take(&mut run.zones)))
        else {
            return;
        };
        zones.into_iter().for_each(|zone| self.give_zone(zone, level));
    }

    pub(super) fn give_zone(&self, zone: u32, level: u8) {
        let written = self.zones.zone(zone).written;
        let has_room = self.config.share && self.left(zone) > 0;
        self.table.borrow_mut().give(zone, level, written, has_room);
        if written > 0 && !has_room && self.left(zone) > 0 {
            // It is active, and so it can.
            _ = self.zones.act(zone, ZoneAction::Finish);
        }
    }
}
