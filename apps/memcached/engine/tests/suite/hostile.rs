//! Clients that break the protocol, send half of it, or do not take their answers.

use nandscape_apps_memcached_engine::Config;
use nandscape_apps_memcached_engine::memcached::MOST_LINE;
use nandscape_sim::Span;

use crate::client::{Client, SMALL, serve};
use nandscape_lab_crash::each;

#[test]
fn a_long_line_and_a_huge_length_hold_little_memory() {
    serve("epochs", SMALL, async |sim, engine, server| {
        let limit = engine.item_limit();
        let (mut long, mut huge) = (Client::new(&sim, &server), Client::new(&sim, &server));
        let mut good = Client::new(&sim, &server);
        long.send(&vec![b'x'; 2 * MOST_LINE]).await;
        assert_eq!(long.answer(1).await, "CLIENT_ERROR line too long\r\n");
        assert!(long.wire().is_ended());
        // Nothing of an item that is too large is kept, and what was there is gone.
        assert_eq!(huge.ask("set a 0 0 1\r\na\r\n", 1).await, "STORED\r\n");
        assert_eq!(huge.ask("set a 0 0 2147483645\r\n", 1).await, "SERVER_ERROR object too large for cache\r\n");
        for _ in 0..100 {
            huge.send(&[b'y'; 10_000]).await;
            sim.sleep(Span::from_us(1)).await;
            assert!(huge.wire().held() <= 2 * MOST_LINE);
        }
        assert_eq!(good.ask("get a\r\n", 1).await, "END\r\n");
        // An item of the limit is one.
        let len = limit - 1;
        let value = "z".repeat(len);
        assert_eq!(good.ask(&format!("set b 0 0 {len}\r\n{value}\r\n"), 1).await, "STORED\r\n");
        assert_eq!(good.ask("get b\r\n", 3).await, format!("VALUE b 0 {len}\r\n{value}\r\nEND\r\n"));
        // A client that takes nothing stops at a bound.
        let slow = Client::new(&sim, &server);
        slow.wire().received("get b b b b b b b b b b b b b b b b b b b b b b\r\n".repeat(100).as_bytes());
        sim.sleep(Span::from_ms(10)).await;
        let bound = (256 << 10) + limit + 2 * MOST_LINE;
        assert!(slow.wire().held() < bound, "{}", slow.wire().held());
        assert_eq!(good.ask("mn\r\n", 1).await, "MN\r\n");
        assert_eq!(server.counters().connections, 3);
        // One that only sends nothing more has the same bound.
        slow.wire().hang_up();
        sim.sleep(Span::from_ms(10)).await;
        assert!(slow.wire().held() < bound, "{}", slow.wire().held());
        assert_eq!(server.counters().connections, 3);
        slow.wire().close();
        sim.sleep(Span::from_ms(1)).await;
        assert_eq!((server.counters().connections, slow.wire().held()), (2, 0));
        // When the server ends it waits for no client.
        let last = Client::new(&sim, &server);
        last.wire().received("get b b b b b b b b b b b b b b b b b b b b b b\r\n".repeat(100).as_bytes());
        sim.sleep(Span::from_ms(10)).await;
        last.wire().finish();
        sim.sleep(Span::from_ms(1)).await;
        assert_eq!(server.counters().connections, 2);
    });
}

