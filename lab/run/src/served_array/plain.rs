//! A remote drive whose Identify shows that it does not honour bits of CDW2. They are left out of its commands: such a drive may
//! give them another meaning, or reject them. So it is a member that waits, and is never busy.

use std::rc::Rc;

use nandscape_drive::{CommandRef, Drive, DriveInfo, Io};
use nandscape_wire_nvme::vendor::{FAST_FAIL, PREDICT_ONLY, PREEMPT};

use crate::remote::Far;

/// The bits of CDW2 with the hints of a Read on background work.
const HINTS: u32 = FAST_FAIL | PREEMPT | PREDICT_ONLY;

/// See the file.
pub(crate) struct Plain {
    below: Rc<dyn Drive>,
    /// The bits of [`HINTS`] that it honours.
    honours: u32,
}

impl Plain {
    /// A remote drive with the bits that it honours.
    pub(crate) fn over(far: &Rc<Far>) -> Rc<dyn Drive> {
        match far.connection().identity().attributes & HINTS {
            HINTS => far.clone(),
            honours => Rc::new(Plain { below: far.clone(), honours }),
        }
    }
}

impl Drive for Plain {
    fn info(&self) -> DriveInfo {
        self.below.info()
    }

    fn submit(&self, mut io: Io) {
        let cdw2 = io.command.cdw2.get();
        // Without predict-only, a fast-fail bit would fail the read that was to wait.
        let is_told = cdw2 & PREDICT_ONLY & !self.honours != 0;
        let honours = if is_told { self.honours & !FAST_FAIL } else { self.honours };
        io.command.cdw2 = (cdw2 & (honours | !HINTS)).into();
        self.below.submit(io);
    }

    fn cancel(&self, command: CommandRef) -> bool {
        self.below.cancel(command)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use nandscape_drive::{Completion, HostMem, Issuer};
    use nandscape_sim::Executor;
    use nandscape_wire_nvme::{IoOpcode, Status, SubmissionEntry};

    use super::*;

    /// Remembers the attributes of the last command.
    #[derive(Default)]
    struct Heard(Cell<u32>);

    impl Drive for Heard {
        fn info(&self) -> DriveInfo {
            DriveInfo {
                nsid: 1,
                blocks: 8,
                lba_bytes: 512,
                metadata_bytes: 0,
                max_blocks: 8,
                unit_bytes: 4_096,
                volatile_cache: false,
                keeps_data: true,
            }
        }

        fn submit(&self, io: Io) {
            self.0.set(io.command.cdw2.get());
            io.token.complete(Completion::of(Status::SUCCESS));
        }
    }

    #[test]
    fn only_bits_that_are_honoured_arrive_and_others_of_the_word_are_left() {
        let mut executor = Executor::new();
        let issuer = Issuer::new(&executor.sim());
        for (honours, sent, arrives) in [
            (0, FAST_FAIL | PREDICT_ONLY | 0x21, 0x21),
            (FAST_FAIL, FAST_FAIL | PREEMPT, FAST_FAIL),
            (FAST_FAIL, FAST_FAIL | PREDICT_ONLY, 0),
            (HINTS, HINTS | 3, HINTS | 3),
        ] {
            let heard = Rc::new(Heard::default());
            let plain = Plain { below: heard.clone(), honours };
            let read = SubmissionEntry { cdw2: sent.into(), ..SubmissionEntry::blocks(IoOpcode::READ, 1, 0, 1) };
            let ended = executor.block_on(issuer.execute(&plain, read, HostMem::zeroed(512))).unwrap();
            assert_eq!((ended.status, heard.0.get()), (Status::SUCCESS, arrives));
        }
    }
}
