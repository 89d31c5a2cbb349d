//! An entry of the ledger: the result that a paper reports, and the criterion for reproducing it.

/// The source papers, by the numbers that the ledger gives them.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Paper {
    /// Huaicheng Li, Evolving Storage Stack for Predictability and Efficiency, 2020.
    Li,
    /// Woong Shin, on host I/O paths, precompletion and multi-drive engines, 2017.
    Shin,
    /// FlashShare, OSDI 2018.
    FlashShare,
    /// The CASE of FEMU, FAST 2018.
    Femu,
    /// OX: programmable controllers, 2019.
    Ox,
}

impl Paper {
    /// Its number.
    pub const fn number(self) -> &'static str {
        match self {
            Paper::Li => "000",
            Paper::Shin => "001",
            Paper::FlashShare => "002",
            Paper::Femu => "003",
            Paper::Ox => "004",
        }
    }

    /// All, by the year of the work.
    pub const ALL: [Paper; 5] = [Paper::Shin, Paper::Femu, Paper::FlashShare, Paper::Ox, Paper::Li];

    /// Authors, title, and where it appeared.
    pub const fn title(self) -> &'static str {
        match self {
            Paper::Li => "Li, Evolving Storage Stack for Predictability and Efficiency, University of Chicago 2020",
            Paper::Shin => {
                "Shin, OS I/O Path Optimizations for Flash Solid-State Drives, Seoul National University 2017"
            }
            Paper::FlashShare => "Zhang et al., FlashShare, OSDI 2018",
            Paper::Femu => "Li et al., The CASE of FEMU, FAST 2018",
            Paper::Ox => {
                "Picoli, OX: Deconstructing the FTL for Computational Storage, IT University of Copenhagen 2019"
            }
        }
    }

    /// Where the publisher has it; `None` for Shin's thesis, of which no lasting address is known.
    pub const fn link(self) -> Option<&'static str> {
        match self {
            Paper::FlashShare => Some("https://www.usenix.org/conference/osdi18/presentation/zhang"),
            Paper::Femu => Some("https://www.usenix.org/conference/fast18/presentation/li"),
            Paper::Li => Some("https://knowledge.uchicago.edu/record/2642"),
            Paper::Ox => {
                Some("https://pure.itu.dk/en/publications/ox-deconstructing-the-ftl-for-computational-storage")
            }
            Paper::Shin => None,
        }
    }

    /// Its name here.
    pub const fn name(self) -> &'static str {
        match self {
            Paper::Li => "Li 2020",
            Paper::Shin => "Shin 2017",
            Paper::FlashShare => "FlashShare (OSDI 2018)",
            Paper::Femu => "FEMU (FAST 2018)",
            Paper::Ox => "OX 2019",
        }
    }
}

/// Whether a paper reports a result, or describes a part without one.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Kind {
    /// There is a published result to compare with.
    Result,
    /// There is a check, but no published result.
    Design,
}

/// The kind of check; the rules are in [`crate::verdict`].
#[derive(Copy, Clone, PartialEq, Debug)]
pub enum Check {
    /// A formula or table that must match to the published digits.
    Exact,
    /// A relative result: within a band, or where there is none, in the same direction by half the published effect.
    Ratio(Option<Band>),
    /// A cost: at most the published figure.
    AtMost,
    /// A ranking or shape, at every point named.
    Order,
}

/// Bounds, one pair for each number.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct Band {
    /// The quantity that the bounds apply to.
    pub of: BandOf,
    /// Lowest and highest.
    pub within: &'static [(f64, f64)],
}

/// The quantity that a band applies to.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum BandOf {
    /// The ratio itself.
    Value,
    /// The fraction lost: one less the ratio.
    Loss,
    /// Measured over published.
    Published,
}

impl BandOf {
    /// The name in the ledger.
    pub const fn name(self) -> &'static str {
        match self {
            BandOf::Value => "value",
            BandOf::Loss => "loss",
            BandOf::Published => "published",
        }
    }
}

impl Check {
    /// The name in the ledger.
    pub const fn name(self) -> &'static str {
        match self {
            Check::Exact => "exact",
            Check::Ratio(_) => "ratio",
            Check::AtMost => "atmost",
            Check::Order => "order",
        }
    }
}

/// An entry.
#[derive(Copy, Clone, Debug)]
pub struct Claim {
    /// Its name.
    pub id: &'static str,
    /// The source: papers and places in them.
    pub source: &'static [(Paper, &'static str)],
    /// The reported result, with its numbers.
    pub says: &'static str,
    /// The criterion; if absent, `says` is the criterion.
    pub show: Option<&'static str>,
    /// How the entry is read, where an audit of the verdicts decided it.
    pub ruling: Option<&'static str>,
    /// The kind of check.
    pub check: Check,
    /// A result, or a design.
    pub kind: Kind,
}

impl Claim {
    /// The source, for people.
    pub fn source(&self) -> String {
        self.places(Paper::name, ", ")
    }

    /// The source in the ledger's form, with numbers for papers.
    pub fn seed(&self) -> String {
        self.places(Paper::number, " ")
    }

    fn places(&self, paper: fn(Paper) -> &'static str, between: &str) -> String {
        let places: Vec<String> =
            self.source.iter().map(|(of, place)| format!("{}{between}{place}", paper(*of))).collect();
        places.join("; ")
    }

    /// The label before the claim: a design was not published as a result.
    pub const fn lead(&self) -> &'static str {
        match self.kind {
            Kind::Result => "published",
            Kind::Design => "described",
        }
    }

    /// What a run must show.
    pub fn must_show(&self) -> &'static str {
        self.show.unwrap_or(self.says)
    }
}
