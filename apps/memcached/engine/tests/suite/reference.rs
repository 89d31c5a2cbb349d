//! Random commands of a client, against a plain map; over restarts of the engine, with less memory than items.

use nandscape_apps_memcached_engine::memcached::Server;
use nandscape_apps_memcached_engine::testing::Model;
use nandscape_apps_memcached_engine::{Ack, Config};
use nandscape_lab_crash::each;
use nandscape_sim::{Executor, Span};

use crate::client::{Client, NOW_S, SMALL, disks, drives, open};

/// The most bytes of key and value in [`SMALL`].
const LIMIT: usize = 32 << 10;

/// The version that the next item gets: a restart may leave some out.
async fn next_version(client: &mut Client) -> u64 {
    let answer = client.ask("ms next 0 c\r\n\r\n", 1).await;
    let version: Option<u64> = answer.trim_end().strip_prefix("HD c").and_then(|version| version.parse().ok());
    version.unwrap_or_else(|| panic!("{answer:?}")) + 1
}

#[test]
fn answers_are_those_of_a_plain_map_over_restarts() {
    let mut drive_hits = 0;
    each(24, |seed| {
        let mut rng = seed.child("commands").rng();
        let mut small = seed.child("small").rng();
        let (disks, mut model) = (disks(4), Model::new(150, LIMIT, NOW_S));
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
                assert_eq!(engine.item_limit(), LIMIT);
                model.version = next_version(&mut client).await;
                for number in 0..600 {
                    model.now_s = engine.now_s();
                    // Not at the edge of a second: what takes time would be of the next one.
                    if sim.now().ns() % 1_000_000_000 > 500_000_000 {
                        sim.sleep(Span::from_ns(1_000_000_000 - sim.now().ns() % 1_000_000_000)).await;
                        continue;
                    }
                    let exchange = model.exchange(&mut |bound| rng.below(bound));
                    // Some commands have no answer.
                    client.send(&[&exchange.command[..], b"mn\r\n"].concat()).await;
                    let wanted = [&exchange.answer[..], b"MN\r\n"].concat();
                    let answer = client.answer_bytes(wanted.iter().filter(|byte| **byte == b'\n').count()).await;
                    let command = exchange.command.escape_ascii();
                    assert_eq!(
                        answer.escape_ascii().to_string(),
                        wanted.escape_ascii().to_string(),
                        "{number}: {command}"
                    );
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
