//! C3 (Suresh et al., NSDI 2015, 3.1): the replica with the lowest score, R - 1/mu + q^3/mu. R and 1/mu are averages
//! of the response and the service time, q = 1 + outstanding x clients + the average queue that the server reports.
//!
//! A try without an answer counts as a response time. A recently silent replica is chosen only if all are.
//!
//! Left out: C3's rate control of each client to each server.

use super::{Getting, Policy};
use crate::client::{Attempts, How, Peer};

/// See the module.
pub struct C3 {
    /// Clients in all.
    pub clients: u32,
}

impl C3 {
    fn score(&self, peer: &Peer) -> f64 {
        // A replica that was not asked yet has the best score; one that never answered has reported no service time.
        let Some(response) = peer.seen.response.get() else { return f64::MIN };
        let service = peer.seen.service.get().unwrap_or(0.0);
        let outstanding = peer.outstanding() as f64 * f64::from(self.clients);
        let queue = 1.0 + outstanding + peer.seen.queue.get().unwrap_or(0.0);
        response - service + queue * queue * queue * service
    }
}

impl Policy for C3 {
    fn get<'a>(&'a self, tries: &'a mut Attempts<'_>) -> Getting<'a> {
        Box::pin(async {
            let score = |place: &usize| self.score(tries.peer(*place));
            let best = (0..tries.choices()).min_by(|one, other| score(one).total_cmp(&score(other)));
            tries.prefer(best.unwrap_or(0));
            tries.send(0, How::default()).await;
            tries.finish().await
        })
    }
}
