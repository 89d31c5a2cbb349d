//! The paper's load: readers of small items, and writers of large ones as fast as the server takes them.
//!
//! Left out: tenants, and passes of writes before the measurement.

use nandscape_drive::{Phase, Progress};
use nandscape_sim::{Rng, Seed};

use super::connection::{Connection, Reply};
use super::crew::{Client, Crew, Share};
use super::{Answered, WallError, WallSpec};
use crate::draws::{Wanted, is_of};
use crate::simulated::{Load, large};
use crate::text;

/// The key of a reader's item.
fn key(item: u64) -> String {
    format!("item{item:012}")
}

/// The command that puts a value with a mark.
fn put(key: &str, mark: u64, bytes: u64) -> Vec<u8> {
    text::store("set", key, 0, &vec![mark as u8; bytes as usize])
}

/// Runs it, on a server whose items have `limit` bytes at most.
pub(super) fn run(
    spec: &WallSpec<'_>,
    (control, limit): (&mut Connection, u64),
    progress: &dyn Progress,
) -> Result<Answered, WallError> {
    let load = spec.load;
    spec.check_sizes(limit, load.writers > 0)?;
    let room = spec.room(&control.statistics()?)?;
    let (items, written) = (spec.items_in(room), load.written_in(room));
    let mut crew = Crew::connect(spec, load.readers + load.writers, control.clock(), progress)?;
    if !spec.is_loaded {
        crew.put(items, load.read_bytes, |item| (key(item), put(&key(item), item, load.read_bytes)))?;
    }
    let (before, begun, left) = (control.statistics()?, control.now(), Share::of(load.reads));
    let seed = Seed::new(spec.seed);
    let tally = crew.work(
        Phase::Running,
        || left.done(),
        |client| {
            let rng = seed.child("client").nth(client.number).rng();
            match client.number < load.readers {
                true => read(client, &load, rng, (items, &left)),
                false => write(client, &load, rng, (written, &left)),
            }
        },
    )?;
    let took = tally.ended.since(begun);
    Ok(spec.answered(tally, Some(items), took, [before, control.statistics()?]))
}

fn read(client: &mut Client<'_>, load: &Load, mut rng: Rng, (items, left): (u64, &Share)) -> Result<(), WallError> {
    let most = load.read_bytes as usize;
    while !left.is_used_up() && !client.end.has_come() {
        let item = match load.wants(&mut rng, items) {
            // Reads of keys without an item come on top.
            Wanted::Absent(item) => item,
            Wanted::Item(item) if left.next().is_some() => item,
            Wanted::Item(_) => break,
        };
        let begun = client.connection.now();
        let reply = client.connection.get(&key(item), most, |value| is_of(value, item as u8, most))?;
        client.tally.ended = client.connection.now();
        let took = client.tally.ended - begun;
        match reply {
            Reply::Failed(words) => client.tally.failed(&words, 1),
            Reply::Done => client.tally.hits.record(took),
            Reply::Missing | Reply::NotDone => client.tally.misses.record(took),
        }
    }
    Ok(())
}

fn write(client: &mut Client<'_>, load: &Load, mut rng: Rng, (written, left): (u64, &Share)) -> Result<(), WallError> {
    while !left.is_used_up() && !client.end.has_come() {
        let number = rng.below(written);
        let key = String::from_utf8_lossy(&large(number)).into_owned();
        let request = put(&key, number, load.write_bytes);
        let begun = client.connection.now();
        let reply = client.connection.change(&key, &request)?;
        let took = client.connection.now() - begun;
        match reply {
            Reply::Failed(words) => client.tally.failed(&words, 1),
            // A put that ends after the last read has begun is not of the measured time.
            _ if left.is_used_up() => {}
            _ => {
                client.tally.changes.record(took);
                client.tally.put_bytes += load.write_bytes;
            }
        }
    }
    Ok(())
}
