//! The words of a job that knows zones, and whether they fit a drive.

use nandscape_sim::units::Bytes;

use crate::spec::{JobSpec, Workload};
use crate::words::{Action, Share};

/// How a job uses zones: fio's `zonemode=zbd`.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct Zoned {
    /// Zones that each clone of the job writes at a time (`max_open_zones`).
    pub open: u32,
    /// Whether it appends: a zone may have any number of appends at a time, but only one write (`zone_append`).
    pub append: bool,
    /// The part of a zone's capacity that is written before the job moves on to another zone (`zone_fill`).
    pub fill: Share,
    /// Whether a zone that is left before it is full is finished (`zone_finish`).
    pub finish: bool,
}

impl Default for Zoned {
    /// Writes to one zone, until it is full.
    fn default() -> Zoned {
        Zoned { open: 1, append: false, fill: Share::Of(1.0), finish: false }
    }
}

/// The words of a job about zones, as given.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct ZoneWords {
    /// `none` or `zbd`.
    pub mode: Option<String>,
    /// Zones at a time.
    pub open: Option<u32>,
    /// Appends.
    pub append: Option<bool>,
    /// Part of a zone.
    pub fill: Option<Share>,
    /// Finishes.
    pub finish: Option<bool>,
}

impl ZoneWords {
    /// What they mean.
    ///
    /// # Errors
    /// The word that is not valid, and what would be.
    pub fn zoned(&self) -> Result<Option<Zoned>, String> {
        let base = Zoned::default();
        let zoned = Zoned {
            open: self.open.unwrap_or(base.open),
            append: self.append.unwrap_or(base.append),
            fill: self.fill.unwrap_or(base.fill),
            finish: self.finish.unwrap_or(base.finish),
        };
        let of_zbd = [
            ("max_open_zones", self.open.is_some()),
            ("zone_append", self.append.is_some()),
            ("zone_fill", self.fill.is_some()),
            ("zone_finish", self.finish.is_some()),
        ];
        match self.mode.as_deref() {
            Some("zbd") => Ok(Some(zoned)),
            None | Some("none") => match of_zbd.iter().find(|(_, is_given)| *is_given) {
                Some((word, _)) => Err(format!("{word} is for jobs that know zones: zonemode = zbd")),
                None => Ok(None),
            },
            Some(other) => Err(format!("zonemode = {other} is not known; none and zbd are valid")),
        }
    }
}

impl Zoned {
    /// Checks the words of a job against each other.
    pub(crate) fn check(&self, job: &JobSpec) -> Result<(), String> {
        if self.open == 0 {
            return Err("max_open_zones = 0 is out of range; from 1 on is valid".to_owned());
        }
        if matches!(self.fill, Share::Of(0.0) | Share::Bytes(0)) {
            return Err(format!("zone_fill = {} is out of range; it must be above 0", self.fill));
        }
        if job.rate.is_some() || job.burst.is_some() || job.source.is_some() {
            return Err("zonemode = zbd is for closed loops of drawn requests, without rate_iops and burst".to_owned());
        }
        Ok(())
    }

    /// The words, as one line of text.
    pub fn describe(&self) -> String {
        let Zoned { open, append, fill, finish } = self;
        format!("zonemode=zbd max_open_zones={open} zone_append={append} zone_fill={fill} zone_finish={finish}")
    }
}

/// What is wrong where a drive has no zones.
pub(super) const NO_ZONES: &str =
    "zonemode = zbd: the drive has no zones; one with ftl.kind = \"zone\" has them, such as --drive wd-zn540";

/// What a drive with zones allows.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct ZoneLimits {
    /// Zones.
    pub zones: u64,
    /// Bytes from zone to zone.
    pub bytes: u64,
    /// Bytes that a zone holds: the first of those.
    pub capacity: u64,
    /// Zones that can be open at a time.
    pub open: u64,
    /// Zones that can be active at a time.
    pub active: u64,
    /// The most bytes that a command moves.
    pub transfer: u64,
}