/// The memory of all items is not freed at once: clients are served meanwhile, and items that come are others.
#[test]
fn a_removal_of_all_items_lets_others_go_on() {
    let config = Config { memory: 8 << 20, ..SMALL };
    serve("epochs", config, async |sim, engine, server| {
        let (mut wild, mut good) = (Client::new(&sim, &server), Client::new(&sim, &server));
        for number in 0..5_000 {
            assert_eq!(good.ask(&format!("set k{number} 0 0 1\r\nx\r\n"), 1).await, "STORED\r\n");
        }
        let full = engine.stats().memory_bytes;
        assert_eq!(wild.ask("flush_all\r\n", 1).await, "OK\r\n");
        let stats = engine.stats();
        assert!(stats.items == 0 && stats.memory_bytes > full / 2, "{stats:?}");
        assert_eq!(good.ask("set k7 0 0 1\r\ny\r\n", 1).await, "STORED\r\n");
        assert_eq!(wild.ask("flush_all\r\n", 1).await, "OK\r\n");
        assert_eq!(good.ask("set k8 0 0 1\r\nz\r\n", 1).await, "STORED\r\n");
        sim.sleep(Span::from_ms(100)).await;
        let stats = engine.stats();
        assert!(stats.items == 1 && stats.memory_bytes < full / 10, "{stats:?}");
        assert_eq!(good.ask("get k7 k8\r\n", 3).await, "VALUE k8 0 1\r\nz\r\nEND\r\n");
    });
}

/// A client may send as many commands as it likes: others wait for a part of them.
#[test]
fn others_have_their_turn_between_the_commands_of_a_client() {
    serve("epochs", SMALL, async |sim, _, server| {
        for flood in [
            "\n".repeat(60_000),
            "get a\r\n".repeat(9_000),
            format!("get {}\r\n", "a ".repeat(30_000)),
            format!("gat 0 {}\r\n", "a ".repeat(30_000)),
            "stats\r\n".repeat(8_000),
            "touch a 0\r\n".repeat(5_000),
            "mn\r\n".repeat(15_000),
        ] {
            let (wild, mut good) = (Client::new(&sim, &server), Client::new(&sim, &server));
            sim.sleep(Span::from_us(1)).await;
            let begun = server.counters();
            wild.wire().received(flood.as_bytes());
            good.wire().received(b"mn\r\n");
            while !good.wire().has_output() {
                sim.sleep(Span::from_ns(1)).await;
            }
            let now = server.counters();
            let served = (now.gets - begun.gets) + (now.touches - begun.touches) + wild.wire().commands();
            assert!(served <= 300, "{served} of {:?} were served first", &flood[..6]);
            assert_eq!(good.answer(1).await, "MN\r\n");
            wild.wire().cut();
        }
    });
}

/// A client that has sent and received large items, and is idle, holds little.
#[test]
fn an_idle_client_holds_little() {
    serve("epochs", SMALL, async |sim, _, server| {
        let mut client = Client::new(&sim, &server);
        let value = "v".repeat(30_000);
        for _ in 0..3 {
            assert_eq!(client.ask(&format!("set a 0 0 30000\r\n{value}\r\n"), 1).await, "STORED\r\n");
            client.ask("get a a a\r\n", 7).await;
        }
        assert!(client.wire().held() <= 8 << 10, "{} bytes", client.wire().held());
    });
}

/// Values that wait for room stay with their clients, where they count and can be given up.
#[test]
fn values_that_wait_for_room_count_as_their_clients() {
    serve("epochs", SMALL, async |sim, engine, server| {
        let value = "v".repeat(20_000);
        let mut clients: Vec<Client> = (0..40).map(|_| Client::new(&sim, &server)).collect();
        for (number, client) in clients.iter().enumerate() {
            client.wire().received(format!("set key{number} 0 0 {}\r\n{value}\r\n", value.len()).as_bytes());
        }
        sim.sleep(Span::from_us(1)).await;
        let throttled = || clients.iter().filter(|client| client.wire().is_throttled()).count();
        let waiting = throttled();
        assert!(waiting > 30, "{waiting} wait");
        let held: usize = clients.iter().map(|client| client.wire().held()).sum();
        assert!(held >= waiting * value.len(), "{held} bytes of {waiting}");
        assert!(engine.stats().memory_bytes < SMALL.memory, "{:?}", engine.stats());
        clients[39].wire().cut();
        assert_eq!(clients[39].wire().held(), 0);
        clients.pop();
        for client in &mut clients {
            assert_eq!(client.answer(1).await, "STORED\r\n");
        }
        assert!(engine.look(b"key38").await.is_some() && engine.look(b"key39").await.is_none());
    });
}

