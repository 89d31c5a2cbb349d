//! The text protocol (memcached's doc/protocol.txt).

use std::rc::Rc;

use nandscape_wire_nvme::vendor::Attributes;

use super::changes::{Counted, Mode, Step, Stored};
use super::line::{Line, Part, data_len, is_key, number};
use super::wire::Wire;
use super::{Server, Then, failed};
use crate::item::{Access, Expect, Item, New, Refused};
use crate::read::Miss;

const BAD_LINE: &str = "CLIENT_ERROR bad command line format";
const BAD_CHUNK: &str = "CLIENT_ERROR bad data chunk";
const BAD_TIME: &str = "CLIENT_ERROR invalid exptime argument";

/// A command line of a store.
struct Store<'a> {
    key: &'a [u8],
    flags: u32,
    expiry: i64,
    version: Option<u64>,
}

impl Server {
    /// Serves a command of the text protocol.
    pub(crate) async fn text(self: &Rc<Self>, line: &Line<'_>, wire: &Wire) -> Then {
        // "noreply" is one word too many, too: it does not silence the error.
        let most = match line.command() {
            b"quit" => 0,
            b"verbosity" => 2,
            _ => usize::MAX,
        };
        if line.words().len() > most {
            wire.put_line("ERROR");
            return Then::GoOn;
        }
        let (words, is_quiet) = line.arguments();
        let answer = match line.command() {
            command @ (b"get" | b"gets") => return self.retrieve(line, command == b"gets", wire).await,
            command @ (b"gat" | b"gats") => return self.get_and_touch(line.words(), command == b"gats", wire).await,
            b"set" => return self.update(line, Mode::Set, false, wire).await,
            b"add" => return self.update(line, Mode::Add, false, wire).await,
            b"replace" => return self.update(line, Mode::Replace, false, wire).await,
            b"append" => return self.update(line, Mode::Append, false, wire).await,
            b"prepend" => return self.update(line, Mode::Prepend, false, wire).await,
            b"cas" => return self.update(line, Mode::Set, true, wire).await,
            b"delete" => self.delete(line.words()).await,
            b"incr" => self.arithmetic(line, true).await,
            b"decr" => self.arithmetic(line, false).await,
            b"touch" => self.touch(line).await,
            b"flush_all" => self.flush_command(words).await,
            b"stats" => {
                self.stats_command(line.words(), wire);
                return Then::GoOn;
            }
            b"version" => {
                // "noreply" does not silence it: clients wait for the version behind commands that are silent.
                wire.put_line(&format!("VERSION {}", self.version));
                return Then::GoOn;
            }
            b"verbosity" => match words {
                [] if line.words().is_empty() => "ERROR".to_owned(),
                // The program's own messages do not depend on it.
                [level, ..] if number::<u32>(level).is_some() => "OK".to_owned(),
                _ => BAD_LINE.to_owned(),
            },
            b"shutdown" => "ERROR: shutdown not enabled".to_owned(),
            b"quit" => return Then::Close,
            // A browser that was lured here by a page: its headers and its body are no commands.
            _ if line.words().last().is_some_and(|word| word.starts_with(b"HTTP/")) => return Then::Close,
            _ => "ERROR".to_owned(),
        };
        // memcached, too, counts the words before it looks for "noreply".
        if !is_quiet || answer == "ERROR" {
            wire.put_line(&answer);
        }
        Then::GoOn
    }

    /// `get` and `gets`, or a part of one.
    async fn retrieve(&self, line: &Line<'_>, with_version: bool, wire: &Wire) -> Then {
        let (keys, part) = (line.words(), line.part());
        // A part may have only spaces.
        if keys.is_empty() && part == Part::default() {
            wire.put_line("ERROR");
            return Then::GoOn;
        }
        if !keys.iter().all(|key| is_key(key)) {
            wire.put_line(BAD_LINE);
            wire.drop_rest();
            return Then::GoOn;
        }
        let then = self.values(keys, None, with_version, wire).await;
        if then == Then::GoOn && !part.continues {
            wire.put_line("END");
        }
        then
    }

