//! How a group of drives holds a log: all of it on each drive, or data on all drives but one and their parity on that one.
//!
//! With parity a row is as many chunks as the group has drives, at the same place and of the same length on each. One of them is the parity
//! of the others: their records XORed, behind a header like theirs. A row is written once and never changed, so no power cut leaves
//! parity that does not fit its data. The parity of segment `n` is on drive `n` modulo the width of the group.

use std::collections::BTreeMap;

use crate::record::{Header, pieces};

/// See the file.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub enum Placement {
    /// Pairs of an even and an odd drive with the same bytes (RAID-1+0), or drives without mirrors, as the policy has it.
    #[default]
    Copies,
    /// One group of all drives: data on all but one, parity on that one.
    Parity,
}

/// The fewest and the most drives of a group with parity.
pub const PARITY_DRIVES: [usize; 2] = [3, 16];

impl Placement {
    /// All, by name.
    pub const ALL: [(&str, Placement); 2] = [("copies", Placement::Copies), ("parity", Placement::Parity)];

    /// Its name.
    pub fn name(self) -> &'static str {
        if self == Placement::Copies { "copies" } else { "parity" }
    }

    /// Whether a number of drives can have it, under a policy with a number of replicas.
    pub fn fits(self, drives: usize, replicas: usize) -> bool {
        match self {
            Placement::Copies => drives > 0 && drives.is_multiple_of(replicas),
            Placement::Parity => replicas > 1 && (PARITY_DRIVES[0]..=PARITY_DRIVES[1]).contains(&drives),
        }
    }
}

/// The placement of a group of drives.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Layout {
    placement: Placement,
    /// Drives of the group.
    pub(crate) width: usize,
}

impl Layout {
    /// Of groups of `replicas` drives with copies, or one group of all `drives`.
    pub(crate) fn new(placement: Placement, drives: usize, replicas: usize) -> Layout {
        let width = if placement == Placement::Parity { drives } else { replicas };
        Layout { placement, width }
    }

    pub(crate) fn has_parity(&self) -> bool {
        self.placement == Placement::Parity
    }

    /// Drives with the data of a segment.
    pub(crate) fn columns(&self) -> usize {
        if self.has_parity() { self.width - 1 } else { 1 }
    }

    /// Drives that may be lost.
    pub(crate) fn spares(&self) -> usize {
        self.width - self.columns()
    }

    /// Whether a drive of the group has the parity of a segment.
    pub(crate) fn is_parity(&self, segment: u64, drive: usize) -> bool {
        self.has_parity() && segment % self.width as u64 == drive as u64
    }

    /// The drives whose chunks of a row together are all records, in the order in which these chunks are filled. Each row begins with another
    /// drive, so that rows of few items do not all burden the same.
    pub(crate) fn data(self, segment: u64, row: u32) -> impl DoubleEndedIterator<Item = usize> {
        let drives = if self.has_parity() { self.width } else { 1 };
        let order = (0..drives).map(move |drive| (drive + row as usize) % drives);
        order.filter(move |drive| !self.is_parity(segment, *drive))
    }

    /// The chunks of a row in the order of [`Layout::data`] become those of all drives, each complete and of the same length.
    pub(crate) fn seal(&self, mut chunks: Vec<Vec<u8>>, header: Header) -> Vec<Vec<u8>> {
        chunks.resize(self.columns(), Vec::new());
        let (mut images, mut parity) = (vec![Vec::new(); self.width], vec![0; header.len as usize]);
        for (mut chunk, drive) in chunks.into_iter().zip(self.data(header.segment, header.number)) {
            chunk.resize(header.len as usize, 0);
            xor(&mut parity, &chunk);
            header.seal(&mut chunk);
            images[drive] = chunk;
        }
        Header { is_parity: true, ..header }.seal(&mut parity);
        images[(header.segment % self.width as u64) as usize] = parity;
        images
    }
}

/// A row of a segment, or a chunk that each drive has.
pub(crate) struct Row {
    pub(crate) header: Header,
    /// The drives of the group that have it.
    pub(crate) have: Vec<usize>,
}

/// The rows of a segment that can be read, by number, from what the drives of a group have in its slot; `None` is a drive that is not read.
/// What drives lack of these rows is put into the images.
pub(crate) fn rows(
    layout: Layout,
    images: &mut [Option<Vec<u8>>],
    segment: u64,
    (id, block): (u64, usize),
) -> BTreeMap<u32, Row> {
    let mut found = BTreeMap::<u32, Vec<Row>>::new();
    for (drive, image) in images.iter().enumerate() {
        let own = pieces(image.as_deref().unwrap_or_default(), id, block).into_iter();
        let own = own.filter(|own| own.segment == segment && own.is_parity == layout.is_parity(segment, drive));
        for header in own.map(|own| Header { is_parity: false, ..own }) {
            // Chunks of a history that did not continue have other versions.
            let rows = found.entry(header.number).or_default();
            match rows.iter_mut().find(|row| row.header == header) {
                Some(row) => row.have.push(drive),
                None => rows.push(Row { header, have: vec![drive] }),
            }
        }
    }
    let best = |rows: Vec<Row>| rows.into_iter().rev().max_by_key(|row| row.have.len());
    let rows = found.into_iter().filter_map(|(number, rows)| Some((number, best(rows)?)));
    let rows: BTreeMap<u32, Row> = rows.filter(|(_, row)| row.have.len() >= layout.columns()).collect();
    for row in rows.values() {
        complete(layout, images, row, block);
    }
    rows
}