impl Workload {
    /// Checks that the workload can run on a drive; `None` is a drive without zones.
    ///
    /// # Errors
    /// The part that cannot, with what is valid.
    pub fn check_on_zones(&self, limits: Option<ZoneLimits>) -> Result<(), String> {
        let Some(limits) = limits else {
            return match self.jobs.iter().find(|job| job.zoned.is_some()) {
                Some(job) => Err(format!("job \"{}\": {NO_ZONES}", job.name)),
                None => Ok(()),
            };
        };
        let fits = |job: &JobSpec| job.zoned.is_some() || (job.source.is_none() && job.rw.action == Action::Read);
        let job = self.jobs.iter().find(|job| !fits(job)).map(|job| format!("job \"{}\"", job.name));
        let load = || self.loads.first().map(|load| format!("load \"{}\"", load.name));
        if let Some(what) = job.or_else(load) {
            return Err(format!(
                "{what}: the drive has zones, which are written in order; jobs with zonemode = zbd (--zonemode zbd) are valid, \
                 for writes and for reads of what is written"
            ));
        }
        let mut open = 0;
        for job in &self.jobs {
            open += job.check_zones(limits).map_err(|problem| format!("job \"{}\": {problem}", job.name))?;
        }
        match open > limits.open {
            true => Err(format!("the jobs write {open} zones at a time, the drive has {} open at most", limits.open)),
            false => Ok(()),
        }
    }

    /// A note if jobs that know no zones read addresses outside all zones.
    pub fn note_on_zones(&self, limits: ZoneLimits) -> Option<String> {
        let job = self.jobs.iter().find(|job| job.reads_gaps(limits))?;
        Some(format!(
            "job \"{}\" also reads where no data is: the capacity of a zone, {}, is below its size, {}, and reads beyond the \
             capacity or above the write pointer read no flash; zonemode = zbd (--zonemode zbd) reads written data only",
            job.name,
            Bytes(limits.capacity),
            Bytes(limits.bytes)
        ))
    }

    /// A note on finishes if the drive writes zones to their end: they take much longer than the writes.
    pub fn note_on_finishes(&self, limits: ZoneLimits) -> Option<String> {
        let rest = |job: &JobSpec| {
            let zoned = job.zoned.filter(|zoned| zoned.finish)?;
            limits.capacity.checked_sub(zoned.fill.bytes(limits.capacity)).filter(|rest| *rest > 0)
        };
        let (job, rest) = self.jobs.iter().find_map(|job| Some((job, rest(job)?)))?;
        Some(format!(
            "each finish of job \"{}\" programs the rest of its zone, {:.0}% of its capacity, which takes the flash's time and this \
             run's; ftl.zone.finish_pads = false completes only the program that is begun",
            job.name,
            100.0 * rest as f64 / limits.capacity as f64
        ))
    }
}

impl JobSpec {
    /// Checks that each request is one command of at most this number of bytes. Trims reset whole zones.
    pub(super) fn check_zoned_size(&self, most: u64) -> Result<(), String> {
        let largest = self.bs.all().map(|sizes| sizes.largest()).max().unwrap_or(0);
        match largest > most && self.rw.action != Action::Trim {
            true => Err(format!(
                "bs = {} is more than a command of the drive moves, {} (controller.max_transfer)",
                self.bs,
                Bytes(most)
            )),
            false => Ok(()),
        }
    }

    /// Whether it uses addresses beyond the capacity of a zone, as jobs do that know no zones.
    fn reads_gaps(&self, limits: ZoneLimits) -> bool {
        let all = limits.zones * limits.bytes;
        let end = (self.offset.bytes(all) % limits.bytes).saturating_add(self.size.bytes(all));
        self.zoned.is_none() && end > limits.capacity && limits.capacity < limits.bytes
    }

