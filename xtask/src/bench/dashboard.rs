//! The cost of an open page of the dashboard to the clients of a drive: the throughput of one server with a page open, against
//! that without, in turn. The page is a client that reads the stream of events and draws nothing.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use anyhow::Context as _;
use serde_json::{Value, json};

use super::servers::{Folder, Server};
use super::subject::Subject;
use super::suite::{Figure, Measured};
use super::summary::median;
use crate::say;

/// Turns of a run, each with and without a page.
const TURNS: usize = 6;
/// fio's options for a turn.
const LOAD: [&str; 6] = ["--rw=randread", "--bs=4k", "--iodepth=32", "--time_based", "--runtime=3", "--ramp_time=0.5"];

pub(crate) fn an_open_page(subject: &Subject) -> Measured {
    let folder = Folder::new()?;
    let socket = folder.path("page.sock");
    let address = format!("unix:{}", socket.display());
    let server = Server::nandscape(&folder, subject.program(), "nandscape", &["--no-delay", "--dashboard", &address])?;
    if server.fio(&["--rw=write", "--bs=1m"])?.is_none() {
        say::line("fio is not there: left out");
        return Ok(None);
    }
    let mut turns = Vec::new();
    for turn in 0..TURNS {
        let mut both = [Value::Null, Value::Null];
        // Neither is always the first.
        for watched in [turn % 2 == 0, turn % 2 != 0] {
            both[usize::from(watched)] = if watched { with_page(&server, &socket)? } else { alone(&server)? };
        }
        turns.push(both);
    }
    let figures = figures(&turns).context("fio reports no rate")?;
    Ok(Some((figures, json!({ "order": ["without a page", "with a page"], "turns": turns }))))
}

fn alone(server: &Server) -> anyhow::Result<Value> {
    server.fio(&LOAD)?.context("fio has gone")
}

fn with_page(server: &Server, socket: &Path) -> anyhow::Result<Value> {
    let mut stream = UnixStream::connect(socket).context("the dashboard's socket")?;
    stream.set_read_timeout(Some(std::time::Duration::from_secs(20)))?;
    stream.write_all(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")?;
    let (done, bytes) = (AtomicBool::new(false), AtomicU64::new(0));
    let report = std::thread::scope(|scope| {
        let page = scope.spawn(|| {
            let mut piece = vec![0; 64 << 10];
            while !done.load(Ordering::Relaxed) {
                match stream.read(&mut piece) {
                    Ok(0) | Err(_) => return,
                    Ok(came) => bytes.fetch_add(came as u64, Ordering::Relaxed),
                };
            }
        });
        let report = alone(server);
        done.store(true, Ordering::Relaxed);
        page.join().expect("it does not panic");
        report
    })?;
    let told = bytes.load(Ordering::Relaxed);
    anyhow::ensure!(told > 10_000, "the page was told only {told} bytes");
    Ok(report)
}

fn figures(turns: &[[Value; 2]]) -> Option<Vec<Figure>> {
    let all = |which: usize| {
        let rate = |turn: &[Value; 2]| turn[which].pointer("/iops")?.as_f64();
        turns.iter().map(rate).collect::<Option<Vec<f64>>>()
    };
    let (without, with) = (all(0)?, all(1)?);
    let ratios: Vec<f64> = with.iter().zip(&without).map(|(with, without)| with / without).collect();
    let figure = |name, value, aim| Figure { name, value, aim, more_is_better: true };
    Some(vec![
        figure("IOPS without a page", median(&without), ""),
        figure("IOPS with a page", median(&with), ""),
        figure("with / without", median(&ratios), "at least 0.98"),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_of_the_same_turn() {
        let turn = |without: f64, with: f64| [json!({ "iops": without }), json!({ "iops": with })];
        let values: Vec<f64> = figures(&[turn(100.0, 99.0), turn(50.0, 50.0), turn(200.0, 100.0)])
            .unwrap()
            .iter()
            .map(|one| one.value)
            .collect();
        assert_eq!(values, [100.0, 99.0, 0.99]);
        assert!(figures(&[[json!({}), json!({})]]).is_none());
    }
}
