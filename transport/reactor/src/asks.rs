//! Unanswered transfers requested from a host: see [`Dma::ask`](nandscape_drive::mem::Dma::ask).
//!
//! Left out: the messages, which are the transport's.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use nandscape_drive::mem::{Answered, Ask};

/// The requests to one host.
#[derive(Default)]
pub(crate) struct Asks {
    next: Cell<u64>,
    /// The bytes of the answer, and the function to call with it.
    pending: RefCell<BTreeMap<u64, (usize, Answered)>>,
}

impl Asks {
    /// A transfer is requested: returns its number.
    pub(crate) fn begin(&self, ask: &Ask, then: Answered) -> u64 {
        let number = self.next.replace(self.next.get() + 1);
        let len = if let Ask::Read { len, .. } = ask { *len } else { 0 };
        self.pending.borrow_mut().insert(number, (len, then));
        number
    }

    /// The host has answered. An answer under an unknown number is ignored; one of another length is a failure.
    pub(crate) fn answer(&self, number: u64, answer: Option<Vec<u8>>) {
        let pending = self.pending.borrow_mut().remove(&number);
        if let Some((len, then)) = pending {
            then(answer.filter(|data| data.len() == len));
        }
    }

    /// The host has left: no answer is waited for any more.
    pub(crate) fn forget(&self) {
        let pending = self.pending.take();
        drop(pending);
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::*;

    #[test]
    fn each_answer_goes_to_the_one_who_asked_and_has_the_right_length() {
        let (asks, heard) = (Asks::default(), Rc::new(RefCell::new(Vec::new())));
        let ask = |ask: Ask| {
            let heard = heard.clone();
            asks.begin(&ask, Box::new(move |answer| heard.borrow_mut().push(answer)))
        };
        let (read, write) = (Ask::Read { address: 0, len: 2 }, Ask::Write { address: 0, bytes: vec![1] });
        let numbers = [ask(read.clone()), ask(write), ask(read.clone()), ask(read)];
        asks.answer(numbers[1], Some(Vec::new()));
        asks.answer(numbers[0], Some(vec![1, 2]));
        asks.answer(numbers[0], Some(vec![3, 4]));
        asks.answer(numbers[2], Some(vec![1]));
        asks.answer(77, None);
        asks.forget();
        asks.answer(numbers[3], Some(vec![1, 2]));
        assert_eq!(*heard.borrow(), [Some(Vec::new()), Some(vec![1, 2]), None]);
    }
}
