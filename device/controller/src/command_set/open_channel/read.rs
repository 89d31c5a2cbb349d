//! Vector Chunk Read (OC 4.3): reads the pages of its addresses in parallel.

use nandscape_drive::Breakdown;
use nandscape_wire_nvme::Parameter;

use super::OpenChannel;
use super::addresses::{Failed, Outcome, Run, listed, runs};
use crate::command_set::together::{Part, together};
use crate::command_set::{Command, Failure};
use crate::refusal::Refusal;

impl OpenChannel {
    /// Serves the command.
    pub(super) async fn vector_read(&self, command: &Command<'_>, breakdown: &mut Breakdown) -> Outcome {
        let (entry, namespace, mem) = (command.entry, command.namespace, command.mem);
        namespace.check_flags(entry)?;
        let count = self.count(command)?;
        let bytes = count as usize * namespace.lba_bytes as usize;
        mem.fits(bytes)?;
        mem.part(0, bytes.min(mem.len())).cover(bytes.min(mem.len()))?;
        let addresses = listed(mem, entry.slba(), count, Parameter::at(10, 0))?;
        let runs = runs(&addresses, self.layout(), self.layout().page_units)?;
        self.nvm.count_read(1, namespace, count);
        let parts = runs.iter().map(|run| self.read_run(command, run)).collect();
        let ended = together(parts, breakdown).await;
        gathered(&runs, ended)
    }

    fn read_run<'a>(&'a self, command: &'a Command<'_>, run: &Run) -> Part<'a, Result<(), Failure>> {
        let (lba_bytes, run) = (command.namespace.lba_bytes as usize, *run);
        Box::pin(async move {
            let mut breakdown = Breakdown::new();
            let extent = run.extent(self.layout(), self.unit_sectors());
            let mem = match command.mem.is_empty() {
                true => command.mem.clone(),
                false => command.mem.part(run.at as usize * lba_bytes, run.units as usize * lba_bytes),
            };
            (self.nvm.read_part(command, extent, mem, &mut breakdown).await, breakdown)
        })
    }

    /// The addresses of a vector command.
    pub(super) fn count(&self, command: &Command<'_>) -> Result<u32, Refusal> {
        let count = command.entry.vector_z() + 1;
        if count > command.namespace.max_blocks { Err(Refusal::field(12, 0).final_()) } else { Ok(count) }
    }
}

/// Combines the results of a command's runs: the first failure, and all addresses at fault.
pub(super) fn gathered(runs: &[Run], ended: Vec<Result<(), Failure>>) -> Outcome {
    let failed = || runs.iter().zip(&ended).filter_map(|(run, ended)| Some((run, ended.err()?)));
    match failed().next() {
        None => Ok(()),
        Some((_, failure)) => Err(Failed { failure, which: failed().fold(0, |which, (run, _)| which | run.bits()) }),
    }
}
