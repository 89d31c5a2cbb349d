//! Drives in files: the time until a drive of 1 TiB serves again, after an orderly stop and after `kill -9`, with the page FTL and
//! with OX-Block, which takes a checkpoint every 30 seconds; and the processor time of writes to a file against that of writes to memory.

use std::path::Path;

use anyhow::Context as _;
use serde_json::{Value, json};

use super::servers::{Folder, Server};
use super::subject::Subject;
use super::suite::{Figure, Measured};
use crate::clock::Moment;

const TERABYTE: [&str; 2] = ["--set", "capacity=1TiB"];
const OX_BLOCK: [&str; 8] = [
    "--set",
    "ftl.kind=ox_block",
    "--set",
    "ftl.over_provisioning=42.86%",
    "--set",
    "ftl.ox_block.checkpoint_interval=30s",
    "--set",
    "ftl.ox_block.checkpoint_log=1GiB",
];
/// What is written before a restart: at random, over a part of the drive.
const BEFORE: [&str; 6] = ["--rw=randwrite", "--bs=4k", "--iodepth=32", "--size=16g", "--io_size=1g", "--thread"];
/// What is written to an OX-Block before it is killed: as much as may follow its last checkpoint.
const BETWEEN: [&str; 7] =
    ["--rw=randwrite", "--bs=4k", "--iodepth=32", "--size=16g", "--time_based", "--runtime=29", "--thread"];
/// What is read when the drive serves again.
const FIRST: [&str; 4] = ["--rw=randread", "--bs=4k", "--size=1g", "--number_ios=1"];
/// The load whose processor time is compared.
const WRITES: [&str; 5] = ["--rw=randwrite", "--bs=4k", "--iodepth=32", "--io_size=512m", "--thread"];

pub(crate) fn page(subject: &Subject) -> Measured {
    restarts(subject, &[], &BEFORE)
}

pub(crate) fn ox_block(subject: &Subject) -> Measured {
    restarts(subject, &OX_BLOCK, &BETWEEN)
}

/// A server on a file.
fn server(folder: &Folder, program: &Path, words: &[&str]) -> anyhow::Result<Server> {
    let store = format!("file:{}", folder.path("drive.nand").display());
    Server::plain(folder, program, "restart", &[&["--store", &store], words].concat())
}

fn restarts(subject: &Subject, ftl: &[&str], before_kill: &[&str]) -> Measured {
    let folder = Folder::new()?;
    let words = [&TERABYTE[..], ftl].concat();
    let serve = || server(&folder, subject.program(), &words);
    let first = serve()?;
    if first.fio(&BEFORE)?.is_none() {
        return Ok(None);
    }
    first.end()?;
    let timed = || {
        let begun = Moment::now();
        let server = serve()?;
        server.fio(&FIRST)?.context("fio has gone")?;
        anyhow::Ok((server, begun.passed().as_secs_f64()))
    };
    let (server, stopped) = timed()?;
    server.fio(before_kill)?;
    // Dropped servers are killed.
    drop(server);
    let (server, killed) = timed()?;
    server.end()?;
    let figure = |name, value, aim| Figure { name, value, aim, more_is_better: false };
    let figures = vec![
        figure("first read after an orderly stop, s", stopped, "below 1 s"),
        figure("first read after kill -9, s", killed, "a few seconds"),
    ];
    Ok(Some((figures, json!({"stopped_s": stopped, "killed_s": killed}))))
}

/// Processor time of the server for writes to a file, against memory.
pub(crate) fn file_against_memory(subject: &Subject) -> Measured {
    let mut cpu = Vec::new();
    for in_file in [false, true] {
        let folder = Folder::new()?;
        let server = match in_file {
            false => Server::plain(&folder, subject.program(), "restart", &["--set", "capacity=1GiB"])?,
            true => server(&folder, subject.program(), &["--set", "capacity=1GiB"])?,
        };
        let before = server.cpu_s()?;
        let Some(report) = server.fio(&WRITES)? else { return Ok(None) };
        let writes = report["total_ios"].as_f64().context("fio reports no writes")?;
        cpu.push((server.cpu_s()? - before) * 1e6 / writes);
    }
    let figure = |name, value| Figure { name, value, aim: "", more_is_better: false };
    let figures = vec![
        figure("in memory, CPU us a write", cpu[0]),
        figure("in a file, CPU us a write", cpu[1]),
        figure("file / memory", cpu[1] / cpu[0]),
    ];
    Ok(Some((figures, Value::from(cpu))))
}
