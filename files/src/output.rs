//! Output files. Only a regular file is replaced or changed. A device, a pipe, a socket, a directory or a link, also
//! a dangling one, is rejected and left unchanged.
//!
//! Most outputs appear whole or not at all ([`Unfinished`], [`replace`]). Outputs written during a run change in
//! place ([`open`]).
//!
//! Left out: a file created at the path between the last check and the rename, which no system call can prevent.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::kind::refused;

/// The beginning of the names of files that are being written.
pub const UNFINISHED: &str = ".unfinished-";

/// Checks that a path is free or a writable regular file.
///
/// # Errors
/// The kind of file found and the valid kinds; or the system's error.
pub fn check(path: &Path) -> io::Result<()> {
    let found = match path.symlink_metadata() {
        Ok(found) if found.is_file() && found.permissions().readonly() => {
            let problem = "it is read-only: make it writable, remove it, or name another file";
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, problem));
        }
        Ok(found) if found.is_file() => return Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        found => found?,
    };
    Err(match path.read_link() {
        Ok(target) => {
            refused(&found, &format!("name the file that it leads to, {}, or remove the link", target.display()))
        }
        Err(_) if found.is_dir() => refused(&found, "name a file in it"),
        Err(_) => refused(&found, "only a regular file is replaced: name one, or a file that does not exist"),
    })
}

/// Checks that a file can be created or replaced, without changing an existing one.
///
/// # Errors
/// As [`check`], or that its folder is not writable.
pub fn check_can_write(path: &Path) -> io::Result<()> {
    Unfinished::create(path).map(drop)
}

/// Writes a file, whole or not at all.
///
/// # Errors
/// As [`check`], or that the file cannot be written; the previous file then remains.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut unfinished = Unfinished::create(path)?;
    unfinished.file().write_all(bytes)?;
    unfinished.finish()
}

/// Opens a file that is written in place, and creates it if needed. Its contents stay until the caller changes them.
///
/// # Errors
/// As [`check`], or that the file cannot be opened.
pub fn open(path: &Path) -> io::Result<File> {
    open_with(OpenOptions::new().write(true), path)
}

/// The same, and empties it.
///
/// # Errors
/// As [`open`].
pub fn create(path: &Path) -> io::Result<File> {
    let file = open(path)?;
    file.set_len(0)?;
    Ok(file)
}

/// As [`open`] with other options, such as for reading as well.
///
/// # Errors
/// As [`open`].
pub fn open_with(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    check(path)?;
    // A link, pipe or device created since the check is neither followed, nor waited for, nor changed.
    let file = to_the_file_itself(options.create(true).truncate(false)).open(path)?;
    let found = file.metadata()?;
    if found.is_file() { Ok(file) } else { Err(refused(&found, "a regular file is valid")) }
}

#[cfg(unix)]
fn to_the_file_itself(options: &mut OpenOptions) -> &mut OpenOptions {
    use rustix::fs::OFlags;
    use std::os::unix::fs::OpenOptionsExt as _;
    options.custom_flags((OFlags::NONBLOCK | OFlags::NOFOLLOW).bits() as i32)
}

#[cfg(not(unix))]
fn to_the_file_itself(options: &mut OpenOptions) -> &mut OpenOptions {
    options
}

/// A file under a temporary name in the target's folder, removed unless it is finished.
pub struct Unfinished {
    file: NamedTempFile,
    path: PathBuf,
}

impl Unfinished {
    /// An empty file that is to be at a path.
    ///
    /// # Errors
    /// As [`check`], or that its folder takes no file.
    pub fn create(path: &Path) -> io::Result<Unfinished> {
        check(path)?;
        if path.file_name().is_none() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it names no file"));
        }
        let mut builder = tempfile::Builder::new();
        builder.prefix(UNFINISHED);
        // As any new file: temporary ones are private to their owner.
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
        let folder = path.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."));
        let file = builder.tempfile_in(folder).map_err(|error| without_name(folder, &error))?;
        Ok(Unfinished { file, path: path.to_owned() })
    }

    /// The temporary file.
    pub fn file(&mut self) -> &mut File {
        self.file.as_file_mut()
    }

    /// Gives it its name, in place of a file that has it.
    ///
    /// # Errors
    /// As [`check`], or that it cannot be renamed.
    pub fn finish(self) -> io::Result<()> {
        check(&self.path)?;
        if let Ok(before) = self.path.symlink_metadata() {
            self.file.as_file().set_permissions(before.permissions())?;
        }
        self.file.persist(&self.path).map(drop).map_err(|error| error.error)
    }
}

