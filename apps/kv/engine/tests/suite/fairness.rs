//! One client cannot monopolize a server: the handlers are shared among the clients that wait for them.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use nandscape_apps_kv_engine::store::{Extent, Layout};
use nandscape_apps_kv_engine::{Server, ServerConfig, Store};
use nandscape_apps_store::Cpu;
use nandscape_apps_store::testing::{Disk, QueueingDrive, Times};
use nandscape_host_network::{Accepts, Inlet, Outlet};
use nandscape_sim::{Executor, Sim};
use nandscape_wire_kv::{Frame, Reply, Request};

const BLOCKS: u64 = 4_096;
const HANDLERS: usize = 8;
const HOGS: usize = 16;
/// Waiting requests of each of them.
const PIPELINE: u64 = 200;
const KEY: &[u8] = b"key";

/// The clients of the replies, in the order in which the replies were sent.
type Order = Rc<RefCell<Vec<usize>>>;

/// A client that sends another get for each reply, once it has begun.
struct Pipelining {
    number: usize,
    order: Order,
    inlet: RefCell<Option<Rc<dyn Inlet>>>,
    next: Cell<u64>,
}

impl Pipelining {
    fn get(&self) {
        let request = Request::Get { deadline_us: 0, tell_begun: false, key: KEY };
        let frame = request.to_frame(self.next.replace(self.next.get() + 1)).unwrap();
        // It may have left.
        let inlet = self.inlet.borrow().clone();
        inlet.iter().for_each(|inlet| inlet.received(&frame));
    }
}

/// Replies are sent while the server runs, so a task sends the next request.
struct Replies(Rc<Pipelining>, Sim);

impl Outlet for Replies {
    fn send(&self, frame: Vec<u8>) {
        let frame = Frame::parse(&frame).unwrap();
        let reply = Reply::parse(&frame).unwrap();
        assert!(matches!(reply, Reply::Value { .. }), "{reply:?}");
        self.0.order.borrow_mut().push(self.0.number);
        let client = self.0.clone();
        self.1.spawn(async move { client.get() });
    }

    fn is_up(&self) -> bool {
        true
    }

    fn close(&self, reason: &str) {
        panic!("{reason}");
    }
}

/// A server with a value, of at most `most` requests.
async fn server(sim: &Sim, most: u32) -> Server {
    let disk = Disk::new(BLOCKS as usize * 512);
    let drive = QueueingDrive::new(sim, &disk, Times::FLASH);
    let layout = Layout { extent: Extent { slba: 0, blocks: BLOCKS }, segment_bytes: 64 << 10 };
    let store = Store::open(sim, drive, layout, 1).await.expect("a store");
    store.put(KEY, 1, b"value").await.expect("there is room");
    let config = ServerConfig { handlers: HANDLERS, most, ..ServerConfig::default() };
    Server::new(sim, Rc::new(store), Rc::new(Cpu::new(sim, 8)), config)
}

/// Connects a client that keeps `requests` requests under way.
fn connect(sim: &Sim, server: &Server, number: usize, requests: u64, order: &Order) -> Rc<Pipelining> {
    let (order, inlet, next) = (order.clone(), RefCell::default(), Cell::new(1));
    let client = Rc::new(Pipelining { number, order, inlet, next });
    client.inlet.replace(Some(server.accept(Rc::new(Replies(client.clone(), sim.clone())))));
    (0..requests).for_each(|_| client.get());
    client
}

/// The first `replies` replies to the hogs, and to a client that connects last and keeps `own` requests under
/// way.
fn order(own: u64, replies: usize) -> Vec<usize> {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let order = Order::default();
    let run = async {
        let server = server(&sim, 10_000).await;
        let mut clients: Vec<_> = (0..HOGS).map(|hog| connect(&sim, &server, hog, PIPELINE, &order)).collect();
        clients.push(connect(&sim, &server, HOGS, own, &order));
        while order.borrow().len() < replies {
            sim.sleep(Times::FLASH.read).await;
        }
        clients.iter().for_each(|client| drop(client.inlet.take()));
        order.borrow()[..replies].to_vec()
    };
    executor.block_on(run).unwrap()
}

/// The number of a client's replies.
fn share(order: &[usize], client: usize) -> usize {
    order.iter().filter(|number| **number == client).count()
}

#[test]
fn a_client_with_one_request_at_a_time_waits_for_few_others() {
    let order = order(1, 4_000);
    let mine: Vec<usize> = (0..order.len()).filter(|place| order[*place] == HOGS).collect();
    let longest = mine.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(usize::MAX);
    // Requests in handlers, and one of each other client.
    let most = HANDLERS + HOGS + 1;
    assert!(mine[0] <= most && longest <= most, "{} and {longest} replies", mine[0]);
}

#[test]
fn clients_that_pipeline_share_the_handlers_whatever_they_have_waiting() {
    let (replies, clients) = (4_000, HOGS + 1);
    // Few requests, or as many as each hog.
    for own in [HANDLERS as u64, PIPELINE] {
        let order = order(own, replies);
        let shares: Vec<usize> = (0..clients).map(|client| share(&order, client)).collect();
        let fair = replies / clients;
        assert!(shares.iter().all(|share| (fair * 9 / 10..=fair * 11 / 10).contains(share)), "{own}: {shares:?}");
    }
}
