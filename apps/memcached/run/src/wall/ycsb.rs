//! A core workload of YCSB: the operations of the simulated clients.

use nandscape_drive::{Phase, Progress};
use nandscape_sim::Seed;

use super::connection::{Connection, Reply};
use super::crew::{Client, Crew, Share};
use super::{Answered, WallError, WallSpec};
use crate::draws::Ycsb;
use crate::text::Answer;

/// Runs it, on a server whose items have `limit` bytes at most.
pub(super) fn run(
    spec: &WallSpec<'_>,
    workload: &str,
    (control, limit): (&mut Connection, u64),
    progress: &dyn Progress,
) -> Result<Answered, WallError> {
    let load = spec.load;
    spec.check_sizes(limit, false)?;
    let items = spec.items_in(spec.room(&control.statistics()?)?);
    let bytes = load.read_bytes as usize;
    let new = || Ycsb::new(workload, items, bytes).map_err(WallError::Spec);
    let all = new()?;
    let mut crew = Crew::connect(spec, load.readers, control.clock(), progress)?;
    if !spec.is_loaded {
        crew.put(items, load.read_bytes, |item| (Ycsb::key(item), all.update(item)))?;
    }
    let (before, begun, left) = (control.statistics()?, control.now(), Share::of(load.reads));
    let seed = Seed::new(spec.seed);
    let tally = crew.work(
        Phase::Running,
        || left.done(),
        |client| operate(client, new()?, (bytes, &left), seed.child("client").nth(client.number)),
    )?;
    let took = tally.ended.since(begun);
    Ok(spec.answered(tally, Some(items), took, [before, control.statistics()?]))
}

fn operate(
    client: &mut Client<'_>,
    mut ycsb: Ycsb,
    (bytes, left): (usize, &Share),
    seed: Seed,
) -> Result<(), WallError> {
    let mut rng = seed.rng();
    while left.next().is_some() && !client.end.has_come() {
        let drawn = ycsb.next(&mut rng);
        let (key, request) = (Ycsb::key(drawn.item), ycsb.request(drawn));
        let begun = client.connection.now();
        let is_right = |answer: &Answer<'_>| ycsb.is_right(drawn, answer);
        let reply = client.connection.command((&key, drawn.is_read), &request, bytes, is_right)?;
        client.tally.ended = client.connection.now();
        let took = client.tally.ended - begun;
        match reply {
            Reply::Failed(words) => client.tally.failed(&words, 1),
            Reply::Missing => client.tally.misses.record(took),
            Reply::Done if drawn.is_read => client.tally.hits.record(took),
            Reply::Done | Reply::NotDone => {
                client.tally.changes.record(took);
                client.tally.put_bytes += bytes as u64;
            }
        }
    }
    Ok(())
}
