//! Assembles media and FTLs under a controller from a profile: one FTL, or several that own channels.

use std::io;
use std::ops::Range;
use std::rc::Rc;

use nandscape_device_controller::{AnySet, Front, FrontConfig, Nvm, NvmSet, NvmSets, OpenChannel, Runs, Zns, front_of};
use nandscape_device_ftl_ox::OxBlock;
use nandscape_device_ftl_page::PageFtl;
use nandscape_device_ftl_zoned::{LsmFtl, OpenChannel as Chunks, ZoneFtl};
use nandscape_device_media::durable::StoreFile;
use nandscape_device_media::{Group, Media, MediaConfig, SavedMedia, StoreKind, Supply};
use nandscape_drive::Names;
use nandscape_sim::{Seed, Sim};

use crate::part::{AnyFtl, Part};
use crate::resolve::{Resolved, ResolvedPart};
use crate::store::part_seeds;
use crate::values::{PartStore, Tables};
use crate::{owners, policies};

/// A drive with one FTL, restored from a saved state.
pub(crate) fn one_restored(
    sim: &Sim,
    profile: &Resolved,
    store: StoreKind,
    seed: Seed,
    saved: SavedMedia,
    names: Names,
) -> io::Result<Assembled> {
    one(sim, profile, media_restored(sim, profile, store, seed, saved)?, names)
}

/// The flash of a drive with one FTL, restored from a saved state.
pub(crate) fn media_restored(
    sim: &Sim,
    profile: &Resolved,
    store: StoreKind,
    seed: Seed,
    saved: SavedMedia,
) -> io::Result<Media> {
    let mut media = Media::new(sim, profile.media(store, seed.child("media")))?;
    put(&mut media, saved).map(|()| media)
}

fn put(media: &mut Media, saved: SavedMedia) -> io::Result<()> {
    media.put_saved(saved).map_err(|problem| io::Error::new(io::ErrorKind::InvalidData, problem))
}

/// A drive's parts and their front end.
pub(crate) type Assembled = (Vec<Part>, Box<dyn Front>);

/// A drive with one FTL.
pub(crate) fn one(sim: &Sim, profile: &Resolved, media: Media, names: Names) -> io::Result<Assembled> {
    let part = part(sim, profile, None, media)?;
    let media = || part.media.clone();
    let (config, front_config) = (profile.controller(), front_config(profile, names, &part.media));
    let set = match &part.ftl {
        AnyFtl::Page(ftl) => Nvm::new(sim, media(), ftl.clone(), &config).into(),
        AnyFtl::OxBlock(ftl) => AnySet::of(Nvm::new(sim, media(), ftl.clone(), &config)),
        AnyFtl::Zone(ftl) => AnySet::of(Zns::new(sim, media(), ftl.clone(), &config)),
        AnyFtl::Lsm(ftl) => AnySet::of(Runs::new(sim, media(), ftl.clone(), &config)),
        AnyFtl::OpenChannel(ftl) => AnySet::of(OpenChannel::new(sim, media(), ftl.clone(), &config)),
    };
    let front = front_of(sim, set, front_config)?;
    Ok((vec![part], front))
}

/// The stores of a new drive's flash, or the files of an existing drive.
pub(crate) enum Stores {
    New(StoreKind, Seed),
    /// New flash with the saved state of each.
    Saved(StoreKind, Seed, Vec<SavedMedia>),
    Files(Vec<StoreFile>),
}

/// The flash of each of several FTLs of a drive, and the drive's seed.
pub(crate) fn media_of(sim: &Sim, profile: &Resolved, stores: Stores) -> io::Result<(Vec<Media>, Seed)> {
    let faults: Vec<_> = profile.faults().cloned().collect();
    let count = profile.parts().iter().filter(|part| part.store == PartStore::Drive).count();
    let seed = match &stores {
        Stores::New(_, seed) | Stores::Saved(_, seed, _) => *seed,
        Stores::Files(files) => Seed::new(files[0].spec().seed),
    };
    let decoders = profile.timing().features.ecc.engines;
    let supply = Supply::new(sim, &faults, profile.lba_bytes(), decoders, seed.child("faults"));
    let mut bytes = 0;
    let groups = profile.parts().iter().map(|part| {
        let range: Range<u64> = bytes..bytes + part.drive.capacity();
        bytes = range.end;
        let dies = part.dies.clone().unwrap_or_else(|| (0..part.drive.geometry.dies_per_channel).collect());
        Group { channels: part.channels.clone().into(), dies: dies.into(), bytes: range, supply: supply.clone() }
    });
    let groups: Vec<Group> = groups.collect();
    let media: Vec<Media> = match stores {
        Stores::New(store, seed) => {
            let each = profile.parts().iter().zip(groups).zip(part_seeds(seed));
            each.map(|((part, group), seed)| new_media(sim, part, group, store, seed)).collect::<io::Result<_>>()?
        }
        Stores::Saved(store, seed, saved) => {
            let each = profile.parts().iter().zip(groups).zip(part_seeds(seed)).zip(saved);
            let each = each.map(|(((part, group), seed), saved)| {
                let mut media = new_media(sim, part, group, store, seed)?;
                put(&mut media, saved).map(|()| media)
            });
            each.collect::<io::Result<_>>()?
        }
        Stores::Files(files) if files.len() != count => {
            let problem = format!("its stores are {}, and its profile has {count} parts in files", files.len());
            return Err(io::Error::new(io::ErrorKind::InvalidData, problem));
        }
        Stores::Files(files) => {
            let in_memory = if files[0].spec().keeps_data { StoreKind::Ram } else { StoreKind::None };
            let mut files = files.into_iter();
            let each = profile.parts().iter().zip(groups).zip(part_seeds(seed.child("memory")));
            let each = each.map(|((part, group), seed)| match part.store {
                PartStore::Drive => open_media(sim, part, group, files.next().expect("they were counted")),
                PartStore::Ram => new_media(sim, part, group, in_memory, seed),
            });
            each.collect::<io::Result<_>>()?
        }
    };
    Ok((media, seed))
}

