//! fio's job files as workloads: `[global]` and jobs with the options that describe requests. Options for fio's access to
//! a device are reported and left out; every other option is an error with its line, so that no job runs as something else.
//!
//! | file | what |
//! |---|---|
//! | `ini` | lines, sections and options |
//! | `known` | the options that are understood, and those without effect |
//! | `options` | options as keys of a job |
//! | `limit` | the end of the run |
//!
//! Left out: verification, and `include`.

mod ini;
mod known;
mod limit;
mod options;

use nandscape_sim::Span;

pub use options::SYNCHRONOUS;

use crate::file::WorkloadError;
use crate::spec::Workload;

/// The most jobs of a file, clones included.
const MOST_CLONES: u64 = 1_024;

/// A workload of a job file, with notes on differences from fio.
#[derive(Clone, PartialEq, Debug)]
pub struct FioJobs {
    /// The workload.
    pub workload: Workload,
    /// Options that were left out, and deviations.
    pub notes: Vec<String>,
}

/// Reads a job file. Shares of a drive are of `capacity` bytes, if that is known.
///
/// # Errors
/// When it cannot be read, or an option is not understood: the line, the option, and what would be valid.
pub fn load_fio(path: &str, capacity: Option<u64>) -> Result<FioJobs, WorkloadError> {
    let text = crate::file::text_of(path)
        .map_err(|error| WorkloadError { origin: path.to_owned(), problem: format!("cannot be read: {error}") })?;
    parse_fio(path, &text, capacity)
}

/// Reads the text of a job file; `origin` names it.
///
/// # Errors
/// As [`load_fio`].
pub fn parse_fio(origin: &str, text: &str, capacity: Option<u64>) -> Result<FioJobs, WorkloadError> {
    let wrong = |problem: String| WorkloadError { origin: origin.to_owned(), problem };
    let at = |line: usize, problem: String| WorkloadError { origin: format!("{origin}:{line}"), problem };
    let sections = ini::sections(text).map_err(|(line, problem)| at(line, problem))?;
    let (mut jobs, mut left_out) = (Vec::new(), Vec::<String>::new());
    for section in &sections {
        let read = options::job(section).map_err(|(line, problem)| at(line, problem))?;
        for option in &read.left_out {
            if !left_out.contains(option) {
                left_out.push(option.clone());
            }
        }
        jobs.push(read);
    }
    if jobs.is_empty() {
        return Err(wrong("has no job: a section such as [reads] with rw=randread".to_owned()));
    }
    let mut notes = Vec::new();
    if !left_out.is_empty() {
        notes.push(format!("{origin}: left out, for the requests do not depend on them: {}", left_out.join(", ")));
    }
    for note in jobs.iter().flat_map(|job| &job.notes) {
        let note = format!("{origin}: {note}");
        if !notes.contains(&note) {
            notes.push(note);
        }
    }
    if let Some(job) = jobs.iter().find(|job| job.spec.rate.is_some()) {
        notes.push(format!(
            "{origin}: rate_iops of job {} is an open loop here: requests arrive at this rate however many are outstanding",
            job.spec.name
        ));
    }
    let mut limits = Vec::new();
    for group in groups(&jobs) {
        let (limit, note) = limit::of(group, capacity).map_err(|(line, problem)| match line {
            Some(line) => at(line, problem),
            None => wrong(problem),
        })?;
        limits.push(limit);
        notes.extend(note.map(|note| format!("{origin}: {note}")).filter(|note| !notes.contains(note)));
    }
    let ramp = jobs.iter().map(|job| job.ramp).max().unwrap_or(Span::ZERO);
    if jobs.iter().any(|job| job.ramp != ramp) {
        notes.push(format!("{origin}: measurements of all jobs begin after {ramp}, the longest ramp_time"));
    }
    let clones: u64 = jobs.iter().map(|job| u64::from(job.spec.numjobs)).sum();
    if clones > MOST_CLONES {
        return Err(wrong(format!("has {clones} jobs with their clones; up to {MOST_CLONES} are valid")));
    }
    let specs: Vec<_> = jobs.iter().flat_map(options::Read::specs).collect();
    for spec in &specs {
        spec.check().map_err(|problem| wrong(format!("job \"{}\": {problem}", spec.name)))?;
    }
    let name = std::path::Path::new(origin).file_stem().map_or(origin.into(), |stem| stem.to_string_lossy());
    let later = limits.split_off(1);
    let workload = Workload {
        name: name.into_owned(),
        jobs: specs,
        limit: limits[0],
        later,
        ramp,
        ..Workload::of(Default::default())
    };
    workload.check_groups().map_err(wrong)?;
    Ok(FioJobs { workload, notes })
}

