//! The memory of a command's data. The host owns it in both directions, as in NVMe: a drive reads it for a write and
//! writes it for a read.
//!
//! A drive sees a [`HostMem`], a part of a [`Memory`], which it accesses by copies.
//!
//! | file | what |
//! |---|---|
//! | `mod` | `HostMem`, the `Memory` trait, and the simplest memory: a buffer of this process |
//! | `dma` | the `Dma` trait: a host's memory by address |
//! | `guest` | a `Dma` over regions that are mapped and unmapped at any time |
//! | `mapping` | a part of a file shared with another process (Linux) |
//! | `data_pointer` | a `Memory` that a command describes by PRPs or an SGL |
//! | `kept` | data pointers of one queue, for reuse |
//! | `pieces` | a large buffer of this process, allocated piece by piece |
//! | `prp`, `sgl` | walking PRPs and SGLs |
//! | `listed` | a buffer of this process with lists |
//! | `remote` | staged data of memory that only the host reaches |
//!
//! Separate metadata has its own pointer and its own memory; so has a list of addresses.

pub mod data_pointer;
pub mod dma;
#[cfg(target_os = "linux")]
pub mod guest;
mod kept;
mod listed;
#[cfg(target_os = "linux")]
pub mod mapping;
mod pieces;
mod prp;
mod remote;
mod sgl;

use std::cell::RefCell;
use std::rc::Rc;

use nandscape_wire_nvme::{Status, SubmissionEntry};

pub use data_pointer::DataPointer;
pub use dma::{Access, Answered, Ask, Dma, DmaFault, Purpose};
#[cfg(target_os = "linux")]
pub use guest::GuestMemory;
pub use kept::DataPointers;
pub use listed::Listed;
#[cfg(target_os = "linux")]
pub use mapping::Mapping;
pub use remote::{LONGEST_ASK, Need};

use pieces::Pieces;

/// Called when a host has answered all requests.
pub type Settled = Box<dyn FnOnce()>;

/// Memory of a host. No code holds references into it: it may change or disappear at any time, and is copied.
///
/// A copy that fails is recorded, and the command continues; the code that completes the command calls
/// [`Memory::has_failed`] once. So copies deep inside a drive have no error to pass on.
pub trait Memory {
    /// The most bytes that it may hold.
    fn max_len(&self) -> usize;

    /// Copies out, from `start` on. Where that fails, `bytes` is filled with zeros.
    fn read(&self, start: usize, bytes: &mut [u8]);

    /// Copies in, from `start` on.
    fn write(&self, start: usize, bytes: &[u8]);

    /// Fills `len` bytes from `start` on with zeros.
    fn clear(&self, start: usize, len: usize);

    /// Checks that the first `bytes` can be reached now.
    ///
    /// # Errors
    /// The command's status if its memory is too short or its description is invalid.
    fn cover(&self, bytes: usize) -> Result<(), Status>;

    /// Whether a copy has failed.
    fn has_failed(&self) -> bool {
        false
    }

    /// The memory of the command's metadata, at the Metadata Pointer (MPTR); `None` if the host has no such pointer.
    ///
    /// # Errors
    /// The command's status if its pointer is invalid.
    fn metadata(&self, _pointer: u64) -> Result<Option<HostMem>, Status> {
        Ok(None)
    }

    /// A list to be read, at the address in a field of the command; `None` if the host has no such addresses.
    ///
    /// # Errors
    /// The command's status if its address is invalid.
    fn list(&self, _pointer: u64) -> Result<Option<HostMem>, Status> {
        Ok(None)
    }

    /// Whether a command may move less than this memory holds. Over Fabrics it may not, unless Identify Controller
    /// permits it (SGLS bit 18).
    fn may_exceed(&self) -> bool {
        true
    }

    /// Whether all copies succeeded and nothing is needed from the host.
    fn is_settled(&self) -> bool {
        true
    }

    /// What is needed from the host.
    fn need(&self) -> Need {
        Need::Nothing
    }

    /// Requests what is needed from the host, and calls `settled` when the host has answered. From now on the memory
    /// may hold data that the host does not have yet.
    fn settle(self: Rc<Self>, settled: Settled) {
        settled();
    }

