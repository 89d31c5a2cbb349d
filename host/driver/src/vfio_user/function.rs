//! Connecting to a function, enabling its controller, and admin commands. Each step waits for at most some seconds.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use nandscape_drive::DriveInfo;
use nandscape_drive::mem::Mapping;
use nandscape_wire_nvme::identify::{Controller, Namespace, OACS_DOORBELL_BUFFER, cns};
use nandscape_wire_nvme::vendor::{Capabilities, HAS_NOTICES, NOTICES, Notices};
use nandscape_wire_nvme::{AdminOpcode, SubmissionEntry, register};
use nandscape_wire_vfio_user::Command;
use nandscape_wire_vfio_user::device::{RegionInfo, SparseMap, region};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use zerocopy::little_endian::U32;
use zerocopy::{FromBytes, IntoBytes};

use super::FunctionError;
use super::doorbells::{Buffers, DOORBELLS, Doorbells};
use super::memory::{BASE, PAGE, SharedMemory};
use super::messages::{ANSWER, Messages};
use super::queue_pair::{COMPLETION, QueuePair, SUBMISSION};
use crate::describe::{choose, drive_info, has_nvm_commands};

/// Entries of the admin queues: a page of submissions holds more.
const ADMIN_ENTRIES: u16 = 32;
/// Pages of the admin queues, of an Identify data structure, and of the doorbell buffers.
const OWN_PAGES: u64 = 5;
/// The interval of reading Controller Status.
const PAUSE: Duration = Duration::from_millis(1);
/// The command register of the configuration space, and its bits for memory space and bus master (PCIe Base 7.5.1.1.3).
const PCI_COMMAND: u64 = 4;
const MEMORY_AND_BUS_MASTER: u8 = 0b110;
/// Controller Configuration: entries of 64 and 16 bytes, pages of 4 KiB, enabled.
const CONFIGURATION: u32 = register::CC_EN | 6 << 16 | 4 << 20;

/// A PCI NVMe controller behind a socket. See the module `vfio_user`.
pub struct Function {
    messages: Rc<Messages>,
    memory: Rc<SharedMemory>,
    page: Option<Rc<Mapping>>,
    /// Memory for doorbell buffers, and the buffers once they are used.
    set_aside: Buffers,
    buffers: Option<Buffers>,
    /// Signalled when an admin command has completed.
    event: OwnedFd,
    /// The admin queue, until a drive has it.
    admin: Option<QueuePair>,
    /// A page for the data of admin commands.
    data: u64,
    /// Queue pairs created.
    pairs: u16,
}

