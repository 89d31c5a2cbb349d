//! Every level passes the checks of every drive, with each technique and in the modes of the members' buffers.

use nandscape_drive::conformance::{self, Subject};
use nandscape_layers_array::{LAYER, Rails};
use nandscape_sim::{Sim, Span};

use crate::rig::{array, queue, seed, ssd};

fn make(sim: &Sim, word: &str, settings: &[&str], changes: &[&str]) -> Subject {
    let (array, ssds) = array(sim, word, settings, changes);
    let check = move || ssds.iter().try_for_each(|ssd| ssd.check());
    Subject { check: Box::new(check), ..Subject::new(array) }
}

fn passes(word: &str, settings: &[&str], changes: &[&str]) {
    conformance::all(&|sim| make(sim, word, settings, changes), seed())
        .unwrap_or_else(|what| panic!("{word} {settings:?} {changes:?}: {what}"));
}

#[test]
fn raid0() {
    passes("raid0:3", &[], &[]);
}

#[test]
fn mirrors() {
    passes("raid1:2", &[], &["buffer.mode=volatile"]);
    passes("raid10:4", &["array.technique=speculative"], &[]);
}

#[test]
fn raid5() {
    passes("raid5:4", &[], &[]);
    passes("raid5:3", &["array.chunk=16KiB", "array.technique=proactive"], &["buffer.mode=volatile"]);
}

#[test]
fn raid6() {
    passes("raid6:5", &["array.chunk=8KiB", "array.technique=tea2"], &[]);
}

#[test]
fn rails() {
    let make = |sim: &Sim| {
        let ssds = [0, 1].map(|number| ssd(sim, &["buffer.mode=volatile"], number));
        let paths = [queue(sim, &ssds[0], 1), queue(sim, &ssds[1], 1)];
        // Roles change many times in a run, and once at the end.
        let rails = Rails::new(sim, LAYER, Span::from_ms(3), paths).expect("drives of one kind");
        Subject::new(rails)
    };
    conformance::all(&make, seed()).unwrap_or_else(|what| panic!("{what}"));
}
