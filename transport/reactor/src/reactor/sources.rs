//! The drives of a reactor that are outside this process. They are served in each turn in which one of them has sent
//! bytes, or the model has given one a command.

use std::io;
use std::rc::Rc;

use nandscape_sim::Span;

use super::Reactor;
use crate::export::Export;
use crate::source::Source;
use crate::waiter::Waiter;

/// Such drives, with their names.
pub(super) struct Sources(Vec<(String, Rc<dyn Source>)>);

impl Sources {
    /// Watches the sources among `exports`.
    pub(super) fn of(exports: &[Rc<dyn Export>], names: &[String], waiter: &mut Waiter) -> io::Result<Sources> {
        let of = |(export, name): (&Rc<dyn Export>, &String)| {
            export.sources().into_iter().map(|source| (name.clone(), source)).collect::<Vec<_>>()
        };
        let sources: Vec<_> = exports.iter().zip(names).flat_map(of).collect();
        sources.iter().try_for_each(|(_, source)| waiter.add_source(source.descriptor()))?;
        Ok(Sources(sources))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Commands that have not completed.
    pub(super) fn outstanding(&self) -> usize {
        self.0.iter().map(|(_, source)| source.outstanding()).sum()
    }

    /// From now on, commands fail when their drive has been out of reach for this long.
    pub(super) fn limit_patience(&self, patience: Span) {
        self.0.iter().for_each(|(_, source)| source.limit_patience(patience));
    }
}

impl Reactor {
    /// Makes them send and receive. Returns whether anything moved.
    pub(super) fn serve_sources(&mut self) -> bool {
        let (came, mut moved) = (std::mem::take(&mut self.events.of_sources), false);
        for (name, source) in &self.sources.0 {
            if came || source.has_unsent() {
                moved |= source.poll();
                if let Some(news) = source.news() {
                    (self.log)(&format!("drive {name}: {news}"));
                }
            }
        }
        moved
    }
}