impl Function {
    /// Connects to the server at `path`, shares `bytes` of memory in addition to the driver's own pages, and enables
    /// the controller. Queues of [`Function::create_pair`] also use `bytes`.
    ///
    /// # Errors
    /// When there is no server, the server refuses, or the controller does not become ready.
    pub fn connect(path: &Path, bytes: u64) -> Result<Function, FunctionError> {
        let messages = Rc::new(Messages::connect(path)?);
        let memory = Rc::new(SharedMemory::new(bytes + OWN_PAGES * PAGE)?);
        let page = map_doorbells(&messages)?.map(Rc::new);
        messages.map(BASE, memory.len(), memory.file.as_fd())?;
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).map_err(io::Error::from)?;
        messages.interrupt(event.as_fd())?;
        messages.write(region::CONFIG, PCI_COMMAND, &[MEMORY_AND_BUS_MASTER, 0])?;
        let (submissions, completions, data) = (memory.take(PAGE)?, memory.take(PAGE)?, memory.take(PAGE)?);
        let set_aside = Buffers { shadow: memory.take(PAGE)?, events: memory.take(PAGE)? };
        let doorbells =
            Doorbells { messages: messages.clone(), memory: memory.clone(), page: page.clone(), buffers: None };
        let admin = Some(QueuePair::new(doorbells, 0, ADMIN_ENTRIES, submissions, completions));
        enable(&messages, submissions, completions)?;
        Ok(Function { messages, memory, page, set_aside, buffers: None, event, admin, data, pairs: 0 })
    }

    /// The memory that is shared.
    pub fn memory(&self) -> &Rc<SharedMemory> {
        &self.memory
    }

    /// Whether the page of doorbells is mapped, so that doorbells need no messages.
    pub fn maps_doorbells(&self) -> bool {
        self.page.is_some()
    }

    /// Doorbells that were sent as messages so far.
    pub fn doorbell_messages(&self) -> u64 {
        self.messages.posted()
    }

    /// The size of a logical block of a namespace, and their number.
    ///
    /// # Errors
    /// The namespace does not exist, or the function is lost.
    pub fn namespace(&mut self, nsid: u32) -> Result<(u32, u64), FunctionError> {
        let namespace: Namespace = self.identify("Identify Namespace", cns::NAMESPACE, nsid)?;
        let (bytes, blocks) = (namespace.lba_bytes(), namespace.nsze.get());
        match u32::try_from(bytes) {
            Ok(bytes) if blocks > 0 => Ok((bytes, blocks)),
            _ => Err(FunctionError::unusable(format!("there is no active namespace {nsid}"))),
        }
    }

    /// The drive properties of a namespace; `None` is the first active one.
    ///
    /// # Errors
    /// The namespace does not exist or cannot be used, or the function is lost.
    pub(super) fn drive_info(&mut self, wanted: Option<u32>) -> Result<DriveInfo, FunctionError> {
        let active: [U32; 1_024] = self.identify("Identify: active namespaces", cns::ACTIVE_NAMESPACES, 0)?;
        let nsid = choose(active.iter().map(|nsid| nsid.get()), wanted).map_err(FunctionError::Unusable)?;
        let controller: Controller = self.identify("Identify Controller", cns::CONTROLLER, 0)?;
        let namespace: Namespace = self.identify("Identify Namespace", cns::NAMESPACE, nsid)?;
        drive_info(nsid, &controller, &namespace).map_err(FunctionError::Unusable)
    }

    /// Whether the controller takes doorbells from buffers.
    pub(super) fn has_doorbell_buffers(&mut self) -> Result<bool, FunctionError> {
        let controller: Controller = self.identify("Identify Controller", cns::CONTROLLER, 0)?;
        Ok(controller.oacs.get() & OACS_DOORBELL_BUFFER != 0)
    }

    /// The most commands at a time of a queue pair: entries less one that stays empty. CAP.MQES, bits 15:0, counts from zero.
    pub(super) fn max_depth(&self) -> Result<u16, FunctionError> {
        Ok((self.messages.register(register::CAP)? as u16).max(1))
    }

    /// Checks whether the controller still works.
    ///
    /// # Errors
    /// Why it does not, or that the server has exited.
    pub(super) fn check(&self) -> Result<(), FunctionError> {
        let status = self.messages.register(register::CSTS)?;
        if status & register::CSTS_CFS != 0 {
            return Err(FunctionError::unusable("the controller has failed"));
        }
        match status & register::CSTS_RDY {
            0 => Err(FunctionError::unusable("the controller is not ready any more")),
            _ => Ok(()),
        }
    }

    /// A data structure of one page.
    fn identify<T: FromBytes + IntoBytes>(
        &mut self,
        step: &'static str,
        cns: u8,
        nsid: u32,
    ) -> Result<T, FunctionError> {
        let entry = SubmissionEntry { prp1: self.data.into(), ..SubmissionEntry::identify(cns, nsid) };
        self.execute(step, entry)?;
        let mut page = [0; PAGE as usize];
        self.memory.read(self.data, &mut page)?;
        Ok(T::read_from_bytes(&page).expect("it has the size of a page"))
    }

    /// Puts the doorbells of queue pairs that are created later into the driver's memory.
    ///
    /// # Errors
    /// When the controller refuses, or the function is lost.
    pub fn use_doorbell_buffers(&mut self) -> Result<(), FunctionError> {
        let buffers = self.set_aside;
        let entry = SubmissionEntry {
            prp1: buffers.shadow.into(),
            prp2: buffers.events.into(),
            ..SubmissionEntry::admin(AdminOpcode::DOORBELL_BUFFER_CONFIG)
        };
        self.execute("Doorbell Buffer Config", entry)?;
        self.buffers = Some(buffers);
        Ok(())
    }

    /// Creates a queue pair for `depth` commands at a time, which does not interrupt.
    ///
    /// # Errors
    /// When the controller refuses, the memory is full, or the function is lost.
    pub fn create_pair(&mut self, depth: u16) -> Result<QueuePair, FunctionError> {
        self.create_pair_with(depth, None)
    }

    /// The same, whose completions raise an interrupt of the vector, if one is given. There is the first one, [`Function::event`].
    pub(super) fn create_pair_with(&mut self, depth: u16, vector: Option<u16>) -> Result<QueuePair, FunctionError> {
        let entries = depth.max(1).saturating_add(1);
        let (id, completions) = self.create_completions(entries, vector)?;
        let submissions = self.memory.take(u64::from(entries) * SUBMISSION)?;
        let queue = SubmissionEntry::create_submission_queue(id, entries.into(), submissions, id);
        self.execute("Create I/O Submission Queue", queue)?;
        Ok(QueuePair::new(self.doorbells(), id, entries, submissions, completions))
    }

    /// Creates a completion queue: its number and address.
    fn create_completions(&mut self, entries: u16, vector: Option<u16>) -> Result<(u16, u64), FunctionError> {
        let (id, at) = (self.pairs + 1, self.memory.take(u64::from(entries) * COMPLETION)?);
        let queue = SubmissionEntry::create_completion_queue(id, entries.into(), at, vector);
        self.execute("Create I/O Completion Queue", queue)?;
        self.pairs = id;
        Ok((id, at))
    }

    fn doorbells(&self) -> Doorbells {
        let (messages, memory) = (self.messages.clone(), self.memory.clone());
        Doorbells { messages, memory, page: self.page.clone(), buffers: self.buffers }
    }

    /// Creates the queue of notices ahead of completions, for `entries` of them, and has the controller post them `window_ns` ahead;
    /// zero is the window of the drive.
    ///
    /// # Errors
    /// When the drive gives no notices, the controller refuses, the memory is full, or the function is lost.
    pub(super) fn create_notices(&mut self, entries: u16, window_ns: u32) -> Result<QueuePair, FunctionError> {
        let controller: Controller = self.identify("Identify Controller", cns::CONTROLLER, 0)?;
        let capabilities = Capabilities::of(&controller.vendor);
        if capabilities.is_none_or(|capabilities| capabilities.functions.get() & HAS_NOTICES == 0) {
            return Err(FunctionError::unusable(
                "the drive does not announce the ends of reads; controller.precompletion.window = \"16us\" of its profile makes it do so",
            ));
        }
        let entries = entries.min(self.max_depth()?.saturating_add(1));
        let (id, completions) = self.create_completions(entries, Some(0))?;
        self.memory.write(self.data, Notices::new(id, window_ns).as_bytes())?;
        let set = SubmissionEntry { prp1: self.data.into(), ..SubmissionEntry::set_features(NOTICES, 0) };
        self.execute("Set Features: notices", set)?;
        Ok(QueuePair::new(self.doorbells(), id, entries, 0, completions))
    }

    /// The event descriptor of the first vector. Reading it takes the signal back.
    pub fn event(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }

    /// The connection to the server, whose end shows as a hang-up.
    pub(super) fn connection(&self) -> BorrowedFd<'_> {
        self.messages.connection()
    }

    /// Takes the admin queue, which has no outstanding commands: the function itself cannot send admin commands any
    /// more.
    pub(super) fn take_admin(&mut self) -> Result<QueuePair, FunctionError> {
        self.admin.take().ok_or_else(|| FunctionError::unusable("a drive has the admin queue already"))
    }

    /// Executes an admin command, and waits until it has completed.
    fn execute(&mut self, step: &'static str, entry: SubmissionEntry) -> Result<(), FunctionError> {
        let taken = || FunctionError::unusable(format!("{step}: a drive has the admin queue"));
        self.admin.as_mut().ok_or_else(taken)?.submit(&entry)?;
        loop {
            let admin = self.admin.as_mut().ok_or_else(taken)?;
            if let Some(completion) = admin.reap()? {
                admin.tell_head()?;
                let status = completion.status();
                return if status.is_success() { Ok(()) } else { Err(FunctionError::Failed { step, status }) };
            }
            self.wait(step)?;
        }
    }

    /// Waits for an interrupt.
    fn wait(&self, step: &str) -> Result<(), FunctionError> {
        let limit = Timespec { tv_sec: ANSWER.as_secs() as i64, tv_nsec: 0 };
        match poll(&mut [PollFd::new(&self.event, PollFlags::IN)], Some(&limit)) {
            Ok(0) => Err(FunctionError::unusable(format!("{step}: no completion within {} s", ANSWER.as_secs()))),
            Ok(_) => {
                // Another thread may have taken it.
                let _ = rustix::io::read(&self.event, &mut [0; 8]);
                Ok(())
            }
            Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(io::Error::from(error).into()),
        }
    }
}