    /// The items of keys, which are touched with an expiry.
    async fn values(&self, keys: &[&[u8]], expiry: Option<u64>, with_version: bool, wire: &Wire) -> Then {
        for key in keys {
            let found = self.engine.get_or_miss(key, Attributes::default(), Access::Counts).await;
            let has_expired = matches!(found, Err(Miss::Expired));
            let item = found.ok();
            self.count(|counters| {
                counters.gets += 1;
                counters.get_hits += u64::from(item.is_some());
                counters.get_expired += u64::from(has_expired);
            });
            self.prefixes.borrow_mut().get(key, item.is_some());
            let mut is_there = item.is_some();
            if let Some(expiry) = expiry {
                // Gone meanwhile is a miss.
                is_there = is_there && self.engine.touch(key, expiry).await.unwrap_or(false);
                self.count(|counters| {
                    counters.touches += 1;
                    counters.touch_hits += u64::from(is_there);
                });
            }
            if let Some(item) = item.filter(|_| is_there) {
                put_value(wire, key, &item, with_version);
            }
            if !wire.room().await {
                return Then::Close;
            }
            wire.share().await;
        }
        Then::GoOn
    }

    async fn get_and_touch(&self, words: &[&[u8]], with_version: bool, wire: &Wire) -> Then {
        match words.split_first() {
            Some((time, keys)) => match number::<i64>(time) {
                Some(_) if !keys.iter().all(|key| is_key(key)) => {
                    wire.put_line(BAD_LINE);
                    Then::GoOn
                }
                Some(time) => {
                    let then = self.values(keys, Some(self.expiry(time)), with_version, wire).await;
                    if then == Then::GoOn {
                        wire.put_line("END");
                    }
                    then
                }
                None => {
                    wire.put_line(BAD_TIME);
                    Then::GoOn
                }
            },
            None => {
                wire.put_line("ERROR");
                Then::GoOn
            }
        }
    }

    /// `set` and its kin.
    async fn update(&self, line: &Line<'_>, mode: Mode, is_cas: bool, wire: &Wire) -> Then {
        let (words, is_quiet) = (line.words(), line.arguments().1);
        let takes = 4 + usize::from(is_cas);
        // memcached ignores one word more.
        if words.len() < takes || words.len() > takes + 1 {
            wire.put_line("ERROR");
            return Then::GoOn;
        }
        let say = |answer: &str| {
            if !is_quiet {
                wire.put_line(answer);
            }
        };
        let Some(len) = data_len(words[3]) else {
            say(BAD_LINE);
            return Then::GoOn;
        };
        let Some(store) = parse_store(&words[..takes]) else {
            say(BAD_LINE);
            return skipped(wire.skip(len).await);
        };
        if store.key.len() as u64 + len > self.engine.item_limit() as u64 {
            say(&failed(&Refused::TooLarge));
            self.count(|counters| counters.too_large += 1);
            // memcached, too: a client that failed to store must not find what was there before.
            if mode == Mode::Set && !is_cas {
                let _ = self.engine.delete(store.key, Expect::Any).await;
            }
            return skipped(wire.skip(len).await);
        }
        let Some(value) = wire.data(len as usize, &self.engine).await else { return Then::Close };
        let Some(value) = value else {
            say(BAD_CHUNK);
            return Then::GoOn;
        };
        let new = New { flags: store.flags, expiry: self.expiry(store.expiry), value };
        match self.store(store.key, mode, store.version, new).await {
            Stored::Yes(_) => say("STORED"),
            Stored::No => say("NOT_STORED"),
            Stored::Refused(refused) => say(&failed(&refused)),
        }
        Then::GoOn
    }

    async fn delete(&self, words: &[&[u8]]) -> String {
        let key = match words {
            [key] | [key, b"0" | b"noreply"] | [key, b"0", b"noreply"] if is_key(key) => key,
            [_] | [_, b"0" | b"noreply"] | [_, b"0", b"noreply"] => return BAD_LINE.to_owned(),
            [] | [_, _, _, _, ..] => return "ERROR".to_owned(),
            _ => return format!("{BAD_LINE}.  Usage: delete <key> [noreply]"),
        };
        let deleted = self.engine.delete(key, Expect::Any).await;
        self.prefixes.borrow_mut().delete(key);
        self.count(|counters| match deleted {
            Ok(()) => counters.delete_hits += 1,
            Err(_) => counters.delete_misses += 1,
        });
        deleted.map_or_else(|refused| failed(&refused), |()| "DELETED".to_owned())
    }

