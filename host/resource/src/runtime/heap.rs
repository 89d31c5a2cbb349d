//! The two generations, and the times of their collections.
//!
//! Allocations of requests in service are live, and the program keeps a share of the allocations of ended ones. A
//! young collection copies live data to the old generation. The program eventually drops the data there: all of the
//! old generation beyond `kept` is garbage, which a full collection frees.

use nandscape_sim::Span;

/// See the file. Sizes are in bytes.
#[derive(Clone, PartialEq, Debug)]
pub struct HeapSpec {
    /// The young generation.
    pub young: u64,
    /// The old generation.
    pub old: u64,
    /// Bytes that the program keeps in the old generation.
    pub kept: u64,
    /// The share of allocations that outlives its request.
    pub outlives: f64,
    /// The least that a collection takes.
    pub pause: Span,
    /// Time to copy or mark a MiB of live data.
    pub mib: Span,
    /// The most by which a collection's time varies, as a share of it.
    pub jitter: f64,
}

impl Default for HeapSpec {
    /// 64 MiB and 512 MiB, of which 256 MiB are kept; 5% outlives its request; 1 ms, and 1 ms a MiB, 10% less or more.
    fn default() -> HeapSpec {
        HeapSpec {
            young: 64 << 20,
            old: 512 << 20,
            kept: 256 << 20,
            outlives: 0.05,
            pause: Span::from_ms(1),
            mib: Span::from_ms(1),
            jitter: 0.1,
        }
    }
}

/// Counters of collections.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct Collections {
    /// Of the young generation.
    pub young: u64,
    /// Of the whole heap.
    pub full: u64,
    /// Time in which all threads were stopped.
    pub stopped: Span,
}

/// Bytes of the generations.
pub(super) struct Heap {
    pub(super) spec: HeapSpec,
    /// Allocated since the last collection.
    young: u64,
    /// Of that, bytes that have outlived their request.
    outlived: u64,
    /// Allocated by requests in service.
    in_service: u64,
    old: u64,
}

impl Heap {
    pub(super) fn new(spec: HeapSpec) -> Heap {
        let old = spec.kept;
        Heap { spec, young: 0, outlived: 0, in_service: 0, old }
    }

    /// Room of the young generation.
    pub(super) fn free(&self) -> u64 {
        self.spec.young.saturating_sub(self.young)
    }

    /// Allocates for a request, if there is room.
    pub(super) fn allocate(&mut self, bytes: u64) -> bool {
        let bytes = bytes.min(self.spec.young);
        if bytes > self.free() {
            return false;
        }
        self.young += bytes;
        self.in_service += bytes;
        true
    }

    /// A request that has allocated `bytes` has ended.
    pub(super) fn ended(&mut self, bytes: u64) {
        let bytes = bytes.min(self.spec.young);
        self.in_service = self.in_service.saturating_sub(bytes);
        self.outlived += (bytes as f64 * self.spec.outlives) as u64;
    }

    /// Bytes that a young collection would copy.
    fn live(&self) -> u64 {
        (self.outlived + self.in_service).min(self.young)
    }

    /// Whether the old generation has no room for that.
    pub(super) fn is_full(&self) -> bool {
        self.old + self.live() > self.spec.old
    }

    /// Bytes that a collection starting now would copy and mark.
    pub(super) fn work(&self) -> u64 {
        if self.is_full() { self.live() + self.spec.kept } else { self.live() }
    }

    /// How long it would take, on average.
    pub(super) fn takes(&self) -> Span {
        self.spec.pause + Span::from_ns((self.work() as f64 / f64::from(1 << 20) * self.spec.mib.ns() as f64) as u64)
    }

    /// Collects. Whether it was the whole heap.
    pub(super) fn collect(&mut self) -> bool {
        let is_full = self.is_full();
        if is_full {
            self.old = self.spec.kept;
        }
        self.old = (self.old + self.live()).min(self.spec.old);
        self.young = 0;
        self.outlived = 0;
        is_full
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_collection_copies_what_is_live_and_a_full_one_frees_what_is_not_kept() {
        let mib = 1 << 20;
        let spec = HeapSpec { young: 10 * mib, old: 12 * mib, kept: 8 * mib, outlives: 0.5, ..HeapSpec::default() };
        let mut heap = Heap::new(spec);
        assert!(heap.allocate(4 * mib) && heap.allocate(4 * mib) && !heap.allocate(4 * mib));
        heap.ended(4 * mib);
        // 2 MiB have outlived their request, 4 belong to one in service: they do not fit, nor would 2 more.
        assert_eq!((heap.work(), heap.is_full()), (6 * mib + 8 * mib, true));
        assert_eq!(heap.takes(), Span::from_ms(15));
        heap.ended(4 * mib);
        assert_eq!((heap.work(), heap.is_full()), (4 * mib, false));
        assert!(!heap.collect() && heap.free() == 10 * mib);
        assert!(heap.allocate(2 * mib));
        heap.ended(2 * mib);
        assert_eq!((heap.work(), heap.collect(), heap.is_full()), (9 * mib, true, false));
        // A request larger than the young generation takes all of it.
        assert!(heap.allocate(100 * mib) && heap.free() == 0);
        heap.ended(100 * mib);
        assert_eq!(heap.work(), 8 * mib + 5 * mib);
    }
}
