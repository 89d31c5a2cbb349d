//! Splits long requests into parts: a request of 28 bytes may request 32 MiB of data, or the zeroing or unmapping of 4
//! GiB. As one piece it would hold much memory, and occupy the drive for long.

use nandscape_transport_reactor::LARGEST;
use nandscape_wire_nbd::{Request, command};

/// Bytes of data of one part at most: a buffer.
pub(crate) const DATA_PART: u32 = LARGEST as u32;
/// Bytes that a part without data affects at most.
pub(crate) const PART: u32 = 4 << 20;

/// The place of a request's next part on the drive after `given` submitted bytes: offset and length. Requests that
/// change the drive are cut at multiples of the greatest length, so that no two parts share a mapping unit.
pub(crate) fn next_part(request: &Request, given: u32) -> (u64, u32) {
    let offset = request.offset.get() + u64::from(given);
    let to_boundary = |most: u32| most - (offset % u64::from(most)) as u32;
    let most = match request.kind.get() {
        command::READ => DATA_PART,
        command::WRITE => to_boundary(DATA_PART),
        _ => to_boundary(PART),
    };
    (offset, most.min(request.len.get() - given))
}

#[cfg(test)]
mod tests {
    use nandscape_wire_nbd::REQUEST_MAGIC;

    use super::*;

    fn parts(kind: u16, offset: u64, len: u32) -> Vec<(u64, u32)> {
        let (magic, flags, cookie) = (REQUEST_MAGIC.into(), 0.into(), 0.into());
        let request = Request { magic, flags, kind: kind.into(), cookie, offset: offset.into(), len: len.into() };
        let mut given = 0;
        let next = || (given < len).then(|| next_part(&request, given)).inspect(|(_, now)| given += now);
        std::iter::from_fn(next).collect()
    }

    #[test]
    fn parts_follow_one_another_without_gap_or_overlap() {
        for kind in [command::READ, command::WRITE, command::TRIM] {
            for (offset, len) in
                [(0, u32::MAX - 511), (512, 32 << 20), (DATA_PART.into(), DATA_PART), (PART.into(), 512)]
            {
                let mut next = offset;
                for (at, now) in parts(kind, offset, len) {
                    assert!(at == next && now > 0 && now <= PART);
                    next += u64::from(now);
                }
                assert_eq!(next, offset + u64::from(len));
            }
        }
        assert_eq!(parts(command::WRITE, 512, 2 * DATA_PART).len(), 3);
        assert_eq!(parts(command::READ, 512, 2 * DATA_PART).len(), 2);
    }
}
