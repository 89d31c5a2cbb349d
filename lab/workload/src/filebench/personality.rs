//! The personalities by their names, and the figures that filebench's own workload files give them.

use super::tables::SizeTable;
use super::{Setting, fileserver, networkfs, oltp, varmail, videoserver, webproxy, webserver};
use crate::words::WordError;

/// A personality of filebench.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Personality {
    /// Users' files on a server.
    Fileserver,
    /// Static pages, and one log.
    Webserver,
    /// A mail spool with one file a message.
    Varmail,
    /// The cache of a proxy.
    Webproxy,
    /// Streams of videos, and new ones that replace old.
    Videoserver,
    /// A database with its writers and its log.
    Oltp,
    /// Home folders on a network file server.
    Networkfs,
}

/// The figures of a personality.
pub(crate) struct Figures {
    pub(crate) threads: u32,
    pub(crate) files: u64,
    /// Mean bytes of a file, and the table their sizes come from, if there is one.
    pub(crate) mean_size: u64,
    pub(crate) sizes: Option<&'static SizeTable>,
    /// Names in a directory.
    pub(crate) dir_width: u64,
    /// The share of the files that exist at the start.
    pub(crate) existing: f64,
    /// Bytes of a call that reads or writes a whole file.
    pub(crate) io_size: u64,
    /// The largest append in bytes.
    pub(crate) append_size: u64,
    /// Bytes a second of all readers together.
    pub(crate) rate: Option<u64>,
    /// Rounds a second of all threads together; 0 for as many as they can.
    pub(crate) rounds_per_s: f64,
    /// The figure reduced on a drive that is too small: the size of the files, or their number.
    pub(crate) shrinks: Shrinks,
}

/// The figure reduced on a small drive.
#[derive(Copy, Clone, PartialEq, Eq)]
pub(crate) enum Shrinks {
    Number,
    Size,
}

impl Figures {
    /// Defaults of most personalities.
    pub(crate) const USUAL: Figures = Figures {
        threads: 16,
        files: 1_000,
        mean_size: 16 << 10,
        dir_width: 1_000_000,
        existing: 0.8,
        io_size: 1 << 20,
        append_size: 16 << 10,
        rate: None,
        sizes: None,
        rounds_per_s: 0.0,
        shrinks: Shrinks::Number,
    };
}

impl Personality {
    /// All of them, by their names.
    pub const ALL: [(&str, Personality); 7] = [
        ("fileserver", Personality::Fileserver),
        ("webserver", Personality::Webserver),
        ("varmail", Personality::Varmail),
        ("webproxy", Personality::Webproxy),
        ("videoserver", Personality::Videoserver),
        ("oltp", Personality::Oltp),
        ("networkfs", Personality::Networkfs),
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        Personality::ALL.iter().find(|(_, other)| *other == self).map_or("?", |(name, _)| name)
    }

    pub(crate) fn figures(self) -> &'static Figures {
        match self {
            Personality::Fileserver => &fileserver::FIGURES,
            Personality::Webserver => &webserver::FIGURES,
            Personality::Varmail => &varmail::FIGURES,
            Personality::Webproxy => &webproxy::FIGURES,
            Personality::Videoserver => &videoserver::FIGURES,
            Personality::Oltp => &oltp::FIGURES,
            Personality::Networkfs => &networkfs::FIGURES,
        }
    }

    /// Lays out its files and creates its threads; `None` if there is no room.
    pub(super) fn start(self, setting: &Setting<'_>) -> Option<()> {
        match self {
            Personality::Fileserver => fileserver::start(setting),
            Personality::Webserver => webserver::start(setting),
            Personality::Varmail => varmail::start(setting),
            Personality::Webproxy => webproxy::start(setting),
            Personality::Videoserver => videoserver::start(setting),
            Personality::Oltp => oltp::start(setting),
            Personality::Networkfs => networkfs::start(setting),
        }
    }
}

impl std::str::FromStr for Personality {
    type Err = WordError;

    fn from_str(text: &str) -> Result<Personality, WordError> {
        let found = Personality::ALL.iter().find(|(name, _)| *name == text).map(|(_, personality)| *personality);
        let expected = "a personality: fileserver, webserver, varmail, webproxy, videoserver, oltp or networkfs";
        found.ok_or_else(|| WordError::new(text, expected))
    }
}
