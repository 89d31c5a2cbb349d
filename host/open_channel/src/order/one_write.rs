//! LightNVM's order: the drive has one write of a die at a time, and any number of reads (Li 2020, 3.4.2). In a drive
//! that serves reads first, arriving reads keep overtaking that write.

use super::{DieLoad, DieOrder, DieUse};

/// See the file.
pub struct OneWrite;

impl DieOrder for OneWrite {
    fn goes(&self, command: DieUse, load: &DieLoad) -> bool {
        match command {
            DieUse::Read => true,
            DieUse::Write => load.writes == 0 && load.waiting_writes == 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_go_at_once_and_writes_one_by_one() {
        let load = DieLoad { reads: 7, writes: 1, waiting: 3, waiting_writes: 1 };
        assert!(OneWrite.goes(DieUse::Read, &load));
        assert!(!OneWrite.goes(DieUse::Write, &load));
        assert!(!OneWrite.goes(DieUse::Write, &DieLoad { writes: 0, ..load }), "another write came first");
        assert!(OneWrite.goes(DieUse::Write, &DieLoad { writes: 0, waiting_writes: 0, ..load }));
    }
}
