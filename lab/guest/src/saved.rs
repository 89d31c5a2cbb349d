//! A start that is saved: a guest of the default size boots once, without drives, and QEMU saves it in the cache. Later guests
//! continue from there, which takes two seconds of processor time instead of twelve. They set their clock, add random
//! bytes to their kernel's pool, which its generator uses from its next reseed on, find the devices on the PCI bus, and then load the
//! driver of drives, which waits for them as at a boot.
//!
//! Left out: guests of other sizes, and files of more than a mebibyte. They boot.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use crate::error::GuestError;
use crate::guest::Guest;
use crate::image::DRIVER;
use crate::kit::Kit;
use crate::machine::{APPEND, ExtraFile, Machine, Mode};

/// How names of saved starts begin.
pub(crate) const PREFIX: &str = "saved-";
/// The bytes of files that a guest can be given after its start.
const FILES_LIMIT: u64 = 1 << 20;
/// QEMU's socket for orders, in a guest's folder.
const SOCKET: &str = "orders";
/// An answer that takes longer does not come.
const PATIENCE: Duration = Duration::from_secs(600);

/// Whether a machine can continue from the saved start.
pub(crate) fn fits(machine: &Machine) -> bool {
    let Machine { memory_mib, processors, files, is_booted, .. } = machine;
    let usual = Machine::default();
    let length = |file: &ExtraFile| fs::metadata(&file.from).map_or(u64::MAX, |file| file.len());
    let bytes = files.iter().map(length).fold(0, u64::saturating_add);
    !is_booted && (*memory_mib, *processors) == (usual.memory_mib, usual.processors) && bytes <= FILES_LIMIT
}

/// The name of the saved start in the cache. Its kernel has measured the clock rate of this machine's processor.
pub(crate) fn name(kit: &Kit) -> String {
    let processors = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let processor = processors.lines().find(|line| line.starts_with("model name")).unwrap_or_default();
    let arguments = Machine::default().arguments(Path::new(""), Mode::Saved).join("\n");
    let start = Machine::default().start_script(Mode::Saved);
    let all = format!("{}\n{APPEND}\n{arguments}\n{start}\n{processor}", kit.image().display());
    format!("{PREFIX}{:08x}", crc32fast::hash(all.as_bytes()))
}

/// Boots a guest without drives, and saves it.
pub(crate) fn make(kit: &Kit, to: &Path) -> Result<(), GuestError> {
    let folder = tempfile::tempdir().map_err(GuestError::system("cannot make a folder for the guest"))?;
    let socket = folder.path().join(SOCKET);
    let mut qemu = Machine::default().qemu(kit, folder.path(), Mode::Saved)?;
    qemu.arg("-qmp").arg(format!("unix:{},server=on,wait=off", socket.display().to_string().replace(',', ",,")));
    let _guest = Guest::booted(qemu, folder)?;
    let mut orders = Orders::open(&socket)?;
    let events = json!([{"capability": "events", "state": true}]);
    orders.give("migrate-set-capabilities", &json!({ "capabilities": events }))?;
    orders.give("migrate", &json!({"channels": [channel(to)]}))?;
    orders.wait_until_saved()?;
    File::open(to).and_then(|file| file.sync_all()).map_err(GuestError::file("write", to))
}

/// QEMU's words for a file with a saved guest.
pub(crate) fn channel(file: &Path) -> Value {
    let address = json!({"transport": "file", "filename": file.to_string_lossy(), "offset": 0});
    json!({"channel-type": "main", "addr": address})
}

/// What a guest runs when it continues, so that it is as one that has booted with these devices and files.
pub(crate) fn arrival(machine: &Machine) -> Result<String, GuestError> {
    let mut random = [0; 32];
    let read = File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut random));
    read.map_err(GuestError::system("cannot read /dev/urandom"))?;
    let random = hex(&random);
    let mut script = format!("set -e; cd /root\necho {random} > /dev/urandom\nhwclock --hctosys --utc\n");
    // Without devices there is nothing to find, and the driver is one that a command may miss all the same.
    script += &format!("echo 1 > /sys/bus/pci/rescan\ninsmod /modules/{DRIVER}.ko\n");
    for ExtraFile { from, to } in &machine.files {
        let (bytes, runs) = crate::machine::read(from).map_err(GuestError::file("read", from))?;
        let to = quoted(&format!("/{}", to.trim_start_matches('/')));
        let mode = if runs { "755" } else { "644" };
        script += &format!("mkdir -p \"$(dirname {to})\"\nxxd -r -p > {to} << END\n{}\nEND\n", hex(&bytes));
        script += &format!("chmod {mode} {to}\n");
    }
    Ok(format!("{script}set +e\n{{\n:\n{}\n}} > /dev/console 2>&1\nexit 0", machine.first))
}

/// In lines that tools take.
fn hex(bytes: &[u8]) -> String {
    let line = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    bytes.chunks(32).map(line).collect::<Vec<String>>().join("\n")
}

/// As one word of sh.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// A connection for orders to QEMU, in its machine protocol: a line of JSON each way, with events between them.
struct Orders {
    socket: PathBuf,
    to: UnixStream,
    from: BufReader<UnixStream>,
    /// What the last event about saving said.
    status: String,
}

