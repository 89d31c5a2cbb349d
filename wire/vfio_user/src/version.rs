//! The first message each way (`VFIO_USER_VERSION`): version numbers, and behind them capabilities as JSON with a zero
//! byte at the end.

use serde::{Deserialize, Serialize};
use zerocopy::little_endian::U16;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Begins the payload.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Version {
    /// Both sides have the same.
    pub major: U16,
    /// The server's is the client's at most.
    pub minor: U16,
}

const _: () = assert!(size_of::<Version>() == 4);

/// The major version of the protocol.
pub const MAJOR: u16 = 0;
/// The minor version of the protocol: the lowest, which every side knows.
pub const MINOR: u16 = 0;

/// The capabilities of a side. A missing value has the default of the specification.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct Capabilities {
    /// The most descriptors that the side receives in a message.
    pub max_msg_fds: u64,
    /// The most bytes of data that it receives or sends in a message.
    pub max_data_xfer_size: u64,
    /// The most maps at a time.
    pub max_dma_maps: u64,
    /// Sizes of pages that addresses and lengths of maps are multiples of, or-ed together.
    pub pgsizes: u64,
}

impl Default for Capabilities {
    fn default() -> Capabilities {
        Capabilities { max_msg_fds: 1, max_data_xfer_size: 1 << 20, max_dma_maps: 65_535, pgsizes: 4_096 }
    }
}

#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct Document {
    capabilities: Capabilities,
}

impl Capabilities {
    /// Its form in a message.
    ///
    /// # Panics
    /// Never: numbers can be written.
    pub fn to_bytes(self) -> Vec<u8> {
        let mut bytes = serde_json::to_vec(&Document { capabilities: self }).expect("numbers can be written");
        bytes.push(0);
        bytes
    }

    /// Out of a message; `None` when it is neither empty nor JSON of this form. Members of other names are ignored.
    pub fn parse(bytes: &[u8]) -> Option<Capabilities> {
        let text = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
        if text.is_empty() {
            return Some(Capabilities::default());
        }
        if !text.trim_ascii_start().starts_with(b"{") {
            return None;
        }
        serde_json::from_slice::<Document>(text).ok().map(|document| document.capabilities)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_has_its_default_and_what_is_malformed_is_refused() {
        let parse = |text: &str| Capabilities::parse(text.as_bytes());
        let default = Some(Capabilities::default());
        for text in
            ["", "\0", "{}", "{}\0", "{\"capabilities\":{}}\0{", "{\"capabilities\":{\"migration\":{}},\"x\":1}"]
        {
            assert_eq!(parse(text), default, "{text:?}");
        }
        let fds = "{\"capabilities\":{\"max_msg_fds\":8}}\0";
        assert_eq!(parse(fds), Some(Capabilities { max_msg_fds: 8, ..Capabilities::default() }));
        let bad = ["{", "[]", "7", "{\"capabilities\":7}", "{\"capabilities\":{\"max_msg_fds\":\"8\"}}"];
        for text in bad.into_iter().chain(["{\"capabilities\":{\"max_msg_fds\":-1}}", "\u{fffd}", "nul"]) {
            assert_eq!(parse(text), None, "{text:?}");
        }
        let deep = "[".repeat(100_000);
        assert_eq!(parse(&deep), None, "nesting has a limit");
    }

    #[test]
    fn what_is_written_is_read_back() {
        let one = Capabilities { max_msg_fds: 16, max_data_xfer_size: 5, max_dma_maps: 7, pgsizes: 1 << 63 };
        assert_eq!(Capabilities::parse(&one.to_bytes()), Some(one));
    }
}
