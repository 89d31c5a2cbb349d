//! The syntax of values in a profile, and the errors for invalid ones.

use nandscape_device_ftl_core::policy::{GcScheme, OwnerSource};
use nandscape_device_ftl_core::{Isolation, RangesOwn};
use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;

use nandscape_device_controller::arbiter::ArbiterKind;
use nandscape_device_controller::{BufferMode, Duplex};
use nandscape_device_ftl_core::policy::StripeOrder;
use nandscape_device_media::{Cell, Interleaving, PlaneMode, Priority, ProgramUnit, Registers, Rule};
use nandscape_sim::Span;
use nandscape_sim::units::{Bytes, Ratio, UnitError};
use serde::de::{self, Deserialize, Deserializer, Visitor};
use serde::ser::{Serialize, Serializer};

/// A value in text form: "40us", "16KiB", "greedy". A bare number is read as text.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct Text<T>(pub T);

impl<'de, T> Deserialize<'de> for Text<T>
where
    T: FromStr,
    T::Err: fmt::Display,
{
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Text<T>, D::Error> {
        struct TextVisitor<T>(PhantomData<T>);
        impl<T> Visitor<'_> for TextVisitor<T>
        where
            T: FromStr,
            T::Err: fmt::Display,
        {
            type Value = Text<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a value such as those the documentation of the key shows")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Text<T>, E> {
                text.parse().map(Text).map_err(E::custom)
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Text<T>, E> {
                self.visit_str(&number.to_string())
            }

            fn visit_f64<E: de::Error>(self, number: f64) -> Result<Text<T>, E> {
                // No quantity is that large; the message does not need its digits.
                let text = if number.abs() >= 1e18 { format!("{number:e}") } else { number.to_string() };
                self.visit_str(&text)
            }
        }
        deserializer.deserialize_any(TextVisitor(PhantomData))
    }
}

impl<T: fmt::Display> Serialize for Text<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

/// One time for all page types, or one for each.
#[derive(Clone, PartialEq, Debug, serde::Deserialize, serde::Serialize)]
#[serde(untagged, expecting = "expected a time such as \"40us\", or one for each page type: [\"50us\", \"60us\"]")]
pub enum PerPageType<T> {
    /// The same for all.
    One(T),
    /// From the lowest page type to the highest.
    Each(Vec<T>),
}

/// A share of something, or an amount of bytes: "70%", "10GiB".
#[derive(Copy, Clone, PartialEq, Debug)]
pub enum ShareOrBytes {
    /// A share.
    Share(Ratio),
    /// An amount.
    Bytes(Bytes),
}

impl FromStr for ShareOrBytes {
    type Err = String;

    fn from_str(text: &str) -> Result<ShareOrBytes, String> {
        match text.trim_end().ends_with(char::is_alphabetic) {
            true => text.parse().map(ShareOrBytes::Bytes).map_err(|problem: UnitError| problem.to_string()),
            false => text
                .parse()
                .map(ShareOrBytes::Share)
                .map_err(|problem: UnitError| format!("{problem}, or an amount: \"10GiB\"")),
        }
    }
}

impl fmt::Display for ShareOrBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ShareOrBytes::Share(share) => share.fmt(f),
            ShareOrBytes::Bytes(bytes) => bytes.fmt(f),
        }
    }
}

/// Weights of the high, medium and low priority class: `8:4:1`.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Weights(pub [u32; 3]);

impl FromStr for Weights {
    type Err = String;

    fn from_str(text: &str) -> Result<Weights, String> {
        let numbers: Option<Vec<u32>> = text.split(':').map(|part| part.trim().parse().ok()).collect();
        let weights = numbers.and_then(|numbers| <[u32; 3]>::try_from(numbers).ok());
        let weights = weights.filter(|weights| weights.iter().all(|weight| (1..=256).contains(weight)));
        weights
            .map(Weights)
            .ok_or_else(|| format!("{text:?} is not HIGH:MEDIUM:LOW with 1 to 256 each, such as \"8:4:1\""))
    }
}

impl fmt::Display for Weights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [high, medium, low] = self.0;
        write!(f, "{high}:{medium}:{low}")
    }
}

/// Shares of something, in a list: `["2%", 0.001]`.
#[derive(Clone, PartialEq, Debug, Default, serde::Deserialize, serde::Serialize)]
#[serde(transparent)]
pub struct Shares(pub Vec<Text<Ratio>>);

