//! Open, commit and report of runs.

use nandscape_device_ftl_zoned::lsm::{Edit, RunInfo, RunState};
use nandscape_drive::Breakdown;
use nandscape_wire_nvme::runs::{self, Descriptor, Head, MOST_EDITS, action};
use nandscape_wire_nvme::{Parameter, Status};
use zerocopy::IntoBytes;

use super::{Runs, status_of};
use crate::command_set::{Command, Failure};
use crate::refusal::Refusal;

impl Runs {
    /// Serves an open. Returns the place of the run.
    pub(super) fn open(&self, command: &Command<'_>) -> Result<u32, Failure> {
        command.namespace.check_flags(command.entry)?;
        let level = command.entry.cdw10.get();
        let level = u8::try_from(level).map_err(|_| Refusal::field(10, 0).final_())?;
        Ok(self.ftl().open_run(level).map_err(status_of)?)
    }

    /// Serves a commit.
    pub(super) async fn commit(&self, command: &Command<'_>, breakdown: &mut Breakdown) -> Result<(), Failure> {
        command.namespace.check_flags(command.entry)?;
        let count = (command.entry.cdw10.get() & 0xffff) as usize + 1;
        if count > MOST_EDITS {
            return Err(Refusal::field(10, 0).final_().into());
        }
        let mut edits = vec![runs::Edit::default(); count];
        let bytes = edits.as_bytes().len();
        command.mem.must_cover(bytes)?;
        command.mem.read(0, edits.as_mut_bytes());
        if command.mem.has_failed() {
            return Err(Status::DATA_TRANSFER_ERROR.into());
        }
        let malformed = || Refusal::of(Status::INVALID_FIELD, Parameter::DPTR).final_();
        let edits = edits.iter().map(edit).collect::<Option<Vec<_>>>().ok_or_else(malformed)?;
        command.link.receive(bytes as u64, breakdown).await;
        command.stop.check()?;
        Ok(self.ftl().commit(&edits).map_err(|(_, error)| status_of(error))?)
    }

    /// Serves a report.
    pub(super) async fn report(&self, command: &Command<'_>, breakdown: &mut Breakdown) -> Result<(), Failure> {
        let (entry, namespace) = (command.entry, command.namespace);
        namespace.check_flags(entry)?;
        let bytes = (u64::from(entry.cdw10.get()) + 1) * 4;
        let most = u64::from(namespace.max_blocks) * u64::from(namespace.lba_bytes);
        if bytes < size_of::<Head>() as u64 || bytes > most {
            return Err(Refusal::field(10, 0).final_().into());
        }
        command.mem.must_cover(bytes as usize)?;
        let page = self.page(entry.cdw11.get(), bytes as usize);
        command.mem.write(0, &page);
        command.link.send(bytes, breakdown).await;
        Ok(())
    }

    fn page(&self, from: u32, bytes: usize) -> Vec<u8> {
        let (runs, config, (grain, capacity)) = (self.ftl().runs(from), self.ftl().config(), self.ftl().capacity());
        let head = Head {
            runs: (runs.len() as u32).into(),
            span: config.span.into(),
            most: config.most.into(),
            grain: grain.into(),
            capacity: capacity.into(),
            ..Head::default()
        };
        let mut page = head.as_bytes().to_vec();
        let fit = (bytes - page.len()) / size_of::<Descriptor>();
        runs.iter().take(fit).for_each(|run| page.extend_from_slice(descriptor(run).as_bytes()));
        page.resize(bytes, 0);
        page
    }
}

fn edit(of: &runs::Edit) -> Option<Edit> {
    if of.reserved_6.get() != 0 {
        return None;
    }
    let run = of.run.get();
    match (of.action, of.level) {
        (action::PUBLISH, 0) => Some(Edit::Publish(run)),
        (action::SEAL, 0) => Some(Edit::Seal(run)),
        (action::RELEVEL, level) => Some(Edit::Relevel(run, level)),
        (action::DROP, 0) => Some(Edit::Drop(run)),
        (action::CLOSE, 0) => Some(Edit::Close(run)),
        _ => None,
    }
}

fn descriptor(run: &RunInfo) -> Descriptor {
    let state = match run.state {
        RunState::New => runs::state::NEW,
        RunState::Published => runs::state::PUBLISHED,
        RunState::Sealed => runs::state::SEALED,
    };
    Descriptor {
        run: run.run.into(),
        blocks: run.units.into(),
        order: run.order.into(),
        level: run.level,
        state,
        ..Descriptor::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_with_bits_that_mean_nothing_are_refused() {
        let publish = runs::Edit { run: 3.into(), action: action::PUBLISH, ..runs::Edit::default() };
        assert_eq!(edit(&publish), Some(Edit::Publish(3)));
        for wrong in [
            runs::Edit { reserved_6: 1.into(), ..publish },
            runs::Edit { reserved_6: 0x8000.into(), ..publish },
            runs::Edit { level: 1, ..publish },
            runs::Edit { action: 0, ..publish },
        ] {
            assert_eq!(edit(&wrong), None, "{wrong:?}");
        }
    }
}
