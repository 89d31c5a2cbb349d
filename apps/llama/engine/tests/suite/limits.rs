//! Input beyond the limits is rejected, and foreign data is not touched.

use nandscape_apps_llama_engine::{ChainConfig, Change, Config, Error, LogConfig, OpenError};
use nandscape_sim::{Executor, Sim};

use crate::rig::{Form, Rig};

fn log() -> Form {
    let log = LogConfig { page_bytes: 1_024, segment_bytes: 256 << 10, ..LogConfig::default() };
    Form { is_offloaded: false, chains: None, changes: &[], log, tree: Config { memory: 128 << 10, chain: 4 } }
}

fn with(form: Form, test: impl AsyncFnOnce(Sim, Rig)) {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let rig = Rig::new(&sim, form);
    executor.block_on(test(sim, rig)).unwrap();
}

#[test]
fn lengths_and_batches_are_bounded() {
    with(log(), async |_, rig| {
        let tree = rig.open().await.unwrap();
        let most = (1_024 - 42 - 255) / 2 - 6;
        tree.put(b"k", &vec![1; most - 1]).await.unwrap();
        let error = tree.put(b"k", &vec![1; most]).await.unwrap_err();
        assert_eq!(error, Error::Length { key: 1, value: most, max_key: 255, most });
        assert!(tree.put(b"", b"v").await.is_err() && tree.put(&[1; 256], b"").await.is_err());
        tree.put(&[1; 255], b"").await.unwrap();
        assert_eq!(tree.get(&[1; 255]).await.unwrap(), Some(Vec::new()));
        let many: Vec<Change> = (0..100u8).map(|number| Change::Put(vec![number], vec![number; 200])).collect();
        let error = tree.apply(&many).await.unwrap_err();
        let Error::Batch { changes: 100, most } = error else { panic!("{error}") };
        assert_eq!(tree.get(&[5]).await.unwrap(), None, "nothing was changed");
        assert_eq!(tree.apply(&many[..most]).await, Ok(0));
        // The tree is higher now.
        assert_eq!(tree.apply(&many[..2]).await, Ok(2));
    });
}

#[test]
fn a_full_store_says_so_and_can_be_emptied() {
    with(log(), async |_, rig| {
        let tree = rig.open().await.unwrap();
        let (mut count, key) = (0u32, |number: u32| number.to_be_bytes());
        let full = loop {
            match tree.put(&key(count), &[7; 300]).await {
                Ok(()) => count += 1,
                Err(error) => break error,
            }
        };
        assert_eq!(full, Error::Full);
        assert!(count > 2_000, "{count} records");
        // Deletions still work, again and again, and make room.
        for round in 0..2 {
            for number in (0..count).filter(|number| number % 3 > round) {
                tree.delete(&key(number)).await.unwrap();
            }
        }
        tree.commit().await.unwrap();
        for number in (0..count).step_by(3) {
            assert_eq!(tree.get(&key(number)).await.unwrap(), Some(vec![7; 300]), "record {number}");
            tree.put(&key(number), &[8; 300]).await.unwrap();
        }
        assert_eq!(tree.scan(&[], usize::MAX).await.unwrap().len() as u32, count.div_ceil(3));
    });
}

#[test]
fn what_is_no_store_is_left_alone() {
    let small = Form { tree: Config { memory: 10 << 10, chain: 4 }, ..log() };
    with(small, async |_, rig| assert!(matches!(rig.open().await.err(), Some(OpenError::Size(_)))));
    let pieces = Form { log: LogConfig { pieces: 6, ..log().log }, ..log() };
    with(pieces, async |_, rig| assert!(matches!(rig.open().await.err(), Some(OpenError::Size(_)))));
    let segments = Form { log: LogConfig { segment_bytes: 2 << 20, ..log().log }, ..log() };
    with(segments, async |_, rig| assert!(matches!(rig.open().await.err(), Some(OpenError::Size(_)))));
    let pages = Form { is_offloaded: true, ..log() };
    with(pages, async |_, rig| assert_eq!(rig.open().await.err(), Some(OpenError::NoPages)));
    // A log is no store of pages, and pages are no log.
    let on_ox = Form { changes: &["ftl.kind=ox_block"], ..log() };
    with(on_ox, async |_, rig| {
        rig.open().await.unwrap().put(b"k", b"v").await.unwrap();
        rig.crash().await;
        let pages = rig.as_form(Form { is_offloaded: true, tree: Config::default(), ..on_ox });
        assert!(matches!(pages.open().await.err(), Some(OpenError::Foreign(_))));
    });
    let pages = Form { is_offloaded: true, tree: Config::default(), ..on_ox };
    with(pages, async |_, rig| {
        rig.open().await.unwrap();
        rig.crash().await;
        assert!(matches!(rig.as_form(on_ox).open().await.err(), Some(OpenError::Foreign(_))));
    });
}

#[test]
fn chains_are_made_where_the_namespace_and_the_sizes_allow_them() {
    let chains = |page_bytes, pieces| Some(ChainConfig { page_bytes, pieces });
    let form =
        |chains| Form { is_offloaded: true, chains, changes: &["ftl.kind=ox_block"], tree: Config::default(), ..log() };
    for (page_bytes, pieces) in [(1_000, 5), (64 << 10, 5), (4_096, 0), (4_096, 33)] {
        with(form(chains(page_bytes, pieces)), async |_, rig| {
            let error = rig.open().await.err();
            assert!(matches!(error, Some(OpenError::Size(_))), "{page_bytes} {pieces}: {error:?}");
        });
    }
    let other = Form { changes: &[], ..form(chains(4_096, 5)) };
    with(other, async |_, rig| assert_eq!(rig.open().await.err(), Some(OpenError::NoPages)));
    with(form(chains(4_096, 5)), async |_, rig| {
        rig.open().await.unwrap().put(b"k", b"v").await.unwrap();
        rig.crash().await;
        // Neither a log nor pages of 4 KiB are made over them.
        assert_eq!(rig.as_form(form(None)).open().await.err(), Some(OpenError::HasPieces));
        rig.crash().await;
        let log = Form { is_offloaded: false, ..form(None) };
        assert_eq!(rig.as_form(log).open().await.err(), Some(OpenError::HasPieces));
    });
}

/// It is reported before the format, which would drop the data.
#[test]
fn a_drive_that_takes_too_little_at_once_for_chains_is_not_formatted_for_them() {
    let [transfer, buffer] =
        [&["ftl.kind=ox_block", "controller.max_transfer=64KiB"][..], &["ftl.kind=ox_block", "buffer.size=64KiB"]];
    for (changes, told) in [(transfer, "73728"), (buffer, "65537")] {
        let form = Form { changes, ..log() };
        let chains = Some(ChainConfig { page_bytes: 4_096, pieces: 5 });
        with(form, async |_, rig| {
            let tree = rig.open().await.unwrap();
            tree.put(b"k", b"v").await.unwrap();
            tree.commit().await.unwrap();
            rig.crash().await;
            let error = rig.as_form(Form { is_offloaded: true, chains, ..form }).open().await.err();
            let Some(OpenError::TooSmall(why)) = error else { panic!("{changes:?}: {error:?}") };
            let words = why.to_string();
            assert!(words.contains("takes 65536 bytes") && words.contains(told), "{changes:?}: {words}");
            rig.crash().await;
            assert_eq!(rig.as_form(form).open().await.unwrap().get(b"k").await, Ok(Some(b"v".to_vec())), "{changes:?}");
        });
    }
}
