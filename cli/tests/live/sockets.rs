//! Where it listens, and where it refuses to.

use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixListener;

use crate::patience;
use crate::server::{SMALL, Server, refuse};
use crate::tools::run;

fn at<'a>(addresses: &[&'a str]) -> Vec<&'a str> {
    let mut args = SMALL.to_vec();
    addresses.iter().for_each(|address| args.extend(["--nbd", address]));
    args
}

/// Refused with status 2, and these words; nothing is left in the folder but `left`.
fn refused(folder: &std::path::Path, args: &[&str], words: &str, left: &[&str]) {
    let ended = refuse(folder, args);
    assert_eq!((ended.code, &ended.out as &str), (Some(2), ""), "{args:?}: {ended:?}");
    assert!(ended.err.contains(words), "{args:?} does not say {words:?}: {}", ended.err);
    let mut names: Vec<_> = folder.read_dir().unwrap().map(|one| one.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, left, "{args:?}");
}

#[test]
fn a_socket_is_its_owners_serves_as_soon_as_it_is_there_and_goes_with_the_server() {
    let folder = tempfile::tempdir().unwrap();
    // What a dead server left.
    drop(UnixListener::bind(folder.path().join("n.sock")).unwrap());
    let server = Server::start(folder, &at(&["unix:n.sock", "unix:m.sock"]));
    for socket in ["n.sock", "m.sock"] {
        // The second appears a moment later.
        patience::until("the socket is there", || server.path(socket).exists());
        assert_eq!(server.path(socket).metadata().unwrap().permissions().mode() & 0o7777, 0o600);
        run("nbdinfo", &["--size", &format!("nbd+unix:///?socket={}", server.path(socket).display())]);
    }
    // Another server is rejected, and harms neither the socket nor this server's recording.
    std::fs::write(server.path("run.rec"), "precious").unwrap();
    let mut args = at(&["unix:n.sock"]);
    args.extend(["--record", "run.rec"]);
    let left = ["m.sock", "n.sock", "run.rec"];
    refused(server.folder.path(), &args, "--nbd unix:n.sock: cannot listen: another server listens there", &left);
    assert_eq!(std::fs::read(server.path("run.rec")).unwrap(), b"precious");
    run("nbdinfo", &["--size", &server.uri()]);
    let (sockets, folder) = (["n.sock", "m.sock"].map(|socket| server.path(socket)), server.path(""));
    let mut server = server;
    server.signal(rustix::process::Signal::TERM);
    let ended = server.wait();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(folder.exists() && sockets.iter().all(|socket| !socket.exists()));
}

#[test]
fn bad_addresses_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("letter"), "").unwrap();
    let long = format!("unix:{}", "x".repeat(200));
    let long_name = format!("{}=default", "x".repeat(9_000));
    for (address, words) in [
        ("n.sock", "is not an address: give unix:PATH, or HOST:PORT"),
        ("unix:", "unix: needs a path"),
        ("127.0.0.1:70000", "is not an address"),
        ("unix:letter", "the path is not a socket"),
        ("unix:no/such/folder/n.sock", "No such file"),
        ("0.0.0.0:0", "--allow-remote"),
        ("[::]:0", "--allow-remote"),
        (&long, "the path has 200 bytes, and that of a unix socket has at most 107"),
    ] {
        refused(folder.path(), &at(&[address]), words, &["letter"]);
    }
    for (more, words) in [
        (["--control", "letter"], "--control unix:letter: cannot listen: the path is not a socket"),
        (["--control", "n.sock"], "--control unix:n.sock: --nbd has the same address"),
        (["--nbd", "unix:n.sock"], "--nbd unix:n.sock: --nbd has the same address"),
        (["--metrics", "0.0.0.0:0"], "--allow-remote"),
        (["--vfio-user", "n.sock"], "--vfio-user unix:n.sock: --nbd has the same address"),
        (["--vfio-user", "letter"], "--vfio-user unix:letter: cannot listen: the path is not a socket"),
        (["--vfio-user", "no=v.sock"], "there is no drive \"no\"; NAME=PATH names one of small"),
        (["--record", "n.sock"], "--record n.sock and --nbd n.sock are the same file"),
        (["--drive", "a\tb=default"], "no control characters"),
        (["--drive", &long_name], "a name has at most 256 bytes"),
    ] {
        refused(folder.path(), &[&at(&["unix:n.sock"])[..], &more].concat(), words, &["letter"]);
    }
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    for more in [["--nbd", &address], ["--metrics", &address]] {
        let words = format!("{} {address}: cannot listen: Address already in use", more[0]);
        refused(folder.path(), &[&at(&["unix:n.sock"])[..], &more].concat(), &words, &["letter"]);
    }
    // One bad address among good ones: nothing is served.
    refused(folder.path(), &at(&["unix:n.sock", "0.0.0.0:0"]), "--allow-remote", &["letter"]);
}

#[test]
fn tcp_is_served_and_to_others_only_when_that_is_allowed() {
    let server = Server::start(tempfile::tempdir().unwrap(), &at(&["127.0.0.1:0"]));
    let said = server.end().err;
    assert!(said.contains("serving small at nbd://127.0.0.1:") && !said.contains("127.0.0.1:0/"), "{said}");
    let mut args = at(&["0.0.0.0:0"]);
    args.push("--allow-remote");
    let said = Server::start(tempfile::tempdir().unwrap(), &args).end().err;
    assert!(said.contains("serving small at nbd://0.0.0.0:") && said.contains("unauthenticated"), "{said}");
}

/// The first signal waits for the drive, whose power is off for long.
#[test]
#[expect(clippy::disallowed_methods, reason = "only time tells what never comes from what is slow")]
fn a_second_signal_ends_a_server_at_once_without_its_sockets() {
    let mut server =
        Server::small(&["--metrics", "unix:metrics", "--control", "control", "--fault", "power_cut off=900s"]);
    run("nbdinfo", &["--size", &server.uri()]);
    let mut client = crate::tools::start_fio(&server, &["--rw=randread", "--bs=4k", "--iodepth=1", "--size=4m"]);
    let sockets = ["n.sock", "metrics", "control"].map(|name| server.path(name));
    crate::hang_ups::until_power_cut(&server);
    server.signal(rustix::process::Signal::TERM);
    // It has heard the first signal when it takes in no more clients.
    patience::until("no client is taken in", || std::os::unix::net::UnixStream::connect(&sockets[0]).is_err());
    // Signals that come together with the first are one request.
    let heard = std::time::Instant::now();
    while server.is_running() {
        assert!(heard.elapsed().as_secs() < 60, "a second signal does not end it");
        server.signal(rustix::process::Signal::TERM);
        std::thread::yield_now();
    }
    let ended = server.wait();
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.err.contains("metrics: curl --unix-socket metrics http://localhost/metrics"), "{}", ended.err);
    assert!(sockets.iter().all(|socket| !socket.exists()));
    patience::wait(&mut client, "fio");
}
