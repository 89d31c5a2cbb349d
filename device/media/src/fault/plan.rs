//! The fault rules of a drive, and which of them strike an operation.

use std::cell::{Cell, RefCell};
use std::ops::RangeInclusive;

use nandscape_drive::breakdown::POWER_CUT;
use nandscape_sim::{Rng, Seed, Span, Time};

use super::MediaError;
use super::rule::{Operation, Place, Rule, Strike};
use super::torn::Torn;
use crate::geometry::{BlockId, PageId};

/// The fault rules of a drive.
pub struct FaultPlan {
    seed: Seed,
    /// Bytes of a logical block.
    lba_bytes: u32,
    /// Whether there are rules, or the flash ages.
    armed: Cell<bool>,
    /// Whether the flash ages, so that every operation is checked.
    ages: Cell<bool>,
    rules: RefCell<Vec<Active>>,
    /// Rules added so far: each draws from its own random stream.
    made: Cell<u64>,
    /// Decides the remains of power cuts.
    torn: RefCell<Rng>,
}

/// A rule at work.
struct Active {
    rule: Rule,
    number: u32,
    rng: Rng,
    matched: u64,
    struck: u64,
    /// Whether the scope of a `dead` rule has died.
    dead: bool,
    marks: Vec<Mark>,
}

/// Operations that a rule struck at about the same time.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Mark {
    /// When the first of them began.
    pub at: Time,
    /// Their number.
    pub struck: u64,
}

/// Maximum of marks of a rule: beyond it, two are merged.
const MARKS: usize = 1_000;

/// A rule, and how many operations it matched and struck.
#[derive(Clone, PartialEq, Debug)]
pub struct RuleCount {
    /// The rule.
    pub rule: Rule,
    /// Its number: rules are numbered from 0 in the order in which they were added since the drive was made.
    pub number: u32,
    /// Operations of its kind in its scope, while it was in force.
    pub matched: u64,
    /// Operations that it struck.
    pub struck: u64,
}

/// The faults of an operation.
#[derive(Copy, Clone, Default, Debug)]
pub(crate) struct Struck {
    /// Time that rules add to the array's.
    pub(crate) slow: Span,
    /// Time that wear adds to an erase.
    pub(crate) longer: Span,
    /// Its error, if any.
    pub(crate) error: Option<MediaError>,
    /// How long the LUN hangs; zero for a watched read. Both leave the common path of operations.
    pub(crate) hang: Option<Span>,
    /// Whether it is a watched read.
    pub(crate) is_watched: bool,
    /// Retries that a read takes.
    pub(crate) retries: u32,
    /// The page in which bits are inverted, counted in the operation.
    pub(crate) corrupt: Option<usize>,
    /// Power is cut: the shortest outage, and the fate of operations under way.
    pub(crate) cut: Option<(Span, Torn)>,
    /// The page that causes the failure, counted in the operation.
    pub(crate) page: usize,
    /// The rules that have struck: a bit for each, by its number, the last of all for those beyond.
    pub(crate) rules: u64,
}

impl FaultPlan {
    /// A plan of `rules` for a drive with logical blocks of `lba_bytes`. Probabilities draw from `seed`.
    pub fn new(rules: &[Rule], lba_bytes: u32, seed: Seed) -> FaultPlan {
        let plan = FaultPlan {
            seed,
            lba_bytes,
            armed: Cell::new(false),
            ages: Cell::new(false),
            rules: RefCell::new(Vec::new()),
            made: Cell::new(0),
            torn: RefCell::new(seed.child("torn").rng()),
        };
        rules.iter().for_each(|rule| plan.add(rule.clone()));
        plan
    }

    /// Adds a rule, which counts from now on.
    pub fn add(&self, rule: Rule) {
        let made = self.made.replace(self.made.get() + 1);
        let (rng, number) = (self.seed.nth(made).rng(), u32::try_from(made).unwrap_or(u32::MAX));
        self.rules.borrow_mut().push(Active {
            rule,
            number,
            rng,
            matched: 0,
            struck: 0,
            dead: false,
            marks: Vec::new(),
        });
        self.armed.set(true);
    }

    /// Removes all rules. Damage stays, but dead parts answer again.
    pub fn clear(&self) {
        self.rules.borrow_mut().clear();
        self.armed.set(self.ages.get());
    }