    async fn arithmetic(&self, line: &Line<'_>, is_up: bool) -> String {
        let Some([key, delta]) = line.exactly() else { return "ERROR".to_owned() };
        if !is_key(key) {
            return BAD_LINE.to_owned();
        }
        let Some(delta) = number(delta) else { return "CLIENT_ERROR invalid numeric delta argument".to_owned() };
        let counted = self.step(key, Step { is_up, delta, version: None, expiry: None }).await;
        self.count_step(is_up, &counted);
        match counted {
            Counted::Yes(number, ..) => number.to_string(),
            Counted::NoNumber => "CLIENT_ERROR cannot increment or decrement non-numeric value".to_owned(),
            Counted::Refused(refused) => failed(&refused),
        }
    }

    pub(crate) fn count_step(&self, is_up: bool, counted: &Counted) {
        self.count(|counters| match (is_up, counted) {
            (true, Counted::Yes(..)) => counters.incr_hits += 1,
            (true, Counted::Refused(Refused::NotFound)) => counters.incr_misses += 1,
            (false, Counted::Yes(..)) => counters.decr_hits += 1,
            (false, Counted::Refused(Refused::NotFound)) => counters.decr_misses += 1,
            _ => {}
        });
    }

    async fn touch(&self, line: &Line<'_>) -> String {
        let Some([key, time]) = line.exactly() else { return "ERROR".to_owned() };
        if !is_key(key) {
            return BAD_LINE.to_owned();
        }
        let Some(time) = number(time) else { return BAD_TIME.to_owned() };
        let touched = self.engine.touch(key, self.expiry(time)).await;
        self.count(|counters| {
            counters.touches += 1;
            counters.touch_hits += u64::from(touched == Ok(true));
        });
        match touched {
            Ok(true) => "TOUCHED".to_owned(),
            Ok(false) => "NOT_FOUND".to_owned(),
            Err(refused) => failed(&refused),
        }
    }

    async fn flush_command(self: &Rc<Self>, words: &[&[u8]]) -> String {
        let delay = match words {
            [] => Some(0),
            // memcached ignores the second.
            [delay] | [delay, _] => number::<i64>(delay),
            _ => return "ERROR".to_owned(),
        };
        let Some(delay) = delay else { return BAD_TIME.to_owned() };
        // Like an expiry: more than 30 days is a time.
        let seconds = match self.expiry(delay) {
            0 => 0,
            at => at.saturating_sub(self.engine.now_s()),
        };
        let flushed = self.flush_all(seconds).await;
        flushed.map_or_else(|refused| failed(&refused), |()| "OK".to_owned())
    }

    fn stats_command(&self, words: &[&[u8]], wire: &Wire) {
        let stats = match words {
            [] => self.stats(),
            [b"settings"] => self.settings(),
            [b"reset"] => {
                self.reset();
                wire.put_line("RESET");
                return;
            }
            [b"detail", b"dump"] => {
                let counted = self.prefixes.borrow().dump();
                wire.put(&counted);
                return;
            }
            [b"detail", switch @ (b"on" | b"off")] => {
                self.prefixes.borrow_mut().switch(*switch == b"on");
                wire.put_line("OK");
                return;
            }
            [b"detail", ..] => {
                wire.put_line("CLIENT_ERROR usage: stats detail on|off|dump");
                return;
            }
            // There are no slabs.
            [b"items" | b"slabs" | b"sizes" | b"conns"] => Vec::new(),
            _ => {
                wire.put_line("ERROR");
                return;
            }
        };
        stats.iter().for_each(|(name, value)| wire.put_line(&format!("STAT {name} {value}")));
        wire.put_line("END");
    }
}

fn skipped(is_there: bool) -> Then {
    if is_there { Then::GoOn } else { Then::Close }
}

fn parse_store<'a>(words: &[&'a [u8]]) -> Option<Store<'a>> {
    let key = words[0];
    let version = match words.get(4) {
        Some(version) => Some(number(version)?),
        None => None,
    };
    let (flags, expiry) = (number(words[1])?, number(words[2])?);
    is_key(key).then_some(Store { key, flags, expiry, version })
}

fn put_value(wire: &Wire, key: &[u8], item: &Item, with_version: bool) {
    wire.put(b"VALUE ");
    wire.put(key);
    let version = if with_version { format!(" {}", item.version) } else { String::new() };
    wire.put_line(&format!(" {} {}{version}", item.flags, item.value.len()));
    wire.put(&item.value);
    wire.put(b"\r\n");
}
