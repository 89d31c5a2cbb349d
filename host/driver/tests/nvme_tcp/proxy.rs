//! A network that breaks: forwards connections to a server, until it is told to cut them.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

/// See the module.
pub(crate) struct Proxy {
    pub(crate) address: String,
    streams: Arc<Mutex<Vec<TcpStream>>>,
    closed: Arc<AtomicBool>,
}

impl Proxy {
    pub(crate) fn start(server: &str) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (streams, closed) = (Arc::<Mutex<Vec<TcpStream>>>::default(), Arc::<AtomicBool>::default());
        let (kept, shut, server) = (streams.clone(), closed.clone(), server.to_owned());
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                if shut.load(Ordering::SeqCst) {
                    return;
                }
                let target = TcpStream::connect(&server).unwrap();
                for (from, to) in [(&client, &target), (&target, &client)] {
                    let (from, to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                    thread::spawn(move || forward(from, to));
                }
                kept.lock().unwrap().extend([client, target]);
            }
        });
        Proxy { address, streams, closed }
    }

    /// Breaks all connections there are.
    pub(crate) fn cut(&self) {
        for stream in self.streams.lock().unwrap().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// Takes no more connections, and breaks those there are.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        self.cut();
        // The thread accepts once more, and ends.
        let _ = TcpStream::connect(&self.address);
    }
}

fn forward(mut from: TcpStream, mut to: TcpStream) {
    let mut bytes = vec![0; 64 << 10];
    while let Ok(count) = from.read(&mut bytes)
        && count > 0
        && to.write_all(&bytes[..count]).is_ok()
    {}
    let _ = to.shutdown(Shutdown::Both);
    let _ = from.shutdown(Shutdown::Both);
}