/// The error of creating a temporary file in a folder, without the temporary name, which is not the user's.
fn without_name(folder: &Path, error: &io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::NotFound => io::Error::new(error.kind(), format!("there is no folder {}", folder.display())),
        kind => io::Error::new(kind, io::Error::from(kind).to_string()),
    }
}

#[cfg(all(test, unix))]
pub(crate) mod tests {
    use std::os::unix::fs::{FileTypeExt as _, PermissionsExt};

    use super::*;

    pub(crate) fn make_pipe(at: &Path) {
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(rustix::fs::CWD, at, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    }

    #[test]
    fn a_file_is_replaced_whole_and_its_folder_holds_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sweep.csv");
        replace(&path, b"first").unwrap();
        let usual = std::fs::metadata(&path).unwrap().permissions().mode();
        std::fs::write(folder.path().join("other"), "").unwrap();
        assert_eq!(usual, std::fs::metadata(folder.path().join("other")).unwrap().permissions().mode());
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o640)).unwrap();
        replace(&path, b"second").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"second");
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
        drop(Unfinished::create(&path).unwrap());
        check_can_write(&folder.path().join("new")).unwrap();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
        let missing = replace(&folder.path().join("no/x"), b"").unwrap_err().to_string();
        assert!(missing.starts_with("there is no folder ") && missing.ends_with("/no"), "{missing}");
    }

    #[test]
    fn a_file_that_is_read_only_stays_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kept");
        std::fs::write(&path, "precious").unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o444)).unwrap();
        let error = replace(&path, b"").unwrap_err().to_string();
        assert!(error.starts_with("it is read-only"), "{error}");
        assert_eq!(std::fs::read(&path).unwrap(), b"precious");
    }

    #[test]
    fn what_is_no_regular_file_stays_what_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        make_pipe(&at("pipe"));
        let _socket = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
        std::fs::create_dir(at("folder")).unwrap();
        std::fs::write(at("file"), "precious").unwrap();
        std::os::unix::fs::symlink("file", at("link")).unwrap();
        std::os::unix::fs::symlink("nothing", at("dangling")).unwrap();
        let valid = "only a regular file is replaced: name one, or a file that does not exist";
        for (name, kind, valid) in [
            ("pipe", "a pipe (FIFO)", valid),
            ("socket", "a socket", valid),
            ("folder", "a directory", "name a file in it"),
            ("link", "a symbolic link", "name the file that it leads to, file, or remove the link"),
            ("dangling", "a symbolic link", "name the file that it leads to, nothing, or remove the link"),
        ] {
            let before = at(name).symlink_metadata().unwrap();
            let tries: [fn(&Path) -> io::Result<()>; 4] =
                [check, check_can_write, |path| replace(path, b"new"), |path| open(path).map(drop)];
            for (number, attempt) in tries.into_iter().enumerate() {
                let error = attempt(&at(name)).expect_err(name).to_string();
                assert_eq!(error, format!("it is {kind}; {valid}"), "{name}, {number}");
            }
            assert_eq!(at(name).symlink_metadata().unwrap().file_type(), before.file_type());
        }
        assert_eq!(std::fs::read(at("file")).unwrap(), b"precious");
        assert!(!at("nothing").exists());
    }

    /// A pipe created during the write is not replaced.
    #[test]
    fn a_pipe_that_comes_later_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("late");
        let unfinished = Unfinished::create(&path).unwrap();
        make_pipe(&path);
        assert!(unfinished.finish().unwrap_err().to_string().starts_with("it is a pipe"));
        assert!(path.symlink_metadata().unwrap().file_type().is_fifo());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_file_that_is_opened_keeps_what_it_holds() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        open(&path).unwrap().write_all(b"one").unwrap();
        drop(open(&path).unwrap());
        assert_eq!(std::fs::read(&path).unwrap(), b"one");
    }
}
