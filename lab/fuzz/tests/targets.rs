//! Each target with its known inputs and with random inputs. `NANDSCAPE_TEST_SEED` sets the first seed,
//! `NANDSCAPE_TEST_CASES` the number of inputs (100000 for a long run); a failure prints its seed.

use std::panic::catch_unwind;
use std::path::PathBuf;

use nandscape_lab_fuzz::{TARGETS, Target, cases};

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name} is a number")))
}

/// The known inputs of a target: seeds of the fuzzer, and inputs that once broke something.
fn known(name: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let folder: PathBuf = [env!("CARGO_MANIFEST_DIR"), "..", "..", "fuzz", "seeds", name].iter().collect();
    let files = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<PathBuf> = files.map(|file| file.unwrap().path()).collect();
    paths.sort();
    paths.into_iter().map(|path| (path.clone(), std::fs::read(path).unwrap())).collect()
}

fn survives(name: &str, cases: u64) {
    let target: Target = TARGETS.iter().find(|(known, _)| *known == name).expect("a target").1;
    let known = known(name);
    for (path, bytes) in &known {
        assert!(catch_unwind(|| target(bytes)).is_ok(), "{} shows it", path.display());
    }
    let known: Vec<Vec<u8>> = known.into_iter().map(|(_, bytes)| bytes).collect();
    let first = number("NANDSCAPE_TEST_SEED", 1);
    for seed in first..first + number("NANDSCAPE_TEST_CASES", cases) {
        let bytes = cases::input(seed, &known);
        assert!(catch_unwind(|| target(&bytes)).is_ok(), "{name}: NANDSCAPE_TEST_SEED={seed} shows it at once");
    }
}

/// A test for each target, with the number of inputs that takes some seconds.
macro_rules! targets {
    ($($name:ident: $cases:literal;)*) => {
        $(#[test]
        fn $name() {
            survives(stringify!($name), $cases);
        })*

        #[test]
        fn every_target_is_tested_and_has_a_program() {
            let tested = [$(stringify!($name)),*];
            assert_eq!(TARGETS.iter().map(|(name, _)| *name).collect::<Vec<_>>(), tested);
            let manifest = include_str!("../../../fuzz/Cargo.toml");
            for name in tested {
                assert!(manifest.contains(&format!("name = \"{name}\"\n")), "fuzz/Cargo.toml has no program {name}");
            }
        }
    };
}

targets! {
    commands: 3_000;
    command_sets: 3_000;
    data_pointer: 20_000;
    nvme_tcp_pdu: 100_000;
    vfio_user_message: 100_000;
    kv_message: 100_000;
    memcached: 1_000;
    trace: 3_000;
    profile: 1_000;
    nbd: 1_000;
    nvme_tcp: 1_000;
    vfio_user: 1_000;
    recording: 10_000;
}
