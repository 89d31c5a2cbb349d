//! Pages that are read together.

use nandscape_drive::{Drive, HostMem, Issuer};
use nandscape_wire_nvme::SubmissionEntry;
use nandscape_wire_nvme::lss::{LIST, MOST_BATCHED, PAGE};
use nandscape_wire_nvme::pieces::{LEAST_BATCH, Place};
use nandscape_wire_nvme::vendor::BATCHED_READ;
use zerocopy::FromBytes;

use super::PieceLimits;
use crate::Error;

/// Bytes of the length of a piece.
const LENGTH: usize = size_of::<u32>();

/// Reads the pieces of pages, the base first, in as few commands as the drive's limit allows, one after the other. A
/// page that does not exist has none. All pages of one command are of one instant.
///
/// # Errors
/// Why the drive did not serve a command.
pub async fn read_pieces(
    issuer: &Issuer,
    drive: &dyn Drive,
    limits: &PieceLimits,
    lpids: &[u64],
) -> Result<Vec<Vec<Vec<u8>>>, Error> {
    let mut found = vec![Vec::new(); lpids.len()];
    // The position of each page, and its expected bytes.
    let mut left: Vec<(usize, usize)> = (0..lpids.len()).map(|number| (number, limits.expected + LENGTH)).collect();
    while !left.is_empty() {
        let (count, bytes) = together(&left, limits);
        let some: Vec<u64> = left[..count].iter().map(|(number, _)| lpids[*number]).collect();
        let mut again = Vec::new();
        for ((number, _), page) in left.iter().zip(read_some(issuer, drive, &some, bytes).await?) {
            match page {
                Ok(pieces) => found[*number] = pieces,
                Err(bytes) => again.push((*number, bytes)),
            }
        }
        left.splice(..count, again);
    }
    Ok(found)
}

/// The number of these pages that fit into one command, and the length of its data.
fn together(pages: &[(usize, usize)], limits: &PieceLimits) -> (usize, usize) {
    let (mut count, mut bytes) = (0, LIST);
    for (_, expected) in pages.iter().take(MOST_BATCHED) {
        if count > 0 && bytes + expected > limits.moved {
            break;
        }
        (count, bytes) = (count + 1, bytes + expected);
    }
    (count, bytes.next_multiple_of(PAGE).clamp(LEAST_BATCH, limits.moved))
}

/// Reads pages by one command. Of each page: its pieces, or, if the command had no room for them, their bytes.
async fn read_some(
    issuer: &Issuer,
    drive: &dyn Drive,
    lpids: &[u64],
    bytes: usize,
) -> Result<Vec<Result<Vec<Vec<u8>>, usize>>, Error> {
    let mem = HostMem::zeroed(bytes);
    let list: Vec<u8> = lpids.iter().flat_map(|lpid| lpid.to_le_bytes()).collect();
    mem.write(0, &list);
    let mut entry = SubmissionEntry::io(BATCHED_READ, drive.info().nsid);
    entry.cdw10 = (lpids.len() as u32 - 1).into();
    entry.cdw11 = ((bytes / PAGE) as u32 - 1).into();
    Error::of(issuer.execute(drive, entry, mem.clone()).await.status)?;
    let data = mem.to_vec();
    let mut at = LIST;
    let page = |number: usize| {
        let (place, _) = Place::read_from_prefix(&data[number * size_of::<Place>()..]).map_err(|_| Error::Malformed)?;
        let (pieces, all) = (usize::from(place.pieces.get()), place.bytes.get() as usize);
        match place.left_out.get() {
            0 => take(&data, &mut at, pieces, all).map(Ok).ok_or(Error::Malformed),
            _ => Ok(Err(pieces * LENGTH + all)),
        }
    };
    (0..lpids.len()).map(page).collect()
}

/// The pieces of the next page.
fn take(data: &[u8], at: &mut usize, pieces: usize, all: usize) -> Option<Vec<Vec<u8>>> {
    let lengths = data.get(*at..*at + pieces * LENGTH)?;
    *at += lengths.len();
    let mut found = Vec::with_capacity(pieces);
    for length in lengths.as_chunks().0 {
        let bytes = data.get(*at..at.checked_add(u32::from_le_bytes(*length) as usize)?)?;
        *at += bytes.len();
        found.push(bytes.to_vec());
    }
    (found.iter().map(Vec::len).sum::<usize>() == all).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_taken_as_their_lengths_say() {
        let data = b"..\x02\0\0\0\x03\0\0\0abcde\x01\0\0\0z";
        let mut at = 2;
        assert_eq!(take(data, &mut at, 2, 5), Some(vec![b"ab".to_vec(), b"cde".to_vec()]));
        assert_eq!(take(data, &mut at, 0, 0), Some(Vec::new()));
        assert_eq!(take(data, &mut at, 1, 1), Some(vec![b"z".to_vec()]));
        assert_eq!((at, take(data, &mut at, 1, 1)), (data.len(), None));
        assert_eq!(take(data, &mut 2, 2, 6), None, "another sum");
        assert_eq!(take(b"\xff\xff\xff\xffab", &mut 0, 1, 2), None);
    }
}
