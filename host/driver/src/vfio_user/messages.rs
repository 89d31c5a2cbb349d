//! Messages to a vfio-user server, one at a time, and its answers. A doorbell message expects no answer.

use std::cell::{Cell, RefCell};
use std::io::{self, IoSlice, IoSliceMut, Read as _, Write as _};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use nandscape_wire_vfio_user::access::{DmaMap, RegionAccess};
use nandscape_wire_vfio_user::device::{InterruptSet, interrupt, region};
use nandscape_wire_vfio_user::version::{Capabilities, MAJOR, Version};
use nandscape_wire_vfio_user::{Command, Header};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
    recvmsg, sendmsg,
};
use zerocopy::{FromZeros as _, IntoBytes as _};

use super::FunctionError;
use crate::stream::{Limit, Limited, connect_unix, in_words};

/// The longest wait for an answer.
pub(super) const ANSWER: Duration = Duration::from_secs(10);
/// The longest answer: a descriptor of a region and its capabilities, or some dwords.
const MAX_ANSWER: usize = 64 << 10;
/// Descriptors in an answer.
const DESCRIPTORS: usize = 4;

/// See the module.
pub(super) struct Messages {
    stream: UnixStream,
    /// Number of the next message.
    next: Cell<u16>,
    /// Doorbells sent.
    posted: Cell<u64>,
    /// Descriptors of the last answer.
    received: RefCell<Vec<OwnedFd>>,
}

impl Messages {
    /// Connects and agrees on the version.
    pub(super) fn connect(path: &Path) -> Result<Messages, FunctionError> {
        let stream = connect_unix(path, ANSWER).map_err(|error| in_words(error, ANSWER))?;
        stream.set_read_timeout(Some(ANSWER))?;
        stream.set_write_timeout(Some(ANSWER))?;
        let messages = Messages { stream, next: Cell::new(1), posted: Cell::default(), received: RefCell::default() };
        let capabilities = Capabilities { max_msg_fds: DESCRIPTORS as u64, ..Capabilities::default() };
        let offer = [Version::default().as_bytes(), &capabilities.to_bytes()].concat();
        let agreed = messages.call("the version", Command::VERSION, &offer, &[])?;
        match agreed.first_chunk() {
            Some(major) if u16::from_le_bytes(*major) == MAJOR => Ok(messages),
            _ => Err(FunctionError::unusable("the server speaks another version of vfio-user")),
        }
    }

