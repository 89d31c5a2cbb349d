//! The state of the FTL of a host at rest: its profile, its tables, what it knows of the flash, and the pages that the drive
//! does not read yet. The data is in the open-channel drive, whose state is saved next to it.
//!
//! Left out: counters, which begin at zero; remote open-channel drives, whose state is where they are.

use std::collections::VecDeque;
use std::io;
use std::rc::Rc;

use nandscape_device_ftl_core::SavedFtl;
use nandscape_device_media::geometry::Counts;
use nandscape_device_media::plain::{Malformed, Reader, Writer};
use nandscape_device_media::{BlockId, PageId, SavedMedia};
use nandscape_device_ssd::{Profile, Resolved, SavedDrive, SavedPart, Ssd};
use nandscape_host_open_channel::{ChunkInfo, OpenChannel};
use nandscape_sim::table::Table;
use nandscape_sim::{Seed, Sim};
use nandscape_wire_nvme::open_channel::CHUNK_CLOSED;

use super::{HostFlash, Moving, Newest};

/// Bytes of an entry of a table.
const ENTRY: usize = 4;

/// See the file.
pub(crate) struct Saved {
    /// The name of the profile, and the profile as TOML.
    profile: (String, String),
    drive: SavedDrive,
    unread: Vec<(BlockId, Newest)>,
}

impl Saved {
    /// Takes the state of an FTL at rest, which must not be used afterwards.
    ///
    /// # Errors
    /// Why it cannot be taken.
    pub(crate) fn take(ssd: &Ssd, flash: &HostFlash, profile: &Resolved) -> Result<Saved, String> {
        if let Some(why) = ssd.read_only() {
            return Err(format!("it takes no writes any more: {why}"));
        }
        let unread = flash.unread.take().into_iter().collect();
        Ok(Saved { profile: (profile.name.clone(), profile.to_toml()), drive: ssd.take_saved()?, unread })
    }

    /// As bytes.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let Saved { profile: (name, toml), drive, unread } = self;
        let mut to = Writer::default();
        to.bytes(name.as_bytes());
        to.bytes(toml.as_bytes());
        to.byte(u8::from(drive.is_filled));
        to.count(drive.parts.len());
        for SavedPart { media: SavedMedia { geometry, tags, cells, data }, ftl } in &drive.parts {
            numbers_of(geometry).iter().for_each(|number| to.word(*number));
            to.bytes(tags.bytes());
            to.bytes(cells);
            to.bytes(data);
            let (map, tables) = ftl.as_ref().map_or((&[][..], &[][..]), |ftl| (ftl.map.bytes(), &ftl.tables));
            to.bytes(map);
            to.bytes(tables);
        }
        to.count(unread.len());
        for (block, pages) in unread {
            to.word(block.0);
            to.count(pages.len());
            for (page, data) in pages {
                to.word(page.0);
                to.bytes(data);
            }
        }
        to.finish()
    }

    /// From bytes.
    ///
    /// # Errors
    /// Where they are not what [`Saved::encode`] writes.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Saved, String> {
        let mut from = Reader::new(bytes);
        let saved = read(&mut from).and_then(|saved| from.finish().map(|()| saved));
        saved.map_err(|problem| format!("the saved FTL of the host: {problem}"))
    }

    /// An FTL that continues from here, over a drive that reports these chunks, and the flash below the FTL.
    ///
    /// # Errors
    /// The first key of the profile that differs and must not, or that the chunks are not those of the state.
    pub(crate) fn over(
        self,
        sim: &Sim,
        (host, report): (OpenChannel, &[ChunkInfo]),
        profile: &Resolved,
        (moving, seed): (Moving, Seed),
    ) -> io::Result<(Rc<Ssd>, Rc<HostFlash>)> {
        let invalid = |problem: String| io::Error::new(io::ErrorKind::InvalidData, problem);
        let (name, toml) = &self.profile;
        let keys = Profile::parse(name, toml).map_err(|error| invalid(error.to_string()))?.keys;
        profile.check_saved(&keys).map_err(|problem| invalid(format!("the state is of another FTL: {problem}")))?;
        let flash = HostFlash::with_data(host, report, profile, moving)?;
        let geometry = profile.geometry();
        let of_block = |block: &BlockId| block.0 < geometry.blocks();
        let of_page = |page: &PageId, data: &[u8]| {
            page.0 / geometry.pages_per_block() < geometry.blocks() && data.len() == geometry.page_size() as usize
        };
        let fits = |(block, pages): &(BlockId, Newest)| {
            of_block(block) && pages.iter().all(|(page, data)| of_page(page, data))
        };
        if !self.unread.iter().all(fits) {
            return Err(invalid("the state has pages that the drive does not have".to_owned()));
        }
        flash.unread.replace(self.unread.into_iter().collect());
        let ssd = Ssd::over_remote(sim, profile, flash.clone(), seed, Some(self.drive))?;
        check(&ssd, &flash, report).map_err(invalid)?;
        Ok((Rc::new(ssd), flash))
    }
}

