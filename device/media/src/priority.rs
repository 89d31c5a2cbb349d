//! The order in which a plane or a channel serves waiting operations.

use nandscape_drive::breakdown::cause;
use nandscape_sim::{Cause, Class, Who};

/// A rule for the order of service.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Priority {
    /// In the order of requests.
    Fifo,
    /// Host reads first.
    ReadsFirst,
}

impl Priority {
    /// All rules, by their names in profiles.
    pub const ALL: [(&str, Priority); 2] = [("fifo", Priority::Fifo), ("reads_first", Priority::ReadsFirst)];

    /// The cause and class of an operation on behalf of `cause`.
    pub fn who(self, cause: Cause) -> Who {
        let urgent = self == Priority::ReadsFirst && cause == cause::HOST_READ;
        Who::new(cause, Class::new(if urgent { 0 } else { 1 }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_reads_of_the_host_are_urgent_and_only_if_told_so() {
        for (cause, name) in cause::ALL {
            assert_eq!(Priority::Fifo.who(cause).class, Class::new(1), "{name}");
            let expected = if name == "host_read" { 0 } else { 1 };
            assert_eq!(Priority::ReadsFirst.who(cause), Who::new(cause, Class::new(expected)), "{name}");
        }
    }
}
