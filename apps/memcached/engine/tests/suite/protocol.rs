//! Answers to commands, as memcached's doc/protocol.txt has them.

use nandscape_apps_memcached_engine::Config;
use nandscape_apps_memcached_engine::memcached::Server;
use nandscape_sim::{Executor, Span};

use crate::client::{Client, NOW_S, SMALL, disks, drives, open, serve};

/// Commands and what is answered; "" is nothing. Small items with entries in the index and without have the same answers, from memory and from
/// drives.
fn check(dialogue: &[(&str, &str)]) {
    for (small, caches) in [(0, true), (1_024, true), (1_024, false)] {
        check_with(Config { small, caches, ..SMALL }, dialogue);
    }
}

fn check_with(config: Config, dialogue: &[(&str, &str)]) {
    serve("epochs", config, async |sim, _, server| {
        let mut client = Client::new(&sim, &server);
        for (command, answer) in dialogue {
            if let Some(seconds) = command.strip_prefix("sleep ") {
                sim.sleep(Span::from_s(seconds.parse().unwrap())).await;
                continue;
            }
            client.send(command.as_bytes()).await;
            match answer.matches('\n').count() {
                0 => assert!(client.is_silent().await, "{command:?}"),
                lines => assert_eq!(client.answer(lines).await, *answer, "{command:?}"),
            }
        }
    });
}

#[test]
fn text_commands_have_their_answers() {
    check(&[
        ("get a\r\n", "END\r\n"),
        ("set a 5 0 3\r\nabc\r\n", "STORED\r\n"),
        ("get a b a\r\n", "VALUE a 5 3\r\nabc\r\nVALUE a 5 3\r\nabc\r\nEND\r\n"),
        ("gets a\r\n", "VALUE a 5 3 1\r\nabc\r\nEND\r\n"),
        ("add a 0 0 1\r\nx\r\n", "NOT_STORED\r\n"),
        ("replace b 0 0 1\r\nx\r\n", "NOT_STORED\r\n"),
        ("append b 0 0 1\r\nx\r\n", "NOT_STORED\r\n"),
        ("append a 9 9 2\r\nde\r\n", "STORED\r\n"),
        ("prepend a 9 9 2\r\n__\r\n", "STORED\r\n"),
        ("gets a\r\n", "VALUE a 5 7 3\r\n__abcde\r\nEND\r\n"),
        ("cas a 0 0 1 2\r\nx\r\n", "EXISTS\r\n"),
        ("cas b 0 0 1 2\r\nx\r\n", "NOT_FOUND\r\n"),
        ("cas a 0 0 2 3\r\n10\r\n", "STORED\r\n"),
        ("incr a 5\r\n", "15\r\n"),
        ("decr a 6\r\n", "9\r\n"),
        ("get a\r\n", "VALUE a 0 2\r\n9 \r\nEND\r\n"),
        ("decr a 100\r\n", "0\r\n"),
        ("incr a 18446744073709551615\r\n", "18446744073709551615\r\n"),
        ("incr a 2\r\n", "1\r\n"),
        ("incr a x\r\n", "CLIENT_ERROR invalid numeric delta argument\r\n"),
        ("incr b 1\r\n", "NOT_FOUND\r\n"),
        ("set t 0 0 3\r\nabc\r\n", "STORED\r\n"),
        ("incr t 1\r\n", "CLIENT_ERROR cannot increment or decrement non-numeric value\r\n"),
        ("delete t\r\n", "DELETED\r\n"),
        ("delete t\r\n", "NOT_FOUND\r\n"),
        ("set a 0 0 1 noreply\r\nx\r\n", ""),
        ("delete a noreply\r\nincr a 1 noreply\r\ntouch a 1 noreply\r\n", ""),
        ("get a\r\n", "END\r\n"),
        ("verbosity 1\r\n", "OK\r\n"),
        ("version\r\n", "VERSION 1\r\n"),
        ("version foo bar\r\n", "VERSION 1\r\n"),
        ("version noreply\r\n", "VERSION 1\r\n"),
        ("quit foo bar\r\n", "ERROR\r\n"),
        ("verbosity foo bar my\r\n", "ERROR\r\n"),
        ("verbosity 0 noreply\r\nversion\r\n", "VERSION 1\r\n"),
        ("nonsense\r\n \r\n", "ERROR\r\nERROR\r\n"),
        ("shutdown\r\n", "ERROR: shutdown not enabled\r\n"),
        ("flush_all soon\r\n", "CLIENT_ERROR invalid exptime argument\r\n"),
        ("set a b 0 1\r\nx\r\n", "CLIENT_ERROR bad command line format\r\n"),
        ("set a 0 0 -1\r\n", "CLIENT_ERROR bad command line format\r\n"),
        ("set a 0 0 1\r\nxyz\r\n", "CLIENT_ERROR bad data chunk\r\nERROR\r\n"),
        ("stats items\r\n", "END\r\n"),
        ("stats detail\r\n", "CLIENT_ERROR usage: stats detail on|off|dump\r\n"),
        (
            "stats detail on\r\nset p:1 0 0 1\r\nx\r\nmg p:1\r\nget p:2\r\nmd p:3\r\n",
            "OK\r\nSTORED\r\nHD\r\nEND\r\nNF\r\n",
        ),
        ("stats detail dump\r\n", "PREFIX p get 2 hit 1 set 1 del 1\r\nEND\r\n"),
        ("stats reset\r\n", "RESET\r\n"),
        ("stats detail dump\r\nstats detail off\r\n", "END\r\nOK\r\n"),
    ]);
}