/// Whether each chunk has the units that the FTL has programmed. A failed program closes a chunk early.
fn check(ssd: &Ssd, flash: &HostFlash, report: &[ChunkInfo]) -> Result<(), String> {
    let (geometry, chunks) = (flash.geometry, flash.host.geometry());
    for block in (0..geometry.blocks()).map(BlockId).filter(|block| !flash.bad[block.0 as usize]) {
        let first = flash.address(geometry.page_at(block, 0), 0);
        let number = chunks.chunk_number(chunks.place(first).ok_or("a block has no chunk")?);
        let expected = u64::from(ssd.media().pages_programmed(block)) * u64::from(chunks.ws_min);
        let chunk = report.get(number as usize).ok_or("a block has no chunk")?;
        let is_closed_early = chunk.state == CHUNK_CLOSED && chunk.written < chunk.blocks;
        if chunk.written < expected && !is_closed_early {
            return Err(format!(
                "chunk {number} of the drive has {} blocks, and the FTL of the state has written {expected}: the states of both belong \
                 together",
                chunk.written
            ));
        }
    }
    Ok(())
}

fn numbers_of(counts: &Counts) -> [u32; 7] {
    let Counts { channels, dies_per_channel, planes_per_die, blocks_per_plane, pages_per_block, page_size, unit_size } =
        *counts;
    [channels, dies_per_channel, planes_per_die, blocks_per_plane, pages_per_block, page_size, unit_size]
}

fn read(from: &mut Reader<'_>) -> Result<Saved, Malformed> {
    let profile = (text(from)?, text(from)?);
    let is_filled = from.byte()? != 0;
    let parts = (0..from.count(ENTRY)?).map(|_| part(from)).collect::<Result<_, Malformed>>()?;
    let mut unread = Vec::new();
    for _ in 0..from.count(ENTRY)? {
        let (block, mut pages) = (BlockId(from.word()?), VecDeque::new());
        for _ in 0..from.count(ENTRY)? {
            pages.push_back((PageId(from.word()?), from.bytes()?.to_vec()));
        }
        unread.push((block, pages));
    }
    Ok(Saved { profile, drive: SavedDrive { parts, is_filled }, unread })
}

fn text(from: &mut Reader<'_>) -> Result<String, Malformed> {
    let bytes = from.bytes()?;
    String::from_utf8(bytes.to_vec()).map_err(|_| from.malformed("text that is not UTF-8"))
}

fn part(from: &mut Reader<'_>) -> Result<SavedPart, Malformed> {
    let mut word = || from.word();
    let geometry = Counts {
        channels: word()?,
        dies_per_channel: word()?,
        planes_per_die: word()?,
        blocks_per_plane: word()?,
        pages_per_block: word()?,
        page_size: word()?,
        unit_size: word()?,
    };
    let (tags, cells, data) = (table(from)?, from.bytes()?.to_vec(), from.bytes()?.to_vec());
    let ftl = SavedFtl { map: table(from)?, tables: from.bytes()?.to_vec() };
    Ok(SavedPart { media: SavedMedia { geometry, tags, cells, data }, ftl: Some(ftl) })
}

fn table(from: &mut Reader<'_>) -> Result<Table, Malformed> {
    let bytes = from.bytes()?;
    if !bytes.len().is_multiple_of(ENTRY) {
        return Err(from.malformed(format!("a table of {} bytes", bytes.len())));
    }
    let mut table = Table::new(bytes.len() / ENTRY).map_err(|error| from.malformed(error.to_string()))?;
    table.bytes_mut().copy_from_slice(bytes);
    Ok(table)
}