/// A drive with the several FTLs of its profile. The identifiers on the channels must agree with the profile.
pub(crate) fn several(sim: &Sim, profile: &Resolved, stores: Stores, names: Names) -> io::Result<Assembled> {
    let (media, seed) = media_of(sim, profile, stores)?;
    owners::settle(profile.parts(), &media, seed)?;
    let parts = profile.parts().iter().zip(media);
    let parts = parts.map(|(resolved, media)| {
        let part = part(sim, &resolved.drive, Some(&resolved.name), media)?;
        Ok(Part { has_some_dies: resolved.dies.is_some(), ..part })
    });
    let parts: Vec<Part> = parts.collect::<io::Result<_>>()?;
    let set = |(part, resolved): (&Part, &ResolvedPart)| {
        let (media, config) = (part.media.clone(), resolved.drive.controller());
        match &part.ftl {
            AnyFtl::Page(ftl) => NvmSet::page(sim, media, ftl.clone(), &config),
            AnyFtl::OxBlock(ftl) => NvmSet::ox_block(sim, media, ftl.clone(), &config),
            AnyFtl::Zone(_) | AnyFtl::Lsm(_) | AnyFtl::OpenChannel(_) => {
                unreachable!("a profile with parts has neither zones nor runs nor chunks")
            }
        }
    };
    let sets = NvmSets::new(parts.iter().zip(profile.parts()).map(set).collect());
    let mut kept = parts.iter().zip(profile.parts()).filter(|(_, resolved)| resolved.store == PartStore::Drive);
    let (first, _) = kept.next().expect("a profile with parts has one that is where the drive is");
    let front = front_of(sim, AnySet::of(sets), front_config(profile, names, &first.media))?;
    Ok((parts, front))
}

fn new_media(sim: &Sim, part: &ResolvedPart, group: Group, store: StoreKind, seed: Seed) -> io::Result<Media> {
    let drive = &part.drive;
    if drive.rebuilds_in_memory() {
        let spec = drive.spec_with(String::new(), store == StoreKind::Ram, seed);
        let config = in_group(drive.media(StoreKind::None, seed.child("media")), group);
        return Media::open(sim, config, StoreFile::in_memory(spec).map_err(io::Error::other)?);
    }
    Media::new(sim, in_group(drive.media(store, seed.child("media")), group))
}

fn open_media(sim: &Sim, part: &ResolvedPart, group: Group, file: StoreFile) -> io::Result<Media> {
    // The seed from the creation of the drive, so that random choices stay the same.
    let seed = Seed::new(file.spec().seed);
    let expected = part.drive.spec_with(String::new(), file.spec().keeps_data, seed);
    if expected.geometry != file.spec().geometry {
        let problem = format!("the flash of part \"{}\" has another geometry than its profile", part.name);
        return Err(io::Error::new(io::ErrorKind::InvalidData, problem));
    }
    Media::open(sim, in_group(part.drive.media(StoreKind::None, seed.child("media")), group), file)
}

fn in_group(config: MediaConfig, group: Group) -> MediaConfig {
    MediaConfig { group: Some(group), ..config }
}

/// An FTL over its flash.
fn part(sim: &Sim, profile: &Resolved, name: Option<&str>, media: Media) -> io::Result<Part> {
    let media = Rc::new(media);
    let mapping = || policies::zone_mapping(&profile.keys.ftl.zone);
    let ftl = match (profile.ox_block(), profile.zone(), profile.open_channel(), profile.lsm()) {
        (_, _, Some(config), _) => AnyFtl::OpenChannel(Chunks::new(sim, media.clone(), config)),
        (Some(config), ..) => AnyFtl::OxBlock(OxBlock::open(sim, media.clone(), config)?),
        (_, Some(config), ..) => AnyFtl::Zone(ZoneFtl::new(sim, media.clone(), config, &*mapping())),
        (.., Some(config)) => AnyFtl::Lsm(LsmFtl::new(sim, media.clone(), config, &*mapping())),
        _ => AnyFtl::Page(PageFtl::new(sim, media.clone(), profile.ftl(), profile.policies(media.policy_seed()))?),
    };
    let kind = profile.kind();
    let part = Part { name: name.unwrap_or(&kind).to_owned(), kind, has_some_dies: false, media, ftl };
    let fit = part.check_life(profile.keys.wear.source_of_wear());
    fit.map_err(|problem| io::Error::new(io::ErrorKind::InvalidInput, problem))?;
    Ok(part)
}

/// The controller configuration of the profile. File-backed `media` holds the controllers' notes.
fn front_config(profile: &Resolved, names: Names, media: &Media) -> FrontConfig {
    FrontConfig { controller: profile.controller(), names, notes: media.durable().cloned() }
}

impl Resolved {
    /// Whether a drive in memory rebuilds its tables from its flash.
    pub(crate) fn rebuilds_in_memory(&self) -> bool {
        self.tables() == Tables::Rebuilt && self.ox_block().is_none()
    }

    /// The kind of its FTL, as profiles name it.
    pub fn kind(&self) -> String {
        self.keys.ftl.kind.map_or_else(|| "page".to_owned(), |text| text.0.to_string())
    }
}
