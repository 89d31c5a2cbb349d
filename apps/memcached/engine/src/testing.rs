//! For tests: a plain map that answers commands as memcached does, and draws the commands, at random or from the bytes of a fuzzer.
//!
//! Left out: malformed commands, statistics, items that clients renew, times of access, and the delay of `flush_all`.

use std::collections::BTreeMap;

use crate::item::Refused;
use crate::memcached::{Mode, Stored, base64};

/// Draws a number below a bound.
pub type Draw<'a> = &'a mut dyn FnMut(u64) -> u64;

/// A command, and all that memcached sends back.
#[derive(Clone, Debug)]
pub struct Exchange {
    /// The command, with its data.
    pub command: Vec<u8>,
    /// The answer; empty after `noreply`, and after what a quiet command hides.
    pub answer: Vec<u8>,
}

/// The items that memcached would have.
pub struct Model {
    items: BTreeMap<Vec<u8>, Item>,
    /// Keys of items.
    keys: u64,
    /// The most bytes of key and value.
    limit: usize,
    /// The time, in seconds since 1970.
    pub now_s: u64,
    /// The version of the next item.
    pub version: u64,
}

#[derive(Clone)]
struct Item {
    flags: u32,
    expiry: u64,
    version: u64,
    value: Vec<u8>,
}

/// Bytes of values: they look like commands, answers and ends of lines.
const PATTERN: &[u8] = b"x\r\nget key1\r\n\0\xff\xfeVALUE key1 0 1\r\nEND\r\nset key1 0 0 1\r\n 7\r\n";
const NO_NUMBER: &str = "CLIENT_ERROR cannot increment or decrement non-numeric value";
const TOO_LARGE: &str = "SERVER_ERROR object too large for cache";
const MONTH_S: i64 = 30 * 24 * 3_600;

/// A flag of the meta protocol: its letter and its token.
type Flag = (u8, String);

/// A command of the meta protocol: its key, also as the command has it, and its flags.
struct Meta {
    key: Vec<u8>,
    word: Vec<u8>,
    flags: Vec<Flag>,
}

impl Meta {
    fn token(&self, letter: u8) -> Option<&str> {
        self.flags.iter().find(|(one, _)| *one == letter).map(|(_, token)| token.as_str())
    }

    fn has(&self, letter: u8) -> bool {
        self.token(letter).is_some()
    }

    fn number<T: std::str::FromStr>(&self, letter: u8) -> Option<T> {
        self.token(letter)?.parse().ok()
    }

    fn command(&self, name: &str, len: Option<usize>) -> Vec<u8> {
        let mut command = [name.as_bytes(), b" ", &self.word].concat();
        command.extend(len.into_iter().flat_map(|len| format!(" {len}").into_bytes()));
        for (letter, token) in &self.flags {
            command.extend([b" ", &[*letter], token.as_bytes()].concat());
        }
        command.extend(b"\r\n");
        command
    }

    /// A line of an answer; `of` has the flags that are of the item.
    fn line(&self, code: &str, of: impl Fn(u8) -> Option<String>) -> Vec<u8> {
        let mut line = code.as_bytes().to_vec();
        for (letter, token) in &self.flags {
            let value = match letter {
                b'k' if self.has(b'b') => [&self.word[..], b" b"].concat(),
                b'k' => self.word.clone(),
                b'O' => token.clone().into_bytes(),
                letter => match of(*letter) {
                    Some(value) => value.into_bytes(),
                    None => continue,
                },
            };
            line.extend([b" ", &[*letter][..], &value].concat());
        }
        line.extend(b"\r\n");
        line
    }

    /// The answer to a change that was not made.
    fn unchanged(&self, code: &str) -> Vec<u8> {
        self.line(code, |letter| (letter == b'c').then(|| "0".to_owned()))
    }
}

fn line(text: &str) -> Vec<u8> {
    [text.as_bytes(), b"\r\n"].concat()
}

/// The number that `strtoull` finds.
fn number(value: &[u8]) -> Option<u64> {
    let first = value.split(|byte| b" \t\n\x0b\x0c\r".contains(byte)).find(|word| !word.is_empty())?;
    std::str::from_utf8(first).ok()?.parse().ok()
}

fn one_of<T: Copy>(draw: Draw<'_>, all: &[T]) -> T {
    all[draw(all.len() as u64) as usize]
}

