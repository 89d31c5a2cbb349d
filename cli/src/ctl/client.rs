//! The client of a control socket: an order is a line of JSON, and so is its reply. It gives up after a bounded time, whatever
//! the server does.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::anyhow;
use nandscape_sim::Span;
use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use serde_json::{Value, json};

use crate::failure::Failure;

/// The longest reply in bytes: the figures of thousands of drives.
const LONGEST_REPLY: usize = 64 << 20;

/// A connection to a control socket.
pub(super) struct Client {
    socket: PathBuf,
    stream: UnixStream,
    patience: Duration,
}

impl Client {
    /// Connects to the socket of a server. The server has `patience` for this, and for each reply.
    ///
    /// # Errors
    /// When no server listens there, or it takes no connection in time.
    pub(super) fn connect(socket: &Path, patience: Span) -> Result<Client, Failure> {
        let patience = Duration::from_nanos(patience.ns()).max(Duration::from_micros(1));
        let stream = connect(socket, patience).map_err(|error| match error {
            Errno::AGAIN => late(socket, patience),
            error => Failure::Input(anyhow!(
                "{}: {}; the socket of a running server is valid: nandscape serve --control PATH",
                socket.display(),
                problem(error)
            )),
        })?;
        Ok(Client { socket: socket.to_owned(), stream, patience })
    }

    /// Gives an order with its fields, and returns the reply. Fields without a value are left out.
    ///
    /// # Errors
    /// When the server rejects the order, has ended, or does not answer in time.
    pub(super) fn order(&mut self, command: &str, fields: &[(&str, Option<&str>)]) -> Result<Value, Failure> {
        let mut line = json!({ "command": command });
        for (name, value) in fields {
            if let Some(value) = value {
                line[name] = (*value).into();
            }
        }
        let reply = self.exchange(&format!("{line}\n"))?;
        match reply.get("error") {
            None => Ok(reply),
            Some(error) => {
                let error = error.as_str().map_or_else(|| error.to_string(), str::to_owned);
                Err(Failure::Input(anyhow!("{}: {command}: {error}", self.socket.display())))
            }
        }
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "only time distinguishes a server that is silent from one that is slow"
    )]
    fn exchange(&mut self, line: &str) -> Result<Value, Failure> {
        let begun = Instant::now();
        self.send(line).map_err(|error| self.lost(&error))?;
        let mut reply = Vec::new();
        while !reply.ends_with(b"\n") {
            if reply.first().is_some_and(|first| *first != b'{') || reply.len() > LONGEST_REPLY {
                return Err(self.no_reply());
            }
            let left = self.patience.saturating_sub(begun.elapsed());
            if left.is_zero() {
                return Err(late(&self.socket, self.patience));
            }
            match self.receive(&mut reply, left) {
                Ok(0) => return Err(Failure::Run(anyhow!("{}: the server has ended", self.socket.display()))),
                Ok(_) => {}
                Err(error) => return Err(self.lost(&error)),
            }
        }
        serde_json::from_slice(&reply).map_err(|_| self.no_reply())
    }

    fn send(&mut self, line: &str) -> io::Result<()> {
        self.stream.set_write_timeout(Some(self.patience))?;
        self.stream.write_all(line.as_bytes())
    }

    /// Receives more of a reply, for `left` at most.
    fn receive(&mut self, reply: &mut Vec<u8>, left: Duration) -> io::Result<usize> {
        let mut bytes = [0; 4_096];
        self.stream.set_read_timeout(Some(left.max(Duration::from_micros(1))))?;
        let count = loop {
            match self.stream.read(&mut bytes) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                other => break other?,
            }
        };
        reply.extend_from_slice(&bytes[..count]);
        Ok(count)
    }

    fn lost(&self, error: &io::Error) -> Failure {
        match error.kind() {
            ErrorKind::WouldBlock | ErrorKind::TimedOut => late(&self.socket, self.patience),
            _ => Failure::Run(anyhow!("{}: the connection to the server is lost: {error}", self.socket.display())),
        }
    }

    fn no_reply(&self) -> Failure {
        let socket = self.socket.display();
        Failure::Input(anyhow!(
            "{socket}: the answer is no reply of a control socket; the socket of `nandscape serve --control PATH` is valid"
        ))
    }
}

