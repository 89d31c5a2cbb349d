//! A client's end of a vfio-user socket: messages with descriptors.

use std::io::{IoSlice, Read as _};
use std::mem::MaybeUninit;
use std::net::Shutdown;
use std::os::fd::BorrowedFd;
use std::os::unix::net::UnixStream;

use nandscape_wire_vfio_user::version::{Capabilities, Version};
use nandscape_wire_vfio_user::{Command, Header};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use zerocopy::{FromBytes as _, IntoBytes as _};

use super::take_rest;

/// See the module.
pub(super) struct Channel {
    stream: UnixStream,
    next: u16,
    /// The server may take what follows for the rest of a message, and answer it or not.
    is_astray: bool,
}

impl Channel {
    pub(super) fn new(stream: UnixStream) -> Channel {
        Channel { stream, next: 0, is_astray: false }
    }

    /// Agrees on the version.
    pub(super) fn agree(&mut self) -> bool {
        let data = Capabilities { max_msg_fds: 8, ..Capabilities::default() }.to_bytes();
        self.call(Command::VERSION, &[Version::default().as_bytes(), &data].concat(), &[])
    }

    /// Sends a sound message and takes its reply; whether the server is still there.
    pub(super) fn call(&mut self, command: Command, payload: &[u8], descriptors: &[BorrowedFd<'_>]) -> bool {
        self.next = self.next.wrapping_add(1);
        let header = Header::command(self.next, command, payload.len());
        let is_sent = self.send(&[header.as_bytes(), payload].concat(), descriptors);
        is_sent && (self.is_astray || self.receive())
    }

    /// Sends what may be no message. From here on, no reply is waited for, and nothing is sent that would have to wait.
    pub(super) fn send_any(&mut self, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) -> bool {
        self.is_astray = true;
        self.stream.set_nonblocking(true).expect("a socket");
        self.send(bytes, descriptors)
    }

    /// Sends nothing more, and takes what comes until the server hangs up.
    pub(super) fn end(&self, takes_rest: bool) {
        self.stream.set_nonblocking(false).expect("a socket");
        // Fails when the server has hung up already.
        let _ = self.stream.shutdown(Shutdown::Write);
        if takes_rest {
            take_rest(&self.stream);
        }
    }

    /// Sends bytes; whether the server takes them.
    fn send(&self, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) -> bool {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(16))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !descriptors.is_empty() {
            control.push(SendAncillaryMessage::ScmRights(descriptors));
        }
        let mut done = 0;
        while done < bytes.len() {
            match sendmsg(&self.stream, &[IoSlice::new(&bytes[done..])], &mut control, SendFlags::NOSIGNAL) {
                Ok(sent) => done += sent,
                Err(_) => return false,
            }
            control.clear();
        }
        true
    }

    /// Takes a reply; its descriptors are dropped. Whether the server is still there.
    fn receive(&mut self) -> bool {
        let mut bytes = [0; Header::BYTES];
        if !read(&self.stream, &mut bytes) {
            return false;
        }
        let header = Header::read_from_bytes(&bytes).expect("a header");
        let rest = (header.size.get() as usize).checked_sub(Header::BYTES).expect("a reply has a header");
        read(&self.stream, &mut vec![0; rest])
    }
}

/// Reads all of it; `false` when the server has hung up.
///
/// # Panics
/// When the server neither answers nor hangs up.
fn read(mut stream: &UnixStream, bytes: &mut [u8]) -> bool {
    match stream.read_exact(bytes) {
        Ok(()) => true,
        Err(error) => {
            let waits = matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut);
            assert!(!waits, "the server neither answers nor hangs up");
            false
        }
    }
}