/// Faults, in a list, each as a line of text.
#[derive(Clone, PartialEq, Debug, Default, serde::Deserialize, serde::Serialize)]
#[serde(transparent)]
pub struct Faults(pub Vec<Text<Rule>>);

/// A setting that changes while the drive runs.
#[derive(Clone, PartialEq, Debug)]
pub struct Change {
    /// The drive time of the change.
    pub at: Span,
    /// `KEY=VALUE`.
    pub setting: String,
}

impl FromStr for Change {
    type Err = String;

    fn from_str(text: &str) -> Result<Change, String> {
        let (at, setting) = text
            .split_once(' ')
            .ok_or_else(|| format!("{text:?} is no change; \"10s ftl.ox_block.gc_slots=4\" is one"))?;
        let at = at.parse().map_err(|problem| format!("{text:?}: {problem}"))?;
        Ok(Change { at, setting: setting.trim().to_owned() })
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.at, self.setting)
    }
}

/// Changes, in a list, each as a line of text.
#[derive(Clone, PartialEq, Debug, Default, serde::Deserialize, serde::Serialize)]
#[serde(transparent)]
pub struct Changes(pub Vec<Text<Change>>);

/// Choices with names.
pub trait Named: Sized + Copy + PartialEq + 'static {
    /// What an error adds to the names.
    const HINT: &'static str = "";

    /// All of them.
    fn all() -> Vec<(&'static str, Self)>;
}

/// One of several choices, written by name.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct Choice<T>(pub T);

impl<T: Named> FromStr for Choice<T> {
    type Err = String;

    fn from_str(text: &str) -> Result<Choice<T>, String> {
        let all = T::all();
        match all.iter().find(|(name, _)| *name == text) {
            Some((_, value)) => Ok(Choice(*value)),
            None => {
                let names: Vec<&str> = all.iter().map(|(name, _)| *name).collect();
                Err(format!("\"{text}\" is none of {}{}", names.join(", "), T::HINT))
            }
        }
    }
}

impl<T: Named> fmt::Display for Choice<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = T::all();
        let name = all.iter().find(|(_, value)| *value == self.0).map_or("?", |(name, _)| name);
        f.write_str(name)
    }
}

/// The kinds of FTL.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum FtlKind {
    /// The page-mapping FTL.
    Page,
    /// OX-Block, which keeps its tables in flash.
    OxBlock,
    /// Like pblk of Linux.
    Pblk,
    /// Like the FTL of SPDK.
    Spdk,
    /// Zones, which the host writes in order.
    Zone,
    /// Sorted runs of an LSM-tree.
    Lsm,
    /// None: an open-channel drive.
    OpenChannel,
}

/// The part of the drive over which a zone is spread.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum ZoneSpread {
    /// All of it.
    Superblock,
    /// One die, or plane, of every channel.
    PlaneGroup,
    /// Few dies, or planes.
    Dies,
}

/// The medium of a group of channels.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum MediaKind {
    /// NAND flash.
    Nand,
    /// Memory that keeps its contents without power.
    Ram,
}

/// Where a part of a drive keeps its flash.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum PartStore {
    /// With the drive.
    Drive,
    /// In memory of the process: new at each start.
    Ram,
}

/// Numbers of channels, or of dies in channels, in ascending order, each once. They are written as ranges: "0-3,6".
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Channels(pub Vec<u32>);

impl FromStr for Channels {
    type Err = String;

    fn from_str(text: &str) -> Result<Channels, String> {
        let wrong = || format!("\"{text}\" does not name channels, or dies of one; \"0-3\" and \"0-3,6\" do");
        let mut channels = Vec::new();
        for range in text.split(',') {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            let number = |text: &str| text.trim().parse::<u32>().ok().filter(|number| *number < 256);
            let (first, last) = (number(first).ok_or_else(wrong)?, number(last).ok_or_else(wrong)?);
            if first > last {
                return Err(wrong());
            }
            channels.extend(first..=last);
        }
        channels.sort_unstable();
        match channels.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(twice) => Err(format!("\"{text}\" names {} twice", twice[0])),
            None => Ok(Channels(channels)),
        }
    }
}

impl fmt::Display for Channels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for run in self.0.chunk_by(|one, next| one + 1 == *next) {
            match run {
                [one] => write!(f, "{separator}{one}")?,
                _ => write!(f, "{separator}{}-{}", run[0], run[run.len() - 1])?,
            }
            separator = ",";
        }
        Ok(())
    }
}