/// Connects. A server whose queue of connections stays full for `patience` is `AGAIN`.
fn connect(socket: &Path, patience: Duration) -> Result<UnixStream, Errno> {
    let address = SocketAddrUnix::new(socket)?;
    let stream = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    set_socket_timeout(&stream, Timeout::Send, Some(patience))?;
    rustix::net::connect(&stream, &address)?;
    Ok(stream.into())
}

fn problem(error: Errno) -> String {
    match error {
        Errno::NOENT => "no such file".to_owned(),
        Errno::CONNREFUSED => "not a socket, or its server has ended".to_owned(),
        Errno::NAMETOOLONG => "the path of a unix socket has at most 107 bytes".to_owned(),
        error => error.to_string(),
    }
}

fn late(socket: &Path, patience: Duration) -> Failure {
    let (socket, seconds) = (socket.display(), patience.as_secs_f64());
    Failure::Run(anyhow!(
        "{socket}: the server has not answered within {seconds} s; it may be stopped, or its machine overloaded. \
         --timeout sets how long to wait"
    ))
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;
    use std::thread;

    use super::*;

    /// A server that takes one connection, sends `answer`, and keeps the connection until the client leaves.
    fn answering(answer: &'static [u8], test: impl FnOnce(&Path)) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("control");
        let listener = UnixListener::bind(&path).unwrap();
        let server = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            // The client may have given up.
            let _ = stream.write_all(answer);
            let _ = stream.read_to_end(&mut Vec::new());
        });
        test(&path);
        server.join().unwrap();
    }

    fn failure(path: &Path, patience: Span) -> (bool, String) {
        let failed = Client::connect(path, patience).and_then(|mut client| client.order("help", &[])).unwrap_err();
        (matches!(failed, Failure::Input(_)), failed.to_string())
    }

    #[test]
    fn silence_and_half_a_reply_end_in_time() {
        for answer in [&b""[..], b"{\"commands\":"] {
            answering(answer, |path| {
                let (is_input, text) = failure(path, Span::from_ms(20));
                assert!(!is_input && text.contains("has not answered within 0.02 s"), "{text}");
            });
        }
    }

    /// Nothing takes connections, and the queue of the listener is full.
    #[test]
    fn a_server_that_takes_no_connection_ends_in_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("control");
        let socket =
            rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None).unwrap();
        rustix::net::bind(&socket, &SocketAddrUnix::new(&path).unwrap()).unwrap();
        rustix::net::listen(&socket, 0).unwrap();
        let clients: Vec<_> = (0..16).map(|_| Client::connect(&path, Span::from_ms(20))).collect();
        let refused = clients.iter().find_map(|client| client.as_ref().err()).expect("the queue is full");
        assert!(matches!(refused, Failure::Run(_)) && refused.to_string().contains("has not answered"), "{refused}");
    }

    #[test]
    fn what_is_no_control_socket_is_named() {
        for (answer, part) in
            [(&b"NBDMAGIC"[..], "no reply of a control socket"), (b"{]\n", "no reply of a control socket")]
        {
            answering(answer, |path| {
                let (is_input, text) = failure(path, Span::from_s(60));
                assert!(is_input && text.contains(part), "{text}");
            });
        }
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, "").unwrap();
        let long = folder.path().join("x".repeat(120));
        for (path, part) in [
            (folder.path().join("none"), "no such file; the socket of a running server is valid"),
            (file, "not a socket, or its server has ended"),
            (long, "at most 107 bytes"),
        ] {
            let (is_input, text) = failure(&path, Span::from_s(60));
            assert!(is_input && text.contains(part), "{text}");
        }
    }

    #[test]
    fn a_rejected_order_is_bad_input() {
        answering(b"{\"error\":\"there is no drive \\\"a\\\"\",\"valid\":[]}\n", |path| {
            let (is_input, text) = failure(path, Span::from_s(60));
            assert!(is_input && text.ends_with("control: help: there is no drive \"a\""), "{text}");
        });
    }
}
