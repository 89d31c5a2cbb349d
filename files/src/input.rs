//! Input files. A pipe or a device may never end, nor may a file of `/proc` that looks like a regular one: opening
//! and reading never block, and texts have a maximum length.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::path::Path;

use crate::kind::refused;

/// Opens a regular file, or one behind a link.
///
/// # Errors
/// The system's error, or that the path is another kind of file.
pub fn open(path: &Path) -> io::Result<File> {
    open_with(OpenOptions::new().read(true), path)
}

/// Opens a regular file with other options, such as for writing as well.
///
/// # Errors
/// As [`open`].
pub fn open_with(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    check(&path.metadata()?)?;
    let file = without_waiting(options).open(path)?;
    check(&file.metadata()?)?;
    Ok(file)
}

/// Opens a file that is read once, from beginning to end: a regular file, or a pipe, for whose writer it waits. `what`
/// names the file's kind in errors of reading.
///
/// # Errors
/// As [`open`].
pub fn open_stream(path: &Path, what: &'static str) -> io::Result<Stream> {
    let found = path.metadata()?;
    if is_pipe(&found) {
        return Ok(Stream { file: File::open(path)?, what });
    }
    if !found.is_file() {
        return Err(refused(&found, "a regular file or a pipe is valid"));
    }
    Ok(Stream { file: open(path)?, what })
}

/// A file that is read once.
#[derive(Debug)]
pub struct Stream {
    file: File,
    what: &'static str,
}

impl Read for Stream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.file.read(into).map_err(|error| endless(error, self.what))
    }
}

/// The reason for the error of a read that does not block.
fn endless(error: io::Error, what: &str) -> io::Error {
    match error.kind() {
        io::ErrorKind::WouldBlock => {
            let problem = format!("the file is endless; a regular file is valid as a {what}");
            io::Error::new(io::ErrorKind::InvalidInput, problem)
        }
        _ => error,
    }
}

/// The bytes of a file, at most `most`. `what` names the file's kind in errors.
///
/// # Errors
/// As [`open`], and that the file is longer or does not end.
pub fn bytes(path: &Path, most: u64, what: &str) -> io::Result<Vec<u8>> {
    let file = open(path)?;
    if file.metadata()?.len() > most {
        return Err(too_long(most, what));
    }
    whole(file, most, what)
}

fn too_long(most: u64, what: &str) -> io::Error {
    io::Error::other(format!("it is longer than {}, which no {what} is", shown(most)))
}

/// Reads to the end. A file of /proc reports a wrong length, and some never end.
fn whole(file: impl Read, most: u64, what: &str) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(most + 1).read_to_end(&mut bytes).map_err(|error| endless(error, what))?;
    if bytes.len() as u64 > most { Err(too_long(most, what)) } else { Ok(bytes) }
}

/// The same as text.
///
/// # Errors
/// As [`bytes`], and that the file is not UTF-8.
pub fn text(path: &Path, most: u64, what: &str) -> io::Result<String> {
    let not_utf8 = |_| io::Error::new(io::ErrorKind::InvalidData, "stream did not contain valid UTF-8");
    String::from_utf8(bytes(path, most, what)?).map_err(not_utf8)
}

fn check(found: &std::fs::Metadata) -> io::Result<()> {
    if found.is_file() { Ok(()) } else { Err(refused(found, "a regular file is valid")) }
}

fn shown(bytes: u64) -> String {
    match bytes {
        _ if bytes.is_multiple_of(1 << 30) => format!("{} GiB", bytes >> 30),
        _ if bytes.is_multiple_of(1 << 20) => format!("{} MiB", bytes >> 20),
        _ => format!("{bytes} bytes"),
    }
}

/// Without this flag, opening a pipe and reading some files of /proc would block.
#[cfg(unix)]
pub(crate) fn without_waiting(options: &mut OpenOptions) -> &mut OpenOptions {
    use std::os::unix::fs::OpenOptionsExt as _;
    options.custom_flags(rustix::fs::OFlags::NONBLOCK.bits() as i32)
}

#[cfg(not(unix))]
pub(crate) fn without_waiting(options: &mut OpenOptions) -> &mut OpenOptions {
    options
}

#[cfg(unix)]
fn is_pipe(found: &std::fs::Metadata) -> bool {
    std::os::unix::fs::FileTypeExt::is_fifo(&found.file_type())
}

#[cfg(not(unix))]
fn is_pipe(_: &std::fs::Metadata) -> bool {
    false
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_regular_file_is_refused_without_waiting() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        crate::output::tests::make_pipe(&at("pipe"));
        let _socket = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
        std::fs::write(at("file"), "text").unwrap();
        std::os::unix::fs::symlink("file", at("link")).unwrap();
        std::os::unix::fs::symlink("pipe", at("to-pipe")).unwrap();
        let kinds = [("pipe", "a pipe"), ("to-pipe", "a pipe"), ("socket", "a socket"), (".", "a directory")];
        for (name, kind) in kinds {
            let error = open(&at(name)).unwrap_err().to_string();
            assert!(
                error.starts_with(&format!("it is {kind}")) && error.ends_with("a regular file is valid"),
                "{error}"
            );
        }
        let error = open_stream(Path::new("/dev/zero"), "trace").unwrap_err().to_string();
        assert_eq!(error, "it is a character device; a regular file or a pipe is valid");
        for name in ["file", "link"] {
            assert_eq!(text(&at(name), 4, "word").unwrap(), "text");
            assert_eq!(
                text(&at(name), 3, "word").unwrap_err().to_string(),
                "it is longer than 3 bytes, which no word is"
            );
        }
    }

    /// A file of /proc reports a length of 0 and has more.
    #[test]
    fn the_length_of_a_file_is_what_is_read_of_it() {
        assert!(text(Path::new("/proc/self/status"), 1 << 20, "status").unwrap().contains("Pid:"));
        assert!(text(Path::new("/proc/self/status"), 9, "status").is_err());
    }

    /// As the kernel's log, which has no end and would wait for the next message.
    struct Log(usize);

    impl Read for Log {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            self.0 = self.0.checked_sub(1).ok_or(io::ErrorKind::WouldBlock)?;
            into[..4].copy_from_slice(b"line");
            Ok(4)
        }
    }

    #[test]
    fn what_has_no_end_is_refused() {
        let error = whole(Log(3), 1 << 30, "profile").unwrap_err().to_string();
        assert_eq!(error, "the file is endless; a regular file is valid as a profile");
        assert!(whole(io::repeat(0), 1 << 10, "profile").unwrap_err().to_string().starts_with("it is longer than"));
    }
}