impl Model {
    /// A map without items, for commands of some keys. `limit` is the most bytes of key and value.
    pub fn new(keys: u64, limit: usize, now_s: u64) -> Model {
        Model { items: BTreeMap::new(), keys, limit, now_s, version: 1 }
    }

    /// Draws a command, and executes it.
    pub fn exchange(&mut self, draw: Draw<'_>) -> Exchange {
        match draw(16) {
            0..=2 => self.get(draw),
            3 => self.get_and_touch(draw),
            4..=6 => self.update(draw),
            7 => self.delete(draw),
            8 => self.touch(draw),
            9 => self.arithmetic(draw),
            10 | 11 => self.meta_get(draw),
            12 | 13 => self.meta_set(draw),
            14 => self.meta_delete(draw),
            _ => self.meta_arithmetic(draw),
        }
    }

    /// A key of any bytes but NULs, spaces and line feeds; some have the greatest length.
    fn key(&self, draw: Draw<'_>) -> Vec<u8> {
        let number = draw(self.keys);
        match number % 8 {
            6 => [format!("{number}-").into_bytes(), vec![b'k'; 250]].concat()[..250].to_vec(),
            7 => [b"\x01\x7f\t\r\xff", format!("{number}").as_bytes()].concat(),
            _ => format!("key{number}").into_bytes(),
        }
    }

    /// A command of the meta protocol with some of these flags, in any order.
    fn meta(&self, draw: Draw<'_>, letters: &[u8]) -> Meta {
        let mask = draw(1 << letters.len());
        let mut flags: Vec<Flag> = Vec::new();
        for letter in letters.iter().enumerate().filter(|(bit, _)| mask >> bit & 1 == 1).map(|(_, letter)| *letter) {
            let token = match letter {
                b'O' => draw(1_000_000).to_string(),
                b'F' => self.flags(draw).to_string(),
                b'T' | b'N' => self.time(draw).to_string(),
                b'D' | b'J' => one_of(draw, &[0, 1, 12, u64::MAX]).to_string(),
                // The key is drawn later: the version of some item.
                b'C' => {
                    let key = self.key(draw);
                    self.version_of(&key).to_string()
                }
                _ => String::new(),
            };
            flags.push((letter, token));
        }
        let first = draw(flags.len().max(1) as u64) as usize;
        flags.rotate_left(first);
        // Only the meta protocol can name some keys.
        let key = if mask & 1 == 1 && draw(4) == 0 { b"a b\r\n\0".to_vec() } else { self.key(draw) };
        let word = if mask & 1 == 1 { base64::encode(&key) } else { key.clone() };
        Meta { key, word, flags }
    }

    fn value(&self, draw: Draw<'_>) -> Vec<u8> {
        let len = match draw(16) {
            0 => 0,
            1..=5 => return one_of(draw, &["0", "9", "10", " 99", "8 x", "18446744073709551615"]).into(),
            6..=9 => draw(60) as usize,
            10..=14 => draw(600) as usize,
            // Two of the first are too large together; the next two are the largest with a key of four bytes, and one byte more.
            _ => one_of(draw, &[self.limit / 2, self.limit - 4, self.limit - 3, self.limit + 5_000]),
        };
        PATTERN.iter().copied().cycle().skip(draw(PATTERN.len() as u64) as usize).take(len).collect()
    }

    fn time(&self, draw: Draw<'_>) -> i64 {
        one_of(draw, &[0, 0, 0, 5, 100, -1, MONTH_S, self.now_s as i64 + 50])
    }

    fn flags(&self, draw: Draw<'_>) -> u32 {
        one_of(draw, &[0, 1, 77, u32::MAX])
    }

    fn expiry(&self, given: i64) -> u64 {
        match given {
            0 => 0,
            ..0 => 1,
            1..=MONTH_S => self.now_s + given as u64,
            time => time as u64,
        }
    }

    fn ttl(&self, expiry: u64) -> String {
        if expiry == 0 { "-1".to_owned() } else { expiry.saturating_sub(self.now_s).to_string() }
    }

    fn look(&mut self, key: &[u8]) -> Option<&mut Item> {
        let now_s = self.now_s;
        self.items.get_mut(key).filter(|item| item.expiry == 0 || item.expiry > now_s)
    }

    fn version_of(&self, key: &[u8]) -> u64 {
        self.items.get(key).map_or(99, |item| item.version)
    }

