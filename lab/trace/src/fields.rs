//! Fields of a line: splitting, and numbers read from bytes. A line need not be UTF-8; errors show its text with
//! replacement characters.

use nandscape_lab_workload::Direction;

use crate::record::Record;

/// The problem of a line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct LineError(pub(crate) String);

pub(crate) type Parsed = Result<Option<Record>, LineError>;

/// The most bytes of one request: a larger number must be in another unit.
const MOST_BYTES: u64 = 1 << 40;

/// The most characters of a bad field that a message shows.
const SHOWN: usize = 40;

impl LineError {
    #[cold]
    pub(crate) fn not(field: &str, text: &[u8], expected: &str) -> LineError {
        let shown = String::from_utf8_lossy(&text[..text.len().min(SHOWN)]);
        let shown: String = shown.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
        let more = if text.len() > SHOWN { "..." } else { "" };
        LineError(format!("{field} \"{shown}{more}\" is not {expected}"))
    }

    #[cold]
    pub(crate) fn missing(field: &str, layout: &str) -> LineError {
        LineError(format!("{field} is missing; a line is {layout}"))
    }
}

/// Fields separated by commas, trimmed.
pub(crate) struct Csv<'a>(pub(crate) Option<&'a [u8]>);

impl<'a> Iterator for Csv<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let rest = self.0?;
        let field = match rest.iter().position(|byte| *byte == b',') {
            Some(end) => {
                self.0 = Some(&rest[end + 1..]);
                &rest[..end]
            }
            None => {
                self.0 = None;
                rest
            }
        };
        Some(field.trim_ascii())
    }
}

/// Fields separated by blanks.
pub(crate) struct Words<'a>(pub(crate) &'a [u8]);

impl<'a> Iterator for Words<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let rest = self.0.trim_ascii_start();
        if rest.is_empty() {
            return None;
        }
        let end = rest.iter().position(u8::is_ascii_whitespace).unwrap_or(rest.len());
        self.0 = &rest[end..];
        Some(&rest[..end])
    }
}

/// Takes exactly `N` fields.
pub(crate) fn exactly<'a, const N: usize>(
    mut fields: impl Iterator<Item = &'a [u8]>,
    names: [&str; N],
    layout: &str,
) -> Result<[&'a [u8]; N], LineError> {
    let mut taken = [&b""[..]; N];
    for (slot, name) in taken.iter_mut().zip(names) {
        *slot = fields.next().ok_or_else(|| LineError::missing(name, layout))?;
    }
    match fields.next() {
        Some(_) => Err(LineError(format!("has more than {N} fields; a line is {layout}"))),
        None => Ok(taken),
    }
}

/// A whole number.
pub(crate) fn whole(field: &str, text: &[u8]) -> Result<u64, LineError> {
    // Nineteen digits always fit; longer numbers are rare.
    let mut value = 0u64;
    let (sure, rest) = text.split_at(text.len().min(19));
    for byte in sure {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return Err(no_whole(field, text));
        }
        value = value * 10 + u64::from(digit);
    }
    for byte in rest {
        let digit = byte.wrapping_sub(b'0');
        let next = value.checked_mul(10).and_then(|ten| ten.checked_add(digit.into()));
        value = next.filter(|_| digit < 10).ok_or_else(|| no_whole(field, text))?;
    }
    if text.is_empty() { Err(no_whole(field, text)) } else { Ok(value) }
}

#[cold]
fn no_whole(field: &str, text: &[u8]) -> LineError {
    let digits = !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    LineError::not(field, text, if digits { "below 2^64" } else { "a whole number" })
}

/// A number of units, each of `unit_ns` nanoseconds (a power of ten), as nanoseconds, rounded to the nearest.
pub(crate) fn time(field: &str, text: &[u8], unit_ns: u64) -> Result<u64, LineError> {
    let Some(point) = text.iter().position(|byte| !byte.is_ascii_digit()) else {
        return whole(field, text)?.checked_mul(unit_ns).ok_or_else(|| too_late(field, text));
    };
    let (units, fraction) = (&text[..point], &text[point + 1..]);
    if text[point] != b'.' || point == 0 || fraction.is_empty() || !fraction.iter().all(u8::is_ascii_digit) {
        return rare_time(field, text, unit_ns);
    }
    let mut scale = unit_ns;
    let mut ns = whole(field, units)?.checked_mul(unit_ns).ok_or_else(|| too_late(field, text))?;
    for digit in fraction {
        let digit = u64::from(digit - b'0');
        if scale == 1 {
            return ns.checked_add(u64::from(digit >= 5)).ok_or_else(|| too_late(field, text));
        }
        scale /= 10;
        ns = ns.checked_add(digit * scale).ok_or_else(|| too_late(field, text))?;
    }
    Ok(ns)
}

/// Times with an exponent, as some programs print them: 1e-05.
#[cold]
fn rare_time(field: &str, text: &[u8], unit_ns: u64) -> Result<u64, LineError> {
    let expected = "a time: a number, not negative";
    let number =
        std::str::from_utf8(text).ok().filter(|text| !text.contains(['i', 'I', 'n', 'N']) && !text.starts_with('+'));
    let number: Option<f64> = number.and_then(|text| text.parse().ok());
    let ns = number.map(|units| units * unit_ns as f64).ok_or_else(|| LineError::not(field, text, expected))?;
    match ns {
        negative if negative < 0.0 => Err(LineError::not(field, text, expected)),
        late if late >= 1.8e19 => Err(too_late(field, text)),
        ns => Ok(nearest(ns)),
    }
}

