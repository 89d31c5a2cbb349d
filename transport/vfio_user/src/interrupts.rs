//! MSI-X vectors as in vfio: the client connects each with an event descriptor and masks it by messages; the client
//! owns the table in BAR4. An interrupt of a masked or unconnected vector stays pending.
//!
//! Left out: interrupt pins and MSI.

use std::os::fd::{AsRawFd as _, OwnedFd};

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};

/// The vectors of a function.
pub(crate) struct Interrupts {
    vectors: Vec<Vector>,
    /// Vectors to be signalled.
    raised: Vec<u16>,
}

#[derive(Default)]
struct Vector {
    event: Option<Event>,
    masked: bool,
    pending: bool,
}

/// An event descriptor of the client.
pub(crate) struct Event(OwnedFd);

impl Event {
    /// Takes a descriptor if it is an event descriptor: writing to anything else could block, or write to a file.
    pub(crate) fn new(descriptor: OwnedFd) -> Option<Event> {
        let link = std::fs::read_link(format!("/proc/self/fd/{}", descriptor.as_raw_fd())).ok()?;
        if link.as_os_str() != "anon_inode:[eventfd]" {
            return None;
        }
        // A counter that is full must not block the reactor.
        let flags = fcntl_getfl(&descriptor).ok()?;
        fcntl_setfl(&descriptor, flags | OFlags::NONBLOCK).ok()?;
        Some(Event(descriptor))
    }

    fn signal(&self) {
        // It fails when the counter is full; then the client has not taken the last one yet.
        let _ = rustix::io::write(&self.0, &1u64.to_ne_bytes());
    }
}

impl Interrupts {
    /// Unconnected vectors.
    pub(crate) fn new(vectors: u16) -> Interrupts {
        Interrupts { vectors: (0..vectors).map(|_| Vector::default()).collect(), raised: Vec::new() }
    }

    /// An interrupt of the controller: it is sent with the next [`Interrupts::send`], once however often it was raised.
    pub(crate) fn raise(&mut self, number: u16) {
        let Some(vector) = self.vectors.get_mut(usize::from(number)) else { return };
        if !std::mem::replace(&mut vector.pending, true) && vector.is_open() {
            self.raised.push(number);
        }
    }

    /// Signals interrupts raised since the last time.
    pub(crate) fn send(&mut self) {
        for number in self.raised.drain(..) {
            let vector = &mut self.vectors[usize::from(number)];
            if let (Some(event), false) = (&vector.event, vector.masked) {
                event.signal();
                vector.pending = false;
            }
        }
    }

    /// Connects a vector, or disconnects it. A pending interrupt is signalled at once.
    pub(crate) fn connect(&mut self, number: u16, event: Option<Event>) {
        self.vectors[usize::from(number)].event = event;
        self.deliver(number);
    }

    /// Masks a vector, or unmasks it and then signals a pending interrupt.
    pub(crate) fn mask(&mut self, number: u16, masked: bool) {
        self.vectors[usize::from(number)].masked = masked;
        self.deliver(number);
    }

    fn deliver(&mut self, number: u16) {
        let vector = &self.vectors[usize::from(number)];
        if vector.pending && vector.is_open() && !self.raised.contains(&number) {
            self.raised.push(number);
        }
        self.send();
    }

    /// Disconnects all of them.
    pub(crate) fn disconnect(&mut self) {
        for vector in &mut self.vectors {
            vector.event = None;
        }
    }

    /// A reset of the function: nothing is pending or masked. The descriptors are the client's, and stay.
    pub(crate) fn reset(&mut self) {
        self.raised.clear();
        for vector in &mut self.vectors {
            (vector.masked, vector.pending) = (false, false);
        }
    }

    /// The pending bits, in words of 64 vectors (PCIe Base 7.7.2.9).
    pub(crate) fn pending(&self) -> Vec<u8> {
        let word =
            |vectors: &[Vector]| vectors.iter().rev().fold(0u64, |bits, vector| bits << 1 | u64::from(vector.pending));
        self.vectors.chunks(64).flat_map(|vectors| word(vectors).to_le_bytes()).collect()
    }
}

impl Vector {
    fn is_open(&self) -> bool {
        self.event.is_some() && !self.masked
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use rustix::event::{EventfdFlags, eventfd};

    use super::*;

    fn event() -> (Event, OwnedFd) {
        let ours = eventfd(0, EventfdFlags::NONBLOCK).unwrap();
        let theirs = ours.try_clone().unwrap();
        (Event::new(theirs).unwrap(), ours)
    }

    /// The interrupts signalled since the last call.
    fn count(event: &OwnedFd) -> u64 {
        let mut bytes = [0; 8];
        rustix::io::read(event, &mut bytes).map_or(0, |_| u64::from_ne_bytes(bytes))
    }

    #[test]
    fn interrupts_of_one_turn_are_one_signal() {
        let mut interrupts = Interrupts::new(3);
        let (event, ours) = event();
        interrupts.connect(1, Some(event));
        [1, 1, 2, 9].into_iter().for_each(|vector| interrupts.raise(vector));
        assert_eq!(count(&ours), 0);
        interrupts.send();
        assert_eq!((count(&ours), interrupts.pending()), (1, [0b100, 0, 0, 0, 0, 0, 0, 0].to_vec()));
        interrupts.raise(1);
        interrupts.send();
        assert_eq!(count(&ours), 1);
    }

    #[test]
    fn what_is_masked_or_not_connected_stays_pending() {
        let mut interrupts = Interrupts::new(70);
        let (event, ours) = event();
        interrupts.raise(69);
        interrupts.send();
        assert_eq!(interrupts.pending()[8], 0b10_0000);
        interrupts.connect(69, Some(event));
        assert_eq!(count(&ours), 1, "it was pending");
        interrupts.mask(69, true);
        interrupts.raise(69);
        interrupts.send();
        assert_eq!((count(&ours), interrupts.pending()[8]), (0, 0b10_0000));
        interrupts.mask(69, false);
        assert_eq!((count(&ours), interrupts.pending()[8]), (1, 0));
        // Masked between raising and sending.
        interrupts.raise(69);
        interrupts.mask(69, true);
        interrupts.send();
        assert_eq!(count(&ours), 0);
        interrupts.reset();
        assert_eq!((count(&ours), interrupts.pending()), (0, vec![0; 16]));
    }

    #[test]
    fn only_event_descriptors_are_taken_and_a_full_one_does_not_block() {
        let (event, ours) = event();
        rustix::io::write(&ours, &(u64::MAX - 1).to_ne_bytes()).unwrap();
        let mut interrupts = Interrupts::new(1);
        interrupts.connect(0, Some(event));
        interrupts.raise(0);
        interrupts.send();
        assert_eq!(count(&ours), u64::MAX - 1);
        let (socket, _other) = std::os::unix::net::UnixStream::pair().unwrap();
        assert!(Event::new(socket.into()).is_none());
        assert!(Event::new(File::open("/dev/null").unwrap().into()).is_none());
    }
}
