//! A server: requests wait for one of its handlers, which needs a processor and then the drive. The requests of a
//! client wait in order. A free handler takes a request of the client with the fewest handlers.
//!
//! Left out: communication between servers. A replica that was offline lacks puts until a client repairs them.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use nandscape_sim::credits::{Credits, Holder};
use nandscape_sim::{Cause, Sim, Span, Wait};
use nandscape_wire_kv::{Frame, Load, Refusal, Reply, Request};

use crate::average::Ewma;
use crate::cancel::Cancel;
use crate::store::{GetError, PutError, Store};
use nandscape_apps_store::Cpu;
use nandscape_host_machine::Mode;
use nandscape_host_network::{Accepts, Inlet, Outlet};

/// How a server works.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct ServerConfig {
    /// Requests that are handled at a time: its threads.
    pub handlers: usize,
    /// Requests in the server, waiting ones included, at which it is full. Each client with requests then has an
    /// equal share, and further requests of a client at its share are refused.
    pub most: u32,
    /// A processor's work before and after the drive's.
    pub work: [Span; 2],
    /// A processor's work in the kernel for a message that is received, and for one that is sent.
    pub message: [Span; 2],
}

impl Default for ServerConfig {
    /// 64 handlers, 4,096 requests, and 10 us of a processor on either side of the drive.
    fn default() -> ServerConfig {
        ServerConfig { handlers: 64, most: 4_096, work: [Span::from_us(10); 2], message: [Span::ZERO; 2] }
    }
}

/// See the module.
pub struct Server {
    core: Rc<Core>,
}

struct Core {
    sim: Sim,
    store: Rc<Store>,
    cpu: Rc<Cpu>,
    handlers: Credits,
    config: ServerConfig,
    /// Requests in the server, and the number of clients that have some.
    count: Cell<u32>,
    busy: Cell<u32>,
    numbers: RefCell<Numbers>,
    /// The average time of requests in a handler, in microseconds.
    service: Ewma,
}

/// Numbers of clients, used again when their requests have ended.
#[derive(Default)]
struct Numbers {
    unused: Vec<u32>,
    next: u32,
}

/// A client.
struct Connection {
    core: Rc<Core>,
    /// Its number among those that share the handlers.
    number: u32,
    /// Its requests that wait for a handler: only the first of them queues with those of other clients.
    first: Credits,
    outlet: Rc<dyn Outlet>,
    requests: RefCell<BTreeMap<u64, Rc<Cancel>>>,
}

/// The share of a new service time in their average.
const WEIGHT: f64 = 0.1;

impl Server {
    /// A server over a store.
    pub fn new(sim: &Sim, store: Rc<Store>, cpu: Rc<Cpu>, config: ServerConfig) -> Server {
        let handlers = Credits::new(sim, config.handlers.max(1), Cause::new(0));
        let (count, busy, numbers, service) = (Cell::new(0), Cell::new(0), RefCell::default(), Ewma::default());
        let core = Core { sim: sim.clone(), store, cpu, handlers, config, count, busy, numbers, service };
        Server { core: Rc::new(core) }
    }

    /// Requests in it.
    pub fn requests(&self) -> u32 {
        self.core.count.get()
    }
}

impl Accepts for Server {
    fn accept(&self, outlet: Rc<dyn Outlet>) -> Rc<dyn Inlet> {
        let (core, first) = (self.core.clone(), Credits::new(&self.core.sim, 1, Cause::new(0)));
        let number = core.numbers.borrow_mut().take();
        Rc::new(Hears(Rc::new(Connection { core, number, first, outlet, requests: RefCell::default() })))
    }
}

struct Hears(Rc<Connection>);

impl Inlet for Hears {
    fn received(&self, bytes: &[u8]) {
        let request = Frame::parse(bytes).and_then(|frame| Ok((frame.id, Request::parse(&frame)?)));
        match request {
            Ok((id, Request::Cancel)) => {
                if let Some(cancel) = self.0.requests.borrow().get(&id) {
                    self.0.cancel(cancel.clone());
                }
            }
            Ok((id, _)) if self.0.requests.borrow().contains_key(&id) => {
                self.0.outlet.close(&format!("request {id} is in work already"));
            }
            Ok((id, request)) => self.0.clone().begin(id, request),
            Err(malformed) => self.0.outlet.close(&malformed.to_string()),
        }
    }

