//! Tests of the redo log: the state after a loss of power at any write or sync, with records of any sizes.

use nandscape_sim::{Rng, Seed};

use super::mistakes::make;
use super::*;
use crate::durable::MemoryFile;

/// Bytes of the stores in front of the regions.
const STORES: u64 = 256 << 10;

fn file() -> Arc<MemoryFile> {
    let file = Arc::new(MemoryFile::new());
    file.set_len(STORES + BYTES).unwrap();
    file.track_syncs();
    file
}

fn over(file: &Arc<MemoryFile>) -> Redo {
    Redo::recover(file.clone(), STORES).unwrap()
}

fn contents(file: &dyn Backing) -> Vec<u8> {
    let mut bytes = vec![0; STORES as usize];
    file.read_at(0, &mut bytes).unwrap();
    bytes
}

/// Writes at random to a log and to a copy in memory.
fn write(rng: &mut Rng, redo: &Redo, model: &mut [u8]) -> io::Result<()> {
    let len = 1 + rng.below(9_000) as usize;
    let (at, value) = (rng.below(STORES - len as u64), rng.below(256) as u8);
    redo.write_at(at, &vec![value; len])?;
    model[at as usize..at as usize + len].fill(value);
    Ok(())
}

/// A loss of power at any write or sync leaves the state of a sync: the last completed one, or a later one.
fn survives_a_loss(seed: u64) -> Result<(), String> {
    let mut rng = Seed::new(seed).rng();
    let (file, mut model) = (file(), vec![0; STORES as usize]);
    let redo = over(&file);
    let (mut states, mut done) = (vec![model.clone()], 0);
    file.cut_off_after(rng.below(200));
    'run: loop {
        for _ in 0..1 + rng.below(6) {
            if write(&mut rng, &redo, &mut model).is_err() {
                break 'run;
            }
        }
        if contents(&redo) != model {
            return Err(format!("seed {seed}: a read does not see all writes"));
        }
        states.push(model.clone());
        if redo.sync().is_err() {
            break;
        }
        done = states.len() - 1;
    }
    // Power may be lost again while records are repeated.
    let mut left = Arc::new(file.after_power_loss(Seed::new(seed)));
    for again in 0..rng.below(3) {
        left.track_syncs();
        left.cut_off_after(rng.below(20));
        let _ = Redo::recover(left.clone(), STORES);
        left = Arc::new(left.after_power_loss(Seed::new(seed * 3 + again)));
    }
    let found = contents(&over(&left));
    match states[done..].contains(&found) {
        true => Ok(()),
        false => Err(format!("seed {seed}: the file is of no sync from {done} to {}", states.len() - 1)),
    }
}

#[test]
fn a_loss_of_power_leaves_what_a_sync_has_left() {
    (0..400).try_for_each(survives_a_loss).unwrap();
}

/// Each deliberate mistake is noticed, and the same run finds nothing wrong without it.
#[test]
fn each_mistake_is_noticed() {
    for mistake in Mistake::ALL {
        let noticing = |seed: &u64| {
            make(Some(mistake));
            let is_noticed = survives_a_loss(*seed).is_err() || goes_on_without_syncs().is_err();
            make(None);
            is_noticed
        };
        let seed = (0..400).find(noticing).unwrap_or_else(|| panic!("{mistake:?} is not noticed"));
        survives_a_loss(seed).unwrap();
    }
}

/// A store that is not synced continues in the file: no later start repeats outdated writes.
fn goes_on_without_syncs() -> Result<(), String> {
    let file = file();
    let redo = over(&file);
    for value in 1..6 {
        redo.write_at(100, &[value; 50]).unwrap();
        redo.sync().unwrap();
    }
    drop(over(&file));
    file.write_at(100, &[9; 50]).unwrap();
    match contents(&over(&file))[100..150] == [9; 50] {
        true => Ok(()),
        false => Err("what is old was repeated".to_owned()),
    }
}

#[test]
fn what_was_repeated_once_is_not_repeated_again() {
    goes_on_without_syncs().unwrap();
}

/// Any prefix of a record is no record.
#[test]
fn a_torn_record_never_happened() {
    let file = file();
    let redo = over(&file);
    redo.write_at(7, &[1; 100]).unwrap();
    redo.sync().unwrap();
    let mut record = Record::new(2);
    record.add(Change::Write(7, [2; 100].into()));
    record.add(Change::Punch(4_096, 8_192));
    let bytes = record.encode();
    assert_eq!(bytes.len() as u64, record.len());
    for len in 0..bytes.len() {
        let torn = Arc::new(file.survivor());
        torn.write_at(STORES, &bytes[..len]).unwrap();
        assert_eq!(contents(&over(&torn))[7..107], [1; 100], "{len} bytes of the record");
    }
    file.write_at(STORES, &bytes).unwrap();
    assert_eq!(contents(&over(&file))[7..107], [2; 100]);
}

#[test]
fn more_than_a_region_holds_is_recorded_in_parts() {
    let file = Arc::new(MemoryFile::new());
    let stores = 16 << 20;
    file.set_len(stores + BYTES).unwrap();
    let redo = Redo::recover(file.clone(), stores).unwrap();
    redo.write_at(5, &vec![3; 11 << 20]).unwrap();
    let mut bytes = vec![0; 11 << 20];
    redo.read_at(5, &mut bytes).unwrap();
    assert!(bytes.iter().all(|byte| *byte == 3));
    redo.sync().unwrap();
    file.read_at(5, &mut bytes).unwrap();
    assert!(bytes.iter().all(|byte| *byte == 3));
}

/// A full disk is reported when something is written, before it is recorded.
#[test]
fn a_full_disk_is_told_by_the_write() {
    let file = file();
    let redo = over(&file);
    redo.reserve_regions().unwrap();
    redo.write_at(0, &[1; 4_096]).unwrap();
    redo.sync().unwrap();
    file.limit(Some(file.stored() + 4_096));
    redo.write_at(8_192, &[2; 4_096]).unwrap();
    // A write of nothing needs no room.
    redo.write_at(16_384, &[]).unwrap();
    assert_eq!(redo.write_at(16_384, &[3; 4_096]).unwrap_err().kind(), io::ErrorKind::StorageFull);
    redo.write_at(0, &[4; 4_096]).unwrap();
    redo.sync().unwrap();
    assert_eq!((contents(&redo)[0], contents(&redo)[8_192]), (4, 2));
    let again = over(&file);
    assert_eq!((contents(&again)[0], contents(&again)[8_192]), (4, 2));
}

/// After a write that has failed, nothing is recorded, and reads continue.
#[test]
fn a_record_that_cannot_be_written_is_the_last_one() {
    let file = file();
    let redo = over(&file);
    file.limit(Some(4_096));
    redo.write_at(0, &[1; 100]).unwrap();
    redo.sync().unwrap_err();
    file.limit(None);
    redo.sync().unwrap_err();
    assert_eq!(contents(&redo)[0], 1);
    assert_eq!(contents(&over(&Arc::new(file.survivor())))[0], 0);
}

/// Bytes with a fitting checksum that no store has written are no record.
#[test]
fn impossible_records_are_not_repeated() {
    let changes = [Change::Write(0, [7; 10].into()), Change::Punch(0, 0), Change::Punch(STORES - 1, 2)];
    for (number, change) in [(u64::MAX, 0), (3, 1), (3, 2)] {
        let file = file();
        let mut record = Record::new(number);
        record.add(changes[change].clone());
        file.write_at(STORES, &record.encode()).unwrap();
        assert_eq!(contents(&over(&file)), vec![0; STORES as usize], "{number}, {:?}", changes[change]);
    }
}
