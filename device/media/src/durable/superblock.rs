//! The superblock: the identity of the file. It is written when the file is created, opened and closed, in turn into
//! two copies, so that one of them is always whole. The higher generation counts.

use crate::geometry::{Counts, Geometry, GeometryError};

/// Bytes of a copy.
pub(crate) const BYTES: u64 = 64 << 10;
/// The first bytes of the file.
pub(crate) const MAGIC: [u8; 8] = *b"NANDFILE";
/// The format that this program writes.
pub(crate) const VERSION: u32 = 5;
/// The oldest format that it reads. A file keeps its format, because its regions do not move.
pub(crate) const OLDEST: u32 = 4;
/// The first format with a region for the ages of data.
pub(crate) const WITH_AGES: u32 = 5;
/// The most stores of a file: as many as a drive has channels.
const MOST_STORES: u32 = 256;
/// Bytes of the fields before the text.
const FIXED: usize = 256;
/// The most bytes of the text.
const LONGEST_TEXT: usize = BYTES as usize - FIXED;

/// The fixed properties of a file, set when it is created.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StoreSpec {
    /// The flash.
    pub geometry: Counts,
    /// Whether host data is kept, or only the fact that it was written.
    pub keeps_data: bool,
    /// Pages of a block that one program writes.
    pub pages_per_program: u32,
    /// Units of the host's address space.
    pub logical_units: u32,
    /// Slots of a write buffer that outlasts power.
    pub slots: u32,
    /// Bytes of a snapshot of the FTL's tables.
    pub snapshot_bytes: u64,
    /// The drive's seed: random choices stay the same.
    pub seed: u64,
    /// The drive's description, for the code that assembles it.
    pub text: String,
    /// Stores behind this one in the file: a drive whose channels belong to several FTLs has one for each of them.
    pub following: u32,
}

/// The use of a file.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct StoreUse {
    /// Whether it is in use, or was in use when its process ended.
    pub in_use: bool,
    /// Whether writes are made safe from a loss of the host's power.
    pub syncs: bool,
    /// Whether a state is being put into it, before the drive is served for the first time.
    pub is_filling: bool,
    /// How often it was opened.
    pub starts: u64,
    /// How often it was opened without having been closed.
    pub unclean: u64,
    /// Whether its drive is a member of something that has several drives.
    pub membership: Membership,
}

/// What a drive is a member of.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Owner {
    /// An array.
    Array,
    /// The store of a storage engine on several drives.
    Engine,
}

impl std::fmt::Display for Owner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Owner::Array => "an array",
            Owner::Engine => "a memcached store",
        })
    }
}

/// Whether the drive of a file is a member: its data has to fit that of the other members.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub enum Membership {
    /// No member.
    #[default]
    None,
    /// It is one, and only its owner has used it.
    Member(Owner),
    /// It was one, and was used alone since: it may no longer fit the other members.
    Strayed(Owner),
}

/// Bits of the flags: a member, one that has strayed, and one of an engine.
const MEMBER: u32 = 1 << 4;
const STRAYED: u32 = 1 << 5;
const ENGINE: u32 = 1 << 6;

impl Owner {
    fn flags(self) -> u32 {
        match self {
            Owner::Array => 0,
            Owner::Engine => ENGINE,
        }
    }
}

impl Membership {
    /// What it is a member of, or was.
    pub fn owner(self) -> Option<Owner> {
        match self {
            Membership::None => None,
            Membership::Member(owner) | Membership::Strayed(owner) => Some(owner),
        }
    }

    fn flags(self) -> u32 {
        match self {
            Membership::None => 0,
            Membership::Member(owner) => MEMBER | owner.flags(),
            Membership::Strayed(owner) => MEMBER | STRAYED | owner.flags(),
        }
    }

    fn of(flags: u32) -> Membership {
        let owner = if flags & ENGINE == 0 { Owner::Array } else { Owner::Engine };
        match (flags & MEMBER, flags & STRAYED) {
            (0, _) => Membership::None,
            (_, 0) => Membership::Member(owner),
            _ => Membership::Strayed(owner),
        }
    }
}

/// See the file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Superblock {
    /// From [`OLDEST`] to [`VERSION`].
    pub(crate) format: u32,
    pub(crate) generation: u64,
    pub(crate) spec: StoreSpec,
    pub(crate) used: StoreUse,
}

