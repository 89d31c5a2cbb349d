//! Cloning (Li 1.1): every get is sent to two replicas at once, and the first answer counts. It doubles the
//! load.

use super::{Getting, Policy};
use crate::client::{Attempts, How};

/// See the module.
pub struct Cloned;

impl Policy for Cloned {
    fn get<'a>(&'a self, tries: &'a mut Attempts<'_>) -> Getting<'a> {
        Box::pin(async {
            tries.send(0, How::default()).await;
            tries.send(1, How::default()).await;
            tries.finish().await
        })
    }
}
