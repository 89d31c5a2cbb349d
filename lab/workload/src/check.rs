//! Checks that a workload and a drive fit each other, and that the clock can reach the workload's end.

use nandscape_sim::Span;
use nandscape_sim::units::Bytes;

use crate::spec::{JobSpec, Limit, Workload};
use crate::words::{BlockSizes, Share};

/// The most years of drive time for a workload: the clock counts nanoseconds in 64 bits, which is 584 years.
const MOST_YEARS: f64 = 300.0;
const SECONDS_OF_A_YEAR: f64 = 365.25 * 86_400.0;

impl Workload {
    /// Checks that the workload can run on a drive of `capacity` bytes in logical blocks of `lba_bytes`.
    ///
    /// # Errors
    /// The part that cannot run, with valid values.
    pub fn check_on(&self, capacity: u64, lba_bytes: u32) -> Result<(), String> {
        self.check_on_namespaces(&[capacity], lba_bytes)
    }

    /// The same for a drive whose namespaces have these bytes. Loads use the first.
    ///
    /// # Errors
    /// The part that cannot run, with valid values.
    ///
    /// # Panics
    /// When there is no namespace.
    pub fn check_on_namespaces(&self, capacities: &[u64], lba_bytes: u32) -> Result<(), String> {
        self.check_groups()?;
        let limits = self.groups().len();
        let limits: Vec<Limit> = (0..limits).map(|group| self.limit_of(group)).collect();
        let measured = limits.iter().map(|limit| limited(*limit)).collect::<Result<Vec<u64>, _>>()?;
        let warmups = self.warmup.checked_mul(limits.len() as u64);
        let requests = measured.iter().try_fold(warmups, |sum, count| Some(sum?.checked_add(*count))).flatten();
        let requests = requests.ok_or_else(|| {
            let [measured, ..] = measured[..] else { unreachable!("a workload has a limit") };
            format!("io_count = {measured} and warmup_count = {} are more than can be counted", self.warmup)
        })?;
        let spans = limits.iter().map(|limit| match limit {
            Limit::Runtime(span) | Limit::Either(_, span) => span.as_s(),
            Limit::Requests(_) => 0.0,
        });
        let runtime_s = spans.sum::<f64>() + self.ramp.as_s() * limits.len() as f64;
        let reached = |longest_s: f64| {
            let years = (longest_s + runtime_s) / SECONDS_OF_A_YEAR;
            match years > MOST_YEARS {
                true => Err(format!("may take {years:.0} years of drive time; at most {MOST_YEARS} are valid")),
                false => Ok(()),
            }
        };
        for job in &self.jobs {
            let namespace = (job.namespace as usize).checked_sub(1).and_then(|index| capacities.get(index));
            let fits = namespace.ok_or_else(|| job.no_namespace(capacities.len()));
            let fits = fits.and_then(|capacity| job.check_on(*capacity, lba_bytes));
            let fits = fits.and_then(|()| reached(job.longest_s(requests)));
            fits.map_err(|problem| format!("job \"{}\": {problem}", job.name))?;
        }
        for load in &self.loads {
            let fits = load.check_on(capacities[0], lba_bytes).and_then(|()| reached(load.longest_s(requests)));
            fits.map_err(|problem| format!("load \"{}\": {problem}", load.name))?;
        }
        Ok(())
    }
}

/// The requests of a limit; 0 of a time.
fn limited(limit: Limit) -> Result<u64, String> {
    match limit {
        Limit::Requests(0) | Limit::Either(0, _) => {
            Err("io_count = 0 is out of range; it must be 1 or more".to_owned())
        }
        Limit::Runtime(Span::ZERO) | Limit::Either(_, Span::ZERO) => {
            Err("runtime = 0ns is out of range; it must be above 0".to_owned())
        }
        Limit::Requests(count) | Limit::Either(count, _) => Ok(count),
        Limit::Runtime(_) => Ok(0),
    }
}

impl Workload {
    /// Checks that its groups of jobs can run one after the other.
    ///
    /// # Errors
    /// Why they cannot, and what is valid.
    pub(crate) fn check_groups(&self) -> Result<(), String> {
        match self.groups().len() {
            1 => Ok(()),
            _ if !self.loads.is_empty() => {
                Err("stonewall is for files of jobs; filebench and ycsb run with all of them".to_owned())
            }
            _ if self.jobs.iter().any(|job| job.zoned.is_some()) => {
                Err("stonewall does not go with zonemode = zbd; put the jobs into files of their own".to_owned())
            }
            _ => Ok(()),
        }
    }

    /// Returns why no workload runs on an open-channel drive: its addresses are places in the flash, with gaps between chunks.
    ///
    /// # Errors
    /// Always, with what is valid.
    pub fn check_on_chunks() -> Result<(), String> {
        Err("the drive is an open-channel one, whose chunks are for hosts that know them: `nandscape paper fox`, which \
             measures it; over `nandscape serve` with --vfio-user or --nvme-tcp; a program with the library nandscape-host-open_channel"
            .to_owned())
    }
}

