//! The configuration of a guest, and QEMU's arguments for it.

use std::fs::{self, OpenOptions};
use std::io::{self, BufWriter, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

use serde_json::json;

use crate::error::GuestError;
use crate::guest::Guest;
use crate::image::Archive;
use crate::kit::Kit;
use crate::shell;

/// A device besides console and network.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Device {
    /// A PCI device behind a vfio-user socket.
    VfioUser(PathBuf),
    /// QEMU's own NVMe drive without data, of this many bytes: reads give zeros. What others are compared with.
    NullNvme(u64),
    /// QEMU's own NVMe drive on a file of this machine.
    FileNvme(PathBuf),
}

/// A file of this machine that the guest gets a copy of.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ExtraFile {
    /// The file here.
    pub from: PathBuf,
    /// Its absolute path in the guest.
    pub to: String,
}

/// A guest to be started.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Machine {
    /// Memory in MiB.
    pub memory_mib: u32,
    /// Virtual processors.
    pub processors: u32,
    /// Devices.
    pub devices: Vec<Device>,
    /// Files that it gets.
    pub files: Vec<ExtraFile>,
    /// Lines of shell that run before anything else, with the network up and modules loaded.
    pub first: String,
    /// Whether firmware and kernel start with the devices there. Otherwise, where a saved start fits,
    /// the guest continues from that within two seconds instead of twelve, and finds its devices then.
    pub is_booted: bool,
}

impl Default for Machine {
    fn default() -> Machine {
        Machine {
            memory_mib: 1_024,
            processors: 2,
            devices: Vec::new(),
            files: Vec::new(),
            first: String::new(),
            is_booted: false,
        }
    }
}

/// Who gives a guest its commands.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Mode {
    /// A program, over standard input and output of QEMU; the console goes to a file.
    Commands,
    /// As `Commands`, without a driver of drives, which the guest gets when it continues.
    Saved,
    /// A person at the terminal.
    Shell,
}

/// The kernel's settings. One that panics reboots at once, and QEMU ends instead. nvme-cli maps the registers of a device that has
/// a driver, which Debian's kernel forbids (CONFIG_IO_STRICT_DEVMEM) unless it is set otherwise. On a loaded machine, timer
/// interrupts come too late for the test that Linux makes of them at the start, and it panics.
pub(crate) const APPEND: &str = "console=ttyS0 panic=-1 quiet iomem=relaxed no_timer_check";

/// One with all instructions that are emulated: those for checksums and hashes replace loops. Five levels of page tables, and the
/// switch around each access of the kernel to a process's memory, make an emulated processor slower.
const PROCESSOR: &str = "max,la57=off,smap=off";

/// The console's file, and the guest's file system, in a guest's folder.
pub(crate) const CONSOLE: &str = "console";
const INITRD: &str = "initrd";

impl Machine {
    /// Starts it; the guest is ready for commands.
    ///
    /// # Errors
    /// When QEMU or the guest ends or gets stuck before.
    pub fn start(&self, kit: &Kit) -> Result<Guest, GuestError> {
        Guest::start(self, kit)
    }

    /// Starts it with a shell on this terminal, and waits for its end.
    ///
    /// # Errors
    /// When QEMU cannot be run.
    pub fn shell(&self, kit: &Kit) -> Result<ExitStatus, GuestError> {
        shell::run(self, kit)
    }

    /// QEMU that boots this machine. The files that belong to this start are written to `folder`.
    pub(crate) fn qemu(&self, kit: &Kit, folder: &Path, mode: Mode) -> Result<Command, GuestError> {
        let initrd = folder.join(INITRD);
        self.write_initrd(kit.image(), &initrd, mode)?;
        let mut command = self.bare(kit, folder, mode);
        command.arg("-kernel").arg(kit.kernel()).arg("-initrd").arg(initrd);
        command.args(["-append", APPEND]);
        Ok(command)
    }

    /// QEMU with the machine, and nothing to run in it.
    pub(crate) fn bare(&self, kit: &Kit, folder: &Path, mode: Mode) -> Command {
        let mut command = kit.tree().program("usr/bin/qemu-system-x86_64");
        // Else it would load modules of this system's QEMU, if there is one.
        command.env("QEMU_MODULE_DIR", kit.tree().path("usr/lib/x86_64-linux-gnu/qemu"));
        for share in ["usr/share/qemu", "usr/share/seabios"] {
            command.arg("-L").arg(kit.tree().path(share));
        }
        command.arg("-no-reboot");
        command.args(self.arguments(&folder.join(CONSOLE), mode));
        command
    }

    pub(crate) fn arguments(&self, console: &Path, mode: Mode) -> Vec<String> {
        let memory = u64::from(self.memory_mib) << 20;
        // Other processes, such as servers of vfio-user, map the guest's memory.
        let memory = json!({"qom-type": "memory-backend-memfd", "id": "memory", "size": memory, "share": true});
        let mut arguments: Vec<String> = [
            "-nodefaults",
            "-no-user-config",
            "-display",
            "none",
            "-machine",
            "q35,memory-backend=memory",
            "-accel",
            "tcg,thread=multi",
            "-cpu",
            PROCESSOR,
            "-object",
            &memory.to_string(),
            "-smp",
            &self.processors.to_string(),
            "-netdev",
            "user,id=network",
            // Without a ROM to start from the network.
            "-device",
            "virtio-net-pci,netdev=network,romfile=",
            "-serial",
            "chardev:console",
        ]
        .map(str::to_owned)
        .into();
        let more: Vec<String> = match mode {
            Mode::Commands | Mode::Saved => vec![
                "-chardev".to_owned(),
                // A comma in a value is doubled.
                format!("file,id=console,path={}", console.display().to_string().replace(',', ",,")),
                "-chardev".to_owned(),
                "stdio,id=commands,signal=off".to_owned(),
                "-device".to_owned(),
                "virtio-serial-pci".to_owned(),
                "-device".to_owned(),
                "virtserialport,chardev=commands,name=commands".to_owned(),
            ],
            // Ctrl-C goes to the guest, Ctrl-A x ends QEMU.
            Mode::Shell => {
                ["-chardev", "stdio,id=console,mux=on,signal=off", "-object", "monitor-hmp,id=monitor,chardev=console"]
                    .map(str::to_owned)
                    .into()
            }
        };
        arguments.extend(more);
        self.devices.iter().zip(0..).for_each(|(device, number)| arguments.extend(device.arguments(number)));
        arguments
    }

