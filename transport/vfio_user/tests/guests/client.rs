//! A client of vfio-user: sends commands with descriptors and takes the replies.

use std::io::{IoSlice, IoSliceMut, Read as _};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;

use nandscape_drive::mem::Mapping;
use nandscape_drive::mem::mapping::memory_file;
use nandscape_wire_vfio_user::access::{DmaAccess, DmaMap, DmaUnmap, RegionAccess};
use nandscape_wire_vfio_user::device::InterruptSet;
use nandscape_wire_vfio_user::version::{Capabilities, Version};
use nandscape_wire_vfio_user::{Command, Errno, Header};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
    recvmsg, sendmsg,
};
use zerocopy::{FromZeros as _, IntoBytes as _};

use crate::host::PATIENCE;

/// The answer to a command: data, or an error number.
pub(crate) type Answer = Result<Vec<u8>, u32>;

/// See the module.
pub(crate) struct Client {
    pub(crate) stream: UnixStream,
    next: u16,
    /// Descriptors of the last reply.
    pub(crate) received: Vec<OwnedFd>,
    /// The memory that the server requests.
    pub(crate) served: Option<Served>,
}

/// Memory that is reached by messages.
pub(crate) struct Served {
    pub(crate) base: u64,
    pub(crate) memory: Mapping,
    /// Bytes of the count before the data: 8, or 4 as QEMU has it.
    pub(crate) count_bytes: usize,
    /// Messages of the server so far.
    pub(crate) asked: u32,
}

impl Client {
    /// Connects, and agrees on nothing yet.
    pub(crate) fn connect(path: &Path) -> Client {
        let stream = UnixStream::connect(path).unwrap();
        // A missing reply ends the test.
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Client { stream, next: 1, received: Vec::new(), served: None }
    }

    /// Connects and agrees on the version.
    pub(crate) fn agree(path: &Path) -> Client {
        let mut client = Client::connect(path);
        let reply = client.version().unwrap();
        assert!(Capabilities::parse(&reply[4..]).unwrap().max_msg_fds >= 8);
        client
    }

    pub(crate) fn version(&mut self) -> Answer {
        let data = Capabilities { max_msg_fds: 8, ..Capabilities::default() }.to_bytes();
        self.call(Command::VERSION, &[Version::default().as_bytes(), &data].concat())
    }

    /// Sends a command without waiting for its reply.
    pub(crate) fn send(&mut self, command: Command, payload: &[u8], descriptors: &[BorrowedFd<'_>]) -> Header {
        let header = Header::command(self.next, command, payload.len());
        self.next = self.next.wrapping_add(1);
        self.send_bytes(&[header.as_bytes(), payload].concat(), descriptors);
        header
    }

    /// Sends bytes. A server that has hung up does not take them.
    pub(crate) fn send_bytes(&self, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(64))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !descriptors.is_empty() {
            assert!(control.push(SendAncillaryMessage::ScmRights(descriptors)));
        }
        let mut done = 0;
        while done < bytes.len() {
            let Ok(sent) = sendmsg(&self.stream, &[IoSlice::new(&bytes[done..])], &mut control, SendFlags::NOSIGNAL)
            else {
                return;
            };
            control.clear();
            done += sent;
        }
    }

    /// Sends a command and takes its reply.
    pub(crate) fn call(&mut self, command: Command, payload: &[u8]) -> Answer {
        self.call_with(command, payload, &[])
    }

