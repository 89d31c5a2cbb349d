//! The columns that name a run: its policy, and what was chosen in addition.

use nandscape_apps_memcached_engine::Placement;

use super::cases::Case;
use super::words::NO_LAYER;

/// The columns that name a run: its policy, and what was chosen in addition.
pub(super) struct Names {
    pub(super) has_placement: bool,
    pub(super) has_scheduler: bool,
}

impl Names {
    pub(super) fn of<'a>(cases: impl Iterator<Item = &'a Case<'a>> + Clone) -> Names {
        let has = |is: fn(&Case<'_>) -> bool| cases.clone().any(|case| is(case));
        Names {
            has_placement: has(|case| case.placement != Placement::Copies),
            has_scheduler: has(|case| case.scheduler != NO_LAYER),
        }
    }

    pub(super) fn header<'a>(&self, first: &'a str) -> Vec<&'a str> {
        let more = [self.has_placement.then_some("placement"), self.has_scheduler.then_some("scheduler")];
        std::iter::once(first).chain(more.into_iter().flatten()).collect()
    }

    pub(super) fn row(&self, case: &Case<'_>) -> Vec<String> {
        let placement = self.has_placement.then(|| case.placement.name());
        let more = [placement, self.has_scheduler.then_some(case.scheduler)];
        std::iter::once(case.policy).chain(more.into_iter().flatten()).map(str::to_owned).collect()
    }
}
