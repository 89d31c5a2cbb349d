//! The control socket: a line of JSON is a command, a line of JSON is its reply. It belongs to its owner alone.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use nandscape_transport_reactor::handle::ExportFigures;
use nandscape_transport_reactor::socket::{Address, Listening, Stream};
use nandscape_transport_reactor::{Handle, Order};
use serde::Serialize;
use serde_json::json;

use crate::command::{self, Command};
use crate::drives::{DriveFaults, DriveSettings, Drives};
use crate::server::{Server, Service};
use crate::startup::Startup;
use crate::statistics::Statistics;

/// Bytes of a line at most, without its end.
const MAX_LINE: usize = 64 << 10;

/// Limits on clients.
struct Limits {
    /// At a time.
    clients: usize,
    /// The longest wait for a client that does not read its reply.
    patience: Duration,
}

const LIMITS: Limits = Limits { clients: 64, patience: Duration::from_secs(5) };

/// Puts a drive in the place of another one: the names of the lost drive and of the new one. Returns a line for the operator.
pub type Replace = Box<dyn Fn(&str, &str) -> Result<String, String> + Send + Sync>;

/// Serves the control socket until it is dropped, which also removes the socket.
pub struct ControlServer {
    server: Server,
    shared: Arc<Shared>,
}

/// What clients are answered from.
struct Shared {
    /// The reactors, once there are some.
    handles: OnceLock<Vec<Handle>>,
    startup: Arc<Startup>,
}

impl Shared {
    fn serving(handles: Vec<Handle>) -> Shared {
        Shared { handles: OnceLock::from(handles), startup: Arc::new(Startup::over()) }
    }
}

impl ControlServer {
    /// Listens at `path` for orders to the reactors behind `handles`. `on_stop` is called on a side thread each time a
    /// client requests the end, after it was answered. It should pass the request on and return, and must not drop the
    /// server.
    ///
    /// # Errors
    /// When the path cannot be listened at.
    pub fn start(
        path: &Path,
        handles: Vec<Handle>,
        on_stop: impl Fn() + Send + Sync + 'static,
    ) -> io::Result<ControlServer> {
        ControlServer::with(listen(path)?, Shared::serving(handles), (on_stop, None), LIMITS)
    }

    /// The same before there are reactors: until [`ControlServer::takes_orders`], clients are only told how far the start is.
    ///
    /// # Errors
    /// When the path cannot be listened at.
    pub fn start_early(
        path: &Path,
        startup: Arc<Startup>,
        on_stop: impl Fn() + Send + Sync + 'static,
    ) -> io::Result<ControlServer> {
        let shared = Shared { handles: OnceLock::new(), startup };
        ControlServer::with(listen(path)?, shared, (on_stop, None), LIMITS)
    }

    /// From now on clients give orders to the reactors behind `handles`. A second call changes nothing.
    pub fn takes_orders(&self, handles: Vec<Handle>) {
        let _ = self.shared.handles.set(handles);
    }

    /// The same for a server that replaces lost drives, at a socket that listens already.
    ///
    /// # Errors
    /// When the system has no thread for it.
    pub fn start_with(
        listening: Listening,
        handles: Vec<Handle>,
        on_stop: impl Fn() + Send + Sync + 'static,
        replace: Replace,
    ) -> io::Result<ControlServer> {
        ControlServer::with(listening, Shared::serving(handles), (on_stop, Some(replace)), LIMITS)
    }

