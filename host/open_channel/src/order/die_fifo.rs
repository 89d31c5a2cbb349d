//! TeaFA's order on open-channel drives: the commands of a die are sent in order of arrival. While a write of the die
//! is in the drive, at most one read may join it: a drive that serves reads first then delays the write by no more
//! than that read (Li 2020, 3.4.2).

use super::{DieLoad, DieOrder, DieUse};

/// See the file.
pub struct DieFifo;

impl DieOrder for DieFifo {
    fn goes(&self, command: DieUse, load: &DieLoad) -> bool {
        let is_next = load.waiting == 0;
        match command {
            DieUse::Read => is_next && (load.writes == 0 || load.reads == 0),
            DieUse::Write => is_next && load.writes == 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_go_in_turn_and_one_read_beside_a_write() {
        let idle = DieLoad::default();
        assert!(DieFifo.goes(DieUse::Read, &idle) && DieFifo.goes(DieUse::Write, &idle));
        let reading = DieLoad { reads: 5, ..idle };
        assert!(DieFifo.goes(DieUse::Read, &reading) && DieFifo.goes(DieUse::Write, &reading));
        let writing = DieLoad { writes: 1, ..idle };
        assert!(DieFifo.goes(DieUse::Read, &writing) && !DieFifo.goes(DieUse::Write, &writing));
        let both = DieLoad { writes: 1, reads: 1, ..idle };
        assert!(!DieFifo.goes(DieUse::Read, &both) && !DieFifo.goes(DieUse::Write, &both));
        let behind = DieLoad { waiting: 1, ..idle };
        assert!(!DieFifo.goes(DieUse::Read, &behind) && !DieFifo.goes(DieUse::Write, &behind));
    }
}
