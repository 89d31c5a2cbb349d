//! `[wear]`: the aging of the flash.

use nandscape_device_media::aging::{Correction, ErrorRates, Failures, Life, Retries};
use nandscape_device_media::geometry::Counts;
use nandscape_device_media::{Aging, Cell, Timing};
use nandscape_sim::Span;
use nandscape_sim::units::Ratio;

use super::Result;
use super::bounds::{or, within, wrong};
use crate::aging_values::{Age, ErrorModel, shown};
use crate::keys::AgingKeys;
use crate::values::{Choice, FtlKind, Text};

/// Keys of [wear] that need no model of bit errors.
const WITHOUT_ERRORS: &str = "erase_growth, erase_failures, program_failures, failure_shape, cycles and cycles_spread";
/// Default of correctable errors per KiB of a codeword: data sheets of TLC require 72 bits per KiB. For QLC, the code
/// corrects cells misread equally often: 45/28 of the errors, as in [`ErrorRates::QLC_FROM_TLC`].
const fn correctable_of_kib(cell: Cell) -> u32 {
    match cell {
        Cell::Slc | Cell::Mlc | Cell::Tlc => 72,
        Cell::Qlc => 72 * 45 / 28,
    }
}

const DEFAULT_STEPS: u32 = 8;
const DEFAULT_KEEPS: Ratio = Ratio(0.5);
const DEFAULT_SHAPE: f64 = 3.0;
const NO_TIME: Age = Age(Span::ZERO);
/// Maximum of erases of each block before a run.
const MOST_CYCLES: f64 = 1e7;
const DAY_S: f64 = 86_400.0;

/// The aging of the flash. `logical` is the mapping units that a host sees, `kind` the kind of FTL.
pub(super) fn aging(
    keys: &AgingKeys,
    timing: &Timing,
    geometry: &Counts,
    rated: u32,
    logical: u32,
    kind: FtlKind,
) -> Result<Option<Aging>> {
    let Some(rates) = rates(keys, timing.cell)? else { return Ok(None) };
    if !timing.features.read_retry.probability.is_empty() {
        let problem = "does not go with [wear], in which retries follow from errors; [] is valid";
        return wrong("timing.read_retry.probability", problem);
    }
    if rated == 0 {
        return wrong("timing.rated_erases", "0 is flash that does not wear; with [wear] from 1 on is valid");
    }
    let refresh = Some(share("wear.refresh", &keys.refresh, 1.0)?).filter(|share| *share > 0.0);
    for (key, is_given) in
        [("wear.refresh", refresh.is_some()), ("wear.scrub", keys.scrub.is_some_and(|time| !time.0.is_zero()))]
    {
        if is_given && kind != FtlKind::Page {
            let problem = format!(
                "is for ftl.kind = \"page\", and it is \"{}\", which does not move data for its age; 0 is valid",
                Choice(kind)
            );
            return wrong(key, problem);
        }
    }
    Ok(Some(Aging {
        rates,
        page_types: page_types(keys, timing.cell)?,
        layer_spread: share("wear.layer_spread", &keys.layer_spread, 1.0)?,
        block_spread: share("wear.block_spread", &keys.block_spread, 2.0)?,
        die_spread: share("wear.die_spread", &keys.die_spread, 2.0)?,
        correction: correction(keys, timing, geometry)?,
        retries: Retries {
            steps: within("wear.retry_steps", keys.retry_steps.unwrap_or(DEFAULT_STEPS).into(), 0, 16)? as u32,
            keeps: share("wear.retry_keeps", &keys.retry_keeps.or(Some(Text(DEFAULT_KEEPS))), 1.0)?,
        },
        rated,
        erase_growth: share("wear.erase_growth", &keys.erase_growth, 100.0)?,
        failures: Failures {
            erase: share("wear.erase_failures", &keys.erase_failures, 0.99)?,
            program: share("wear.program_failures", &keys.program_failures, 0.99)?,
            shape: number("wear.failure_shape", keys.failure_shape.unwrap_or(DEFAULT_SHAPE), 0.1, 20.0)?,
        },
        refresh,
        scrub: scrub(keys, timing, geometry, refresh)?,
        life: life(keys, geometry, logical)?,
    }))
}

