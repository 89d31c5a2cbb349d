//! The dashboard: a page over HTTP, a stream of the drives' activity, and orders from it where they are allowed.
//!
//! | file | what |
//! |---|---|
//! | `access` | which orders are accepted |
//! | `hub` | samples the drives while a page is open, and passes the samples to all pages |
//! | `frame` | the frame that a page gets four times a second |
//! | `inside` | its data of dies, channels and blocks |
//!
//! The caller supplies the page itself. Left out: TLS and authentication; any client that reaches the address can
//! read.

mod access;
mod frame;
mod hub;
mod inside;

use std::io::{self, Write as _};

use nandscape_transport_reactor::Handle;
use nandscape_transport_reactor::socket::{Address, Listening, Stream};
use serde_json::json;

use crate::command::Command;
use crate::control::reply;
use crate::host::check_host;
use crate::http::{self, Head, PATIENCE, Response};
use crate::server::{Server, Service};
use hub::{Hub, MAX_PAGES};

/// Connections at a time.
const MAX_CLIENTS: usize = 64;
/// Bytes of an order at most.
const MAX_ORDER: usize = 4 << 10;

const HTML: &str = "text/html; charset=utf-8";
const JSON: &str = "application/json";

/// Bytes that the system keeps for a page that has not received them.
const MAX_UNSENT: usize = 64 << 10;

/// Marks the place in the page of its scripts' nonce (Content-Security-Policy), or of its orders' token, which is
/// empty if no orders are accepted.
pub const NONCE_MARK: &str = "NANDSCAPE-NONCE";
/// See [`NONCE_MARK`].
pub const TOKEN_MARK: &str = "NANDSCAPE-TOKEN";

/// Serves the dashboard until it is dropped.
pub struct DashboardServer {
    /// Ends first, so that no page waits for an event.
    _hub: Hub,
    server: Server,
}

/// State that the threads of clients share.
struct Site {
    handles: Vec<Handle>,
    page: String,
    /// That orders carry; `None` where none are taken.
    token: Option<String>,
    pages: hub::Pages,
    over_tcp: bool,
}

impl DashboardServer {
    /// Serves browsers. `page` is HTML with [`NONCE_MARK`] and [`TOKEN_MARK`]; orders are taken if `takes_orders`.
    ///
    /// # Errors
    /// When the system has no random bytes or no thread.
    pub fn start(
        listening: Listening,
        handles: Vec<Handle>,
        page: String,
        takes_orders: bool,
    ) -> io::Result<DashboardServer> {
        let token = takes_orders.then(access::random).transpose()?;
        let hub = Hub::start(handles.clone(), takes_orders)?;
        let over_tcp = matches!(listening.address(), Address::Tcp(_));
        let site = Site { handles, page, token, pages: hub.pages(), over_tcp };
        let too_many = format!("more than {MAX_CLIENTS} connections: the one that was silent longest left");
        let service = Service {
            name: "dashboard",
            max_clients: MAX_CLIENTS,
            read_patience: Some(PATIENCE),
            write_patience: PATIENCE,
            refusal: Response::refusal("503 Service Unavailable", &too_many).to_bytes(),
            serve: Box::new(move |stream, heard| site.serve(stream, heard)),
        };
        Ok(DashboardServer { _hub: hub, server: Server::start(listening, service)? })
    }

    /// Its address, with the port that the system has chosen if the given one is 0.
    pub fn address(&self) -> &Address {
        self.server.address()
    }
}

