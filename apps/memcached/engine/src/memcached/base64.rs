//! Base64 with padding (RFC 4648, section 4), in which the meta protocol has keys of any bytes.

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Bytes as text.
pub(crate) fn encode(bytes: &[u8]) -> Vec<u8> {
    let mut text = Vec::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let word = (0..3).fold(0u32, |word, at| word << 8 | u32::from(group.get(at).copied().unwrap_or(0)));
        for digit in 0..4 {
            let is_there = digit <= group.len();
            text.push(if is_there { DIGITS[(word >> (18 - 6 * digit) & 63) as usize] } else { b'=' });
        }
    }
    text
}

/// The bytes of a text; `None` if it is not base64.
pub(crate) fn decode(text: &[u8]) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(4) {
        return None;
    }
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let last = text.len() / 4;
    for (number, group) in text.chunks(4).enumerate() {
        let padding = group.iter().rev().take_while(|digit| **digit == b'=').count();
        if padding > 2 || padding > 0 && number + 1 != last {
            return None;
        }
        let mut word = 0u32;
        for digit in &group[..4 - padding] {
            word = word << 6 | DIGITS.iter().position(|one| one == digit)? as u32;
        }
        word <<= 6 * padding;
        // What padding leaves out is zero.
        if word & ((1 << (8 * padding)) - 1) != 0 {
            return None;
        }
        bytes.extend_from_slice(&word.to_be_bytes()[1..4 - padding]);
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of RFC 4648, section 10.
    #[test]
    fn the_examples_of_the_rfc() {
        let examples =
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="), ("foobar", "Zm9vYmFy")];
        for (bytes, text) in examples {
            assert_eq!(encode(bytes.as_bytes()), text.as_bytes());
            assert_eq!(decode(text.as_bytes()).as_deref(), Some(bytes.as_bytes()));
        }
        for wrong in ["Zg", "Zg=", "Z===", "====", "Zh==", "Zg==Zg==", "Zm9*", "Zm 9"] {
            assert_eq!(decode(wrong.as_bytes()), None, "{wrong}");
        }
    }
}
