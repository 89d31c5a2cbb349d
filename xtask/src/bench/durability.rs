//! The price of durability: a drive with OX-Block, which keeps map, block table and log in flash, compared with the same drive
//! with the page FTL, whose tables are in memory and survive a power cut by decree. Both begin new and get the same requests.
//!
//! Left out: instructions, which `instructions` counts; drives in files.

use anyhow::Context as _;
use serde_json::{Value, json};

use super::subject::Subject;
use super::suite::{Figure, Measured};
use crate::say;

/// More than twice the data of the drive, so that both collect.
const DRIVE: &[&str] = &[
    "--drive",
    "default",
    "--set",
    "capacity=1GiB",
    "--set",
    "ftl.over_provisioning=42.86%",
    "--set",
    "buffer.mode=volatile",
    "--precondition",
    "none",
    "--bs",
    "4k",
    "--iodepth",
    "32",
    "--io-count",
    "600000",
];
const OX_BLOCK: &[&str] = &["--set", "ftl.kind=ox_block"];

/// Loads, with the names of their figures: drive time, CPU, write amplification.
const LOADS: [(&[&str], [&str; 2]); 2] = [
    (&["--rw", "randwrite"], ["writes: drive time, ratio", "writes: CPU, ratio"]),
    (&["--rw", "randrw", "--rwmixread", "50"], ["half reads: drive time, ratio", "half reads: CPU, ratio"]),
];

/// Drive time and CPU of OX-Block over those of the page FTL.
pub(crate) fn price(subject: &Subject) -> Measured {
    if !subject.has_drive(OX_BLOCK)? {
        say::line(&format!("{} has no OX-Block: left out", subject.revision));
        return Ok(None);
    }
    let (mut figures, mut runs) = (Vec::new(), Vec::new());
    for (load, names) in LOADS {
        let page = subject.report(&[DRIVE, load].concat())?;
        let ox_block = subject.report(&[DRIVE, OX_BLOCK, load].concat())?;
        let [time, cpu] = ratios(&page, &ox_block).context("the report lacks a figure")?;
        for (name, value, aim) in [(names[0], time, ""), (names[1], cpu, "below 1.5")] {
            figures.push(Figure { name, value, aim, more_is_better: false });
        }
        runs.push(json!({"load": load, "page": page, "ox_block": ox_block}));
    }
    Ok(Some((figures, json!({"drive": DRIVE, "runs": runs}))))
}

fn ratios(page: &Value, ox_block: &Value) -> Option<[f64; 2]> {
    let ratio = |path: &str| Some(ox_block.pointer(path)?.as_f64()? / page.pointer(path)?.as_f64()?);
    Some([ratio("/virtual_s")?, ratio("/host/cpu_s")?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_of_ox_block_over_the_page_ftl() {
        let report = |time: f64, cpu: f64| json!({"virtual_s": time, "host": {"cpu_s": cpu}});
        assert_eq!(ratios(&report(2.0, 1.0), &report(3.0, 4.0)), Some([1.5, 4.0]));
        assert_eq!(ratios(&json!({}), &report(1.0, 1.0)), None);
    }
}