    fn is_awaited(&self) -> bool {
        !self.0.requests.borrow().is_empty()
    }

    fn lost(&self, _: &str) {
        // Their answers are not awaited. A put under way is still written.
        self.0.requests.borrow().values().for_each(|cancel| cancel.cancel());
    }
}

impl Numbers {
    fn take(&mut self) -> u32 {
        self.unused.pop().unwrap_or_else(|| {
            self.next += 1;
            self.next - 1
        })
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.core.numbers.borrow_mut().unused.push(self.number);
    }
}

impl Connection {
    /// Waits for a handler.
    async fn take_handler(&self) {
        let (holder, waited) = (Holder { number: self.number, keeps: 0 }, &mut Wait::default());
        self.first.take(1, waited).await;
        self.core.handlers.take_for(holder, 1, waited).await;
        self.first.give(1);
    }

    fn begin(self: Rc<Self>, id: u64, request: Request<'_>) {
        let (core, own) = (self.core.clone(), self.requests.borrow().len());
        let is_new = u32::from(own == 0);
        if core.count.get() >= core.config.most && own >= core.share(is_new) {
            let text = "the server has as many requests as it takes, and this client has its share of them";
            return self.refuse(Reply::Refused { why: Refusal::Overloaded, text }.to_frame(id));
        }
        core.count.set(core.count.get() + 1);
        core.busy.set(core.busy.get() + is_new);
        let cancel = Rc::new(Cancel::never(&core.sim));
        self.requests.borrow_mut().insert(id, cancel.clone());
        match request {
            Request::Get { deadline_us, tell_begun, key } => {
                let key = key.to_vec();
                core.sim.spawn(async move {
                    let frame = self.get(id, deadline_us, tell_begun, &key, &cancel).await;
                    self.end(id, frame);
                });
            }
            Request::Put { version, key, value } => {
                let (key, value) = (key.to_vec(), value.to_vec());
                core.sim.spawn(async move {
                    let frame = self.put(id, version, &key, &value).await;
                    self.end(id, frame);
                });
            }
            Request::Cancel => unreachable!("told apart before"),
        }
    }

    /// Cancels a request once a processor has received the order.
    fn cancel(&self, cancel: Rc<Cancel>) {
        let core = self.core.clone();
        let [received, _] = core.config.message;
        if received.is_zero() {
            return cancel.cancel();
        }
        self.core.sim.spawn(async move {
            core.cpu.kernel(received).await;
            cancel.cancel();
        });
    }

    /// Answers a request that no handler takes.
    fn refuse(&self, frame: Vec<u8>) {
        let (core, outlet) = (self.core.clone(), self.outlet.clone());
        let [received, sent] = core.config.message;
        if (received + sent).is_zero() {
            return outlet.send(frame);
        }
        self.core.sim.spawn(async move {
            core.cpu.kernel(received + sent).await;
            outlet.send(frame);
        });
    }

    fn end(&self, id: u64, frame: Vec<u8>) {
        self.core.count.set(self.core.count.get() - 1);
        let mut requests = self.requests.borrow_mut();
        requests.remove(&id);
        self.core.busy.set(self.core.busy.get() - u32::from(requests.is_empty()));
        drop(requests);
        self.outlet.send(frame);
    }

