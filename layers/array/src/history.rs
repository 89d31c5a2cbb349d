//! Failures and rebuilds of the members of an array under a run, with their times.
//!
//! Left out: served arrays, which report these events as they happen.

use std::cell::RefCell;

use nandscape_sim::Time;
use serde::Serialize;

use crate::level::Shape;
use crate::news::News;

/// A member that has failed.
#[derive(Copy, Clone, PartialEq, Debug, Serialize)]
pub struct MemberFailure {
    /// The member.
    pub member: usize,
    /// The number of the drive that it was.
    pub drive: usize,
    /// Seconds of drive time since the measured phase began; null if it failed before that.
    pub at_s: Option<f64>,
}

/// A rebuild of a member on a spare.
#[derive(Copy, Clone, PartialEq, Debug, Serialize)]
pub struct Rebuild {
    /// The member.
    pub member: usize,
    /// The number of the spare.
    pub drive: usize,
    /// When it began, in seconds of drive time since the measured phase began; null if that was before.
    pub from_s: Option<f64>,
    /// Seconds of drive time that it took; null if it has not ended, or the spare has failed.
    pub took_s: Option<f64>,
}

/// All events of the members, in order.
#[derive(Default)]
pub(crate) struct History {
    told: RefCell<Vec<(Time, News)>>,
}

impl History {
    pub(crate) fn tell(&self, now: Time, news: News) {
        self.told.borrow_mut().push((now, news));
    }

    /// Failures, also those before the measured phase, which began at `begun`.
    pub(crate) fn failures(&self, begun: Time) -> Vec<MemberFailure> {
        let failure = |(at, news): &(Time, News)| match *news {
            News::Failed { member, drive } => Some(MemberFailure { member, drive, at_s: since(begun, *at) }),
            _ => None,
        };
        self.told.borrow().iter().filter_map(failure).collect()
    }

    /// Rebuilds, also those that began before the measured phase.
    pub(crate) fn rebuilds(&self, begun: Time) -> Vec<Rebuild> {
        let told = self.told.borrow();
        let rebuild = |(number, (at, news)): (usize, &(Time, News))| {
            let News::Rebuilding { member, drive } = *news else { return None };
            // The next event of the member: it is whole, or its spare has failed.
            let next = told[number + 1..].iter().find(|(_, news)| member_of(*news) == Some(member));
            let took_s = match next {
                Some((end, News::Rebuilt { .. })) => Some((*end - *at).as_s()),
                _ => None,
            };
            Some(Rebuild { member, drive, from_s: since(begun, *at), took_s })
        };
        told.iter().enumerate().filter_map(rebuild).collect()
    }
}

fn since(begun: Time, at: Time) -> Option<f64> {
    (at >= begun).then(|| (at - begun).as_s())
}

fn member_of(news: News) -> Option<usize> {
    match news {
        News::Failed { member, .. } | News::Rebuilding { member, .. } | News::Rebuilt { member, .. } => Some(member),
        News::Lost | News::Scrubbed(_) => None,
    }
}

/// The reads that the rebuild of a stripe takes: of a mirror one, else as many as the stripe has chunks of data.
pub(crate) fn reads_for_a_stripe(shape: Shape) -> u64 {
    let level = shape.level();
    if level.copies() > 1 { 1 } else { level.data() as u64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_and_rebuilds_have_their_times() {
        let history = History::default();
        let at = |ms: u64, news: News| history.tell(Time::from_ns(ms * 1_000_000), news);
        at(5, News::Failed { member: 0, drive: 0 });
        at(5, News::Rebuilding { member: 0, drive: 4 });
        at(20, News::Failed { member: 2, drive: 2 });
        at(30, News::Rebuilt { member: 0, drive: 4 });
        at(30, News::Rebuilding { member: 2, drive: 5 });
        at(40, News::Failed { member: 2, drive: 5 });
        let begun = Time::from_ns(10_000_000);
        let failed: Vec<_> = history.failures(begun).iter().map(|one| (one.member, one.drive, one.at_s)).collect();
        assert_eq!(failed, [(0, 0, None), (2, 2, Some(0.01)), (2, 5, Some(0.03))]);
        let rebuilt: Vec<_> = history.rebuilds(begun).iter().map(|one| (one.drive, one.from_s, one.took_s)).collect();
        assert_eq!(rebuilt, [(4, None, Some(0.025)), (5, Some(0.02), None)]);
    }

    #[test]
    fn a_stripe_is_read_from_a_copy_or_from_as_many_members_as_it_has_data() {
        let reads =
            ["raid1:2", "raid10:4", "raid5:4", "raid6:6"].map(|shape| reads_for_a_stripe(shape.parse().unwrap()));
        assert_eq!(reads, [1, 1, 3, 4]);
    }
}
