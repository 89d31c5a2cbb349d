//! Jobs that choose where their writes go, with fio's words: `fdp`, `dataplacement`, `plids`, `plid_select`.
//!
//! Left out: fio's schemes (`plid_select=scheme`), placement of loads, traces and jobs that know zones.

use std::cell::{Cell, RefCell};

use nandscape_drive::{Drive, HostMem, Issuer};
use nandscape_sim::{Rng, Seed, Sim};
use nandscape_wire_nvme::{IoOpcode, SubmissionEntry, directive, fdp};

use crate::spec::{JobSpec, Workload};
use crate::words::Action;

/// What names the place of a write.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum PlacedBy {
    /// The placement identifier of a reclaim unit handle.
    Fdp,
    /// A stream identifier.
    Streams,
}

/// Which identifier the next write has.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Select {
    RoundRobin,
    Random,
}

/// How a job places its writes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Placing {
    /// What names the place.
    pub by: PlacedBy,
    /// The identifiers; none is all handles of the drive.
    ids: Vec<u16>,
    select: Select,
}

/// The words of a job about placement, as given.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct PlacementWords {
    /// `fdp`: the same as `dataplacement = fdp`.
    pub fdp: Option<bool>,
    /// `dataplacement`: `none`, `fdp` or `streams`.
    pub by: Option<String>,
    /// `plids`: identifiers with commas between them.
    pub ids: Option<String>,
    /// `plid_select`: `roundrobin` or `random`.
    pub select: Option<String>,
}

impl PlacementWords {
    /// What they mean.
    ///
    /// # Errors
    /// The word that is not valid, and what would be.
    pub fn placing(&self) -> Result<Option<Placing>, String> {
        let by = match (self.by.as_deref(), self.fdp) {
            (None | Some("none"), None | Some(false)) => None,
            (None | Some("fdp"), Some(true)) | (Some("fdp"), None) => Some(PlacedBy::Fdp),
            (Some("streams"), None | Some(false)) => Some(PlacedBy::Streams),
            (Some(other @ ("none" | "streams")), Some(true)) => {
                return Err(format!("dataplacement = {other} contradicts fdp = 1; one of them is valid"));
            }
            (Some("fdp"), Some(false)) => {
                return Err("dataplacement = fdp contradicts fdp = 0; one of them is valid".to_owned());
            }
            (Some(other), _) => {
                return Err(format!("dataplacement = {other} is not known; none, fdp and streams are valid"));
            }
        };
        let Some(by) = by else {
            let words = [("plids", self.ids.is_some()), ("plid_select", self.select.is_some())];
            return match words.iter().find(|(_, is_given)| *is_given) {
                Some((word, _)) => Err(format!("{word} is for jobs that place writes: dataplacement = fdp or streams")),
                None => Ok(None),
            };
        };
        let select = match self.select.as_deref() {
            None | Some("roundrobin") => Select::RoundRobin,
            Some("random") => Select::Random,
            Some(other) => return Err(format!("plid_select = {other} is not known; roundrobin and random are valid")),
        };
        let ids = self.ids.as_deref().map_or(Ok(Vec::new()), identifiers)?;
        if by == PlacedBy::Streams && (ids.is_empty() || ids.contains(&0)) {
            return Err("plids of streams are to be given; each from 1 to 65535 is valid".to_owned());
        }
        Ok(Some(Placing { by, ids, select }))
    }
}

fn identifiers(text: &str) -> Result<Vec<u16>, String> {
    let wrong = || format!("plids = {text} is not valid; identifiers such as 0,1,3 are, each at most 65535");
    text.split(',').map(|one| one.trim().parse().map_err(|_| wrong())).collect()
}

impl Placing {
    /// Checks the words of a job against each other.
    pub(crate) fn check(&self, job: &JobSpec) -> Result<(), String> {
        if job.zoned.is_some() || job.source.is_some() {
            return Err("dataplacement is for jobs of drawn requests without zonemode".to_owned());
        }
        match job.rw.action {
            Action::Read | Action::Trim => {
                Err(format!("dataplacement is for jobs that write, which {} does not", job.rw))
            }
            Action::Write | Action::Mixed => Ok(()),
        }
    }

    /// The words, as one line of text.
    pub fn describe(&self) -> String {
        let by = if self.by == PlacedBy::Fdp { "fdp" } else { "streams" };
        let ids: Vec<String> = self.ids.iter().map(ToString::to_string).collect();
        let ids = if ids.is_empty() { String::new() } else { format!(" plids={}", ids.join(",")) };
        let select = if self.select == Select::Random { " plid_select=random" } else { "" };
        format!("dataplacement={by}{ids}{select}")
    }

    /// Checks that a drive has as many handles or streams as the job names.
    fn check_on(&self, handles: u16, streams: u16) -> Result<(), String> {
        let most = self.ids.iter().max().copied().unwrap_or(0);
        match self.by {
            PlacedBy::Fdp if handles == 0 => {
                Err("dataplacement = fdp: the drive has no reclaim unit handles, which ftl.fdp.handles gives it"
                    .to_owned())
            }
            PlacedBy::Fdp if most >= handles => {
                Err(format!("plids: {most} is out of range; the drive has the handles 0 to {}", handles - 1))
            }
            PlacedBy::Streams if streams == 0 => {
                Err("dataplacement = streams: the drive has no streams, which ftl.streams.count gives it".to_owned())
            }
            _ => Ok(()),
        }
    }
}