    /// The command ends: pending requests are not sent, and unsent written data is dropped.
    fn give_up(&self) {}
}

/// A buffer of this process, shared by reference counting.
pub type Buffer = Rc<RefCell<Vec<u8>>>;

impl Memory for RefCell<Vec<u8>> {
    fn max_len(&self) -> usize {
        self.borrow().len()
    }

    fn read(&self, start: usize, bytes: &mut [u8]) {
        bytes.copy_from_slice(&self.borrow()[start..start + bytes.len()]);
    }

    fn write(&self, start: usize, bytes: &[u8]) {
        self.borrow_mut()[start..start + bytes.len()].copy_from_slice(bytes);
    }

    fn clear(&self, start: usize, len: usize) {
        self.borrow_mut()[start..start + len].fill(0);
    }

    fn cover(&self, bytes: usize) -> Result<(), Status> {
        if bytes <= self.borrow().len() { Ok(()) } else { Err(Status::DATA_SGL_LENGTH_INVALID.final_()) }
    }
}

/// The data of a command that arrived as a message: a buffer of exactly its length.
pub struct MessageData(RefCell<Vec<u8>>);

impl Memory for MessageData {
    fn max_len(&self) -> usize {
        self.0.max_len()
    }

    fn read(&self, start: usize, bytes: &mut [u8]) {
        self.0.read(start, bytes);
    }

    fn write(&self, start: usize, bytes: &[u8]) {
        self.0.write(start, bytes);
    }

    fn clear(&self, start: usize, len: usize) {
        self.0.clear(start, len);
    }

    fn cover(&self, bytes: usize) -> Result<(), Status> {
        self.0.cover(bytes)
    }

    fn may_exceed(&self) -> bool {
        false
    }
}

/// The data of one command: nothing (drives that keep no data need none), or a part of a memory.
#[derive(Clone, Default)]
pub struct HostMem(Option<Slice>);

/// A part of a memory.
#[derive(Clone)]
struct Slice {
    memory: Rc<dyn Memory>,
    start: u32,
    len: u32,
}

// It moves with every command, also one without data.
const _: () = assert!(size_of::<HostMem>() <= 24);

impl HostMem {
    /// No data.
    pub fn none() -> HostMem {
        HostMem(None)
    }

    /// The whole of a buffer.
    pub fn whole(buffer: &Buffer) -> HostMem {
        HostMem::over(buffer.clone())
    }

    /// The whole of a memory.
    ///
    /// # Panics
    /// When it is 4 GiB or larger.
    pub fn over(memory: Rc<dyn Memory>) -> HostMem {
        let len = u32::try_from(memory.max_len()).expect("a command's data is shorter than 4 GiB");
        HostMem(Some(Slice { memory, start: 0, len }))
    }

    /// A new buffer that holds `bytes`.
    pub fn from_bytes(bytes: &[u8]) -> HostMem {
        HostMem::whole(&Rc::new(RefCell::new(bytes.to_vec())))
    }

    /// A new buffer of `len` zeros.
    pub fn zeroed(len: usize) -> HostMem {
        HostMem::whole(&Rc::new(RefCell::new(vec![0; len])))
    }

    /// A new buffer of `len` zeros, allocated in pieces as they are written.
    pub fn in_pieces(len: usize) -> HostMem {
        HostMem::over(Rc::new(Pieces::zeroed(len)))
    }

    /// The data of a command that arrived as a message.
    pub fn of_message(bytes: Vec<u8>) -> HostMem {
        HostMem::over(Rc::new(MessageData(RefCell::new(bytes))))
    }

    /// Whether there is no data.
    pub fn is_none(&self) -> bool {
        self.0.is_none()
    }

    /// Length in bytes; an upper limit for PRPs, which have no length.
    pub fn len(&self) -> usize {
        self.0.as_ref().map_or(0, |slice| slice.len as usize)
    }

