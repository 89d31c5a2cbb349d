//! Who is given what: the simulator's LUNs, channels, decoders and controller, their lines, and in which order they are
//! handed on.

use crate::lun::{Held, Member};
use crate::mutants::Rule;
use crate::outcome::Stage;
use crate::simulator::{Customer, Ending, Given, Simulator};
use crate::steps::{Kind, Step};

impl Simulator<'_> {
    // ------------------------------------------------------------ LUNs

    /// "A LUN admits an operation when the registers allow it and no waiter of the same or a lower class is ahead of
    /// it"
    pub(crate) fn ask_lun(&mut self, customer: usize, kind: Kind) -> bool {
        let Customer { class, lun, page, .. } = self.customers[customer];
        let (drive, broken) = (self.drive, self.steps.broken);
        let overtakes = self.is_broken(Rule::NobodyIsOvertaken);
        let joins = page.is_some_and(|page| self.luns[lun].group_for(class, page, broken).is_some());
        let before = match joins {
            true if self.is_broken(Rule::ReadsJoinInTheirTurn) => false,
            true if self.is_broken(Rule::ReadsJoinWhenTheyAsk) => true,
            _ => !overtakes && self.luns[lun].line.any(|(other, _)| *other <= class),
        };
        if !before && self.luns[lun].fits(drive, class, kind, page, broken) {
            self.luns[lun].enter(drive, class, Held { customer, kind }, page, broken);
            return true;
        }
        self.luns[lun].line.join(class, (customer, kind));
        self.waits(customer, Stage::DieWait);
        self.consider(lun, false);
        false
    }

    /// "Then waiters are admitted, class by class, while the first one fits."
    pub(crate) fn admit(&mut self, lun: usize) {
        while let Some(&(class, (customer, kind))) = self.luns[lun].line.first() {
            let (drive, page, broken) = (self.drive, self.customers[customer].page, self.steps.broken);
            if !self.luns[lun].fits(drive, class, kind, page, broken) {
                return;
            }
            self.luns[lun].line.serve();
            self.luns[lun].enter(drive, class, Held { customer, kind }, page, broken);
            self.has_waited(customer);
            self.given.push_back(Given::GoOn(customer));
        }
    }

    pub(crate) fn ask_to_move(&mut self, customer: usize, step: Step, stage: Stage) -> bool {
        let lun = self.customers[customer].lun;
        if self.luns[lun].can_move(customer) {
            self.luns[lun].swap(customer);
            self.register_is_free(lun);
            return true;
        }
        self.luns[lun].moving.push(customer);
        self.waits(customer, stage);
        if !self.is_broken(Rule::WhoMovesLeavesWhenItBegins) {
            self.customers[customer].steps.push_front(step);
        }
        false
    }

    pub(crate) fn leave_lun(&mut self, customer: usize) -> bool {
        let lun = self.customers[customer].lun;
        let was_apart = self.luns[lun].apart.contains(&customer);
        if !self.is_broken(Rule::RetriesAreSensedAlone) {
            self.customers[customer].page = None;
        }
        if let Some(other) = self.luns[lun].leave_group(customer) {
            // "The register is left when the last of the group leaves it."
            if !self.is_broken(Rule::TheLastOfAGroupLeaves) {
                return true;
            }
            self.luns[lun].leave(other);
        }
        self.luns[lun].leave(customer);
        if !(was_apart && self.is_broken(Rule::OpenUntilNobodyWaits)) {
            self.register_is_free(lun);
        }
        if was_apart {
            self.close_if_nobody_waits(lun);
        }
        true
    }

    /// "When a register becomes empty, the operation that waits to move goes first. Then waiters are admitted"
    pub(crate) fn register_is_free(&mut self, lun: usize) {
        if let Some(at) =
            (0..self.luns[lun].moving.len()).find(|&at| self.luns[lun].can_move(self.luns[lun].moving[at]))
        {
            let customer = self.luns[lun].moving.remove(at);
            if self.is_broken(Rule::WhoMovesLeavesWhenItBegins) {
                self.luns[lun].swap(customer);
            }
            self.has_waited(customer);
            self.given.push_back(Given::GoOn(customer));
        }
        self.admit(lun);
    }

    // ------------------------------------------------------------ "Reads of several planes at once"

    /// "Then a time of 0 passes, which ends as any other"
    pub(crate) fn let_others_join(&mut self, customer: usize) -> bool {
        let is_alone = self.luns[self.customers[customer].lun].group_of(customer).is_none();
        if !is_alone {
            self.ends_after(0, customer, Ending::Own);
        }
        is_alone
    }

    /// "Who has ended step 3 waits until all others of the group have. The last of them leads."
    pub(crate) fn sense_in_group(&mut self, customer: usize, time: u64) -> bool {
        let (lun, now) = (self.customers[customer].lun, self.now);
        let early = self.is_broken(Rule::TheArrayWaitsForAllCommands);
        let Some(group) = self.luns[lun].group_of(customer) else { return self.own(customer, Stage::Array, time) };
        group
            .members
            .iter_mut()
            .filter(|member| member.customer == customer)
            .for_each(|me| me.ready = Some((now, time)));
        if group.members.iter().any(|member| member.ready.is_none()) {
            return false;
        }
        let longest = group.members.iter().filter_map(|member| member.ready).map(|(_, time)| time).max();
        let first = group.members.iter().filter_map(|member| member.ready).map(|(at, _)| at).min();
        let time = longest.expect("it has a time");
        group.time = Some(time);
        let time = if early { time - time.min(now - first.expect("it has one")) } else { time };
        let former = self.luns[lun].data.expect("the group is there").customer;
        self.luns[lun].rename(former, customer);
        self.own(customer, Stage::Array, time)
    }

    /// "all members continue in the order of their admission: among those of 4 in the last section"
    pub(crate) fn release_group(&mut self, leader: usize) -> bool {
        let (lun, now) = (self.customers[leader].lun, self.now);
        let Some(group) = self.luns[lun].group_of(leader) else { return true };
        let time = group.time.expect("it was sensed");
        let mut members = group.members.clone();
        if self.is_broken(Rule::GroupsGoOnInOrder) {
            members.reverse();
        }
        for Member { customer, ready, .. } in members {
            if customer != leader {
                let Customer { stages, steps, .. } = &mut self.customers[customer];
                stages.array += time;
                stages.channel_wait += now - ready.expect("it was sensed").0 - time;
                while steps.pop_front_if(|step| matches!(step, Step::MoveToCache | Step::Release)).is_some() {}
            }
            self.given.push_back(Given::GoOn(customer));
        }
        false
    }

    // ------------------------------------------------------------ channels and decoders

    /// For a time, or to hold it.
    pub(crate) fn ask_channel(&mut self, customer: usize, time: Option<u64>) -> bool {
        let Customer { class, channel, .. } = self.customers[customer];
        if self.channels[channel].busy {
            self.channels[channel].line.join(class, (customer, time));
            self.waits(customer, Stage::ChannelWait);
            return false;
        }
        self.has_channel(customer, time)
    }

    /// Begins at once if it is for a time. Returns whether there is nothing to wait for.
    pub(crate) fn has_channel(&mut self, customer: usize, time: Option<u64>) -> bool {
        self.channels[self.customers[customer].channel].busy = true;
        let Some(time) = time else {
            self.customers[customer].holds_channel = true;
            self.customers[customer].held_since = self.now;
            return true;
        };
        self.spend(customer, Stage::Transfer, time);
        self.ends_after(time, customer, Ending::Channel);
        false
    }

    pub(crate) fn hand_on_channel(&mut self, channel: usize) {
        self.channels[channel].busy = false;
        let Some((next, time)) = self.channels[channel].line.serve() else { return };
        self.has_waited(next);
        if self.has_channel(next, time) {
            self.given.push_back(Given::GoOn(next));
        }
    }

    /// "channel `c` uses decoder `c mod engines`. With 0 every operation has a separate decoder"
    pub(crate) fn decoder_of(&self, channel: usize) -> usize {
        let engines = self.decoders.len();
        if self.is_broken(Rule::EachChannelHasItsDecoder) { 0 } else { channel % engines }
    }

    pub(crate) fn ask_decoder(&mut self, customer: usize, time: u64) -> bool {
        let Customer { class, channel, .. } = self.customers[customer];
        if self.decoders.is_empty() || self.is_broken(Rule::DecodersHaveALine) {
            return self.own(customer, Stage::Ecc, time);
        }
        let decoder = self.decoder_of(channel);
        if self.decoders[decoder].busy {
            self.decoders[decoder].line.join(class, (customer, Some(time)));
            self.waits(customer, Stage::Ecc);
            return false;
        }
        self.decode(customer, decoder, time);
        false
    }

    pub(crate) fn decode(&mut self, customer: usize, decoder: usize, time: u64) {
        self.decoders[decoder].busy = true;
        self.spend(customer, Stage::Ecc, time);
        self.ends_after(time, customer, Ending::Decoder);
    }

    pub(crate) fn hand_on_decoder(&mut self, channel: usize) {
        let decoder = self.decoder_of(channel);
        self.decoders[decoder].busy = false;
        let Some((next, time)) = self.decoders[decoder].line.serve() else { return };
        self.has_waited(next);
        self.decode(next, decoder, time.expect("nobody holds a decoder"));
    }

    // ------------------------------------------------------------ the controller

    /// "passed through in no time by operations of the host, unless a collection holds it"
    pub(crate) fn ask_controller(&mut self, customer: usize, holds: bool) -> bool {
        if self.controller.held {
            self.controller.line.join(self.customers[customer].class, (customer, holds));
            self.waits(customer, Stage::Queue);
            return false;
        }
        self.controller.held = holds;
        true
    }

    /// Who passes has it for no time, and that ends like any other.
    pub(crate) fn hand_on_controller(&mut self) -> bool {
        let next = self.controller.line.serve();
        self.controller.held = next.is_some();
        if let Some((next, holds)) = next {
            self.has_waited(next);
            match holds {
                true => self.given.push_back(Given::GoOn(next)),
                false => self.ends_after(0, next, Ending::Controller),
            }
        }
        true
    }
}
