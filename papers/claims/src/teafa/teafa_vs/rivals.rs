//! The rivals of TeaFA that are no array with a tail policy: Flash on Rails, and drives whose channels are divided between
//! readers and writers.
//!
//! Left out: lines, loads and the verdict.

use std::rc::Rc;

use anyhow::Result;
use nandscape_device_ssd::Profile;
use nandscape_drive::Drive;
use nandscape_lab_run::{Precondition, Rig, array_on_namespace, rails_on};
use nandscape_lab_workload::{Runner, Workload, parse_table};
use nandscape_layers_array::{Array, Config, Rails};
use nandscape_sim::Span;

use crate::teafa::rig::{DRIVE_NAME, add_drives, check, latencies, rig_of};
use nandscape_lab_ledger::experiment::Run;
use nandscape_lab_ledger::figures::Figures;

/// Two of the drives, which change roles every ten seconds.
pub(super) fn rails(run: &Run<'_>) -> Result<(Rig, Rc<Rails>)> {
    let rig = rig_of(&Profile::load(DRIVE_NAME)?.resolve()?, 2, Precondition::Steady, run)?;
    let rails = rails_on(&rig, Span::from_s(10))?;
    Ok((rig, rails))
}

/// Each drive's channels in two halves, with an FTL and a namespace each.
const HALVES: &str = r#"
version = 1
base = "femu-teafa"

[[ftl.parts]]
name = "reads"
channels = "0-3"

[[ftl.parts]]
name = "writes"
channels = "4-7"
"#;

/// TPCC's reads and its writes as two tenants, each with as many requests a second as it has of TPCC's.
const TENANTS: &str = r#"
version = 1

[[characteristics]]
name = "reads"
reads = "100%"
read_size = "8KiB"
max_size = "4MiB"
interval = "1126.5625us"

[[characteristics]]
name = "writes"
reads = "0%"
write_size = "137KiB"
max_size = "4MiB"
interval = "2002.7778us"
"#;

/// Four drives in halves, and an array on the halves of each tenant.
pub(super) fn halves(run: &Run<'_>) -> Result<(Rig, [Rc<Array>; 2])> {
    let rig = rig_of(&Profile::parse("halves", HALVES)?.resolve()?, 4, Precondition::Steady, run)?;
    let array = |nsid| -> Result<Rc<Array>> {
        let shape = "raid5:4".parse().map_err(|problem| anyhow::anyhow!("{problem}"))?;
        Ok(array_on_namespace(&rig, nsid, shape, Config::default())?)
    };
    let arrays = [array(1)?, array(2)?];
    Ok((rig, arrays))
}

/// The load of both tenants.
pub(super) fn tenants() -> Result<Workload> {
    Ok(parse_table("tenants", TENANTS.parse()?)?)
}

/// Runs a load on the drive that `connect` opens for a job. Returns figures of the reads, and of the drives' own work.
pub(super) fn measure(
    rig: &mut Rig,
    workload: &Workload,
    connect: impl FnMut(&str, u32) -> Rc<dyn Drive>,
    run: &Run<'_>,
) -> Result<Figures> {
    let before: Vec<_> = rig.ssds().map(|ssd| ssd.ftl_stats()).collect();
    let runner = Runner::new(rig.sim(), workload, Box::new(()));
    let outcome = rig.run(runner.run(workload, run.seed.child("workload"), connect))?;
    check(&outcome)?;
    rig.check()?;
    let mut figures = latencies(&outcome);
    add_drives(&mut figures, rig.ssds().zip(&before).map(|(ssd, before)| ssd.ftl_stats().since(before)));
    Ok(figures)
}
