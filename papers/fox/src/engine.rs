//! The form of an engine, and the list of engines. An engine decides which pages each node writes and reads, and in which order.
//!
//! A custom engine implements [`Engine`] and is added to the list:
//!
//! ```
//! use std::rc::Rc;
//! use nandscape_papers_fox::{Cell, Command, Engine, Engines, Kind, Node};
//!
//! /// Writes the first page of each block.
//! struct FirstPages;
//!
//! impl Engine for FirstPages {
//!     fn name(&self) -> &'static str {
//!         "first-pages"
//!     }
//!     fn about(&self) -> &'static str {
//!         "the first page of each block"
//!     }
//!     fn commands(&self, node: Node) -> Box<dyn Iterator<Item = Command>> {
//!         let cell = |block| Cell { column: 0, block, page: 0 };
//!         Box::new((0..node.blocks).map(move |block| Command { kind: Kind::Write, cells: vec![cell(block)] }))
//!     }
//! }
//!
//! let mut engines = Engines::built_in();
//! engines.add(Rc::new(FirstPages));
//! assert!(engines.find("first-pages").is_ok());
//! ```

use std::rc::Rc;

use crate::engines;
use crate::layout::{Cell, Node};
use crate::mix::Kind;

/// A command: pages that are written or read together.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Command {
    /// Its operation.
    pub kind: Kind,
    /// Its pages; of each block, writes are in the order of pages.
    pub cells: Vec<Cell>,
}

/// See the file.
pub trait Engine {
    /// Its name on the command line.
    fn name(&self) -> &'static str;

    /// Its description, in a few words.
    fn about(&self) -> &'static str;

    /// The commands of a node, in their order.
    fn commands(&self, node: Node) -> Box<dyn Iterator<Item = Command>>;

    /// Whether all of a node's pages are written before the run begins; else its blocks are erased.
    fn begins_written(&self, node: &Node) -> bool {
        !node.mix.has(Kind::Write)
    }

    /// Checks a run.
    ///
    /// # Errors
    /// The fault, and what would be valid.
    fn check(&self, nodes: &[Node]) -> Result<(), String> {
        let _ = nodes;
        Ok(())
    }
}

/// Engines by their names.
pub struct Engines(Vec<Rc<dyn Engine>>);

impl Engines {
    /// Those of the paper.
    pub fn built_in() -> Engines {
        Engines(vec![
            Rc::new(engines::sequential::Sequential),
            Rc::new(engines::round_robin::RoundRobin),
            Rc::new(engines::isolation::Isolation),
        ])
    }

    /// Adds one. It takes the place of one with the same name.
    pub fn add(&mut self, engine: Rc<dyn Engine>) {
        self.0.retain(|other| other.name() != engine.name());
        self.0.push(engine);
    }

    /// All of them.
    pub fn all(&self) -> &[Rc<dyn Engine>] {
        &self.0
    }

    /// An engine by its name.
    ///
    /// # Errors
    /// When it does not exist; the error lists the valid names.
    pub fn find(&self, name: &str) -> Result<Rc<dyn Engine>, String> {
        let names: Vec<&str> = self.0.iter().map(|engine| engine.name()).collect();
        let found = self.0.iter().find(|engine| engine.name() == name).cloned();
        found.ok_or_else(|| format!("there is no engine \"{name}\"; there are {}", names.join(", ")))
    }
}
