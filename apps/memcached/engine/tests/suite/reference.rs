//! Random commands of several clients, against a plain map; over restarts of the engine, with less memory than items.

use std::collections::BTreeMap;

use nandscape_apps_memcached_engine::memcached::Server;
use nandscape_apps_memcached_engine::{Ack, Config};
use nandscape_sim::{Executor, Rng, Span};

use crate::client::{Client, NOW_S, SMALL, disks, drives, open};
use nandscape_lab_crash::each;

/// An item of the map: flags, when it expires, value.
type Item = (u32, u64, Vec<u8>);

/// What memcached would hold.
#[derive(Default)]
struct Model {
    items: BTreeMap<String, Item>,
    now_s: u64,
}

fn text(rng: &mut Rng, most: u64) -> String {
    let digit = |rng: &mut Rng| (b'0' + rng.below(10) as u8) as char;
    let len = 1 + rng.below(most);
    (0..len).map(|_| digit(rng)).collect()
}

impl Model {
    fn get(&mut self, key: &str) -> Option<&mut Item> {
        let now_s = self.now_s;
        self.items.retain(|_, (_, expiry, _)| *expiry == 0 || *expiry > now_s);
        self.items.get_mut(key)
    }

    fn expiry(&self, given: i64) -> u64 {
        if given < 0 {
            1
        } else if given == 0 {
            0
        } else {
            self.now_s + given as u64
        }
    }

    /// A command at random, and its answer.
    fn command(&mut self, rng: &mut Rng) -> (String, String) {
        let key = format!("key{}", rng.below(150));
        let time = [0, 0, 0, 5, 100, -1][rng.below(6) as usize];
        let flags = rng.below(1 << 32) as u32;
        let expiry = self.expiry(time);
        let long = if rng.chance(0.1) { 20_000 } else { 600 };
        match rng.below(12) {
            0..=3 => {
                let answer = self.get(&key).map(|(flags, _, value)| {
                    format!("VALUE {key} {flags} {}\r\n{}\r\n", value.len(), String::from_utf8_lossy(value))
                });
                (format!("get {key}\r\n"), answer.unwrap_or_default() + "END\r\n")
            }
            4..=6 => {
                let value = text(rng, long);
                self.items.insert(key.clone(), (flags, expiry, value.clone().into_bytes()));
                (format!("set {key} {flags} {time} {}\r\n{value}\r\n", value.len()), "STORED\r\n".to_owned())
            }
            7 => {
                let (value, is_add) = (text(rng, 50), rng.chance(0.5));
                let stores = self.get(&key).is_none() == is_add;
                if stores {
                    self.items.insert(key.clone(), (flags, expiry, value.clone().into_bytes()));
                }
                let command = if is_add { "add" } else { "replace" };
                let answer = if stores { "STORED\r\n" } else { "NOT_STORED\r\n" };
                (format!("{command} {key} {flags} {time} {}\r\n{value}\r\n", value.len()), answer.to_owned())
            }
            8 => {
                let (value, is_append) = (text(rng, 50), rng.chance(0.5));
                let found = self.get(&key).filter(|(_, _, there)| there.len() < 30_000).map(|(_, _, there)| {
                    let parts: [&[u8]; 2] =
                        if is_append { [there, value.as_bytes()] } else { [value.as_bytes(), there] };
                    *there = parts.concat();
                });
                let command = if is_append { "append" } else { "prepend" };
                let answer = if found.is_some() { "STORED\r\n" } else { "NOT_STORED\r\n" };
                (format!("{command} {key} 0 0 {}\r\n{value}\r\n", value.len()), answer.to_owned())
            }
            9 => {
                let answer = if self.get(&key).is_some() { "DELETED\r\n" } else { "NOT_FOUND\r\n" };
                self.items.remove(&key);
                (format!("delete {key}\r\n"), answer.to_owned())
            }
            10 => {
                let touched = self.get(&key).map(|item| item.1 = expiry);
                let answer = if touched.is_some() { "TOUCHED\r\n" } else { "NOT_FOUND\r\n" };
                (format!("touch {key} {time}\r\n"), answer.to_owned())
            }
            _ => {
                let (delta, is_up) = (rng.below(1_000_000), rng.chance(0.5));
                let answer = match self.get(&key) {
                    None => "NOT_FOUND\r\n".to_owned(),
                    Some((_, _, value)) => step(value, delta, is_up),
                };
                (format!("{} {key} {delta}\r\n", if is_up { "incr" } else { "decr" }), answer)
            }
        }
    }
}

fn step(value: &mut Vec<u8>, delta: u64, is_up: bool) -> String {
    // As strtoull: the first word, whatever follows it.
    let text = String::from_utf8_lossy(value).into_owned();
    let Some(number) = text.split_ascii_whitespace().next().and_then(|word| word.parse::<u64>().ok()) else {
        return "CLIENT_ERROR cannot increment or decrement non-numeric value\r\n".to_owned();
    };
    let number = if is_up { number.wrapping_add(delta) } else { number.saturating_sub(delta) };
    let mut text = number.to_string().into_bytes();
    text.resize(text.len().max(value.len()), b' ');
    *value = text;
    format!("{number}\r\n")
}

#[test]
fn answers_are_those_of_a_plain_map_over_restarts() {
    let mut drive_hits = 0;
    each(24, |seed| {
        let mut rng = seed.child("commands").rng();
        let mut small = seed.child("small").rng();
        let (disks, mut model) = (disks(4), Model { now_s: NOW_S, ..Model::default() });
        let policy = ["mixed", "epochs"][rng.below(2) as usize];
        let ack = [Ack::Cache, Ack::One, Ack::All][rng.below(3) as usize];
        for _ in 0..3 {
            let mut executor = Executor::new();
            let sim = executor.sim();
            let drives = drives(&sim, &disks);
            // The store is the same whatever the limit: items move between their bucket and the index.
            let small = [0, 300, 700][small.below(3) as usize];
            let config = Config { start_s: model.now_s, ack, small, ..SMALL };
            let begun = model.now_s;
            let ran = executor.block_on(async {
                let engine = open(&sim, &drives, policy, config).await.unwrap();
                let server = Server::new(engine.clone(), "1");
                let mut client = Client::new(&sim, &server);
                for number in 0..600 {
                    model.now_s = engine.now_s();
                    // Not at the edge of a second: what takes time would be of the next one.
                    if sim.now().ns() % 1_000_000_000 > 500_000_000 {
                        sim.sleep(Span::from_ns(1_000_000_000 - sim.now().ns() % 1_000_000_000)).await;
                        continue;
                    }
                    let (command, answer) = model.command(&mut rng);
                    assert_eq!(client.ask(&command, answer.matches('\n').count()).await, answer, "{number}: {command}");
                    if rng.chance(0.01) {
                        sim.sleep(Span::from_ms(rng.below(3_000))).await;
                    }
                }
                engine.close().await.unwrap();
                let stats = engine.stats();
                assert_eq!((stats.evictions, stats.unreadable, stats.reads_at_tokens), (0, 0, 0));
                drive_hits += stats.drive_hits;
                engine.now_s()
            });
            model.now_s = ran.unwrap().max(begun);
        }
    });
    assert!(drive_hits > 0, "all items were in memory");
}
