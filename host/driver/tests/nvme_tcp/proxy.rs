//! A network that breaks: forwards connections to a server, until a test cuts them, or has their bytes lost or held.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

/// Bytes on their way, as read by the proxy at once.
pub(crate) struct Passing {
    /// The connection's number, from 0 in the order of connecting.
    pub(crate) connection: usize,
    /// Whether they are sent to the server.
    pub(crate) is_up: bool,
    /// Bytes that have passed in this direction before.
    pub(crate) before: usize,
}

/// The fate of such bytes.
#[derive(Copy, Clone, PartialEq, Eq)]
pub(crate) enum Fate {
    /// They are forwarded.
    Arrives,
    /// They are lost; the connection stays.
    Lost,
    /// They are lost, and nothing more is read in this direction.
    Stuck,
}

type Rule = fn(&Passing) -> Fate;

/// See the module.
pub(crate) struct Proxy {
    pub(crate) address: String,
    streams: Arc<Mutex<Vec<TcpStream>>>,
    closed: Arc<AtomicBool>,
    rule: Arc<Mutex<Rule>>,
}

impl Proxy {
    pub(crate) fn start(server: &str) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (streams, closed) = (Arc::<Mutex<Vec<TcpStream>>>::default(), Arc::<AtomicBool>::default());
        let rule: Rule = |_| Fate::Arrives;
        let rule = Arc::new(Mutex::new(rule));
        let (kept, shut, rules, server) = (streams.clone(), closed.clone(), rule.clone(), server.to_owned());
        thread::spawn(move || {
            for (connection, client) in listener.incoming().map_while(Result::ok).enumerate() {
                if shut.load(Ordering::SeqCst) {
                    return;
                }
                let target = TcpStream::connect(&server).unwrap();
                for (from, to, is_up) in [(&client, &target, true), (&target, &client, false)] {
                    let (from, to, rule) = (from.try_clone().unwrap(), to.try_clone().unwrap(), rules.clone());
                    thread::spawn(move || forward(from, to, Passing { connection, is_up, before: 0 }, &rule));
                }
                kept.lock().unwrap().extend([client, target]);
            }
        });
        Proxy { address, streams, closed, rule }
    }

    /// From now on, `rule` decides the fate of passing bytes.
    pub(crate) fn set(&self, rule: Rule) {
        *self.rule.lock().unwrap() = rule;
    }

    /// Breaks all connections.
    pub(crate) fn cut(&self) {
        for stream in self.streams.lock().unwrap().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// Accepts no more connections, and breaks all.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        self.cut();
        // The thread accepts once more, and ends.
        let _ = TcpStream::connect(&self.address);
    }
}

fn forward(mut from: TcpStream, mut to: TcpStream, mut passing: Passing, rule: &Mutex<Rule>) {
    let mut bytes = vec![0; 64 << 10];
    while let Ok(count) = from.read(&mut bytes)
        && count > 0
    {
        let rule = *rule.lock().unwrap();
        match rule(&passing) {
            Fate::Arrives if to.write_all(&bytes[..count]).is_err() => break,
            Fate::Arrives | Fate::Lost => passing.before += count,
            // The sockets stay open: the proxy has them.
            Fate::Stuck => return,
        }
    }
    let _ = to.shutdown(Shutdown::Both);
    let _ = from.shutdown(Shutdown::Both);
}
