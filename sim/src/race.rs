//! Waiting for the first of two.

use std::future::Future;
use std::pin::pin;
use std::task::Poll;

/// The result of `first`, unless `second` ends before it. If both have ended, `first` counts.
pub async fn race<F: Future + Unpin>(first: &mut F, second: impl Future<Output = ()>) -> Option<F::Output> {
    let mut second = pin!(second);
    let mut first = pin!(first);
    std::future::poll_fn(|context| match first.as_mut().poll(context) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending => second.as_mut().poll(context).map(|()| None),
    })
    .await
}
