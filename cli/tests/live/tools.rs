//! Runs the clients.

use std::process::{Child, Command, Stdio};

use crate::patience;
use crate::server::Server;

/// A client program.
pub(crate) fn tool(name: &str, args: &[&str]) -> Command {
    let mut command = Command::new(name);
    command.args(args).stdin(Stdio::null());
    command
}

/// Runs it, holds that it is content, and gives what it prints.
pub(crate) fn run(name: &str, args: &[&str]) -> String {
    let output = patience::output(&mut tool(name, args))
        .unwrap_or_else(|error| panic!("{name}: {error}; run: cargo xtask tools"));
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{name} {args:?}: {}\n{out}\n{err}", output.status);
    out.into_owned()
}

fn fio_args(server: &Server, more: &[&str]) -> Vec<String> {
    // Its files, such as the state of a verification, belong next to the socket.
    let aux = format!("--aux-path={}", server.folder.path().display());
    let mut args: Vec<String> =
        ["--name=job", "--ioengine=nbd", "--randseed=7", "--thread", &aux].map(str::to_owned).into();
    args.push(format!("--uri={}", server.uri()));
    args.extend(more.iter().map(|arg| (*arg).to_owned()));
    args
}

/// Runs fio on the server's drive to its end.
pub(crate) fn fio(server: &Server, more: &[&str]) {
    let args = fio_args(server, more);
    run("fio", &args.iter().map(String::as_str).collect::<Vec<_>>());
}

/// Starts fio. The caller ends it.
pub(crate) fn start_fio(server: &Server, more: &[&str]) -> Child {
    let mut command = tool("fio", &[]);
    command.args(fio_args(server, more)).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().unwrap_or_else(|error| panic!("fio: {error}; run: cargo xtask tools"))
}
