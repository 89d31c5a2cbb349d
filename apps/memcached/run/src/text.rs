//! The client's side of memcached's text protocol: commands, and the answers to them. Clients in simulated and in wall time use both.
//!
//! Left out: the meta protocol, several keys in a command, and versions of items.

/// `get`.
pub(crate) fn get(key: &str) -> Vec<u8> {
    format!("get {key}\r\n").into_bytes()
}

/// `set` and the other commands with a value.
pub(crate) fn store(command: &str, key: &str, expiry_s: u64, value: &[u8]) -> Vec<u8> {
    let head = format!("{command} {key} 0 {expiry_s} {}\r\n", value.len());
    [head.as_bytes(), value, b"\r\n"].concat()
}

/// `delete`.
#[cfg(target_os = "linux")]
pub(crate) fn delete(key: &str) -> Vec<u8> {
    format!("delete {key}\r\n").into_bytes()
}

/// An answer to one command.
#[derive(PartialEq, Eq, Debug)]
pub(crate) enum Answer<'a> {
    /// The item of a key.
    Found { key: &'a [u8], value: &'a [u8] },
    /// The key has no item.
    Missing,
    /// The value was stored, or the item deleted.
    Done,
    /// The key has an item and should have none, or the other way round.
    NotDone,
    /// The command has failed: the server's words.
    Failed(&'a str),
}

/// Bytes of a line at most: a key has 250.
const LINE: usize = 2_048;
/// What follows a value.
const AFTER_VALUE: &[u8] = b"\r\nEND\r\n";

/// The answer that these bytes are; `None` if more of it must follow. A value has `most` bytes at most.
///
/// # Errors
/// What the bytes are that are no answer.
pub(crate) fn answer(bytes: &[u8], most: usize) -> Result<Option<Answer<'_>>, String> {
    let Some(line) = line(bytes)? else { return Ok(None) };
    let rest = &bytes[line.len() + 2..];
    if let Some(item) = line.strip_prefix(b"VALUE ") {
        let (key, len) = header(item).ok_or_else(|| shown(line))?;
        if len > most {
            return Err(format!("a value of {len} bytes, where {most} at most were put"));
        }
        let whole = len + AFTER_VALUE.len();
        return match rest.len() {
            less if less < whole => Ok(None),
            _ if rest[len..] != *AFTER_VALUE => Err(format!("{} after a value of {len} bytes", shown(&rest[len..]))),
            _ => Ok(Some(Answer::Found { key, value: &rest[..len] })),
        };
    }
    let answer = match line {
        b"END" => Answer::Missing,
        b"STORED" | b"DELETED" => Answer::Done,
        b"NOT_STORED" | b"EXISTS" | b"NOT_FOUND" => Answer::NotDone,
        _ => Answer::Failed(error(line).ok_or_else(|| shown(line))?),
    };
    if rest.is_empty() { Ok(Some(answer)) } else { Err(format!("{} after {}", shown(rest), shown(line))) }
}

/// Names and values of `stats`; `None` if more must follow. A server without the command has none.
///
/// # Errors
/// What the bytes are that are no statistics.
#[cfg(target_os = "linux")]
pub(crate) fn statistics(mut bytes: &[u8]) -> Result<Option<Vec<(String, String)>>, String> {
    /// Bytes at most.
    const MOST: usize = 1 << 20;
    if bytes.len() > MOST {
        return Err(format!("statistics of more than {MOST} bytes"));
    }
    let mut found = Vec::new();
    while let Some(line) = line(bytes)? {
        bytes = &bytes[line.len() + 2..];
        let text = String::from_utf8_lossy(line);
        if let Some((name, value)) = text.strip_prefix("STAT ").and_then(|stat| stat.split_once(' ')) {
            found.push((name.to_owned(), value.to_owned()));
        } else if bytes.is_empty() && (line == b"END" || error(line).is_some()) {
            return Ok(Some(found));
        } else if !line.starts_with(b"STAT ") {
            return Err(shown(line));
        }
    }
    Ok(None)
}

/// The first line, without its end.
fn line(bytes: &[u8]) -> Result<Option<&[u8]>, String> {
    let first = &bytes[..bytes.len().min(LINE)];
    match first.iter().position(|byte| *byte == b'\n') {
        Some(end) => first[..end].strip_suffix(b"\r").map(Some).ok_or_else(|| shown(&first[..=end])),
        None if first.len() == LINE => Err(format!("a line of more than {LINE} bytes")),
        None => Ok(None),
    }
}

