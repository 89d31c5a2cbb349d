//! Sockets to listen at: modes, remains of a dead server, a live server's socket, and what remains afterwards.
#![cfg(target_os = "linux")]

use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixDatagram, UnixListener};
use std::thread;

use nandscape_transport_reactor::socket::{Address, Listening, Stream};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

fn refusal(address: &Address) -> ErrorKind {
    address.listen(false).map(|_: Listening| ()).unwrap_err().kind()
}

#[test]
fn a_unix_socket_is_its_owners_alone_and_goes_with_its_server() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s");
    let address = Address::Unix(path.clone());
    // The remains of a dead server: a socket without a listener.
    drop(UnixListener::bind(&path).unwrap());
    assert!(path.exists());
    let listening = address.listen(false).unwrap();
    assert_eq!(listening.address(), &address);
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o7777, 0o600);
    // The live one is left alone.
    assert_eq!(refusal(&address), ErrorKind::AddrInUse);
    let names: Vec<_> = folder.path().read_dir().unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["s"]);
    drop(listening);
    assert!(!path.exists());
}

#[test]
fn what_is_not_a_socket_is_never_replaced_and_what_is_anothers_never_removed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s");
    std::fs::write(&path, "a letter").unwrap();
    assert_eq!(refusal(&Address::Unix(path.clone())), ErrorKind::AlreadyExists);
    assert_eq!(std::fs::read(&path).unwrap(), b"a letter");
    std::fs::remove_file(&path).unwrap();
    let listening = Address::Unix(path.clone()).listen(false).unwrap();
    std::fs::remove_file(&path).unwrap();
    std::fs::write(&path, "another letter").unwrap();
    drop(listening);
    assert_eq!(std::fs::read(&path).unwrap(), b"another letter");
}

/// Such as a logger's: it is alive although it takes no connections.
#[test]
fn a_socket_of_another_kind_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let log = UnixDatagram::bind(&path).unwrap();
    assert_eq!(refusal(&Address::Unix(path.clone())), ErrorKind::AlreadyExists);
    let sender = UnixDatagram::unbound().unwrap();
    sender.send_to(b"alive", &path).unwrap();
    let mut said = [0; 8];
    assert_eq!(log.recv(&mut said).unwrap(), 5);
}

/// With and without the remains of a dead server.
#[test]
fn of_servers_that_start_together_one_gets_the_place() {
    for round in 0..50 {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        if round % 2 == 0 {
            drop(UnixListener::bind(&path).unwrap());
        }
        let address = Address::Unix(path.clone());
        let start = std::sync::Barrier::new(8);
        let outcomes: Vec<_> = thread::scope(|scope| {
            let starter = || {
                start.wait();
                address.listen(false)
            };
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(starter)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let (served, refused): (Vec<_>, Vec<_>) = outcomes.into_iter().partition(Result::is_ok);
        assert_eq!((served.len(), refused.len()), (1, 7), "round {round}");
        assert!(refused.iter().all(|one| one.as_ref().err().map(|error| error.kind()) == Some(ErrorKind::AddrInUse)));
        assert_eq!(folder.path().read_dir().unwrap().count(), 1, "nothing else is left");
        // The socket of the present server, and not that of an earlier one.
        Stream::connect(&address).unwrap();
    }
}

#[test]
fn the_longest_path_works_and_a_longer_one_is_refused_beforehand() {
    let folder = tempfile::tempdir().unwrap();
    let room = 107 - folder.path().as_os_str().len() - 1;
    let longest = Address::Unix(folder.path().join("x".repeat(room)));
    longest.check(false).unwrap();
    let _listening = longest.listen(false).unwrap();
    Stream::connect(&longest).unwrap();
    let error = Address::Unix(folder.path().join("x".repeat(room + 1))).check(false).unwrap_err();
    assert_eq!(error.to_string(), "the path has 108 bytes, and that of a unix socket has at most 107");
}

/// Its queue of clients that it has not taken in is full.
#[test]
fn a_server_too_busy_to_answer_is_a_server() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s");
    let _listening = Address::Unix(path.clone()).listen(false).unwrap();
    let connect = || {
        let (family, kind) = (AddressFamily::UNIX, SocketType::STREAM);
        let socket = rustix::net::socket_with(family, kind, SocketFlags::NONBLOCK, None).unwrap();
        rustix::net::connect(&socket, &SocketAddrUnix::new(&path).unwrap()).map(|()| socket)
    };
    let _waiting: Vec<_> = std::iter::from_fn(|| connect().ok()).collect();
    assert_eq!(refusal(&Address::Unix(path.clone())), ErrorKind::AddrInUse);
}

#[test]
fn who_waits_for_a_client_can_be_interrupted_even_when_the_socket_has_been_unlinked() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s");
    for address in [Address::Unix(path.clone()), "127.0.0.1:0".parse().unwrap()] {
        let listening = address.listen(false).unwrap();
        thread::scope(|scope| {
            let waiting = scope.spawn(|| {
                listening.accept().unwrap().write_all(b"hi").unwrap();
                listening.accept().map(|_: Stream| ())
            });
            let mut greeting = [0; 2];
            Stream::connect(listening.address()).unwrap().read_exact(&mut greeting).unwrap();
            // It may have been removed, and then no client can connect.
            let _ = std::fs::remove_file(&path);
            listening.interrupt();
            assert!(waiting.join().unwrap().is_err());
        });
    }
}

/// By default, only the first of several slices would be written.
#[test]
fn several_slices_are_written_in_one_call() {
    let (near, mut far) = std::os::unix::net::UnixStream::pair().unwrap();
    let mut near = Stream::Unix(near);
    let slices = [b"one ", b"and ", b"more"].map(|text| std::io::IoSlice::new(text));
    assert_eq!(near.write_vectored(&slices).unwrap(), 12);
    let mut text = [0; 12];
    far.read_exact(&mut text).unwrap();
    assert_eq!(&text, b"one and more");
}

#[test]
fn an_address_that_others_can_reach_has_to_be_allowed() {
    let everywhere: Address = "0.0.0.0:0".parse().unwrap();
    assert_eq!(refusal(&everywhere), ErrorKind::PermissionDenied);
    let listening = everywhere.listen(true).unwrap();
    let Address::Tcp(address) = listening.address() else { panic!("{} is no TCP address", listening.address()) };
    assert!(address.starts_with("0.0.0.0:") && !address.ends_with(":0"), "{address}");
}

#[test]
fn addresses_are_read_as_they_are_written() {
    for text in ["unix:/run/nandscape.sock", "127.0.0.1:10809", "[::1]:10809", "localhost:1"] {
        assert_eq!(text.parse::<Address>().unwrap().to_string(), text);
    }
    for text in ["", "unix:", "localhost", ":10809", "localhost:", "localhost:70000", "/run/nandscape.sock"] {
        let error = text.parse::<Address>().unwrap_err();
        assert!(error.contains("unix:"), "{text:?}: {error}");
    }
}
