//! The options of `[timing.*]`, and checks that they fit the rest of the profile.

use nandscape_device_ftl_core::policy::GcScheme;
use nandscape_device_ftl_page::PageFtlConfig;
use nandscape_device_media::geometry::Counts;
use nandscape_device_media::{
    Cell, Ecc, Features, Interleaving, PlaneMode, Priority, ProgramUnit, ReadRetry, Suspend, Timing,
};
use nandscape_sim::Span;
use nandscape_sim::units::Bytes;

use super::Result;
use super::bounds::{not_too_long, or, power_of_two, within, wrong};
use crate::keys::{EccKeys, GcKeys, ReadRetryKeys, SuspendKeys, TimingKeys};
use crate::values::{Choice, Shares, Text};

/// `timing.ecc.codeword` of a profile that does not give it.
const DEFAULT_CODEWORD: Bytes = Bytes(4 << 10);
/// Maximum of retries of a page.
const MAX_RETRIES: usize = 16;

pub(super) fn features(keys: &TimingKeys) -> Result<Features> {
    Ok(Features {
        command: not_too_long("timing.command", or(&keys.command, Span::ZERO))?,
        planes: keys.planes.map_or(PlaneMode::Independent, |text| text.0.0),
        program_unit: keys.program_unit.map_or(ProgramUnit::Page, |text| text.0.0),
        interleaving: keys.interleaving.map_or(Interleaving::Free, |text| text.0.0),
        cache_read: keys.cache_read.unwrap_or(true),
        cache_program: keys.cache_program.unwrap_or(true),
        ecc: ecc(&keys.ecc)?,
        read_retry: read_retry(&keys.read_retry)?,
        suspend: suspend(&keys.suspend)?,
    })
}

fn ecc(keys: &EccKeys) -> Result<Ecc> {
    let codeword = or(&keys.codeword, DEFAULT_CODEWORD);
    Ok(Ecc {
        time: not_too_long("timing.ecc.time", or(&keys.time, Span::ZERO))?,
        codeword: power_of_two("timing.ecc.codeword", codeword, 512, 64 << 10)?,
        engines: within("timing.ecc.engines", keys.engines.unwrap_or(0).into(), 0, 256)? as u32,
        pipelined: keys.pipelined.unwrap_or(false),
    })
}

fn read_retry(keys: &ReadRetryKeys) -> Result<ReadRetry> {
    let shares = keys.probability.clone().unwrap_or_default().0;
    let probability: Vec<f64> = shares.iter().map(|share| share.0.0).collect();
    let key = "timing.read_retry.probability";
    if probability.len() > MAX_RETRIES {
        return wrong(key, format!("has {} shares; {MAX_RETRIES} at most are valid", probability.len()));
    }
    let sum: f64 = probability.iter().sum();
    if sum > 1.0 {
        return wrong(
            key,
            format!("{sum} in all is more than every page; the sum is at most 1, as of [\"2%\", \"0.1%\"]"),
        );
    }
    Ok(ReadRetry { probability, time: not_too_long("timing.read_retry.time", or(&keys.time, Span::ZERO))? })
}

fn suspend(keys: &SuspendKeys) -> Result<Suspend> {
    let cost = |key, time: &Option<Text<Span>>| time.map(|text| not_too_long(key, text.0)).transpose();
    Ok(Suspend {
        program: cost("timing.suspend.program", &keys.program)?,
        erase: cost("timing.suspend.erase", &keys.erase)?,
        resume: not_too_long("timing.suspend.resume", or(&keys.resume, Span::ZERO))?,
        min_run: not_too_long("timing.suspend.min_run", or(&keys.min_run, Span::ZERO))?,
        limit: keys.limit.filter(|limit| *limit > 0),
    })
}

/// Rejects combinations that do not fit together.
pub(super) fn check(timing: &Timing, geometry: &Counts, ftl: &PageFtlConfig, gc: &GcKeys) -> Result<()> {
    let Features { planes, program_unit, suspend, .. } = timing.features;
    if program_unit == ProgramUnit::WordLine {
        check_word_lines(timing.cell, geometry, ftl)?;
    }
    let together =
        timing.pages_per_program() * if planes == PlaneMode::MultiPlane { geometry.planes_per_die } else { 1 };
    let programs = u32::from(ftl.placement.handles.max(1)) + 1;
    let least = programs * together * (geometry.page_size / geometry.unit_size);
    if ftl.buffer_units < least {
        let unit = u64::from(geometry.unit_size);
        let (size, least) = (Bytes(u64::from(ftl.buffer_units) * unit), Bytes(u64::from(least) * unit));
        return wrong(
            "buffer.size",
            format!(
                "{size} is too small: {together} pages are programmed at once, and {least} is needed for {programs} such programs"
            ),
        );
    }
    check_preemption(&suspend, ftl, gc)
}

