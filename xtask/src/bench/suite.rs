//! The benchmarks: the runs, and the figures taken from their reports. The aims are those of `bench/README.md`; they
//! are printed next to the figures and asserted nowhere.

use serde::Serialize;
use serde_json::Value;

use super::subject::Subject;
use super::{
    array, boot, cache, dashboard, durability, guest, instructions, live, neighbour, nvme_tcp, parity, price, python,
    restart, served_instructions, state, sweep, tails,
};

/// One benchmark.
pub(crate) struct Benchmark {
    /// Its name.
    pub(crate) name: &'static str,
    /// A one-line description.
    pub(crate) about: &'static str,
    /// How it runs.
    pub(crate) how: How,
}

/// The kind of a benchmark.
pub(crate) enum How {
    /// A simulation.
    Sim {
        /// Arguments after `nandscape sim --json`.
        args: &'static [&'static str],
        /// Computes its figures from the report; the second argument returns the bytes of flash of the drive.
        figures: fn(&Value, FlashBytes<'_>) -> Option<Vec<Figure>>,
    },
    /// Several programs, or one several times: returns the figures, and the raw measurements; nothing if a required
    /// program is missing.
    Own(fn(&Subject) -> Measured),
    /// The same with figures that do not vary: it runs once for each program.
    Exact(fn(&Subject) -> Measured),
}

impl Benchmark {
    /// Whether every run gives the same figures.
    pub(crate) fn is_exact(&self) -> bool {
        matches!(self.how, How::Exact(_))
    }
}

/// The figures of such a benchmark, and the raw measurements.
pub(crate) type Measured = anyhow::Result<Option<(Vec<Figure>, Value)>>;

/// Returns the bytes of flash of a benchmark's drive.
pub(crate) type FlashBytes<'a> = &'a dyn Fn() -> Option<f64>;

/// A figure of a run.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(crate) struct Figure {
    /// Its name, with the unit.
    pub(crate) name: &'static str,
    /// The number.
    pub(crate) value: f64,
    /// Its aim.
    pub(crate) aim: &'static str,
    /// Whether higher is better.
    pub(crate) more_is_better: bool,
}