    pub(crate) fn call_with(&mut self, command: Command, payload: &[u8], descriptors: &[BorrowedFd<'_>]) -> Answer {
        let sent = self.send(command, payload, descriptors);
        let (header, data) = loop {
            let (header, data) = self.receive().expect("the server has hung up");
            if !header.is_command() {
                break (header, data);
            }
            self.serve(&header, &data);
        };
        assert_eq!((header.id, header.command, header.is_command()), (sent.id, sent.command, false));
        match header.flags.get() & Header::ERROR {
            0 => Ok(data),
            _ => Err(header.error.get()),
        }
    }

    /// Serves a request of the server, if one arrives within a moment.
    pub(crate) fn serve_next(&mut self) {
        let mut polled = [PollFd::new(&self.stream, PollFlags::IN)];
        let moment = Timespec { tv_sec: 0, tv_nsec: 1_000_000 };
        if poll(&mut polled, Some(&moment)).unwrap() > 0 {
            let (header, data) = self.receive().expect("the server has hung up");
            assert!(header.is_command(), "nothing was asked of the server");
            self.serve(&header, &data);
        }
    }

    /// Answers a command of the server.
    fn serve(&mut self, header: &Header, payload: &[u8]) {
        let Some(served) = &mut self.served else { return };
        served.asked += 1;
        let reply = served.answer(Command(header.command.get()), payload);
        let bytes = match &reply {
            Some(reply) => [header.reply(reply.len()).as_bytes(), reply].concat(),
            None => header.failure(Errno::EINVAL).as_bytes().to_vec(),
        };
        self.send_bytes(&bytes, &[]);
    }

    /// The next reply; `None` when the server has hung up.
    pub(crate) fn receive(&mut self) -> Option<(Header, Vec<u8>)> {
        let mut header = Header::new_zeroed();
        let mut done = 0;
        self.received.clear();
        while done < Header::BYTES {
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
            let mut control = RecvAncillaryBuffer::new(&mut space);
            let mut into = [IoSliceMut::new(&mut header.as_mut_bytes()[done..])];
            let read = recvmsg(&self.stream, &mut into, &mut control, RecvFlags::CMSG_CLOEXEC).ok()?.bytes;
            for message in control.drain() {
                if let RecvAncillaryMessage::ScmRights(descriptors) = message {
                    self.received.extend(descriptors);
                }
            }
            if read == 0 {
                return None;
            }
            done += read;
        }
        let mut data = vec![0; header.size.get() as usize - Header::BYTES];
        self.stream.read_exact(&mut data).ok()?;
        Some((header, data))
    }

    pub(crate) fn read(&mut self, region: u32, offset: u64, count: u32) -> Answer {
        let access = RegionAccess { offset: offset.into(), region: region.into(), count: count.into() };
        self.call(Command::REGION_READ, access.as_bytes()).map(|reply| reply[size_of::<RegionAccess>()..].to_vec())
    }

    pub(crate) fn read32(&mut self, region: u32, offset: u64) -> u32 {
        u32::from_le_bytes(self.read(region, offset, 4).unwrap().try_into().unwrap())
    }

    pub(crate) fn write(&mut self, region: u32, offset: u64, data: &[u8]) -> Answer {
        let access = RegionAccess { offset: offset.into(), region: region.into(), count: (data.len() as u32).into() };
        self.call(Command::REGION_WRITE, &[access.as_bytes(), data].concat())
    }

    pub(crate) fn map(&mut self, flags: u32, address: u64, size: u64, file: Option<(BorrowedFd<'_>, u64)>) -> Answer {
        let offset = file.map_or(0, |(_, offset)| offset).into();
        let map = DmaMap { argsz: 32.into(), flags: flags.into(), offset, address: address.into(), size: size.into() };
        let descriptors: Vec<BorrowedFd<'_>> = file.into_iter().map(|(file, _)| file).collect();
        self.call_with(Command::DMA_MAP, map.as_bytes(), &descriptors)
    }

    pub(crate) fn unmap(&mut self, flags: u32, address: u64, size: u64) -> Answer {
        let (flags, address, size) = (flags.into(), address.into(), size.into());
        self.call(Command::DMA_UNMAP, DmaUnmap { argsz: 24.into(), flags, address, size }.as_bytes())
    }

    pub(crate) fn interrupts(&mut self, flags: u32, start: u32, count: u32, events: &[BorrowedFd<'_>]) -> Answer {
        let (flags, start, count) = (flags.into(), start.into(), count.into());
        let set = InterruptSet { argsz: 20.into(), flags, index: 2.into(), start, count };
        self.call_with(Command::DEVICE_SET_IRQS, set.as_bytes(), events)
    }
}

impl Served {
    /// Refuses all requests.
    pub(crate) fn refusing() -> Served {
        let memory = Mapping::new(&memory_file(4_096).unwrap(), 0, 4_096, true).unwrap();
        Served { base: u64::MAX, memory, count_bytes: 8, asked: 0 }
    }

    /// The payload of a reply; `None` refuses.
    fn answer(&self, command: Command, payload: &[u8]) -> Option<Vec<u8>> {
        let head = 8 + self.count_bytes;
        let address = u64::from_le_bytes(payload.get(..8)?.try_into().ok()?);
        let mut count = [0; 8];
        count[..self.count_bytes].copy_from_slice(payload.get(8..head)?);
        let (at, count) = (address.checked_sub(self.base)? as usize, u64::from_le_bytes(count) as usize);
        if count > 1 << 20 {
            return None;
        }
        let mut reply = payload[..size_of::<DmaAccess>()].to_vec();
        match command {
            Command::DMA_READ => {
                reply.resize(size_of::<DmaAccess>() + count, 0);
                self.memory.read(at, &mut reply[head..head + count]).ok()?;
            }
            Command::DMA_WRITE => self.memory.write(at, payload.get(head..head + count)?).ok()?,
            _ => return None,
        }
        Some(reply)
    }
}
