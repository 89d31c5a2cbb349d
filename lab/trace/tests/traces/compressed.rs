//! Compressed files, recognised by their bytes; archives; truncated files.

use std::io::Write as _;

use flate2::write::GzEncoder;
use nandscape_lab_trace::Options;

use crate::files::{Seen, file, open, read, requests, sample};

fn text() -> Vec<u8> {
    std::fs::read(sample("msr.csv")).unwrap()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut packer = GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packer.write_all(bytes).unwrap();
    packer.finish().unwrap()
}

fn bzip2(bytes: &[u8]) -> Vec<u8> {
    let mut packer = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
    packer.write_all(bytes).unwrap();
    packer.finish().unwrap()
}

fn xz(bytes: &[u8]) -> Vec<u8> {
    let mut packer = lzma_rust2::XzWriter::new(Vec::new(), lzma_rust2::XzOptions::with_preset(1)).unwrap();
    packer.write_all(bytes).unwrap();
    packer.finish().unwrap()
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    let mut packer = zstd::stream::write::Encoder::new(Vec::new(), 1).unwrap();
    // The command does this; the library alone does not.
    packer.include_checksum(true).unwrap();
    packer.write_all(bytes).unwrap();
    packer.finish().unwrap()
}

type Packer = fn(&[u8]) -> Vec<u8>;

const PACKERS: [(&str, Packer); 4] = [("gzip", gzip), ("bzip2", bzip2), ("xz", xz), ("zstd", zstd)];

fn plain() -> Vec<Seen> {
    read(text(), None, false).unwrap()
}

#[test]
fn compressed_files_are_known_by_their_bytes() {
    for (name, pack) in PACKERS {
        assert_eq!(read(pack(&text()), None, false).unwrap(), plain(), "{name}");
    }
}

#[test]
fn files_put_one_behind_another_are_read_to_the_end() {
    let whole = text();
    let middle = whole.len() / 2;
    for (name, pack) in PACKERS {
        let both = [pack(&whole[..middle]), pack(&whole[middle..])].concat();
        assert_eq!(read(both, None, false).unwrap(), plain(), "{name}");
    }
}

#[test]
fn what_is_cut_off_or_damaged_is_told_with_the_last_line_read() {
    let long: Vec<u8> =
        (0..40_000u32).flat_map(|n| format!("1,W,{},4096,{n}\n", u64::from(n) * 7_919).into_bytes()).collect();
    for (name, pack) in PACKERS {
        let packed = pack(&long);
        let said = read(&packed[..packed.len() / 2], None, false).unwrap_err().to_string();
        assert!(said.contains("t.trace: cannot be read"), "{name}: {said}");
        let mut damaged = packed;
        let middle = damaged.len() / 2;
        damaged[middle..middle + 50].fill(0x55);
        assert!(read(damaged, None, false).is_err(), "{name}");
    }
}

#[test]
fn archives_are_refused_with_the_way_to_take_a_file_out() {
    let mut tar = vec![0; 1_024];
    tar[..5].copy_from_slice(b"a.csv");
    tar[257..262].copy_from_slice(b"ustar");
    for archive in [tar.clone(), gzip(&tar)] {
        let said = read(archive, None, false).unwrap_err().to_string();
        assert!(said.contains("is a tar archive; give one file of it: tar -xOf ARCHIVE FILE | "), "{said}");
    }
    assert!(read(b"PK\x03\x04rest", None, false).unwrap_err().to_string().contains("is a zip archive"));
    assert!(read(b"\xff\xfe1\x002\0", None, false).unwrap_err().to_string().contains("UTF-16"));
}

/// A pipe cannot be read twice: its requests are kept.
#[cfg(target_os = "linux")]
#[test]
fn a_pipe_is_read_once_and_its_requests_are_read_again() {
    let (reader, mut writer) = std::io::pipe().unwrap();
    let text = gzip(&text());
    let writing = std::thread::spawn(move || writer.write_all(&text).unwrap());
    let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&reader));
    let trace = nandscape_lab_trace::Trace::open(Options { path: path.into(), ..Options::default() }).unwrap();
    writing.join().unwrap();
    assert_eq!((requests(&trace), requests(&trace)), (plain(), plain()));
}

#[test]
fn a_file_that_grows_is_read_as_it_was_and_one_that_changes_is_refused() {
    let before = "1,W,0,4096,1\n1,W,0,4096,2\n";
    let (_folder, path) = file(before);
    let trace = open(&path).unwrap();
    let reread = |text: String| {
        std::fs::write(&path, text).unwrap();
        let records: Result<Vec<_>, _> = trace.records().unwrap().collect();
        records.map(|records| records.len()).map_err(|error| error.to_string())
    };
    assert_eq!(reread(format!("{before}1,W,0,4096,3\n2,W,0,4096,4\ntorn")), Ok(2));
    let changed = Err(format!("{}: was changed while it was read", path.display()));
    assert_eq!(reread("1,W,0,4096,1\n".to_owned()), changed, "a request is missing");
    assert_eq!(reread("1,W,0,4096,1\n2,W,0,4096,2\n".to_owned()), changed, "another disk");
    let late = "1,W,0,4096,9\n".repeat(5_000) + "1,W,0,4096,1\n";
    assert_eq!(reread(late), Ok(2), "what is behind the requests counted is not looked at");
    std::fs::remove_file(&path).unwrap();
    assert!(trace.records().err().unwrap().to_string().contains("cannot be opened"));
}
