//! A drive as a PCI function over vfio-user, with doorbells of one kind.

use std::sync::Arc;

use nandscape_host_driver::vfio_user::Function;
use nandscape_lab_run::DriveSpec;
use nandscape_sim::Seed;
use nandscape_transport_vfio_user::{DoorbellMode, Function as Listened, Listener};
use tempfile::TempDir;

use crate::wall::lane::FunctionLane;
use crate::wall::live::Live;
use crate::wall::load::Load;

/// How the drive hears of new commands.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Doorbells {
    /// By a message for each doorbell.
    Trapped,
    /// By a message for doorbells in the client's buffers, where the event index asks for it.
    Shadow,
    /// It polls the client's buffers.
    Buffered,
    /// It polls the page of doorbells.
    Mapped,
}

impl Doorbells {
    fn mode(self) -> DoorbellMode {
        match self {
            Doorbells::Trapped => DoorbellMode::Trapped,
            Doorbells::Shadow => DoorbellMode::Shadow,
            Doorbells::Buffered => DoorbellMode::Buffered,
            Doorbells::Mapped => DoorbellMode::Mapped,
        }
    }
}

/// Writes in flight while a drive is filled.
const WRITERS: usize = 64;

/// A drive on its own reactor, and a socket before it.
pub(crate) struct Served {
    doorbells: Doorbells,
    folder: TempDir,
    /// Ends before the reactor.
    _listener: Listener,
    live: Live,
}

impl Served {
    /// Serves a drive. Called on a thread that is not kept on a core: the threads of the listener are not, either.
    pub(crate) fn start(drive: DriveSpec, doorbells: Doorbells, seed: u64) -> anyhow::Result<Served> {
        let (live, folder) = (Live::start(vec![drive], seed)?, tempfile::tempdir()?);
        let listener = Listener::start(Listened {
            path: folder.path().join("function"),
            handle: live.handle().clone(),
            drive: 0,
            number: 0,
            queue_pairs: live.served()[0].queue_pairs,
            doorbells: doorbells.mode(),
            log: Arc::new(|_: &str| {}),
        })?;
        Ok(Served { doorbells, folder, _listener: listener, live })
    }

    /// The reactor.
    pub(crate) fn live(&self) -> &Live {
        &self.live
    }

    /// A client with a queue pair for `depth` reads. Another client has written the data before, over a ring.
    pub(crate) fn connect(&self, depth: u16, seed: Seed) -> anyhow::Result<Load<FunctionLane>> {
        drop(Load::connect(self.live.handle(), 0, WRITERS, seed)?);
        let mut function = Function::connect(&self.folder.path().join("function"), FunctionLane::bytes(depth))?;
        if matches!(self.doorbells, Doorbells::Shadow | Doorbells::Buffered) {
            function.use_doorbell_buffers()?;
        }
        let lane = FunctionLane::new(function, depth)?;
        Ok(Load::over(lane, self.live.handle().clock(), depth.into(), seed))
    }
}
