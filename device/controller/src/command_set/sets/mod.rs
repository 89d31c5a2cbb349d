//! The NVM command set over several FTLs, each of which owns channels of the drive: an NVM Set for each FTL (Base 3.2.2). A
//! namespace is in one set, and its commands are served by the FTL of that set; nothing is translated on the way.
//!
//! Work on the whole drive is done for each set: Flush of all namespaces, a restart after a power cut (all FTLs at the same
//! time), Sanitize (one set after another). Orders for garbage collection are for one set. Identify offers only features that all sets have: metadata, an erase of all flash
//! and Atomic Write require support by each FTL.
//!
//! | file | what |
//! |---|---|
//! | `any` | a set over one of the kinds of FTL |
//! | `identify` | Identify and log pages |
//! | `storage` | data, counts and power of all sets |
//!
//! Left out: namespaces over several sets.

mod any;
mod identify;
mod storage;

use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::task::Poll;

use nandscape_device_ftl_core::Collections;
use nandscape_device_ftl_core::offers::Sanitization;
use nandscape_drive::Breakdown;
use nandscape_wire_nvme::identify::{Controller as IdentifyController, Namespace as IdentifyNamespace};
use nandscape_wire_nvme::log::{CommandsAndEffects, EnduranceGroup};
use nandscape_wire_nvme::{IoOpcode, NSID_ALL, Status, SubmissionEntry};

use super::{Administration, Command, CommandSet, Fused, Later, Reply, SetInfo, Storage};
use crate::engine::LOST_DATA;
use crate::namespace::Namespace;
pub use any::NvmSet;
use any::on;

/// The most sets of a drive: one for each channel.
pub const MAX_SETS: usize = 256;

/// See the file.
pub struct NvmSets {
    sets: Vec<Member>,
    /// Sets already sanitized by an operation that a power cut interrupted.
    sanitized: Cell<usize>,
}

struct Member {
    set: NvmSet,
    /// Commands whose data could not be read or written.
    errors: Cell<u64>,
}

impl NvmSets {
    /// The commands of a drive with these sets, at least two.
    ///
    /// # Panics
    /// With fewer sets, more than [`MAX_SETS`], or different mapping units.
    pub fn new(mut sets: Vec<NvmSet>) -> NvmSets {
        assert!((2..=MAX_SETS).contains(&sets.len()), "a drive has several sets or a command set of its own kind");
        let infos: Vec<SetInfo> = sets.iter().map(NvmSet::info).collect();
        assert!(infos.iter().all(|info| info.unit_bytes == infos[0].unit_bytes), "all sets map units of one size");
        if infos.iter().any(|info| !info.keeps_metadata) {
            sets.iter_mut().for_each(NvmSet::offer_no_metadata);
        }
        let members = sets.into_iter().map(|set| Member { set, errors: Cell::new(0) });
        NvmSets { sets: members.collect(), sanitized: Cell::new(0) }
    }

    fn all(&self) -> impl Iterator<Item = &NvmSet> {
        self.sets.iter().map(|member| &member.set)
    }

    fn first(&self) -> &NvmSet {
        &self.sets[0].set
    }

    fn of(&self, namespace: &Namespace) -> &NvmSet {
        &self.sets[namespace.set].set
    }

    fn count_errors<'a>(&self, namespace: &Namespace, replies: impl IntoIterator<Item = &'a Reply>) {
        let errors = &self.sets[namespace.set].errors;
        let failed = replies.into_iter().filter(|reply| LOST_DATA.contains(&reply.status.meaning()));
        errors.set(errors.get() + failed.count() as u64);
    }

    /// Flush with the broadcast value: the data of every set is on flash when it ends.
    async fn flush_all(&self, command: &Command<'_>, breakdown: &mut Breakdown) -> Reply {
        let mut reply = Reply::value(0);
        for set in self.all() {
            reply = on!(set, nvm => nvm.serve_directly(command, breakdown).await);
            if !reply.status.is_success() {
                break;
            }
        }
        reply
    }
}

/// The work of one set for the whole drive.
type Work<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;