#[test]
fn items_expire_and_are_touched() {
    let later = NOW_S + 3_600;
    check(&[
        ("set a 0 10 1\r\na\r\nset b 0 -1 1\r\nb\r\n", "STORED\r\nSTORED\r\n"),
        (&format!("set c 0 {later} 1\r\nc\r\nset d 0 0 1\r\nd\r\n"), "STORED\r\nSTORED\r\n"),
        ("get a b c d\r\n", "VALUE a 0 1\r\na\r\nVALUE c 0 1\r\nc\r\nVALUE d 0 1\r\nd\r\nEND\r\n"),
        ("touch a 100\r\n", "TOUCHED\r\n"),
        ("touch b 100\r\n", "NOT_FOUND\r\n"),
        ("gat 10 d\r\n", "VALUE d 0 1\r\nd\r\nEND\r\n"),
        ("sleep 50", ""),
        ("get a c d\r\n", "VALUE a 0 1\r\na\r\nVALUE c 0 1\r\nc\r\nEND\r\n"),
        ("flush_all 20\r\n", "OK\r\n"),
        ("sleep 10", ""),
        ("get a\r\n", "VALUE a 0 1\r\na\r\nEND\r\n"),
        ("sleep 20", ""),
        ("get a c\r\n", "END\r\n"),
        ("set a 0 0 1\r\na\r\n", "STORED\r\n"),
        ("flush_all\r\n", "OK\r\n"),
        ("get a\r\n", "END\r\n"),
    ]);
}

#[test]
fn the_last_delayed_flush_replaces_the_others() {
    let many = "flush_all 100 noreply\r\n".repeat(1_000);
    check(&[
        ("set a 0 0 1\r\na\r\n", "STORED\r\n"),
        (&many, ""),
        ("flush_all 20\r\n", "OK\r\n"),
        ("flush_all 40\r\n", "OK\r\n"),
        ("sleep 30", ""),
        ("mg a s\r\n", "HD s1\r\n"),
        ("flush_all 5\r\n", "OK\r\n"),
        ("sleep 6", ""),
        ("mg a\r\n", "EN\r\n"),
        ("set a 0 0 1\r\na\r\n", "STORED\r\n"),
        ("sleep 100", ""),
        ("mg a s\r\n", "HD s1\r\n"),
        // An order without delay replaces one that waits, too, and a later one is served.
        ("flush_all 5\r\nflush_all\r\n", "OK\r\nOK\r\n"),
        ("set a 0 0 1\r\na\r\n", "STORED\r\n"),
        ("sleep 10", ""),
        ("mg a s\r\n", "HD s1\r\n"),
        ("flush_all 5\r\n", "OK\r\n"),
        ("sleep 6", ""),
        ("mg a\r\n", "EN\r\n"),
    ]);
}

