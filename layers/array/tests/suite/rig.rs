//! Small modelled drives, and arrays of them.

use std::rc::Rc;

use nandscape_device_media::StoreKind;
use nandscape_device_ssd::{Profile, Ssd};
use nandscape_drive::{Drive, QueueDrive, QueueId};
use nandscape_layers_array::{Array, Config, Member, Shape};
use nandscape_sim::{Seed, Sim};

pub(crate) const SMALL: [&str; 8] = [
    "capacity=8MiB",
    "geometry.channels=2",
    "geometry.dies_per_channel=1",
    "geometry.planes_per_die=2",
    "geometry.pages_per_block=16",
    "buffer.size=256KiB",
    "controller.queue_pairs=3",
    "controller.max_transfer=256KiB",
];

pub(crate) fn seed() -> u64 {
    std::env::var("NANDSCAPE_TEST_SEED").map_or(1, |text| text.parse().expect("NANDSCAPE_TEST_SEED is a number"))
}

pub(crate) fn ssd(sim: &Sim, changes: &[&str], number: u64) -> Rc<Ssd> {
    let mut profile = Profile::load("default").expect("a built-in profile");
    SMALL.iter().chain(changes).for_each(|change| profile.set(change).expect("a valid change"));
    let profile = profile.resolve().expect("a possible drive");
    Rc::new(Ssd::new(sim, &profile, StoreKind::Ram, Seed::new(9).nth(number)).expect("memory"))
}

pub(crate) fn queue(sim: &Sim, ssd: &Ssd, id: u16) -> Rc<dyn Drive> {
    QueueDrive::new(sim, ssd.controller(), QueueId(id), 33).expect("a free queue pair")
}

pub(crate) fn config(settings: &[&str]) -> Config {
    let mut config = Config::default();
    settings.iter().for_each(|setting| config.set(setting).expect("a valid setting"));
    config
}

pub(crate) fn shape(word: &str) -> Shape {
    word.parse().expect("a valid shape")
}

/// An array without a journal of new drives, and the drives.
pub(crate) fn array(sim: &Sim, word: &str, settings: &[&str], changes: &[&str]) -> (Rc<Array>, Vec<Rc<Ssd>>) {
    let shape = shape(word);
    let ssds: Vec<Rc<Ssd>> = (0..shape.members as u64).map(|number| ssd(sim, changes, number)).collect();
    let members = ssds.iter().map(|ssd| Member { io: queue(sim, ssd, 1), reads: None, admin: None }).collect();
    (Array::new(sim, shape, config(settings), members).expect("a possible array"), ssds)
}
