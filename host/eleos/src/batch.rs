//! Pages that are read together.

use nandscape_drive::{Drive, HostMem, Issuer};
use nandscape_wire_nvme::SubmissionEntry;
use nandscape_wire_nvme::lss::{LIST, PAGE};
use nandscape_wire_nvme::vendor::BATCHED_READ;

use crate::{Error, Limits, Page};

/// Reads pages in as few commands as the drive's limit allows, one after the other. `None` stands for a page that was
/// never written. A page that another host flushes meanwhile may be old or new, independently of other pages.
///
/// # Errors
/// Why the drive did not serve a command.
pub async fn read(
    issuer: &Issuer,
    drive: &dyn Drive,
    limits: &Limits,
    lpids: &[u64],
) -> Result<Vec<Option<Box<Page>>>, Error> {
    let mut found = Vec::with_capacity(lpids.len());
    for some in lpids.chunks(limits.batched) {
        let bytes: Vec<u8> = some.iter().flat_map(|lpid| lpid.to_le_bytes()).collect();
        let mem = HostMem::zeroed(LIST + some.len() * PAGE);
        mem.write(0, &bytes);
        let mut entry = SubmissionEntry::io(BATCHED_READ, drive.info().nsid);
        entry.cdw10 = (some.len() as u32 - 1).into();
        Error::of(issuer.execute(drive, entry, mem.clone()).await.status)?;
        found.extend((0..some.len()).map(|number| page(&mem, number)));
    }
    Ok(found)
}

/// One of the returned pages, if it was ever written.
fn page(mem: &HostMem, number: usize) -> Option<Box<Page>> {
    let mut bytes = [0; size_of::<u64>()];
    mem.read(number * bytes.len(), &mut bytes);
    if bytes == [0; 8] {
        return None;
    }
    let mut page = Box::new([0; PAGE]);
    mem.read(LIST + number * PAGE, &mut page[..]);
    Some(page)
}
