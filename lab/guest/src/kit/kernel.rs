//! The uncompressed kernel out of its boot image. QEMU starts it directly (PVH), which saves the guest from decompressing
//! itself under emulation.
//!
//! The boot image's header is defined in the kernel's Documentation/arch/x86/boot.rst.

use std::fs::File;
use std::io;
use std::path::Path;

use super::Tree;
use crate::error::GuestError;

/// The header's signature, at 0x202.
const SIGNATURE: &[u8] = b"HdrS";
/// The first version of the header with the offset of the payload.
const VERSION: u16 = 0x208;

/// Writes the kernel of the tree to `to`.
pub(super) fn unpack(tree: &Tree, to: &Path) -> Result<(), GuestError> {
    let names = tree.names("boot")?;
    let Some(name) = names.iter().find(|name| name.starts_with("vmlinuz-")) else {
        return Err(GuestError::Contents("the kernel's package has no boot/vmlinuz-*".to_owned()));
    };
    let image = tree.read(&format!("boot/{name}"))?;
    let payload = payload(&image).map_err(|problem| GuestError::Contents(format!("boot/{name}: {problem}")))?;
    let out = File::create(to).map_err(GuestError::file("create", to))?;
    let decoder = zstd::stream::read::Decoder::with_buffer(payload).map(|decoder| decoder.single_frame());
    let copied = decoder.and_then(|mut decoder| io::copy(&mut decoder, &mut io::BufWriter::new(out)));
    copied.map(drop).map_err(GuestError::system(format!("cannot decompress boot/{name} (zstd)")))
}

/// The compressed kernel in a boot image.
fn payload(image: &[u8]) -> Result<&[u8], String> {
    let header = image.get(0x1f1..0x250).ok_or("it is shorter than its header")?;
    let at = |offset: usize| &header[offset - 0x1f1..];
    let word = |offset: usize| u32::from_le_bytes(at(offset)[..4].try_into().expect("four bytes")) as usize;
    let version = u16::from_le_bytes(at(0x206)[..2].try_into().expect("two bytes"));
    if !at(0x202).starts_with(SIGNATURE) || version < VERSION {
        return Err("it is no boot image of protocol 2.08 or later".to_owned());
    }
    let setup = match at(0x1f1)[0] {
        0 => 4,
        sectors => usize::from(sectors),
    };
    let start = (setup + 1) * 512 + word(0x248);
    let payload = image.get(start..).and_then(|rest| rest.get(..word(0x24c)));
    payload.ok_or_else(|| "its payload ends beyond its end".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(kernel: &[u8]) -> Vec<u8> {
        let payload = zstd::encode_all(kernel, 1).unwrap();
        let mut image = vec![0; 1_024];
        image[0x1f1] = 1;
        image[0x202..0x206].copy_from_slice(SIGNATURE);
        image[0x206..0x208].copy_from_slice(&VERSION.to_le_bytes());
        image[0x24c..0x250].copy_from_slice(&(payload.len() as u32 + 4).to_le_bytes());
        image.extend(payload);
        // The length of the kernel follows.
        image.extend((kernel.len() as u32).to_le_bytes());
        image
    }

    #[test]
    fn the_kernel_comes_out_of_its_boot_image() {
        let folder = tempfile::tempdir().unwrap();
        let kernel: Vec<u8> = (0..10_000u32).flat_map(u32::to_le_bytes).collect();
        std::fs::create_dir(folder.path().join("boot")).unwrap();
        std::fs::write(folder.path().join("boot/vmlinuz-6.12"), image(&kernel)).unwrap();
        let to = folder.path().join("vmlinux");
        unpack(&Tree::at(folder.path().to_owned()), &to).unwrap();
        assert!(std::fs::read(to).unwrap() == kernel);
    }

    #[test]
    fn other_files_are_refused() {
        let good = image(b"kernel");
        assert!(payload(&good).is_ok());
        assert_eq!(payload(&good[..100]).unwrap_err(), "it is shorter than its header");
        assert_eq!(payload(&good[..good.len() - 1]).unwrap_err(), "its payload ends beyond its end");
        assert!(payload(&[0; 4_096]).unwrap_err().contains("no boot image"));
    }
}
