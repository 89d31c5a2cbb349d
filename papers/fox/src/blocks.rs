//! Blocks of a drive: the blocks of a run, erased or filled.

use nandscape_drive::HostMem;
use nandscape_host_open_channel::{ChunkInfo, OpenChannel, Place};
use nandscape_wire_nvme::open_channel::{CHUNK_FREE, CHUNK_OFFLINE, CHUNK_OPEN};

use crate::layout::{Cell, Node, Unit};
use crate::plan::{Plan, most_vector};
use crate::run::RunError;

/// The chunks of a node's units: for each column, those of its blocks.
pub(crate) struct Blocks(Vec<Vec<u32>>);

impl Blocks {
    /// Those of a node: the first that are in use from the plan's first block on.
    ///
    /// # Errors
    /// When a unit has too few, or a command failed.
    pub(crate) async fn choose(host: &OpenChannel, plan: &Plan, node: &Node) -> Result<Blocks, RunError> {
        let mut columns = Vec::new();
        for unit in &node.units {
            let chunks = chunks_of(host, *unit).await?;
            let usable = chunks.iter().zip(0..).skip(plan.first_block as usize);
            let usable = usable.filter(|(chunk, _)| chunk.state != CHUNK_OFFLINE).map(|(_, number)| number);
            let chosen: Vec<u32> = usable.take(node.blocks as usize).collect();
            if chosen.len() < node.blocks as usize {
                let Unit { channel, pu } = unit;
                return Err(RunError::Blocks(format!(
                    "channel {channel}, PU {pu}: {} blocks are in use from block {} on, and {} are needed; take fewer, or begin \
                     earlier",
                    chosen.len(),
                    plan.first_block,
                    node.blocks
                )));
            }
            columns.push(chosen);
        }
        Ok(Blocks(columns))
    }

    /// The place of a page's first address.
    pub(crate) fn place(&self, node: &Node, cell: Cell, page_sectors: u32) -> Place {
        let unit = node.units[cell.column as usize];
        let chunk = self.0[cell.column as usize][cell.block as usize];
        Place { group: unit.channel, pu: unit.pu, chunk, sector: cell.page * page_sectors }
    }

    /// Erases all of them.
    ///
    /// # Errors
    /// The first command that failed.
    pub(crate) async fn erase(&self, host: &OpenChannel, node: &Node) -> Result<(), RunError> {
        for (unit, numbers) in node.units.iter().zip(&self.0) {
            let chunks = chunks_of(host, *unit).await?;
            for number in numbers {
                let place = Place { group: unit.channel, pu: unit.pu, chunk: *number, sector: 0 };
                erase(host, place, &chunks[*number as usize]).await?;
            }
        }
        Ok(())
    }

    /// Writes all pages of the node.
    ///
    /// # Errors
    /// The first command that failed.
    pub(crate) async fn fill(&self, host: &OpenChannel, node: &Node) -> Result<(), RunError> {
        let sectors = node.pages * host.geometry().ws_min;
        for column in 0..node.units.len() as u32 {
            for block in 0..node.blocks {
                let place = self.place(node, Cell { column, block, page: 0 }, 0);
                write_rest(host, place, 0, sectors).await?;
            }
        }
        Ok(())
    }
}

/// The report of a unit's chunks.
pub(crate) async fn chunks_of(host: &OpenChannel, unit: Unit) -> Result<Vec<ChunkInfo>, RunError> {
    let geometry = host.geometry();
    let first = geometry.chunk_number(Place { group: unit.channel, pu: unit.pu, chunk: 0, sector: 0 });
    let report = host.report_of(first, geometry.chunks).await;
    report.map_err(|error| RunError::command("the report of chunks of", unit, None, error.status))
}

/// Erases a block, unless it is erased. An open one is written to its end before: not every drive erases it earlier.
pub(crate) async fn erase(host: &OpenChannel, place: Place, chunk: &ChunkInfo) -> Result<(), RunError> {
    if chunk.state == CHUNK_FREE {
        return Ok(());
    }
    if chunk.state == CHUNK_OPEN {
        write_rest(host, place, chunk.written as u32, host.geometry().sectors).await?;
    }
    let unit = Unit { channel: place.group, pu: place.pu };
    let reset = host.reset(&[chunk.address]).await;
    reset.map_err(|error| RunError::command("the erase of", unit, Some(place.chunk), error.status))
}

/// Writes a block from a sector up to another.
async fn write_rest(host: &OpenChannel, place: Place, from: u32, to: u32) -> Result<(), RunError> {
    let geometry = host.geometry();
    let (first, most) = (geometry.address(place), most_vector(geometry).max(1) * geometry.ws_min);
    let unit = Unit { channel: place.group, pu: place.pu };
    for at in (from..to).step_by(most as usize) {
        let sectors = u64::from(at)..u64::from((at + most).min(to));
        let addresses: Vec<u64> = sectors.map(|sector| first + sector).collect();
        let written = host.write_from(&addresses, &HostMem::none()).await;
        written.map_err(|error| RunError::command("filling", unit, Some(place.chunk), error.status))?;
    }
    Ok(())
}
