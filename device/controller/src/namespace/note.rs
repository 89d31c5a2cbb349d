//! Namespaces as they are noted in the durable memory of a drive.

use std::collections::BTreeMap;
use std::rc::Rc;

use serde::{Deserialize, Serialize};

use super::layout::Run;
use super::table::{Entry, MAX_NAMESPACES, Namespaces, NewNamespace};
use super::{Format, Identifiers, Layout, Registrant, Reservations, WriteProtection};

/// All namespaces.
#[derive(Serialize, Deserialize)]
pub(crate) struct NamespacesNote {
    /// Namespaces that were created so far.
    created: u64,
    namespaces: Vec<NamespaceNote>,
}

/// A namespace.
#[derive(Serialize, Deserialize)]
struct NamespaceNote {
    nsid: u32,
    /// The number of namespaces created before it, from which its identifiers derive.
    number: u64,
    blocks: u64,
    format: FormatNote,
    is_shared: bool,
    is_in_use: bool,
    /// The NVM Set that it is in.
    #[serde(default)]
    set: usize,
    /// First sector and sectors of each run.
    runs: Vec<(u64, u64)>,
    reservations: ReservationsNote,
    /// Its state after a loss of power.
    write_protection: u32,
}

/// A format, as requested by a host.
#[derive(Serialize, Deserialize)]
struct FormatNote {
    index: u8,
    is_extended: bool,
    /// DPS: the type of protection information, and whether it comes first.
    protection: u8,
    /// Whether its pages are chains of pieces.
    #[serde(default)]
    has_pieces: bool,
}

/// Reservations, if they outlast a loss of power; otherwise only that they do not.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub(super) struct ReservationsNote {
    pub(super) persists: bool,
    pub(super) generation: u32,
    /// Host and key.
    pub(super) keys: Vec<([u8; 16], u64)>,
    /// The type, and who acquired it.
    pub(super) holder: Option<(u8, [u8; 16])>,
}

/// The reason why notes contradict the drive.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Contradiction {
    #[error("namespace {0} lies outside the drive, or where another one does")]
    Place(u32),
    #[error("namespace {0} has a format that there is not")]
    Format(u32),
    #[error("there can be no namespace {0}")]
    Number(u32),
}

impl Namespaces {
    pub(crate) fn note(&self) -> NamespacesNote {
        let table = self.table.borrow();
        let namespaces = table.by_nsid.values().map(|Entry { namespace, is_in_use, number }| NamespaceNote {
            nsid: namespace.nsid,
            number: *number,
            blocks: namespace.blocks,
            format: FormatNote {
                index: namespace.format.index,
                is_extended: namespace.format.is_extended,
                protection: namespace.format.dps(),
                has_pieces: namespace.format.has_pieces,
            },
            is_shared: namespace.is_shared,
            is_in_use: *is_in_use,
            set: namespace.set,
            runs: namespace.layout.runs().map(|run| (run.start, run.sectors)).collect(),
            reservations: namespace.reservations.note(),
            write_protection: namespace.write_protection().after_power_loss() as u32,
        });
        NamespacesNote { created: table.created, namespaces: namespaces.collect() }
    }

    /// Replaces the namespaces of a new drive by noted ones.
    pub(crate) fn restore(&self, note: &NamespacesNote) -> Result<(), Contradiction> {
        let mut spaces = self.common.spaces();
        let mut by_nsid = BTreeMap::new();
        for note in &note.namespaces {
            let nsid = note.nsid;
            if !(1..=MAX_NAMESPACES).contains(&nsid) || by_nsid.contains_key(&nsid) {
                return Err(Contradiction::Number(nsid));
            }
            let runs = note.runs.iter().map(|(start, sectors)| Run { start: *start, sectors: *sectors });
            let runs: Vec<Run> = runs.collect();
            if runs.is_empty() || !spaces.get_mut(note.set).is_some_and(|space| space.take_runs(&runs)) {
                return Err(Contradiction::Place(nsid));
            }
            let layout = Layout::new(runs);
            let FormatNote { index, is_extended, protection, has_pieces } = note.format;
            let format = Format::asked_for(self.formats(), index, is_extended, (protection & 7, protection & 8 != 0));
            let format = Format { has_pieces, ..format.map_err(|_| Contradiction::Format(nsid))? };
            let fits =
                note.blocks.checked_mul(format.lba().sectors().into()).is_some_and(|all| all <= layout.sectors());
            if !fits || note.blocks == 0 {
                return Err(Contradiction::Place(nsid));
            }
            let new = NewNamespace { blocks: note.blocks, format, is_shared: note.is_shared, set: Some(note.set) };
            let identifiers = Identifiers::new(&self.common.nqn, note.number);
            let reservations = Rc::new(Reservations::of_note(&note.reservations));
            let namespace = Rc::new(self.build(nsid, new, identifiers, (note.set, layout), reservations));
            namespace.set_write_protection(WriteProtection::of(note.write_protection).unwrap_or_default());
            by_nsid.insert(nsid, Entry { namespace, is_in_use: note.is_in_use, number: note.number });
        }
        let mut table = self.table.borrow_mut();
        (table.by_nsid, table.spaces, table.created) = (by_nsid, spaces, note.created);
        drop(table);
        self.note_block_sizes();
        Ok(())
    }
}

/// The host of a registrant that can reconnect.
pub(super) fn host_of(registrant: Registrant) -> Option<[u8; 16]> {
    if let Registrant::Host(host) = registrant { Some(host) } else { None }
}
