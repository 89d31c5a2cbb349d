//! Geometry (OC 3.1), and the log pages Chunk Information and Chunk Notification (OC 3.2).

use std::ops::Range;

use nandscape_device_ftl_zoned::open_channel::{ChunkState, NOTICES_KEPT, Notice};
use nandscape_wire_nvme::open_channel::{
    AddressBits, CHUNK_CLOSED, CHUNK_FREE, CHUNK_OFFLINE, CHUNK_OPEN, CHUNK_SEQUENTIAL, ChunkDescriptor,
    ChunkNotification, Geometry, MASK_BLOCKS, MASK_CHUNK, MCCAP_COPY, MCCAP_EARLY_RESETS, MCCAP_MULTIPLE_RESETS,
    NOTICE_UNRECOVERABLE, NOTICE_WEAR,
};
use zerocopy::IntoBytes;

use super::OpenChannel;

impl OpenChannel {
    pub(super) fn geometry_data(&self) -> Geometry {
        let (layout, config) = (self.layout(), self.ftl().config());
        let mut data = Geometry::zeroed();
        data.mjr = 2;
        let [group, pu, chunk, sector] = layout.bits().map(|bits| bits as u8);
        data.lbaf = AddressBits { group, pu, chunk, sector, reserved: [0; 4] };
        let capability = |is_there: bool, bit: u32| if is_there { bit } else { 0 };
        let resets = capability(config.resets.multiple, MCCAP_MULTIPLE_RESETS)
            | capability(config.resets.early, MCCAP_EARLY_RESETS);
        data.mccap = (MCCAP_COPY | resets).into();
        data.wit = config.wear_threshold;
        (data.num_grp, data.num_pu) = ((layout.groups as u16).into(), (layout.pus as u16).into());
        (data.num_chk, data.clba) = (layout.chunks.into(), layout.chunk_units().into());
        (data.ws_min, data.ws_opt) = (layout.strip_units().into(), layout.strip_units().into());
        data.mw_cunits = config.mw_cunits.into();
        data.times = self.times.map(Into::into);
        data
    }

    /// A part of the log page Chunk Information, in the order of groups, parallel units and chunks.
    pub(super) fn chunk_log(&self, part: Range<u64>) -> (u64, Vec<u8>) {
        let (entry, count) = (size_of::<ChunkDescriptor>() as u64, u64::from(self.layout().all_chunks()));
        let (first, end) = (part.start / entry, part.end.div_ceil(entry).min(count));
        let bytes: Vec<u8> = (first..end).flat_map(|chunk| self.descriptor(chunk as u32).as_bytes().to_vec()).collect();
        (count * entry, cut(bytes, part, first * entry))
    }

    fn descriptor(&self, number: u32) -> ChunkDescriptor {
        let chunk = self.ftl().chunk(number);
        ChunkDescriptor {
            cs: match chunk.state {
                ChunkState::Free => CHUNK_FREE,
                ChunkState::Open => CHUNK_OPEN,
                ChunkState::Closed => CHUNK_CLOSED,
                ChunkState::Offline => CHUNK_OFFLINE,
            },
            ct: CHUNK_SEQUENTIAL,
            wli: self.ftl().wear_index(chunk.erases),
            slba: self.layout().address(number, 0).into(),
            cnlb: u64::from(self.layout().chunk_units()).into(),
            wp: u64::from(chunk.written).into(),
            ..ChunkDescriptor::default()
        }
    }

    /// A part of the log page Chunk Notification, the latest first.
    pub(super) fn notification_log(&self, part: Range<u64>) -> (u64, Vec<u8>) {
        let all = self.ftl().notices();
        let entries = all.iter().flat_map(|(number, notice)| self.notification(*number, *notice).as_bytes().to_vec());
        let mut bytes: Vec<u8> = entries.collect();
        bytes.resize(NOTICES_KEPT * size_of::<ChunkNotification>(), 0);
        (bytes.len() as u64, cut(bytes, part, 0))
    }

    fn notification(&self, number: u64, notice: Notice) -> ChunkNotification {
        let of_chunk = |chunk| (self.layout().address(chunk, 0), MASK_CHUNK, 0);
        let ((lba, mask, nlb), state) = match notice {
            Notice::Unreadable { address, blocks } => ((address, MASK_BLOCKS, blocks as u16), NOTICE_UNRECOVERABLE),
            // The specification has no separate bit for it.
            Notice::Offline(chunk) => (of_chunk(chunk), NOTICE_UNRECOVERABLE),
            Notice::Wear(chunk) => (of_chunk(chunk), NOTICE_WEAR),
        };
        ChunkNotification {
            nc: number.into(),
            lba: lba.into(),
            nsid: 1.into(),
            state: state.into(),
            mask,
            nlb: nlb.into(),
            ..ChunkNotification::default()
        }
    }
}

/// A part of a log whose bytes start at `from`.
fn cut(bytes: Vec<u8>, part: Range<u64>, from: u64) -> Vec<u8> {
    let within = |at: u64| (at.saturating_sub(from) as usize).min(bytes.len());
    bytes[within(part.start)..within(part.end)].to_vec()
}