/// Why bytes are not a superblock.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum NoSuperblock {
    /// They do not begin with the magic number.
    Foreign,
    /// This program does not support the format.
    Version(u32),
    /// The checksum or a field is wrong.
    Damaged(&'static str),
}

impl StoreSpec {
    /// The geometry, checked.
    ///
    /// # Errors
    /// The count that is not valid.
    pub fn checked_geometry(&self) -> Result<Geometry, GeometryError> {
        Geometry::new(self.geometry)
    }

    /// Whether it fits into a superblock.
    pub(crate) fn fits(&self) -> bool {
        self.text.len() <= LONGEST_TEXT && self.is_sane()
    }

    fn is_sane(&self) -> bool {
        let fields = self.following < MOST_STORES
            && self.slots <= 1 << 24
            && self.snapshot_bytes <= 1 << 40
            && self.pages_per_program >= 1;
        let fields = fields && self.pages_per_program <= self.geometry.pages_per_block;
        fields && self.checked_geometry().is_ok_and(|geometry| self.logical_units <= geometry.units())
    }
}

impl Superblock {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Writer(Vec::with_capacity(BYTES as usize));
        let StoreSpec {
            geometry,
            keeps_data,
            pages_per_program,
            logical_units,
            slots,
            snapshot_bytes,
            seed,
            text,
            following,
        } = &self.spec;
        let StoreUse { in_use, syncs, is_filling, starts, unclean, membership } = self.used;
        out.0.extend(MAGIC);
        out.u32(self.format);
        // The checksum's place.
        out.u32(0);
        out.u64(self.generation);
        let flags = [*keeps_data, in_use, syncs, is_filling];
        let flags = flags.into_iter().zip(0..).fold(0, |all, (flag, bit)| all | u32::from(flag) << bit);
        out.u32(flags | membership.flags());
        let Counts { channels, dies_per_channel, planes_per_die, blocks_per_plane, .. } = *geometry;
        [channels, dies_per_channel, planes_per_die, blocks_per_plane].into_iter().for_each(|count| out.u32(count));
        [geometry.pages_per_block, geometry.page_size, geometry.unit_size].into_iter().for_each(|count| out.u32(count));
        [*pages_per_program, *logical_units, *slots, text.len() as u32].into_iter().for_each(|count| out.u32(count));
        [*snapshot_bytes, *seed, starts, unclean].into_iter().for_each(|count| out.u64(count));
        out.u32(*following);
        out.0.resize(FIXED, 0);
        out.0.extend(text.as_bytes());
        out.0.resize(BYTES as usize, 0);
        let sum = checksum(&out.0);
        out.0[12..16].copy_from_slice(&sum.to_le_bytes());
        out.0
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Superblock, NoSuperblock> {
        if !bytes.starts_with(&MAGIC) {
            return Err(NoSuperblock::Foreign);
        }
        if bytes.len() < BYTES as usize {
            return Err(NoSuperblock::Damaged("it is cut short"));
        }
        let mut from = Reader(&bytes[8..]);
        let (version, sum) = (from.u32(), from.u32());
        if sum != checksum(&bytes[..BYTES as usize]) {
            // Another version may have its checksum elsewhere.
            return Err(if version > VERSION {
                NoSuperblock::Version(version)
            } else {
                NoSuperblock::Damaged("its checksum is wrong")
            });
        }
        if !(OLDEST..=VERSION).contains(&version) {
            return Err(NoSuperblock::Version(version));
        }
        let (generation, flags) = (from.u64(), from.u32());
        let geometry = Counts {
            channels: from.u32(),
            dies_per_channel: from.u32(),
            planes_per_die: from.u32(),
            blocks_per_plane: from.u32(),
            pages_per_block: from.u32(),
            page_size: from.u32(),
            unit_size: from.u32(),
        };
        let [pages_per_program, logical_units, slots, text_len] = [(); 4].map(|()| from.u32());
        let [snapshot_bytes, seed, starts, unclean] = [(); 4].map(|()| from.u64());
        let following = from.u32();
        let text = bytes[FIXED..].get(..text_len as usize).and_then(|text| std::str::from_utf8(text).ok());
        let text = text.ok_or(NoSuperblock::Damaged("its text is none"))?.to_owned();
        let keeps_data = flags & 1 != 0;
        let spec = StoreSpec {
            geometry,
            keeps_data,
            pages_per_program,
            logical_units,
            slots,
            snapshot_bytes,
            seed,
            text,
            following,
        };
        let [in_use, syncs, is_filling] = [1, 2, 3].map(|bit| flags >> bit & 1 != 0);
        let membership = Membership::of(flags);
        let used = StoreUse { in_use, syncs, is_filling, starts, unclean, membership };
        match spec.is_sane() {
            true => Ok(Superblock { format: version, generation, spec, used }),
            false => Err(NoSuperblock::Damaged("its geometry is impossible")),
        }
    }
}

