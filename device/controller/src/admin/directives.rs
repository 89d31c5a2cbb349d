//! Directive Receive and Directive Send (Base 5.1.6, 5.1.7, 8.1.8): the Identify and the Streams directive.
//!
//! With Flexible Data Placement, the Data Placement directive is always enabled; a host cannot change that. Streams are
//! disabled until a host enables them in a namespace. They end with the host's last enabled controller.

use nandscape_wire_nvme::directive::{self, Directives};
use nandscape_wire_nvme::{Parameter, Status, SubmissionEntry};
use zerocopy::IntoBytes;

use super::Answer;
use crate::command_set::nvm::streams::{Streams, User};
use crate::engine::NvmeController;
use crate::namespace::{MAX_NAMESPACES, Registrant};
use crate::refusal::Refusal;

/// All namespaces.
const ALL: u32 = u32::MAX;

/// Directive Operation, Directive Type, and Directive Type of Enable Directive.
const OPERATION: Refusal = Refusal::field(11, 0);
const TYPE: Refusal = Refusal::field(11, 8);
const TARGET: Refusal = Refusal::field(12, 8);

impl NvmeController {
    /// Whether the drive has directives.
    pub(super) fn has_directives(&self) -> bool {
        self.has_placement() || self.subsystem.set.streams().is_some()
    }

    pub(super) fn directive_receive(&self, entry: &SubmissionEntry) -> Result<Answer, Refusal> {
        let answer = |data: &[u8], size: usize| {
            let bytes = directive::bytes(entry);
            if bytes > self.subsystem.config.max_transfer.into() {
                return Err(Refusal::field(10, 0));
            }
            let mut data = data.to_vec();
            data.resize(size.max(data.len()), 0);
            Ok(Answer::padded(data, bytes as usize))
        };
        match directive::kind(entry) {
            directive::IDENTIFY if self.has_directives() => match directive::operation(entry) {
                directive::RETURN_PARAMETERS => answer(self.directives(entry)?.as_bytes(), directive::DIRECTIVES_BYTES),
                _ => Err(OPERATION),
            },
            directive::STREAMS => {
                let (streams, user) = self.streams_of(entry)?;
                match directive::operation(entry) {
                    directive::RETURN_PARAMETERS => {
                        let lba_bytes =
                            self.namespaces.get(entry.nsid.get()).map_or(1, |namespace| namespace.lba_bytes);
                        answer(streams.parameters(user, lba_bytes).as_bytes(), 0)
                    }
                    directive::GET_STATUS => answer(&status(&streams.identifiers(user)), 0),
                    directive::ALLOCATE_RESOURCES => {
                        let wanted = entry.cdw12.get() as u16;
                        Ok(Answer::value(streams.allocate(user.ok_or(NAMESPACE)?, wanted)?.into()))
                    }
                    _ => Err(OPERATION),
                }
            }
            _ if self.has_directives() => Err(TYPE),
            _ => Err(Status::INVALID_OPCODE.into()),
        }
    }

    pub(super) fn directive_send(&self, entry: &SubmissionEntry) -> Result<Answer, Refusal> {
        match directive::kind(entry) {
            directive::IDENTIFY if self.has_directives() => match directive::operation(entry) {
                directive::ENABLE => self.enable_directive(entry)?,
                _ => return Err(OPERATION),
            },
            directive::STREAMS => {
                let (streams, user) = self.streams_of(entry)?;
                let user = user.ok_or(NAMESPACE)?;
                match directive::operation(entry) {
                    directive::RELEASE_IDENTIFIER => {
                        let released = directive::specific(entry);
                        streams.close(|each, identifier| *each == user && identifier == released);
                    }
                    directive::RELEASE_RESOURCES => streams.release_resources(|each| *each == user),
                    _ => return Err(OPERATION),
                }
            }
            _ if self.has_directives() => return Err(TYPE),
            _ => return Err(Status::INVALID_OPCODE.into()),
        }
        Ok(Answer::default())
    }

