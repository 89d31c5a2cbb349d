//! HTTP as far as the servers here need it: a request's head and body within limits, and a response. One request a
//! connection.
//!
//! Left out: persistent connections, compression, chunked bodies.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::time::Duration;

use nandscape_sim::Time;
use nandscape_transport_reactor::WallClock;
use nandscape_transport_reactor::socket::Stream;

/// The longest wait for a client, each time.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);
/// The longest that a request may take to arrive.
const REQUEST_TIME: Duration = Duration::from_secs(30);
/// The most pieces that a head may arrive in, and the most that are read after the response.
const MAX_PIECES: usize = 32;
/// Bytes of a request's head at most.
const MAX_HEAD: usize = 8 << 10;
/// Header fields of a request at most.
const MAX_FIELDS: usize = 64;

/// The content type of a refusal.
const PLAIN: &str = "text/plain; charset=utf-8";

/// A request without its body.
pub(crate) struct Head {
    pub(crate) method: String,
    /// The target without its query.
    pub(crate) path: String,
    /// Names in lower case, and values.
    fields: Vec<(String, String)>,
    /// The part of the body that has arrived.
    rest: Vec<u8>,
    clock: WallClock,
}

impl Head {
    /// The values of a field, whose name is given in lower case.
    pub(crate) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.fields.iter().filter(move |(field, _)| field == name).map(|(_, value)| &**value)
    }

    /// The value of a field that occurs once; `None` if it is missing or repeated.
    pub(crate) fn only<'a>(&'a self, name: &'a str) -> Option<&'a str> {
        let mut values = self.all(name);
        values.next().filter(|_| values.next().is_none())
    }
}

/// A response. Its length is known.
pub(crate) struct Response {
    pub(crate) status: &'static str,
    pub(crate) kind: &'static str,
    /// Header fields more, each with its end.
    pub(crate) fields: String,
    pub(crate) body: String,
    /// Whether the body is left out, as HEAD requires.
    pub(crate) head_only: bool,
}

impl Response {
    pub(crate) fn new(kind: &'static str, body: String) -> Response {
        Response { status: "200 OK", kind, fields: String::new(), body, head_only: false }
    }

    pub(crate) fn refusal(status: &'static str, reason: &str) -> Response {
        Response { status, ..Response::new(PLAIN, format!("{reason}\n")) }
    }

    /// The refusal of a method; `allowed` are those that are valid.
    pub(crate) fn wrong_method(allowed: &str) -> Response {
        let refusal = Response::refusal("405 Method Not Allowed", &format!("valid here: {allowed}"));
        Response { fields: format!("Allow: {allowed}\r\n"), ..refusal }
    }

    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let Response { status, kind, fields, body, head_only } = self;
        let len = body.len();
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len}\r\n{fields}Connection: close\r\n\r\n"
        );
        (head + if *head_only { "" } else { body }).into_bytes()
    }

    /// Sends it, and ends the connection.
    pub(crate) fn send(&self, mut stream: &Stream) -> io::Result<()> {
        stream.write_all(&self.to_bytes())?;
        // Closing a connection with unread input would discard the response.
        stream.shutdown(Shutdown::Write);
        let mut rest = [0; 1 << 10];
        for _ in 0..MAX_PIECES {
            if stream.read(&mut rest)? == 0 {
                break;
            }
        }
        Ok(())
    }
}

/// Reads a request's head, and calls `heard` at its end. `None` when the client left before that; an error is the
/// response to a request that is none.
pub(crate) fn read_head(mut stream: &Stream, heard: &dyn Fn()) -> io::Result<Option<Result<Head, Response>>> {
    let clock = WallClock::start();
    let mut head = [0; MAX_HEAD];
    let mut len = 0;
    let refused = |status, reason: &str| Ok(Some(Err(Response::refusal(status, reason))));
    for _ in 0..MAX_PIECES {
        if is_late(clock) {
            return refused("408 Request Timeout", "the request took too long");
        }
        let came = stream.read(&mut head[len..])?;
        if came == 0 {
            return Ok(None);
        }
        len += came;
        let mut fields = [httparse::EMPTY_HEADER; MAX_FIELDS];
        let mut request = httparse::Request::new(&mut fields);
        match request.parse(&head[..len]) {
            Ok(httparse::Status::Complete(end)) => {
                heard();
                return Ok(Some(Ok(of(&request, head[end..len].to_vec(), clock))));
            }
            Ok(httparse::Status::Partial) if len < MAX_HEAD => {}
            Ok(httparse::Status::Partial) | Err(httparse::Error::TooManyHeaders) => {
                let reason = format!("a request's head has at most {MAX_HEAD} bytes and {MAX_FIELDS} fields");
                return refused("431 Request Header Fields Too Large", &reason);
            }
            Err(problem) => return refused("400 Bad Request", &format!("not HTTP: {problem}")),
        }
    }
    refused("408 Request Timeout", "the request came in too many pieces")
}

fn of(request: &httparse::Request<'_, '_>, rest: Vec<u8>, clock: WallClock) -> Head {
    let field = |field: &httparse::Header<'_>| {
        (field.name.to_ascii_lowercase(), String::from_utf8_lossy(field.value).trim().to_owned())
    };
    Head {
        method: request.method.unwrap_or_default().to_owned(),
        path: request.path.unwrap_or_default().split('?').next().unwrap_or_default().to_owned(),
        fields: request.headers.iter().map(field).collect(),
        rest,
        clock,
    }
}

/// Reads a request's body. `None` when the client left before its end; an error is the response to one that is not taken.
pub(crate) fn read_body(mut stream: &Stream, head: Head, most: usize) -> io::Result<Option<Result<Vec<u8>, Response>>> {
    let refused = |status, reason: &str| Ok(Some(Err(Response::refusal(status, reason))));
    let length = head.only("content-length").and_then(|text| text.parse::<usize>().ok());
    let (Some(length), None) = (length, head.all("transfer-encoding").next()) else {
        return refused("411 Length Required", "a body has one Content-Length, and no Transfer-Encoding");
    };
    if length > most {
        return refused("413 Content Too Large", &format!("a body has at most {most} bytes"));
    }
    let mut body = head.rest;
    let mut piece = [0; 4 << 10];
    while body.len() < length {
        if is_late(head.clock) {
            return refused("408 Request Timeout", "the request took too long");
        }
        let came = stream.read(&mut piece)?;
        if came == 0 {
            return Ok(None);
        }
        body.extend_from_slice(&piece[..came]);
    }
    body.truncate(length);
    Ok(Some(Ok(body)))
}

fn is_late(clock: WallClock) -> bool {
    clock.now().since(Time::ZERO).ns() > REQUEST_TIME.as_nanos() as u64
}