impl Workload {
    /// Checks that the workload can run on a drive with this many reclaim unit handles and streams.
    ///
    /// # Errors
    /// The job that cannot, with what is valid.
    pub fn check_on_placement(&self, handles: u16, streams: u16) -> Result<(), String> {
        self.jobs.iter().try_for_each(|job| {
            let fits = job.placing.as_ref().map_or(Ok(()), |placing| placing.check_on(handles, streams));
            fits.map_err(|problem| format!("job \"{}\": {problem}", job.name))
        })
    }

    /// Whether some job places writes by `by`.
    pub fn places_by(&self, by: PlacedBy) -> bool {
        self.jobs.iter().any(|job| job.placing.as_ref().is_some_and(|placing| placing.by == by))
    }
}

/// Places the writes of a job on its drive.
pub(crate) struct Placer {
    kind: u8,
    ids: Vec<u16>,
    /// Draws where the selection is random.
    rng: Option<RefCell<Rng>>,
    next: Cell<usize>,
}

impl Placer {
    /// Asks the drive for its handles.
    ///
    /// # Errors
    /// The job names handles that the drive does not have.
    pub(crate) async fn open(placing: &Placing, sim: &Sim, drive: &dyn Drive, seed: Seed) -> Result<Placer, String> {
        let mut ids = placing.ids.clone();
        if placing.by == PlacedBy::Fdp {
            let handles = handles(sim, drive).await;
            placing.check_on(handles, 0)?;
            if ids.is_empty() {
                ids = (0..handles).collect();
            }
        }
        let kind = if placing.by == PlacedBy::Fdp { directive::PLACEMENT } else { directive::STREAMS };
        let rng = (placing.select == Select::Random).then(|| RefCell::new(seed.rng()));
        Ok(Placer { kind, ids, rng, next: Cell::new(0) })
    }

    /// Places the commands of the next request.
    pub(crate) fn next(&self) -> impl Fn(&mut SubmissionEntry) {
        let place = match &self.rng {
            Some(rng) => rng.borrow_mut().below(self.ids.len() as u64) as usize,
            None => self.next.replace((self.next.get() + 1) % self.ids.len()),
        };
        let (kind, id) = (u32::from(self.kind), u32::from(self.ids[place]));
        move |entry| {
            entry.cdw12 = (entry.cdw12.get() | kind << 20).into();
            entry.cdw13 = (entry.cdw13.get() | id << 16).into();
        }
    }
}

/// The handles of a drive, from Reclaim Unit Handle Status; 0 for a drive without handles.
async fn handles(sim: &Sim, drive: &dyn Drive) -> u16 {
    let entry = SubmissionEntry {
        cdw10: u32::from(fdp::HANDLE_STATUS).into(),
        cdw11: (fdp::STATUS_HEAD as u32 / 4 - 1).into(),
        ..SubmissionEntry::io(IoOpcode::IO_MANAGEMENT_RECEIVE, drive.info().nsid)
    };
    let mem = HostMem::zeroed(fdp::STATUS_HEAD);
    let ended = Issuer::new(sim).execute(drive, entry, mem.clone()).await;
    let page = mem.to_vec();
    if ended.status.is_success() { u16::from_le_bytes([page[14], page[15]]) } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(fdp: Option<bool>, by: Option<&str>, ids: Option<&str>, select: Option<&str>) -> PlacementWords {
        let [by, ids, select] = [by, ids, select].map(|word| word.map(str::to_owned));
        PlacementWords { fdp, by, ids, select }
    }

    #[test]
    fn words_say_what_they_mean_or_what_would_be_valid() {
        assert_eq!(words(None, None, None, None).placing(), Ok(None));
        let all = Placing { by: PlacedBy::Fdp, ids: Vec::new(), select: Select::RoundRobin };
        assert_eq!(words(Some(true), None, None, None).placing(), Ok(Some(all.clone())));
        assert_eq!(words(None, Some("fdp"), None, Some("roundrobin")).placing(), Ok(Some(all)));
        let streams = words(None, Some("streams"), Some("4, 65535"), Some("random")).placing().unwrap().unwrap();
        assert_eq!(streams.describe(), "dataplacement=streams plids=4,65535 plid_select=random");
        for (wrong, told) in [
            (words(None, None, Some("1"), None), "plids is for jobs that place writes"),
            (words(None, Some("hints"), None, None), "none, fdp and streams are valid"),
            (words(Some(true), Some("streams"), Some("1"), None), "contradicts fdp = 1"),
            (words(Some(true), None, Some("1,x"), None), "identifiers such as 0,1,3 are"),
            (words(Some(true), None, None, Some("scheme")), "roundrobin and random are valid"),
            (words(None, Some("streams"), None, None), "plids of streams are to be given"),
            (words(None, Some("streams"), Some("0"), None), "each from 1 to 65535 is valid"),
        ] {
            assert!(wrong.placing().unwrap_err().contains(told), "{wrong:?}");
        }
    }

    #[test]
    fn a_drive_without_the_place_refuses_the_job() {
        let job = |by, ids| {
            let placing = words(None, Some(by), Some(ids), None).placing().unwrap();
            Workload::of(JobSpec { rw: "write".parse().unwrap(), placing, ..JobSpec::default() })
        };
        assert!(job("fdp", "1").check_on_placement(2, 0).is_ok());
        assert!(job("fdp", "2").check_on_placement(2, 0).unwrap_err().contains("the drive has the handles 0 to 1"));
        assert!(job("fdp", "0").check_on_placement(0, 3).unwrap_err().contains("ftl.fdp.handles"));
        assert!(job("streams", "9").check_on_placement(0, 3).is_ok());
        assert!(job("streams", "9").check_on_placement(2, 0).unwrap_err().contains("ftl.streams.count"));
    }
}