    /// The image, and after it an archive with what belongs to this start.
    fn write_initrd(&self, image: &Path, to: &Path, mode: Mode) -> Result<(), GuestError> {
        fs::copy(image, to).map_err(GuestError::file("copy the guest's file system to", to))?;
        let end = OpenOptions::new().append(true).open(to).map_err(GuestError::file("open", to))?;
        let mut archive = Archive::new(BufWriter::new(end));
        let cannot = || GuestError::file("write", to);
        archive.file("etc/start.sh", false, self.start_script(mode).as_bytes()).map_err(cannot())?;
        for extra in &self.files {
            let (bytes, runs) = read(&extra.from).map_err(GuestError::file("read", &extra.from))?;
            archive.file(extra.to.trim_start_matches('/'), runs, &bytes).map_err(cannot())?;
        }
        archive.finish().and_then(|mut out| out.flush()).map_err(cannot())
    }

    pub(crate) fn start_script(&self, mode: Mode) -> String {
        let mode = match mode {
            Mode::Commands => format!("MODE=commands MARK='{}'\n", crate::guest::MARK),
            Mode::Saved => format!("MODE=saved MARK='{}'\n", crate::guest::MARK),
            Mode::Shell => format!("MODE=shell\n{}", shell::size_of_terminal()),
        };
        format!("{mode}first() {{\n:\n{}\n}}\n", self.first)
    }
}

/// A file's bytes, and whether it is a program.
pub(crate) fn read(file: &Path) -> io::Result<(Vec<u8>, bool)> {
    let (mut file, mut bytes) = (nandscape_files::input::open(file)?, Vec::new());
    let runs = file.metadata()?.permissions().mode() & 0o111 != 0;
    file.read_to_end(&mut bytes)?;
    Ok((bytes, runs))
}

impl Device {
    fn arguments(&self, number: u32) -> Vec<String> {
        let device = |device: serde_json::Value| ["-device".to_owned(), device.to_string()];
        let (node, serial) = (format!("drive{number}"), format!("qemu{number}"));
        let nvme = json!({"driver": "nvme", "drive": node, "serial": serial});
        let blockdev = |node: serde_json::Value| ["-blockdev".to_owned(), node.to_string()];
        match self {
            Device::VfioUser(path) => {
                device(json!({"driver": "vfio-user-pci", "socket": {"type": "unix", "path": path}})).into()
            }
            Device::NullNvme(bytes) => {
                let null = json!({"driver": "null-co", "node-name": node, "size": bytes, "read-zeroes": true});
                [blockdev(null), device(nvme)].concat()
            }
            Device::FileNvme(path) => {
                let file = json!({"driver": "raw", "node-name": node, "discard": "unmap", "file": {"driver": "file", "filename": path}});
                [blockdev(file), device(nvme)].concat()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_given_to_qemu_as_json() {
        let machine = Machine {
            devices: vec![Device::VfioUser("a,b.sock".into()), Device::NullNvme(1 << 30), Device::FileNvme("f".into())],
            ..Machine::default()
        };
        let all = machine.arguments(Path::new("con,sole"), Mode::Commands);
        let has = |part: &str| assert!(all.iter().any(|word| word.contains(part)), "{part}: {all:?}");
        has(r#""path":"a,b.sock""#);
        has(r#""size":1073741824"#);
        has(r#""drive":"drive2""#);
        has("file,id=console,path=con,,sole");
        has(r#""share":true"#);
        let shell = machine.arguments(Path::new("console"), Mode::Shell);
        assert!(shell.contains(&"stdio,id=console,mux=on,signal=off".to_owned()), "{shell:?}");
    }

    #[test]
    fn a_start_has_its_script_and_its_files() {
        let folder = tempfile::tempdir().unwrap();
        let (image, from, to) =
            (folder.path().join("image"), folder.path().join("job.fio"), folder.path().join("initrd"));
        fs::write(&image, "IMAGE").unwrap();
        fs::write(&from, "[job]").unwrap();
        let files = vec![ExtraFile { from, to: "/root/job.fio".to_owned() }];
        let machine = Machine { files, first: "echo first".to_owned(), ..Machine::default() };
        machine.write_initrd(&image, &to, Mode::Commands).unwrap();
        let written = fs::read_to_string(&to).unwrap();
        assert!(written.starts_with("IMAGE070701"), "{written}");
        assert!(written.contains("MODE=commands") && written.contains("echo first"), "{written}");
        assert!(written.contains("root/job.fio\0") && written.contains("[job]"), "{written}");
        fs::remove_file(folder.path().join("job.fio")).unwrap();
        let missing = machine.write_initrd(&image, &to, Mode::Shell).unwrap_err().to_string();
        assert!(missing.contains("cannot read") && missing.contains("job.fio"), "{missing}");
    }
}
