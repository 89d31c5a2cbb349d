//! Traces of caches: the requests of clients of memcached, in the form of Twitter's (Yang et al., OSDI 2020).
//!
//! A line is a request: the second, the key, the bytes of the key and of the value, the client, the operation, and the time to live in seconds.
//! Keys become numbers in the order in which they occur first.
//!
//! Left out: the client, the text of keys, and the bytes of values, which no trace has.

use std::collections::BTreeMap;
use std::io::{BufRead, Read as _};

/// An operation of a client.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Asks {
    /// Its item.
    Get,
    /// That the key has this value, whether it has an item or not.
    Set,
    /// That only a key without an item gets this value.
    Add,
    /// That only a key with an item gets this value.
    Replace,
    /// That the item's value has a part more.
    Append,
    /// That the item's number changes.
    Count,
    /// That the key has no item.
    Delete,
}

/// The operations, as traces name them.
const OPERATIONS: [(&str, Asks); 11] = [
    ("get", Asks::Get),
    ("gets", Asks::Get),
    ("set", Asks::Set),
    ("add", Asks::Add),
    ("replace", Asks::Replace),
    ("cas", Asks::Replace),
    ("append", Asks::Append),
    ("prepend", Asks::Append),
    ("delete", Asks::Delete),
    ("incr", Asks::Count),
    ("decr", Asks::Count),
];

/// A request.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Request {
    /// Seconds since the first one.
    pub at_s: u32,
    /// The number of its key.
    pub key: u32,
    /// Bytes of the key: those of its first request.
    pub key_bytes: u8,
    /// Bytes of the value.
    pub value_bytes: u32,
    /// What is asked for.
    pub asks: Asks,
    /// Seconds that the item may live; 0 is for ever.
    pub ttl_s: u32,
}

/// A trace.
#[derive(Clone, Default, Debug)]
pub struct CacheTrace {
    /// The requests, in the order of their times.
    pub requests: Vec<Request>,
    /// Different keys.
    pub keys: u32,
}

/// Why a text is no such trace.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// It cannot be read.
    #[error("{0}")]
    Read(#[from] std::io::Error),
    /// A line is no request.
    #[error(
        "line {line}: {problem}; valid is TIME,KEY,KEY BYTES,VALUE BYTES,CLIENT,OPERATION,TTL, such as \
         \"0,user:1,6,320,7,get,0\""
    )]
    Line {
        /// Its number, from 1.
        line: u64,
        /// What is wrong.
        problem: String,
    },
    /// It has none.
    #[error("it has no requests")]
    Empty,
}

/// The most bytes of a line: a key has 250 at most, and numbers follow it.
const LINE: u64 = 4_096;
/// The most bytes of a key.
const KEY: u64 = 250;

impl CacheTrace {
    /// Reads a trace, `most` requests of it at most.
    ///
    /// # Errors
    /// Where and why it is none.
    pub fn read(mut text: impl BufRead, most: u64) -> Result<CacheTrace, TraceError> {
        let (mut numbers, mut trace) = (BTreeMap::<Vec<u8>, (u32, u8)>::new(), CacheTrace::default());
        let (mut first_s, mut last_s) = (None, 0);
        let mut bytes = Vec::new();
        for line in 1.. {
            bytes.clear();
            if trace.requests.len() as u64 == most || text.by_ref().take(LINE).read_until(b'\n', &mut bytes)? == 0 {
                break;
            }
            let wrong = |problem: String| TraceError::Line { line, problem };
            if bytes.len() as u64 == LINE && !bytes.ends_with(b"\n") {
                return Err(wrong(format!("it has more than {LINE} bytes")));
            }
            let Some(Line { at_s, key, request }) = Line::parse(&bytes).map_err(wrong)? else { continue };
            let first = *first_s.get_or_insert(at_s);
            if at_s < first || at_s - first < u64::from(last_s) {
                return Err(wrong(format!("its time is {at_s}, before that of the line before")));
            }
            last_s =
                u32::try_from(at_s - first).map_err(|_| wrong(format!("{at_s} is too far from the first time")))?;
            let next = numbers.len() as u32;
            let (key, key_bytes) = *numbers.entry(key.to_vec()).or_insert((next, request.key_bytes));
            trace.requests.push(Request { at_s: last_s, key, key_bytes, ..request });
        }
        trace.keys = numbers.len() as u32;
        if trace.requests.is_empty() { Err(TraceError::Empty) } else { Ok(trace) }
    }

    /// Seconds from the first request to the end of the last second.
    pub fn seconds(&self) -> u64 {
        self.requests.last().map_or(0, |last| u64::from(last.at_s) + 1)
    }
}

/// What a line has; its request has neither time nor number.
struct Line<'a> {
    at_s: u64,
    key: &'a [u8],
    request: Request,
}

