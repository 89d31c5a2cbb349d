//! Tails at the wall clock: a served drive or array with a technique, without it, and with a part of it, under fio, in turn.
//!
//! All have the same load in the same session. The release lag of the servers is next to the tail, since
//! other work on the machine makes every server late.

use anyhow::Context as _;
use serde_json::{Value, json};

use super::servers::{Folder, Server};
use super::subject::Subject;
use super::suite::{Figure, Measured};
use super::summary::median;
use crate::say;

/// Turns of a run, of each server.
const TURNS: usize = 3;
/// The options of all loads: reads and writes of 4 KiB at random times, from sixteen connections. A job waits for its commands
/// before it sleeps until the next is due, and then sends all overdue commands at once: with few jobs these bursts are the tail.
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

/// Servers, and the load that each of them gets.
struct Setup {
    /// The servers' names and options: the first is without the technique, the last with all of it.
    servers: &'static [(&'static str, &'static [&'static str])],
    load: [&'static str; 4],
}

/// The drive of the claims on ttFlash, whose collections hold the channel, and the same with all of ttFlash.
const TTFLASH: Setup = Setup {
    servers: &[
        ("without", &["--drive", "ttflash-256g", "--set", "ftl.gc.scheme=channel", "--set", "capacity=2GiB"]),
        ("with", &["--drive", "ttflash", "--set", "capacity=2GiB"]),
    ],
    load: ["--size=2g", "--rwmixread=70", "--rate_iops=131,56", "--randrepeat=1"],
};
/// An array of four of TeaFA's drives: plain, with remaining times, and with turns too. The load writes enough for two drives of a stripe to be
/// busy now and then, which turns are for; windows are those of the thesis.
const TEAFA: Setup = Setup {
    servers: &[
        ("base", &["--drive", "femu-teafa", "--array", "raid5:4", "--set", "array.technique=base"]),
        ("tea2", &["--drive", "femu-teafa", "--array", "raid5:4", "--set", "array.technique=tea2"]),
        (
            "teafa",
            &[
                "--drive",
                "femu-teafa",
                "--array",
                "raid5:4",
                "--set",
                "array.technique=teafa",
                "--set",
                "array.window=100ms",
            ],
        ),
    ],
    load: ["--size=24g", "--rwmixread=50", "--rate_iops=188,188", "--randrepeat=1"],
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

fn compare(subject: &Subject, setup: &Setup, state: &[&str]) -> Measured {
    let folder = Folder::new()?;
    let serve =
        |(name, words): &(&str, &[&str])| Server::serve(&folder, subject.program(), name, &[*words, state].concat());
    let servers = setup.servers.iter().map(serve).collect::<anyhow::Result<Vec<Server>>>()?;
    let load = [&LOAD[..], &setup.load].concat();
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
    let names: Vec<&str> = setup.servers.iter().map(|(name, _)| *name).collect();
    let figures = figures(&names, &turns, &ended).context("fio or a server reports no latency")?;
    Ok(Some((figures, json!({"servers": names, "load": load, "turns": turns, "ended": ended}))))
}

fn figures(names: &[&str], turns: &[Vec<Value>], ended: &[Value]) -> Option<Vec<Figure>> {
    let of = |server: usize, percentile: &str| {
        let at = format!("/clat_ns/percentile/{percentile}");
        let values = turns.iter().map(|turn| Some(turn[server].pointer(&at)?.as_f64()? / 1e3));
        values.collect::<Option<Vec<f64>>>().map(|values| median(&values))
    };
    let lag = |server: usize| ended[server].pointer("/timing/release_lag_us/p99")?.as_f64();
    // They are few, and the program ends after them.
    let figure = |name: String, value| Figure { name: name.leak(), value, aim: "", more_is_better: false };
    let mut figures = Vec::new();
    for (percentile, words) in PERCENTILES.iter().zip(["p99", "p99.9", "p99.99"]) {
        for (server, name) in names.iter().enumerate() {
            figures.push(figure(format!("{words} {name}, us"), of(server, percentile)?));
        }
    }
    let (last, p999) = (names.len() - 1, PERCENTILES[1]);
    let (first, with) = (names[0], names[last]);
    figures.push(figure(format!("p99.9 {with} / {first}"), of(last, p999)? / of(0, p999)?));
    for (server, name) in names.iter().enumerate() {
        figures.push(figure(format!("release lag p99 {name}, us"), lag(server)?));
    }
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
        let names = ["without", "with"];
        let figures = figures(&names, &turns, &ended).unwrap();
        let value = |name: &str| figures.iter().find(|figure| figure.name == name).unwrap().value;
        assert_eq!((value("p99.9 without, us"), value("p99.9 with, us")), (10.0, 2.0));
        assert_eq!((value("p99.9 with / without"), value("release lag p99 with, us")), (0.2, 6.0));
        assert!(super::figures(&names, &[vec![of(1.0), json!({})]], &ended).is_none());
    }
}