    fn put(&mut self, key: &[u8], (flags, expiry, value): (u32, u64, Vec<u8>)) -> u64 {
        let version = self.version;
        self.version += 1;
        self.items.insert(key.to_vec(), Item { flags, expiry, version, value });
        version
    }

    fn store(&mut self, key: &[u8], (mode, version): (Mode, Option<u64>), new: (u32, u64, Vec<u8>)) -> Stored {
        let limit = self.limit;
        let is_too_large = |value: &[u8]| key.len() + value.len() > limit;
        if is_too_large(&new.2) {
            if mode == Mode::Set && version.is_none() {
                self.items.remove(key);
            }
            return Stored::Refused(Refused::TooLarge);
        }
        let item = self.look(key).cloned();
        match (mode, version, item) {
            (Mode::Set, None, _) | (Mode::Add, _, None) | (Mode::Replace, None, Some(_)) => {
                Stored::Yes(self.put(key, new))
            }
            (Mode::Add, _, Some(_)) | (_, None, None) => Stored::No,
            (_, Some(_), None) => Stored::Refused(Refused::NotFound),
            (_, Some(version), Some(item)) if version != item.version => Stored::Refused(Refused::Exists),
            (Mode::Append | Mode::Prepend, _, Some(item)) => {
                let parts = if mode == Mode::Append { [item.value, new.2] } else { [new.2, item.value] };
                let value = parts.concat();
                match is_too_large(&value) {
                    true => Stored::Refused(Refused::TooLarge),
                    false => Stored::Yes(self.put(key, (item.flags, item.expiry, value))),
                }
            }
            (Mode::Set | Mode::Replace, Some(_), Some(_)) => Stored::Yes(self.put(key, new)),
        }
    }

    /// Changes a counter: the number, or `None` if the value is none.
    fn step(&mut self, key: &[u8], mut item: Item, (is_up, delta): (bool, u64), expiry: Option<u64>) -> Option<u64> {
        let number = number(&item.value)?;
        let number = if is_up { number.wrapping_add(delta) } else { number.saturating_sub(delta) };
        let mut value = number.to_string().into_bytes();
        value.resize(value.len().max(item.value.len()), b' ');
        item.expiry = expiry.unwrap_or(item.expiry);
        self.put(key, (item.flags, item.expiry, value));
        Some(number)
    }

    /// The answer to a retrieval of a key.
    fn found(&mut self, key: &[u8], with_version: bool) -> Vec<u8> {
        let Some(item) = self.look(key) else { return Vec::new() };
        let version = if with_version { format!(" {}", item.version) } else { String::new() };
        let numbers = format!(" {} {}{version}\r\n", item.flags, item.value.len());
        [b"VALUE ", key, numbers.as_bytes(), &item.value, b"\r\n"].concat()
    }

    fn get(&mut self, draw: Draw<'_>) -> Exchange {
        let (with_version, keys) = (draw(2) == 1, 1 + draw(3));
        let mut command = if with_version { b"gets".to_vec() } else { b"get".to_vec() };
        let mut answer = Vec::new();
        for _ in 0..keys {
            let key = self.key(draw);
            answer.extend(self.found(&key, with_version));
            command.extend([b" ", &key[..]].concat());
        }
        Exchange { command: [&command[..], b"\r\n"].concat(), answer: [&answer[..], b"END\r\n"].concat() }
    }

    fn get_and_touch(&mut self, draw: Draw<'_>) -> Exchange {
        let (with_version, time, keys) = (draw(2) == 1, self.time(draw), 1 + draw(3));
        let expiry = self.expiry(time);
        let mut command = format!("{} {time}", if with_version { "gats" } else { "gat" }).into_bytes();
        let mut answer = Vec::new();
        for _ in 0..keys {
            let key = self.key(draw);
            answer.extend(self.found(&key, with_version));
            self.look(&key).into_iter().for_each(|item| item.expiry = expiry);
            command.extend([b" ", &key[..]].concat());
        }
        Exchange { command: [&command[..], b"\r\n"].concat(), answer: [&answer[..], b"END\r\n"].concat() }
    }

