//! The meta protocol (memcached's doc/protocol.txt, "Meta Commands"): mg, ms, md, ma, me, mn. `lease` has what clients that renew an item
//! need.
//!
//! Left out: versions that clients give (E).

use std::rc::Rc;

use super::changes::{Counted, Mode, Step, Stored};
use super::line::{Line, data_len, is_key, number};
use super::wire::Wire;
use super::{Server, Then, base64, failed};
use crate::item::{Expect, Item, MOST_KEY, New, Refused};
use crate::record::record_bytes;

const BAD_LINE: &str = "CLIENT_ERROR bad command line format";
/// The longest opaque token, as in memcached.
const MOST_OPAQUE: usize = 31;

/// A flag: its letter and its token.
type Flag<'a> = (u8, &'a [u8]);

/// A command's key and flags.
pub(super) struct Meta<'a> {
    /// The key as the client sent it.
    word: &'a [u8],
    pub(super) key: Vec<u8>,
    flags: Vec<Flag<'a>>,
}

impl<'a> Meta<'a> {
    /// The key and flags of a command that takes these flags.
    fn of(word: &'a [u8], flags: &[&'a [u8]], takes: &[u8]) -> Result<Meta<'a>, &'static str> {
        let flags: Vec<Flag<'a>> = flags.iter().filter_map(|flag| flag.split_first()).map(|(&l, t)| (l, t)).collect();
        for (at, (letter, _)) in flags.iter().enumerate() {
            if flags[..at].iter().any(|(other, _)| other == letter) {
                return Err("CLIENT_ERROR duplicate flag");
            }
            if !takes.contains(letter) {
                return Err("CLIENT_ERROR invalid flag");
            }
        }
        let meta = Meta { word, key: word.to_vec(), flags };
        if meta.token(b'O').is_some_and(|token| token.len() > MOST_OPAQUE) {
            return Err("CLIENT_ERROR opaque token too long");
        }
        // A longer word is no key: it is not worth decoding.
        let is_short = word.len() <= MOST_KEY.div_ceil(3) * 4;
        if !meta.has(b'b') {
            return if is_key(word) { Ok(meta) } else { Err(BAD_LINE) };
        }
        if !is_short {
            return Err(BAD_LINE);
        }
        let key = base64::decode(word).filter(|key| !key.is_empty()).ok_or("CLIENT_ERROR error decoding key")?;
        if key.len() <= MOST_KEY { Ok(Meta { key, ..meta }) } else { Err(BAD_LINE) }
    }

    pub(super) fn has(&self, letter: u8) -> bool {
        self.flags.iter().any(|(one, _)| *one == letter)
    }

    fn token(&self, letter: u8) -> Option<&'a [u8]> {
        self.flags.iter().find(|(one, _)| *one == letter).map(|(_, token)| *token)
    }

    /// The number of a flag, if it is there.
    pub(super) fn number<T: std::str::FromStr>(&self, letter: u8) -> Result<Option<T>, &'static str> {
        match self.token(letter) {
            None => Ok(None),
            Some(token) => number(token).map(Some).ok_or("CLIENT_ERROR bad token in command line format"),
        }
    }

    /// Whether a flag stands before another.
    fn is_before(&self, first: u8, second: u8) -> bool {
        let place = |letter| self.flags.iter().position(|(one, _)| *one == letter);
        place(first).is_some_and(|first| place(second).is_some_and(|second| first < second))
    }

    /// The flags of an answer: what the command wants to know, in its order. `of` answers what the key and the opaque do not.
    fn answer(&self, of: impl Fn(u8) -> Option<String>) -> Vec<u8> {
        let mut text = Vec::new();
        for (letter, token) in &self.flags {
            let value: Option<Vec<u8>> = match letter {
                // memcached, too, has the mark of a binary key behind the key.
                b'k' if self.has(b'b') => Some([base64::encode(&self.key).as_slice(), b" b"].concat()),
                b'k' => Some(self.word.to_vec()),
                b'O' => Some(token.to_vec()),
                letter => of(*letter).map(String::into_bytes),
            };
            if let Some(value) = value {
                text.extend_from_slice(&[b' ', *letter]);
                text.extend(value);
            }
        }
        text
    }
}

