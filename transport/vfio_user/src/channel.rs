//! Messages with descriptors over a unix socket. A message of any length is read whole, so that the beginning of the
//! next one is found: a message that is too long is discarded piece by piece.

use std::io::{self, IoSlice, IoSliceMut, Read as _};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use nandscape_wire_vfio_user::Header;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};
use zerocopy::{FromZeros as _, IntoBytes as _};

/// The most descriptors that are taken with a message.
pub(crate) const MAX_DESCRIPTORS: usize = 16;
/// The most bytes of data in a message.
pub(crate) const MAX_DATA: usize = 1 << 20;
/// The most bytes behind a header: the data, and the structure before it.
const MAX_PAYLOAD: usize = MAX_DATA + 64;
/// Bytes discarded at a time.
const PIECE: usize = 64 << 10;

/// A message from the client.
pub(crate) struct Received {
    pub(crate) header: Header,
    /// The data after the header; `None` if it is longer than the negotiable maximum.
    pub(crate) payload: Option<Vec<u8>>,
    /// Descriptors of the message; `None` if there were more than the negotiable maximum.
    pub(crate) descriptors: Option<Vec<OwnedFd>>,
}

/// Receives the next message; `None` when the client has left.
///
/// # Errors
/// When the connection breaks, or a message begins with no header.
pub(crate) fn receive(stream: &UnixStream) -> io::Result<Option<Received>> {
    let (mut header, mut descriptors, mut truncated) = (Header::new_zeroed(), Vec::new(), false);
    let bytes = header.as_mut_bytes();
    let mut done = 0;
    while done < bytes.len() {
        let (read, cut) = receive_some(stream, &mut bytes[done..], &mut descriptors)?;
        truncated |= cut;
        match read {
            0 if done == 0 => return Ok(None),
            0 => return Err(broke_off()),
            read => done += read,
        }
    }
    let size = header.size.get() as usize;
    let Some(rest) = size.checked_sub(Header::BYTES) else {
        return Err(io::Error::new(io::ErrorKind::InvalidData, format!("a message is said to have {size} bytes")));
    };
    let payload = receive_payload(stream, rest)?;
    truncated |= descriptors.len() > MAX_DESCRIPTORS;
    Ok(Some(Received { header, payload, descriptors: (!truncated).then_some(descriptors) }))
}

/// Receives bytes and descriptors; whether there were more descriptors than there is room for.
fn receive_some(stream: &UnixStream, into: &mut [u8], found: &mut Vec<OwnedFd>) -> io::Result<(usize, bool)> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let received = loop {
        match recvmsg(stream, &mut [IoSliceMut::new(into)], &mut control, RecvFlags::CMSG_CLOEXEC) {
            Err(rustix::io::Errno::INTR) => {}
            received => break received?,
        }
    };
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(descriptors) = message {
            found.extend(descriptors);
        }
    }
    Ok((received.bytes, received.flags.contains(ReturnFlags::CTRUNC)))
}

fn receive_payload(mut stream: &UnixStream, bytes: usize) -> io::Result<Option<Vec<u8>>> {
    if bytes <= MAX_PAYLOAD {
        // Room is made as data arrives, and not for the announced length.
        let mut payload = Vec::new();
        stream.take(bytes as u64).read_to_end(&mut payload)?;
        return if payload.len() == bytes { Ok(Some(payload)) } else { Err(broke_off()) };
    }
    let (mut left, mut piece) = (bytes, vec![0; PIECE]);
    while left > 0 {
        let part = left.min(PIECE);
        stream.read_exact(&mut piece[..part]).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => broke_off(),
            _ => error,
        })?;
        left -= part;
    }
    Ok(None)
}

/// The client has left before the end of a message.
fn broke_off() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "the client has left in the middle of a message")
}

/// Sends a message, and a descriptor with its first byte.
///
/// # Errors
/// When the connection breaks.
pub(crate) fn send(stream: &UnixStream, message: &[u8], descriptor: Option<BorrowedFd<'_>>) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let descriptors = descriptor.into_iter().collect::<Vec<_>>();
    if !descriptors.is_empty() {
        control.push(SendAncillaryMessage::ScmRights(&descriptors));
    }
    let mut done = 0;
    while done < message.len() {
        match sendmsg(stream, &[IoSlice::new(&message[done..])], &mut control, SendFlags::NOSIGNAL) {
            Ok(sent) => {
                done += sent;
                control.clear();
            }
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::os::fd::AsFd as _;

    use nandscape_wire_vfio_user::Command;

    use super::*;

    #[test]
    fn a_message_comes_with_its_descriptor_and_the_next_begins_where_it_ends() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let header = Header::command(3, Command::DMA_MAP, 2);
        send(&theirs, &[header.as_bytes(), &[7, 8]].concat(), Some(ours.as_fd())).unwrap();
        let writer = std::thread::spawn(move || {
            // One that is too long, in pieces.
            let long = Header::command(4, Command(99), 3 << 20);
            theirs.write_all(long.as_bytes()).unwrap();
            (0..3).for_each(|_| theirs.write_all(&vec![1; 1 << 20]).unwrap());
            theirs.write_all(Header::command(5, Command(1), 0).as_bytes()).unwrap();
            theirs.write_all(&[0; 5]).unwrap();
        });
        let first = receive(&ours).unwrap().unwrap();
        assert_eq!(
            (first.header, first.payload, first.descriptors.map(|all| all.len())),
            (header, Some(vec![7, 8]), Some(1))
        );
        let second = receive(&ours).unwrap().unwrap();
        assert!(second.payload.is_none() && second.header.id.get() == 4);
        let third = receive(&ours).unwrap().unwrap();
        assert_eq!((third.header.id.get(), third.payload), (5, Some(vec![])));
        assert!(receive(&ours).is_err(), "it breaks off");
        writer.join().unwrap();
        assert!(receive(&ours).unwrap().is_none(), "it has left");
    }

    #[test]
    fn a_client_that_leaves_in_the_middle_of_a_message_is_told_of() {
        let whole = |bytes: usize| Header::command(4, Command(99), bytes);
        for (announced, sent) in [(0, 5), (100, 99), (3 << 20, 10)] {
            let (ours, mut theirs) = UnixStream::pair().unwrap();
            let header = whole(announced);
            let message = [header.as_bytes(), &[0; 100]].concat();
            let sent = if announced == 0 { sent } else { Header::BYTES + sent };
            theirs.write_all(&message[..sent]).unwrap();
            drop(theirs);
            let error = receive(&ours).err().unwrap().to_string();
            assert_eq!(error, "the client has left in the middle of a message");
        }
    }

    #[test]
    fn a_header_that_is_shorter_than_itself_ends_the_connection() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let header = Header { size: 15.into(), ..Header::command(3, Command::VERSION, 0) };
        theirs.write_all(header.as_bytes()).unwrap();
        assert!(receive(&ours).is_err());
    }
}
