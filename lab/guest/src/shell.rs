//! A guest on the terminal: a shell in it, and QEMU's monitor (Ctrl-A c).

use std::process::ExitStatus;

use crate::error::GuestError;
use crate::kit::Kit;
use crate::machine::{Machine, Mode};
use crate::processes::Belonging;

/// Runs a guest on this process's standard input and output until it powers off.
pub(crate) fn run(machine: &Machine, kit: &Kit) -> Result<ExitStatus, GuestError> {
    let folder = tempfile::tempdir().map_err(GuestError::system("cannot make a folder for the guest"))?;
    let mut qemu = machine.qemu(kit, folder.path(), Mode::Shell)?;
    let mut qemu = qemu.spawn().map_err(GuestError::system("cannot run QEMU"))?;
    let _belonging = Belonging::of(&qemu);
    qemu.wait().map_err(GuestError::system("cannot wait for QEMU"))
}

/// Tells the guest's console the size of this terminal, which a serial line cannot.
pub(crate) fn size_of_terminal() -> String {
    match rustix::termios::tcgetwinsize(std::io::stdin()) {
        Ok(size) if size.ws_row > 0 && size.ws_col > 0 => {
            format!("stty rows {} cols {} < /dev/ttyS0\n", size.ws_row, size.ws_col)
        }
        // No terminal.
        _ => String::new(),
    }
}
