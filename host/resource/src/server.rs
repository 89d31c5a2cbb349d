//! A server of the key-value store whose gets need a resource: it has all values, and a get takes the time of the
//! resource.
//!
//! Left out: puts, which are rejected, and cancelling: the resource serves every admitted request.

use std::rc::Rc;

use nandscape_host_network::{Accepts, Inlet, Outlet};
use nandscape_sim::{Sim, Span};
use nandscape_wire_kv::{Frame, Load, Refusal, Reply, Request};

use crate::resource::Gate;

/// See the file.
pub struct ResourceServer {
    core: Rc<Core>,
}

struct Core {
    sim: Sim,
    gate: Rc<Gate>,
    value: Vec<u8>,
}

impl ResourceServer {
    /// A server behind a gate, with the length of its values in bytes.
    pub fn new(sim: &Sim, gate: Rc<Gate>, value_bytes: usize) -> ResourceServer {
        ResourceServer { core: Rc::new(Core { sim: sim.clone(), gate, value: vec![0; value_bytes] }) }
    }
}

impl Accepts for ResourceServer {
    fn accept(&self, outlet: Rc<dyn Outlet>) -> Rc<dyn Inlet> {
        Rc::new(Connection { core: self.core.clone(), outlet })
    }
}

struct Connection {
    core: Rc<Core>,
    outlet: Rc<dyn Outlet>,
}

/// The load that the server reports.
const LOAD: Load = Load { queue: 0, service_us: 0 };

impl Inlet for Connection {
    fn received(&self, bytes: &[u8]) {
        let request = Frame::parse(bytes).and_then(|frame| Ok((frame.id, Request::parse(&frame)?)));
        match request {
            Ok((_, Request::Cancel)) => {}
            Ok((id, Request::Put { .. })) => {
                let text = "this server has all values, and takes none";
                self.outlet.send(Reply::Refused { why: Refusal::Other, text }.to_frame(id));
            }
            Ok((id, Request::Get { deadline_us, tell_begun, .. })) => {
                if tell_begun {
                    self.outlet.send(Reply::Begun.to_frame(id));
                }
                self.get(id, deadline_us);
            }
            Err(malformed) => self.outlet.close(&malformed.to_string()),
        }
    }

    fn lost(&self, _: &str) {}
}

impl Connection {
    fn get(&self, id: u64, deadline_us: u32) {
        let (core, outlet) = (self.core.clone(), self.outlet.clone());
        let deadline = Some(Span::from_us(deadline_us.into())).filter(|deadline| !deadline.is_zero());
        self.core.sim.spawn(async move {
            let frame = match core.gate.pass(deadline).await {
                Ok(()) => Reply::Value { load: LOAD, version: 1, value: &core.value }.to_frame(id),
                Err(busy) => {
                    let wait_us = u32::try_from(busy.wait.ns().div_ceil(1_000)).unwrap_or(u32::MAX).max(1);
                    Reply::Busy { load: LOAD, wait_us }.to_frame(id)
                }
            };
            outlet.send(frame);
        });
    }
}
