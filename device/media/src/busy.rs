//! A step of a collector: its use of the array or of the channel, as a plain future. Collections make four for each page. A
//! separate kind of future for each step would add a call to every poll.
//!
//! Left out: steps that let reads in, which are rare and boxed.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use nandscape_sim::resource::Occupy;
use nandscape_sim::timer::Sleep;
use nandscape_sim::{Span, Who};

use crate::geometry::PlaneId;
use crate::media::Media;

/// See the file.
#[must_use = "a future does nothing until it is awaited"]
pub(crate) struct Busy<'a> {
    media: &'a Media,
    way: Way<'a>,
    used: Used,
    time: Span,
}

/// How the time passes.
pub(crate) enum Way<'a> {
    /// It takes no time.
    AtOnce,
    /// A resource is in use.
    Uses(Occupy<'a>),
    /// The resource is held already.
    Held(Sleep<'a>),
    /// In another way, which keeps the trace itself.
    Boxed(Pin<Box<dyn Future<Output = ()> + 'a>>),
}

/// What the trace shows.
#[derive(Copy, Clone)]
pub(crate) enum Used {
    /// A step of the array of a plane, with its name and detail.
    Array(PlaneId, &'static str, u32),
    /// A transfer on a channel.
    Channel(usize, Who),
}

impl<'a> Busy<'a> {
    #[inline(always)]
    pub(crate) fn new(media: &'a Media, way: Way<'a>, used: Used, time: Span) -> Busy<'a> {
        Busy { media, way, used, time }
    }
}

impl Future for Busy<'_> {
    type Output = ();

    #[inline(always)]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let ended = match &mut self.way {
            Way::Uses(occupy) => Pin::new(occupy).poll(context),
            Way::AtOnce => return Poll::Ready(()),
            Way::Held(sleep) => Pin::new(sleep).poll(context),
            Way::Boxed(other) => return other.as_mut().poll(context),
        };
        if ended.is_ready() {
            match self.used {
                Used::Array(plane, name, detail) => self.media.trace_array(plane, name, self.time, detail),
                Used::Channel(channel, who) => self.media.trace_transfer(channel, self.time, who),
            }
        }
        ended
    }
}
