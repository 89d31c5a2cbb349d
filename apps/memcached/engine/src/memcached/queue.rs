//! Bytes that are appended at the end and taken from the beginning. Taking a few does not move the rest each time.

/// Memory that an empty queue may keep.
const KEPT: usize = 4 << 10;
/// The most memory that is taken ahead of bytes.
const MOST_AHEAD: usize = 32 << 10;

/// See the file.
#[derive(Default)]
pub(super) struct Queue {
    bytes: Vec<u8>,
    /// Bytes at the beginning that were taken.
    taken: usize,
}

impl Queue {
    /// The bytes.
    pub(super) fn rest(&self) -> &[u8] {
        &self.bytes[self.taken..]
    }

    pub(super) fn len(&self) -> usize {
        self.bytes.len() - self.taken
    }

    /// Bytes of memory.
    pub(super) fn held(&self) -> usize {
        self.bytes.capacity()
    }

    pub(super) fn append(&mut self, bytes: &[u8]) {
        if self.bytes.len() + bytes.len() > self.bytes.capacity() {
            self.bytes.drain(..std::mem::take(&mut self.taken));
            // Little more than it needs: what it holds is bounded.
            let ahead = self.bytes.len().min(MOST_AHEAD);
            self.bytes.reserve_exact(bytes.len().max(ahead));
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// Takes the first bytes.
    pub(super) fn pass(&mut self, count: usize) {
        self.taken += count;
        if self.len() == 0 {
            self.taken = 0;
            match self.bytes.capacity() > KEPT {
                true => self.bytes = Vec::new(),
                false => self.bytes.clear(),
            }
        } else if self.taken > self.bytes.len() / 2 {
            self.bytes.drain(..std::mem::take(&mut self.taken));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_leave_in_their_order_and_an_empty_queue_holds_little() {
        let (mut queue, mut taken) = (Queue::default(), Vec::new());
        for number in 0..100u8 {
            queue.append(&[number; 1_000]);
            let count = 1 + usize::from(number) * 7 % 900;
            taken.extend_from_slice(&queue.rest()[..count]);
            queue.pass(count);
        }
        assert!(queue.held() >= queue.len());
        taken.extend_from_slice(queue.rest());
        queue.pass(queue.len());
        assert!(queue.held() <= KEPT && queue.rest().is_empty());
        assert_eq!(taken, (0..100u8).flat_map(|number| [number; 1_000]).collect::<Vec<u8>>());
    }
}