/// Checks that some reads have priority over the operations that they would suspend, and can reach them.
fn check_preemption(suspend: &Suspend, ftl: &PageFtlConfig, gc: &GcKeys) -> Result<()> {
    let (always, on_request) = (gc.preempt.unwrap_or(false), gc.preempt_on_request.unwrap_or(false));
    let is_reads_first = ftl.priority == Priority::ReadsFirst;
    if on_request && is_reads_first {
        let problem = "needs controller.priority = \"fifo\": with \"reads_first\" all reads are as urgent, and \
                       ftl.gc.preempt lets them in";
        return wrong("ftl.gc.preempt_on_request", problem);
    }
    let needs_reads_first = |key| {
        let problem =
            "needs controller.priority = \"reads_first\": no read is more urgent than what it would interrupt";
        if is_reads_first || on_request { Ok(()) } else { wrong(key, problem) }
    };
    if suspend.program.is_some() {
        needs_reads_first("timing.suspend.program")?;
    }
    if suspend.erase.is_some() {
        needs_reads_first("timing.suspend.erase")?;
    }
    let key = if on_request { "ftl.gc.preempt_on_request" } else { "ftl.gc.preempt" };
    if always || on_request {
        needs_reads_first(key)?;
        if !matches!(ftl.gc.scheme, GcScheme::Plane | GcScheme::Nothing) {
            let problem = "needs ftl.gc.scheme = \"plane\": the other schemes are those that let nobody in";
            return wrong(key, problem);
        }
    }
    Ok(())
}

fn check_word_lines(cell: Cell, geometry: &Counts, ftl: &PageFtlConfig) -> Result<()> {
    let pages = cell.page_types() as u32;
    if !matches!(cell, Cell::Tlc | Cell::Qlc) {
        let problem = format!("\"word_line\" is for tlc and qlc; pages of {} are programmed one by one", cell.name());
        return wrong("timing.program_unit", problem);
    }
    if !geometry.pages_per_block.is_multiple_of(pages) {
        let given = geometry.pages_per_block;
        return wrong(
            "geometry.pages_per_block",
            format!(
                "{given} is no multiple of {pages}, the pages of a {} word line, which are programmed at once",
                cell.name()
            ),
        );
    }
    if ftl.gc.copyback {
        let problem = "does not go with timing.program_unit = \"word_line\": a single page cannot be copied then";
        return wrong("ftl.gc.copyback", problem);
    }
    Ok(())
}

/// Writes the features into the keys of a profile.
pub(super) fn fill_in(keys: &mut TimingKeys, features: &Features) {
    let Features { command, planes, program_unit, interleaving, cache_read, cache_program, ecc, read_retry, suspend } =
        features;
    keys.command = Some(Text(*command));
    keys.planes = Some(Text(Choice(*planes)));
    keys.program_unit = Some(Text(Choice(*program_unit)));
    keys.interleaving = Some(Text(Choice(*interleaving)));
    (keys.cache_read, keys.cache_program) = (Some(*cache_read), Some(*cache_program));
    let Ecc { time, codeword, engines, pipelined } = *ecc;
    keys.ecc.time = Some(Text(time));
    keys.ecc.codeword = Some(Text(Bytes(codeword.into())));
    (keys.ecc.engines, keys.ecc.pipelined) = (Some(engines), Some(pipelined));
    keys.read_retry.probability.get_or_insert_with(Shares::default);
    keys.read_retry.time = Some(Text(read_retry.time));
    let Suspend { resume, min_run, limit, .. } = *suspend;
    keys.suspend.resume = Some(Text(resume));
    keys.suspend.min_run = Some(Text(min_run));
    keys.suspend.limit = Some(limit.unwrap_or(0));
}

/// Sets all times to zero and removes retries. Operations on several planes or pages stay.
pub(super) fn without_delay(keys: &mut TimingKeys) {
    let zero = Some(Text(Span::ZERO));
    (keys.command, keys.ecc.time) = (zero, zero);
    (keys.read_retry.probability, keys.read_retry.time) = (Some(Shares::default()), zero);
    (keys.suspend.resume, keys.suspend.min_run) = (zero, zero);
    (keys.suspend.program, keys.suspend.erase) = (None, None);
}
