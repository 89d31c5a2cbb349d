//! fio's options as keys of a job. Numbers are fio's: `k` is 1024 everywhere, times without a unit are seconds.

use std::fmt::Display;
use std::str::FromStr;

use nandscape_sim::Span;
use nandscape_sim::units::Bytes;

use super::ini::{Given, Section};
use crate::spec::{JobSpec, Rate, RateProcess};
use crate::words::{Action, Share};

/// Options that say how fio reaches a device, prints and prepares data: requests are the same without them.
const LEFT_OUT: [&str; 33] = [
    "allow_file_create",
    "buffer_compress_percentage",
    "buffered",
    "clat_percentiles",
    "cpus_allowed",
    "cpus_allowed_policy",
    "description",
    "direct",
    "directory",
    "disable_lat",
    "end_fsync",
    "exitall",
    "file_service_type",
    "filename",
    "filesize",
    "fill_device",
    "group_reporting",
    "gtod_reduce",
    "hipri",
    "invalidate",
    "ioengine",
    "lat_percentiles",
    "log_avg_msec",
    "name",
    "norandommap",
    "percentile_list",
    "randrepeat",
    "refill_buffers",
    "registerfiles",
    "fixedbufs",
    "sqthread_poll",
    "thread",
    "zero_buffers",
];

/// A job as read.
pub(super) struct Read {
    pub(super) spec: JobSpec,
    pub(super) runtime: Option<Span>,
    pub(super) time_based: bool,
    number_ios: Option<u64>,
    io_size: Option<u64>,
    /// Options that were left out.
    pub(super) left_out: Vec<String>,
}

/// A line, and what is wrong in it.
type Wrong = (usize, String);

/// The job of a section.
///
/// # Errors
/// The line, the option, and what would be valid.
pub(super) fn job(section: &Section) -> Result<Read, Wrong> {
    let spec = JobSpec { name: section.name.clone(), iodepth: 1, ..JobSpec::default() };
    let mut read =
        Read { spec, runtime: None, time_based: false, number_ios: None, io_size: None, left_out: Vec::new() };
    // What others depend on.
    let last = |keys: &[&str]| section.options.iter().rev().find(|given| keys.contains(&given.key.as_str()));
    match last(&["rw", "readwrite"]) {
        Some(given) => read.spec.rw = word(given)?,
        None => return Err((section.line, format!("job {} has no rw, such as rw=randread", section.name))),
    }
    if let Some(given) = last(&["numjobs"]) {
        read.spec.numjobs = whole(given)?;
    }
    section.options.iter().try_for_each(|given| read.set(given))?;
    if let (Some(rate), Some(given)) = (&mut read.spec.rate, last(&["rate_process"])) {
        rate.process = word(given)?;
    }
    Ok(read)
}

impl Read {
    fn set(&mut self, given: &Given) -> Result<(), Wrong> {
        let spec = &mut self.spec;
        match given.key.as_str() {
            "rw" | "readwrite" | "numjobs" => {}
            "bs" | "blocksize" => spec.bs = word(&one_size(given, spec.rw.action)?)?,
            "bssplit" => spec.bs = word(given)?,
            "iodepth" => spec.iodepth = whole(given)?,
            "rwmixread" => spec.rwmixread = word(given)?,
            "rwmixwrite" => {
                let writes: f64 = word(given)?;
                spec.rwmixread = 100.0 - writes;
            }
            "size" => spec.size = word(given)?,
            "io_size" | "io_limit" => self.io_size = Some(word::<Bytes>(given)?.0),
            "number_ios" => self.number_ios = Some(word::<Bytes>(given)?.0),
            "random_distribution" => spec.distribution = word(given)?,
            // It is read with the rate, which may come later.
            "rate_process" => drop(word::<RateProcess>(given)?),
            "rate_iops" if spec.rw.action == Action::Mixed => {
                let problem = "fio limits reads and writes each; give a job of reads and a job of writes instead";
                return Err(wrong(given, problem));
            }
            "rate_iops" => {
                let iops = word::<Bytes>(given)?.0 as f64 * f64::from(spec.numjobs);
                spec.rate = Some(Rate { iops, process: RateProcess::Linear });
            }
            "runtime" | "timeout" => self.runtime = Some(time(given)?),
            "time_based" => self.time_based = given.value != "0",
            "stonewall" | "wait_for_previous" => {
                return Err(wrong(given, "jobs run at the same time here; put each into a file of its own"));
            }
            key if LEFT_OUT.contains(&key) => self.left_out.push(key.to_owned()),
            key => {
                let known = "rw, bs, bssplit, iodepth, numjobs, rwmixread, size, io_size, number_ios, random_distribution, \
                             rate_iops, rate_process, runtime and time_based are";
                return Err((given.line, format!("{key} is not understood; {known}")));
            }
        }
        Ok(())
    }

