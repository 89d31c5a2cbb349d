//! Memory for the data of clients: buffers, lent from a pool, within a budget that all clients of a reactor share.
//!
//! A client first requests bytes ([`Share::grant`]), then takes buffers ([`Grant::lend`]). Each client always has
//! [`GUARANTEED`] bytes, or the bytes that its transport guarantees it ([`Share::guarantee`]), so that no client can
//! shut out the others. Beyond that, clients wait in line. A buffer counts until its last user drops it: the drive
//! may still work on it after its client has disconnected.
//!
//! A buffer still holds its last contents, so its user must fill all of it, or request one of zeros
//! ([`Grant::lend_zeros`]).

use std::cell::{Cell, Ref, RefCell, RefMut};
use std::collections::VecDeque;
use std::rc::Rc;

use nandscape_drive::mem::Memory;
use nandscape_wire_nvme::Status;

use crate::effort::{Effort, Efforts};
use crate::port::ConnectionId;

/// The default budget of a reactor: a small part of a machine that keeps drives in memory, and many times the limit
/// of a client.
pub(crate) const BUDGET: usize = 1 << 30;
/// Bytes that a client may always hold, unless its transport needs more.
pub const GUARANTEED: usize = 1 << 20;
/// The largest buffer.
pub const LARGEST: usize = 256 << 10;
/// The smallest buffer, as it counts.
const SMALLEST: usize = 4 << 10;
/// Sizes of buffers: the powers of two between the two.
const SIZES: usize = (LARGEST / SMALLEST).ilog2() as usize + 1;
/// Bytes of unused buffers that are kept for the next user. Buffers beyond are returned to the system.
const KEPT: usize = 64 << 20;

/// The memory of all clients.
pub(crate) struct Pool {
    budget: usize,
    /// Bytes that clients hold.
    used: Cell<usize>,
    /// Clients that wait for bytes, and how many they want, first come, first served.
    line: RefCell<VecDeque<(ConnectionId, usize)>>,
    /// The client that was first in line and may take its bytes now.
    invited: Cell<Option<ConnectionId>>,
    unused: RefCell<Unused>,
    /// The share of a turn for commands that move no data.
    efforts: Efforts,
}

/// Buffers not in use.
#[derive(Default)]
struct Unused {
    bytes: usize,
    by_size: [Vec<Vec<u8>>; SIZES],
}

/// A client's account with the pool.
pub struct Share(Rc<Account>);

struct Account {
    pool: Rc<Pool>,
    client: ConnectionId,
    /// Bytes that it may always hold.
    guaranteed: Cell<usize>,
    /// Bytes that it was granted and that are not free again.
    held: Cell<usize>,
    effort: Effort,
}

/// Bytes for which buffers can be taken. The rest is given back when this is dropped.
pub struct Grant {
    account: Rc<Account>,
    left: usize,
}

/// A buffer in use; it returns to the pool when the last user drops it.
pub struct Loan {
    bytes: RefCell<Vec<u8>>,
    account: Rc<Account>,
}

/// Bytes that a buffer of `len` bytes counts as.
const fn counted(len: usize) -> usize {
    if len <= SMALLEST { SMALLEST } else { len.next_power_of_two() }
}

/// The index of a size among [`SIZES`].
const fn size_index(counted: usize) -> usize {
    (counted / SMALLEST).ilog2() as usize
}

impl Pool {
    /// A pool of at most `budget` bytes.
    pub(crate) fn new(budget: usize) -> Rc<Pool> {
        Rc::new(Pool {
            budget,
            used: Cell::new(0),
            line: RefCell::default(),
            invited: Cell::new(None),
            unused: RefCell::default(),
            efforts: Efforts::default(),
        })
    }

    /// An account for a client, which holds nothing yet.
    pub(crate) fn share(self: &Rc<Pool>, client: ConnectionId) -> Share {
        let guaranteed = Cell::new(GUARANTEED);
        Share(Rc::new(Account {
            pool: self.clone(),
            client,
            guaranteed,
            held: Cell::new(0),
            effort: Effort::default(),
        }))
    }