/// The fate of the mapping in a power cut.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Tables {
    /// It survives.
    Saved,
    /// It is rebuilt from the flash.
    Rebuilt,
}

/// Which block is cleaned next.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Victim {
    /// The block with the least current data.
    Greedy,
    /// Space gained times age over cost.
    CostBenefit,
}

/// Which stripe of the write buffer goes to flash next.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum FlushOrder {
    /// The stripe that has waited longest.
    InOrder,
    /// Full stripes first, and stripes that no collection delays.
    GcTolerant,
}

/// Which planes may collect at the same time.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Admission {
    /// All.
    All,
    /// One of each die.
    OnePerDie,
    /// One of each channel.
    OnePerChannel,
    /// One of the drive.
    OnePerDrive,
    /// One of each group of planes of parity stripes.
    Rotating,
}

/// The fate of reads that background work delays.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum ReadRule {
    /// They wait.
    Serve,
    /// They wait, or fail if they request fail-fast.
    FailFast,
    /// They are reconstructed from the other members of their parity stripe.
    Reconstruct,
}

macro_rules! named {
    ($($type:ty => $all:expr;)*) => {
        $(impl Named for $type {
            fn all() -> Vec<(&'static str, Self)> {
                $all.to_vec()
            }
        })*
    };
}

impl Named for BufferMode {
    const HINT: &'static str = "; capacitor is power-loss protection";

    fn all() -> Vec<(&'static str, Self)> {
        BufferMode::ALL.to_vec()
    }
}

named! {
    Cell => [Cell::Slc, Cell::Mlc, Cell::Tlc, Cell::Qlc].map(|cell| (cell.name(), cell));
    Registers => [("single", Registers::Single), ("double", Registers::Double)];
    PlaneMode => PlaneMode::ALL;
    ProgramUnit => ProgramUnit::ALL;
    Interleaving => Interleaving::ALL;
    GcScheme => GcScheme::ALL;
    OwnerSource => OwnerSource::ALL;
    Isolation => Isolation::ALL;
    RangesOwn => RangesOwn::ALL;
    ArbiterKind => ArbiterKind::ALL;
    Priority => Priority::ALL;
    Duplex => Duplex::ALL;
    StripeOrder => StripeOrder::ALL;
    FtlKind => [
        ("page", FtlKind::Page),
        ("ox_block", FtlKind::OxBlock),
        ("pblk", FtlKind::Pblk),
        ("spdk", FtlKind::Spdk),
        ("zone", FtlKind::Zone),
        ("lsm", FtlKind::Lsm),
        ("open_channel", FtlKind::OpenChannel),
    ];
    ZoneSpread => [
        ("superblock", ZoneSpread::Superblock),
        ("plane_group", ZoneSpread::PlaneGroup),
        ("dies", ZoneSpread::Dies),
    ];
    MediaKind => [("nand", MediaKind::Nand), ("ram", MediaKind::Ram)];
    PartStore => [("drive", PartStore::Drive), ("ram", PartStore::Ram)];
    Tables => [("saved", Tables::Saved), ("rebuilt", Tables::Rebuilt)];
    FlushOrder => [("in_order", FlushOrder::InOrder), ("gc_tolerant", FlushOrder::GcTolerant)];
    Admission => [
        ("all", Admission::All),
        ("one_per_die", Admission::OnePerDie),
        ("one_per_channel", Admission::OnePerChannel),
        ("one_per_drive", Admission::OnePerDrive),
        ("rotating", Admission::Rotating),
    ];
    ReadRule => [
        ("serve", ReadRule::Serve),
        ("fail_fast", ReadRule::FailFast),
        ("reconstruct", ReadRule::Reconstruct),
    ];
    Victim => [("greedy", Victim::Greedy), ("cost_benefit", Victim::CostBenefit)];
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn channels_are_read_as_they_are_written() {
        for text in ["0", "0-3", "0-3,6", "1,3,5-7,255"] {
            assert_eq!(text.parse::<Channels>().unwrap().to_string(), text);
        }
        assert_eq!("4,0-1,2".parse::<Channels>().unwrap().to_string(), "0-2,4");
        for wrong in ["", "a", "3-1", "0-256", "1,,2", "-1", "0-3,2"] {
            assert!(wrong.parse::<Channels>().is_err(), "{wrong}");
        }
    }
}
