//! A view of nodes that know how long a read would take: a layer above can reject a late read before it submits it.

use std::any::{Any, TypeId};
use std::rc::Rc;

use nandscape_sim::Span;

use crate::node::{self, Node};

/// The expected time of a read.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct Expected {
    /// From its submission to its completion.
    pub latency: Span,
    /// The part of the latency spent waiting for others.
    pub wait: Span,
}

/// See the file.
pub trait Foresight {
    /// The time of a read if it were submitted now; `None` if it is unknown. The blocks exist.
    fn expected(&self, slba: u64, blocks: u32) -> Option<Expected>;
}

/// The type of the view.
type Shared = Rc<dyn Foresight>;

/// The foresight of a node.
pub fn of(node: &dyn Node) -> Option<Rc<dyn Foresight>> {
    node::view::<Shared>(node).map(|shared| (*shared).clone())
}

/// The answer of a node to [`Node::view`]: `foresight` if its view is requested.
pub fn view(requested: TypeId, foresight: &Rc<impl Foresight + 'static>) -> Option<Rc<dyn Any>> {
    let shared = || -> Shared { foresight.clone() };
    (requested == TypeId::of::<Shared>()).then(|| Rc::new(shared()) as Rc<dyn Any>)
}