    /// A turn of the loop begins, perhaps after a sleep.
    pub(crate) fn begin_turn(&self, slept: bool) {
        self.efforts.turn(slept);
    }

    /// Whether there are bytes for the first in line.
    pub(crate) fn can_invite(&self) -> bool {
        self.line.borrow().front().is_some_and(|(_, bytes)| self.fits(*bytes))
    }

    /// Removes the first client in line, if there are bytes for it. It may take them until the next call.
    pub(crate) fn invite(&self) -> Option<ConnectionId> {
        let invited = if self.can_invite() { self.line.borrow_mut().pop_front() } else { None };
        self.invited.set(invited.map(|(client, _)| client));
        self.invited.get()
    }

    fn fits(&self, bytes: usize) -> bool {
        self.used.get() + bytes <= self.budget
    }

    /// A buffer of `len` bytes, all zero if so asked; `None` when the system has no memory.
    fn take(&self, len: usize, zeros: bool) -> Option<Vec<u8>> {
        let size = counted(len);
        let mut unused = self.unused.borrow_mut();
        let mut buffer = match unused.by_size[size_index(size)].pop() {
            Some(mut buffer) => {
                unused.bytes -= size;
                if zeros {
                    // All bytes are then new ones, each of which is set once.
                    buffer.clear();
                }
                buffer
            }
            None => {
                let mut buffer = Vec::new();
                buffer.try_reserve_exact(size).ok()?;
                buffer
            }
        };
        buffer.resize(len, 0);
        Some(buffer)
    }

    fn put_back(&self, buffer: Vec<u8>) {
        let size = counted(buffer.len());
        let mut unused = self.unused.borrow_mut();
        if unused.bytes + size <= KEPT {
            unused.bytes += size;
            unused.by_size[size_index(size)].push(buffer);
        }
    }
}

impl Share {
    /// Bytes that the client holds.
    pub fn held(&self) -> usize {
        self.0.held.get()
    }

    /// Whether the client may begin a command in this turn that changes or reads more than it moves.
    pub fn may_begin(&self) -> bool {
        self.0.effort.may_begin(&self.0.pool.efforts)
    }

    /// Such a command begins, and costs this ([`Intake::cost`](crate::Intake::cost)).
    pub fn begin(&self, cost: u64) {
        self.0.effort.begin(cost, &self.0.pool.efforts);
    }

    /// Guarantees buffers of `len` bytes, if that is more than [`GUARANTEED`]: a client whose commands hold memory
    /// for all of their data needs as much as its longest command.
    pub fn guarantee(&self, len: usize) {
        self.0.guaranteed.set(GUARANTEED.max(total(len)));
    }

    /// Whether [`Share::grant`] would grant buffers of `len` bytes now.
    pub fn has_room(&self, len: usize) -> bool {
        let (pool, bytes) = (&self.0.pool, total(len));
        let is_next = pool.invited.get() == Some(self.0.client) || pool.line.borrow().is_empty();
        self.held() + bytes <= self.0.guaranteed.get() || (is_next && pool.fits(bytes))
    }

    /// The right to buffers of `len` bytes in all, none larger than [`LARGEST`] and all but the last of that size. If
    /// there is no room, the client is in line from now on.
    pub fn grant(&self, len: usize) -> Option<Grant> {
        let (Account { pool, client, held, .. }, bytes) = (&*self.0, total(len));
        let granted = self.has_room(len);
        let mut line = pool.line.borrow_mut();
        let place = line.iter().position(|(other, _)| other == client);
        match (granted, place) {
            (false, None) => line.push_back((*client, bytes)),
            (false, Some(place)) => line[place].1 = bytes,
            (true, Some(place)) => drop(line.remove(place)),
            (true, None) => {}
        }
        granted.then(|| {
            pool.invited.set(pool.invited.get().filter(|invited| invited != client));
            held.set(held.get() + bytes);
            pool.used.set(pool.used.get() + bytes);
            Grant { account: self.0.clone(), left: bytes }
        })
    }
}

