//! The system under test, as the explorer sees it.

use crate::gate::Commands;
use crate::point::Cut;

/// A system that must keep data through power cuts: drives, the software of a host over them, a load, and what the load may expect.
pub trait Subject {
    /// The software of a host that lives, such as an open store. It ends at [`Cut::Host`] and [`Cut::All`].
    type Host;

    /// Makes the system and its first host.
    ///
    /// # Errors
    /// When it cannot be made.
    fn build(&self) -> impl Future<Output = Result<Self::Host, String>>;

    /// Starts a load on the host, in tasks. The tasks note each change before they make it, and each acknowledgement after it. Lives
    /// are counted from 0.
    fn load(&self, host: &Self::Host, life: u64);

    /// How many changes were acknowledged since the system was made.
    fn acknowledged(&self) -> u64;

    /// The commands of its hosts, if it counts them: points at a command need that.
    fn commands(&self) -> Option<&Commands> {
        None
    }

    /// Waits until a point may come, such as until a drive is rebuilt.
    fn until_ready(&self, _host: &Self::Host, _what: Cut) -> impl Future<Output = ()> {
        async {}
    }

    /// Cuts power. After a cut that ends the host nothing of it may reach a drive ([`Gate`](crate::Gate)).
    fn cut(&self, host: &Self::Host, what: Cut);

    /// The same while a host opens. Only points at a command come there.
    fn cut_opening(&self, _what: Cut) {}

    /// Opens the state after the cut, as the next host.
    ///
    /// # Errors
    /// When it cannot be opened.
    fn restart(&self) -> impl Future<Output = Result<Self::Host, String>>;

    /// Compares the present data with the acknowledged data, and continues from there. If the load still runs, it ends first: the
    /// host outlived the cuts.
    ///
    /// # Errors
    /// The data that is lost, torn or stale.
    fn check(&self, host: &Self::Host) -> impl Future<Output = Result<(), String>>;
}

/// An error with this text unless the condition holds.
///
/// # Errors
/// The text.
pub fn ensure(condition: bool, what: impl FnOnce() -> String) -> Result<(), String> {
    if condition { Ok(()) } else { Err(what()) }
}
