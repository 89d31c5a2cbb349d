//! The counters of an array.

/// Counters of an array since it was made.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Stats {
    /// Reads of a stripe for the host.
    pub stripe_reads: u64,
    /// Stripe reads by their number of busy sub-I/Os: those that background work delayed, and that were rejected or
    /// waited.
    pub busy: Vec<u64>,
    /// Sub-reads sent for the host's reads.
    pub reads: u64,
    /// Of those, of chunks that the host had not requested.
    pub extra_reads: u64,
    /// Of those, sent again after a busy answer.
    pub resubmissions: u64,
    /// Stripe reads that were reconstructed from other chunks.
    pub reconstructions: u64,
    /// Of those, reads that were repeated because of a concurrent write.
    pub rereads: u64,
    /// Writes of a stripe for the host.
    pub stripe_writes: u64,
    /// Of those, of a whole stripe: without reads.
    pub full_writes: u64,
    /// Of those, from the old data and parity.
    pub read_modify_writes: u64,
    /// Of those, from the rest of the data.
    pub reconstruct_writes: u64,
    /// Sub-writes sent, of data and of parity.
    pub writes: u64,
    /// Sub-reads sent for writes.
    pub reads_for_writes: u64,
    /// Writes of records and of the journal, sent to members.
    pub journal_writes: u64,
    /// Stripes that a rebuild has moved.
    pub rebuilt: u64,
    /// Chunks rewritten because they could not be read.
    pub repairs: u64,
    /// Chunks with lost content, or parts of them, that were made uncorrectable.
    pub condemned: u64,
    /// Changes of windows.
    pub window_changes: u64,
    /// By member.
    pub members: Vec<MemberStats>,
}

/// Counters of a member.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct MemberStats {
    /// Reads sent to it.
    pub reads: u64,
    /// Writes and the like sent to it.
    pub writes: u64,
    /// Reads of it that were busy.
    pub busy: u64,
    /// Commands of it that failed.
    pub errors: u64,
}

impl Stats {
    pub(crate) fn new(members: usize) -> Stats {
        Stats { busy: vec![0; members + 1], members: vec![MemberStats::default(); members], ..Stats::default() }
    }

    /// The counts since `earlier`.
    pub fn since(&self, earlier: &Stats) -> Stats {
        let member = |(now, then): (&MemberStats, &MemberStats)| MemberStats {
            reads: now.reads - then.reads,
            writes: now.writes - then.writes,
            busy: now.busy - then.busy,
            errors: now.errors - then.errors,
        };
        Stats {
            stripe_reads: self.stripe_reads - earlier.stripe_reads,
            busy: self.busy.iter().zip(&earlier.busy).map(|(now, then)| now - then).collect(),
            reads: self.reads - earlier.reads,
            extra_reads: self.extra_reads - earlier.extra_reads,
            resubmissions: self.resubmissions - earlier.resubmissions,
            reconstructions: self.reconstructions - earlier.reconstructions,
            rereads: self.rereads - earlier.rereads,
            stripe_writes: self.stripe_writes - earlier.stripe_writes,
            full_writes: self.full_writes - earlier.full_writes,
            read_modify_writes: self.read_modify_writes - earlier.read_modify_writes,
            reconstruct_writes: self.reconstruct_writes - earlier.reconstruct_writes,
            writes: self.writes - earlier.writes,
            reads_for_writes: self.reads_for_writes - earlier.reads_for_writes,
            journal_writes: self.journal_writes - earlier.journal_writes,
            rebuilt: self.rebuilt - earlier.rebuilt,
            repairs: self.repairs - earlier.repairs,
            condemned: self.condemned - earlier.condemned,
            window_changes: self.window_changes - earlier.window_changes,
            members: self.members.iter().zip(&earlier.members).map(member).collect(),
        }
    }

    /// The share of stripe reads with `count` busy sub-I/Os; 0 without any.
    pub fn busy_share(&self, count: usize) -> f64 {
        if self.stripe_reads == 0 { 0.0 } else { self.busy[count] as f64 / self.stripe_reads as f64 }
    }
}