/// The jobs that run at the same time, group by group.
fn groups(jobs: &[options::Read]) -> impl Iterator<Item = &[options::Read]> {
    jobs.chunk_by(|_, next| !next.spec.stonewall)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::{DEFAULT_REQUESTS, Limit};
    use crate::words::Share;
    use nandscape_sim::Span;

    const TWO: &str = "\
; a comment
[global]
ioengine=libaio
direct=1
bs=16k
runtime=30
time_based

[reads]
rw=randread   # with a comment
iodepth=4
random_distribution=zipf:0.9
size=10g

[writes]
rw=write
rate_iops=1k
numjobs=2
bssplit=4k/60:64k/40
size=50%
";

    #[test]
    fn a_job_file_is_a_workload() {
        let FioJobs { workload, notes } = parse_fio("jobs/two.fio", TWO, None).unwrap();
        assert_eq!((workload.name.as_str(), workload.limit), ("two", Limit::Runtime(Span::from_s(30))));
        let [reads, writes, clone] = &workload.jobs[..] else { panic!("three jobs") };
        assert_eq!((reads.name.as_str(), reads.iodepth, reads.bs.to_string().as_str()), ("reads", 4, "16KiB"));
        assert_eq!((reads.size, reads.distribution.to_string().as_str()), (Share::Bytes(10 << 30), "zipf:0.9"));
        // fio's k is 1024, and its rate is that of each clone. Sequential clones begin at the same address.
        assert_eq!(writes.rate.map(|rate| rate.iops), Some(1_024.0));
        assert_eq!((writes.size, writes.bs.reads.sizes().len(), writes.numjobs), (Share::Of(0.5), 2, 1));
        assert_eq!((writes.name.as_str(), clone.name.as_str()), ("writes.0", "writes.1"));
        assert!(notes.iter().any(|note| note.contains("ioengine, direct")), "{notes:?}");
        assert!(notes.iter().any(|note| note.contains("job writes is an open loop")), "{notes:?}");
    }

    #[test]
    fn amounts_end_the_run() {
        let limit = |text: &str| parse_fio("x.fio", text, None).unwrap().workload.limit;
        assert_eq!(limit("[a]\nrw=read\nsize=1m\n[b]\nrw=read\nnumber_ios=10\nnumjobs=2\n"), Limit::Requests(276));
        assert_eq!(limit("[a]\nrw=read\nsize=1g\nio_size=40k\nbs=8k\n"), Limit::Requests(5));
        // The smaller of the two, and sums that do not fit.
        assert_eq!(limit("[a]\nrw=read\nsize=40k\nnumber_ios=99\n"), Limit::Requests(10));
        assert_eq!(limit("[a]\nrw=read\nsize=50%\nnumber_ios=99\n"), Limit::Requests(99));
        let most = format!("rw=read\nnumber_ios={}\n", u64::MAX);
        assert_eq!(limit(&format!("[a]\n{most}[b]\n{most}")), Limit::Requests(u64::MAX));
        // A runtime without time_based ends a job that has not done its size by then.
        let span = Span::from_s(5);
        assert_eq!(limit("[a]\nrw=read\nsize=40k\nruntime=5\n"), Limit::Either(10, span));
        let FioJobs { workload, notes } = parse_fio("x.fio", "[a]\nrw=read\nruntime=5\n", None).unwrap();
        assert!(workload.limit == Limit::Runtime(span) && notes[0].contains("does not end earlier"), "{notes:?}");
        let FioJobs { workload, notes } = parse_fio("x.fio", "[a]\nrw=read\n", None).unwrap();
        assert!(workload.limit == Limit::Requests(DEFAULT_REQUESTS) && notes[0].contains("no job says"), "{notes:?}");
    }

    #[test]
    fn what_is_not_understood_is_told_with_its_line() {
        let error = |text: &str| parse_fio("x.fio", text, None).unwrap_err().to_string();
        let unknown = error("[a]\nrw=read\nzone_reset_threshold=0.5\n");
        let begins = "x.fio:3: zone_reset_threshold is not understood. Understood: rw, bs, ";
        assert!(unknown.starts_with(begins), "{unknown}");
        for word in super::known::UNDERSTOOD.iter().chain(&super::known::LEFT_OUT) {
            assert!(unknown.contains(word), "{word}");
        }
        assert!(error("[a]\nrw=reed\n").starts_with("x.fio:2: rw: \"reed\" is not a pattern"));
        assert!(error("rw=read\n").starts_with("x.fio:1: rw stands before the first section"));
        assert!(error("[a\n").starts_with("x.fio:1: "));
        assert!(error("[global]\nbs=4k\n").contains("has no job"));
        assert!(error("[a]\nbs=4k\n").starts_with("x.fio:1: job a has no rw"));
        assert!(error("[a]\nrw=randrw\nrate_iops=5\n").starts_with("x.fio:3: rate_iops"));
        assert!(error("[a]\nrw=read\niodepth=many\n").starts_with("x.fio:3: iodepth"));
        assert!(error("[a]\nrw=read\niodepth=0\n").contains("iodepth = 0 is out of range"));
        assert!(error("[a]\nrw=read\ntime_based\nruntime=1\n[b]\nrw=read\n").contains("some jobs are time_based"));
    }

    /// No option that the errors list is rejected as unknown.
    #[test]
    fn every_option_that_errors_list_is_understood() {
        for word in super::known::UNDERSTOOD.iter().chain(&super::known::LEFT_OUT) {
            let told = parse_fio("x.fio", &format!("[a]\nrw=randread\nsize=1m\n{word}=1\n"), None);
            assert!(!told.is_err_and(|error| error.to_string().contains("is not understood")), "{word}");
        }
        let logs = "randseed=9\nwrite_lat_log=x\ngroup_reporting\nname=b\nfilename=/dev/nvme0n1\n";
        let FioJobs { notes, .. } = parse_fio("x.fio", &format!("[a]\nrw=read\nsize=1m\n{logs}"), None).unwrap();
        assert!(notes[0].ends_with("do not depend on them: randseed, write_lat_log, group_reporting, name, filename"));
    }

    #[test]
    fn options_of_threads_are_those_of_a_hosts_threads() {
        let text = "[a]\nrw=read\nsize=1m\nnice=-5\ncpus_allowed=0-1,4\ncpus_allowed_policy=split\nnumjobs=2\n\
                    [b]\nrw=randread\nsize=1m\nnorandommap\ncpumask=6\nnumjobs=2\n";
        let FioJobs { workload, notes } = parse_fio("x.fio", text, None).unwrap();
        let words: Vec<String> = workload.jobs.iter().map(|job| job.scheduling.describe()).collect();
        let split = |cpu: u32| format!(" nice=-5 cpus_allowed={cpu} cpus_allowed_policy=split");
        assert_eq!(words, [split(0), split(1), " cpus_allowed=1-2".to_owned()]);
        assert!(notes.iter().all(|note| !note.contains("nice") && !note.contains("cpu")), "{notes:?}");
        let note = workload.note_on_threads().unwrap();
        assert!(
            note.starts_with("nice and the choice of processors have no effect") && note.contains("--host"),
            "{note}"
        );
        let nodes = parse_fio("x.fio", "[a]\nrw=read\nsize=1m\nnuma_cpu_nodes=0\n", None).unwrap().notes;
        assert!(nodes[0].contains("numa_cpu_nodes is left out; cpus_allowed names the processors"), "{nodes:?}");
        let error = |line: &str| parse_fio("x.fio", &format!("[a]\nrw=read\nsize=1m\n{line}\n"), None).unwrap_err();
        for (line, problem) in [
            ("nice=20", "x.fio:4: nice = 20 is out of range; from -20 to 19"),
            ("nice=low", "x.fio:4: nice: a whole number from -20 to 19"),
            ("cpus_allowed=3-1", "x.fio:4: cpus_allowed = \"3-1\""),
            ("cpus_allowed_policy=x", "shared or split"),
            ("cpus_allowed_policy=split", "needs the processors to share out"),
        ] {
            let error = error(line).to_string();
            assert!(error.contains(problem), "{error}");
        }
    }

    #[test]
    fn options_whose_effect_is_not_modelled_may_have_the_values_without_effect() {
        for (word, values) in super::known::NEUTRAL {
            let parsed = |value: &str| parse_fio("x.fio", &format!("[a]\nrw=read\nsize=1m\n{word}={value}\n"), None);
            for value in values {
                let FioJobs { notes, .. } = parsed(value).unwrap();
                assert!(notes[0].ends_with(&format!("do not depend on them: {word}")), "{notes:?}");
            }
            let error = parsed("crc32c").unwrap_err().to_string();
            let right = format!("x.fio:4: {word}: its effect is not modelled; valid, without effect: {}", values[0]);
            assert!(error.starts_with(&right), "{error}");
        }
    }

    #[test]
    fn durability_pauses_and_walls_have_fios_meaning() {
        let text = "[global]\nsize=1m\nramp_time=2\n[a]\nrw=write\nfsync=32\nsync=dsync\nthinktime=200\nthinktime_blocks=4\n\
                    [b]\nstonewall\nrw=randread\nfdatasync=1\nnumber_ios=7\nthinktime=5ms\nthinktime_spin=10\n\
                    [c]\nrw=write\nwait_for_previous=0\n";
        let FioJobs { workload, notes } = parse_fio("x.fio", text, None).unwrap();
        let [a, b, c] = &workload.jobs[..] else { panic!("three jobs") };
        assert_eq!(a.flushes.describe(), " fsync=32 sync=1");
        assert_eq!(a.think.map(|think| think.describe()).unwrap(), " thinktime=200us thinktime_blocks=4");
        assert_eq!(b.think.map(|think| think.describe()).unwrap(), " thinktime=5ms thinktime_blocks=1");
        assert_eq!((a.stonewall, b.stonewall, c.stonewall, workload.ramp), (false, true, false, Span::from_s(2)));
        assert_eq!((workload.limit, &workload.later[..]), (Limit::Requests(256), &[Limit::Requests(263)][..]));
        assert!(notes.iter().any(|note| note.contains("fdatasync=1 has no effect in job b")), "{notes:?}");
        assert!(notes.iter().any(|note| note.contains("thinktime_spin counts as a part of thinktime")), "{notes:?}");
        // A wall is before the first clone.
        let clones = parse_fio("x.fio", "[a]\nrw=read\nsize=1m\n[b]\nstonewall\nnumjobs=2\nrw=read\nsize=1m\n", None);
        assert_eq!(clones.unwrap().workload.groups(), [0..1, 1..3]);
    }

    #[test]
    fn priorities_are_classes() {
        let class = |text: &str| {
            let parsed = parse_fio("x.fio", &format!("[a]\nrw=read\nsize=1m\n{text}"), None);
            parsed
                .map(|parsed| (parsed.workload.jobs[0].class, parsed.workload.jobs[0].tenant))
                .map_err(|error| error.to_string())
        };
        let classes = [
            "",
            "prioclass=1\nprio=0",
            "prioclass=1",
            "prio=0",
            "prioclass=2\nprio=7",
            "prioclass=3",
            "class=9\ntenant=7",
            "class=9\nprioclass=3",
        ];
        assert_eq!(
            classes.map(|text| class(text).unwrap()),
            [(0, 0), (1, 0), (1, 0), (5, 0), (12, 0), (15, 0), (9, 7), (9, 0)]
        );
        let deadline = |text: &str| {
            let parsed = parse_fio("x.fio", &format!("[a]\nrw=read\nsize=1m\n{text}"), None);
            parsed.map(|parsed| parsed.workload.jobs[0].deadline).map_err(|error| error.to_string())
        };
        assert_eq!(
            [deadline("deadline=500"), deadline("deadline=2ms")],
            [500, 2_000].map(|us| Ok(Some(Span::from_us(us))))
        );
        assert!(deadline("deadline=0").unwrap_err().contains("from 1us"));
        assert!(class("prio=8").unwrap_err().contains("from 0 to 7"));
        assert!(class("class=16").unwrap_err().contains("class = 16 is out of range; from 0 to 15 is valid"));
    }

    #[test]
    fn shares_are_of_the_size_or_of_the_drive() {
        let limit = |text: &str, capacity| {
            parse_fio("x.fio", &format!("[a]\nrw=read\n{text}"), capacity).map(|it| it.workload.limit)
        };
        assert_eq!(limit("size=400m\nio_size=1%\n", None), Ok(Limit::Requests(1_024)));
        assert_eq!(limit("io_size=1%\n", Some(400 << 20)), Ok(Limit::Requests(1_024)));
        assert_eq!(limit("size=50%\nio_size=2%\n", Some(400 << 20)), Ok(Limit::Requests(1_024)));
        assert_eq!(limit("size=50%\n", Some(8 << 20)), Ok(Limit::Requests(1_024)));
        assert_eq!(limit("size=4m\nloops=3\n", None), Ok(Limit::Requests(3_072)));
        assert!(limit("io_size=1%\n", None).unwrap_err().to_string().contains("a share of the drive"));
        assert!(limit("size=1m\nio_size=101%\n", None).unwrap_err().to_string().contains("up to \"100%\""));
    }

    #[test]
    fn loops_that_fio_seeds_anew_have_a_note() {
        let notes = |text: &str| parse_fio("x.fio", &format!("[a]\nsize=1m\nnorandommap\n{text}"), None).unwrap().notes;
        let note = notes("rw=randwrite\nloops=4\n").join("; ");
        assert!(note.contains("each of its 4 loops") && note.contains("randrepeat=0"), "{note}");
        for without in ["rw=randwrite\nloops=4\nrandrepeat=0\n", "rw=randwrite\nloops=1\n", "rw=write\nloops=4\n"] {
            assert_eq!(notes(without), [""; 0], "{without}");
        }
    }

    #[test]
    fn options_that_change_requests_count_or_are_refused() {
        let job = |text: &str| {
            let FioJobs { workload, notes } = parse_fio("x.fio", &format!("[a]\nsize=1m\n{text}"), None).unwrap();
            (workload.jobs[0].clone(), notes.join("; "))
        };
        let (sync, notes) = job("rw=read\niodepth=8\nioengine=sync\n");
        assert!(sync.iodepth == 1 && notes.contains("iodepth=8 counts as 1 in job a: sync has one"), "{notes}");
        let (none, notes) = job("rw=read\niodepth=8\n");
        assert!(none.iodepth == 1 && notes.contains("psync, fio's engine when ioengine is left out"), "{notes}");
        assert_eq!(job("rw=read\niodepth=8\nioengine=io_uring\n").0.iodepth, 8);
        assert!(job("rw=randread\n").1.contains("as with norandommap"));
        let (random, notes) = job("rw=randread\nnumjobs=3\nnorandommap\n");
        assert!(random.numjobs == 3 && notes.is_empty(), "{notes}");
        let size = |text: &str| job(text).0.bs.reads.largest();
        assert_eq!([size("rw=read\nbs=8k,\n"), size("rw=write\nbs=8k,\n")], [8_192, 4_096]);
        assert_eq!([size("rw=write\nbs=8k,16k\n"), size("rw=trim\nbs=8k,16k,\n")], [16_384, 4_096]);
        let mix = job("rw=randrw\nbs=4k,12k\nrwmixread=75\n").0;
        assert_eq!((mix.bs.to_string().as_str(), mix.rwmixread), ("4KiB,12KiB", 75.0));
        let mix = parse_fio("x.fio", "[a]\nrw=randrw\nbs=4k,12k\nrwmixread=75\nsize=600k\n", None).unwrap();
        assert_eq!(mix.workload.limit, Limit::Requests(100));
        assert_eq!([size("rw=read\nbs=,16k\n"), size("rw=trim\nbs=,16k\n")], [4_096, 16_384]);
        for word in ["end_fsync=1\n", "fsync_on_close\nend_fsync=0\n"] {
            assert_eq!(job(&format!("rw=write\n{word}")).0.flushes.describe(), " end_fsync=1", "{word}");
        }
        assert_eq!(job("rw=write\nend_fsync=0\n").0.flushes.describe(), "");
        let error = |text: &str| parse_fio("x.fio", &format!("[a]\nrw=read\n{text}"), None).unwrap_err().to_string();
        assert!(error("direct=0\n").starts_with("x.fio:3: direct: no page cache"));
        assert!(error("buffered=1\n").starts_with("x.fio:3: buffered: no page cache"));
        assert!(error("fill_device=1\n").starts_with("x.fio:3: fill_device"));
        assert!(error("filesize=1m\n").starts_with("x.fio:3: filesize"));
        assert!(error("size=50%\n").starts_with("x.fio:3: a share of the drive: its size"));
        assert!(error("size=1m\nexitall\n[b]\nrw=read\nsize=9m\n").starts_with("x.fio:4: exitall"));
        assert!(error("numjobs=2000\n").contains("up to 1024"));
        assert!(parse_fio("x.fio", "[a]\nrw=read\nexitall\ntime_based\nruntime=1\n", None).is_ok());
    }
}