    /// Checks operations from now on, even without rules.
    pub(crate) fn look_at_all(&self) {
        self.ages.set(true);
        self.armed.set(true);
    }

    /// The rules in the order in which they were added, with their counts.
    pub fn counts(&self) -> Vec<RuleCount> {
        let rules = self.rules.borrow();
        rules
            .iter()
            .map(|Active { rule, number, matched, struck, .. }| RuleCount {
                rule: rule.clone(),
                number: *number,
                matched: *matched,
                struck: *struck,
            })
            .collect()
    }

    /// When each rule struck, in the order of [`FaultPlan::counts`]. Nearby strikes of a frequent rule share one mark.
    pub fn marks(&self) -> Vec<Vec<Mark>> {
        self.rules.borrow().iter().map(|active| active.marks.clone()).collect()
    }

    /// The remains of one operation after a power cut.
    pub(crate) fn draw_torn(&self, torn: Torn) -> Torn {
        torn.draw(&mut self.torn.borrow_mut())
    }

    /// A random number below `end`, which is not 0, for the remaining choices.
    pub(crate) fn draw_below(&self, end: u32) -> u32 {
        self.torn.borrow_mut().below(end.into()) as u32
    }

    /// Whether the plan has rules.
    #[inline]
    pub(crate) fn is_armed(&self) -> bool {
        self.armed.get()
    }

    /// The faults that strike an operation that begins now. `lpns` gives the logical units of a page.
    pub(crate) fn strike(
        &self,
        place: &Place<'_>,
        now: Time,
        operation: Operation,
        pages: &[PageId],
        block: BlockId,
        lpns: impl Fn(PageId, u64, u64) -> bool,
    ) -> Option<Struck> {
        let mut all = None;
        for active in self.rules.borrow_mut().iter_mut() {
            let scope = &active.rule.scope;
            let is_there = |page: &PageId| {
                let holds = |range: &RangeInclusive<u64>| {
                    let bytes = u64::from(self.lba_bytes);
                    let first = range.start().saturating_mul(bytes);
                    let last = range.end().saturating_mul(bytes).saturating_add(bytes - 1);
                    place.units_of(first, last).is_some_and(|units| lpns(*page, *units.start(), *units.end()))
                };
                scope.has_page(place, *page) && scope.lba.as_ref().is_none_or(holds)
            };
            let which = match pages {
                [] => scope.has_block(place, block).then_some(0),
                pages => pages.iter().position(is_there),
            };
            if let Some(page) = which {
                active.strike(now, operation, page, all.get_or_insert_with(Struck::default));
            }
        }
        all.filter(Struck::is_something)
    }
}

impl Active {
    /// Whether the rule strikes an operation in its scope; adds its effect to the effects so far.
    fn strike(&mut self, now: Time, operation: Operation, page: usize, all: &mut Struck) {
        if self.dead && now < self.rule.when.until {
            // Every later operation is struck.
            self.matched += 1;
        } else if !self.is_due(now, operation) {
            return;
        }
        self.struck += 1;
        self.mark(now);
        all.rules |= 1 << self.number.min(POWER_CUT - 1);
        let error = match operation {
            Operation::Read => MediaError::Uncorrectable,
            Operation::Program | Operation::Erase => MediaError::Failed,
        };
        match self.rule.strike {
            Strike::Corrupt => all.corrupt = Some(page),
            Strike::Uncorrectable | Strike::Fail => all.ends(error, page),
            Strike::Slow { by } => all.slow += by,
            Strike::Stuck { timeout } => {
                all.ends(error, page);
                all.hangs(timeout);
            }
            Strike::Dead { timeout } => {
                self.dead = true;
                all.ends(MediaError::NoAnswer, page);
                all.hangs(timeout);
            }
            Strike::PowerCut { off, torn } => all.cuts(off, torn),
        }
    }

    fn mark(&mut self, now: Time) {
        match self.marks.last_mut() {
            Some(last) if last.at == now => last.struck += 1,
            _ => self.marks.push(Mark { at: now, struck: 1 }),
        }
        if self.marks.len() > MARKS {
            let both = |pair: &[Mark]| Mark { at: pair[0].at, struck: pair.iter().map(|mark| mark.struck).sum() };
            self.marks = self.marks.chunks(2).map(both).collect();
        }
    }

