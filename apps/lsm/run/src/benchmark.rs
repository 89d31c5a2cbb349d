//! The loads, named after those of db_bench. All keys are there before, put in random order (fillrandom, each key once); they are drawn
//! uniformly.

/// See the file.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Benchmark {
    /// Puts of keys that are not there: the filling itself is measured.
    FillRandom,
    /// Puts of keys that are there.
    Overwrite,
    /// Gets.
    ReadRandom,
    /// Gets, while one more client puts.
    ReadWhileWriting,
    /// Scans of some keys.
    SeekRandom,
}

impl Benchmark {
    /// All of them.
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
