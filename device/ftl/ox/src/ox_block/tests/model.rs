//! The permitted contents of the drive: for each unit, its states in order, from the last one that must be durable on.

use std::ops::Range;

use nandscape_device_ftl_core::Extent;

use super::rig::UNIT_SECTORS;

const SECTOR: usize = 512;

/// A unit: the version of each sector. Version 0 reads as zeros.
pub(super) type State = [u32; UNIT_SECTORS as usize];

/// See the module.
pub(super) struct Model {
    /// Of each unit, states with the number of the write that made them. The first is the oldest that it may have.
    units: Vec<Vec<(u32, State)>>,
    /// Writes and deallocations so far.
    steps: u32,
    /// Steps that are certainly durable.
    durable: u32,
    /// Steps whose command has not ended, with their extents. No two of them touch a unit.
    under_way: Vec<(u32, Extent)>,
    /// Steps that are writes of several units, as numbers.
    transactions: bool,
}

/// An instant: the steps so far, and those whose command had not ended.
pub(super) struct Mark {
    steps: u32,
    under_way: Vec<(u32, Extent)>,
}

impl Model {
    /// An empty drive.
    pub(super) fn new(units: u32, transactions: bool) -> Model {
        let units = vec![vec![(0, State::default())]; units as usize];
        Model { units, steps: 0, durable: 0, under_way: Vec::new(), transactions }
    }

    /// A write of an extent begins. Returns its step and its bytes.
    pub(super) fn write(&mut self, extent: Extent) -> (u32, Vec<u8>) {
        self.steps += 1;
        let version = self.steps;
        self.under_way.push((version, extent));
        self.change(extent, version);
        let mut bytes = Vec::with_capacity(extent.bytes() as usize);
        for sector in extent.start..extent.end() {
            let pattern = pattern(sector, version);
            (0..SECTOR / 8).for_each(|_| bytes.extend_from_slice(&pattern));
        }
        (version, bytes)
    }

    /// A deallocation of an extent of whole units begins. Returns its step.
    pub(super) fn deallocate(&mut self, extent: Extent) -> u32 {
        self.steps += 1;
        self.under_way.push((self.steps, extent));
        self.change(extent, 0);
        self.steps
    }

    /// The command of a step has ended.
    pub(super) fn ended(&mut self, step: u32) {
        self.under_way.retain(|(other, _)| *other != step);
    }

    fn change(&mut self, extent: Extent, version: u32) {
        for sector in extent.start..extent.end() {
            let (unit, within) = ((sector / u64::from(UNIT_SECTORS)) as usize, sector as usize % UNIT_SECTORS as usize);
            let states = &mut self.units[unit];
            let (step, mut state) = *states.last().expect("a unit has a state");
            state[within] = version;
            match step == self.steps {
                true => *states.last_mut().expect("a unit has a state") = (step, state),
                false => states.push((self.steps, state)),
            }
        }
    }

    /// The number of steps so far.
    pub(super) fn steps(&self) -> u32 {
        self.steps
    }

    /// The commands that have begun and ended so far.
    pub(super) fn mark(&self) -> Mark {
        Mark { steps: self.steps, under_way: self.under_way.clone() }
    }

    /// All that had ended at a mark is durable.
    pub(super) fn flushed(&mut self, mark: &Mark) {
        let before = |step: Option<u32>| step.map_or(mark.steps, |step| step - 1);
        self.durable = self.durable.max(before(mark.under_way.iter().map(|(step, _)| *step).min()));
        for (unit, states) in (0..).zip(&mut self.units) {
            let touches = |(_, extent): &&(u32, Extent)| touched(extent).contains(&unit);
            let step = before(mark.under_way.iter().find(touches).map(|(step, _)| *step));
            let first = states.iter().rposition(|(number, _)| *number <= step).unwrap_or(0);
            states.drain(..first);
        }
    }

    /// A write of one step is durable, and replaces the earlier content of its units.
    pub(super) fn forced(&mut self, extent: Extent, step: u32) {
        for unit in touched(&extent) {
            let states = &mut self.units[unit as usize];
            let first = states.iter().rposition(|(number, _)| *number <= step).unwrap_or(0);
            states.drain(..first);
        }
        if self.transactions {
            // Transactions become current in their order.
            self.durable = self.durable.max(step);
        }
    }

    /// The content of a unit while power is on.
    pub(super) fn now(&self, unit: u32) -> State {
        self.units[unit as usize].last().expect("a unit has a state").1
    }

    /// After a power cut: what each unit was found to hold becomes its state.
    ///
    /// # Errors
    /// The unit with content that it never had, or has no longer, or not together with others.
    pub(super) fn found(&mut self, contents: &[Option<State>]) -> Result<(), String> {
        let (mut low, mut high) = (self.durable, self.steps);
        for (unit, found) in (0..).zip(contents) {
            let states = &self.units[unit as usize];
            let matching = |(_, state): &(u32, State)| Some(*state) == *found;
            let Some(last) = states.iter().rposition(matching) else {
                return Err(self.wrong(unit, *found));
            };
            // From the first of its matching states on, up to the next other one.
            let first = states[..=last].iter().rposition(|state| !matching(state)).map_or(0, |other| other + 1);
            low = low.max(states[first].0.min(self.steps));
            high = high.min(states.get(last + 1).map_or(self.steps, |(next, _)| next - 1));
        }
        if self.transactions && low > high {
            return Err(format!("units hold what was written up to step {low}, and others only up to step {high}"));
        }
        for (unit, found) in (0..).zip(contents) {
            let states = &mut self.units[unit as usize];
            let kept = states.iter().rposition(|(_, state)| Some(*state) == *found);
            let (_, state) = states[kept.expect("it was found above")];
            *states = vec![(self.steps, state)];
        }
        self.durable = self.steps;
        self.under_way.clear();
        Ok(())
    }

    fn wrong(&self, unit: u32, found: Option<State>) -> String {
        let found = found.map_or_else(|| "what was never written".to_owned(), |found| format!("versions {found:?}"));
        format!("unit {unit} holds {found}; it may hold {:?}", self.units[unit as usize])
    }
}

/// The units that an extent touches.
pub(super) fn touched(extent: &Extent) -> Range<u64> {
    extent.start / u64::from(UNIT_SECTORS)..extent.end().div_ceil(u64::from(UNIT_SECTORS))
}

/// The repeated content of a sector of a version.
fn pattern(sector: u64, version: u32) -> [u8; 8] {
    match version {
        0 => [0; 8],
        version => (u64::from(sector as u32) | u64::from(version) << 32).to_le_bytes(),
    }
}

/// The state that bytes encode; `None` if they encode none.
pub(super) fn decode(unit: u32, found: &[u8]) -> Option<State> {
    let mut state = State::default();
    let first = u64::from(unit) * u64::from(UNIT_SECTORS);
    for ((sector, bytes), version) in (first..).zip(found.chunks_exact(SECTOR)).zip(&mut state) {
        *version = u32::from_le_bytes(bytes[4..8].try_into().expect("4 bytes"));
        let pattern = pattern(sector, *version);
        if bytes.chunks_exact(8).any(|eight| eight != pattern) {
            return None;
        }
    }
    Some(state)
}
