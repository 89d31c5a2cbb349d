//! A drive with two namespaces, as clients of each transport meet them.

use std::process::Command;

use crate::server::{Ended, Server, run};
use crate::tools;

/// Two FTLs, namespaces 1 and 2.
fn serve() -> Server {
    let drive = ["--drive", "pair=two-ftls", "--set", "capacity=512MiB", "--no-delay", "--check", "--json"];
    let places = ["--nbd", "unix:n.sock", "--nvme-tcp", "127.0.0.1:0", "--vfio-user", "f.sock"];
    Server::start(tempfile::tempdir().unwrap(), &[&drive[..], &places].concat())
}

fn nbd(server: &Server, export: &str) -> String {
    format!("nbd+unix:///{export}?socket={}", server.path("n.sock").display())
}

fn bench(url: &str, more: &[&str]) -> Ended {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nandscape"));
    command.args(["bench", "--to", url, "--rw", "randrw", "--io-count", "100", "--json"]).args(more);
    run(command)
}

#[test]
fn each_namespace_is_an_export_of_its_own() {
    let server = serve();
    let listed = tools::run("nbdinfo", &["--list", &nbd(&server, "")]);
    assert!(listed.contains("export=\"pair\":") && listed.contains("export=\"pair/2\":"), "{listed}");
    assert!(listed.contains("description: namespace 2, "), "{listed}");
    let write = |export: &str, byte: &str| {
        let pattern = format!("write -P {byte} 0 64k");
        tools::run("qemu-io", &["-f", "raw", "-c", &pattern, &nbd(&server, export)])
    };
    let holds = |export: &str, byte: &str| {
        let pattern = format!("read -P {byte} 0 64k");
        let told = tools::run("qemu-io", &["-f", "raw", "-c", &pattern, &nbd(&server, export)]);
        assert!(!told.contains("failed"), "{export}: {told}");
    };
    write("pair", "0x11");
    write("pair/2", "0x22");
    holds("pair/1", "0x11");
    holds("pair/2", "0x22");
    holds("pair", "0x11");
    let ended = bench(&nbd(&server, "pair/3"), &[]);
    assert!(ended.code == Some(2) && ended.err.contains("there are: pair, pair/2"), "{ended:?}");
    let ended = bench(&nbd(&server, "pair"), &["--namespace", "2"]);
    assert!(ended.code == Some(2) && ended.err.contains("the export's name chooses it"), "{ended:?}");
    server.figures();
}

#[test]
fn workloads_choose_a_namespace() {
    let server = serve();
    let tcp = format!("nvme-tcp://{}", server.next_place("nvme-tcp://"));
    server.next_place("serving pair to a guest");
    let function = format!("vfio-user://{}", server.path("f.sock").display());
    for url in [&tcp, &function] {
        assert_eq!(bench(url, &["--namespace", "2"]).code, Some(0));
        let ended = bench(url, &["--namespace", "3"]);
        assert!(ended.code == Some(2) && ended.err.contains("namespace 3 is not there; valid are 1, 2"), "{ended:?}");
    }
    let second = format!("{tcp}?namespace=2");
    let ended = bench(&second, &[]);
    assert!(ended.code == Some(0) && ended.out.contains("?namespace=2"), "{ended:?}");
    let drive = ["--set", "capacity=512MiB", "--no-delay"];
    let ended = bench("ring://two-ftls", &[&drive[..], &["--namespace", "2"]].concat());
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let ended = bench("ring://two-ftls", &[&drive[..], &["--namespace", "3"]].concat());
    assert!(ended.code == Some(2) && ended.err.contains("no namespace 3"), "{ended:?}");
    // A namespace of this server is the drive of another one.
    let again = ["--drive", &format!("second={second}"), "--nbd", "unix:s.sock", "--json"];
    let far = Server::start(tempfile::tempdir().unwrap(), &again);
    let url = format!("nbd+unix:///second?socket={}", far.path("s.sock").display());
    assert_eq!(bench(&url, &[]).code, Some(0));
    far.figures();
    server.figures();
}