impl Orders {
    fn open(socket: &Path) -> Result<Orders, GuestError> {
        let connect = || {
            let to = UnixStream::connect(socket)?;
            to.set_read_timeout(Some(PATIENCE))?;
            Ok((to.try_clone()?, BufReader::new(to)))
        };
        let (to, from) = connect().map_err(GuestError::file("connect to QEMU at", socket))?;
        let mut orders = Orders { socket: socket.to_owned(), to, from, status: String::new() };
        orders.next()?;
        orders.give("qmp_capabilities", &json!({}))?;
        Ok(orders)
    }

    /// Gives an order, and waits for its answer.
    fn give(&mut self, order: &str, arguments: &Value) -> Result<(), GuestError> {
        let line = json!({"execute": order, "arguments": arguments});
        writeln!(self.to, "{line}").map_err(GuestError::file("write to QEMU at", &self.socket))?;
        loop {
            let answer = self.next()?;
            if let Some(error) = answer.get("error") {
                return Err(GuestError::Contents(format!("QEMU rejects the order {order}: {error}")));
            }
            if answer.get("return").is_some() {
                return Ok(());
            }
        }
    }

    fn wait_until_saved(&mut self) -> Result<(), GuestError> {
        while self.status != "completed" {
            if self.status == "failed" {
                return Err(GuestError::Contents(
                    "QEMU cannot save a guest; is the disk of the cache full?".to_owned(),
                ));
            }
            self.next()?;
        }
        Ok(())
    }

    /// The next answer or event.
    fn next(&mut self) -> Result<Value, GuestError> {
        let mut line = String::new();
        let read = self.from.read_line(&mut line);
        let failed = |problem: std::io::Error| GuestError::file("read from QEMU at", &self.socket)(problem);
        if read.map_err(failed)? == 0 {
            return Err(failed(std::io::ErrorKind::UnexpectedEof.into()));
        }
        let value: Value = serde_json::from_str(&line).map_err(|problem| failed(problem.into()))?;
        if value["event"] == "MIGRATION" {
            self.status = value["data"]["status"].as_str().unwrap_or_default().to_owned();
        }
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guests_of_the_usual_size_continue() {
        let folder = tempfile::tempdir().unwrap();
        let from = folder.path().join("file");
        let machine = |length: u64| {
            File::create(&from).unwrap().set_len(length).unwrap();
            Machine { files: vec![ExtraFile { from: from.clone(), to: "/a".to_owned() }], ..Machine::default() }
        };
        assert!(fits(&Machine::default()) && fits(&machine(FILES_LIMIT)));
        let others = [
            machine(FILES_LIMIT + 1),
            Machine { is_booted: true, ..Machine::default() },
            Machine { memory_mib: 2_048, ..Machine::default() },
            Machine { processors: 1, ..Machine::default() },
        ];
        assert!(others.iter().all(|machine| !fits(machine)));
    }

    #[test]
    fn files_are_words_of_a_shell() {
        let folder = tempfile::tempdir().unwrap();
        let from = folder.path().join("from");
        fs::write(&from, [0xa0; 33]).unwrap();
        let files = vec![ExtraFile { from, to: "root/it's".to_owned() }];
        let script = arrival(&Machine { files, first: "echo first".to_owned(), ..Machine::default() }).unwrap();
        let lines = format!("xxd -r -p > '/root/it'\\''s' << END\n{}\na0\nEND\n", "a0".repeat(32));
        assert!(script.contains(&lines) && script.contains("\necho first\n"), "{script}");
    }

    #[test]
    fn orders_pass_events_and_failures_are_reported() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(SOCKET);
        let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        let event = |status: &str| json!({"event": "MIGRATION", "data": {"status": status}}).to_string();
        let lines = [
            json!({"QMP": {}}).to_string(),
            json!({"return": {}}).to_string(),
            event("setup"),
            json!({"return": {}}).to_string(),
            event("completed"),
            json!({"error": {"class": "GenericError"}}).to_string(),
            event("failed"),
        ];
        let qemu = std::thread::spawn(move || {
            let (mut to, _) = listener.accept().unwrap();
            to.write_all((lines.join("\n") + "\n").as_bytes()).unwrap();
            let mut said = String::new();
            to.read_to_string(&mut said).unwrap();
            said
        });
        let mut orders = Orders::open(&path).unwrap();
        orders.give("migrate", &json!({"channels": [channel(Path::new("a,b"))]})).unwrap();
        orders.wait_until_saved().unwrap();
        let error = orders.give("migrate", &json!({})).unwrap_err().to_string();
        assert!(error.contains("rejects the order migrate") && error.contains("GenericError"), "{error}");
        orders.status.clear();
        assert!(orders.wait_until_saved().unwrap_err().to_string().contains("cannot save a guest"));
        orders.to.shutdown(std::net::Shutdown::Write).unwrap();
        assert!(orders.next().unwrap_err().to_string().contains("cannot read from QEMU at"));
        assert!(qemu.join().unwrap().contains("\"filename\":\"a,b\""));
    }
}