impl Line<'_> {
    /// The request of a line; `None` of an empty one.
    fn parse(bytes: &[u8]) -> Result<Option<Line<'_>>, String> {
        let text = bytes.trim_ascii();
        if text.is_empty() {
            return Ok(None);
        }
        // A key may have commas.
        let mut fields = text.rsplitn(6, |byte| *byte == b',');
        let mut field = |what| fields.next().ok_or_else(|| format!("it has no {what}"));
        let [ttl, operation, _client, value, length] = [
            field("time to live")?,
            field("operation")?,
            field("client")?,
            field("size of a value")?,
            field("size of a key")?,
        ];
        let rest = field("key")?;
        let comma = rest.iter().position(|byte| *byte == b',').ok_or("it has fewer than 7 fields")?;
        let (time, key) = (&rest[..comma], &rest[comma + 1..]);
        let asks = OPERATIONS.iter().find(|(name, _)| name.as_bytes() == operation).map(|(_, asks)| *asks);
        let asks = asks.ok_or_else(|| {
            let names = OPERATIONS.map(|(name, _)| name).join(", ");
            format!("the operation {:?} is none of {names}", String::from_utf8_lossy(operation))
        })?;
        let key_bytes = number("the size of the key", length, KEY)?;
        if key_bytes == 0 {
            return Err("the key has no bytes".to_owned());
        }
        let (value_bytes, ttl_s) =
            (number("the size of the value", value, 1 << 30)?, number("the time to live", ttl, u32::MAX.into())?);
        let (key_bytes, value_bytes, ttl_s) = (key_bytes as u8, value_bytes as u32, ttl_s as u32);
        let request = Request { at_s: 0, key: 0, key_bytes, value_bytes, asks, ttl_s };
        Ok(Some(Line { at_s: number("the time", time, u64::MAX)?, key, request }))
    }
}

/// A number of a line.
fn number(what: &str, text: &[u8], most: u64) -> Result<u64, String> {
    let shown = String::from_utf8_lossy(text);
    let parsed = shown.parse().map_err(|_| format!("{what}, {shown:?}, is no number"))?;
    if parsed > most { Err(format!("{what} is {parsed}; 0 to {most} are valid")) } else { Ok(parsed) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<CacheTrace, TraceError> {
        CacheTrace::read(text.as_bytes(), u64::MAX)
    }

    #[test]
    fn a_key_keeps_its_first_size() {
        let trace = CacheTrace::read("1,a,6,1,1,get,0\n1,a,7,1,1,get,0\n".as_bytes(), 9).unwrap();
        assert_eq!((trace.keys, trace.requests[1].key_bytes), (1, 6));
    }

    #[test]
    fn requests_have_times_from_the_first_on_and_keys_by_number() {
        let trace = read("7,a,b,3,320,1,get,0\n\n7,key,3,10,2,set,60\n9,a,b,3,0,1,delete,0").unwrap();
        let of = |at_s, key, value_bytes, asks, ttl_s| Request { at_s, key, key_bytes: 3, value_bytes, asks, ttl_s };
        let expected = [of(0, 0, 320, Asks::Get, 0), of(0, 1, 10, Asks::Set, 60), of(2, 0, 0, Asks::Delete, 0)];
        assert_eq!((&trace.requests[..], trace.keys, trace.seconds()), (&expected[..], 2, 3));
        assert_eq!(
            CacheTrace::read("1,a,1,1,1,get,0\n1,b,1".as_bytes(), 1).unwrap().requests.len(),
            1,
            "no more is read"
        );
    }

    #[test]
    fn what_is_no_request_is_named_with_its_line() {
        let long = format!("1,{},9,1,1,get,0\n", "k".repeat(5_000));
        for (text, problem) in [
            ("", "it has no requests"),
            ("1,a,1,1,get,0\n", "line 1: it has fewer than 7 fields"),
            ("get\n", "line 1: it has no operation"),
            ("1,a,1,1,1,get,0\n1,a,1,1,1,touch,0\n", "line 2: the operation \"touch\" is none of get, gets, set"),
            ("1,a,0,1,1,get,0\n", "the key has no bytes"),
            ("1,a,251,1,1,get,0\n", "the size of the key is 251; 0 to 250 are valid"),
            ("1,a,1,-1,1,get,0\n", "the size of the value, \"-1\", is no number"),
            ("x,a,1,1,1,get,0\n", "the time, \"x\", is no number"),
            ("5,a,1,1,1,get,0\n4,a,1,1,1,get,0\n", "line 2: its time is 4, before"),
            (&long, "line 1: it has more than 4096 bytes"),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.contains(problem), "{text:?}: {error}");
        }
    }
}
