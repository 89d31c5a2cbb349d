//! Concurrent parts of one command.

use std::future::Future;
use std::pin::Pin;
use std::task::Poll;

use nandscape_drive::Breakdown;

/// A part of a command: its result and its breakdown.
pub(super) type Part<'a, T> = Pin<Box<dyn Future<Output = (T, Breakdown)> + 'a>>;

/// Runs parts until all have ended. Returns their results in order, and adds the breakdown of the part that ended last.
pub(super) async fn together<T>(mut parts: Vec<Part<'_, T>>, breakdown: &mut Breakdown) -> Vec<T> {
    let mut results: Vec<Option<T>> = parts.iter().map(|_| None).collect();
    let mut last = Breakdown::new();
    std::future::poll_fn(|context| {
        for (part, result) in parts.iter_mut().zip(&mut results).filter(|(_, result)| result.is_none()) {
            if let Poll::Ready((ended, time)) = part.as_mut().poll(context) {
                (*result, last) = (Some(ended), time);
            }
        }
        if results.iter().all(Option::is_some) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    *breakdown += &last;
    results.into_iter().flatten().collect()
}
