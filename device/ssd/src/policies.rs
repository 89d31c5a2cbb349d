//! Makes policies from their names in a profile. Each technique that makes a decision is a policy: a trait at the point of
//! decision, a file that implements it, and its name here.

use std::fmt;
use std::num::NonZeroU32;
use std::sync::Arc;

use nandscape_device_ftl_core::RangesOwn;
use nandscape_device_ftl_core::policy::{
    AdmissionPolicy, All, AllocationPolicy, BufferPolicy, ByRange, CostBenefit, FailFast, FlushPolicy, GcTolerant,
    Greedy, InOrder, OnePerGroup, ReadPolicy, Reconstruct, Rotating, StripeOrder, Striped, Suspects, Thresholds,
    VictimPolicy,
};
use nandscape_device_ftl_page::{Policies, StripePolicies};
use nandscape_device_ftl_zoned::zone::mapping::{Dies, PlaneGroup, Superblock, ZoneMapping};
use nandscape_device_media::Geometry;
use nandscape_sim::{Seed, Span};

use crate::keys::{FtlKeys, RainKeys, ReadKeys, ZoneKeys};
use crate::values::{Admission, Choice, FlushOrder, ReadRule, Text, Victim, ZoneSpread};

/// `ftl.allocation` of a profile that does not give it.
pub(crate) const DEFAULT_ALLOCATION: StripeOrder = StripeOrder::ChannelDiePlane;
/// `ftl.gc.victim` of a profile that does not give it.
pub(crate) const DEFAULT_VICTIM: Victim = Victim::Greedy;
/// `ftl.gc.admission` of a profile that does not give it.
pub(crate) const DEFAULT_ADMISSION: Admission = Admission::All;

/// `ftl.read.policy` of a profile that does not give it: reads without the bit do not notice it.
pub(crate) const DEFAULT_READ: ReadRule = ReadRule::FailFast;

/// `ftl.rain.flush` of a profile that does not give it.
pub(crate) const DEFAULT_FLUSH: FlushOrder = FlushOrder::InOrder;

/// Makes a policy for a drive, from its geometry and a seed for the policy's random decisions: the same run has the same
/// seed. All policies of a drive get the same seed; each derives a child seed by its own name.
pub type MakePolicy<P> = Arc<dyn Fn(&Geometry, Seed) -> Box<P> + Send + Sync>;

/// A program's own policies for the page-mapping FTL, each replacing the policy that the profile names.
#[derive(Clone, Default)]
pub struct OwnPolicies {
    /// Which block is cleaned next.
    pub victim: Option<MakePolicy<dyn VictimPolicy>>,
    /// On which planes the host's next pages are written.
    pub allocation: Option<MakePolicy<dyn AllocationPolicy>>,
    /// Which planes may collect at the same time.
    pub admission: Option<MakePolicy<dyn AdmissionPolicy>>,
    /// When a write is admitted to the write buffer.
    pub buffer: Option<MakePolicy<dyn BufferPolicy>>,
    /// The fate of reads that background work delays.
    pub read: Option<MakePolicy<dyn ReadPolicy>>,
}

impl OwnPolicies {
    /// The names of the replaced policies.
    pub(crate) fn names(&self) -> Vec<&'static str> {
        let all = [
            ("victim", self.victim.is_some()),
            ("allocation", self.allocation.is_some()),
            ("admission", self.admission.is_some()),
            ("buffer", self.buffer.is_some()),
            ("read", self.read.is_some()),
        ];
        all.into_iter().filter(|(_, is_there)| *is_there).map(|(name, _)| name).collect()
    }
}

impl fmt::Debug for OwnPolicies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.names()).finish()
    }
}

impl PartialEq for OwnPolicies {
    fn eq(&self, other: &OwnPolicies) -> bool {
        fn same<P: ?Sized>(one: Option<&MakePolicy<P>>, other: Option<&MakePolicy<P>>) -> bool {
            one.zip(other).map_or(one.is_none() && other.is_none(), |(one, other)| Arc::ptr_eq(one, other))
        }
        same(self.victim.as_ref(), other.victim.as_ref())
            && same(self.allocation.as_ref(), other.allocation.as_ref())
            && same(self.admission.as_ref(), other.admission.as_ref())
            && same(self.buffer.as_ref(), other.buffer.as_ref())
            && same(self.read.as_ref(), other.read.as_ref())
    }
}

/// The policies of an FTL: a program's own policies, and otherwise those that the profile names.
pub(crate) fn of_ftl(keys: &FtlKeys, geometry: &Geometry, seed: Seed, own: &OwnPolicies) -> Policies {
    let allocation = own.allocation.as_ref().map(|make| make(geometry, seed)).unwrap_or_else(|| {
        let order = keys.allocation.map_or(DEFAULT_ALLOCATION, |text| text.0.0);
        match (keys.windows.ranges.unwrap_or(0), keys.windows.ranges_own) {
            (ranges @ 2.., Some(Text(Choice(RangesOwn::Planes)))) => {
                Box::new(ByRange::new(geometry, order, ranges as u8))
            }
            _ => Box::new(Striped::new(geometry, order)),
        }
    });
    let width = keys.rain.width.unwrap_or(0);
    let admission =
        own.admission.as_ref().map(|make| make(geometry, seed)).unwrap_or_else(|| {
            admission(keys.gc.admission.map_or(DEFAULT_ADMISSION, |text| text.0.0), width, geometry)
        });
    let named = || victim(keys.gc.victim.map_or(DEFAULT_VICTIM, |text| text.0.0));
    Policies {
        allocation,
        admission,
        victim: own.victim.as_ref().map_or_else(named, |make| make(geometry, seed)),
        buffer: own.buffer.as_ref().map(|make| make(geometry, seed)),
        stripes: stripes(&keys.rain),
        read: own.read.as_ref().map(|make| make(geometry, seed)).or_else(|| read(&keys.read)),
        patrol: None,
    }
}

fn stripes(keys: &RainKeys) -> StripePolicies {
    let flush: Box<dyn FlushPolicy> = match keys.flush.map_or(DEFAULT_FLUSH, |text| text.0.0) {
        FlushOrder::InOrder => Box::new(InOrder),
        FlushOrder::GcTolerant => Box::new(GcTolerant),
    };
    let (shift, migrate) = (keys.shift_above.unwrap_or(0).into(), keys.migrate_above.unwrap_or(0).into());
    let is_moved = shift > 0.0 || migrate > 0.0;
    StripePolicies {
        flush: Some(flush),
        wear: is_moved.then(|| Box::new(Thresholds { shift, migrate }) as _),
        scrub: Some(Box::new(Suspects)),
    }
}

fn read(keys: &ReadKeys) -> Option<Box<dyn ReadPolicy>> {
    match keys.policy.map_or(DEFAULT_READ, |text| text.0.0) {
        ReadRule::Serve => None,
        ReadRule::Reconstruct => Some(Box::new(Reconstruct)),
        ReadRule::FailFast => Some(Box::new(FailFast { above: keys.fail_above.map_or(Span::ZERO, |text| text.0) })),
    }
}

fn admission(admission: Admission, width: u32, geometry: &Geometry) -> Box<dyn AdmissionPolicy> {
    let counts = geometry.counts();
    let planes = match admission {
        Admission::All => return Box::new(All),
        Admission::OnePerDie => counts.planes_per_die,
        Admission::OnePerChannel => counts.dies_per_channel * counts.planes_per_die,
        Admission::OnePerDrive => geometry.planes(),
        Admission::Rotating => {
            let width = NonZeroU32::new(width).expect("checked with the profile");
            return Box::new(Rotating::new(geometry, width));
        }
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
