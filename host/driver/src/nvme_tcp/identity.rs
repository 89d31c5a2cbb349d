//! The identity of a remote drive, from its Identify data.

use std::fmt;

use nandscape_wire_nvme::identify::{Controller, Namespace};
use nandscape_wire_nvme::vendor::Capabilities;

/// See the file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Identity {
    /// Model number, without the spaces after it.
    pub model: String,
    /// Serial number.
    pub serial: String,
    /// Firmware revision.
    pub firmware: String,
    /// Optional NVM Command Support (ONCS).
    pub optional_commands: u16,
    /// How deallocated blocks read (DLFEAT).
    pub deallocated: u8,
    /// With vendor extensions ([`Capabilities`]), the bits of CDW2 of a Read that it honours, and the fields of
    /// completions that it fills.
    pub attributes: u32,
    /// See `attributes`.
    pub hints: u32,
    /// Whether the deadline of CDW3 is honoured.
    pub deadlines: bool,
    /// Namespace Globally Unique Identifier; zeros if there is none.
    pub nguid: [u8; 16],
    /// IEEE Extended Unique Identifier; zeros if there is none.
    pub eui64: [u8; 8],
    /// The identifiers of the active namespaces of its controller.
    pub namespaces: Vec<u32>,
}

impl Identity {
    pub(super) fn of(controller: &Controller, namespace: &Namespace, namespaces: Vec<u32>) -> Identity {
        let capabilities = Capabilities::of(&controller.vendor).unwrap_or_default();
        Identity {
            model: text(&controller.mn),
            serial: text(&controller.sn),
            firmware: text(&controller.fr),
            optional_commands: controller.oncs.get(),
            deallocated: namespace.dlfeat,
            attributes: capabilities.attributes.get(),
            hints: capabilities.hints.get(),
            deadlines: capabilities.deadline.get() & 1 != 0,
            nguid: namespace.nguid,
            eui64: namespace.eui64,
            namespaces,
        }
    }

    /// Whether it is the same namespace as before: firmware may be another one now.
    pub(super) fn is_same_namespace(&self, before: &Identity) -> bool {
        (&self.serial, self.nguid, self.eui64) == (&before.serial, before.nguid, before.eui64)
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Identity { model, serial, firmware, .. } = self;
        write!(f, "{model}, serial number {serial}, firmware {firmware}")
    }
}

/// A field of ASCII text, which may hold anything.
fn text(field: &[u8]) -> String {
    let printable = field.iter().map(|byte| if (b' '..=b'~').contains(byte) { char::from(*byte) } else { '?' });
    printable.collect::<String>().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_may_hold_anything() {
        assert_eq!(text(b"Model X   "), "Model X");
        assert_eq!(text(b"a\x1b[2J\xff  "), "a?[2J?");
        assert_eq!(text(b"    "), "");
    }
}