/// Puts a row into the images of the drives that lack it.
fn complete(layout: Layout, images: &mut [Option<Vec<u8>>], row: &Row, block: usize) {
    let Row { header, have } = row;
    let start = header.offset as usize;
    let end = start + (header.len as usize).next_multiple_of(block);
    let len = images.iter().flatten().map(Vec::len).max().unwrap_or(0);
    for drive in (0..images.len()).filter(|drive| !have.contains(drive)) {
        let there = || have.iter().filter_map(|other| images[*other].as_deref()?.get(start..end));
        let piece = match layout.has_parity() {
            true => {
                let mut piece = vec![0; end - start];
                there().for_each(|other| xor(&mut piece, other));
                Header { is_parity: layout.is_parity(header.segment, drive), ..*header }.seal(&mut piece);
                piece
            }
            false => there().next().unwrap_or_default().to_vec(),
        };
        let image = images[drive].get_or_insert_with(|| vec![0; len]);
        if let Some(place) = image.get_mut(start..start + piece.len()) {
            place.copy_from_slice(&piece);
        }
    }
}

/// Whether an image has all chunks of a segment.
pub(crate) fn is_whole(image: &[u8], (segment, chunks): (u64, u32), (id, block): (u64, usize)) -> bool {
    let own = pieces(image, id, block);
    own.iter().filter(|header| header.segment == segment).count() == chunks as usize
}

/// XORs bytes into others, as far as both go.
pub(crate) fn xor(into: &mut [u8], from: &[u8]) {
    into.iter_mut().zip(from).for_each(|(into, from)| *into ^= from);
}

#[cfg(test)]
mod tests {
    use nandscape_sim::Seed;

    use super::*;
    use crate::item::Marks;
    use crate::record::{CHUNK_HEADER, Kind, Record, records};

    const BLOCK: usize = 512;

    /// A segment of three rows on four drives.
    fn images(layout: Layout, segment: u64) -> Vec<Option<Vec<u8>>> {
        let mut rng = Seed::new(segment).rng();
        let mut all = vec![Vec::new(); layout.width];
        for number in 0..3 {
            let mut chunks = Vec::new();
            for column in 0..3u8 {
                let mut chunk = vec![0; CHUNK_HEADER];
                let value = vec![column + 1; rng.below(700) as usize];
                let (marks, key) = (Marks::default(), &[column; 9]);
                let record = Record { kind: Kind::Put, flags: 0, expiry: 0, version: 5, marks, key, value: &value };
                record.put(&mut chunk);
                chunks.push(chunk);
            }
            let len = chunks.iter().map(Vec::len).max().unwrap().next_multiple_of(BLOCK) as u32;
            let offset = all[0].len() as u32;
            let header =
                Header { id: 7, segment, tail: 1, version: 9, number, len, offset, before: 0, is_parity: false };
            let sealed = layout.seal(chunks, header);
            all.iter_mut().zip(sealed).for_each(|(all, chunk)| all.extend(chunk));
        }
        all.into_iter().map(Some).collect()
    }

    #[test]
    fn what_one_drive_lacks_the_others_give_byte_by_byte() {
        let layout = Layout::new(Placement::Parity, 4, 2);
        for segment in 0..4 {
            let right = images(layout, segment);
            for drive in 0..4 {
                let mut lacking = right.clone();
                lacking[drive] = None;
                assert_eq!(rows(layout, &mut lacking, segment, (7, BLOCK)).len(), 3);
                assert!(lacking == right, "drive {drive} of segment {segment}");
                // A piece of one drive and one of another: each row lacks one.
                let mut torn = right.clone();
                torn[drive].as_mut().unwrap()[CHUNK_HEADER] ^= 1;
                *torn[(drive + 1) % 4].as_mut().unwrap().last_mut().unwrap() ^= 1;
                assert_eq!(rows(layout, &mut torn, segment, (7, BLOCK)).len(), 3);
                assert!(torn == right);
            }
            for row in 0..3 {
                let keys = layout.data(segment, row).map(|drive| {
                    let image = right[drive].as_deref().unwrap();
                    records(image, pieces(image, 7, BLOCK)[row as usize])[0].1.key[0]
                });
                assert_eq!(keys.collect::<Vec<_>>(), [0, 1, 2]);
            }
        }
    }

    #[test]
    fn a_row_that_two_drives_lack_or_have_of_another_history_does_not_count() {
        let layout = Layout::new(Placement::Parity, 4, 2);
        let right = images(layout, 6);
        let mut torn = right.clone();
        torn[0].as_mut().unwrap()[CHUNK_HEADER] ^= 1;
        torn[3].as_mut().unwrap()[CHUNK_HEADER] ^= 1;
        let numbers: Vec<u32> = rows(layout, &mut torn, 6, (7, BLOCK)).into_keys().collect();
        assert_eq!(numbers, [1, 2]);
        let mut mixed = right.clone();
        for drive in [1, 2] {
            let image = mixed[drive].as_mut().unwrap();
            let header = pieces(image, 7, BLOCK)[0];
            Header { version: 1 << 40, ..header }.seal(&mut image[..header.len as usize]);
        }
        assert_eq!(rows(layout, &mut mixed, 6, (7, BLOCK)).len(), 2);
    }
}