/// The scrubbing interval, which must be long enough to read all blocks one after the other.
fn scrub(keys: &AgingKeys, timing: &Timing, geometry: &Counts, refresh: Option<f64>) -> Result<Option<Span>> {
    let Some(interval) = keys.scrub.map(|text| text.0).filter(|interval| !interval.is_zero()) else { return Ok(None) };
    if refresh.is_none() {
        return wrong("wear.scrub", "needs wear.refresh, by which what it finds is written anew; \"80%\" is valid");
    }
    let Counts { channels, dies_per_channel, planes_per_die, blocks_per_plane, pages_per_block, page_size, .. } =
        *geometry;
    let pages = [channels, dies_per_channel, planes_per_die, blocks_per_plane, pages_per_block].map(u64::from);
    let sensing = timing.read.iter().copied().max().unwrap_or_default();
    let read = sensing + timing.bus.time_for(page_size.into()) + timing.features.ecc.time;
    let least = Span::from_ns(read.ns().saturating_mul(pages.iter().product()));
    match interval >= least {
        true => Ok(Some(interval)),
        false => {
            let least = Span::from_s(least.ns().div_ceil(1_000_000_000));
            wrong(
                "wear.scrub",
                format!("{interval} is too short to read all pages one after the other; from {least} on is valid"),
            )
        }
    }
}

/// The given keys, except those for erases and programs, which need no model of bit errors.
fn of_errors(keys: &AgingKeys) -> AgingKeys {
    AgingKeys {
        rber: None,
        erase_growth: None,
        erase_failures: None,
        program_failures: None,
        failure_shape: None,
        cycles: None,
        cycles_spread: None,
        ..keys.clone()
    }
}

fn rates(keys: &AgingKeys, cell: Cell) -> Result<Option<ErrorRates>> {
    let needs_errors = of_errors(keys) != AgingKeys::default();
    match &keys.rber {
        Some(model) => match model.rates() {
            Ok(None) if needs_errors => wrong(
                "wear.rber",
                format!(
                    "is \"none\", and keys of [wear] are given that tell of bit errors; beside it {WITHOUT_ERRORS} are valid"
                ),
            ),
            Ok(None) if *keys != (AgingKeys { rber: Some(model.clone()), ..AgingKeys::default() }) => {
                Ok(Some(ErrorRates::ERROR_FREE))
            }
            Ok(rates) => Ok(rates),
            Err(problem) => wrong("wear.rber", problem),
        },
        None if *keys == AgingKeys::default() => Ok(None),
        None if ErrorRates::of_cell(cell).is_some() => Ok(ErrorRates::of_cell(cell)),
        None if !needs_errors => Ok(Some(ErrorRates::ERROR_FREE)),
        None => {
            let cell = cell.name();
            let problem = format!(
                "is missing: there are models of tlc and qlc, and timing.cell is {cell}; give nine numbers, or leave out the keys of \
                 [wear] that tell of bit errors: {WITHOUT_ERRORS} need none"
            );
            wrong("wear.rber", problem)
        }
    }
}

fn page_types(keys: &AgingKeys, cell: Cell) -> Result<Vec<f64>> {
    let types = cell.page_types();
    let factors = keys.page_types.clone().unwrap_or_else(|| vec![1.0; types]);
    if factors.len() != types {
        let problem = format!("has {} factors, and {} has {types} page types", factors.len(), cell.name());
        return wrong("wear.page_types", problem);
    }
    for factor in &factors {
        number("wear.page_types", *factor, 0.0, 100.0)?;
    }
    Ok(factors)
}