fn nearest(ns: f64) -> u64 {
    (ns + 0.5) as u64
}

#[cold]
fn too_late(field: &str, text: &[u8]) -> LineError {
    LineError::not(field, text, "a time that 64 bits of nanoseconds hold, 584 years")
}

/// A number of sectors of 512 bytes, as bytes.
pub(crate) fn sectors(field: &str, text: &[u8]) -> Result<u64, LineError> {
    whole(field, text)?.checked_mul(512).ok_or_else(|| LineError::not(field, text, "a number of sectors below 2^55"))
}

/// One of two letters, the first for a read.
pub(crate) fn read_or_write(
    field: &str,
    text: &[u8],
    read: u8,
    write: u8,
    expected: &str,
) -> Result<Direction, LineError> {
    match text {
        [letter] if letter.eq_ignore_ascii_case(&read) => Ok(Direction::Read),
        [letter] if letter.eq_ignore_ascii_case(&write) => Ok(Direction::Write),
        _ => Err(LineError::not(field, text, expected)),
    }
}

/// A request with a valid address and length.
pub(crate) fn request(at: u64, device: u32, direction: Direction, offset: u64, bytes: u64) -> Parsed {
    if bytes == 0 && direction != Direction::Flush {
        return Err(LineError("the size is 0".to_owned()));
    }
    if bytes > MOST_BYTES {
        return Err(LineError(format!("a request of {bytes} bytes is more than 1 TiB; is the format right?")));
    }
    if offset.checked_add(bytes).is_none_or(|end| end > 1 << 63) {
        return Err(LineError(format!("byte {offset} lies beyond 2^63; is the format right?")));
    }
    Ok(Some(Record { at, device, direction, offset, bytes, after_flush: false }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem<T: std::fmt::Debug>(result: Result<T, LineError>) -> String {
        result.unwrap_err().0
    }

    #[test]
    fn fields_are_split() {
        assert_eq!(Csv(Some(b"a, b,,c")).collect::<Vec<_>>(), [&b"a"[..], b"b", b"", b"c"]);
        assert_eq!(Words(b"  a \tb  ").collect::<Vec<_>>(), [&b"a"[..], b"b"]);
        assert_eq!(exactly(Words(b"1 2"), ["x", "y"], "x y"), Ok([&b"1"[..], b"2"]));
        assert_eq!(problem(exactly(Words(b"1"), ["x", "y"], "x y")), "y is missing; a line is x y");
        assert_eq!(problem(exactly(Words(b"1 2 3"), ["x", "y"], "x y")), "has more than 2 fields; a line is x y");
    }

    #[test]
    fn whole_numbers() {
        assert_eq!(whole("n", b"18446744073709551615"), Ok(u64::MAX));
        assert_eq!(problem(whole("n", b"18446744073709551616")), "n \"18446744073709551616\" is not below 2^64");
        for text in [&b""[..], b"-1", b"+1", b"1.5", b"1e3", b"0x10", b" 1", b"\xff"] {
            assert!(problem(whole("n", text)).ends_with("is not a whole number"), "{text:?}");
        }
        assert_eq!(problem(whole("n", b"\xff\x1b")), "n \"\u{fffd}\u{fffd}\" is not a whole number");
        let long = problem(whole("n", &[b'x'; 1_000]));
        assert!(long.len() < 80 && long.contains("...\""), "{long}");
    }

    #[test]
    fn times_are_exact_to_the_nanosecond() {
        for (text, unit, ns) in [
            ("0.551706", 1_000_000_000, 551_706_000),
            ("22.810", 1_000_000, 22_810_000),
            ("7", 1_000_000, 7_000_000),
            ("128166372003061629", 100, 12_816_637_200_306_162_900),
            ("0.0000000004", 1_000_000_000, 0),
            ("0.0000000005", 1_000_000_000, 1),
            ("0.1234567894", 1_000_000_000, 123_456_789),
            ("1e-05", 1_000_000_000, 10_000),
            ("1.5E3", 1_000, 1_500_000),
            ("1.5e+06", 1_000, 1_500_000_000),
            ("2.", 1_000, 2_000),
        ] {
            assert_eq!(time("t", text.as_bytes(), unit), Ok(ns), "{text}");
        }
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for text in ["-1", "-0.5", "+1", "", ".", "nan", "inf", "1.2.3", "12:30", "1,5"] {
            assert!(problem(time("t", text.as_bytes(), 1_000)).contains("is not a"), "{text}");
        }
        for text in ["18446744073709551", "1e300", "99999999999999999.9"] {
            assert!(problem(time("t", text.as_bytes(), 1_000_000_000)).contains("584 years"), "{text}");
        }
    }

    #[test]
    fn places_and_lengths_must_make_sense() {
        assert!(request(0, 0, Direction::Flush, 0, 0).is_ok());
        assert_eq!(problem(request(0, 0, Direction::Read, 0, 0)), "the size is 0");
        assert!(problem(request(0, 0, Direction::Read, 0, (1 << 40) + 1)).contains("more than 1 TiB"));
        assert!(problem(request(0, 0, Direction::Read, u64::MAX, 1)).contains("beyond 2^63"));
        assert!(problem(sectors("lba", b"36028797018963968")).contains("below 2^55"));
    }
}
