//! Makes policies from their names in a profile. A technique that decides something is a policy: a trait where the decision is
//! needed, a file that implements it, and its name here.

use std::num::NonZeroU32;

use nandscape_device_controller::arbiter::{Arbiter, RoundRobin};
use nandscape_device_ftl::Policies;
use nandscape_device_ftl::policy::{
    AdmissionPolicy, All, AllocationPolicy, CostBenefit, Greedy, OnePerGroup, StripeOrder, Striped, VictimPolicy,
};
use nandscape_device_ftl::zone::mapping::{Dies, PlaneGroup, Superblock, ZoneMapping};
use nandscape_device_media::Geometry;

use crate::keys::{FtlKeys, ZoneKeys};
use crate::values::{Admission, Victim, ZoneSpread};

/// `ftl.allocation` of a profile that does not give it.
pub(crate) const DEFAULT_ALLOCATION: StripeOrder = StripeOrder::ChannelDiePlane;
/// `ftl.gc.victim` of a profile that does not give it.
pub(crate) const DEFAULT_VICTIM: Victim = Victim::Greedy;
/// `ftl.gc.admission` of a profile that does not give it.
pub(crate) const DEFAULT_ADMISSION: Admission = Admission::All;

/// The policies of an FTL.
pub(crate) fn of_ftl(keys: &FtlKeys, geometry: &Geometry) -> Policies {
    Policies {
        allocation: allocation(keys.allocation.map_or(DEFAULT_ALLOCATION, |text| text.0.0), geometry),
        admission: admission(keys.gc.admission.map_or(DEFAULT_ADMISSION, |text| text.0.0), geometry),
        victim: victim(keys.gc.victim.map_or(DEFAULT_VICTIM, |text| text.0.0)),
    }
}

fn allocation(order: StripeOrder, geometry: &Geometry) -> Box<dyn AllocationPolicy> {
    Box::new(Striped::new(geometry, order))
}

fn admission(admission: Admission, geometry: &Geometry) -> Box<dyn AdmissionPolicy> {
    let counts = geometry.counts();
    let planes = match admission {
        Admission::All => return Box::new(All),
        Admission::OnePerDie => counts.planes_per_die,
        Admission::OnePerChannel => counts.dies_per_channel * counts.planes_per_die,
        Admission::OnePerDrive => geometry.planes(),
    };
    Box::new(OnePerGroup::new(NonZeroU32::new(planes).expect("a geometry has planes")))
}

fn victim(victim: Victim) -> Box<dyn VictimPolicy> {
    match victim {
        Victim::Greedy => Box::new(Greedy),
        Victim::CostBenefit => Box::new(CostBenefit),
    }
}

/// `ftl.zone.mapping` of a profile that does not give it.
pub(crate) const DEFAULT_ZONE_MAPPING: ZoneSpread = ZoneSpread::Superblock;

/// Which part of the drive a zone is spread over.
pub(crate) fn zone_mapping(keys: &ZoneKeys) -> Box<dyn ZoneMapping> {
    match keys.mapping.map_or(DEFAULT_ZONE_MAPPING, |text| text.0.0) {
        ZoneSpread::Superblock => Box::new(Superblock),
        ZoneSpread::PlaneGroup => Box::new(PlaneGroup),
        ZoneSpread::Dies => Box::new(Dies { width: keys.width.unwrap_or(1) }),
    }
}

/// The arbiter of the submission queues. There is only one so far, and no key.
pub(crate) fn arbiter() -> Box<dyn Arbiter> {
    Box::new(RoundRobin::default())
}
