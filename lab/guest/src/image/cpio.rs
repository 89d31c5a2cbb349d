//! Archives in the format of the kernel's first file system: cpio, "newc" (Documentation/driver-api/early-userspace/
//! buffer-format.rst). The kernel unpacks several of them in a row.

use std::collections::BTreeSet;
use std::io::{self, Write};

/// File types and permissions, as in `stat`.
const FOLDER: u32 = 0o040_755;
const LINK: u32 = 0o120_777;
const FILE: u32 = 0o100_000;
/// The name of the last entry.
const TRAILER: &str = "TRAILER!!!";

/// An archive that is being written. Folders are added before what they hold.
pub(crate) struct Archive<W> {
    out: W,
    /// The number of the last entry.
    number: u32,
    names: BTreeSet<String>,
}

impl<W: Write> Archive<W> {
    pub(crate) fn new(out: W) -> Archive<W> {
        Archive { out, number: 0, names: BTreeSet::new() }
    }

    pub(crate) fn folder(&mut self, name: &str) -> io::Result<()> {
        self.entry(name, FOLDER, &[])
    }

    /// A file that everyone may run or read.
    pub(crate) fn file(&mut self, name: &str, runs: bool, bytes: &[u8]) -> io::Result<()> {
        self.entry(name, FILE | if runs { 0o755 } else { 0o644 }, bytes)
    }

    pub(crate) fn link(&mut self, name: &str, to: &str) -> io::Result<()> {
        self.entry(name, LINK, to.as_bytes())
    }

    pub(crate) fn finish(mut self) -> io::Result<W> {
        self.write(TRAILER, 0, &[])?;
        Ok(self.out)
    }

    /// Adds an entry, unless its name exists.
    fn entry(&mut self, name: &str, mode: u32, bytes: &[u8]) -> io::Result<()> {
        if let Some((parent, _)) = name.rsplit_once('/')
            && !self.names.contains(parent)
        {
            self.entry(parent, FOLDER, &[])?;
        }
        match self.names.insert(name.to_owned()) {
            true => self.write(name, mode, bytes),
            false => Ok(()),
        }
    }

    fn write(&mut self, name: &str, mode: u32, bytes: &[u8]) -> io::Result<()> {
        let too_long = || io::Error::other(format!("{name} is too long for a cpio archive"));
        let length = u32::try_from(bytes.len()).map_err(|_| too_long())?;
        self.number += 1;
        // Magic, inode, mode, user, group, links, time, length, four device numbers, name's length, checksum.
        let fields = [self.number, mode, 0, 0, 1, 0, length, 0, 0, 0, 0, name.len() as u32 + 1, 0];
        let mut header = b"070701".to_vec();
        fields.iter().for_each(|field| header.extend(format!("{field:08x}").bytes()));
        header.extend(name.bytes());
        header.push(0);
        self.out.write_all(&padded(header))?;
        self.out.write_all(bytes)?;
        self.out.write_all(&[0; 3][..bytes.len().wrapping_neg() % 4])
    }
}

/// Entries and their data begin at multiples of four bytes.
fn padded(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_follow_their_folders_and_are_aligned() {
        let mut archive = Archive::new(Vec::new());
        archive.file("usr/bin/tool", true, b"12345").unwrap();
        archive.link("bin", "usr/bin").unwrap();
        archive.file("usr/bin/tool", true, b"again").unwrap();
        let bytes = archive.finish().unwrap();
        assert_eq!(bytes.len() % 4, 0);
        let text = String::from_utf8_lossy(&bytes);
        let places: Vec<usize> = ["usr\0", "usr/bin\0", "usr/bin/tool\0", "bin\0\0", TRAILER]
            .iter()
            .map(|name| text.find(name).unwrap())
            .collect();
        assert!(places[0] < places[1] && places[1] < places[2] && places[2] < places[4], "{places:?}");
        assert_eq!(text.matches("070701").count(), 5);
        assert!(bytes[..14] == *b"07070100000001", "{text}");
        assert!(text.contains("12345\0\0\x00070701") && !text.contains("again"), "{text}");
    }
}