/// Waits for all of several futures, which run at the same time.
async fn all_done<'a>(futures: impl Iterator<Item = Work<'a>>) {
    let mut running: Vec<_> = futures.collect();
    std::future::poll_fn(|context| {
        running.retain_mut(|future| future.as_mut().poll(context).is_pending());
        if running.is_empty() { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}

impl CommandSet for NvmSets {
    fn info(&self) -> SetInfo {
        let infos = self.all().map(NvmSet::info);
        let both = |one: SetInfo, other: SetInfo| SetInfo {
            sectors: one.sectors + other.sectors,
            unit_bytes: one.unit_bytes,
            volatile_cache: one.volatile_cache || other.volatile_cache,
            keeps_data: one.keeps_data && other.keeps_data,
            keeps_metadata: one.keeps_metadata && other.keeps_metadata,
            sanitizes: one.sanitizes && other.sanitizes,
        };
        infos.reduce(both).expect("there are sets")
    }

    fn nvm_sets(&self) -> Vec<u64> {
        self.all().map(|set| set.info().sectors).collect()
    }

    #[inline]
    fn prefetch(&self, namespace: &Namespace, entry: &SubmissionEntry) {
        on!(self.of(namespace), nvm => nvm.prefetch(namespace, entry));
    }

    fn storage(&self) -> &dyn Storage {
        self
    }

    fn serve<'a>(&'a self, command: &'a Command<'a>, breakdown: &'a mut Breakdown) -> Later<'a, Reply> {
        Box::pin(async move {
            if command.entry.nsid.get() == NSID_ALL && command.entry.opcode == IoOpcode::FLUSH.0 {
                return Box::pin(self.flush_all(command, breakdown)).await;
            }
            let reply = on!(self.of(command.namespace), nvm => nvm.serve_directly(command, breakdown).await);
            if !reply.status.is_success() {
                self.count_errors(command.namespace, [&reply]);
            }
            reply
        })
    }

    fn has_pieces(&self, namespace: &Namespace) -> bool {
        on!(self.of(namespace), nvm => nvm.has_pieces(namespace))
    }

    fn identify_controller(&self, data: &mut IdentifyController) {
        self.fill_in_identify(data);
    }

    fn identify_namespace(&self, namespace: Option<&Namespace>) -> IdentifyNamespace {
        let set = namespace.map_or(self.first(), |namespace| self.of(namespace));
        on!(set, nvm => nvm.identify_namespace(namespace))
    }

    fn effects(&self, effects: &mut CommandsAndEffects) {
        self.fill_in_effects(effects);
    }

    fn endurance_group(&self, set: usize) -> Option<EnduranceGroup> {
        let member = self.sets.get(set)?;
        Some(on!(&member.set, nvm => nvm.health()).group(member.errors.get()))
    }

    fn fused(&self) -> Option<&dyn Fused> {
        self.all().all(|set| on!(set, nvm => nvm.fused().is_some())).then_some(self)
    }

    fn administration(&self) -> Option<&dyn Administration> {
        Some(self)
    }

    fn collections(&self, set: usize) -> Option<&dyn Collections> {
        let member = self.sets.get(set).filter(|_| self.all().all(|set| set.collections().is_some()))?;
        member.set.collections()
    }
}

impl Fused for NvmSets {
    fn serve_fused<'a>(&'a self, pair: [Command<'a>; 2], breakdown: &'a mut Breakdown) -> Later<'a, [Reply; 2]> {
        Box::pin(async move {
            let namespace = pair[0].namespace;
            let replies = on!(self.of(namespace), nvm => nvm.serve_fused(pair, breakdown).await);
            self.count_errors(namespace, &replies);
            replies
        })
    }
}

impl Administration for NvmSets {
    fn erase<'a>(&'a self, namespace: &'a Namespace) -> Later<'a, ()> {
        Box::pin(async move {
            on!(self.of(namespace), nvm => nvm.erase(namespace).await);
        })
    }

    fn sanitize<'a>(&'a self, how: Sanitization, progress: &'a dyn Fn(u64, u64)) -> Later<'a, Result<(), Status>> {
        Box::pin(async move {
            const SHARES: u64 = 1 << 16;
            let count = self.sets.len() as u64;
            for (number, set) in self.all().enumerate().skip(self.sanitized.get()) {
                let progress =
                    |done: u64, all: u64| progress(number as u64 * SHARES + done * SHARES / all.max(1), count * SHARES);
                match on!(set, nvm => nvm.sanitize(how, &progress).await) {
                    // The rest is done after the restart of the drive.
                    Err(Status::ABORTED_POWER_LOSS) => return Err(Status::ABORTED_POWER_LOSS),
                    Err(status) => {
                        self.sanitized.set(0);
                        return Err(status);
                    }
                    Ok(()) => self.sanitized.set(number + 1),
                }
            }
            self.sanitized.set(0);
            Ok(())
        })
    }
}