/// The checksum of a whole copy, with its own bytes as zeros.
fn checksum(copy: &[u8]) -> u32 {
    let mut sum = crc32fast::Hasher::new();
    sum.update(&copy[..12]);
    sum.update(&[0; 4]);
    sum.update(&copy[16..]);
    sum.finalize()
}

/// Little-endian fields, one after another.
pub(crate) struct Writer(pub(crate) Vec<u8>);

impl Writer {
    pub(crate) fn u32(&mut self, value: u32) {
        self.0.extend(value.to_le_bytes());
    }

    pub(crate) fn u64(&mut self, value: u64) {
        self.0.extend(value.to_le_bytes());
    }
}

/// Reads them back, from bytes that are long enough.
pub(crate) struct Reader<'a>(pub(crate) &'a [u8]);

impl Reader<'_> {
    pub(crate) fn u32(&mut self) -> u32 {
        let (head, rest) = self.0.split_first_chunk().expect("the caller has checked the length");
        self.0 = rest;
        u32::from_le_bytes(*head)
    }

    pub(crate) fn u64(&mut self) -> u64 {
        let (head, rest) = self.0.split_first_chunk().expect("the caller has checked the length");
        self.0 = rest;
        u64::from_le_bytes(*head)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn superblock() -> Superblock {
        let geometry = Counts {
            channels: 2,
            dies_per_channel: 3,
            planes_per_die: 1,
            blocks_per_plane: 5,
            pages_per_block: 6,
            page_size: 16_384,
            unit_size: 4_096,
        };
        let spec = StoreSpec {
            geometry,
            keeps_data: true,
            pages_per_program: 3,
            logical_units: 100,
            slots: 9,
            snapshot_bytes: 400,
            seed: u64::MAX - 1,
            text: "a drive, ä".to_owned(),
            following: 3,
        };
        let membership = Membership::Member(Owner::Array);
        let used = StoreUse { in_use: true, syncs: false, is_filling: true, starts: 4, unclean: 2, membership };
        Superblock { format: VERSION, generation: 7, spec, used }
    }

    #[test]
    fn it_is_read_as_it_was_written() {
        let of = |owner| [Membership::Member(owner), Membership::Strayed(owner)];
        let memberships = [of(Owner::Array), of(Owner::Engine), [Membership::None; 2]].concat();
        for (membership, format) in
            memberships.into_iter().flat_map(|each| (OLDEST..=VERSION).map(move |of| (each, of)))
        {
            let mut superblock = superblock();
            (superblock.used.membership, superblock.format) = (membership, format);
            assert_eq!(Superblock::decode(&superblock.encode()), Ok(superblock));
        }
    }

    #[test]
    fn what_is_no_superblock_is_told() {
        let good = superblock().encode();
        assert_eq!(Superblock::decode(&[0; BYTES as usize]), Err(NoSuperblock::Foreign));
        assert!(matches!(Superblock::decode(&good[..100]), Err(NoSuperblock::Damaged(_))));
        let mut newer = good.clone();
        newer[8] = VERSION as u8 + 1;
        assert_eq!(Superblock::decode(&newer), Err(NoSuperblock::Version(VERSION + 1)));
        for version in 1..OLDEST {
            let mut older = good.clone();
            older[8] = version as u8;
            let sum = checksum(&older);
            older[12..16].copy_from_slice(&sum.to_le_bytes());
            assert_eq!(Superblock::decode(&older), Err(NoSuperblock::Version(version)));
        }
        for at in [12, 20, 30, 60, 90, 300, 60_000] {
            let mut flipped = good.clone();
            flipped[at] ^= 4;
            assert!(matches!(Superblock::decode(&flipped), Err(NoSuperblock::Damaged(_))), "byte {at}");
        }
        let mut impossible = superblock();
        impossible.spec.geometry.unit_size = 5_000;
        assert!(matches!(Superblock::decode(&impossible.encode()), Err(NoSuperblock::Damaged(_))));
    }
}
