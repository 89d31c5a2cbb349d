//! `--vfio-user [NAME=]PATH`: drives as PCI functions of virtual machines.

use std::path::PathBuf;
use std::sync::Arc;

use clap::ValueEnum;
use nandscape_transport_reactor::PollMode;
use nandscape_transport_reactor::socket::Address;
use nandscape_transport_vfio_user::{DoorbellMode, Function, Listener};

use super::reactors::{LiveDrive, Running};
use super::{ServeArgs, no_place};
use crate::failure::Failure;
use crate::output;

/// How the doorbells of guests come.
#[derive(Copy, Clone, PartialEq, Eq, ValueEnum)]
pub(super) enum DoorbellsArg {
    /// Mapped where the server never sleeps, else buffered
    Auto,
    /// By a message each
    Trapped,
    /// In the guest's own doorbell buffers, which the server reads after each message about them
    Shadow,
    /// Through the guest's own doorbell buffers while the server is awake, else by a message each
    Buffered,
    /// In a page that the guest maps, and that the server looks at
    Mapped,
}

/// A word of the command line, split.
pub(super) struct FunctionArg {
    /// The place of its drive on the command line, and its own number among the functions of that drive.
    drive: usize,
    number: u16,
    path: PathBuf,
}

/// Splits the words. A path alone is the first drive's.
pub(super) fn of_words(words: &[String], names: &[String]) -> Result<Vec<FunctionArg>, Failure> {
    let split = |word: &String| {
        // If one name begins with the other, the longer one.
        let named = names.iter().enumerate();
        let named = named.filter_map(|(drive, name)| Some((drive, word.strip_prefix(name)?.strip_prefix('=')?)));
        let (drive, path) = match named.min_by_key(|(_, path)| path.len()) {
            Some(named) => named,
            None if word.contains('=') => return Err(unknown(word, names)),
            None => (0, word.as_str()),
        };
        match path {
            "" => Err(Failure::Input(anyhow::anyhow!("--vfio-user {word}: needs a path, as in /run/drive.sock"))),
            path => Ok(FunctionArg { drive, number: 0, path: PathBuf::from(path) }),
        }
    };
    let mut functions = words.iter().map(split).collect::<Result<Vec<FunctionArg>, Failure>>()?;
    for place in 1..functions.len() {
        let (before, rest) = functions.split_at_mut(place);
        rest[0].number = before.iter().filter(|function| function.drive == rest[0].drive).count() as u16;
    }
    Ok(functions)
}

fn unknown(word: &str, names: &[String]) -> Failure {
    let name = word.split_once('=').map_or(word, |(name, _)| name);
    Failure::Input(anyhow::anyhow!(
        "--vfio-user {word}: there is no drive {name:?}; NAME=PATH names one of {}, a PATH alone is the first one's",
        names.join(", ")
    ))
}

impl FunctionArg {
    /// The place of its drive on the command line.
    pub(super) fn drive(&self) -> usize {
        self.drive
    }

    /// Where it listens.
    pub(super) fn address(&self) -> Address {
        Address::Unix(self.path.clone())
    }
}

/// Begins to listen; from then on there are sockets.
pub(super) fn listen(
    args: &ServeArgs,
    running: &Running,
    log: &Arc<dyn Fn(&str) + Send + Sync>,
) -> Result<Vec<Listener>, Failure> {
    let doorbells = match args.doorbells {
        DoorbellsArg::Auto if args.poll_mode() == PollMode::Busy => DoorbellMode::Mapped,
        DoorbellsArg::Auto | DoorbellsArg::Buffered => DoorbellMode::Buffered,
        DoorbellsArg::Trapped => DoorbellMode::Trapped,
        DoorbellsArg::Shadow => DoorbellMode::Shadow,
        DoorbellsArg::Mapped => DoorbellMode::Mapped,
    };
    let start = |function: FunctionArg| {
        let LiveDrive { name, handle, number: drive, queue_pairs, .. } = &running.drives[function.drive];
        let (path, address) = (function.path.clone(), function.address());
        let (handle, drive, queue_pairs, log) = (handle.clone(), *drive, *queue_pairs, log.clone());
        let number = function.number;
        let listener = Listener::start(Function { path, handle, drive, number, queue_pairs, doorbells, log })
            .map_err(|error| no_place("--vfio-user", &address, &error))?;
        output::note(&how_to_connect(name, &function.path));
        Ok(listener)
    };
    args.functions()?.into_iter().map(start).collect()
}

/// The words for QEMU.
fn how_to_connect(name: &str, path: &std::path::Path) -> String {
    let path = serde_json::Value::from(path.display().to_string());
    format!(
        "serving {name} to a guest of QEMU 10.1 or later: \
         -device '{{\"driver\":\"vfio-user-pci\",\"socket\":{{\"type\":\"unix\",\"path\":{path}}}}}', \
         with memory that it shares: -object memory-backend-memfd,id=m,size=1G,share=on -machine q35,memory-backend=m"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_is_of_the_drive_it_names_or_of_the_first() {
        let names = ["a", "a=b"].map(str::to_owned);
        let words = ["x.sock", "a=/run/y", "a=b=./z=1"].map(str::to_owned);
        let found = of_words(&words, &names).unwrap();
        let found: Vec<_> = found.iter().map(|of| (of.drive, of.number, of.path.to_str().unwrap())).collect();
        assert_eq!(found, [(0, 0, "x.sock"), (0, 1, "/run/y"), (1, 0, "./z=1")]);
        let error = |word: &str| of_words(&[word.to_owned()], &names).err().unwrap().to_string();
        assert!(error("c=x").contains("there is no drive \"c\"; NAME=PATH names one of a, a=b"));
        assert!(error("a=").contains("needs a path") && error("").contains("needs a path"));
    }
}