/// An answer with nothing but what was given.
fn reply(wire: &Wire, code: &str, meta: &Meta<'_>, of: impl Fn(u8) -> Option<String>) {
    wire.put(code.as_bytes());
    wire.put(&meta.answer(of));
    wire.put(b"\r\n");
}

/// An answer that needs nothing of an item.
fn bare(wire: &Wire, code: &str, meta: &Meta<'_>) {
    reply(wire, code, meta, |_| None);
}

/// The answer to a change that was not made: its version is 0.
fn unchanged(wire: &Wire, code: &str, meta: &Meta<'_>) {
    reply(wire, code, meta, |letter| (letter == b'c').then(|| "0".to_owned()));
}

impl Server {
    /// Serves a command of the meta protocol.
    pub(crate) async fn meta(self: &Rc<Self>, line: &Line<'_>, wire: &Wire) -> Then {
        if line.command() == b"mn" {
            wire.put_line("MN");
            return Then::GoOn;
        }
        let Some((word, rest)) = line.words().split_first() else {
            wire.put_line(if line.command() == b"me" { BAD_LINE } else { "ERROR" });
            return Then::GoOn;
        };
        if line.command() == b"ms" {
            return self.meta_set(word, rest, wire).await;
        }
        let ended = match line.command() {
            b"mg" => self.meta_get(word, rest, wire).await,
            b"me" => self.meta_explain(word, rest, wire).await,
            b"md" => self.meta_delete(word, rest, wire).await,
            _ => self.meta_arithmetic(word, rest, wire).await,
        };
        if let Err::<(), String>(problem) = ended {
            wire.put_line(&problem);
        }
        Then::GoOn
    }

    /// Seconds until an item expires; -1 is never.
    fn ttl(&self, expiry: u64) -> String {
        if expiry == 0 { "-1".to_owned() } else { expiry.saturating_sub(self.engine.now_s()).to_string() }
    }

    fn of_item(&self, letter: u8, item: &Item, len: usize) -> Option<String> {
        Some(match letter {
            b'f' => item.flags.to_string(),
            b'h' => u8::from(item.is_fetched).to_string(),
            b'l' => (self.engine.now_s() - item.accessed).to_string(),
            b's' => len.to_string(),
            b't' => self.ttl(item.expiry),
            b'c' => item.version.to_string(),
            _ => return None,
        })
    }

    async fn meta_get(&self, word: &[u8], flags: &[&[u8]], wire: &Wire) -> Result<(), String> {
        let meta = Meta::of(word, flags, b"bfhklOqstuvcNRT")?;
        let time = meta.number::<i64>(b'T')?;
        let leased = self.lease(&meta).await?;
        self.count(|counters| {
            counters.gets += 1;
            counters.get_hits += u64::from(leased.as_ref().is_some_and(|leased| !leased.is_new));
        });
        self.prefixes.borrow_mut().get(&meta.key, leased.as_ref().is_some_and(|leased| !leased.is_new));
        let Some(mut leased) = leased else {
            if !meta.has(b'q') {
                bare(wire, "EN", &meta);
            }
            return Ok(());
        };
        let before = leased.item.expiry;
        if let Some(time) = time {
            leased.item.expiry = self.expiry(time);
            let touched = self.engine.touch(&meta.key, leased.item.expiry).await.map_err(|refused| failed(&refused))?;
            self.count(|counters| {
                counters.touches += 1;
                counters.touch_hits += u64::from(touched);
            });
        }
        let (item, len) = (&leased.item, leased.len);
        let of = |letter| match letter {
            // As it was before, if that is asked for first.
            b't' if meta.is_before(b't', b'T') => Some(self.ttl(before)),
            letter => self.of_item(letter, item, len),
        };
        let code = if meta.has(b'v') { format!("VA {len}") } else { "HD".to_owned() };
        wire.put(code.as_bytes());
        wire.put(&meta.answer(of));
        wire.put_line(leased.news());
        if meta.has(b'v') {
            wire.put(&item.value);
            wire.put(b"\r\n");
        }
        Ok(())
    }

