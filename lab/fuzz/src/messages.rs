//! Parsers of messages: a message is either rejected with a reason, or its parts have the sizes in its header.

use nandscape_wire_kv::{Frame, Reply, Request as KvRequest, split};
use nandscape_wire_nvme::tcp::{Common, Digests, MAX_HEADER, Receiver, Shape};
use nandscape_wire_vfio_user::Request;
use nandscape_wire_vfio_user::request::SetData;
use nandscape_wire_vfio_user::version::Capabilities;
use zerocopy::FromBytes as _;

use crate::input::Input;

/// Checks the header of an NVMe/TCP PDU, as a controller and as a host.
///
/// # Panics
/// When the parts of a PDU do not sum to its length, or its data exceed the limit.
pub fn nvme_tcp_pdu(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let choice = input.byte();
    let digests = Digests { header: choice & 1 != 0, data: choice & 2 != 0 };
    let receiver = if choice & 4 != 0 { Receiver::Host } else { Receiver::Controller };
    let most = input.number32();
    let header = Common::read_from_bytes(&input.array::<8>()).expect("8 bytes are a header");
    match Shape::of(&header, receiver, digests, most) {
        Ok(shape) => {
            assert_eq!(shape.len(), header.len.get() as usize, "{header:?}");
            assert!(shape.lead() <= shape.len() && shape.header <= MAX_HEADER, "{header:?}");
            assert!(shape.data <= most.max(MAX_HEADER as u32) as usize, "{header:?}");
        }
        Err(fatal) => assert!(!fatal.to_string().is_empty()),
    }
}

/// Parses a message of vfio-user.
///
/// # Panics
/// When an accepted message differs from the sizes in its header, or a rejected one has no error number.
pub fn vfio_user_message(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let command = u16::from(input.byte());
    let payload = input.rest();
    // The capabilities of a client are JSON.
    let _ = Capabilities::parse(payload);
    match Request::parse(command, payload) {
        Ok(Request::Write(access, data)) => assert_eq!(access.count.get() as usize, data.len()),
        Ok(Request::SetInterrupts(set, SetData::Some(which), _)) => assert_eq!(set.count.get() as usize, which.len()),
        Ok(Request::DmaMap(map)) => {
            let (address, size) = (map.address.get(), map.size.get());
            assert!(size > 0 && address.checked_add(size - 1).is_some(), "{map:?}");
        }
        Ok(_) => {}
        Err(rejected) => assert!(rejected.errno().0 > 0 && !rejected.to_string().is_empty()),
    }
}

/// Takes a stream of frames of the key-value store apart, as server and as client.
///
/// # Panics
/// When an accepted message changes by being written and read again, or a rejected one gives no reason.
pub fn kv_message(bytes: &[u8]) {
    let mut rest = bytes;
    loop {
        let len = match split(rest) {
            Ok(Some(len)) => len,
            Ok(None) => return,
            Err(malformed) => return assert!(!malformed.to_string().is_empty()),
        };
        let (frame, behind) = rest.split_at(len);
        rest = behind;
        let frame = Frame::parse(frame).expect("it was split off as one");
        match KvRequest::parse(&frame) {
            Ok(request) => {
                let again = request.to_frame(frame.id).expect("it came in a frame");
                let again = Frame::parse(&again).expect("a frame");
                assert_eq!(KvRequest::parse(&again), Ok(request));
            }
            Err(malformed) => assert!(!malformed.to_string().is_empty()),
        }
        match Reply::parse(&frame) {
            Ok(reply) => {
                let again = reply.to_frame(frame.id);
                let again = Frame::parse(&again).expect("a frame");
                assert_eq!(Reply::parse(&again), Ok(reply));
            }
            Err(malformed) => assert!(!malformed.to_string().is_empty()),
        }
    }
}
