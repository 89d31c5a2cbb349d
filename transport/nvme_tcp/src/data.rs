//! The data of a command: buffers from the client's share of memory. A client's own buffers are reused without a
//! request, so that a command of the usual size allocates nothing.
//!
//! A buffer that others have used is cleared first, unless the host fills all of it: a host may request more bytes
//! than its command returns.

use std::rc::Rc;

use crc_fast::CrcAlgorithm;
use nandscape_drive::HostMem;
use nandscape_drive::mem::Memory;
use nandscape_transport_reactor::{LARGEST, Loan, Share};
use nandscape_wire_nvme::Status;

/// Bytes of own buffers that are kept for the next command.
const KEPT: usize = 512 << 10;
/// Own buffers that are checked for one that fits and is free.
const LOOKS: usize = 8;

/// The memory of a client.
pub(crate) struct Buffers {
    share: Share,
    /// Buffers of commands that were done.
    spares: Vec<Rc<Loan>>,
    spare_bytes: usize,
    /// Whether the drive fills the whole requested range.
    fills: bool,
}

/// The data of one command.
pub(crate) enum Data {
    None,
    One(Rc<Loan>),
    Many(Rc<Chain>),
}

/// Buffers in order, all but the last of [`LARGEST`] bytes.
pub(crate) struct Chain {
    parts: Vec<Rc<Loan>>,
    len: usize,
}

impl Buffers {
    pub(crate) fn new(share: Share, fills: bool) -> Buffers {
        Buffers { share, spares: Vec::new(), spare_bytes: 0, fills }
    }

    /// Buffers of `len` bytes; `to_controller` states whether the host fills all of them. `None` while there is no
    /// memory for them: the client is in line then.
    pub(crate) fn take(&mut self, len: usize, to_controller: bool) -> Option<Data> {
        if let Some(spare) = self.spare(len) {
            if !self.fills && !to_controller {
                spare.bytes_mut().fill(0);
            }
            return Some(Data::One(spare));
        }
        if !self.share.has_room(len) {
            self.drop_spares();
        }
        let mut grant = self.share.grant(len)?;
        let mut lend = |len: usize| if to_controller { grant.lend(len) } else { grant.lend_zeros(len) };
        if len <= LARGEST {
            return lend(len).map(Data::One);
        }
        let parts = (0..len).step_by(LARGEST).map(|at| lend(LARGEST.min(len - at))).collect::<Option<Vec<_>>>()?;
        Some(Data::Many(Rc::new(Chain { parts, len })))
    }

    /// Buffers of `len` bytes that the host fills, at most those of a capsule, even if no room is free: for data
    /// ahead of other data requested from the host.
    pub(crate) fn overdraw(&mut self, len: usize) -> Option<Data> {
        self.share.overdraw(len).map(Data::One)
    }

    /// Whether [`Buffers::take`] would return buffers now.
    pub(crate) fn has_room(&self, len: usize) -> bool {
        let fits = |spare: &Rc<Loan>| Rc::strong_count(spare) == 1 && spare.bytes().len() == len;
        self.spares.iter().rev().take(LOOKS).any(fits) || self.share.has_room(len)
    }

    /// Begins a command of this [cost](nandscape_transport_reactor::Intake::cost), if the client may; whether it may.
    pub(crate) fn begin(&self, cost: u64) -> bool {
        let may = self.share.may_begin();
        if may {
            self.share.begin(cost);
        }
        may
    }

    /// Bytes that the client holds for commands.
    pub(crate) fn in_use(&self) -> usize {
        self.share.held().saturating_sub(self.spare_bytes)
    }

    fn spare(&mut self, len: usize) -> Option<Rc<Loan>> {
        let fits = |spare: &Rc<Loan>| Rc::strong_count(spare) == 1 && spare.bytes().len() == len;
        let from_end = self.spares.iter().rev().take(LOOKS).position(fits)?;
        let spare = self.spares.swap_remove(self.spares.len() - 1 - from_end);
        self.spare_bytes -= len;
        Some(spare)
    }

    /// Takes back a buffer.
    pub(crate) fn put_back(&mut self, loan: Rc<Loan>) {
        let len = loan.bytes().len();
        if self.spare_bytes + len <= KEPT {
            self.spare_bytes += len;
            self.spares.push(loan);
        }
    }

    /// Takes back all buffers of a command.
    pub(crate) fn put_back_all(&mut self, data: Data) {
        if let Data::One(loan) = data {
            self.put_back(loan);
        }
    }

    fn drop_spares(&mut self) {
        self.spares.clear();
        self.spare_bytes = 0;
    }
}

impl Data {
    /// As the memory of a command.
    pub(crate) fn memory(&self) -> HostMem {
        match self {
            Data::None => HostMem::none(),
            Data::One(loan) => HostMem::over(loan.clone()),
            Data::Many(chain) => HostMem::over(chain.clone()),
        }
    }

    /// Its buffers, in order.
    pub(crate) fn parts(&self) -> &[Rc<Loan>] {
        match self {
            Data::None => &[],
            Data::One(loan) => std::slice::from_ref(loan),
            Data::Many(chain) => &chain.parts,
        }
    }

    /// The buffer that holds byte `at`, and its place there.
    pub(crate) fn buffer(&self, at: usize) -> Option<(&Rc<Loan>, usize)> {
        self.parts().get(at / LARGEST).map(|loan| (loan, at % LARGEST))
    }

    /// Copies in.
    pub(crate) fn write(&self, start: usize, bytes: &[u8]) {
        match self {
            Data::None => {}
            Data::One(loan) => loan.write(start, bytes),
            Data::Many(chain) => chain.write(start, bytes),
        }
    }
}

/// CRC-32C, the digest of NVMe/TCP (3.3.1.1).
pub(crate) fn crc(bytes: &[u8]) -> u32 {
    crc_fast::checksum(CrcAlgorithm::Crc32Iscsi, bytes) as u32
}

impl Chain {
    /// Calls `each(buffer, place in it, place in the range, length)` for the pieces of a range.
    fn pieces(&self, start: usize, len: usize, mut each: impl FnMut(&Loan, usize, usize, usize)) {
        assert!(start + len <= self.len, "{len} bytes at {start} are beyond the {} bytes of data", self.len);
        let mut done = 0;
        while done < len {
            let at = start + done;
            let now = (len - done).min(LARGEST - at % LARGEST);
            each(&self.parts[at / LARGEST], at % LARGEST, done, now);
            done += now;
        }
    }
}

impl Memory for Chain {
    fn max_len(&self) -> usize {
        self.len
    }

    fn read(&self, start: usize, bytes: &mut [u8]) {
        self.pieces(start, bytes.len(), |loan, at, done, now| loan.read(at, &mut bytes[done..done + now]));
    }

    fn write(&self, start: usize, bytes: &[u8]) {
        self.pieces(start, bytes.len(), |loan, at, done, now| loan.write(at, &bytes[done..done + now]));
    }

    fn clear(&self, start: usize, len: usize) {
        self.pieces(start, len, |loan, at, _, now| loan.clear(at, now));
    }

    fn cover(&self, bytes: usize) -> Result<(), Status> {
        if bytes <= self.len { Ok(()) } else { Err(Status::DATA_SGL_LENGTH_INVALID.final_()) }
    }

    fn may_exceed(&self) -> bool {
        false
    }
}
