//! Lazy: the thread of an I/O finishes it when it has its processor again, where its data is warm. Meanwhile it may use that
//! processor only.

use nandscape_host_machine::{Affinity, Context};

use crate::path::InFlight;

impl InFlight<'_> {
    /// Waits for the completion, and has the same processor then.
    pub(super) async fn wait_in_place(&self, thread: &Context) {
        if self.is_woken() {
            return;
        }
        let pinned = Pinned::new(thread);
        self.wait(thread).await;
        drop(pinned);
    }
}

/// A thread that may use its present processor only, until this is dropped.
struct Pinned<'a> {
    thread: &'a Context,
    before: Affinity,
}

impl<'a> Pinned<'a> {
    fn new(thread: &'a Context) -> Pinned<'a> {
        let before = thread.affinity();
        thread.set_affinity(Affinity::one(thread.cpu())).expect("it runs there");
        Pinned { thread, before }
    }
}

impl Drop for Pinned<'_> {
    fn drop(&mut self) {
        self.thread.set_affinity(self.before).expect("it was valid before");
    }
}