    /// Whether the length is zero.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Checks that the first `bytes` can be reached now. Without data, there is nothing to check.
    ///
    /// # Errors
    /// Data SGL Length Invalid if the memory is shorter; if PRPs or an SGL describe it, the status of their error.
    pub fn cover(&self, bytes: usize) -> Result<(), Status> {
        match &self.0 {
            None => Ok(()),
            Some(slice) if bytes <= slice.len as usize => slice.memory.cover(slice.start as usize + bytes),
            Some(_) => Err(Status::DATA_SGL_LENGTH_INVALID.final_()),
        }
    }

    /// As [`HostMem::cover`], for a command that moves exactly `bytes`. Also rejects longer memory if the transport
    /// requires an exact length.
    ///
    /// # Errors
    /// Those of [`HostMem::cover`], and Data SGL Length Invalid if the memory is longer than permitted.
    #[inline]
    pub fn fits(&self, bytes: usize) -> Result<(), Status> {
        match &self.0 {
            Some(slice) if bytes < slice.len as usize && !slice.memory.may_exceed() => {
                Err(Status::DATA_SGL_LENGTH_INVALID.final_())
            }
            _ => self.cover(bytes),
        }
    }

    /// As [`HostMem::fits`], for commands that need data.
    ///
    /// # Errors
    /// Those of [`HostMem::fits`], and Data SGL Length Invalid without data.
    pub fn must_fit(&self, bytes: usize) -> Result<(), Status> {
        if self.is_none() { Err(Status::DATA_SGL_LENGTH_INVALID.final_()) } else { self.fits(bytes) }
    }

    /// As [`HostMem::cover`], for commands that need data.
    ///
    /// # Errors
    /// Those of [`HostMem::cover`], and Data SGL Length Invalid without data.
    pub fn must_cover(&self, bytes: usize) -> Result<(), Status> {
        if self.is_none() { Err(Status::DATA_SGL_LENGTH_INVALID.final_()) } else { self.cover(bytes) }
    }

    /// Whether a copy to or from this memory has failed. The command then fails with Data Transfer Error.
    pub fn has_failed(&self) -> bool {
        self.0.as_ref().is_some_and(|slice| slice.memory.has_failed())
    }

    /// The memory of a command's metadata, for the command whose data is here; `None` if the host has no metadata
    /// pointer.
    ///
    /// # Errors
    /// The command's status if its pointer is invalid.
    pub fn metadata(&self, entry: &SubmissionEntry) -> Result<Option<HostMem>, Status> {
        match &self.0 {
            Some(slice) => slice.memory.metadata(entry.metadata.get()),
            None => Ok(None),
        }
    }

    /// A list of addresses or the like at the address in a field of the command whose data is here; `None` if the
    /// host has no such pointers.
    ///
    /// # Errors
    /// The command's status if its address is invalid.
    pub fn list(&self, pointer: u64) -> Result<Option<HostMem>, Status> {
        self.0.as_ref().map_or(Ok(None), |slice| slice.memory.list(pointer))
    }

    /// Whether all copies succeeded and nothing is needed from the host.
    #[inline]
    pub fn is_settled(&self) -> bool {
        self.0.as_ref().is_none_or(|slice| slice.memory.is_settled())
    }

    /// What is needed from the host: see [`Memory::need`].
    pub fn need(&self) -> Need {
        self.0.as_ref().map_or(Need::Nothing, |slice| slice.memory.need())
    }

    /// Requests it from the host: see [`Memory::settle`].
    pub fn settle(&self, settled: Settled) {
        match &self.0 {
            Some(slice) => slice.memory.clone().settle(settled),
            None => settled(),
        }
    }

    /// The command ends early: see [`Memory::give_up`].
    pub fn give_up(&self) {
        if let Some(slice) = &self.0 {
            slice.memory.give_up();
        }
    }

    /// The part of `len` bytes from `start` on, sharing the same memory. A part of no data is no data.
    ///
    /// # Panics
    /// When the part is not inside.
    pub fn part(&self, start: usize, len: usize) -> HostMem {
        HostMem(self.range(start, len).map(|slice| Slice {
            memory: slice.memory.clone(),
            start: slice.start + start as u32,
            len: len as u32,
        }))
    }

