//! `nandscape kv serve`: a store on a drive, in real time.

use std::path::PathBuf;

use clap::Args;
use nandscape_apps_kv_run::live::{ServeSpec, serve};
use nandscape_device_media::durable::{Membership, StoreFile};
use nandscape_host_block::{Config, PredictorKind};
use nandscape_lab_run::{DriveSpec, Precondition};
use nandscape_transport_reactor::socket::{Address, remove_socket_files};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use super::words::NoiseArg;
use crate::failure::Failure;
use crate::numbers::whole;
use crate::output;
use crate::sim::resolve;

/// Serve a store on a drive, in real time.
///
/// The store has one half of the drive; what --noise writes goes to the other. A line on standard output tells that clients can
/// connect, and where. A drive in a file keeps its values, even after kill -9.
#[derive(Args)]
#[command(after_help = "\
Examples:
  nandscape kv serve --drive default --set capacity=4GiB \\
      --listen unix:kv0.sock
  nandscape kv serve --drive default --set capacity=1GiB \\
      --store file:kv.nand --listen 127.0.0.1:7070

Exit status: 0 after SIGTERM or SIGINT, once all is flushed; 1 when the server has failed; 2 for bad usage or input.")]
pub(super) struct ServeArgs {
    /// The drive
    #[arg(long, value_name = "P", default_value = "default")]
    drive: String,
    /// Change a key of the drive's profile; may be repeated. block.predictor=ssd and other keys of block are those of the block layer between
    /// the drive and the store: docs/techniques/mittos.md. Left out, the drive reports the delay by its background work (block.predictor=told)
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Where the flash is: ram, or a file, which is made if it does not exist
    #[arg(long, value_name = "ram|[file:]PATH", default_value = "ram")]
    store: String,
    /// Where clients connect: unix:PATH or HOST:PORT
    #[arg(long, value_name = "ADDR")]
    listen: Address,
    /// Allow TCP addresses that other machines can reach. There is no authentication
    #[arg(long)]
    allow_remote: bool,
    /// A noisy neighbour on the drive, as in `nandscape kv sim`
    #[arg(long, value_name = "NOISE", default_value = "none")]
    noise: NoiseArg,
    /// Seed of all random choices
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole, allow_negative_numbers = true)]
    seed: u64,
}

impl ServeArgs {
    fn drive(&self, set: &[String]) -> Result<DriveSpec, Failure> {
        let resolved = resolve(&self.drive, set)?;
        resolved.notes.iter().for_each(|note| output::note(note));
        Ok(DriveSpec {
            name: "kv".to_owned(),
            number: 0,
            profile_name: resolved.name.clone(),
            profile: resolved.to_toml(),
            keeps_data: true,
            precondition: Precondition::None,
            from_state: None,
            is_shared: false,
            own_seed: None,
        })
    }

    fn file(&self, drive: &DriveSpec) -> Result<Option<StoreFile>, Failure> {
        if self.store == "ram" {
            return Ok(None);
        }
        let path = PathBuf::from(self.store.strip_prefix("file:").unwrap_or(&self.store));
        let wrong = |problem: String| Failure::Input(anyhow::anyhow!("--store {}: {problem}", path.display()));
        let profile = drive.resolve().map_err(Failure::input)?;
        if StoreFile::exists(&path).map_err(|error| wrong(error.to_string()))? {
            let file = StoreFile::open(&path, false).map_err(|error| wrong(error.to_string()))?;
            if let Membership::Member(owner) = file.before().membership {
                return Err(wrong(format!("its drive is a member of {owner}; serve that, or name another file")));
            }
            profile.check_store(file.spec()).map_err(|problem| wrong(format!("it holds another drive: {problem}")))?;
            return Ok(Some(file));
        }
        let stores = drive.store_specs(self.seed).map_err(Failure::input)?;
        profile.check_store(&stores[0]).map_err(wrong)?;
        StoreFile::create_all(&path, stores, false).map(Some).map_err(|error| wrong(error.to_string()))
    }
}

/// Whether it may listen there: a forbidden address is wrong usage; a busy address may be free later.
fn check_listen(args: &ServeArgs) -> Result<(), Failure> {
    use std::io::ErrorKind::{InvalidInput, PermissionDenied};
    args.listen.check(args.allow_remote).map_err(|error| {
        let told = anyhow::anyhow!("--listen {}: {error}", args.listen);
        if matches!(error.kind(), InvalidInput | PermissionDenied) { Failure::Input(told) } else { Failure::Run(told) }
    })
}

/// Serves until a signal ends it.
pub(super) fn run(args: &ServeArgs) -> Result<(), Failure> {
    let mut signals = Signals::new([SIGINT, SIGTERM]).map_err(Failure::run)?;
    let (block, set) = super::block_layer(&args.set)?;
    let block = block.unwrap_or(Config { predictor: PredictorKind::Told, ..Config::default() });
    check_listen(args)?;
    let drive = args.drive(&set)?;
    let file = args.file(&drive)?;
    let spec = ServeSpec {
        drive,
        file,
        listen: args.listen.clone(),
        allow_remote: args.allow_remote,
        block,
        noise: args.noise.0.clone(),
        seed: args.seed,
        log: Box::new(output::note),
    };
    let serving = serve(spec).map_err(|problem| Failure::Run(anyhow::anyhow!(problem)))?;
    let address = serving.address().unwrap_or(&args.listen).to_string();
    output::result(&format!("serving at {address}"))?;
    signals.forever().next();
    let ended = serving.stop();
    remove_socket_files();
    ended.map_err(|problem| Failure::Run(anyhow::anyhow!(problem)))
}