    /// A command of the text protocol with a key, its other words and its data; its answer, unless it has `noreply`.
    fn text(&self, draw: Draw<'_>, (name, key): (&str, &[u8]), words: &str, data: &[u8], answer: &str) -> Exchange {
        let is_quiet = draw(8) == 0;
        let end: &[u8] = if is_quiet { b" noreply\r\n" } else { b"\r\n" };
        let command = [name.as_bytes(), b" ", key, words.as_bytes(), end, data].concat();
        Exchange { command, answer: if is_quiet { Vec::new() } else { line(answer) } }
    }

    fn update(&mut self, draw: Draw<'_>) -> Exchange {
        let key = self.key(draw);
        let (name, mode) = one_of(
            draw,
            &[
                ("set", Mode::Set),
                ("set", Mode::Set),
                ("add", Mode::Add),
                ("replace", Mode::Replace),
                ("append", Mode::Append),
                ("prepend", Mode::Prepend),
                ("cas", Mode::Set),
            ],
        );
        let (flags, time, value) = (self.flags(draw), self.time(draw), self.value(draw));
        let version = (name == "cas").then(|| if draw(4) == 0 { draw(20) } else { self.version_of(&key) });
        let mut words = format!(" {flags} {time} {}", value.len());
        words.extend(version.map(|version| format!(" {version}")));
        let data = [&value[..], b"\r\n"].concat();
        let answer = match self.store(&key, (mode, version), (flags, self.expiry(time), value)) {
            Stored::Yes(_) => "STORED",
            Stored::No => "NOT_STORED",
            Stored::Refused(Refused::Exists) => "EXISTS",
            Stored::Refused(Refused::NotFound) => "NOT_FOUND",
            Stored::Refused(_) => TOO_LARGE,
        };
        self.text(draw, (name, &key), &words, &data, answer)
    }

    fn delete(&mut self, draw: Draw<'_>) -> Exchange {
        if draw(16) == 0 {
            self.items.clear();
            self.version += 1;
            return Exchange { command: line("flush_all"), answer: line("OK") };
        }
        let key = self.key(draw);
        let answer = if self.look(&key).is_some() { "DELETED" } else { "NOT_FOUND" };
        self.items.remove(&key);
        self.text(draw, ("delete", &key), "", b"", answer)
    }

    fn touch(&mut self, draw: Draw<'_>) -> Exchange {
        let (key, time) = (self.key(draw), self.time(draw));
        let expiry = self.expiry(time);
        let touched = self.look(&key).map(|item| item.expiry = expiry);
        let answer = if touched.is_some() { "TOUCHED" } else { "NOT_FOUND" };
        self.text(draw, ("touch", &key), &format!(" {time}"), b"", answer)
    }

    fn arithmetic(&mut self, draw: Draw<'_>) -> Exchange {
        let (key, is_up, delta) = (self.key(draw), draw(2) == 1, one_of(draw, &[0, 1, 1_000_000, u64::MAX]));
        let answer = match self.look(&key).cloned() {
            None => "NOT_FOUND".to_owned(),
            Some(item) => self
                .step(&key, item, (is_up, delta), None)
                .map_or_else(|| NO_NUMBER.to_owned(), |number| number.to_string()),
        };
        let name = if is_up { "incr" } else { "decr" };
        self.text(draw, (name, &key), &format!(" {delta}"), b"", &answer)
    }

    fn meta_get(&mut self, draw: Draw<'_>) -> Exchange {
        let meta = self.meta(draw, b"bkOqsvftcTu");
        let expiry = meta.number(b'T').map(|time| self.expiry(time));
        let command = meta.command("mg", None);
        let Some(item) = self.look(&meta.key) else {
            let answer = if meta.has(b'q') { Vec::new() } else { meta.line("EN", |_| None) };
            return Exchange { command, answer };
        };
        let before = item.expiry;
        item.expiry = expiry.unwrap_or(before);
        let item = item.clone();
        let place = |letter| meta.flags.iter().position(|(one, _)| *one == letter);
        let shown = if place(b't') < place(b'T') { before } else { item.expiry };
        let code = if meta.has(b'v') { format!("VA {}", item.value.len()) } else { "HD".to_owned() };
        let mut answer = meta.line(&code, |letter| match letter {
            b's' => Some(item.value.len().to_string()),
            b'f' => Some(item.flags.to_string()),
            b't' => Some(self.ttl(shown)),
            b'c' => Some(item.version.to_string()),
            _ => None,
        });
        if meta.has(b'v') {
            answer.extend([&item.value[..], b"\r\n"].concat());
        }
        Exchange { command, answer }
    }