    /// The number of zones that the job writes at a time.
    fn check_zones(&self, limits: ZoneLimits) -> Result<u64, String> {
        let Some(zoned) = self.zoned else { return Ok(0) };
        self.check_zoned_size(limits.transfer)?;
        let zones = self.size.bytes(limits.zones * limits.bytes) / limits.bytes;
        if zones == 0 {
            return Err(format!("size = {} holds no whole zone, which has {}", self.size, Bytes(limits.bytes)));
        }
        if matches!(self.rw.action, Action::Read | Action::Trim) {
            return Ok(0);
        }
        let open = u64::from(zoned.open) * u64::from(self.numjobs);
        if open > zones {
            let clones = match self.numjobs {
                1 => String::new(),
                clones => format!(", by {clones} clones"),
            };
            return Err(format!(
                "max_open_zones = {}{clones}, is more than the {zones} zones that the job writes to",
                zoned.open
            ));
        }
        let leaves_active = zoned.fill != Share::Of(1.0) && !zoned.finish;
        match leaves_active && zones > limits.active {
            true => Err(format!(
                "zone_fill = {} leaves zones active, of which the drive has {} at most; zone_finish (--zone-finish), or size \
                 (--size) up to {}, is valid",
                zoned.fill,
                limits.active,
                Bytes(limits.active * limits.bytes)
            )),
            false => Ok(open),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: ZoneLimits =
        ZoneLimits { zones: 8, bytes: 1 << 20, capacity: 3 << 18, open: 3, active: 4, transfer: 65_536 };

    fn job(rw: &str, zoned: Zoned) -> JobSpec {
        JobSpec { rw: rw.parse().unwrap(), zoned: Some(zoned), ..JobSpec::default() }
    }

    fn error(job: JobSpec) -> String {
        Workload::of(job).check_on_zones(Some(LIMITS)).unwrap_err()
    }

    #[test]
    fn what_a_drive_with_zones_does_not_allow_is_refused() {
        let base = Zoned::default();
        let many = job("write", Zoned { open: 4, ..base });
        assert_eq!(error(many), "the jobs write 4 zones at a time, the drive has 3 open at most");
        let small = JobSpec { size: "512KiB".parse().unwrap(), ..job("write", base) };
        assert!(error(small).contains("size = 512KiB holds no whole zone, which has 1MiB"));
        let large = JobSpec { bs: "128KiB".parse().unwrap(), ..job("read", base) };
        assert!(
            error(large)
                .contains("bs = 128KiB is more than a command of the drive moves, 64KiB (controller.max_transfer)")
        );
        let left = job("write", Zoned { fill: Share::Of(0.5), ..base });
        assert!(error(left.clone()).contains("zone_fill = 50% leaves zones active, of which the drive has 4 at most"));
        assert!(Workload::of(JobSpec { size: Share::Of(0.5), ..left }).check_on_zones(Some(LIMITS)).is_ok());
        let unaware = JobSpec { zoned: None, ..job("randwrite", base) };
        assert!(error(unaware).contains("jobs with zonemode = zbd (--zonemode zbd) are valid"));
        let none = Workload::of(job("write", base)).check_on_zones(None).unwrap_err();
        assert_eq!(none, format!("job \"job\": {NO_ZONES}"));
    }

    #[test]
    fn reads_beyond_the_capacity_of_a_zone_are_told() {
        let note = |size: &str, offset: &str, zoned| {
            let (size, offset) = (size.parse().unwrap(), offset.parse().unwrap());
            Workload::of(JobSpec { size, offset, zoned, ..JobSpec::default() }).note_on_zones(LIMITS)
        };
        let told = note("100%", "0", None).unwrap();
        assert!(told.contains("the capacity of a zone, 768KiB, is below its size, 1MiB"), "{told}");
        assert!(note("64KiB", "1732KiB", None).is_some(), "across the end of the second zone");
        assert!(note("64KiB", "1900KiB", None).is_some(), "in its gap");
        assert_eq!([note("768KiB", "1MiB", None), note("100%", "0", Some(Zoned::default()))], [None, None]);
    }

    #[test]
    fn finishes_that_write_zones_full_are_told() {
        let note = |fill, finish| {
            let zoned = Some(Zoned { fill, finish, ..Zoned::default() });
            Workload::of(JobSpec { zoned, ..JobSpec::default() }).note_on_finishes(LIMITS)
        };
        let told = note(Share::Of(0.25), true).unwrap();
        assert!(told.contains("programs the rest of its zone, 75% of its capacity"), "{told}");
        assert_eq!([note(Share::Of(0.25), false), note(Share::Of(1.0), true)], [None, None]);
        assert_eq!(Workload::of(JobSpec::default()).note_on_finishes(LIMITS), None);
    }

    #[test]
    fn words_are_for_jobs_that_know_zones() {
        let words =
            |mode: Option<&str>, open| ZoneWords { mode: mode.map(str::to_owned), open, ..ZoneWords::default() };
        assert_eq!(words(None, None).zoned(), Ok(None));
        assert_eq!(words(Some("zbd"), Some(3)).zoned(), Ok(Some(Zoned { open: 3, ..Zoned::default() })));
        assert!(words(None, Some(3)).zoned().unwrap_err().contains("max_open_zones is for jobs that know zones"));
        assert!(words(Some("strided"), None).zoned().unwrap_err().contains("none and zbd are valid"));
    }
}