impl Share {
    /// A buffer of `len` bytes even if no room is free, for data ahead of other data that the client's own buffers
    /// wait for; the caller limits the amount. `None` when the system has no memory for it.
    pub fn overdraw(&self, len: usize) -> Option<Rc<Loan>> {
        let Account { pool, held, .. } = &*self.0;
        let bytes = RefCell::new(pool.take(len, false)?);
        held.set(held.get() + counted(len));
        pool.used.set(pool.used.get() + counted(len));
        Some(Rc::new(Loan { bytes, account: self.0.clone() }))
    }
}

impl Drop for Share {
    /// The client leaves the line, and pays no more.
    fn drop(&mut self) {
        self.0.effort.end(&self.0.pool.efforts);
        self.0.pool.line.borrow_mut().retain(|(client, _)| *client != self.0.client);
    }
}

/// Bytes that buffers of `len` bytes in all count as.
const fn total(len: usize) -> usize {
    let rest = len % LARGEST;
    len - rest + if rest > 0 { counted(rest) } else { 0 }
}

impl Grant {
    /// A buffer of `len` bytes; `None` when the system has no memory for it.
    ///
    /// # Panics
    /// When fewer bytes were granted.
    pub fn lend(&mut self, len: usize) -> Option<Rc<Loan>> {
        self.lend_of(len, false)
    }

    /// As [`Grant::lend`]; all bytes are zero.
    ///
    /// # Panics
    /// When fewer bytes were granted.
    pub fn lend_zeros(&mut self, len: usize) -> Option<Rc<Loan>> {
        self.lend_of(len, true)
    }

    fn lend_of(&mut self, len: usize, zeros: bool) -> Option<Rc<Loan>> {
        let bytes = self.account.pool.take(len, zeros)?;
        assert!(counted(len) <= self.left && len <= LARGEST, "a buffer of {len} bytes was not granted");
        self.left -= counted(len);
        Some(Rc::new(Loan { bytes: RefCell::new(bytes), account: self.account.clone() }))
    }
}

impl Account {
    fn give_back(&self, bytes: usize) {
        let (held, used) = (self.held.get(), self.pool.used.get());
        assert!(bytes <= held && held <= used, "{bytes} bytes come back of {held} that a client has, of {used} in use");
        self.held.set(held - bytes);
        self.pool.used.set(used - bytes);
    }
}

impl Drop for Grant {
    fn drop(&mut self) {
        self.account.give_back(self.left);
    }
}

impl Loan {
    /// The buffer, to be sent.
    pub fn bytes(&self) -> Ref<'_, Vec<u8>> {
        self.bytes.borrow()
    }

    /// The buffer, to be filled.
    pub fn bytes_mut(&self) -> RefMut<'_, Vec<u8>> {
        self.bytes.borrow_mut()
    }
}

impl Drop for Loan {
    fn drop(&mut self) {
        let buffer = self.bytes.take();
        self.account.give_back(counted(buffer.len()));
        self.account.pool.put_back(buffer);
    }
}

impl Memory for Loan {
    fn max_len(&self) -> usize {
        self.bytes.max_len()
    }

    fn read(&self, start: usize, bytes: &mut [u8]) {
        self.bytes.read(start, bytes);
    }

    fn write(&self, start: usize, bytes: &[u8]) {
        self.bytes.write(start, bytes);
    }

    fn clear(&self, start: usize, len: usize) {
        self.bytes.clear(start, len);
    }

    fn cover(&self, bytes: usize) -> Result<(), Status> {
        self.bytes.cover(bytes)
    }