    /// Copies into host memory, from `start` on. Without data, nothing happens.
    ///
    /// # Panics
    /// When there is data and `bytes` does not fit.
    pub fn write(&self, start: usize, bytes: &[u8]) {
        if let Some(slice) = self.range(start, bytes.len()) {
            slice.memory.write(slice.start as usize + start, bytes);
        }
    }

    /// Fills `len` bytes from `start` on with zeros. Without data, nothing happens.
    ///
    /// # Panics
    /// When there is data and the range is not inside.
    pub fn clear(&self, start: usize, len: usize) {
        if let Some(slice) = self.range(start, len) {
            slice.memory.clear(slice.start as usize + start, len);
        }
    }

    /// Copies out of host memory, from `start` on. Without data, `bytes` is left as it is.
    ///
    /// # Panics
    /// When there is data and the range is not inside.
    pub fn read(&self, start: usize, bytes: &mut [u8]) {
        if let Some(slice) = self.range(start, bytes.len()) {
            slice.memory.read(slice.start as usize + start, bytes);
        }
    }

    /// All of it as one vector.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.len()];
        self.read(0, &mut bytes);
        bytes
    }

    /// The slice, which holds the range.
    fn range(&self, start: usize, len: usize) -> Option<&Slice> {
        let slice = self.0.as_ref()?;
        let inside = start.checked_add(len).is_some_and(|end| end <= slice.len as usize);
        assert!(inside, "{len} bytes at {start} are beyond the {} bytes of host memory", slice.len);
        Some(slice)
    }
}

impl std::fmt::Debug for HostMem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.is_none() {
            true => f.write_str("HostMem(none)"),
            false => write!(f, "HostMem({} bytes)", self.len()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn parts_of_parts_are_views_of_the_same_bytes(
            mut flat in prop::collection::vec(any::<u8>(), 0..40), cuts in prop::array::uniform4(0usize..40), value in any::<u8>(),
        ) {
            let mem = HostMem::from_bytes(&flat);
            prop_assert!(mem.cover(flat.len()).is_ok() && mem.cover(flat.len() + 1).is_err());
            let range = |a: usize, b: usize, len: usize| (a.min(b).min(len), a.max(b).min(len));
            let (start, end) = range(cuts[0], cuts[1], flat.len());
            let outer = mem.part(start, end - start);
            let (from, to) = range(cuts[2], cuts[3], outer.len());
            let inner = outer.part(from, to - from);
            prop_assert_eq!(inner.to_vec(), flat[start + from..start + to].to_vec());
            inner.write(0, &vec![value; to - from]);
            flat[start + from..start + to].fill(value);
            prop_assert_eq!(mem.to_vec(), flat);
        }
    }

    #[test]
    fn no_memory_takes_and_gives_nothing() {
        let none = HostMem::none();
        none.write(0, &[1, 2, 3]);
        let mut bytes = [7; 2];
        none.read(100, &mut bytes);
        assert_eq!((bytes, none.part(5, 5).is_none()), ([7; 2], true));
        assert!(none.cover(1 << 20).is_ok() && !none.has_failed());
    }

    #[test]
    fn data_of_a_message_is_as_long_as_what_its_command_moves() {
        let (message, longer) = (HostMem::of_message(vec![0; 1_024]), HostMem::zeroed(1_024));
        let fits = |mem: &HostMem, bytes| mem.fits(bytes).map_err(Status::meaning);
        assert_eq!((fits(&message, 1_024), fits(&longer, 1_024), fits(&longer, 512)), (Ok(()), Ok(()), Ok(())));
        assert_eq!(fits(&message, 512), Err(Status::DATA_SGL_LENGTH_INVALID));
        assert_eq!(fits(&message, 1_025), Err(Status::DATA_SGL_LENGTH_INVALID));
        // A command in parts, and one that may leave a part of its memory unused.
        assert!(message.part(0, 512).fits(512).is_ok() && message.cover(512).is_ok());
        assert!(HostMem::none().fits(512).is_ok() && HostMem::none().must_fit(512).is_err());
    }
}
