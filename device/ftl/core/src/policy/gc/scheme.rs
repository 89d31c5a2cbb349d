//! The resources that a collection blocks while it works (Li 2.3, Fig. 2.4). They are the only difference between the
//! schemes.

use nandscape_device_media::{Geometry, Holding, PlaneId};

/// The resources that a collection blocks.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum GcScheme {
    /// Nothing, and its work takes no time: the ideal drive that others are compared with.
    Nothing,
    /// The plane it cleans.
    Plane,
    /// The plane's channel too.
    Channel,
    /// The whole controller: no operation of the host begins.
    Controller,
}

impl GcScheme {
    /// All schemes, by their names in profiles.
    pub const ALL: [(&str, GcScheme); 4] = [
        ("controller", GcScheme::Controller),
        ("channel", GcScheme::Channel),
        ("plane", GcScheme::Plane),
        ("none", GcScheme::Nothing),
    ];

    /// The flash resources that a collection holds.
    #[inline]
    pub fn holding(self) -> Holding {
        match self {
            GcScheme::Nothing => Holding::Nothing,
            GcScheme::Plane => Holding::Plane,
            GcScheme::Channel | GcScheme::Controller => Holding::Channel,
        }
    }

    /// Whether a collection of `plane` keeps the host out of `other`.
    #[inline]
    pub fn reaches(self, geometry: &Geometry, plane: PlaneId, other: PlaneId) -> bool {
        match self {
            GcScheme::Nothing => false,
            GcScheme::Plane => other == plane,
            GcScheme::Channel => geometry.channel_of(other) == geometry.channel_of(plane),
            GcScheme::Controller => true,
        }
    }
}
