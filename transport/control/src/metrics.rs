//! Metrics over HTTP: `GET /metrics`, one request a connection.
//!
//! The response is always OpenMetrics text, also where the request accepts something else; every Prometheus since 2.5 reads it.

use std::io;

use nandscape_transport_reactor::Handle;
use nandscape_transport_reactor::socket::{Address, Stream};

use crate::exposition::exposition;
use crate::host::check_host;
use crate::http::{self, PATIENCE, Response};
use crate::server::{Server, Service};

/// Clients at a time.
const MAX_CLIENTS: usize = 64;

/// The content type of the page.
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Serves metrics until it is dropped.
pub struct MetricsServer(Server);

impl MetricsServer {
    /// Listens for scrapes of the reactors behind `handles`. TCP addresses other than loopback have to be allowed, since
    /// clients are not authenticated.
    ///
    /// # Errors
    /// When the address cannot be listened at, or is not allowed.
    pub fn start(address: &Address, allow_remote: bool, handles: Vec<Handle>) -> io::Result<MetricsServer> {
        let over_tcp = matches!(address, Address::Tcp(_));
        let service = Service {
            name: "metrics",
            max_clients: MAX_CLIENTS,
            read_patience: Some(PATIENCE),
            write_patience: PATIENCE,
            refusal: Response::refusal("503 Service Unavailable", &too_many()).to_bytes(),
            serve: Box::new(move |stream, heard| serve(stream, &handles, over_tcp, heard)),
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

fn serve(stream: &Stream, handles: &[Handle], over_tcp: bool, heard: &dyn Fn()) -> io::Result<()> {
    match http::read_head(stream, heard)? {
        None => Ok(()),
        Some(Err(refusal)) => refusal.send(stream),
        Some(Ok(head)) if over_tcp && let Err(refusal) = check_host(&head) => refusal.send(stream),
        Some(Ok(head)) => answer(&head.method, &head.path, handles).send(stream),
    }
}

fn answer(method: &str, path: &str, handles: &[Handle]) -> Response {
    let head_only = method == "HEAD";
    Response { head_only, ..page(if head_only { "GET" } else { method }, path, handles) }
}

fn page(method: &str, path: &str, handles: &[Handle]) -> Response {
    if path != "/metrics" {
        return Response::refusal("404 Not Found", "there is only /metrics");
    }
    if method != "GET" {
        return Response::wrong_method("GET, HEAD");
    }
    // However many clients scrape, they must not delay the drives.
    match handles.iter().filter_map(Handle::recent_figures).collect::<Vec<_>>() {
        figures if figures.is_empty() => Response::refusal("503 Service Unavailable", "the drives have ended"),
        figures => Response::new(OPEN_METRICS, exposition(figures)),
    }
}
