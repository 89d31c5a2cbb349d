//! Replicas, their load and their noise.

use nandscape_apps_kv_engine::policy::Tuning;
use nandscape_apps_kv_run::Load;
use nandscape_sim::Span;

use crate::subject::Subject;

/// See the file.
#[derive(Clone, Debug)]
pub struct Spec {
    /// What the tenant disturbs.
    pub subject: Subject,
    /// Servers, each with a replica of every value.
    pub servers: usize,
    /// The servers with a noisy tenant, from the first on.
    pub noisy: usize,
    /// The clients' gets.
    pub load: Load,
    /// The policy of the clients.
    pub policy: String,
    /// Its settings.
    pub tuning: Tuning,
    /// One way through the network.
    pub hop: Span,
    /// Whether predictions are attached to gets, which are still served.
    pub predict_only: bool,
    /// Seed of everything random.
    pub seed: u64,
}

impl Spec {
    /// Three servers, one of them with a tenant, under the usual load of the subject.
    pub fn new(subject: Subject) -> Spec {
        Spec {
            servers: 3,
            noisy: 1,
            load: subject.usual_load(),
            subject,
            policy: "base".to_owned(),
            tuning: Tuning { deadline: Span::from_ms(1), busy_share: None, hedge: None, clients: 1 },
            // Half of Li's 0.3 ms for a hop and back each way (3.1.3).
            hop: Span::from_us(150),
            predict_only: false,
            seed: 1,
        }
    }
}
