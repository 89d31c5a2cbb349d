//! The simulator's state of a LUN, a channel, a decoder and the controller, and the rules of admission: the headings
//! "Resources" and "Order of operations in a die".

use nandscape_device_media::Registers;

use crate::drive::{Drive, Page};
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

/// Reads of one page number that are sensed at once.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    pub(crate) class: u8,
    pub(crate) number: u32,
    /// Of the array step, once it has begun.
    pub(crate) time: Option<u64>,
    /// In the order of their admission.
    pub(crate) members: Vec<Member>,
}

/// A read of a group.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Member {
    pub(crate) customer: usize,
    pub(crate) plane: u32,
    /// When its step 3 ended, and the time it takes of the array.
    pub(crate) ready: Option<(u64, u64)>,
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
    /// Senses admitted while it is open.
    pub(crate) apart: Vec<usize>,
    /// Who waits to move from one register to the other.
    pub(crate) moving: Vec<usize>,
    pub(crate) line: Line<(usize, Kind)>,
    /// Reads of several planes at once, each group in one register.
    pub(crate) groups: Vec<Group>,
    pub(crate) running: Option<Running>,
    pub(crate) open: Option<Opened>,
}

impl Lun {
    /// The table under "Order of operations in a die", and what "Suspension" defines for an open LUN.
    pub(crate) fn fits(&self, drive: &Drive, class: u8, kind: Kind, page: Option<Page>, broken: Option<Rule>) -> bool {
        if page.is_some_and(|page| self.group_for(class, page, broken).is_some()) {
            return true;
        }
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
    pub(crate) fn enter(&mut self, drive: &Drive, class: u8, held: Held, page: Option<Page>, broken: Option<Rule>) {
        if let Some(page) = page {
            let member = Member { customer: held.customer, plane: page.plane, ready: None };
            if let Some(at) = self.group_for(class, page, broken) {
                self.groups[at].members.push(member);
                return;
            }
            if self.open.is_none_or(|open| class >= open.below) {
                self.groups.push(Group { class, number: page.number, time: None, members: vec![member] });
            }
        }
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

    /// "Until the group's array step begins, a read of the same class for a page of the same number, of a plane of which
    /// the group has none, may enter too": which group.
    pub(crate) fn group_for(&self, class: u8, page: Page, broken: Option<Rule>) -> Option<usize> {
        let is_broken = |rule| broken == Some(rule);
        self.groups.iter().position(|group| {
            group.time.is_none()
                && (group.class == class || is_broken(Rule::GroupsAreOfOneClass))
                && (group.number == page.number || is_broken(Rule::GroupsAreOfOneNumber))
                && (group.members.iter().all(|member| member.plane != page.plane)
                    || is_broken(Rule::GroupsHaveOneOfAPlane))
        })
    }

    pub(crate) fn group_of(&mut self, customer: usize) -> Option<&mut Group> {
        let has = |group: &&mut Group| group.members.iter().any(|member| member.customer == customer);
        self.groups.iter_mut().find(has)
    }

    /// Takes a customer out of its group. Another one that is left of it.
    pub(crate) fn leave_group(&mut self, customer: usize) -> Option<usize> {
        let group = self.group_of(customer)?;
        group.members.retain(|member| member.customer != customer);
        let next = group.members.first().map(|member| member.customer);
        self.groups.retain(|group| !group.members.is_empty());
        if let Some(next) = next {
            self.rename(customer, next);
        }
        next
    }

    /// A register of a group is in the name of one of its members.
    pub(crate) fn rename(&mut self, from: usize, to: usize) {
        for held in [&mut self.data, &mut self.cache].into_iter().flatten() {
            if held.customer == from {
                held.customer = to;
            }
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