    fn meta_set(&mut self, draw: Draw<'_>) -> Exchange {
        let mut meta = self.meta(draw, b"bkOqscFTCM");
        let (mode, token) = one_of(
            draw,
            &[
                (Mode::Set, "S"),
                (Mode::Set, "set"),
                (Mode::Add, "E"),
                (Mode::Append, "a"),
                (Mode::Prepend, "prepend"),
                (Mode::Replace, "R"),
            ],
        );
        let named = meta.flags.iter_mut().find(|(letter, _)| *letter == b'M').map(|flag| flag.1 = token.to_owned());
        let mode = named.map_or(Mode::Set, |()| mode);
        let value = self.value(draw);
        let command = [&meta.command("ms", Some(value.len()))[..], &value, b"\r\n"].concat();
        let (len, time) = (value.len(), meta.number(b'T').unwrap_or(0));
        let new = (meta.number(b'F').unwrap_or(0), self.expiry(time), value);
        let answer = match self.store(&meta.key, (mode, meta.number(b'C')), new) {
            Stored::Yes(_) if meta.has(b'q') => Vec::new(),
            Stored::Yes(version) => meta.line("HD", |letter| match letter {
                b'c' => Some(version.to_string()),
                b's' => Some(len.to_string()),
                _ => None,
            }),
            Stored::No => meta.unchanged("NS"),
            Stored::Refused(Refused::Exists) => meta.unchanged("EX"),
            Stored::Refused(Refused::NotFound) => meta.unchanged("NF"),
            Stored::Refused(_) => line(TOO_LARGE),
        };
        Exchange { command, answer }
    }

    fn meta_delete(&mut self, draw: Draw<'_>) -> Exchange {
        let meta = self.meta(draw, b"bkOqC");
        let wanted: Option<u64> = meta.number(b'C');
        let version = self.look(&meta.key).map(|item| item.version);
        let answer = match version {
            None => meta.line("NF", |_| None),
            Some(version) if wanted.is_some_and(|wanted| wanted != version) => meta.line("EX", |_| None),
            Some(_) => {
                self.items.remove(&meta.key);
                if meta.has(b'q') { Vec::new() } else { meta.line("HD", |_| None) }
            }
        };
        Exchange { command: meta.command("md", None), answer }
    }

    fn meta_arithmetic(&mut self, draw: Draw<'_>) -> Exchange {
        let mut meta = self.meta(draw, b"bkOqcCDJMNTtv");
        let (is_up, token) = one_of(draw, &[(true, "I"), (true, "+"), (true, "incr"), (false, "D"), (false, "-")]);
        let named = meta.flags.iter_mut().find(|(letter, _)| *letter == b'M').map(|flag| flag.1 = token.to_owned());
        let is_up = named.is_none() || is_up;
        let command = meta.command("ma", None);
        let (wanted, delta): (Option<u64>, _) = (meta.number(b'C'), meta.number(b'D').unwrap_or(1));
        let expiry = meta.number(b'T').map(|time| self.expiry(time));
        let number = match self.look(&meta.key).cloned() {
            Some(item) if wanted.is_some_and(|wanted| wanted != item.version) => {
                return Exchange { command, answer: meta.unchanged("EX") };
            }
            Some(item) => match self.step(&meta.key, item, (is_up, delta), expiry) {
                Some(number) => number,
                None => return Exchange { command, answer: line(NO_NUMBER) },
            },
            None => {
                let Some(time) = meta.number(b'N') else {
                    return Exchange { command, answer: meta.unchanged("NF") };
                };
                let number: u64 = meta.number(b'J').unwrap_or(0);
                self.put(&meta.key, (0, self.expiry(time), number.to_string().into_bytes()));
                number
            }
        };
        if meta.has(b'q') {
            return Exchange { command, answer: Vec::new() };
        }
        let (version, expiry) = self.items.get(&meta.key).map_or((0, 0), |item| (item.version, item.expiry));
        let of = |letter| match letter {
            b'c' => Some(version.to_string()),
            b't' => Some(self.ttl(expiry)),
            _ => None,
        };
        let answer = match meta.has(b'v') {
            true => {
                let text = number.to_string();
                [meta.line(&format!("VA {}", text.len()), of), line(&text)].concat()
            }
            false => meta.line("HD", of),
        };
        Exchange { command, answer }
    }
}