impl JobSpec {
    fn no_namespace(&self, count: usize) -> String {
        let valid = if count == 1 { "1 is valid".to_owned() } else { format!("from 1 to {count} is valid") };
        format!(
            "namespace = {} is not there; {valid} (a drive has a namespace for each of its ftl.parts: --drive two-ftls has two)",
            self.namespace
        )
    }

    fn check_on(&self, capacity: u64, lba_bytes: u32) -> Result<(), String> {
        if let Some(source) = &self.source {
            return source.0.check_on(capacity, lba_bytes);
        }
        let mut sizes = self.bs.all().flat_map(BlockSizes::sizes);
        if let Some((odd, _)) = sizes.find(|(bytes, _)| !bytes.is_multiple_of(u64::from(lba_bytes))) {
            return Err(format!("bs = {} is not a multiple of the drive's logical block, {lba_bytes}B", Bytes(*odd)));
        }
        let (space, largest) = (self.size.bytes(capacity), self.bs.all().map(BlockSizes::largest).max().unwrap_or(0));
        let offset = self.offset.bytes(capacity);
        match self.size {
            _ if offset > 0 && offset.saturating_add(largest) > capacity => Err(format!(
                "offset = {} of a drive of {} leaves no room for a request of {}",
                self.offset,
                Bytes(capacity),
                Bytes(largest)
            )),
            Share::Bytes(bytes) if offset > 0 && bytes <= capacity && bytes > capacity - offset => Err(format!(
                "size = {} is more than the drive has from offset = {} on, {}",
                Bytes(bytes),
                self.offset,
                Bytes(capacity - offset)
            )),
            Share::Bytes(bytes) if bytes > capacity => {
                Err(format!("size = {} is more than the drive has, {}", Bytes(bytes), Bytes(capacity)))
            }
            size if space < largest => Err(format!(
                "size = {size} of a drive of {} has no room for a request of {}",
                Bytes(capacity),
                Bytes(largest)
            )),
            _ => Ok(()),
        }
    }

    /// An upper bound on the time to issue this number of requests, as far as the workload determines it.
    fn longest_s(&self, requests: u64) -> f64 {
        let period_s = self.burst.map_or(0.0, |burst| (burst.on + burst.off).as_s());
        let thinking_s = self.think.map_or(0.0, |think| think.time.as_s() / f64::from(think.blocks));
        let paused_s = requests as f64 * thinking_s;
        match (self.rate, self.burst) {
            _ if self.is_timed() => self.source.as_ref().map_or(0.0, |source| source.0.interval_s()) * requests as f64,
            (Some(rate), None) => requests as f64 / rate.iops,
            (Some(rate), Some(burst)) => requests as f64 / rate.iops * (period_s / burst.on.as_s()),
            // In the worst case, each burst has one request.
            (None, _) => requests as f64 * period_s + paused_s,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::{Rate, RateProcess};

    fn error(job: JobSpec) -> String {
        Workload::of(job).check_on(64 << 20, 4_096).unwrap_err()
    }

    #[test]
    fn what_fits_is_fine() {
        assert_eq!(Workload::of(JobSpec::default()).check_on(64 << 20, 512), Ok(()));
        let whole = JobSpec { bs: "64MiB".parse().unwrap(), ..JobSpec::default() };
        assert_eq!(Workload::of(whole).check_on(64 << 20, 4_096), Ok(()));
    }

    #[test]
    fn sizes_that_do_not_fit_the_drive_are_refused() {
        let with = |bs: &str, size: &str| {
            error(JobSpec { bs: bs.parse().unwrap(), size: size.parse().unwrap(), ..JobSpec::default() })
        };
        assert_eq!(with("512", "100%"), "job \"job\": bs = 512B is not a multiple of the drive's logical block, 4096B");
        assert_eq!(with("4k", "1TiB"), "job \"job\": size = 1TiB is more than the drive has, 64MiB");
        for (bs, size) in [("4k", "0"), ("4k", "0%"), ("1M", "64k"), ("128MiB", "100%")] {
            assert!(with(bs, size).contains("has no room for a request of"), "{bs} {size}");
        }
    }

    #[test]
    fn what_the_clock_does_not_reach_is_refused() {
        let slow = Rate { iops: 1e-5, process: RateProcess::Linear };
        assert!(error(JobSpec { rate: Some(slow), ..JobSpec::default() }).contains("years of drive time; at most 300"));
        let seldom = JobSpec { burst: Some("1ns/36000s".parse().unwrap()), ..JobSpec::default() };
        assert!(error(seldom.clone()).contains("years"));
        assert!(error(JobSpec { rate: Some(Rate { iops: 1e3, ..slow }), ..seldom }).contains("years"));
        let long = Workload { limit: Limit::Runtime(Span::MAX), ..Workload::of(JobSpec::default()) };
        assert!(long.check_on(64 << 20, 512).unwrap_err().contains("years"));
        let many = Workload { limit: Limit::Requests(u64::MAX), warmup: 1, ..Workload::of(JobSpec::default()) };
        assert!(many.check_on(64 << 20, 512).unwrap_err().contains("more than can be counted"));
    }
}
