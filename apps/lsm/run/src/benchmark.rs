//! The loads, named after those of db_bench. First all keys are put in random order (fillrandom, each key once); the
//! load then draws them uniformly.

/// See the file.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
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
}

impl Benchmark {
    /// All loads.
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
        }
    }
}
