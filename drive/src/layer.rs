//! Layers over drives, without the kinds: what a kind is ([`Layer`]), a layer at work ([`LayerNode`]), and its part of a report
//! ([`LayerReport`]). Each kind is in its crate; a [view](crate::node::view) or `as_kind` reaches what only one kind has.

use std::any::Any;
use std::fmt::Debug;
use std::future::{Future, ready};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;

use crate::node::Node;
use crate::offers::Offers;
use crate::opening::Opening;

/// A layer that is to be opened: its kind with its settings.
pub trait Layer: Any + Debug + Send + Sync {
    /// What it is called among the layers of a chain, unless the user gives it a name.
    fn kind(&self) -> &'static str;

    /// Nodes that one of it takes. One that takes a single node lies over each.
    fn takes(&self) -> usize {
        1
    }

    /// Where it places data on what lies below, in words; `None` of one that passes addresses on. States fit where these agree.
    fn layout(&self) -> Option<String> {
        None
    }

    /// Whether it continues from contents that another one held.
    fn holds(&self) -> bool {
        false
    }

    /// Why no command on the chunks or zones of a drive passes it; `None` of a layer that passes all of them.
    fn bars_flash_commands(&self) -> Option<&'static str> {
        Some("it takes commands on blocks")
    }

    /// Its settings with their values, by key.
    fn settings(&self) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    /// Opens one over `below`, as many nodes as it takes.
    ///
    /// # Errors
    /// Why it cannot lie over these nodes, and what would be valid.
    fn open(&self, how: &Opening<'_>, below: Vec<Rc<dyn Node>>) -> Result<Rc<dyn LayerNode>, String>;
}

impl dyn Layer {
    /// The layer as one of this kind, if it is one.
    pub fn as_kind<T: Layer>(&self) -> Option<&T> {
        let any: &dyn Any = self;
        any.downcast_ref()
    }
}

/// A change of a setting with the kind before its key: `deadline=2ms` and `block.deadline=2ms` are the same.
pub fn full_key(kind: &str, change: &str) -> String {
    match change.strip_prefix(kind).is_some_and(|rest| rest.starts_with('.')) {
        true => change.to_owned(),
        false => format!("{kind}.{change}"),
    }
}

/// The only node below a layer that takes one.
///
/// # Errors
/// That there is none.
pub fn only(below: Vec<Rc<dyn Node>>) -> Result<Rc<dyn Node>, String> {
    below.into_iter().next().ok_or_else(|| "there is nothing below it".to_owned())
}

/// A layer on its way to rest.
pub type Rest<'a> = Pin<Box<dyn Future<Output = Result<(), String>> + 'a>>;

/// A layer at work. All but the offers is cold: commands take the [`Drive`](crate::Drive) of a connection.
pub trait LayerNode: Node + Any {
    /// Commands and fields that it passes, of those that the node below takes. The front of a chain completes all others with Invalid
    /// Command Opcode. Below the lowest layer these are those of a model, also where a host's FTL lies over chunks.
    fn offers(&self, below: Offers) -> Offers;

    /// The measured phase begins: what a report has is counted from here on.
    fn begin(&self) {}

    /// What it has counted in the measured phase; `None` of one that counts nothing.
    fn report(&self) -> Option<Arc<dyn LayerReport>> {
        None
    }

    /// What a served layer has counted, by the names of metrics.
    fn counters(&self) -> Vec<(&'static str, f64)> {
        Vec::new()
    }

    /// Checks its tables against each other.
    ///
    /// # Errors
    /// The problem, in one sentence.
    fn check(&self) -> Result<(), String> {
        Ok(())
    }

    /// Whether nothing is under way in it that would change what it holds, or what lies below.
    fn is_at_rest(&self) -> bool {
        true
    }

    /// Brings flash that it manages to rest, once the layers above it are. No command follows.
    ///
    /// # Errors
    /// Why it cannot come to rest.
    fn come_to_rest(&self) -> Rest<'_> {
        Box::pin(ready(Ok(())))
    }

    /// What it holds at rest, taken out of it for a saved state; nothing of a layer that begins anew. It is not used any more.
    ///
    /// # Errors
    /// Why a new layer could not continue from here.
    fn take_held(&self) -> Result<Vec<u8>, String> {
        Ok(Vec::new())
    }
}

impl dyn LayerNode {
    /// The layer as one of this kind, if it is one.
    pub fn as_kind<T: LayerNode>(&self) -> Option<&T> {
        let any: &dyn Any = self;
        any.downcast_ref()
    }
}

/// What a layer has counted in the measured phase.
pub trait LayerReport: Any + Debug + Send + Sync {
    /// The key of its part in JSON, such as `cache`.
    fn key(&self) -> &'static str;

    /// Its figures as a JSON value, in their order.
    fn json(&self) -> String;

    /// What it is called in a list of layers; `None` of one that is called by its name.
    fn called(&self) -> Option<&str> {
        None
    }

    /// Its main settings in a few words, such as `64MiB`; empty of one without settings.
    fn settings(&self) -> String {
        String::new()
    }

    /// Its figures for people.
    fn shown(&self) -> Vec<Shown> {
        Vec::new()
    }
}

impl dyn LayerReport {
    /// The report as one of this kind, if it is one.
    pub fn as_kind<T: LayerReport>(&self) -> Option<&T> {
        let any: &dyn Any = self;
        any.downcast_ref()
    }
}

/// A part of the figures of a layer for people.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Shown {
    /// A line of text.
    Line(String),
    /// A table, with words in the first column and figures in the others.
    Table {
        /// The heads of the columns.
        head: Vec<&'static str>,
        /// The rows.
        rows: Vec<Vec<String>>,
    },
}
