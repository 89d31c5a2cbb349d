//! Cleaning segments: the segment with the least current data is read as a whole, as in LLAMA (OX 7.2), and its
//! current data moves to the end of the log.

use nandscape_apps_store::StoreError;

use super::LogStore;
use super::form::{ALIGN, entries, frame_bytes, frame_head};
use super::state::{Item, Says};

impl LogStore {
    /// Empties a segment, which is free after the next checkpoint.
    pub(super) async fn clean(&self) -> Result<(), StoreError> {
        let victim = self.state.borrow().victim().ok_or(StoreError::Full)?;
        if self.state.borrow().live_in(victim) > 0 {
            self.move_out(victim).await?;
        }
        self.state.borrow_mut().pending.push(victim);
        self.count(|stats| stats.cleaned += 1);
        Ok(())
    }

    async fn move_out(&self, victim: u32) -> Result<(), StoreError> {
        let (range, _) = self.range(victim, 0, self.layout.segment_bytes.into());
        let bytes = self.disk.read(&[range]).await?.remove(0);
        self.disk.host.bytes(bytes.len()).await;
        let items = self.current(victim, &bytes);
        let (live, found) =
            (self.state.borrow().live_in(victim), items.iter().map(|item| item.bytes.len() as u64).sum());
        if live != found {
            return Err(StoreError::Corrupt(format!(
                "segment {victim} of the log has {found} bytes of current pieces, and should have {live}"
            )));
        }
        self.count(|stats| stats.moved_bytes += live);
        let most = self.layout.segment_bytes as usize / 8;
        let mut some: Vec<Item> = Vec::new();
        for item in items {
            if !some.is_empty() && frame_bytes(&some) + frame_bytes(std::slice::from_ref(&item)) > most {
                self.write_frame(&some).await?;
                some.clear();
            }
            some.push(item);
        }
        self.write_frame(&some).await
    }

    /// The pieces of a segment that are current.
    fn current(&self, segment: u32, bytes: &[u8]) -> Vec<Item> {
        let (state, mut at, mut items) = (self.state.borrow(), 0, Vec::new());
        while let Some((head, total)) = bytes.get(at..).and_then(frame_head) {
            let Some(entries) = entries(&bytes[at..], segment, at as u32).filter(|_| head.id == self.layout.id) else {
                break;
            };
            for (lpid, _, place) in entries {
                if state.chain(lpid).contains(&place) {
                    let piece = &bytes[place.offset as usize..][..place.bytes as usize];
                    items.push(Item { lpid, says: Says::Moved, serial: place.serial, bytes: piece.to_vec() });
                }
            }
            at += total.next_multiple_of(ALIGN as usize);
        }
        items
    }
}
