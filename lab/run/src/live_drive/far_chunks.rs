//! A remote open-channel drive below the FTL of a host of this process. The tables of the FTL are in memory: its data ends with the
//! server, and the next server begins with reset chunks.
//!
//! A drive has one FTL at a time: an FTL marks the drive, and does not start if it finds the mark of another FTL that is
//! connected. Drives without reservations keep no mark, which the note of the start reports.

use std::any::{Any, TypeId};
use std::rc::Rc;

use nandscape_drive::{Drive, DriveInfo, Node, Refused, Use};
use nandscape_host_driver::nvme_tcp::Target;
use nandscape_host_open_channel::{ChunkInfo, Error, Geometry, Means, OpenChannel};
use nandscape_sim::Sim;
use nandscape_wire_nvme::Status;
use nandscape_wire_nvme::open_channel::CHUNK_OFFLINE;

use crate::chain::FtlLayer;
use crate::host_ftl::{Chunks, used_chunks};
use crate::remote::{Far, FarAdmin};
use crate::wall::{Connection, Endpoint, on_target};

/// The mark of such an FTL on the drive.
const MARK: u64 = u64::from_be_bytes(*b"host FTL");
/// Its host NQN to the drive. It differs from those of other programs here, which may inspect the drive meanwhile.
const HOST_NQN: &str = "nqn.2026-11.org.nandscape:host-ftl";
const HOST_ID: [u8; 16] = *b"nandscape ftl\0\0\x01";

/// Such a drive that is to be connected to.
pub(super) struct FarFlash<'a> {
    /// The name that users know it by.
    pub(super) name: &'a str,
    pub(super) target: &'a Target,
    /// The FTL.
    pub(super) layer: &'a FtlLayer,
}

impl FarFlash<'_> {
    /// The drive as its FTL sees it, and whether it keeps the mark of the FTL. Blocks until the drive has reported its chunks and has
    /// reset them, if that is requested.
    ///
    /// # Errors
    /// That it cannot be reached, is no open-channel drive, or has another FTL or chunks with data; with the option at fault.
    pub(super) fn connect(&self, sim: &Sim) -> Result<(FarChunks, Rc<Far>, bool), String> {
        let (geometry, report) = self.prepare()?;
        let used = used_chunks(&report);
        if used > 0 {
            return Err(self.failed(format!(
                "{used} chunks of the drive hold data; --store-reset resets them, as reset=true of ftl does, and loses what they hold"
            )));
        }
        let far =
            Rc::new(Far::connect(&as_ftl(self.target)).map_err(|problem| format!("--store {}={problem}", self.name))?);
        // Another one may have begun since it was asked: now both are connected.
        let is_marked = self.ask(|host| async move { check_alone(&host, 2).await })?;
        let queues = (Rc::new(FarAdmin::of(&far)) as Rc<dyn Drive>, far.clone() as Rc<dyn Drive>);
        let host = OpenChannel::with_geometry(sim, queues, geometry, Means::Rows);
        Ok((FarChunks { info: far.info(), chunks: Chunks::new(host, report) }, far, is_marked))
    }

    fn failed(&self, problem: String) -> String {
        format!("--store {}={}: {problem}", self.name, self.target)
    }

    /// The geometry and the chunks that the drive reports, after a reset of its chunks if requested.
    fn prepare(&self) -> Result<(Geometry, Vec<ChunkInfo>), String> {
        let resets = self.layer.resets();
        self.ask(move |host| async move {
            match host.mark(MARK).await {
                Err(error) if error.status != Status::INVALID_OPCODE => {
                    return Err(format!("it rejects a registration: {error}"));
                }
                _ => check_alone(&host, 1).await?,
            };
            if resets {
                let chunks = host.report().await.map_err(failed("it does not report its chunks"))?;
                for chunk in chunks.iter().filter(|chunk| chunk.state != CHUNK_OFFLINE) {
                    host.empty(chunk).await.map_err(failed("a chunk cannot be reset"))?;
                }
            }
            let report = host.report().await.map_err(failed("it does not report its chunks"))?;
            Ok((*host.geometry(), report))
        })
    }

    /// Has a host of the drive ask it something.
    fn ask<T: 'static, F: Future<Output = Result<T, String>>>(
        &self,
        question: impl FnOnce(OpenChannel) -> F + 'static,
    ) -> Result<T, String> {
        let asked = on_target(
            &Endpoint::NvmeTcp(as_ftl(self.target)),
            true,
            |_| (),
            move |connection| async move {
                let Connection { sim, admin, drive, .. } = connection;
                let host = OpenChannel::open(&sim, admin, drive, Means::Rows).await;
                question(host.map_err(failed("it is no open-channel drive"))?).await
            },
        );
        let answer = asked.map_err(|error| format!("--store {}={error}", self.name))?;
        answer.map_err(|problem| self.failed(problem))
    }
}

/// A drive as the host that an FTL is reaches it.
fn as_ftl(target: &Target) -> Target {
    Target { host_nqn: HOST_NQN.to_owned(), host_id: HOST_ID, ..target.clone() }
}

/// A remote open-channel drive, whose only user is its FTL.
pub(super) struct FarChunks {
    info: DriveInfo,
    chunks: Rc<Chunks>,
}

impl Node for FarChunks {
    fn info(&self) -> DriveInfo {
        self.info
    }

    fn connect(&self, _: Use) -> Result<Rc<dyn Drive>, Refused> {
        let what = "a remote open-channel drive has its FTL as only user".to_owned();
        Err(Refused { what, status: Status::INVALID_QUEUE_ID, hint: "" })
    }

    fn view(&self, of: TypeId) -> Option<Rc<dyn Any>> {
        (of == TypeId::of::<Chunks>()).then(|| self.chunks.clone() as Rc<dyn Any>)
    }
}

/// Formats a failed command as an error.
fn failed(what: &'static str) -> impl Fn(Error) -> String {
    move |error| format!("{what}: {error}")
}

/// Checks that a drive has no other FTL of a host; `own` controllers are of this one. Returns whether the drive keeps marks.
async fn check_alone(host: &OpenChannel, own: usize) -> Result<bool, String> {
    match host.marked(MARK).await {
        Ok(controllers) if controllers > own => {
            Err("another server has an FTL over the drive, and chunks have one owner; end \
                                                     that server first, or name another drive"
                .to_owned())
        }
        Ok(_) => Ok(true),
        Err(error) if error.status == Status::INVALID_OPCODE => Ok(false),
        Err(error) => Err(format!("it does not report its hosts: {error}")),
    }
}
