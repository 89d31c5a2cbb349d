//! Cooperative: threads that submit, and threads whose I/O has ended, take finished commands of all and issue what waits.

use nandscape_host_machine::{Context, Mode};
use nandscape_sim::slots::Key;

use crate::path::Path;
use crate::stages::stage;

impl Path {
    /// Takes the commands of a queue that have finished by now. `own` is the one that the thread itself waits for.
    pub(super) async fn help(&self, thread: &Context, queue: usize, own: Option<Key>) {
        thread.work(self.config.costs.poll, Mode::Kernel).await;
        for _ in 0..self.vectors[queue].waiting() {
            if !self.take_event(thread, queue, (own, stage::POLL)).await {
                break;
            }
        }
    }
}