    /// The requests of all clones of the job, if it says how much it does.
    pub(super) fn requests(&self) -> Option<u64> {
        let sizes = self.spec.bs.of(self.spec.rw.action).sizes();
        let weights: u64 = sizes.iter().map(|(_, weight)| u64::from(*weight)).sum();
        let bytes: u64 = sizes.iter().map(|(bytes, weight)| bytes * u64::from(*weight)).sum();
        let size = match self.spec.size {
            Share::Bytes(bytes) => Some(bytes),
            Share::Of(_) => None,
        };
        let of_size =
            || Some((u128::from(self.io_size.or(size)?) * u128::from(weights) / u128::from(bytes.max(1))) as u64);
        self.number_ios.or_else(of_size).map(|requests| requests.saturating_mul(u64::from(self.spec.numjobs)))
    }
}

fn wrong(given: &Given, problem: impl Display) -> Wrong {
    (given.line, format!("{}: {problem}", given.key))
}

fn word<T>(given: &Given) -> Result<T, Wrong>
where
    T: FromStr,
    T::Err: Display,
{
    given.value.parse().map_err(|error: T::Err| wrong(given, error))
}

fn whole(given: &Given) -> Result<u32, Wrong> {
    given.value.parse().map_err(|_| wrong(given, format!("\"{}\" is not a whole number", given.value)))
}

/// fio's sizes for reads, writes and trims: the one of this job.
fn one_size(given: &Given, action: Action) -> Result<Given, Wrong> {
    let sizes: Vec<&str> = given.value.split(',').collect();
    let of =
        |place: usize| *sizes.get(place).filter(|size| !size.is_empty()).unwrap_or(&sizes[sizes.len().min(place) - 1]);
    let value = match action {
        _ if sizes.len() == 1 => sizes[0],
        Action::Read => sizes[0],
        Action::Write => of(1),
        Action::Trim => of(2),
        Action::Mixed if sizes[1].is_empty() || sizes[0] == sizes[1] => sizes[0],
        Action::Mixed => {
            return Err(wrong(
                given,
                "reads and writes of a job have one size here; give a job of reads and one of writes",
            ));
        }
    };
    Ok(Given { value: value.to_owned(), ..given.clone() })
}

/// fio's times: seconds without a unit, and minutes, hours and days.
fn time(given: &Given) -> Result<Span, Wrong> {
    let text = given.value.as_str();
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let seconds = match &text[digits.len()..] {
        "" | "s" => 1,
        "m" => 60,
        "h" => 3_600,
        "d" => 86_400,
        _ => return text.parse().map_err(|error| wrong(given, format!("{error}"))),
    };
    let number: Option<u64> = digits.parse().ok();
    let seconds = number.and_then(|number| number.checked_mul(seconds)).filter(|seconds| *seconds <= 1_000_000_000);
    seconds.map(Span::from_s).ok_or_else(|| wrong(given, format!("\"{text}\" is not a time such as 30, 30s or 5m")))
}
