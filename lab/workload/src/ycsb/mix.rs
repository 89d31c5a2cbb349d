//! The core workloads of YCSB: shares of operations, and the distribution of records.

use nandscape_sim::Rng;

use crate::words::WordError;

/// Percent of each operation.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct Mix {
    /// Reads of a record.
    pub read: f64,
    /// Updates of a field of a record.
    pub update: f64,
    /// Inserts of a new record.
    pub insert: f64,
    /// Scans of records that follow each other in the order of keys.
    pub scan: f64,
    /// Reads of a record followed by its update.
    pub read_modify_write: f64,
}

/// The distribution of records.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Choice {
    /// Uniform.
    Uniform,
    /// Zipfian, scattered over the table.
    Zipfian,
    /// Newest records most often.
    Latest,
}

impl Mix {
    const NONE: Mix = Mix { read: 0.0, update: 0.0, insert: 0.0, scan: 0.0, read_modify_write: 0.0 };

    /// The core workloads.
    pub const CORE: [(&str, Mix, Choice); 6] = [
        ("a", Mix { read: 50.0, update: 50.0, ..Mix::NONE }, Choice::Zipfian),
        ("b", Mix { read: 95.0, update: 5.0, ..Mix::NONE }, Choice::Zipfian),
        ("c", Mix { read: 100.0, ..Mix::NONE }, Choice::Zipfian),
        ("d", Mix { read: 95.0, insert: 5.0, ..Mix::NONE }, Choice::Latest),
        ("e", Mix { scan: 95.0, insert: 5.0, ..Mix::NONE }, Choice::Zipfian),
        ("f", Mix { read: 50.0, read_modify_write: 50.0, ..Mix::NONE }, Choice::Zipfian),
    ];

    /// The name of the core workload with these shares and this distribution, if it is one.
    pub fn core_name(&self, choice: Choice) -> Option<&'static str> {
        Mix::CORE.iter().find(|(_, mix, of)| mix == self && *of == choice).map(|(name, ..)| *name)
    }

    /// In words: `50% read, 50% update, zipfian`.
    pub fn in_words(&self, choice: Choice) -> String {
        let shares = self.shares().into_iter().filter(|(_, share)| *share > 0.0);
        let shares = shares.map(|(operation, share)| format!("{share}% {}", operation.name()));
        shares.chain([choice.name().to_owned()]).collect::<Vec<_>>().join(", ")
    }

    /// The shares in the order in which one is drawn.
    pub(crate) fn shares(&self) -> [(Operation, f64); 5] {
        [
            (Operation::Read, self.read),
            (Operation::Update, self.update),
            (Operation::Insert, self.insert),
            (Operation::Scan, self.scan),
            (Operation::ReadModifyWrite, self.read_modify_write),
        ]
    }

    /// Draws an operation.
    pub fn draw(&self, rng: &mut Rng) -> Operation {
        let mut draw = rng.unit() * 100.0;
        let shares = self.shares();
        for (operation, share) in shares {
            draw -= share;
            if draw < 0.0 {
                return operation;
            }
        }
        // Only rounding leads here.
        shares.iter().rev().find(|(_, share)| *share > 0.0).map_or(Operation::Read, |(operation, _)| *operation)
    }

    /// Whether nothing is written.
    pub(crate) fn only_reads(&self) -> bool {
        self.update + self.insert + self.read_modify_write == 0.0
    }

    /// Checks that the shares sum to 100%.
    pub(crate) fn check(&self) -> Result<(), String> {
        let sum: f64 = self.shares().iter().map(|(_, share)| share).sum();
        match self.shares().iter().all(|(_, share)| *share >= 0.0) && (sum - 100.0).abs() < 1e-6 {
            true => Ok(()),
            false => Err(format!("read, update, insert, scan and read_modify_write sum to {sum} percent, not to 100")),
        }
    }
}

/// An operation.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Operation {
    /// Reads a record.
    Read,
    /// Updates a field of a record.
    Update,
    /// Inserts a record.
    Insert,
    /// Scans records that follow each other in the order of keys.
    Scan,
    /// Reads a record and updates it.
    ReadModifyWrite,
}

impl Operation {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Operation::Read => "read",
            Operation::Update => "update",
            Operation::Insert => "insert",
            Operation::Scan => "scan",
            Operation::ReadModifyWrite => "read_modify_write",
        }
    }
}

impl Choice {
    /// Its name.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Choice::Uniform => "uniform",
            Choice::Zipfian => "zipfian",
            Choice::Latest => "latest",
        }
    }
}

impl std::str::FromStr for Choice {
    type Err = WordError;

    fn from_str(text: &str) -> Result<Choice, WordError> {
        match text {
            "uniform" => Ok(Choice::Uniform),
            "zipfian" => Ok(Choice::Zipfian),
            "latest" => Ok(Choice::Latest),
            _ => Err(WordError::new(text, "a distribution: uniform, zipfian or latest")),
        }
    }
}
