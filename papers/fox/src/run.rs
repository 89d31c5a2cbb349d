//! A run on a drive: its blocks are erased, or filled where the engine requires written blocks. Then all nodes begin at
//! one moment, and each submits one command at a time, as threads with synchronous commands do.

use std::cell::{Cell as Shared, RefCell};
use std::rc::Rc;

use nandscape_drive::HostMem;
use nandscape_host_open_channel::OpenChannel;
use nandscape_sim::Sim;
use nandscape_sim::signal::Signal;
use nandscape_wire_nvme::Status;

use crate::blocks::Blocks;
use crate::engine::{Command, Engine};
use crate::layout::{Node, Unit};
use crate::mix::Kind;
use crate::outcome::{Outcome, Sample};
use crate::plan::{BadPlan, Plan};

/// Why a run ended early.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum RunError {
    /// The plan does not fit the drive.
    #[error(transparent)]
    Plan(#[from] BadPlan),
    /// A unit has too few usable blocks.
    #[error("{0}")]
    Blocks(String),
    /// A command failed.
    #[error("{0}")]
    Command(String),
}

impl RunError {
    pub(crate) fn command(what: &str, unit: Unit, block: Option<u32>, status: Status) -> RunError {
        let block = block.map_or(String::new(), |block| format!(", block {block}"));
        RunError::Command(format!("{what} channel {}, PU {}{block} failed: {status}", unit.channel, unit.pu))
    }
}

/// State that the nodes of a run share.
struct Shares {
    sim: Sim,
    host: Rc<OpenChannel>,
    samples: RefCell<Vec<Sample>>,
    /// The first failure that ends the run.
    failure: RefCell<Option<RunError>>,
    /// Nodes that have not ended.
    left: Shared<usize>,
    ended: Signal,
}

/// Runs a plan. Reads that fail are counted; a write that fails ends the run, as nothing can be written behind it.
///
/// # Errors
/// See [`RunError`].
pub async fn run(sim: &Sim, host: &Rc<OpenChannel>, plan: &Plan, engine: &Rc<dyn Engine>) -> Result<Outcome, RunError> {
    let nodes = plan.nodes(host.geometry(), &**engine)?;
    let mut placed = Vec::new();
    for node in nodes {
        let blocks = Blocks::choose(host, plan, &node).await?;
        // Blocks that are only read need no erase where they are written already; erasing all keeps runs independent of
        // each other.
        blocks.erase(host, &node).await?;
        if engine.begins_written(&node) {
            blocks.fill(host, &node).await?;
        }
        placed.push((node, blocks));
    }
    // No node finds a unit that still programs the filled data.
    host.flush()
        .await
        .map_err(|error| RunError::Command(format!("the flush of what was filled in failed: {}", error.status)))?;
    let shares = Rc::new(Shares {
        sim: sim.clone(),
        host: host.clone(),
        samples: RefCell::default(),
        failure: RefCell::default(),
        left: Shared::new(placed.len()),
        ended: Signal::new(sim),
    });
    let begun = sim.now();
    for (node, blocks) in placed {
        let (shares, engine) = (shares.clone(), engine.clone());
        sim.spawn(async move {
            for command in engine.commands(node.clone()) {
                if shares.failure.borrow().is_some() {
                    break;
                }
                shares.one(&node, &blocks, &command).await;
            }
            shares.left.set(shares.left.get() - 1);
            shares.ended.notify();
        });
    }
    while shares.left.get() > 0 {
        shares.ended.changed().await;
    }
    match shares.failure.take() {
        Some(failure) => Err(failure),
        None => Ok(Outcome { means: host.means(), begun, ended: sim.now(), samples: shares.samples.take() }),
    }
}

impl Shares {
    async fn one(&self, node: &Node, blocks: &Blocks, command: &Command) {
        let geometry = self.host.geometry();
        let places = command.cells.iter().map(|cell| blocks.place(node, *cell, geometry.ws_min));
        let firsts = places.map(|place| geometry.address(place));
        let page = u64::from(geometry.ws_min);
        let addresses: Vec<u64> = firsts.flat_map(|first| first..first + page).collect();
        let begun = self.sim.now();
        let ended = match command.kind {
            Kind::Write => self.host.write_from(&addresses, &HostMem::none()).await,
            Kind::Read => self.host.read_into(&addresses, &HostMem::none()).await,
        };
        let unit = node.units[command.cells[0].column as usize];
        if let Err(error) = &ended
            && command.kind == Kind::Write
        {
            let chunk = blocks.place(node, command.cells[0], geometry.ws_min).chunk;
            let failure = RunError::command("a write to", unit, Some(chunk), error.status);
            self.failure.borrow_mut().get_or_insert(failure);
        }
        let now = self.sim.now();
        self.samples.borrow_mut().push(Sample {
            kind: command.kind,
            unit,
            ended: now,
            latency: now.since(begun),
            bytes: addresses.len() as u64 * self.host.block_bytes() as u64,
            failed: ended.is_err(),
        });
    }
}