#[test]
fn meta_commands_have_their_answers() {
    check(&[
        ("mn\r\n", "MN\r\n"),
        ("mg a v\r\n", "EN\r\n"),
        ("mg a v q\r\nmn\r\n", "MN\r\n"),
        ("mg a v k O77 t\r\n", "EN ka O77\r\n"),
        ("mg Zm9v b k v\r\n", "EN kZm9v b\r\n"),
        ("ms a 3 F5 T100 c\r\nabc\r\n", "HD c1\r\n"),
        ("mg a s v f t k O77 c\r\n", "VA 3 s3 f5 t100 ka O77 c1\r\nabc\r\n"),
        ("mg a h l t\r\n", "HD h1 l0 t100\r\n"),
        ("mg a h u\r\n", "HD h1\r\n"),
        ("mg a t T50\r\n", "HD t100\r\n"),
        ("mg a T0 t\r\n", "HD t-1\r\n"),
        ("me a\r\n", "ME a exp=-1 la=0 cas=1 fetch=yes cls=1 size=40\r\n"),
        ("me none\r\n", "EN\r\n"),
        ("ms a 1 ME\r\nx\r\n", "NS\r\n"),
        ("ms a 2 MA O1\r\nde\r\n", "HD O1\r\n"),
        ("ms a 1 C99\r\nx\r\n", "EX\r\n"),
        ("ms a 1 C99 c\r\nx\r\n", "EX c0\r\n"),
        ("ms b 1 C99\r\nx\r\n", "NF\r\n"),
        ("ms b 1 MR\r\nx\r\n", "NS\r\n"),
        ("ms Zm9v 3 b k\r\nbar\r\n", "HD kZm9v b\r\n"),
        ("get foo\r\n", "VALUE foo 0 3\r\nbar\r\nEND\r\n"),
        ("ma n\r\n", "NF\r\n"),
        ("ma n N0 J13 v\r\n", "VA 2\r\n13\r\n"),
        ("ma n D2 v t\r\n", "VA 2 t-1\r\n15\r\n"),
        ("ma n MD D20 v\r\n", "VA 1\r\n0\r\n"),
        ("ma n N0 q v\r\nma n D4 q v O1\r\nmn\r\n", "MN\r\n"),
        ("ma n v\r\n", "VA 1\r\n6\r\n"),
        ("ma a q\r\n", "CLIENT_ERROR cannot increment or decrement non-numeric value\r\n"),
        ("ma n q C1\r\n", "EX\r\n"),
        ("ma a\r\n", "CLIENT_ERROR cannot increment or decrement non-numeric value\r\n"),
        ("md n C1\r\n", "EX\r\n"),
        ("md n q\r\nmd n\r\n", "NF\r\n"),
        ("ms a S 1\r\nms a\r\n", "CLIENT_ERROR bad command line format\r\nCLIENT_ERROR bad command line format\r\n"),
        ("ms a 1 E5\r\nx\r\n", "CLIENT_ERROR invalid flag\r\n"),
        ("ms a 1 q\r\nx\r\nmn\r\n", "MN\r\n"),
        ("mg a v v\r\n", "CLIENT_ERROR duplicate flag\r\n"),
        ("ms a 1 Fx\r\nx\r\n", "CLIENT_ERROR bad command line format\r\n"),
        ("ms a 1 MZ\r\nx\r\n", "CLIENT_ERROR invalid mode for ms M token\r\n"),
        ("mg !!! b\r\n", "CLIENT_ERROR error decoding key\r\n"),
        ("mg\r\nms\r\nmd\r\nma\r\n", "ERROR\r\nERROR\r\nERROR\r\nERROR\r\n"),
        ("me\r\n", "CLIENT_ERROR bad command line format\r\n"),
    ]);
}

/// `q` hides success, and the miss of a `mg`.
#[test]
fn quiet_commands_report_what_they_did_not_do() {
    check(&[
        ("md a q\r\nma a q k O1\r\nmg a q\r\nmn\r\n", "NF\r\nNF ka O1\r\nMN\r\n"),
        ("ms a 1 q\r\n1\r\nma a q\r\nms a 1 ME q\r\nx\r\nmd a q C1\r\nmn\r\n", "NS\r\nEX\r\nMN\r\n"),
        ("md a q\r\nmn\r\n", "MN\r\n"),
    ]);
}

#[test]
fn opaque_tokens_have_31_bytes_at_most() {
    let (longest, longer) = ("1".repeat(31), "1".repeat(32));
    let too_long = "CLIENT_ERROR opaque token too long\r\n";
    check(&[
        (&format!("mg a O{longest}\r\n"), &format!("EN O{longest}\r\n")),
        (&format!("mg a O{longer}\r\nmd a O{longer}\r\n"), &too_long.repeat(2)),
        (&format!("ms a 1 O{longer}\r\nx\r\nmn\r\n"), &format!("{too_long}MN\r\n")),
    ]);
}

/// Keys of libmemcached's load tool begin with bytes of any value.
#[test]
fn keys_have_any_bytes_but_line_ends_spaces_and_nuls() {
    let bad = "CLIENT_ERROR bad command line format\r\n";
    check(&[
        ("set \x01\x7f\t\rb 0 0 1\r\nx\r\n", "STORED\r\n"),
        ("get \x01\x7f\t\rb\r\n", "VALUE \x01\x7f\t\rb 0 1\r\nx\r\nEND\r\n"),
        ("mg \x01\x7f\t\rb k v\r\n", "VA 1 k\x01\x7f\t\rb\r\nx\r\n"),
        ("touch \x01\x7f\t\rb 0\r\ndelete \x01\x7f\t\rb\r\n", "TOUCHED\r\nDELETED\r\n"),
        ("set a\0b 0 0 1\r\nx\r\nget a\0b\r\nmg a\0b\r\n", &bad.repeat(3)),
    ]);
}

