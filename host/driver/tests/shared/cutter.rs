//! A network that breaks around chosen commands. It forwards PDUs of NVMe/TCP. At some commands of an opcode, either
//! the command or its completion is lost, and all connections break. Shared by tests of several crates.
//!
//! Left out: digests, which it ignores.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

/// Types of PDUs: a capsule with a command, and one with a completion.
const COMMAND: u8 = 4;
const COMPLETION: u8 = 5;
/// Bytes of the common header of a PDU.
const HEAD: usize = 8;

/// Commands of an opcode that are lost, before or after their execution.
pub(crate) struct Cuts {
    pub(crate) opcode: u8,
    /// Commands from one that is lost to the next. In turn, one is lost after the target executed it, and one before the target has it.
    pub(crate) every: u32,
    /// The most cuts.
    pub(crate) most: u32,
}

/// The state that the threads share.
struct Shared {
    cuts: Cuts,
    streams: Mutex<Vec<TcpStream>>,
    closed: AtomicBool,
    seen: AtomicU32,
    /// Commands that were lost, and completions.
    lost: [AtomicU32; 2],
}

/// See the file.
pub(crate) struct Cutter {
    pub(crate) address: String,
    shared: Arc<Shared>,
}

impl Cutter {
    pub(crate) fn start(server: &str, cuts: Cuts) -> Cutter {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("it is bound").to_string();
        let shared = Arc::new(Shared {
            cuts,
            streams: Mutex::default(),
            closed: AtomicBool::new(false),
            seen: AtomicU32::new(0),
            lost: Default::default(),
        });
        let (own, server) = (shared.clone(), server.to_owned());
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                if own.closed.load(Ordering::SeqCst) {
                    return;
                }
                own.connect(client, TcpStream::connect(&server).expect("the server is there"));
            }
        });
        Cutter { address, shared }
    }

    /// Commands that were lost before the target had them, and completions that were.
    pub(crate) fn lost(&self) -> [u32; 2] {
        [0, 1].map(|of| self.shared.lost[of].load(Ordering::SeqCst))
    }
}

impl Drop for Cutter {
    fn drop(&mut self) {
        self.shared.closed.store(true, Ordering::SeqCst);
        self.shared.cut();
        // The thread accepts once more, and ends.
        let _ = TcpStream::connect(&self.address);
    }
}

impl Shared {
    fn connect(self: &Arc<Shared>, client: TcpStream, target: TcpStream) {
        // The command of this connection whose completion will be lost.
        let chosen = Arc::<Mutex<Option<[u8; 2]>>>::default();
        let clone = |stream: &TcpStream| stream.try_clone().expect("a descriptor");
        for (from, to, is_up) in [(&client, &target, true), (&target, &client, false)] {
            let (own, chosen, from, to) = (self.clone(), chosen.clone(), clone(from), clone(to));
            thread::spawn(move || own.forward(from, to, |own, pdu| own.loses(pdu, is_up, &chosen)));
        }
        self.streams.lock().expect("no thread panics").extend([client, target]);
    }

    fn forward(&self, mut from: TcpStream, mut to: TcpStream, loses: impl Fn(&Shared, &[u8]) -> bool) {
        while let Some(pdu) = next(&mut from) {
            if loses(self, &pdu) {
                self.cut();
            } else if to.write_all(&pdu).is_err() {
                break;
            }
        }
        for stream in [from, to] {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// Whether a PDU is lost.
    fn loses(&self, pdu: &[u8], is_up: bool, chosen: &Mutex<Option<[u8; 2]>>) -> bool {
        let mut chosen = chosen.lock().expect("no thread panics");
        match (pdu[0], is_up) {
            // Opcode and identifier are at 0 and 3:2 of the command.
            (COMMAND, true) if pdu[HEAD] == self.cuts.opcode => {
                let seen = self.seen.fetch_add(1, Ordering::SeqCst);
                let number = seen / self.cuts.every;
                if !seen.is_multiple_of(self.cuts.every) || number >= self.cuts.most {
                    return false;
                }
                if number.is_multiple_of(2) {
                    *chosen = Some([pdu[HEAD + 2], pdu[HEAD + 3]]);
                    return false;
                }
                self.lost[0].fetch_add(1, Ordering::SeqCst);
                true
            }
            // The identifier is at 13:12 of the completion.
            (COMPLETION, false) if *chosen == Some([pdu[HEAD + 12], pdu[HEAD + 13]]) => {
                self.lost[1].fetch_add(1, Ordering::SeqCst);
                true
            }
            _ => false,
        }
    }

    fn cut(&self) {
        for stream in self.streams.lock().expect("no thread panics").drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

/// The next whole PDU.
fn next(from: &mut TcpStream) -> Option<Vec<u8>> {
    let mut pdu = vec![0; HEAD];
    from.read_exact(&mut pdu).ok()?;
    let bytes = u32::from_le_bytes([pdu[4], pdu[5], pdu[6], pdu[7]]) as usize;
    pdu.resize(bytes.max(HEAD), 0);
    from.read_exact(&mut pdu[HEAD..]).ok()?;
    Some(pdu)
}