/// All benchmarks, in the order of their runs.
pub(crate) const SUITE: &[Benchmark] = &[
    Benchmark {
        name: "reads",
        about: "4 KiB random reads, 32 at a time, of the default drive (256 GiB, 8 channels x 8 dies)",
        how: How::Sim {
            args: &[
                "--drive",
                "default",
                "--rw",
                "randread",
                "--bs",
                "4k",
                "--iodepth",
                "32",
                "--precondition",
                "full",
                "--io-count",
                "4000000",
                "--warmup-count",
                "100000",
            ],
            figures: reads,
        },
    },
    Benchmark {
        name: "overwrites",
        about: "4 KiB random overwrites in steady state, 32 at a time, of the default drive (16 KiB pages)",
        how: How::Sim {
            args: &[
                "--drive",
                "default",
                "--rw",
                "randwrite",
                "--bs",
                "4k",
                "--iodepth",
                "32",
                "--precondition",
                "steady",
                "--io-count",
                "2000000",
                "--warmup-count",
                "100000",
            ],
            figures: overwrites,
        },
    },
    Benchmark {
        name: "overwrites-4k-page",
        about: "the same on 8 channels x 8 dies of 4 KiB pages: a page program is a mapping-unit program",
        how: How::Sim {
            args: &[
                "--drive",
                "femu-blackbox",
                "--set",
                "capacity=256GiB",
                "--set",
                "ftl.over_provisioning=12%",
                "--rw",
                "randwrite",
                "--bs",
                "4k",
                "--iodepth",
                "32",
                "--precondition",
                "steady",
                "--io-count",
                "1000000",
                "--warmup-count",
                "100000",
            ],
            figures: overwrites,
        },
    },
    Benchmark {
        name: "start-none",
        about: "start-up and memory of the default drive at 1 TiB, new",
        how: How::Sim {
            args: &[
                "--drive",
                "default",
                "--set",
                "capacity=1TiB",
                "--rw",
                "randread",
                "--io-count",
                "1000",
                "--precondition",
                "none",
            ],
            figures: start_empty,
        },
    },
    Benchmark {
        name: "start-full",
        about: "the same, every block written once",
        how: How::Sim {
            args: &[
                "--drive",
                "default",
                "--set",
                "capacity=1TiB",
                "--rw",
                "randread",
                "--io-count",
                "1000",
                "--precondition",
                "full",
            ],
            figures: start_used,
        },
    },
    Benchmark {
        name: "start-steady",
        about: "the same, worn in",
        how: How::Sim {
            args: &[
                "--drive",
                "default",
                "--set",
                "capacity=1TiB",
                "--rw",
                "randread",
                "--io-count",
                "1000",
                "--precondition",
                "steady",
            ],
            figures: start_used,
        },
    },
    Benchmark {
        name: "instructions",
        about: "instructions of a 4 KiB read and of an overwrite in steady state, and of each stage, by callgrind",
        how: How::Exact(instructions::instructions),
    },
    Benchmark {
        name: "host-decisions",
        about: "scheduling decisions of a simulated host: 8 processors, 64 threads that compute, 32 that read",
        how: How::Sim {
            args: &[
                "--drive",
                "default",
                "--set",
                "capacity=4GiB",
                "--precondition",
                "full",
                "--rw",
                "randread",
                "--iodepth",
                "32",
                "--runtime",
                "1s",
                "--host",
                "server",
                "--set",
                "host.cores=8",
                "--set",
                "host.load=64",
                "--set",
                "host.slice=10us",
            ],
            figures: decisions,
        },
    },
    Benchmark {
        name: "host-reads",
        about: "4 KiB random reads, 32 at a time, by threads of a simulated host, over the default drive",
        how: How::Sim {
            args: &[
                "--drive",
                "default",
                "--rw",
                "randread",
                "--iodepth",
                "32",
                "--io-count",
                "1000000",
                "--precondition",
                "full",
                "--host",
                "server",
            ],
            figures: host_reads,
        },
    },
    Benchmark {
        name: "option-price",
        about: "CPU time of a request with an option (timing, aging, placement, partitions, zones), as a ratio to the drive without it, option by option",
        how: How::Own(price::option_price),
    },
    Benchmark {
        name: "option-instructions",
        about: "the same in instructions, by callgrind",
        how: How::Exact(price::option_instructions),
    },
    Benchmark {
        name: "durability",
        about: "OX-Block beside the page FTL, whose tables are in memory, on the same load: drive time and CPU, as ratios",
        how: How::Own(durability::price),
    },
    Benchmark {
        name: "nbd-qd1",
        about: "4 KiB random reads by fio over NBD on a unix socket, one at a time, no delays; against nbdkit memory",
        how: How::Own(live::nbd_qd1),
    },
    Benchmark { name: "nbd-qd32", about: "the same, 32 at a time", how: How::Own(live::nbd_qd32) },
    Benchmark {
        name: "nbd-delay",
        about: "the same, one at a time, with a flash read of 50 us; lateness beside that of an idle loop",
        how: How::Own(live::nbd_delay),
    },
    Benchmark {
        name: "nvme-tcp-qd1",
        about: "4 KiB random reads over NVMe/TCP on loopback, one at a time, no delays; against a target that is named",
        how: How::Own(nvme_tcp::qd1),
    },
    Benchmark { name: "nvme-tcp-qd32", about: "the same, 32 at a time", how: How::Own(nvme_tcp::qd32) },
    Benchmark {
        name: "nvme-tcp-instructions",
        about: "instructions of a target for a 4 KiB read over NVMe/TCP, 32 at a time, and of each stage, by callgrind",
        how: How::Exact(served_instructions::nvme_tcp),
    },
    Benchmark {
        name: "vfio-user-instructions",
        about: "the same over vfio-user, for a driver in user space that polls",
        how: How::Exact(served_instructions::vfio_user),
    },
    Benchmark {
        name: "guest",
        about: "4 KiB random reads by fio in a Linux guest, one at a time and 32; against QEMU's own NVMe drive beside",
        how: How::Own(guest::reads),
    },
    Benchmark {
        name: "guest-boot",
        about: "from `nandscape guest` to a shell in a Linux guest, its packages in the cache",
        how: How::Own(boot::time),
    },
    Benchmark {
        name: "idle",
        about: "CPU of a server whose hosts, a guest over vfio-user and one over NVMe/TCP, are connected and idle, over 30 s",
        how: How::Own(boot::idle),
    },
    Benchmark {
        name: "neighbour-1m",
        about: "4 KiB random reads over NBD, 1,000 a second, beside a client that reads 1 MiB 8 at a time; against nbdkit memory",
        how: How::Own(neighbour::reads_of_1m),
    },
    Benchmark {
        name: "neighbour-32m",
        about: "the same beside a client that reads 32 MiB 2 at a time",
        how: How::Own(neighbour::reads_of_32m),
    },
    Benchmark {
        name: "tail-ttflash",
        about: "reads and writes over NBD at a fixed rate: the tail of reads of ttFlash, against collections that hold the channel",
        how: How::Own(tails::ttflash),
    },
    Benchmark {
        name: "tail-teafa",
        about: "the same of an array of four drives with TeaFA, against the plain array",
        how: How::Own(tails::teafa),
    },
    Benchmark {
        name: "cache-tail",
        about: "gets by pymemcache while another client stores: policies of `memcached` over four served drives",
        how: How::Own(cache::tail),
    },
    Benchmark {
        name: "cache-extstore",
        about: "pymemcache, five times as many items as memory has room for: `memcached` in files, against memcached's extstore",
        how: How::Own(cache::extstore),
    },
    Benchmark {
        name: "dashboard",
        about: "4 KiB random reads over NBD, 32 at a time, with a page of the dashboard open, against without",
        how: How::Own(dashboard::an_open_page),
    },
    Benchmark {
        name: "restart-page",
        about: "a 1 TiB drive in a file: the first read after an orderly stop, and after kill -9",
        how: How::Own(restart::page),
    },
    Benchmark {
        name: "restart-ox-block",
        about: "the same with OX-Block, which recovers from its flash",
        how: How::Own(restart::ox_block),
    },
    Benchmark {
        name: "store-file",
        about: "CPU time of 4 KiB random writes to a drive in a file, against one in memory",
        how: How::Own(restart::file_against_memory),
    },
    Benchmark {
        name: "state",
        about: "set-up of a worn drive of 1 TiB: from a saved state, against preconditioning it",
        how: How::Own(state::set_up),
    },
    Benchmark {
        name: "sweep",
        about: "a sweep of eight points on two cores, against one",
        how: How::Own(sweep::two_cores),
    },
    Benchmark { name: "python", about: "a simulation in Python, against the command", how: How::Own(python::overhead) },
    Benchmark {
        name: "python-policy",
        about: "overwrites with a victim policy that is a function of Python, against the same policy in Rust",
        how: How::Own(python::policy),
    },
    Benchmark {
        name: "ring-64",
        about: "4 KiB random reads through shared-memory queue pairs, 64 at a time, no delays (claim femu-scalability)",
        how: How::Own(live::ring_64),
    },
    Benchmark {
        name: "array",
        about: "simulated commands an instruction of an array of four drives, against those of a drive alone",
        how: How::Own(array::of_four),
    },
    Benchmark {
        name: "parity",
        about: "the parity of 8 pages of 4 KiB, as drives with stripes and arrays compute it (claim ttflash-arithmetic)",
        how: How::Own(parity::of_eight_pages),
    },
];

