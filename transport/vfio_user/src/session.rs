//! A client's thread: receives messages, answers them one by one, and passes requests for the controller to the
//! reactor.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, Sender, channel};

use nandscape_drive::mem::mapping::memory_file;
use nandscape_drive::mem::{LONGEST_ASK, Mapping};
use nandscape_transport_reactor::handle::{NewHost, Refused};
use nandscape_transport_reactor::{Handle, Intake};
use nandscape_wire_vfio_user::access::{DmaMap, DmaUnmap};
use nandscape_wire_vfio_user::device::{DeviceInfo, InterruptInfo, InterruptSet, interrupt, region};
use nandscape_wire_vfio_user::request::{Action, SetData};
use nandscape_wire_vfio_user::version::{Capabilities, MAJOR, MINOR, Version};
use nandscape_wire_vfio_user::{Errno, Header, Request};
use zerocopy::IntoBytes as _;

use crate::channel::{self, MAX_DATA, MAX_DESCRIPTORS, Received};
use crate::config_space::ConfigSpace;
use crate::device::{Act, Device, Parts};
use crate::doorbells::Watch;
use crate::interrupts::{Event, Interrupts};
use crate::layout::{DOORBELLS, Layout, PAGE};
use crate::listener::{DoorbellMode, Function};
use crate::maps::{MAX_MAPS, Maps};
use crate::memory::Memory;
use crate::writer::Writer;

/// The answer to a message.
pub(crate) struct Reply {
    pub(crate) payload: Vec<u8>,
    /// Whether the reply carries the descriptor of the doorbells.
    pub(crate) descriptor: bool,
}

impl Reply {
    pub(crate) fn of(payload: &[u8]) -> Reply {
        Reply { payload: payload.to_vec(), descriptor: false }
    }
}

/// See the module.
pub(crate) struct Session {
    stream: Arc<UnixStream>,
    acts: Sender<Act>,
    /// Ends when the reactor has dropped the device.
    present: Receiver<()>,
    pub(crate) handle: Handle,
    log: Arc<dyn Fn(&str) + Send + Sync>,
    pub(crate) layout: Layout,
    pub(crate) mode: DoorbellMode,
    /// The file of the doorbells, laid out as BAR0, and their part in it.
    file: Arc<File>,
    pub(crate) doorbells: Mapping,
    /// Notifies the reactor's side of a write to them.
    pub(crate) rung: Arc<AtomicBool>,
    pub(crate) config: ConfigSpace,
    /// The MSI-X table, which the client keeps a copy of and acts on.
    pub(crate) table: Vec<u8>,
    maps: Maps,
    agreed: bool,
    /// Whether the client was notified that memory without a descriptor is slow.
    told: bool,
    /// Sends all messages, once the client has memory that only it reaches.
    writer: Option<Writer>,
    /// The longest data that the client takes in a message.
    longest: u64,
}

