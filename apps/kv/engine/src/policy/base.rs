//! One replica, however long it takes. Another one is asked only if the first is dead or silent.

use super::{Getting, Policy};
use crate::client::{Attempts, How};

/// See the module.
pub struct Base;

impl Policy for Base {
    fn get<'a>(&'a self, tries: &'a mut Attempts<'_>) -> Getting<'a> {
        Box::pin(async {
            tries.send(0, How::default()).await;
            tries.finish().await
        })
    }
}