    fn with(
        listening: Listening,
        shared: Shared,
        (on_stop, replace): (impl Fn() + Send + Sync + 'static, Option<Replace>),
        limits: Limits,
    ) -> io::Result<ControlServer> {
        let shared = Arc::new(shared);
        let serves = shared.clone();
        let service = Service {
            name: "control",
            max_clients: limits.clients,
            read_patience: None,
            write_patience: limits.patience,
            refusal: line(&error(format!(
                "more than {} clients: the one that was silent longest left",
                limits.clients
            ))),
            serve: Box::new(move |stream, heard| serve(stream, &serves, replace.as_ref(), (&on_stop, heard))),
        };
        Server::start(listening, service).map(|server| ControlServer { server, shared })
    }

    /// Its address.
    pub fn address(&self) -> &Address {
        self.server.address()
    }
}

fn listen(path: &Path) -> io::Result<Listening> {
    Address::Unix(path.to_owned()).listen(false)
}

fn serve(
    mut stream: &Stream,
    shared: &Shared,
    replace: Option<&Replace>,
    (on_stop, heard): (&dyn Fn(), &dyn Fn()),
) -> io::Result<()> {
    let mut reader = BufReader::new(stream);
    let mut bytes = Vec::new();
    loop {
        bytes.clear();
        (&mut reader).take(MAX_LINE as u64 + 1).read_until(b'\n', &mut bytes)?;
        if bytes.is_empty() {
            return Ok(());
        }
        if bytes.len() > MAX_LINE && !bytes.ends_with(b"\n") {
            // Its end is unknown.
            return stream.write_all(&line(&error(format!("a line has at most {MAX_LINE} bytes"))));
        }
        heard();
        let text = bytes.trim_ascii();
        if text.is_empty() {
            continue;
        }
        let command = match Command::parse(text) {
            Ok(command) => command,
            Err(problem) => {
                stream.write_all(&line(&error(problem)))?;
                continue;
            }
        };
        let (status, handles) = (shared.startup.status(), shared.handles.get());
        let answer = match (&command, replace, handles) {
            (Command::Status, ..) => line(&status),
            (Command::Help, ..) => reply(&command, &[]),
            (_, _, None) => line(&json!({
                "error": format!("the drives do not serve yet ({}); until they do, a signal ends the server", status.in_words()),
                "valid": [{ "command": "status" }, { "command": "help" }],
            })),
            (Command::Replace { drive, with }, Some(replace), _) => match replace(drive, with) {
                Ok(done) => line(&json!({ "replaced": done })),
                Err(problem) => line(&json!({ "error": problem })),
            },
            (_, _, Some(handles)) => reply(&command, handles),
        };
        let sent = stream.write_all(&answer);
        if matches!(command, Command::Stop) && handles.is_some() {
            // The order counts whether or not the client waits for the answer.
            on_stop();
        }
        sent?;
    }
}

/// Carries a command out; the line that answers it.
pub(crate) fn reply(command: &Command, handles: &[Handle]) -> Vec<u8> {
    match command {
        Command::Help => line(&json!({ "commands": command::help() })),
        Command::Status => line(&Startup::over().status()),
        Command::Statistics => match handles.iter().filter_map(Handle::figures).collect::<Vec<_>>() {
            figures if figures.is_empty() => line(&json!({ "error": "the drives have ended" })),
            figures => line(&Statistics::of(&figures)),
        },
        Command::Fault { drive, rule } => {
            told(handles, drive.as_deref(), Order::AddFault(rule.clone()), DriveFaults::of)
        }
        Command::ClearFaults { drive } => told(handles, drive.as_deref(), Order::ClearFaults, DriveFaults::of),
        Command::Set { drive, key, value } => {
            told(handles, drive.as_deref(), Order::Set(format!("{key}={value}")), DriveSettings::of)
        }
        Command::Settings => match Drives::of(handles) {
            Ok(drives) => line(&BTreeMap::from([("drives", drives.settings())])),
            Err(problem) => line(&json!({ "error": problem })),
        },
        Command::Faults => match Drives::of(handles) {
            Ok(drives) => line(&BTreeMap::from([("drives", drives.faults())])),
            Err(problem) => line(&json!({ "error": problem })),
        },
        Command::Stop => line(&json!({ "stopping": true })),
        Command::Replace { .. } => {
            line(&error("this server replaces no drives; `nandscape memcached --control PATH` does"))
        }
    }
}

/// Gives a drive an order; returns the result of `of` afterwards.
fn told<T: Serialize>(
    handles: &[Handle],
    drive: Option<&str>,
    order: Order,
    of: impl Fn(&ExportFigures) -> T,
) -> Vec<u8> {
    let told = Drives::of(handles).and_then(|drives| drives.tell(drive, order, of));
    told.map_or_else(|problem| line(&error(problem)), |now| line(&now))
}

/// An error, with the commands that are valid.
fn error(problem: impl Into<String>) -> serde_json::Value {
    json!({
        "error": problem.into(),
        "valid": command::valid(),
    })
}

fn line(value: &impl Serialize) -> Vec<u8> {
    let mut line = serde_json::to_vec(value).expect("names are strings");
    line.push(b'\n');
    line
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;
    use std::os::unix::net::UnixStream;

    use super::*;

    fn server(folder: &tempfile::TempDir, clients: usize, patience: Duration) -> (ControlServer, std::path::PathBuf) {
        let path = folder.path().join("control");
        let server = ControlServer::with(
            listen(&path).unwrap(),
            Shared::serving(Vec::new()),
            (|| {}, None),
            Limits { clients, patience },
        )
        .unwrap();
        (server, path)
    }

    fn helped(stream: &UnixStream) -> bool {
        (&*stream).write_all(b"{\"command\":\"help\"}\n").unwrap();
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line).unwrap();
        line.starts_with("{\"commands\":")
    }

