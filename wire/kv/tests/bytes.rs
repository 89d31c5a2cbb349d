//! Messages survive their way through bytes; any other bytes give an error, and no panic.

use nandscape_wire_kv::{Frame, Load, MAX_FRAME, MAX_KEY, MAX_VALUE, Malformed, Refusal, Reply, Request, split};
use proptest::prelude::*;

fn requests(key: &[u8], value: &[u8], number: u64) -> [Vec<u8>; 3] {
    let get = Request::Get { deadline_us: number as u32, tell_begun: number & 1 == 1, key };
    [get, Request::Put { version: number, key, value }, Request::Cancel].map(|one| one.to_frame(number).unwrap())
}

fn replies<'a>(value: &'a [u8], number: u64, text: &'a str) -> [Reply<'a>; 7] {
    let load = Load { queue: number as u32, service_us: (number >> 32) as u32 };
    [
        Reply::Value { load, version: number, value },
        Reply::Missing { load },
        Reply::Stored { load },
        Reply::Busy { load, wait_us: number as u32 },
        Reply::Begun,
        Reply::Cancelled,
        Reply::Refused { why: Refusal::Corrupt, text },
    ]
}

fn parse_all(bytes: &[u8]) {
    if let Ok(Some(len)) = split(bytes) {
        let frame = Frame::parse(&bytes[..len]).expect("a whole frame");
        let _ = (Request::parse(&frame), Reply::parse(&frame));
    }
}

proptest! {
    #[test]
    fn messages_survive(
        key in prop::collection::vec(any::<u8>(), 1..=MAX_KEY),
        value in prop::collection::vec(any::<u8>(), 0..3_000),
        number in any::<u64>(),
    ) {
        let frames = requests(&key, &value, number);
        let stream = frames.concat();
        let mut rest = &stream[..];
        for frame in &frames {
            let len = split(rest).unwrap().unwrap();
            prop_assert_eq!(&rest[..len], &frame[..]);
            let parsed = Frame::parse(frame).unwrap();
            prop_assert_eq!(parsed.id, number);
            prop_assert_eq!(&Request::parse(&parsed).unwrap().to_frame(number).unwrap(), frame);
            let is_none = matches!(Reply::parse(&parsed), Err(Malformed::Kind(_) | Malformed::Flags { .. }));
            prop_assert!(is_none, "a request is no reply");
            rest = &rest[len..];
        }
        prop_assert_eq!(split(rest), Ok(None));
        for reply in replies(&value, number, "the drive is full") {
            let frame = reply.to_frame(number);
            let parsed = Frame::parse(&frame).unwrap();
            prop_assert_eq!((parsed.id, Reply::parse(&parsed).unwrap()), (number, reply));
            prop_assert!(matches!(Request::parse(&parsed), Err(Malformed::Kind(_))));
        }
    }

    #[test]
    fn cut_and_changed_frames_give_errors(
        key in prop::collection::vec(any::<u8>(), 1..20),
        value in prop::collection::vec(any::<u8>(), 0..50),
        number in any::<u64>(),
        place in any::<prop::sample::Index>(),
        byte in any::<u8>(),
    ) {
        let replies = replies(&value, number, "text").map(|reply| reply.to_frame(number));
        for mut frame in requests(&key, &value, number).into_iter().chain(replies) {
            let cut = place.index(frame.len());
            prop_assert_eq!(split(&frame[..cut]), Ok(None));
            frame[cut] = byte;
            parse_all(&frame);
        }
    }

    #[test]
    fn any_bytes_give_a_message_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..200), kind in any::<u8>()) {
        parse_all(&bytes);
        // With a valid beginning, so that the body is parsed.
        let mut frame = ((bytes.len() + 12) as u32).to_le_bytes().to_vec();
        frame.extend_from_slice(&[1, kind, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0]);
        frame.extend_from_slice(&bytes);
        parse_all(&frame);
    }
}

#[test]
fn lengths_are_bounded_on_both_sides() {
    let long = vec![1; MAX_KEY + 1];
    let get = |key| Request::Get { deadline_us: 0, tell_begun: false, key }.to_frame(1);
    assert_eq!((get(&long[..]), get(&[])), (Err(Malformed::Key(1_025)), Err(Malformed::Key(0))));
    let value = vec![0; MAX_VALUE + 1];
    let put = |key, value| Request::Put { version: 1, key, value }.to_frame(1);
    assert_eq!(put(&long[1..], &value), Err(Malformed::Value(MAX_VALUE + 1)));
    assert_eq!(put(&long[1..], &value[1..]).unwrap().len(), MAX_FRAME + 4, "the longest frame there is");
    let length = |len: u32| split(&len.to_le_bytes());
    assert_eq!(length(11), Err(Malformed::Length(11)));
    assert_eq!(length(u32::MAX), Err(Malformed::Length(u32::MAX.into())));
    assert_eq!((length(12), length(MAX_FRAME as u32)), (Ok(None), Ok(None)));
    assert_eq!(split(&[12, 0, 0, 0, 2]), Err(Malformed::Version(2)), "before the rest has come");
    let text = "é".repeat(400);
    let refused = Reply::Refused { why: Refusal::Full, text: &text }.to_frame(1);
    assert!(
        matches!(Reply::parse(&Frame::parse(&refused).unwrap()), Ok(Reply::Refused { text, .. }) if text.len() == 512)
    );
}
