//! Tails at the wall clock: a served drive or array with a technique against the same without it, under fio, in turn.
//!
//! Both have the same load in the same session. The lag with which the servers release completions stands beside the tail, for a
//! machine that runs something else makes every server late.

use anyhow::Context as _;
use serde_json::{Value, json};

use super::servers::{Folder, Server};
use super::subject::Subject;
use super::suite::{Figure, Measured};
use super::summary::median;
use crate::say;

/// Turns of a run, of each server.
const TURNS: usize = 3;
/// What all loads share: reads and writes of 4 KiB at random times, from sixteen connections. One job waits for its commands before it
/// sleeps until the next is due, and then sends all at once that were due meanwhile: with few jobs these bursts are the tail.
const LOAD: [&str; 11] = [
    "--rw=randrw",
    "--bs=4k",
    "--iodepth=16",
    "--numjobs=16",
    "--thread",
    "--group_reporting",
    "--rate_process=poisson",
    "--time_based",
    "--runtime=20",
    "--ramp_time=5",
    "--percentile_list=50:95:99:99.9:99.99",
];
/// Percentiles of the reads that are shown, as fio names them.
const PERCENTILES: [&str; 3] = ["99.000000", "99.900000", "99.990000"];

/// Two servers, and the load that both get.
struct Pair {
    without: &'static [&'static str],
    with: &'static [&'static str],
    load: [&'static str; 4],
}

/// The drive of the claims on ttFlash, whose collections hold the channel, and the same with all of ttFlash.
const TTFLASH: Pair = Pair {
    without: &["--drive", "ttflash-256g", "--set", "ftl.gc.scheme=channel", "--set", "capacity=2GiB"],
    with: &["--drive", "ttflash", "--set", "capacity=2GiB"],
    load: ["--size=2g", "--rwmixread=70", "--rate_iops=131,56", "--randrepeat=1"],
};
/// An array of four of TeaFA's drives, plain and with TeaFA.
const TEAFA: Pair = Pair {
    without: &["--drive", "femu-teafa", "--array", "raid5:4", "--set", "array.technique=base"],
    with: &["--drive", "femu-teafa", "--array", "raid5:4", "--set", "array.technique=teafa"],
    load: ["--size=24g", "--rwmixread=70", "--rate_iops=262,112", "--randrepeat=1"],
};
/// The steady state of the claims: victims with a quarter of valid pages.
const TTFLASH_STATE: [&str; 8] = [
    "--set",
    "ftl.over_provisioning=85%",
    "--set",
    "ftl.gc.free_blocks=4",
    "--precondition",
    "steady",
    "--store",
    "none",
];
const TEAFA_STATE: [&str; 4] = ["--precondition", "steady", "--store", "none"];

pub(crate) fn ttflash(subject: &Subject) -> Measured {
    compare(subject, &TTFLASH, &TTFLASH_STATE)
}

pub(crate) fn teafa(subject: &Subject) -> Measured {
    compare(subject, &TEAFA, &TEAFA_STATE)
}

fn compare(subject: &Subject, pair: &Pair, state: &[&str]) -> Measured {
    let folder = Folder::new()?;
    let serve = |name, words: &[&str]| Server::serve(&folder, subject.program(), name, &[words, state].concat());
    let servers = [serve("without", pair.without)?, serve("with", pair.with)?];
    let load = [&LOAD[..], &pair.load].concat();
    let mut turns = Vec::new();
    for _ in 0..TURNS {
        let turn: anyhow::Result<Option<Vec<Value>>> = servers.iter().map(|server| server.fio(&load)).collect();
        let Some(turn) = turn? else {
            say::line("fio is not there: left out");
            return Ok(None);
        };
        turns.push(turn);
    }
    let ended: anyhow::Result<Vec<Value>> = servers.into_iter().map(Server::end).collect();
    let ended = ended?;
    let figures = figures(&turns, &ended).context("fio or a server reports no latency")?;
    Ok(Some((figures, json!({"servers": ["without", "with"], "load": load, "turns": turns, "ended": ended}))))
}

fn figures(turns: &[Vec<Value>], ended: &[Value]) -> Option<Vec<Figure>> {
    let of = |server: usize, percentile: &str| {
        let at = format!("/clat_ns/percentile/{percentile}");
        let values = turns.iter().map(|turn| Some(turn[server].pointer(&at)?.as_f64()? / 1e3));
        values.collect::<Option<Vec<f64>>>().map(|values| median(&values))
    };
    let lag = |server: usize| ended[server].pointer("/timing/release_lag_us/p99")?.as_f64();
    let figure = |name, value| Figure { name, value, aim: "", more_is_better: false };
    let [p99, p999, p9999] = PERCENTILES;
    let mut figures = vec![
        figure("p99 without, us", of(0, p99)?),
        figure("p99 with, us", of(1, p99)?),
        figure("p99.9 without, us", of(0, p999)?),
        figure("p99.9 with, us", of(1, p999)?),
        figure("p99.99 without, us", of(0, p9999)?),
        figure("p99.99 with, us", of(1, p9999)?),
        figure("p99.9 with / without", of(1, p999)? / of(0, p999)?),
    ];
    figures.push(figure("release lag p99 without, us", lag(0)?));
    figures.push(figure("release lag p99 with, us", lag(1)?));
    Some(figures)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tail_stands_beside_that_of_the_same_session() {
        let of = |tail: f64| json!({"clat_ns": {"percentile": {"99.000000": 1e3, "99.900000": tail * 1e3, "99.990000": 9e3}}});
        let turns = [vec![of(8.0), of(2.0)], vec![of(10.0), of(2.0)], vec![of(90.0), of(3.0)]];
        let ended =
            [json!({"timing": {"release_lag_us": {"p99": 5.0}}}), json!({"timing": {"release_lag_us": {"p99": 6.0}}})];
        let figures = figures(&turns, &ended).unwrap();
        let value = |name: &str| figures.iter().find(|figure| figure.name == name).unwrap().value;
        assert_eq!((value("p99.9 without, us"), value("p99.9 with, us")), (10.0, 2.0));
        assert_eq!((value("p99.9 with / without"), value("release lag p99 with, us")), (0.2, 6.0));
        assert!(super::figures(&[vec![of(1.0), json!({})]], &ended).is_none());
    }
}
