//! The drive properties of a namespace, from its Identify data.

use nandscape_drive::DriveInfo;
use nandscape_wire_nvme::identify::{Controller, Namespace, VWC_PRESENT};
use nandscape_wire_nvme::register::Capabilities;

/// The most bytes of one command: more is not worth its memory.
const MOST_BYTES: u32 = 32 << 20;

/// Checks property CAP: whether the controller can be enabled with the NVM command set, the only one supported here.
///
/// # Errors
/// It cannot.
pub(crate) fn has_nvm_commands(capabilities: u64) -> Result<(), String> {
    match capabilities >> 37 & u64::from(Capabilities::NVM) {
        0 => {
            Err("the controller has other command sets than NVM, as drives with zones do, and they are not known here; a drive \
                 without zones, as of `nandscape serve --drive default --set ftl.kind=ox_block`, is valid"
                .to_owned())
        }
        _ => Ok(()),
    }
}

/// Chooses a namespace from the list of active ones, which ends with a 0 unless it is full; `None` chooses the first.
///
/// # Errors
/// The namespace is not active, with the list of active ones.
pub(crate) fn choose(active: impl Iterator<Item = u32>, wanted: Option<u32>) -> Result<u32, String> {
    let active: Vec<u32> = active.take_while(|nsid| *nsid != 0).collect();
    match wanted {
        _ if active.is_empty() => Err("there is no active namespace for this host".to_owned()),
        None => Ok(active[0]),
        Some(nsid) if active.contains(&nsid) => Ok(nsid),
        Some(nsid) => {
            let there: Vec<String> = active.iter().take(SHOWN).map(u32::to_string).collect();
            let more = if active.len() > SHOWN { ", ..." } else { "" };
            Err(format!("namespace {nsid} is not there; valid are {}{more}", there.join(", ")))
        }
    }
}

/// Namespaces that an error lists.
const SHOWN: usize = 16;

/// Describes namespace `nsid` of a controller.
///
/// # Errors
/// Why it cannot be used.
pub(crate) fn drive_info(nsid: u32, controller: &Controller, namespace: &Namespace) -> Result<DriveInfo, String> {
    // The index of the format is in bits 3:0 and 6:5.
    let format = namespace.flbas & 0xf | (namespace.flbas >> 5 & 0b11) << 4;
    let format = namespace.lbaf[usize::from(format)];
    if !(9..=16).contains(&format.lbads) {
        return Err(format!("namespace {nsid} has blocks that are not from 512 bytes to 64 KiB"));
    }
    if format.ms.get() > 0 {
        return Err(format!(
            "namespace {nsid} has {} bytes of metadata for each block, which this initiator does not transfer; valid are formats \
             without metadata (nvme format)",
            format.ms.get()
        ));
    }
    let lba_bytes = 1u32 << format.lbads;
    // MDTS counts in pages of 4 KiB as a power of two; zero is no limit.
    let most = match controller.mdts {
        0 => 1 << 16,
        mdts => ((4_096u64 << mdts.min(20)) / u64::from(lba_bytes)).clamp(1, 1 << 16) as u32,
    };
    let unit = (u32::from(namespace.npwg_z.get()) + 1) * lba_bytes;
    Ok(DriveInfo {
        nsid,
        blocks: namespace.nsze.get(),
        lba_bytes,
        metadata_bytes: 0,
        max_blocks: most.min(MOST_BYTES / lba_bytes),
        unit_bytes: unit.max(lba_bytes),
        volatile_cache: controller.vwc & VWC_PRESENT != 0,
        keeps_data: true,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described(lbads: u8, metadata: u16, mdts: u8) -> Result<DriveInfo, String> {
        let (mut controller, mut namespace) = (Controller::zeroed(), Namespace::zeroed());
        controller.mdts = mdts;
        namespace.nsze = 1_000.into();
        namespace.flbas = 1;
        (namespace.lbaf[1].lbads, namespace.lbaf[1].ms) = (lbads, metadata.into());
        drive_info(7, &controller, &namespace)
    }

    #[test]
    fn a_namespace_is_chosen_among_the_active_ones() {
        let of = |wanted| choose([2, 5, 0, 0].into_iter(), wanted);
        assert_eq!((of(None), of(Some(5))), (Ok(2), Ok(5)));
        assert_eq!(of(Some(3)).unwrap_err(), "namespace 3 is not there; valid are 2, 5");
        assert_eq!(of(Some(0)).unwrap_err(), "namespace 0 is not there; valid are 2, 5");
        assert!(choose(1..=1_024, Some(2_000)).unwrap_err().ends_with("15, 16, ..."));
        assert!(choose([0].into_iter(), None).unwrap_err().contains("no active namespace"));
    }

    #[test]
    fn transfers_are_bounded_by_the_controller_and_by_what_is_sensible() {
        let info = described(9, 0, 5).unwrap();
        assert_eq!((info.nsid, info.blocks, info.lba_bytes, info.max_blocks), (7, 1_000, 512, 256));
        assert_eq!(described(12, 0, 0).unwrap().max_blocks, (32 << 20) / 4_096);
        assert_eq!(described(9, 0, 255).unwrap().max_blocks, 1 << 16);
    }

    #[test]
    fn formats_that_cannot_be_used_are_named() {
        assert!(described(8, 0, 0).unwrap_err().contains("512 bytes to 64 KiB"));
        assert!(described(12, 8, 0).unwrap_err().contains("namespace 7 has 8 bytes of metadata"));
    }
}
