//! What the simulator keeps of a LUN, a channel, a decoder and the controller, and the rules of who may have them: the
//! headings "Resources" and "Who may enter".

use nandscape_device_media::Registers;

use crate::drive::Drive;
use crate::mutants::Rule;
use crate::steps::Kind;

/// "Waiters are served by class, then in the order of asking."
#[derive(Clone, Debug)]
pub(crate) struct Line<T>(Vec<(u8, T)>);

impl<T> Default for Line<T> {
    fn default() -> Self {
        Line(Vec::new())
    }
}

impl<T> Line<T> {
    pub(crate) fn join(&mut self, class: u8, waiter: T) {
        let at = self.0.iter().position(|(other, _)| *other > class).unwrap_or(self.0.len());
        self.0.insert(at, (class, waiter));
    }

    pub(crate) fn first(&self) -> Option<&(u8, T)> {
        self.0.first()
    }

    pub(crate) fn serve(&mut self) -> Option<T> {
        (!self.0.is_empty()).then(|| self.0.remove(0).1)
    }

    pub(crate) fn any(&self, is: impl FnMut(&(u8, T)) -> bool) -> bool {
        self.0.iter().any(is)
    }
}

/// A channel or a decoder: one at a time.
#[derive(Default, Debug)]
pub(crate) struct Server {
    pub(crate) busy: bool,
    /// Customers with the time that they need; none for those who hold it until they give it back.
    pub(crate) line: Line<(usize, Option<u64>)>,
}

/// The controller: those in line either pass or hold it.
#[derive(Default, Debug)]
pub(crate) struct Controller {
    pub(crate) held: bool,
    /// Customers, and whether they will hold it.
    pub(crate) line: Line<(usize, bool)>,
}

/// Who is in a register.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Held {
    pub(crate) customer: usize,
    pub(crate) kind: Kind,
}

/// Where a program or an erase is in step 5 or 3, its array step.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum State {
    Runs,
    Suspending,
    Open,
    Resuming,
}

/// The array step of a program or an erase.
#[derive(Clone, Debug)]
pub(crate) struct Running {
    pub(crate) customer: usize,
    pub(crate) class: u8,
    /// tSPD if it may be suspended.
    pub(crate) suspend: Option<u64>,
    pub(crate) state: State,
    /// When it began or was resumed, and how much was left then.
    pub(crate) since: u64,
    pub(crate) left: u64,
    /// How often it was suspended.
    pub(crate) suspended: u32,
    /// Whether its suspension is on its way.
    pub(crate) decided: bool,
}

/// A LUN that was opened for senses of classes below one.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Opened {
    pub(crate) below: u8,
    pub(crate) since: u64,
    /// Who made way.
    pub(crate) customer: usize,
}

#[derive(Default, Debug)]
pub(crate) struct Lun {
    pub(crate) data: Option<Held>,
    pub(crate) cache: Option<Held>,
    /// Senses let in while it is open.
    pub(crate) apart: Vec<usize>,
    /// Who waits to move from one register to the other.
    pub(crate) moving: Vec<usize>,
    pub(crate) line: Line<(usize, Kind)>,
    pub(crate) running: Option<Running>,
    pub(crate) open: Option<Opened>,
}

impl Lun {
    /// The table under "Who may enter", and what "Suspension" says of an open LUN.
    pub(crate) fn fits(&self, drive: &Drive, class: u8, kind: Kind, broken: Option<Rule>) -> bool {
        if let Some(open) = self.open {
            if kind == Kind::Sense && class < open.below {
                return self.apart.is_empty() || broken == Some(Rule::OneSenseAtATime);
            }
            if broken == Some(Rule::OthersFindTheLunAsIfItRan) {
                return false;
            }
        }
        let cache_read = drive.cache_read != (broken == Some(Rule::CacheRead));
        let cache_program = drive.cache_program != (broken == Some(Rule::CacheProgram));
        let in_data = self.data.map(|held| held.kind);
        let in_cache = self.cache.map(|held| held.kind);
        match (drive.registers, kind) {
            (Registers::Single, _) => in_data.is_none(),
            (Registers::Double, Kind::Sense | Kind::Erase) => {
                let to_program = in_cache == Some(Kind::Program) && broken != Some(Rule::SensesWaitForAPageToProgram);
                in_data.is_none() && !to_program && (cache_read || in_cache.is_none())
            }
            (Registers::Double, Kind::Program) => {
                let beside = match in_data {
                    None => true,
                    Some(Kind::Program | Kind::Erase) => cache_program,
                    Some(Kind::Sense) => broken == Some(Rule::ProgramsWaitForAPageToSend),
                    Some(Kind::Collection) => false,
                };
                in_cache.is_none() && beside
            }
            (Registers::Double, Kind::Collection) => in_data.is_none() && in_cache.is_none(),
        }
    }

    /// Who enters "has the register at once".
    pub(crate) fn enter(&mut self, drive: &Drive, class: u8, held: Held) {
        let open_for_it = self.open.is_some_and(|open| held.kind == Kind::Sense && class < open.below);
        match (drive.registers, held.kind) {
            _ if open_for_it => self.apart.push(held.customer),
            (Registers::Single, _) | (_, Kind::Sense | Kind::Erase) => self.data = Some(held),
            (_, Kind::Program) => self.cache = Some(held),
            (_, Kind::Collection) => (self.data, self.cache) = (Some(held), Some(held)),
        }
    }

    /// Whether a customer can move to the register that is not its own.
    pub(crate) fn can_move(&self, customer: usize) -> bool {
        let others = |held: &Held| held.customer != customer;
        let senses = self.data.is_some_and(|held| held.customer == customer);
        if senses { !self.cache.as_ref().is_some_and(others) } else { !self.data.as_ref().is_some_and(others) }
    }

    /// Moves a page from data to cache register if it was sensed, from cache to data register if it is to be programmed.
    pub(crate) fn swap(&mut self, customer: usize) {
        if self.data.is_some_and(|held| held.customer == customer) {
            self.cache = self.data.take();
        } else {
            self.data = self.cache.take();
        }
    }

    /// Takes a customer out of whatever registers it has.
    pub(crate) fn leave(&mut self, customer: usize) {
        let stays = |held: &Held| held.customer != customer;
        self.data = self.data.filter(stays);
        self.cache = self.cache.filter(stays);
        self.apart.retain(|other| *other != customer);
    }
}