fn number(report: &Value, path: &str) -> Option<f64> {
    report.pointer(path)?.as_f64()
}

fn rate(report: &Value, count: f64) -> Option<f64> {
    Some(count / number(report, "/host/cpu_s")?)
}

fn decisions(report: &Value, _: FlashBytes<'_>) -> Option<Vec<Figure>> {
    let value = rate(report, number(report, "/cpu/decisions")?)?;
    Some(vec![Figure { name: "decisions per CPU s", value, aim: "1 M at least", more_is_better: true }])
}

fn host_reads(report: &Value, _: FlashBytes<'_>) -> Option<Vec<Figure>> {
    let value = rate(report, number(report, "/requests")?)?;
    Some(vec![Figure { name: "requests per CPU s", value, aim: "", more_is_better: true }])
}

fn reads(report: &Value, _: FlashBytes<'_>) -> Option<Vec<Figure>> {
    let value = rate(report, number(report, "/requests")?)?;
    let aim = "1.8 M at least, 3.6 M aimed at";
    Some(vec![Figure { name: "requests per CPU s", value, aim, more_is_better: true }])
}

/// Programs of the host and of garbage collection, copies within a plane among them.
fn overwrites(report: &Value, _: FlashBytes<'_>) -> Option<Vec<Figure>> {
    let pages = number(report, "/flash/page_programs")?;
    let units = number(report, "/flash/units_programmed")?;
    let figure = |name, count, aim| Some(Figure { name, value: rate(report, count)?, aim, more_is_better: true });
    Some(vec![
        figure("page programs per CPU s", pages, "1.45 M at least, 2.9 M aimed at")?,
        figure("unit programs per CPU s", units, "")?,
        figure("requests per CPU s", number(report, "/requests")?, "")?,
    ])
}

