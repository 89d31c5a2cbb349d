//! Detects the format of a trace from its first lines.
//!
//! fio's logs have a header. All others but three have a letter or a word in a particular column, or a different number
//! of columns, so a line fits only one of them. Three have five numbers between blanks and end with 0 or 1: `replay`
//! (milliseconds and bytes), `mqsim` (nanoseconds and sectors) and `disksim` (milliseconds and sectors). They are
//! distinguished by exclusion:
//!
//! - MQSim has no fractions of nanoseconds; DiskSim and the replayer have fractions of milliseconds.
//! - Addresses and sizes in bytes are multiples of 512, because a disk accepts nothing else.
//! - No block layer issues requests above 16 MiB, so sizes above 32,768 are not sectors.
//! - If all addresses and sizes are multiples of 512 and three or more sizes are not powers of two, they are bytes. As
//!   sectors, all requests would be in steps of 256 KiB, with sizes that neither a benchmark nor a file system uses.
//!
//! If more than one format fits, or the remaining one makes the requests arrive impossibly fast or slowly, an error
//! requests the format. A wrong guess would be worse.

use std::collections::BTreeSet;

use crate::devices::Devices;
use crate::fast::Stretch;
use crate::fields::{Words, whole};
use crate::format::{Action, Format};
use crate::reader::is_name;
use crate::recorded;

/// The most lines examined.
const LINES: usize = 2_000;

/// The most sectors of one request.
const MOST_SECTORS: u64 = 32_768;

/// The format of a text with this beginning.
///
/// # Errors
/// The reason why no format is certain, and the remedy.
pub(crate) fn detect(prefix: &[u8]) -> Result<Format, String> {
    let prefix = prefix.strip_prefix(b"\xef\xbb\xbf").unwrap_or(prefix);
    if prefix.starts_with(recorded::MARK) {
        return Ok(Format::Recording);
    }
    let content = |line: &&[u8]| line.trim_ascii_start().first().is_some_and(|first| *first != b'#');
    let mut lines: Vec<&[u8]> = prefix.split(|byte| *byte == b'\n').filter(content).take(LINES).collect();
    let Some(first) = lines.first().map(|line| line.trim_ascii()) else {
        return Err("is empty".to_owned());
    };
    match first {
        b"fio version 2 iolog" => return Ok(Format::FioV2),
        b"fio version 3 iolog" => return Ok(Format::FioV3),
        _ if first.starts_with(b"fio version") => {
            return Err("is a log of fio in a version other than 2 and 3, the known ones".to_owned());
        }
        [letter, ..] if is_name(*letter) && lines.get(1).is_some_and(|line| !is_name(line[0])) => {
            lines.remove(0);
        }
        _ => {}
    }
    let fitting: Vec<Format> = Format::ALL.into_iter().filter(|format| fits(*format, &lines)).collect();
    match fitting[..] {
        [] => Err(unknown(first)),
        [format] => Ok(format),
        _ => five_numbers(&lines, fitting),
    }
}

/// Whether at least half of the lines are of this format.
fn fits(format: Format, lines: &[&[u8]]) -> bool {
    if matches!(format, Format::FioV2 | Format::FioV3) {
        return false;
    }
    let (mut parser, mut devices) = (format.parser(Action::Queued), Devices::default());
    let good = lines.iter().filter(|line| parser.line(line, &mut devices).is_ok()).count();
    good > 0 && good * 2 >= lines.len()
}

fn unknown(first: &[u8]) -> String {
    let shown = String::from_utf8_lossy(&first[..first.len().min(60)]).replace(char::is_control, "\u{fffd}");
    format!("begins with \"{shown}\", which is none of the formats {}; --format names one", Format::names())
}

/// Chooses among the formats with five numbers, or returns the meaning of the first line in each.
fn five_numbers(lines: &[&[u8]], fitting: Vec<Format>) -> Result<Format, String> {
    let (mut fractions, mut odd, mut large, mut count, mut uneven) = (false, 0, false, 0, BTreeSet::new());
    let mut stretch = Stretch::default();
    for line in lines {
        let words: Vec<&[u8]> = Words(line).take(6).collect();
        let &[at, _, offset, size, _] = &words[..] else { continue };
        let (Ok(offset), Ok(size)) = (whole("", offset), whole("", size)) else { continue };
        count += 1;
        stretch.add(at, size);
        fractions |= !at.iter().all(u8::is_ascii_digit);
        odd += usize::from(!offset.is_multiple_of(512) || !size.is_multiple_of(512));
        large |= size > MOST_SECTORS;
        if !size.is_power_of_two() {
            uneven.insert(size);
        }
    }
    // Of sector numbers, one in 512 is a multiple of 512 by chance; of byte numbers, all are unless malformed. A share
    // in between is ambiguous.
    let (may_be_bytes, may_be_sectors) = (odd * 2 <= count, odd > 0 || !large && uneven.len() < 3);
    let may_be = |format: &Format| match format {
        Format::Replay => may_be_bytes,
        Format::Mqsim => may_be_sectors && !fractions,
        Format::Disksim => may_be_sectors && fractions,
        _ => true,
    };
    match fitting.iter().copied().filter(may_be).collect::<Vec<Format>>()[..] {
        [format] => stretch.check(format, &fitting).map(|()| format),
        ref left => Err(ambiguous(left)),
    }
}

fn ambiguous(left: &[Format]) -> String {
    let each: Vec<String> = left.iter().map(|format| format!("\n  --format {format}: {}", format.layout())).collect();
    format!("has five numbers a line, which may be more than one format; say which:{}", each.concat())
}