/// Why a client cannot be served.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StartError {
    /// The drive has no controller left, or ends.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// The system has no memory or descriptor left.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl Session {
    /// Attaches the client to a separate controller.
    ///
    /// # Errors
    /// Why there is none.
    pub(crate) fn start(
        stream: Arc<UnixStream>,
        function: &Function,
        log: Arc<dyn Fn(&str) + Send + Sync>,
    ) -> Result<Session, StartError> {
        let (layout, number) = (Layout::new(function.queue_pairs), function.number);
        let file = memory_file(layout.bar0_bytes())?;
        let page = || Mapping::new(&file, DOORBELLS, layout.doorbell_bytes() as usize, true);
        let (doorbells, watched) = (page()?, page()?);
        let ((acts, inbox), (present, presence)) = (channel(), channel());
        let (mode, rung) = (function.doorbells, Arc::<AtomicBool>::default());
        let told = rung.clone();
        function.handle.attach(
            function.drive,
            Box::new(move |_| {
                let memory = Rc::new(Memory::default());
                let watch = Rc::new(Watch::new(watched, memory.clone(), mode, told));
                let interrupts = Interrupts::new(layout.vectors());
                let (held, doorbells) = (memory.clone(), watch.clone());
                let parts = Parts { acts: inbox, memory: held, interrupts, doorbells, present };
                let client = Box::new(Device::new(parts));
                NewHost { client, memory, vectors: layout.vectors(), function: number, doorbells: watch }
            }),
        )?;
        Ok(Session {
            stream,
            acts,
            present: presence,
            handle: function.handle.clone(),
            log,
            layout,
            mode,
            file: Arc::new(file),
            doorbells,
            rung,
            config: ConfigSpace::new(layout),
            table: vec![0; layout.pending_bits() as usize],
            maps: Maps::default(),
            agreed: false,
            told: false,
            writer: None,
            longest: 0,
        })
    }

    /// Answers messages until the client leaves. Afterwards none of its memory is used.
    ///
    /// # Errors
    /// Why the connection had to end.
    pub(crate) fn run(mut self) -> io::Result<()> {
        let outcome = self.answer_all();
        let Session { acts, present, handle, writer, stream, .. } = self;
        drop(acts);
        handle.wake();
        // It ends without a message.
        let _ = present.recv();
        if let Some(writer) = writer {
            // It may wait for a client that does not read.
            let _ = stream.shutdown(std::net::Shutdown::Both);
            writer.join();
        }
        outcome
    }

    fn answer_all(&mut self) -> io::Result<()> {
        while let Some(received) = channel::receive(&self.stream)? {
            if !received.header.is_command() {
                self.take_answer(received)?;
                continue;
            }
            let header = received.header;
            let outcome = self.answer(received);
            let version = !self.agreed;
            if header.wants_reply() {
                self.reply(&header, &outcome)?;
            }
            if version {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "no version was agreed on"));
            }
            if let Err(Errno::EIO) = outcome {
                return Err(io::Error::other("the drive has ended"));
            }
        }
        Ok(())
    }

    fn reply(&self, header: &Header, outcome: &Result<Reply, Errno>) -> io::Result<()> {
        match outcome {
            Ok(Reply { payload, descriptor }) => {
                let message = [header.reply(payload.len()).as_bytes(), payload].concat();
                self.send(message, *descriptor)
            }
            Err(errno) => self.send(header.failure(*errno).as_bytes().to_vec(), false),
        }
    }

    /// Sends a message, perhaps with the descriptor of the doorbells, behind all earlier requests to the client.
    fn send(&self, message: Vec<u8>, descriptor: bool) -> io::Result<()> {
        match &self.writer {
            Some(writer) => writer.reply(message, descriptor.then(|| self.file.clone())),
            None => channel::send(&self.stream, &message, descriptor.then_some(self.file.as_fd())),
        }
    }

    /// Takes a reply of the client. A reply without a request is ignored.
    fn take_answer(&self, received: Received) -> io::Result<()> {
        if self.writer.is_none() {
            return Ok(());
        }
        let (id, refused) = (received.header.id.get(), received.header.flags.get() & Header::ERROR != 0);
        let payload = received.payload.filter(|_| !refused);
        let taken = self.call(move |device, intake| device.answered(id, payload, intake));
        taken.map_err(|_| io::Error::other("the drive has ended"))
    }

    fn answer(&mut self, received: Received) -> Result<Reply, Errno> {
        let Received { header, payload, descriptors } = received;
        let payload = payload.ok_or(Errno::E2BIG)?;
        let descriptors = descriptors.ok_or(Errno::EINVAL)?;
        let request = Request::parse(header.command.get(), &payload).map_err(|rejected| {
            (self.log)(&format!("vfio-user: a message was refused: {rejected}"));
            rejected.errno()
        })?;
        match request {
            Request::Version(version, capabilities) => self.agree(version, &capabilities),
            _ if !self.agreed => Err(Errno::EINVAL),
            Request::DmaMap(map) => self.map(&map, descriptors),
            Request::DmaUnmap(unmap) => self.unmap(&unmap),
            Request::DeviceInfo(asked) => device_info(&asked),
            Request::RegionInfo(asked) => self.region_info(&asked),
            Request::InterruptInfo(asked) => self.interrupt_info(&asked),
            Request::SetInterrupts(set, data, action) => self.set_interrupts(&set, data, action, descriptors),
            Request::Read(access) => self.read_region(&access),
            Request::Write(access, data) => self.write_region(&access, data),
            Request::Reset => self.reset().map(|()| Reply::of(&[])),
        }
    }

    /// Has something done on the reactor's thread, and waits for it.
    ///
    /// # Errors
    /// EIO when the reactor has ended.
    pub(crate) fn call<R: Send + 'static>(
        &self,
        act: impl FnOnce(&mut Device, &mut Intake<'_>) -> R + Send + 'static,
    ) -> Result<R, Errno> {
        let (tell, told) = channel();
        let act: Act = Box::new(move |device, intake| drop(tell.send(act(device, intake))));
        self.acts.send(act).map_err(|_| Errno::EIO)?;
        self.handle.wake();
        told.recv().map_err(|_| Errno::EIO)
    }

    fn agree(&mut self, version: Version, of_client: &Capabilities) -> Result<Reply, Errno> {
        if self.agreed || version.major.get() != MAJOR {
            return Err(Errno::EINVAL);
        }
        self.agreed = true;
        self.longest = of_client.max_data_xfer_size;
        let version = Version { major: MAJOR.into(), minor: MINOR.into() };
        let capabilities = Capabilities {
            max_msg_fds: MAX_DESCRIPTORS as u64,
            max_data_xfer_size: MAX_DATA as u64,
            max_dma_maps: MAX_MAPS as u64,
            pgsizes: PAGE,
        };
        Ok(Reply::of(&[version.as_bytes(), &capabilities.to_bytes()].concat()))
    }

    fn map(&mut self, map: &DmaMap, descriptors: Vec<OwnedFd>) -> Result<Reply, Errno> {
        let address = map.address.get();
        let mapping = self.maps.add(map, descriptors).map_err(|refused| {
            (self.log)(&format!("vfio-user: a map at {address:#x} was refused: {}", refused.1));
            refused.0
        })?;
        match mapping {
            Some(mapping) => {
                self.call(move |device, _| device.memory.guest.map(address, mapping))?.map_err(|_| Errno::EINVAL)?
            }
            None => self.map_remote(map)?,
        }
        Ok(Reply::of(&[]))
    }

    /// Memory that only the client reaches, by requests to it.
    fn map_remote(&mut self, map: &DmaMap) -> Result<(), Errno> {
        self.tell_unshared(map);
        if self.longest < LONGEST_ASK as u64 {
            // It could not answer: the memory cannot be reached.
            return Ok(());
        }
        if self.writer.is_none() {
            let writer = Writer::start(self.stream.clone()).map_err(|_| Errno::EIO)?;
            let queue = writer.queue();
            self.call(move |device, _| device.asks_by(queue))?;
            self.writer = Some(writer);
        }
        let (address, size) = (map.address.get(), map.size.get());
        let is_writable = map.flags.get() & DmaMap::WRITE != 0;
        self.call(move |device, _| device.memory.guest.map_remote(address, size, is_writable))?
            .map_err(|_| Errno::EINVAL)
    }

    /// Guests have ROM and device registers without descriptors; main memory is larger.
    fn tell_unshared(&mut self, map: &DmaMap) {
        const SMALLEST_MEMORY: u64 = 32 << 20;
        if map.size.get() >= SMALLEST_MEMORY && !std::mem::replace(&mut self.told, true) {
            let (mib, address) = (map.size.get() >> 20, map.address.get());
            (self.log)(&format!(
                "vfio-user: {mib} MiB of memory at {address:#x} came without a descriptor and is reached by messages, which \
                 is slow; QEMU shares memory with -object memory-backend-memfd,share=on"
            ));
        }
    }

    /// When the reply is sent, no access to the memory is under way or will begin.
    fn unmap(&mut self, unmap: &DmaUnmap) -> Result<Reply, Errno> {
        let removed = self.maps.remove(unmap).map_err(|refused| {
            (self.log)(&format!("vfio-user: a range at {:#x} was not unmapped: {}", unmap.address.get(), refused.1));
            refused.0
        })?;
        if !removed.is_empty() {
            self.call(move |device, _| {
                for (address, size) in removed {
                    // Memory of a client that takes too short messages was never mapped.
                    let _ = device.memory.guest.unmap(address, size);
                }
            })?;
        }
        Ok(Reply::of(unmap.as_bytes()))
    }

    fn interrupt_count(&self, index: u32) -> Result<u32, Errno> {
        match index {
            interrupt::MSIX => Ok(self.layout.vectors().into()),
            0..interrupt::COUNT => Ok(0),
            _ => Err(Errno::EINVAL),
        }
    }

    fn interrupt_info(&self, asked: &InterruptInfo) -> Result<Reply, Errno> {
        let size = size_of::<InterruptInfo>() as u32;
        let (index, count) = (asked.index, self.interrupt_count(asked.index.get())?);
        if asked.argsz.get() < size {
            return Err(Errno::EINVAL);
        }
        let flags = if count > 0 { InterruptInfo::EVENTFD | InterruptInfo::MASKABLE } else { 0 };
        Ok(Reply::of(InterruptInfo { argsz: size.into(), flags: flags.into(), index, count: count.into() }.as_bytes()))
    }

    fn set_interrupts(
        &self,
        set: &InterruptSet,
        data: SetData<'_>,
        action: Action,
        descriptors: Vec<OwnedFd>,
    ) -> Result<Reply, Errno> {
        let (there, start, count) = (self.interrupt_count(set.index.get())?, set.start.get(), set.count.get());
        let end = start.checked_add(count).filter(|end| *end <= there).ok_or(Errno::EINVAL)?;
        let all = start as u16..end as u16;
        let fits = descriptors.is_empty() || data == SetData::Descriptors && descriptors.len() == all.len();
        if !fits {
            return Err(Errno::EINVAL);
        }
        match (data, action) {
            (SetData::All, Action::Trigger) if count == 0 => self.call(|device, _| device.interrupts.disconnect()),
            (SetData::Descriptors, Action::Trigger) => self.connect(all, descriptors),
            (SetData::Descriptors, _) => Err(Errno::EOPNOTSUPP),
            (SetData::All, action) => self.act_on(all.collect(), action),
            (SetData::Some(which), action) => {
                self.act_on(all.zip(which).filter(|(_, byte)| **byte != 0).map(|(vector, _)| vector).collect(), action)
            }
        }?;
        Ok(Reply::of(&[]))
    }

    /// Connects vectors with a descriptor each, or with none.
    fn connect(&self, vectors: std::ops::Range<u16>, descriptors: Vec<OwnedFd>) -> Result<(), Errno> {
        let events: Option<Vec<Event>> = descriptors.into_iter().map(Event::new).collect();
        let mut events = events.ok_or(Errno::EINVAL)?.into_iter();
        self.call(move |device, _| vectors.for_each(|vector| device.interrupts.connect(vector, events.next())))
    }

    fn act_on(&self, vectors: Vec<u16>, action: Action) -> Result<(), Errno> {
        self.call(move |device, _| {
            for vector in vectors {
                match action {
                    Action::Mask => device.interrupts.mask(vector, true),
                    Action::Unmask => device.interrupts.mask(vector, false),
                    Action::Trigger => device.interrupts.raise(vector),
                }
            }
            device.interrupts.send();
        })
    }
}

fn device_info(asked: &DeviceInfo) -> Result<Reply, Errno> {
    let size = size_of::<DeviceInfo>() as u32;
    if asked.argsz.get() < size {
        return Err(Errno::EINVAL);
    }
    let info = DeviceInfo {
        argsz: size.into(),
        flags: (DeviceInfo::RESET | DeviceInfo::PCI).into(),
        regions: region::COUNT.into(),
        interrupts: interrupt::COUNT.into(),
    };
    Ok(Reply::of(info.as_bytes()))
}