/// Enables the controller with its admin queues, and waits until it is ready.
fn enable(messages: &Messages, submissions: u64, completions: u64) -> Result<(), FunctionError> {
    let (low, high) = (messages.register(register::CAP)?, messages.register(register::CAP + 4)?);
    has_nvm_commands(u64::from(high) << 32 | u64::from(low)).map_err(FunctionError::Unusable)?;
    let sizes = u32::from(ADMIN_ENTRIES - 1) << 16 | u32::from(ADMIN_ENTRIES - 1);
    messages.write(region::BAR0, register::AQA.into(), &sizes.to_le_bytes())?;
    messages.write(region::BAR0, register::ASQ.into(), &submissions.to_le_bytes())?;
    messages.write(region::BAR0, register::ACQ.into(), &completions.to_le_bytes())?;
    messages.write(region::BAR0, register::CC.into(), &CONFIGURATION.to_le_bytes())?;
    for _ in 0..ANSWER.as_millis() / PAUSE.as_millis() {
        let status = messages.register(register::CSTS)?;
        if status & register::CSTS_CFS != 0 {
            return Err(FunctionError::unusable("the controller has failed while it was enabled"));
        }
        if status & register::CSTS_RDY != 0 {
            return Ok(());
        }
        pause();
    }
    Err(FunctionError::unusable(format!("the controller was not ready after {} s", ANSWER.as_secs())))
}