    /// Counts an operation, and returns whether the rule strikes it.
    fn is_due(&mut self, now: Time, operation: Operation) -> bool {
        let when = &self.rule.when;
        if !self.rule.is_about(operation) || now < when.from || now >= when.until {
            return false;
        }
        self.matched += 1;
        when.nth.is_none_or(|nth| self.matched == nth)
            && when.every.is_none_or(|every| self.matched.is_multiple_of(every))
            && when.count.is_none_or(|count| self.struck < count)
            && when.probability.is_none_or(|probability| self.rng.chance(probability))
    }
}

impl Struck {
    fn is_something(&self) -> bool {
        let Struck { slow, error, hang, corrupt, cut, .. } = self;
        !slow.is_zero() || error.is_some() || hang.is_some() || corrupt.is_some() || cut.is_some()
    }

    pub(crate) fn ends(&mut self, error: MediaError, page: usize) {
        if self.error < Some(error) {
            (self.error, self.page) = (Some(error), page);
        }
    }

    fn cuts(&mut self, off: Span, torn: Torn) {
        let off = self.cut.map_or(off, |(longest, _)| longest.max(off));
        self.cut = Some((off, torn));
    }

    fn hangs(&mut self, time: Span) {
        self.hang = self.hang.max(Some(time));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::{Counts, Geometry};

    fn geometry() -> Geometry {
        Geometry::new(Counts {
            channels: 2,
            dies_per_channel: 2,
            planes_per_die: 2,
            blocks_per_plane: 4,
            pages_per_block: 8,
            page_size: 16_384,
            unit_size: 4_096,
        })
        .unwrap()
    }

    /// Which of `count` operations on a page, a microsecond apart, a rule strikes, counted from 1.
    fn struck(rule: &str, operation: Operation, page: u32, count: u64) -> Vec<u64> {
        let plan = FaultPlan::new(&[rule.parse().unwrap()], 512, Seed::new(7));
        let strikes = |nth: &u64| {
            let (now, page) = (Time::from_ns(nth * 1_000), PageId(page));
            let block = geometry().block_of(page);
            let pages = [page];
            let pages = if operation == Operation::Erase { &[][..] } else { &pages };
            let geometry = geometry();
            let place = Place { geometry: &geometry, channels: &[0, 1], dies: &[0, 1, 2, 3], bytes: 0..u64::MAX };
            plan.strike(&place, now, operation, pages, block, |page, first, last| {
                let units = u64::from(page.0) * 4;
                first < units + 4 && last >= units
            })
            .is_some()
        };
        (1..=count).filter(strikes).collect()
    }

    #[test]
    fn a_rule_strikes_when_it_says() {
        let read = |rule| struck(rule, Operation::Read, 0, 10);
        assert_eq!(read("uncorrectable"), (1..=10).collect::<Vec<_>>());
        assert_eq!(read("uncorrectable nth=3"), [3]);
        assert_eq!(read("uncorrectable every=4"), [4, 8]);
        assert_eq!(read("uncorrectable every=2 count=3"), [2, 4, 6]);
        assert_eq!(read("uncorrectable from=3us until=5us"), [3, 4]);
        assert_eq!(read("uncorrectable from=3us nth=2"), [4]);
        assert_eq!(read("dead nth=8"), [8, 9, 10]);
        assert_eq!(read("dead nth=3 until=6us"), [3, 4, 5]);
        assert_eq!(read("power_cut"), [1]);
        assert_eq!(read("power_cut every=3 count=2"), [3, 6]);
        assert_eq!(read("fail"), []);
        let half = read("slow probability=50%").len();
        assert!((1..10).contains(&half) && read("slow probability=0").is_empty());
        assert_eq!(read("slow probability=100%").len(), 10);
    }

    /// Page 151 is page 7 of block 2 of plane 4: channel 1, die 0, plane 0.
    #[test]
    fn a_rule_strikes_where_it_says() {
        let hits = |rule: &str| !struck(rule, Operation::Program, 151, 1).is_empty();
        for rule in ["channel=1", "die=0", "plane=0", "block=2", "page=7", "channel=0-1 die=0-1 block=1-2 page=5-7"] {
            assert!(hits(&format!("fail program {rule}")), "{rule}");
        }
        for rule in ["channel=0", "die=1", "plane=1", "block=3", "page=6", "channel=1 page=0-6"] {
            assert!(!hits(&format!("fail program {rule}")), "{rule}");
        }
        // An erase concerns all pages of its block.
        assert_eq!(struck("fail erase block=2 page=1", Operation::Erase, 151, 1), [1]);
        // Page 0 holds units 0 to 3, which are sectors 0 to 31.
        let read = |lbas: &str| !struck(&format!("uncorrectable lba={lbas}"), Operation::Read, 0, 1).is_empty();
        assert!(read("0") && read("31") && read("20-40") && !read("32") && !read("32-1000"));
    }

    /// The second of two groups has channels 2 and 5, and the drive's second megabyte.
    #[test]
    fn a_rule_strikes_a_group_of_channels_where_the_drive_has_it() {
        let hits = |rule: &str, page: u32| {
            let plan = FaultPlan::new(&[rule.parse().unwrap()], 512, Seed::new(7));
            let geometry = geometry();
            let place = Place { geometry: &geometry, channels: &[2, 5], dies: &[0, 1, 2, 3], bytes: 1 << 20..2 << 20 };
            let (pages, block) = ([PageId(page)], geometry.block_of(PageId(page)));
            plan.strike(&place, Time::from_ns(0), Operation::Read, &pages, block, |page, first, last| {
                let units = u64::from(page.0) * 4;
                first < units + 4 && last >= units
            })
            .is_some()
        };
        // Page 151 is on the group's second channel.
        assert!(hits("uncorrectable channel=5", 151) && hits("uncorrectable channel=2", 0));
        assert!(!hits("uncorrectable channel=1", 151) && !hits("uncorrectable channel=0", 0));
        // Page 0 holds the first 16 KiB of the group: sectors 2048 to 2079 of the drive.
        assert!(
            hits("uncorrectable lba=2048", 0)
                && hits("uncorrectable lba=0-2048", 0)
                && !hits("uncorrectable lba=2080", 0)
        );
        assert!(!hits("uncorrectable lba=0", 0) && !hits("uncorrectable lba=4096", 0));
    }

    #[test]
    fn delays_add_and_the_worst_failure_counts() {
        let rules = ["slow by=1us", "slow by=2us", "uncorrectable", "stuck timeout=9us", "dead timeout=5us", "corrupt"];
        let plan = FaultPlan::new(&rules.map(|rule| rule.parse().unwrap()), 512, Seed::new(1));
        let strike = |page| {
            let geometry = geometry();
            let place = Place { geometry: &geometry, channels: &[0, 1], dies: &[0, 1, 2, 3], bytes: 0..u64::MAX };
            plan.strike(&place, Time::from_ns(0), Operation::Read, &[PageId(page)], BlockId(0), |_, _, _| false)
        };
        let struck = strike(0).unwrap();
        assert_eq!((struck.slow, struck.hang), (Span::from_us(3), Some(Span::from_us(9))));
        assert_eq!((struck.error, struck.corrupt, struck.cut), (Some(MediaError::NoAnswer), Some(0), None));
        assert_eq!(plan.counts().iter().map(|count| (count.matched, count.struck)).collect::<Vec<_>>(), [(1, 1); 6]);
        plan.clear();
        assert!(strike(0).is_none() && !plan.is_armed());
    }

    #[test]
    fn marks_tell_when_a_rule_has_struck_and_stay_few() {
        let plan = FaultPlan::new(&["slow by=1us".parse().unwrap()], 512, Seed::new(7));
        let geometry = geometry();
        let place = Place { geometry: &geometry, channels: &[0, 1], dies: &[0, 1, 2, 3], bytes: 0..u64::MAX };
        let strike = |ns: u64| {
            let (page, block) = ([PageId(0)], geometry.block_of(PageId(0)));
            plan.strike(&place, Time::from_ns(ns), Operation::Read, &page, block, |_, _, _| false)
        };
        (0..3).for_each(|_| assert_eq!(strike(5).unwrap().rules, 1));
        strike(9);
        let mark = |ns, struck| Mark { at: Time::from_ns(ns), struck };
        assert_eq!(plan.marks(), [[mark(5, 3), mark(9, 1)]]);
        (10..5_010).for_each(|ns| {
            let _ = strike(ns);
        });
        let marks = plan.marks().remove(0);
        assert!(marks.len() <= MARKS && marks.windows(2).all(|pair| pair[0].at < pair[1].at));
        assert_eq!((marks[0].at, marks.iter().map(|mark| mark.struck).sum::<u64>()), (Time::from_ns(5), 5_004));
    }
}
