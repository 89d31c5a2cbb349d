//! Metrics over HTTP: `GET /metrics`, one request a connection.
//!
//! The response is always OpenMetrics text, also where the request accepts something else; every Prometheus since 2.5 reads it. Left out:
//! persistent connections, compression.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::time::Duration;

use nandscape_transport_reactor::Handle;
use nandscape_transport_reactor::socket::{Address, Stream};

use crate::exposition::exposition;
use crate::server::{Server, Service};

/// Clients at a time.
const MAX_CLIENTS: usize = 64;
/// The longest wait for a client, each time.
const PATIENCE: Duration = Duration::from_secs(5);
/// The most pieces that a request may arrive in.
const MAX_PIECES: usize = 32;
/// Bytes of a request's head at most.
const MAX_HEAD: usize = 8 << 10;
/// Header fields of a request at most.
const MAX_FIELDS: usize = 64;

/// The content type of the page.
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
/// The content type of a refusal.
const PLAIN: &str = "text/plain; charset=utf-8";

/// Serves metrics until it is dropped.
pub struct MetricsServer(Server);

impl MetricsServer {
    /// Listens for scrapes of the reactors behind `handles`. TCP addresses other than loopback have to be allowed, since
    /// clients are not authenticated.
    ///
    /// # Errors
    /// When the address cannot be listened at, or is not allowed.
    pub fn start(address: &Address, allow_remote: bool, handles: Vec<Handle>) -> io::Result<MetricsServer> {
        let service = Service {
            name: "metrics",
            max_clients: MAX_CLIENTS,
            read_patience: Some(PATIENCE),
            write_patience: PATIENCE,
            refusal: Response::refusal("503 Service Unavailable", &too_many()).to_bytes(),
            serve: Box::new(move |stream, heard| serve(stream, &handles, heard)),
        };
        Server::start(address.listen(allow_remote)?, service).map(MetricsServer)
    }

    /// Its address, with the port that the system has chosen if the given one is 0.
    pub fn address(&self) -> &Address {
        self.0.address()
    }
}

fn too_many() -> String {
    format!("more than {MAX_CLIENTS} clients: the one that was silent longest left")
}

struct Response {
    status: &'static str,
    kind: &'static str,
    /// A header field more, with its end.
    field: &'static str,
    body: String,
    /// Whether the body is left out, as HEAD asks for.
    head_only: bool,
}

impl Response {
    fn refusal(status: &'static str, reason: &str) -> Response {
        Response { status, kind: PLAIN, field: "", body: format!("{reason}\n"), head_only: false }
    }

    fn to_bytes(&self) -> Vec<u8> {
        let Response { status, kind, field, body, head_only } = self;
        let len = body.len();
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len}\r\n{field}Connection: close\r\n\r\n"
        );
        (head + if *head_only { "" } else { body }).into_bytes()
    }
}

fn serve(mut stream: &Stream, handles: &[Handle], heard: &dyn Fn()) -> io::Result<()> {
    let Some(response) = respond(stream, handles, heard)? else { return Ok(()) };
    stream.write_all(&response.to_bytes())?;
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

/// Reads a request, and calls `heard` at its end; `None` when the client left before that.
fn respond(mut stream: &Stream, handles: &[Handle], heard: &dyn Fn()) -> io::Result<Option<Response>> {
    let mut head = [0; MAX_HEAD];
    let mut len = 0;
    for _ in 0..MAX_PIECES {
        let came = stream.read(&mut head[len..])?;
        if came == 0 {
            return Ok(None);
        }
        len += came;
        let mut fields = [httparse::EMPTY_HEADER; MAX_FIELDS];
        let mut request = httparse::Request::new(&mut fields);
        match request.parse(&head[..len]) {
            Ok(httparse::Status::Complete(_)) => {
                heard();
                let (method, target) = (request.method.unwrap_or_default(), request.path.unwrap_or_default());
                return Ok(Some(answer(method, target, handles)));
            }
            Ok(httparse::Status::Partial) if len < MAX_HEAD => {}
            Ok(httparse::Status::Partial) | Err(httparse::Error::TooManyHeaders) => {
                let reason = format!("a request's head has at most {MAX_HEAD} bytes and {MAX_FIELDS} fields");
                return Ok(Some(Response::refusal("431 Request Header Fields Too Large", &reason)));
            }
            Err(problem) => {
                return Ok(Some(Response::refusal("400 Bad Request", &format!("not HTTP: {problem}"))));
            }
        }
    }
    Ok(Some(Response::refusal("408 Request Timeout", "the request came in too many pieces")))
}

fn answer(method: &str, target: &str, handles: &[Handle]) -> Response {
    let head_only = method == "HEAD";
    Response { head_only, ..page(if head_only { "GET" } else { method }, target, handles) }
}

fn page(method: &str, target: &str, handles: &[Handle]) -> Response {
    if target.split('?').next() != Some("/metrics") {
        return Response::refusal("404 Not Found", "there is only /metrics");
    }
    if method != "GET" {
        let refusal = Response::refusal("405 Method Not Allowed", "there are only GET and HEAD");
        return Response { field: "Allow: GET, HEAD\r\n", ..refusal };
    }
    // However many clients scrape, they must not delay the drives.
    match handles.iter().filter_map(Handle::recent_figures).collect::<Vec<_>>() {
        figures if figures.is_empty() => Response::refusal("503 Service Unavailable", "the drives have ended"),
        figures => {
            let body = exposition(figures);
            Response { status: "200 OK", kind: OPEN_METRICS, field: "", body, head_only: false }
        }
    }
}