#[expect(clippy::disallowed_methods, reason = "a controller tells by nothing else when it is ready")]
fn pause() {
    std::thread::sleep(PAUSE);
}

/// Maps the doorbells if the server offers that.
fn map_doorbells(messages: &Messages) -> Result<Option<Mapping>, FunctionError> {
    const BYTES: usize = size_of::<RegionInfo>() + size_of::<SparseMap>();
    let ask = RegionInfo { argsz: (BYTES as u32).into(), ..RegionInfo::default() };
    let answer = messages.call("BAR0", Command::DEVICE_GET_REGION_INFO, ask.as_bytes(), &[])?;
    let invalid = || FunctionError::unusable("the server does not say which part of BAR0 can be mapped");
    let (info, _) = RegionInfo::read_from_prefix(&answer).map_err(|_| invalid())?;
    if info.flags.get() & RegionInfo::MMAP == 0 {
        return Ok(None);
    }
    let rest = answer.get(info.cap_offset.get() as usize..).ok_or_else(invalid)?;
    let (area, _) = SparseMap::read_from_prefix(rest).map_err(|_| invalid())?;
    let file = messages.descriptor().ok_or_else(invalid)?;
    if area.offset.get() != DOORBELLS {
        return Err(invalid());
    }
    let offset = info.offset.get().checked_add(DOORBELLS).ok_or_else(invalid)?;
    Ok(Some(Mapping::new(&File::from(file), offset, area.size.get() as usize, true)?))
}