    /// What is known of an item, for people who look for faults.
    async fn meta_explain(&self, word: &[u8], flags: &[&[u8]], wire: &Wire) -> Result<(), String> {
        let meta = Meta::of(word, flags, b"b")?;
        let Some((item, len)) = self.engine.look(&meta.key).await else {
            wire.put_line("EN");
            return Ok(());
        };
        wire.put(b"ME ");
        wire.put(word);
        let age = self.engine.now_s() - item.accessed;
        let fetched = if item.is_fetched { "yes" } else { "no" };
        let size = record_bytes(meta.key.len(), len);
        // There is one class of items.
        let (exp, cas) = (self.ttl(item.expiry), item.version);
        wire.put_line(&format!(" exp={exp} la={age} cas={cas} fetch={fetched} cls=1 size={size}"));
        Ok(())
    }

    async fn meta_set(&self, word: &[u8], rest: &[&[u8]], wire: &Wire) -> Then {
        let Some(len) = rest.first().and_then(|len| data_len(len)) else {
            wire.put_line(BAD_LINE);
            return Then::GoOn;
        };
        let refuse = async |problem: &str| {
            wire.put_line(problem);
            if wire.skip(len).await { Then::GoOn } else { Then::Close }
        };
        let meta = match Meta::of(word, &rest[1..], b"bcCFIkOqsTM") {
            Ok(meta) => meta,
            Err(problem) => return refuse(problem).await,
        };
        let (mode, flags, time, version) = match set_numbers(&meta) {
            Ok(numbers) => numbers,
            Err(problem) => return refuse(problem).await,
        };
        if meta.key.len() as u64 + len > self.engine.item_limit() as u64 {
            self.count(|counters| counters.too_large += 1);
            if mode == Mode::Set && version.is_none() {
                // As in the text protocol.
                let _ = self.engine.delete(&meta.key, Expect::Any).await;
            }
            return refuse(&failed(&Refused::TooLarge)).await;
        }
        let Some(value) = wire.data(len as usize, &self.engine).await else { return Then::Close };
        let Some(value) = value else {
            wire.put_line("CLIENT_ERROR bad data chunk");
            return Then::GoOn;
        };
        let new = New { flags, expiry: self.expiry(time), value };
        let stored = match (mode, version) {
            (Mode::Set, Some(version)) if meta.has(b'I') => self.store_stale(&meta.key, version, new).await,
            _ => self.store(&meta.key, mode, version, new).await,
        };
        let of = |letter: u8| match (letter, &stored) {
            (b'c', Stored::Yes(version)) => Some(version.to_string()),
            (b's', Stored::Yes(_)) => Some(len.to_string()),
            _ => None,
        };
        match &stored {
            Stored::Yes(_) if meta.has(b'q') => {}
            Stored::Yes(_) => reply(wire, "HD", &meta, of),
            Stored::No => unchanged(wire, "NS", &meta),
            Stored::Refused(Refused::Exists) => unchanged(wire, "EX", &meta),
            Stored::Refused(Refused::NotFound) => unchanged(wire, "NF", &meta),
            Stored::Refused(refused) => wire.put_line(&failed(refused)),
        }
        Then::GoOn
    }

    async fn meta_delete(&self, word: &[u8], flags: &[&[u8]], wire: &Wire) -> Result<(), String> {
        let meta = Meta::of(word, flags, b"bCIkOqTx")?;
        let version = meta.number(b'C')?;
        let deleted = match meta.has(b'I') || meta.has(b'x') {
            true => self.invalidate(&meta, version).await?,
            false => self.engine.delete(&meta.key, version.map_or(Expect::Any, Expect::Version)).await,
        };
        self.prefixes.borrow_mut().delete(&meta.key);
        self.count(|counters| match deleted {
            Ok(()) => counters.delete_hits += 1,
            Err(_) => counters.delete_misses += 1,
        });
        match deleted {
            Ok(()) if meta.has(b'q') => {}
            Ok(()) => bare(wire, "HD", &meta),
            Err(Refused::NotFound) => bare(wire, "NF", &meta),
            Err(Refused::Exists) => bare(wire, "EX", &meta),
            Err(refused) => return Err(failed(&refused)),
        }
        Ok(())
    }