/// As memcached has it: the data of a command with a word too many would otherwise be taken for a command.
#[test]
fn one_word_too_many_is_ignored() {
    check(&[
        ("set a 0 0 1 foo\r\n1\r\nget a\r\n", "STORED\r\nVALUE a 0 1\r\n1\r\nEND\r\n"),
        ("cas a 0 0 1 99 foo\r\nx\r\n", "EXISTS\r\n"),
        ("incr a 1 foo\r\ntouch a 0 foo\r\nflush_all -1 foo\r\n", "2\r\nTOUCHED\r\nOK\r\n"),
        ("set a 0 0 1 foo bar\r\nversion\r\n", "ERROR\r\nVERSION 1\r\n"),
        ("set a 0 0 1 foo noreply\r\ntouch a 1 foo noreply\r\nincr a noreply\r\n", "ERROR\r\nERROR\r\n"),
        ("cas a 0 0 1 noreply\r\nx\r\nset a 0 0 noreply\r\nversion\r\n", "VERSION 1\r\n"),
        (
            "delete a 0 noreply\r\ndelete noreply 5\r\n",
            "CLIENT_ERROR bad command line format.  Usage: delete <key> [noreply]\r\n",
        ),
        ("gat 1\r\ngat\r\n", "END\r\nERROR\r\n"),
    ]);
}

/// As `strtoull` has them.
#[test]
fn numbers_have_spaces_around_them_and_a_plus() {
    let none = "CLIENT_ERROR cannot increment or decrement non-numeric value\r\n";
    let set = |value: &str| format!("set n +1 +0 +{}\r\n{value}\r\nincr n +1\r\n", value.len());
    for (value, answer) in [
        (" 12", "13\r\n"),
        ("\t+12\r", "13\r\n"),
        ("12 x", "13\r\n"),
        ("000000000000000000000012", "13\r\n"),
        ("18446744073709551615", "0\r\n"),
        ("18446744073709551616", none),
        ("12x", none),
        ("-12", none),
        (" ", none),
        ("", none),
    ] {
        check_with(SMALL, &[(&set(value), &format!("STORED\r\n{answer}"))]);
    }
}

/// Hits of the engine are those since then, as hits of the server are.
#[test]
fn reset_statistics_include_those_of_the_engine() {
    serve("epochs", SMALL, async |sim, _, server| {
        let mut client = Client::new(&sim, &server);
        client.ask("set a 0 0 1\r\nx\r\nget a\r\nget a\r\n", 7).await;
        let figures = || ["get_hits", "engine_memory_hits", "curr_items"].map(|name| figure(&server, name));
        assert_eq!(figures(), ["2", "2", "1"]);
        client.ask("stats reset\r\nget a\r\n", 4).await;
        assert_eq!(figures(), ["1", "1", "1"]);
    });
}

fn figure(server: &Server, name: &str) -> String {
    let figure = server.stats().into_iter().find(|(one, _)| *one == name);
    figure.unwrap_or_else(|| panic!("no {name}")).1
}

/// Of the clients that find no item, one that ends soon or a stale one, one is to renew it.
#[test]
fn one_client_is_to_renew_an_item() {
    check(&[
        ("mg a s c v N30 t\r\n", "VA 0 s0 c1 t30 W\r\n\r\n"),
        ("mg a s v N30 q\r\n", "VA 0 s0 Z\r\n\r\n"),
        ("ms a 2 C5 T120\r\nxy\r\n", "EX\r\n"),
        ("ms a 2 C1 T120\r\nxy\r\n", "HD\r\n"),
        ("mg a t N30\r\n", "HD t120\r\n"),
        ("mg a t R130\r\n", "HD t120 W\r\n"),
        ("mg a t R130\r\n", "HD t120 Z\r\n"),
        ("mg a t\r\n", "HD t120 Z\r\n"),
        ("set a 3 0 2\r\nzz\r\n", "STORED\r\n"),
        ("mg a R130\r\n", "HD\r\n"),
        ("md a I T30 C1\r\n", "EX\r\n"),
        ("md a I T30\r\n", "HD\r\n"),
        ("mg a t c f v\r\n", "VA 2 t30 c4 f3 X W\r\nzz\r\n"),
        ("mg a v\r\n", "VA 2 Z X\r\nzz\r\n"),
        ("get a\r\n", "VALUE a 3 2\r\nzz\r\nEND\r\n"),
        ("ms a 1 T90 C0\r\nf\r\n", "EX\r\n"),
        ("ms a 1 I T90 C1\r\nf\r\n", "HD\r\n"),
        ("mg a t v\r\n", "VA 1 t30 Z X\r\nf\r\n"),
        ("ms a 1 I T90 C5\r\ng\r\n", "HD\r\n"),
        ("mg a t v\r\n", "VA 1 t90\r\ng\r\n"),
        ("md a x\r\n", "HD\r\n"),
        ("mg a t v\r\n", "VA 0 t90\r\n\r\n"),
        ("md b I\r\n", "NF\r\n"),
        ("ms b 1 I C9\r\nx\r\n", "NF\r\n"),
    ]);
}

