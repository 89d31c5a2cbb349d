//! The loads: those of db_bench by name, and the core workloads of YCSB. First all keys are put in random order
//! (fillrandom, each key once). The loads of db_bench then draw keys uniformly, YCSB by the distribution of its workload.

use nandscape_lab_workload::{Choice, Mix};

/// See the file.
#[derive(Copy, Clone, PartialEq, Debug)]
pub enum Benchmark {
    /// Puts of new keys: the filling itself is measured.
    FillRandom,
    /// Puts of existing keys.
    Overwrite,
    /// Gets.
    ReadRandom,
    /// Gets, while one more client puts.
    ReadWhileWriting,
    /// Scans of some keys.
    SeekRandom,
    /// Operations of YCSB in these shares, on keys of this distribution. An update puts the whole value.
    Ycsb(Mix, Choice),
}

impl Benchmark {
    /// All loads of db_bench.
    pub const ALL: [Benchmark; 5] = [
        Benchmark::FillRandom,
        Benchmark::Overwrite,
        Benchmark::ReadRandom,
        Benchmark::ReadWhileWriting,
        Benchmark::SeekRandom,
    ];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Benchmark::FillRandom => "fillrandom",
            Benchmark::Overwrite => "overwrite",
            Benchmark::ReadRandom => "readrandom",
            Benchmark::ReadWhileWriting => "readwhilewriting",
            Benchmark::SeekRandom => "seekrandom",
            Benchmark::Ycsb(..) => "ycsb",
        }
    }
}