    async fn get(&self, id: u64, deadline_us: u32, tell: bool, key: &[u8], cancel: &Cancel) -> Vec<u8> {
        let core = &self.core;
        self.take_handler().await;
        let begun = core.sim.now();
        let [received, sent] = core.config.message;
        let [before, after] = core.config.work;
        let found = if cancel.is_cancelled() {
            core.cpu.kernel(received + sent).await;
            Err(GetError::Cancelled)
        } else {
            if tell {
                core.cpu.kernel(received + sent).await;
                self.outlet.send(Reply::Begun.to_frame(id));
                core.cpu.work(before).await;
            } else {
                core.cpu.steps(&[(received, Mode::Kernel), (before, Mode::User)]).await;
            }
            let found = core.store.get(key, deadline_us, cancel).await;
            core.cpu.steps(&[(after, Mode::User), (sent, Mode::Kernel)]).await;
            found
        };
        core.handlers.give_back(self.number, 1);
        if matches!(found, Ok(_) | Err(GetError::Drive { .. })) {
            core.service.add((core.sim.now() - begun).as_us(), WEIGHT);
        }
        let load = core.load();
        let reply = match &found {
            Ok(Some(found)) => Reply::Value { load, version: found.version, value: &found.value },
            Ok(None) => Reply::Missing { load },
            Err(GetError::Busy { wait_us }) => Reply::Busy { load, wait_us: *wait_us },
            Err(GetError::Cancelled) => Reply::Cancelled,
            Err(error) => {
                let why = if matches!(error, GetError::Corrupt { .. }) { Refusal::Corrupt } else { Refusal::Drive };
                return Reply::Refused { why, text: &error.to_string() }.to_frame(id);
            }
        };
        reply.to_frame(id)
    }

    async fn put(&self, id: u64, version: u64, key: &[u8], value: &[u8]) -> Vec<u8> {
        let core = &self.core;
        self.take_handler().await;
        let [received, sent] = core.config.message;
        let [before, after] = core.config.work;
        core.cpu.steps(&[(received, Mode::Kernel), (before, Mode::User)]).await;
        let stored = core.store.put(key, version, value).await;
        core.cpu.steps(&[(after, Mode::User), (sent, Mode::Kernel)]).await;
        core.handlers.give_back(self.number, 1);
        match stored {
            Ok(()) => Reply::Stored { load: core.load() }.to_frame(id),
            Err(error) => {
                let why = match error {
                    PutError::Full { .. } => Refusal::Full,
                    PutError::Drive(_) => Refusal::Drive,
                    _ => Refusal::Other,
                };
                Reply::Refused { why, text: &error.to_string() }.to_frame(id)
            }
        }
    }
}

impl Core {
    /// A client's share of a full server, with `more` additional clients.
    fn share(&self, more: u32) -> usize {
        (self.config.most / (self.busy.get() + more).max(1)) as usize
    }

    fn load(&self) -> Load {
        let service_us = self.service.get().unwrap_or(0.0) as u32;
        Load { queue: self.count.get().saturating_sub(1), service_us }
    }
}

#[cfg(test)]
mod tests {
    use nandscape_sim::Executor;

    use super::*;
    use crate::store::{Extent, Layout};
    use nandscape_apps_store::testing::{Disk, QueueingDrive, Times};

    struct Nobody;

    impl Outlet for Nobody {
        fn send(&self, _: Vec<u8>) {}

        fn is_up(&self) -> bool {
            true
        }

        fn close(&self, _: &str) {}
    }

    #[test]
    fn numbers_of_clients_that_have_left_are_used_again() {
        let mut executor = Executor::new();
        let sim = executor.sim();
        let disk = Disk::new(4_096 * 512);
        let drive = QueueingDrive::new(&sim, &disk, Times::FLASH);
        let layout = Layout { extent: Extent { slba: 0, blocks: 4_096 }, segment_bytes: 64 << 10 };
        let store = executor.block_on(Store::open(&sim, drive, layout, 1)).unwrap().unwrap();
        let server = Server::new(&sim, Rc::new(store), Rc::new(Cpu::elsewhere(&sim)), ServerConfig::default());
        let get = Request::Get { deadline_us: 0, tell_begun: false, key: b"key" }.to_frame(1).unwrap();
        for _ in 0..10 {
            let clients = [(); 3].map(|()| server.accept(Rc::new(Nobody)));
            clients.iter().for_each(|client| client.received(&get));
            // The clients leave while their requests are under way.
            drop(clients);
            executor.block_on(sim.sleep(Span::from_ms(10))).unwrap();
            assert_eq!(server.requests(), 0);
        }
        assert_eq!(server.core.numbers.borrow().next, 3);
    }
}