fn correction(keys: &AgingKeys, timing: &Timing, geometry: &Counts) -> Result<Correction> {
    // A codeword larger than a page holds one page.
    let bytes = timing.features.ecc.codeword.min(geometry.page_size);
    let bits = bytes * 8;
    let default = correctable_of_kib(timing.cell) * bytes / 1024;
    let correctable = within("wear.correctable", keys.correctable.unwrap_or(default).into(), 0, bits.into())? as u32;
    Ok(Correction { bits, correctable, codewords: geometry.page_size / bytes })
}

fn life(keys: &AgingKeys, geometry: &Counts, logical: u32) -> Result<Life> {
    let age = or(&keys.age, NO_TIME).0;
    let a_day = number("wear.writes_per_day", keys.writes_per_day.unwrap_or(1.0), 0.0, 1_000.0)?;
    let reads = number("wear.reads_per_day", keys.reads_per_day.unwrap_or(1.0), 0.0, 1_000.0)?;
    let amplification = number("wear.write_amplification", keys.write_amplification.unwrap_or(1.0), 1.0, 1_000.0)?;
    let Counts { channels, dies_per_channel, planes_per_die, blocks_per_plane, .. } = *geometry;
    let blocks = [channels, dies_per_channel, planes_per_die, blocks_per_plane].map(f64::from);
    let units_of_block = f64::from(geometry.pages_per_block * (geometry.page_size / geometry.unit_size));
    let share = f64::from(logical) / (blocks.iter().product::<f64>() * units_of_block);
    Ok(Life {
        cycles: cycles(keys, age, a_day * share * amplification)?,
        spread: self::share("wear.cycles_spread", &keys.cycles_spread, 1.0)?,
        age,
        shelf: or(&keys.shelf, NO_TIME).0,
        reads_a_day: reads * share,
        amplification,
    })
}

/// Notes for the user if erases before the run have no effect on reads.
pub(super) fn notes(aging: Option<&Aging>, cell: Cell) -> Vec<String> {
    let worn = aging.filter(|aging| aging.life.cycles > 0.0 && aging.rates == ErrorRates::ERROR_FREE);
    let note = |aging: &Aging| {
        let (cell, cycles) = (cell.name(), aging.life.cycles);
        format!(
            "wear.cycles = {cycles} causes no bit errors, since wear.rber chooses no model for this flash of {cell}: {} or nine numbers are \
             valid",
            ErrorRates::ALL.map(|(name, _)| format!("\"{name}\"")).join(", ")
        )
    };
    worn.map(note).into_iter().collect()
}

impl AgingKeys {
    /// The source of the initial wear, for errors: the key, and the option that sets it.
    pub(crate) fn source_of_wear(&self) -> &'static str {
        if self.cycles.is_some() { "wear.cycles" } else { "wear.age (--age)" }
    }
}

/// The erases of each block: given directly, or `a_day` times the age.
fn cycles(keys: &AgingKeys, age: Span, a_day: f64) -> Result<f64> {
    if let Some(given) = keys.cycles {
        return number("wear.cycles", given.into(), 0.0, MOST_CYCLES);
    }
    let cycles = age.as_s() / DAY_S * a_day;
    if cycles <= MOST_CYCLES {
        return Ok(cycles);
    }
    let longest = Age(Span::from_s((MOST_CYCLES / a_day).floor() as u64 * DAY_S as u64));
    let factors =
        [("wear.writes_per_day", keys.writes_per_day), ("wear.write_amplification", keys.write_amplification)];
    let factors = factors.into_iter().filter_map(|(key, given)| Some(format!("{key} = {}", given?)));
    let problem = format!(
        "{} with {} would erase each block {cycles:.0} times, and {MOST_CYCLES} times is the most; up to {longest} is valid",
        Age(age),
        factors.collect::<Vec<_>>().join(" and ")
    );
    wrong(keys.source_of_wear(), problem)
}