/// No length overflows, and its client is served further.
#[test]
fn a_length_at_the_end_of_a_number_is_rejected() {
    // A memory as large as a number can say is none, either.
    let config = nandscape_apps_memcached_engine::Config { memory: u64::MAX, ..SMALL };
    serve("mixed", config, async |sim, _, server| {
        let mut client = Client::new(&sim, &server);
        assert_eq!(client.ask("set k 0 0 1\r\na\r\n", 1).await, "STORED\r\n");
        for len in [u64::MAX, u64::MAX - 1, u64::MAX - 2, u64::MAX - 3, 1 << 63, 1 << 31, (1 << 31) - 2] {
            for command in [format!("set k 0 0 {len}\r\n"), format!("cas k 0 0 {len} 1\r\n"), format!("ms k {len}\r\n")]
            {
                assert_eq!(client.ask(&command, 1).await, "CLIENT_ERROR bad command line format\r\n", "{command}");
            }
        }
        assert_eq!(client.ask("get k\r\n", 3).await, "VALUE k 0 1\r\na\r\nEND\r\n");
    });
}

/// A cas that is too large leaves the item that is there, a set does not.
#[test]
fn only_a_set_that_is_too_large_takes_the_item_away() {
    serve("mixed", SMALL, async |sim, engine, server| {
        let len = engine.item_limit();
        let data = "z".repeat(len);
        let mut client = Client::new(&sim, &server);
        let keeping =
            ["cas k 0 0 LEN 1", "add k 0 0 LEN", "replace k 0 0 LEN", "append k 0 0 LEN", "ms k LEN C1", "ms k LEN MR"];
        for (command, keeps) in
            keeping.map(|one| (one, true)).into_iter().chain([("set k 0 0 LEN", false), ("ms k LEN", false)])
        {
            assert_eq!(client.ask("set k 0 0 1\r\na\r\n", 1).await, "STORED\r\n");
            let command = format!("{}\r\n{data}\r\n", command.replace("LEN", &len.to_string()));
            assert_eq!(client.ask(&command, 1).await, "SERVER_ERROR object too large for cache\r\n");
            let answer = if keeps { "HD s1\r\n" } else { "EN\r\n" };
            assert_eq!(client.ask("mg k s\r\n", 1).await, answer, "{}", &command[..16]);
        }
    });
}

/// Bytes of any kind, cut anywhere, end nothing but their own client.
#[test]
fn nonsense_costs_others_nothing() {
    let words: [&[u8]; 20] = [
        b"get",
        b"set",
        b"cas",
        b"ms",
        b"mg",
        b"ma",
        b"md",
        b"gat",
        b"flush_all",
        b"stats",
        b"noreply",
        b"\r\n",
        b"\n",
        b" ",
        b"0",
        b"-1",
        b"99999999999999999999",
        b"b",
        b"T",
        b"\0\xff",
    ];
    each(40, |seed| {
        serve("mixed", SMALL, async |sim, _, server| {
            let mut rng = seed.child("nonsense").rng();
            let wild = Client::new(&sim, &server);
            for _ in 0..400 {
                let word = words[rng.below(words.len() as u64) as usize];
                let word = &word[..rng.below(word.len() as u64 + 1) as usize];
                let word = &word[..word.len().min(wild.wire().wants())];
                wild.wire().received(word);
                if rng.chance(0.5) {
                    wild.wire().received(b" ");
                }
                sim.sleep(Span::from_us(rng.below(20))).await;
            }
            let mut good = Client::new(&sim, &server);
            assert_eq!(good.ask("set a 0 0 1\r\na\r\n", 1).await, "STORED\r\n");
            assert_eq!(good.ask("get a\r\n", 3).await, "VALUE a 0 1\r\na\r\nEND\r\n");
            wild.wire().hang_up();
        });
    });
}
