//! The kind of file at a path, in words.

use std::fs::{FileType, Metadata};
use std::io;

/// A file that is not of the kind that is needed.
pub(crate) fn refused(found: &Metadata, valid: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, format!("it is {}; {valid}", name(found.file_type())))
}

fn name(found: FileType) -> &'static str {
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt as _;
        let special: [(bool, &str); 4] = [
            (found.is_char_device(), "a character device"),
            (found.is_block_device(), "a block device"),
            (found.is_fifo(), "a pipe (FIFO)"),
            (found.is_socket(), "a socket"),
        ];
        if let Some((_, name)) = special.into_iter().find(|(is_it, _)| *is_it) {
            return name;
        }
    }
    match found {
        _ if found.is_dir() => "a directory",
        _ if found.is_symlink() => "a symbolic link",
        _ => "no regular file",
    }
}