    /// Sends a message and waits for the answer: its payload.
    pub(super) fn call(
        &self,
        what: &'static str,
        command: Command,
        payload: &[u8],
        descriptors: &[BorrowedFd<'_>],
    ) -> Result<Vec<u8>, FunctionError> {
        let header = self.header(command, payload.len());
        let sent = self.send(&[header.as_bytes(), payload].concat(), descriptors).map_err(FunctionError::Io);
        let (answer, payload) = sent.and_then(|()| self.receive()).map_err(|error| match error {
            FunctionError::Io(error) => FunctionError::Io(in_words(error, ANSWER)),
            other => other,
        })?;
        if (answer.id, answer.command, answer.is_command()) != (header.id, header.command, false) {
            return Err(FunctionError::unusable(format!("{what}: the server answers another message")));
        }
        match answer.flags.get() & Header::ERROR {
            0 => Ok(payload),
            _ => Err(FunctionError::Refused { message: what, errno: answer.error.get() }),
        }
    }

    fn header(&self, command: Command, payload: usize) -> Header {
        let id = self.next.get();
        self.next.set(id.wrapping_add(1));
        Header::command(id, command, payload)
    }

    fn send(&self, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !descriptors.is_empty() && !control.push(SendAncillaryMessage::ScmRights(descriptors)) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let sent = sendmsg(&self.stream, &[IoSlice::new(bytes)], &mut control, SendFlags::NOSIGNAL)?;
        (&self.stream).write_all(&bytes[sent..])
    }

    fn receive(&self) -> Result<(Header, Vec<u8>), FunctionError> {
        let (mut header, mut received) = (Header::new_zeroed(), Vec::new());
        let (mut done, limit) = (0, Limit::new(ANSWER));
        while done < Header::BYTES {
            limit.set(&self.stream)?;
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
            let mut control = RecvAncillaryBuffer::new(&mut space);
            let mut into = [IoSliceMut::new(&mut header.as_mut_bytes()[done..])];
            let read = recvmsg(&self.stream, &mut into, &mut control, RecvFlags::CMSG_CLOEXEC);
            let read = read.map_err(io::Error::from)?.bytes;
            for message in control.drain() {
                if let RecvAncillaryMessage::ScmRights(descriptors) = message {
                    received.extend(descriptors);
                }
            }
            if read == 0 {
                return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
            }
            done += read;
        }
        let size = (header.size.get() as usize).checked_sub(Header::BYTES).filter(|size| *size <= MAX_ANSWER);
        let size = size.ok_or_else(|| FunctionError::unusable("the server's answer has no valid length"))?;
        let mut payload = vec![0; size];
        Limited { socket: &self.stream, limit: &limit }.read_exact(&mut payload)?;
        self.received.replace(received);
        Ok((header, payload))
    }

    /// The descriptor of the last answer.
    pub(super) fn descriptor(&self) -> Option<OwnedFd> {
        self.received.borrow_mut().pop()
    }

    /// Reads a dword of the controller's properties.
    pub(super) fn register(&self, offset: u32) -> Result<u32, FunctionError> {
        let access = access(region::BAR0, offset.into(), 4);
        let answer = self.call("a read of a property", Command::REGION_READ, access.as_bytes(), &[])?;
        let value = answer.get(size_of::<RegionAccess>()..).and_then(|value| value.first_chunk());
        value.map(|value| u32::from_le_bytes(*value)).ok_or_else(|| FunctionError::unusable("a property has no value"))
    }

    /// Writes to a region and waits until that is done.
    pub(super) fn write(&self, region: u32, offset: u64, data: &[u8]) -> Result<(), FunctionError> {
        let access = access(region, offset, data.len());
        let payload = [access.as_bytes(), data].concat();
        self.call("a write of a property", Command::REGION_WRITE, &payload, &[]).map(drop)
    }

    /// Writes a dword of BAR0 without waiting.
    pub(super) fn post(&self, offset: u64, value: u32) -> io::Result<()> {
        const LEN: usize = size_of::<RegionAccess>() + 4;
        let mut header = self.header(Command::REGION_WRITE, LEN);
        header.flags = Header::NO_REPLY.into();
        let mut bytes = [0; Header::BYTES + LEN];
        bytes[..Header::BYTES].copy_from_slice(header.as_bytes());
        bytes[Header::BYTES..Header::BYTES + LEN - 4].copy_from_slice(access(region::BAR0, offset, 4).as_bytes());
        bytes[Header::BYTES + LEN - 4..].copy_from_slice(&value.to_le_bytes());
        self.posted.set(self.posted.get() + 1);
        (&self.stream).write_all(&bytes)
    }

    /// The socket.
    pub(super) fn connection(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }

    /// Doorbells sent as messages so far.
    pub(super) fn posted(&self) -> u64 {
        self.posted.get()
    }

    /// Lets the device reach memory.
    pub(super) fn map(&self, address: u64, size: u64, file: BorrowedFd<'_>) -> Result<(), FunctionError> {
        let flags = (DmaMap::READ | DmaMap::WRITE).into();
        let argsz = (size_of::<DmaMap>() as u32).into();
        let map = DmaMap { argsz, flags, offset: 0.into(), address: address.into(), size: size.into() };
        self.call("a map of memory", Command::DMA_MAP, map.as_bytes(), &[file]).map(drop)
    }

    /// Has the first vector signal an event descriptor.
    pub(super) fn interrupt(&self, event: BorrowedFd<'_>) -> Result<(), FunctionError> {
        let set = InterruptSet {
            argsz: (size_of::<InterruptSet>() as u32).into(),
            flags: (InterruptSet::DATA_EVENTFD | InterruptSet::ACTION_TRIGGER).into(),
            index: interrupt::MSIX.into(),
            start: 0.into(),
            count: 1.into(),
        };
        self.call("an interrupt", Command::DEVICE_SET_IRQS, set.as_bytes(), &[event]).map(drop)
    }
}

fn access(region: u32, offset: u64, bytes: usize) -> RegionAccess {
    RegionAccess { offset: offset.into(), region: region.into(), count: (bytes as u32).into() }
}