impl Site {
    fn serve(&self, stream: &Stream, heard: &dyn Fn()) -> io::Result<()> {
        let head = match http::read_head(stream, heard)? {
            None => return Ok(()),
            Some(Err(refusal)) => return refusal.send(stream),
            Some(Ok(head)) => head,
        };
        if self.over_tcp
            && let Err(refusal) = check_host(&head)
        {
            return refusal.send(stream);
        }
        match (&*head.method, &*head.path) {
            ("GET" | "HEAD", "/") => self.page(head.method == "HEAD")?.send(stream),
            ("GET", "/events") => self.events(stream, heard),
            ("POST", "/control") => match self.order(stream, head)? {
                Some(response) => response.send(stream),
                None => Ok(()),
            },
            (_, "/") => Response::wrong_method("GET, HEAD").send(stream),
            (_, "/events") => Response::wrong_method("GET").send(stream),
            (_, "/control") => Response::wrong_method("POST").send(stream),
            _ => Response::refusal("404 Not Found", "there are /, /events and /control").send(stream),
        }
    }

    fn page(&self, head_only: bool) -> io::Result<Response> {
        let nonce = access::random()?;
        let token = self.token.as_deref().unwrap_or_default();
        let body = self.page.replace(NONCE_MARK, &nonce).replace(TOKEN_MARK, token);
        let fields = format!(
            "Content-Security-Policy: default-src 'none'; script-src 'nonce-{nonce}'; style-src 'unsafe-inline'; \
             connect-src 'self'; img-src data: blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'\r\n\
             X-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\nCache-Control: no-store\r\n"
        );
        Ok(Response { fields, head_only, ..Response::new(HTML, body) })
    }

    /// Sends a page events until it leaves (server-sent events, as the HTML standard has them).
    fn events(&self, mut stream: &Stream, heard: &dyn Fn()) -> io::Result<()> {
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-store\r\n\
                    X-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n";
        stream.write_all(head.as_bytes())?;
        let Some(mut page) = self.pages.join() else {
            let full = json!({ "max": MAX_PAGES });
            return stream.write_all(format!("retry: 5000\nevent: full\ndata: {full}\n\n").as_bytes());
        };
        // With more buffered, a page that stopped reading would look active for minutes.
        stream.limit_unsent(MAX_UNSENT)?;
        stream.write_all(b"retry: 2000\n\n")?;
        while let Some(news) = page.news() {
            news.iter().try_for_each(|event| send(stream, event.as_bytes(), &page))?;
            if news.is_empty() {
                stream.write_all(b": nothing new\n\n")?;
            }
            heard();
        }
        Ok(())
    }

    /// Carries an order out; `None` when the client left.
    fn order(&self, stream: &Stream, head: Head) -> io::Result<Option<Response>> {
        let Some(token) = &self.token else {
            let reason = "this dashboard is read-only: serve with --dashboard-control to take orders";
            return Ok(Some(Response::refusal("403 Forbidden", reason)));
        };
        if let Err(refusal) = access::check_order(&head, token) {
            return Ok(Some(refusal));
        }
        Ok(http::read_body(stream, head, MAX_ORDER)?.map(|body| match body {
            Ok(body) => self.carry_out(&body),
            Err(refusal) => refusal,
        }))
    }

    fn carry_out(&self, line: &[u8]) -> Response {
        let problem = match Command::parse(line) {
            Ok(Command::Stop | Command::Set { .. } | Command::Settings) => {
                "the dashboard takes orders about faults; stop, set and settings belong to the socket of --control"
                    .to_owned()
            }
            Ok(command) => {
                let reply = String::from_utf8(reply(&command, &self.handles)).expect("JSON is text");
                let status = if reply.starts_with("{\"error\"") { "422 Unprocessable Content" } else { "200 OK" };
                return Response { status, ..Response::new(JSON, reply) };
            }
            Err(problem) => problem,
        };
        let reply = json!({ "error": problem }).to_string();
        Response { status: "422 Unprocessable Content", ..Response::new(JSON, reply + "\n") }
    }
}

/// Sends all bytes, unless the page makes room for another one meanwhile.
fn send(mut stream: &Stream, mut bytes: &[u8], page: &hub::Page) -> io::Result<()> {
    while !bytes.is_empty() {
        match stream.write(bytes) {
            Ok(sent) if sent > 0 && page.is_open() => bytes = &bytes[sent..],
            Ok(_) => return Err(io::ErrorKind::WriteZero.into()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