fn share(key: &str, given: &Option<Text<Ratio>>, most: f64) -> Result<f64> {
    let share = or(given, Ratio(0.0)).0;
    match share <= most {
        true => Ok(share),
        false => wrong(key, format!("{} is out of range; up to \"{}\" is valid", percent(share), percent(most))),
    }
}

/// A share as a percentage, without the rounding error of the product with 100.
fn percent(share: f64) -> String {
    format!("{}%", (share * 1e12).round() / 1e10)
}

fn number(key: &str, number: f64, least: f64, most: f64) -> Result<f64> {
    match (least..=most).contains(&number) {
        true => Ok(number),
        false => wrong(key, format!("{} is out of range; from {least} to {most} is valid", shown(number))),
    }
}

/// Writes the decided values into the keys.
pub(super) fn fill_in(keys: &mut AgingKeys, aging: &Aging) {
    let Aging { rates, correction, retries, failures, life, .. } = aging;
    let named = ErrorRates::ALL.iter().find(|(_, known)| known == rates);
    let numbers = || ErrorModel::Numbers(rates.numbers().to_vec());
    keys.rber = Some(named.map_or_else(numbers, |(name, _)| ErrorModel::Named((*name).to_owned())));
    keys.correctable = Some(correction.correctable);
    keys.retry_steps = Some(retries.steps);
    keys.retry_keeps = Some(Text(Ratio(retries.keeps)));
    keys.page_types = Some(aging.page_types.clone());
    for (key, value) in [
        (&mut keys.layer_spread, aging.layer_spread),
        (&mut keys.block_spread, aging.block_spread),
        (&mut keys.die_spread, aging.die_spread),
        (&mut keys.erase_growth, aging.erase_growth),
        (&mut keys.erase_failures, failures.erase),
        (&mut keys.program_failures, failures.program),
        (&mut keys.cycles_spread, life.spread),
        (&mut keys.refresh, aging.refresh.unwrap_or(0.0)),
    ] {
        *key = Some(Text(Ratio(value)));
    }
    keys.failure_shape = Some(failures.shape);
    keys.scrub = Some(Text(aging.scrub.unwrap_or(Span::ZERO)));
    (keys.age, keys.shelf) = (Some(Text(Age(life.age))), Some(Text(Age(life.shelf))));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::Profile;

    fn resolve(changes: &[&str]) -> std::result::Result<Option<Aging>, String> {
        let mut profile = Profile::load("default").unwrap();
        profile.set_all(changes).map_err(|error| error.to_string())?;
        let resolved = profile.resolve().map_err(|error| error.to_string())?;
        // The written profile reads back unchanged.
        let again = Profile::parse("again.toml", &resolved.to_toml()).unwrap().resolve().unwrap();
        assert_eq!(again.aging, resolved.aging);
        Ok(resolved.aging)
    }

    #[test]
    fn flash_ages_if_a_key_of_wear_is_given() {
        assert_eq!(resolve(&[]), Ok(None));
        assert_eq!(resolve(&["wear.rber=none"]), Ok(None));
        let aging = resolve(&["wear.cycles=1500"]).unwrap().unwrap();
        assert_eq!((aging.rates, aging.life.cycles), (ErrorRates::TLC_72_LAYERS, 1_500.0));
        assert_eq!((aging.correction.bits, aging.correction.correctable, aging.retries.steps), (32_768, 288, 8));
    }

    /// Erases and programs can fail on flash without a model of bit errors, or with errors switched off.
    #[test]
    fn erases_age_without_bit_errors() {
        for flash in [&["timing.cell=mlc", "timing.read=50us"][..], &["wear.rber=none"]] {
            let with = |more: &[&str]| resolve(&[flash, more].concat());
            let aging = with(&["wear.erase_growth=50%", "wear.cycles=1000"]).unwrap().unwrap();
            assert_eq!((aging.rates, aging.erase_growth, aging.life.cycles), (ErrorRates::ERROR_FREE, 0.5, 1_000.0));
            let error = with(&["wear.erase_growth=50%", "wear.age=2years"]).unwrap_err();
            assert!(error.contains("wear.rber"), "{error}");
        }
    }

    /// Worn flash has errors, or a note reports that it has none.
    #[test]
    fn wear_without_an_effect_on_reads_is_a_note() {
        let notes = |changes: &[&str]| {
            let mut profile = Profile::load("default").unwrap();
            profile.set_all(changes).unwrap();
            profile.resolve().unwrap().notes
        };
        let (mlc, qlc) = (["timing.cell=mlc", "timing.read=50us"], ["timing.cell=qlc", "timing.read=50us"]);
        for flash in [&mlc[..], &["wear.rber=none"]] {
            let told = notes(&[flash, &["wear.cycles=1000"]].concat()).join("\n");
            assert!(
                told.contains("wear.cycles = 1000 causes no bit errors") && told.contains("\"qlc-from-tlc\""),
                "{told}"
            );
            assert_eq!(
                notes(&[flash, &["wear.erase_growth=50%"]].concat()),
                [""; 0],
                "new flash has errors later, or none"
            );
        }
        assert_eq!(notes(&["wear.cycles=1000"]), [""; 0]);
        assert_eq!(notes(&[&qlc[..], &["wear.cycles=1000"]].concat()), [""; 0]);
        let aging = resolve(&[&qlc[..], &["wear.cycles=1000"]].concat()).unwrap().unwrap();
        assert_eq!((aging.rates, aging.correction.correctable), (ErrorRates::QLC_FROM_TLC, 4 * 115));
        // At its rated erases, QLC is as near to its correctable limit as TLC at three times as many.
        let tlc = resolve(&["wear.cycles=3000"]).unwrap().unwrap();
        let fails = |aging: &Aging| aging.correction.page_fails(aging.rates.rber(aging.rated, 0.0, 0.0));
        assert!(aging.rates.rber(1_000, 0.0, 0.0) > 1.5 * tlc.rates.rber(3_000, 0.0, 0.0));
        assert!(
            (0.0..0.1).contains(&fails(&aging)) && (0.0..0.1).contains(&fails(&tlc)),
            "{}, {}",
            fails(&aging),
            fails(&tlc)
        );
    }

    /// One drive write per day wears each block by less than one erase per day, because flash exceeds the capacity.
    #[test]
    fn a_life_is_worth_its_writes() {
        let life = resolve(&["wear.age=18months"]).unwrap().unwrap().life;
        assert!((430.0..547.5).contains(&life.cycles), "{}", life.cycles);
        let twice = resolve(&["wear.age=18months", "wear.writes_per_day=2"]).unwrap().unwrap().life;
        assert!((twice.cycles / life.cycles - 2.0).abs() < 1e-12);
        let amplified = resolve(&["wear.age=18months", "wear.write_amplification=3"]).unwrap().unwrap().life;
        assert!((amplified.cycles / life.cycles - 3.0).abs() < 1e-12);
        assert_eq!((amplified.amplification, amplified.reads_a_day), (3.0, life.reads_a_day));
    }

    /// Refresh and scrubbing require the FTL that has them.
    #[test]
    fn scrubbing_needs_refresh_time_and_an_ftl_that_moves_data() {
        let aging = resolve(&["wear.refresh=80%", "wear.scrub=86400s"]).unwrap().unwrap();
        assert_eq!((aging.refresh, aging.scrub), (Some(0.8), Some(Span::from_s(86_400))));
        assert_eq!(resolve(&["wear.refresh=80%", "wear.scrub=0s"]).unwrap().unwrap().scrub, None);
        assert!(resolve(&["wear.scrub=86400s"]).unwrap_err().contains("wear.scrub: needs wear.refresh"));
        let short = resolve(&["wear.refresh=80%", "wear.scrub=1s"]).unwrap_err();
        assert!(short.contains("wear.scrub: 1s is too short") && short.contains("s on is valid"), "{short}");
        let zoned = ["lba_size=4KiB", "buffer.size=64MiB"];
        for (kind, others) in [
            ("ftl.kind=ox_block", &[][..]),
            ("ftl.kind=pblk", &[]),
            ("ftl.kind=spdk", &[]),
            ("ftl.kind=zone", &zoned),
            ("ftl.kind=open_channel", &[zoned[0], zoned[1], "buffer.mode=through"]),
        ] {
            for (change, key) in [("wear.refresh=80%", "wear.refresh: "), ("wear.scrub=86400s", "wear.scrub: ")] {
                let problem = resolve(&[&[kind], others, &[change]].concat()).unwrap_err();
                assert!(
                    problem.starts_with(key) && problem.contains("is for ftl.kind = \"page\""),
                    "{kind}: {problem}"
                );
            }
            let aging = resolve(&[&[kind], others, &["wear.refresh=0", "wear.scrub=0s", "wear.cycles=10"]].concat());
            assert!(aging.is_ok_and(|aging| aging.is_some()), "{kind} without them");
        }
    }

    #[test]
    fn what_does_not_fit_is_refused_by_key() {
        for (change, problem) in [
            ("wear.rber=tlc", "wear.rber: \"tlc\" is no model"),
            ("wear.rber=[1, 2]", "wear.rber: has 2 numbers"),
            ("wear.correctable=40000", "wear.correctable: 40000 is out of range"),
            ("wear.retry_steps=17", "wear.retry_steps: 17 is out of range"),
            ("wear.page_types=[1]", "wear.page_types: has 1 factors"),
            ("wear.page_types=[1, 1e300, 1]", "wear.page_types: 1e300 is out of range; from 0 to 100 is valid"),
            ("wear.page_types=[1, -1e-300, 1]", "wear.page_types: -1e-300 is out of range"),
            ("wear.failure_shape=0", "wear.failure_shape: 0 is out of range"),
            ("wear.write_amplification=0.5", "wear.write_amplification: 0.5 is out of range"),
            ("wear.reads_per_day=-1", "wear.reads_per_day: -1 is out of range"),
            ("wear.age=18", "\"18\" has no unit; \"18months\" is valid"),
            ("wear.age=soon", "\"soon\" is not a time such as \"18months\""),
            ("wear.layer_spread=150%", "wear.layer_spread: 150% is out of range; up to \"100%\" is valid"),
            ("wear.erase_failures=99.3%", "wear.erase_failures: 99.3% is out of range; up to \"99%\" is valid"),
            ("wear.cycles=10000001", "wear.cycles: 10000001 is out of range; from 0 to 10000000 is valid"),
        ] {
            let error = resolve(&[change]).unwrap_err();
            assert!(error.contains(problem), "{change}: {error}");
        }
        let worn = ["wear.age=90years", "wear.writes_per_day=1000"];
        let problem = resolve(&worn).unwrap_err();
        let told = "wear.age (--age): 90years with wear.writes_per_day = 1000 would erase";
        assert!(problem.starts_with(told), "{problem}");
        let (_, longest) = problem.split_once("; up to ").unwrap();
        let age = format!("wear.age={}", longest.strip_suffix(" is valid").unwrap());
        assert!(resolve(&[age.as_str(), worn[1]]).is_ok(), "{problem}");
        let both = ["wear.rber=none", "wear.retry_steps=3"];
        assert!(resolve(&both).unwrap_err().contains("wear.rber: is \"none\""));
        let slc = ["timing.cell=slc", "timing.read=20us", "timing.program=200us", "wear.shelf=1month"];
        assert!(resolve(&slc).unwrap_err().contains("wear.rber: is missing"));
        let shares = ["timing.read_retry.probability=[0.1]", "wear.cycles=10"];
        assert!(resolve(&shares).unwrap_err().contains("timing.read_retry.probability"));
    }
}