fn start_empty(report: &Value, flash_bytes: FlashBytes<'_>) -> Option<Vec<Figure>> {
    start(report, flash_bytes, "below 1 s")
}

fn start_used(report: &Value, flash_bytes: FlashBytes<'_>) -> Option<Vec<Figure>> {
    start(report, flash_bytes, "below 10 s")
}

fn start(report: &Value, flash_bytes: FlashBytes<'_>, aim: &'static str) -> Option<Vec<Figure>> {
    let logical_units = (1u64 << 40) as f64 / 4_096.0;
    let limit = 4.0 * logical_units + 4.5 * flash_bytes()? / 4_096.0;
    let peak = number(report, "/host/peak_rss_bytes")?;
    let figure = |name, value, aim| Figure { name, value, aim, more_is_better: false };
    Some(vec![
        figure("set-up, s", number(report, "/host/setup_s")?, aim),
        figure("peak memory, bytes", peak, ""),
        figure("of the memory allowed", peak / limit, "at most 1"),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn names_differ_and_every_benchmark_says_what_it_is() {
        let mut names: Vec<&str> = SUITE.iter().map(|benchmark| benchmark.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), SUITE.len());
        assert!(SUITE.iter().all(|benchmark| benchmark.about.len() > 10));
        assert!(SUITE.iter().all(|benchmark| match benchmark.how {
            How::Sim { args, .. } => args.contains(&"--rw"),
            How::Own(_) | How::Exact(_) => true,
        }));
    }

    #[test]
    fn figures_are_per_cpu_second_of_the_measured_phase() {
        let report = json!({
            "requests": 1000, "host": {"cpu_s": 0.5, "setup_s": 0.2, "peak_rss_bytes": 1u64 << 31},
            "flash": {"page_programs": 400, "page_copybacks": 100, "units_programmed": 1600},
        });
        let values =
            |figures: Option<Vec<Figure>>| figures.unwrap().iter().map(|figure| figure.value).collect::<Vec<_>>();
        assert_eq!(values(reads(&report, &|| None)), [2_000.0]);
        assert_eq!(values(overwrites(&report, &|| None)), [800.0, 3_200.0, 2_000.0]);
        // As much flash as capacity: 8.5 bytes for each of 2^28 units.
        let start = values(start_empty(&report, &|| Some((1u64 << 40) as f64)));
        assert_eq!(start, [0.2, (1u64 << 31) as f64, 8.0 / 8.5]);
        assert_eq!(reads(&json!({}), &|| None), None);
    }
}