    /// It was lent for one command.
    fn may_exceed(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    fn lend(share: &Share, len: usize) -> Option<Rc<Loan>> {
        share.grant(len).map(|mut grant| grant.lend(len).unwrap())
    }

    /// A client's buffers of 256 KiB, as many as it gets.
    fn greedy(share: &Share) -> Vec<Rc<Loan>> {
        std::iter::from_fn(|| lend(share, LARGEST)).collect()
    }

    /// A deliberate mistake: bytes of a buffer are given back twice.
    #[test]
    #[should_panic(expected = "bytes come back of 0 that a client has, of 0 in use")]
    fn bytes_that_come_back_twice_are_noticed() {
        let share = Pool::new(10 * MIB).share(ConnectionId(0));
        drop(lend(&share, LARGEST).expect("room"));
        share.0.give_back(1);
    }

    #[test]
    fn each_client_has_a_little_in_any_case_and_the_others_wait_in_line() {
        let pool = Pool::new(10 * MIB);
        let [large, second, third] = [0, 1, 2].map(|number| pool.share(ConnectionId(number)));
        let mut held = greedy(&large);
        assert_eq!((held.len(), large.held()), (40, 10 * MIB));
        let small = greedy(&second);
        assert_eq!((small.len(), second.held()), (4, GUARANTEED), "and now it is in line");
        assert!(third.grant(2 * MIB).is_none());
        assert!(!pool.can_invite());
        // Being first in line is worth one grant.
        held.truncate(12);
        assert_eq!(pool.invite(), Some(ConnectionId(0)));
        held.push(lend(&large, LARGEST).unwrap());
        assert!(lend(&large, LARGEST).is_none() && !third.has_room(2 * MIB), "others are before them");
        assert_eq!(pool.invite(), Some(ConnectionId(1)));
        assert!(second.has_room(LARGEST), "it does without");
        assert_eq!(pool.invite(), Some(ConnectionId(2)));
        let grant = third.grant(2 * MIB).unwrap();
        assert_eq!(pool.invite(), Some(ConnectionId(0)));
        drop((held, small, grant));
        assert_eq!((pool.invite(), pool.used.get()), (None, 0));
    }

    #[test]
    fn a_client_may_hold_what_it_was_guaranteed_while_another_holds_all() {
        let pool = Pool::new(4 * MIB);
        let [large, other] = [0, 1].map(|number| pool.share(ConnectionId(number)));
        let held = greedy(&large);
        other.guarantee(2 * MIB + 1);
        let grant = other.grant(2 * MIB + 1).expect("it is guaranteed");
        assert_eq!(other.held(), 2 * MIB + SMALLEST);
        assert!(other.grant(SMALLEST).is_none(), "and no more than that");
        other.guarantee(1);
        drop(grant);
        assert!(other.has_room(GUARANTEED));
        drop(held);
    }

    #[test]
    fn who_leaves_is_in_line_no_more_and_its_buffers_count_as_long_as_they_are_used() {
        let pool = Pool::new(4 * MIB);
        let [gone, waits, next] = [0, 1, 2].map(|number| pool.share(ConnectionId(number)));
        let mut held = greedy(&gone);
        assert!(waits.grant(2 * MIB).is_none() && next.grant(2 * MIB).is_none());
        drop((gone, waits));
        assert!(!pool.can_invite(), "the drive still works on them");
        held.truncate(8);
        assert_eq!(pool.invite(), Some(ConnectionId(2)));
        assert!(next.grant(2 * MIB).is_some());
    }

    #[test]
    fn buffers_are_used_again_and_few_are_kept() {
        let pool = Pool::new(1 << 30);
        let share = pool.share(ConnectionId(0));
        let first = lend(&share, 5_000).unwrap();
        first.bytes_mut().fill(7);
        assert_eq!(share.held(), 8 << 10);
        drop(first);
        let second = lend(&share, 6_000).unwrap();
        let bytes = second.bytes();
        assert_eq!((bytes.len(), bytes[..5_000].iter().all(|byte| *byte == 7)), (6_000, true));
        drop(bytes);
        drop(second);
        let zeros = share.grant(8_000).unwrap().lend_zeros(8_000).unwrap();
        assert!(zeros.bytes().iter().all(|byte| *byte == 0) && zeros.bytes().len() == 8_000);
        drop(zeros);
        drop((0..1_000).map(|_| lend(&share, LARGEST).unwrap()).collect::<Vec<_>>());
        assert!(pool.unused.borrow().bytes <= KEPT && share.held() == 0);
    }
}