    async fn meta_arithmetic(&self, word: &[u8], flags: &[&[u8]], wire: &Wire) -> Result<(), String> {
        let meta = Meta::of(word, flags, b"bcCDJkMNOqtTv")?;
        let is_up = match meta.token(b'M') {
            None | Some(b"I" | b"i" | b"+" | b"incr") => true,
            Some(b"D" | b"d" | b"-" | b"decr") => false,
            Some(_) => return Err("CLIENT_ERROR invalid mode for ma M token".to_owned()),
        };
        let (time, created) = (meta.number::<i64>(b'T')?, meta.number::<i64>(b'N')?);
        let delta = meta.number::<u64>(b'D')?.unwrap_or(1);
        let initial = meta.number::<u64>(b'J')?.unwrap_or(0);
        let (version, expiry) = (meta.number(b'C')?, time.map(|time| self.expiry(time)));
        let counted = loop {
            let counted = self.step(&meta.key, Step { is_up, delta, version, expiry }).await;
            self.count_step(is_up, &counted);
            let (Counted::Refused(Refused::NotFound), Some(time)) = (&counted, created) else { break counted };
            let new = New { flags: 0, expiry: self.expiry(time), value: initial.to_string().into_bytes().into() };
            let expiry = new.expiry;
            match self.store(&meta.key, Mode::Add, None, new).await {
                Stored::Yes(version) => break Counted::Yes(initial, version, expiry),
                // Another client has made it meanwhile.
                Stored::No => {}
                Stored::Refused(refused) => break Counted::Refused(refused),
            }
        };
        self.answer_arithmetic(&meta, counted, wire)
    }

    fn answer_arithmetic(&self, meta: &Meta<'_>, counted: Counted, wire: &Wire) -> Result<(), String> {
        match counted {
            Counted::Yes(..) if meta.has(b'q') => {}
            Counted::Yes(number, version, expiry) => {
                let of = |letter: u8| match letter {
                    b'c' => Some(version.to_string()),
                    b't' => Some(self.ttl(expiry)),
                    _ => None,
                };
                let text = number.to_string();
                if meta.has(b'v') {
                    reply(wire, &format!("VA {}", text.len()), meta, of);
                    wire.put_line(&text);
                } else {
                    reply(wire, "HD", meta, of);
                }
            }
            Counted::NoNumber => {
                return Err("CLIENT_ERROR cannot increment or decrement non-numeric value".to_owned());
            }
            Counted::Refused(Refused::NotFound) => unchanged(wire, "NF", meta),
            Counted::Refused(Refused::Exists) => unchanged(wire, "EX", meta),
            Counted::Refused(refused) => return Err(failed(&refused)),
        }
        Ok(())
    }
}

/// Mode, client flags, expiry and version of an ms.
fn set_numbers(meta: &Meta<'_>) -> Result<(Mode, u32, i64, Option<u64>), &'static str> {
    let mode = match meta.token(b'M') {
        None | Some(b"S" | b"s" | b"set") => Mode::Set,
        Some(b"E" | b"e" | b"add") => Mode::Add,
        Some(b"A" | b"a" | b"append") => Mode::Append,
        Some(b"P" | b"p" | b"prepend") => Mode::Prepend,
        Some(b"R" | b"r" | b"replace") => Mode::Replace,
        Some(_) => return Err("CLIENT_ERROR invalid mode for ms M token"),
    };
    let (flags, time) = (meta.number(b'F').map_err(|_| BAD_LINE)?.unwrap_or(0), meta.number(b'T')?.unwrap_or(0));
    Ok((mode, flags, time, meta.number(b'C')?))
}