/// Key and length of a value.
fn header(item: &[u8]) -> Option<(&[u8], usize)> {
    let mut words = item.split(|byte| *byte == b' ');
    let (key, flags, len) = (words.next()?, words.next()?, words.next()?);
    let number = |word: &[u8]| std::str::from_utf8(word).ok()?.parse::<u32>().ok();
    number(flags)?;
    let len = usize::try_from(number(len)?).ok()?;
    words.next().is_none().then_some((key, len))
}

/// An answer that reports a failure.
fn error(line: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(line).ok()?;
    let is_error =
        text == "ERROR" || ["ERROR ", "SERVER_ERROR", "CLIENT_ERROR"].iter().any(|word| text.starts_with(word));
    is_error.then_some(text)
}

/// Bytes of an answer for a message.
fn shown(bytes: &[u8]) -> String {
    const SHOWN: usize = 80;
    let more = if bytes.len() > SHOWN { "..." } else { "" };
    format!("{:?}{more}", String::from_utf8_lossy(&bytes[..bytes.len().min(SHOWN)]))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each answer is one whatever part of it has come, and only when all has.
    #[test]
    fn an_answer_is_whole_at_its_last_byte() {
        let value = |value: &'static str| Answer::Found { key: b"a", value: value.as_bytes() };
        for (bytes, expected) in [
            ("VALUE a 0 5\r\nhello\r\nEND\r\n", value("hello")),
            ("VALUE a 7 7\r\n\r\nEND\r\n\r\nEND\r\n", value("\r\nEND\r\n")),
            ("VALUE a 0 0\r\n\r\nEND\r\n", value("")),
            ("END\r\n", Answer::Missing),
            ("STORED\r\n", Answer::Done),
            ("NOT_FOUND\r\n", Answer::NotDone),
            ("SERVER_ERROR out of memory\r\n", Answer::Failed("SERVER_ERROR out of memory")),
            ("ERROR\r\n", Answer::Failed("ERROR")),
        ] {
            for end in 0..bytes.len() {
                assert_eq!(answer(&bytes.as_bytes()[..end], 7), Ok(None), "{:?}", &bytes[..end]);
            }
            assert_eq!(answer(bytes.as_bytes(), 7), Ok(Some(expected)), "{bytes:?}");
            let more = format!("{bytes}x");
            assert!(answer(more.as_bytes(), 7).is_err(), "{more:?}");
        }
    }

    #[test]
    fn what_is_no_answer_is_shown() {
        let long = "x".repeat(LINE);
        for (bytes, problem) in [
            ("HTTP/1.1 400 Bad Request\r\n", "\"HTTP/1.1 400 Bad Request\""),
            ("STORED\n", "\"STORED\\n\""),
            ("VALUE a 0\r\n", "\"VALUE a 0\""),
            ("VALUE a 0 x\r\n", "\"VALUE a 0 x\""),
            ("VALUE a 0 99999999999999999999\r\n", "\"VALUE a 0 9999"),
            ("VALUE a 0 8\r\n", "a value of 8 bytes, where 7 at most were put"),
            ("VALUE a 0 1\r\nxy\r\nEND\r\n", "after a value of 1 bytes"),
            ("\r\n", "\"\""),
            (&long, "a line of more than 2048 bytes"),
        ] {
            let found = answer(bytes.as_bytes(), 7).unwrap_err();
            assert!(found.contains(problem), "{bytes:?}: {found}");
        }
        assert!(answer(b"\xff\xfe\r\n", 7).is_err());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn statistics_are_names_and_values() {
        let bytes = b"STAT pid 7\r\nSTAT version 1.6 x\r\nSTAT empty \r\nEND\r\n";
        let pairs = [("pid", "7"), ("version", "1.6 x"), ("empty", "")];
        let pairs = pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
        assert!((0..bytes.len()).all(|end| statistics(&bytes[..end]) == Ok(None)));
        assert_eq!(statistics(bytes), Ok(Some(pairs)));
        assert_eq!(statistics(b"ERROR\r\n"), Ok(Some(Vec::new())));
        assert!(statistics(b"STORED\r\n").is_err() && statistics(b"END\r\nEND\r\n").is_err());
    }
}