    #[test]
    fn a_client_that_never_reads_is_dropped_and_the_others_do_not_notice() {
        let folder = tempfile::tempdir().unwrap();
        let (_server, path) = server(&folder, 4, Duration::from_millis(50));
        let mut deaf = UnixStream::connect(&path).unwrap();
        let other = UnixStream::connect(&path).unwrap();
        assert!(helped(&other));
        // Replies fill its socket; the server waits for it to read, and then disconnects it.
        let question = b"{\"command\":\"help\"}\n".repeat(1_000);
        let broken = std::iter::repeat_with(|| deaf.write_all(&question)).find_map(Result::err).unwrap();
        assert!(matches!(broken.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset), "{broken}");
        assert!(helped(&other));
    }

    /// Orders wait for the drives; so does the end.
    #[test]
    fn a_server_that_starts_reports_its_progress_and_takes_no_orders() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("control");
        let (startup, stopped) = (Arc::new(Startup::default()), Arc::new(std::sync::atomic::AtomicBool::new(false)));
        let stops = stopped.clone();
        let on_stop = move || stops.store(true, std::sync::atomic::Ordering::SeqCst);
        let server = ControlServer::start_early(&path, startup.clone(), on_stop).unwrap();
        let stream = UnixStream::connect(&path).unwrap();
        let mut lines = BufReader::new(&stream);
        let mut ask = |command: &str| {
            (&stream).write_all(format!("{{\"command\":\"{command}\"}}\n").as_bytes()).unwrap();
            let mut line = String::new();
            lines.read_line(&mut line).unwrap();
            serde_json::from_str::<serde_json::Value>(&line).unwrap()
        };
        assert_eq!(ask("status"), json!({ "phase": "starting" }));
        startup.at("fast", "preconditioning", Some(0.25));
        assert_eq!(ask("status"), json!({ "phase": "preconditioning", "drive": "fast", "share": 0.25 }));
        for order in ["statistics", "stop", "faults", "settings"] {
            let refused = ask(order);
            let told = refused["error"].as_str().unwrap();
            assert!(told.starts_with("the drives do not serve yet (drive fast: preconditioning, 25%); "), "{told}");
            assert_eq!(refused["valid"][0], json!({ "command": "status" }));
        }
        assert!(ask("help")["commands"]["status"].is_string());
        assert!(!stopped.load(std::sync::atomic::Ordering::SeqCst));
        server.takes_orders(Vec::new());
        assert_eq!(ask("statistics"), json!({ "error": "the drives have ended" }));
        startup.serves();
        assert_eq!(ask("status"), json!({ "phase": "serving" }));
        assert_eq!(ask("stop"), json!({ "stopping": true }));
    }

    /// Clients that connect and stay silent cannot lock an operator out.
    #[test]
    fn the_client_that_was_silent_longest_makes_room() {
        let folder = tempfile::tempdir().unwrap();
        let (server, path) = server(&folder, 2, LIMITS.patience);
        let [first, second] = [0, 1].map(|_| UnixStream::connect(&path).unwrap());
        assert!(helped(&second) && helped(&first));
        let third = UnixStream::connect(&path).unwrap();
        assert!(helped(&third));
        let mut told = String::new();
        (&second).read_to_string(&mut told).unwrap();
        assert!(told.starts_with("{\"error\":\"more than 2 clients: the one that was silent longest left\""), "{told}");
        assert!(told.ends_with("}\n") && helped(&first) && helped(&third));
        drop(server);
        assert!(!path.exists());
    }

    /// The client that sends commands stays, although the silent ones connected later.
    #[test]
    fn a_client_that_sent_nothing_whole_makes_room_first() {
        let folder = tempfile::tempdir().unwrap();
        let (_server, path) = server(&folder, 3, LIMITS.patience);
        let operator = UnixStream::connect(&path).unwrap();
        assert!(helped(&operator));
        let mut others = Vec::new();
        for half in [&b""[..], b"{\"command\":"].into_iter().cycle().take(20) {
            let mut other = UnixStream::connect(&path).unwrap();
            other.write_all(half).unwrap();
            others.push(other);
            assert!(helped(&operator));
        }
        assert!(helped(&UnixStream::connect(&path).unwrap()) && helped(&operator));
    }
}