    /// The data of Return Parameters of the Identify directive.
    fn directives(&self, entry: &SubmissionEntry) -> Result<Directives, Refusal> {
        let nsid = entry.nsid.get();
        self.check_directed(nsid)?;
        let mut all = Directives::zeroed();
        (all.supported[0], all.enabled[0]) = (1 << directive::IDENTIFY, 1 << directive::IDENTIFY);
        if self.has_placement() {
            let placement = 1 << directive::PLACEMENT;
            (all.supported[0], all.enabled[0]) = (all.supported[0] | placement, all.enabled[0] | placement);
            all.persistent[0] = placement;
        }
        if let Some(streams) = self.subsystem.set.streams() {
            all.supported[0] |= 1 << directive::STREAMS;
            all.enabled[0] |= u8::from(streams.is_enabled((self.registrant(), nsid))) << directive::STREAMS;
        }
        Ok(all)
    }

    /// Enable Directive.
    fn enable_directive(&self, entry: &SubmissionEntry) -> Result<(), Refusal> {
        let (nsid, enables) = (entry.nsid.get(), entry.cdw12.get() & 1 != 0);
        match (entry.cdw12.get() >> 8) as u8 {
            directive::STREAMS => {
                let streams = self.subsystem.set.streams().ok_or(TARGET)?;
                self.users(nsid)?.into_iter().for_each(|user| streams.enable(user, enables));
                Ok(())
            }
            directive::PLACEMENT if self.has_placement() => {
                if nsid == ALL {
                    return Err(Refusal::of(Status::INVALID_NAMESPACE, Parameter::NSID));
                }
                self.check_directed(nsid)?;
                if enables { Ok(()) } else { Err(Refusal::field(12, 0)) }
            }
            _ => Err(TARGET),
        }
    }

    /// The host in one namespace, or in each of its namespaces.
    fn users(&self, nsid: u32) -> Result<Vec<User>, Refusal> {
        if nsid != ALL {
            self.check_directed(nsid)?;
            return Ok(vec![(self.registrant(), nsid)]);
        }
        let of = |host: Registrant, above: Vec<u32>| above.into_iter().map(move |nsid| (host, nsid));
        let all = self.subsystem.all_controllers();
        Ok(all.iter().flat_map(|each| of(each.registrant(), each.namespaces.above(0))).collect())
    }

    /// The streams, and the host in the namespace that a command of the directive names, `None` for all namespaces.
    fn streams_of(&self, entry: &SubmissionEntry) -> Result<(&Streams, Option<User>), Refusal> {
        let no_type = || if self.has_directives() { TYPE } else { Status::INVALID_OPCODE.into() };
        let streams = self.subsystem.set.streams().ok_or_else(no_type)?;
        let nsid = entry.nsid.get();
        if nsid == ALL {
            return Ok((streams, None));
        }
        self.check_directed(nsid)?;
        let user = (self.registrant(), nsid);
        if streams.is_enabled(user) { Ok((streams, Some(user))) } else { Err(TYPE) }
    }

    fn check_directed(&self, nsid: u32) -> Result<(), Refusal> {
        match nsid {
            _ if self.namespaces.get(nsid).is_some() => Ok(()),
            1..=MAX_NAMESPACES | ALL => Err(NAMESPACE),
            _ => Err(Refusal::of(Status::INVALID_NAMESPACE, Parameter::NSID)),
        }
    }
}

/// A namespace that the command cannot name.
const NAMESPACE: Refusal = Refusal::of(Status::INVALID_FIELD, Parameter::NSID);

/// Get Status: the number of open streams and their identifiers.
fn status(identifiers: &[u16]) -> Vec<u8> {
    std::iter::once(identifiers.len() as u16).chain(identifiers.iter().copied()).flat_map(u16::to_le_bytes).collect()
}