/// A stale item is stale after a restart, too.
#[test]
fn marks_outlast_a_restart() {
    let disks = disks(2);
    let life = |dialogue: &[(&str, &str, usize)]| {
        let mut executor = Executor::new();
        let sim = executor.sim();
        let drives = drives(&sim, &disks);
        let ran = executor.block_on(async {
            let engine = open(&sim, &drives, "epochs", SMALL).await.unwrap();
            let mut client = Client::new(&sim, &Server::new(engine.clone(), "1"));
            for (command, answer, lines) in dialogue {
                assert_eq!(client.ask(command, *lines).await, *answer, "{command:?}");
            }
            engine.close().await.unwrap();
        });
        ran.unwrap();
    };
    life(&[
        ("set a 0 0 1\r\nx\r\nmd a I\r\n", "STORED\r\nHD\r\n", 2),
        ("mg b N0\r\nset c 0 0 1\r\nx\r\n", "HD W\r\nSTORED\r\n", 2),
    ]);
    life(&[("mg a v\r\nmg b\r\nmg c\r\n", "VA 1 X W\r\nx\r\nHD Z\r\nHD\r\n", 4)]);
}

/// A line of keys has no limit, and is served in parts; one bad key ends it.
#[test]
fn a_get_of_any_length_is_served() {
    let keys = "a bb ".repeat(30_000);
    let found = "VALUE a 0 1\r\nx\r\n".repeat(30_000);
    let bad = format!("gets {keys} {} {keys}\r\n", "k".repeat(251));
    serve("epochs", SMALL, async |sim, _, server| {
        let mut client = Client::new(&sim, &server);
        assert_eq!(client.ask("set a 0 0 1\r\nx\r\n", 1).await, "STORED\r\n");
        assert_eq!(client.ask(&format!("get {keys}\r\n"), 60_001).await, format!("{found}END\r\n"));
        client.send(bad.as_bytes()).await;
        loop {
            let line = client.answer(1).await;
            if line.starts_with("CLIENT_ERROR") {
                break;
            }
            assert!(line.starts_with("VALUE a 0 1 ") || line == "x\r\n", "{line}");
        }
        assert_eq!(client.ask("mn\r\n", 1).await, "MN\r\n");
        let spaces = " ".repeat(70_000);
        assert_eq!(client.ask(&format!("get{spaces}a\r\n"), 3).await, "VALUE a 0 1\r\nx\r\nEND\r\n");
        // One key without an end is no key.
        client.send(format!("get {}\r\n", "k".repeat(70_000)).as_bytes()).await;
        assert_eq!(client.answer(1).await, "CLIENT_ERROR line too long\r\n");
    });
}

/// A browser that was lured to the port sends a request, whose body may have commands.
#[test]
fn a_request_of_http_is_cut_off() {
    serve("epochs", SMALL, async |sim, engine, server| {
        let mut client = Client::new(&sim, &server);
        client.send(b"POST / HTTP/1.1\r\nset a 0 0 1\r\nx\r\n").await;
        assert!(client.is_silent().await && client.wire().is_ended());
        assert!(engine.look(b"a").await.is_none());
    });
}

/// Seconds end when those of the time of day do, whenever the server began.
#[test]
fn an_item_expires_on_the_second() {
    let config = Config { start_ns: 900_000_000, ..SMALL };
    serve("epochs", config, async |sim, _, server| {
        let mut client = Client::new(&sim, &server);
        let set = format!("set a 0 {} 1\r\nx\r\nmg a s\r\n", NOW_S + 1);
        assert_eq!(client.ask(&set, 2).await, "STORED\r\nHD s1\r\n");
        sim.sleep(Span::from_ms(100)).await;
        assert_eq!(client.ask("mg a s\r\n", 1).await, "EN\r\n");
    });
}
