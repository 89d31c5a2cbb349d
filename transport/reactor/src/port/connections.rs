//! Connections of a port: opened, joined to an association, closed.

use std::rc::Rc;

use nandscape_drive::mem::Dma;
use nandscape_drive::{BlockSizes, DriveInfo, HostIdentity, QueueId, TransportModel};
use nandscape_wire_nvme::Status;
use nandscape_wire_nvme::fabrics::offset;

use super::{Connection, ConnectionId, Port, Way};
use crate::access::Recorded;
use crate::asks::Asks;
use crate::association::{Association, ConnectQueue, ConnectRefusal};
use crate::doorbells::Doorbells;
use crate::host::{Commands, Host};
use crate::message_queue::{MessageQueue, Place};

impl Port {
    /// Connects to a drive.
    ///
    /// # Errors
    /// The drive's refusal, or Invalid Namespace when there is no such drive.
    pub fn open(&mut self, export: u16) -> Result<ConnectionId, Status> {
        let id = self.next_id();
        self.arrived(export, |recorder| recorder.open(id, export));
        let of = self.exports.get(usize::from(export)).ok_or(Status::INVALID_NAMESPACE)?;
        let drive = of.connect()?;
        let info = drive.info();
        let sizes = of.subsystem().map_or_else(|| Rc::new(BlockSizes::of(&info)), |subsystem| subsystem.block_sizes());
        let connection = Connection { export, info, sizes, way: Way::Drive(drive) };
        self.connections.insert(id, connection);
        Ok(id)
    }

    /// Connects to a drive for a client that uses the namespace of this description.
    pub(crate) fn open_namespace(&mut self, export: u16, info: DriveInfo) -> Result<ConnectionId, Status> {
        let id = self.open(export)?;
        self.connections.get_mut(&id).expect("it was just opened").info = info;
        Ok(id)
    }

    /// Connects a host with its own queues to a new controller. The arguments are the drive and the PCI function, the
    /// host's memory, and its number of interrupt vectors.
    ///
    /// # Errors
    /// The drive's refusal; Invalid Namespace when there is no such drive, or when it has no controllers.
    pub fn attach(
        &mut self,
        (export, function): (u16, u16),
        dma: Rc<dyn Dma>,
        vectors: u16,
        doorbells: Rc<dyn Doorbells>,
    ) -> Result<ConnectionId, Status> {
        let id = self.next_id();
        self.arrived(export, |recorder| recorder.attach(id, export, vectors, function));
        let subsystem = self.exports.get(usize::from(export)).and_then(|drive| drive.subsystem());
        let subsystem = subsystem.ok_or(Status::INVALID_NAMESPACE)?;
        let (info, sizes) = (subsystem.info(), subsystem.block_sizes());
        let asks = Rc::<Asks>::default();
        let (tape, outbox) = (self.tape.clone(), self.outbox_of(export).clone());
        let host = Rc::new(Host {
            dma: Rc::new(Recorded {
                dma,
                connection: id,
                tape: tape.clone(),
                asks: asks.clone(),
                outbox: outbox.clone(),
            }),
            tape,
            connection: id,
            export,
            sizes: sizes.clone(),
            vectors,
            doorbells,
            outbox,
            commands: Rc::new(Commands::default()),
            asks,
            came: Rc::default(),
        });
        let identity = HostIdentity { function: Some(function), ..HostIdentity::default() };
        let controller = subsystem.new_controller(identity, TransportModel::Memory)?;
        controller.attach(host.clone())?;
        self.connections.insert(id, Connection { export, info, sizes, way: Way::Controller { controller, host } });
        Ok(id)
    }

    /// Connects a queue of a host whose commands pass as messages: the admin queue to a new controller, another queue
    /// to the given controller. Also returns the Controller ID.
    ///
    /// # Errors
    /// The status of Connect.
    pub fn connect_queue(&mut self, ask: &ConnectQueue) -> Result<(ConnectionId, u16), ConnectRefusal> {
        let connection = self.next_id();
        self.arrived(ask.export, |recorder| recorder.connect_queue(connection, ask));
        let subsystem = self.exports.get(usize::from(ask.export)).and_then(|drive| drive.subsystem());
        let subsystem = subsystem.ok_or(ConnectRefusal::of_data(offset::SUBSYSTEM))?;
        let association = match ask.controller {
            None if ask.queue != QueueId::ADMIN => return Err(ConnectRefusal::of_data(offset::CONTROLLER)),
            None => {
                let controller = subsystem.new_controller(ask.host.clone(), TransportModel::Message)?;
                controller.set_keep_alive(ask.keep_alive_ms);
                Rc::new(Association { controller, host: ask.host.clone() })
            }
            Some(controller) => self.association(ask, controller)?,
        };
        let (info, controller) = (subsystem.info(), association.controller.id());
        let depth = association.depth(ask.entries)?;
        let sizes = subsystem.block_sizes();
        let place = Place { connection, export: ask.export, sizes: sizes.clone(), id: ask.queue };
        let queue = Rc::new(MessageQueue::new(place, depth, self.outbox_of(ask.export), &association.controller));
        association.create(&queue)?;
        association.controller.set_priority_class(ask.queue, ask.priority);
        let way = Way::Queue { queue, association };
        self.connections.insert(connection, Connection { export: ask.export, info, sizes, way });
        Ok((connection, controller))
    }

    /// The association that a queue is to join.
    fn association(&self, ask: &ConnectQueue, controller: u16) -> Result<Rc<Association>, ConnectRefusal> {
        let same = |open: &&Connection| open.export == ask.export;
        let queues = self.connections.values().filter(same).filter_map(|open| match &open.way {
            Way::Queue { queue, association } if association.controller.id() == controller => {
                Some((queue, association))
            }
            _ => None,
        });
        let mut queues = queues.peekable();
        let (_, association) = queues.peek().ok_or(ConnectRefusal::of_data(offset::CONTROLLER))?;
        let association = Rc::clone(association);
        association.check(&ask.host)?;
        match queues.any(|(queue, _)| queue.id == ask.queue) {
            true => Err(Status::COMMAND_SEQUENCE_ERROR.final_().into()),
            false => Ok(association),
        }
    }

    fn next_id(&mut self) -> ConnectionId {
        self.opened += 1;
        ConnectionId(self.opened - 1)
    }

    /// Closes a connection. Commands that have not completed are aborted.
    pub fn close(&mut self, connection: ConnectionId) {
        let export = self.export_of(connection);
        self.arrived(export, |recorder| recorder.close(connection));
        match self.connections.remove(&connection).map(|closed| closed.way) {
            Some(Way::Controller { controller, host }) => {
                controller.detach();
                host.asks.forget();
            }
            Some(Way::Queue { queue, association }) if queue.id == QueueId::ADMIN => {
                let of_it = self.connections.iter().filter(|(_, open)| {
                    matches!(&open.way, Way::Queue { association: other, .. } if Rc::ptr_eq(other, &association))
                });
                self.outbox_of(export).ended.borrow_mut().extend(of_it.map(|(id, _)| *id));
                association.controller.detach();
            }
            Some(Way::Queue { queue, association }) if !queue.is_deleted() => {
                // A reset may be deleting it.
                let _ = association.controller.delete_queue_pair(queue.id);
            }
            Some(Way::Drive(_) | Way::Queue { .. }) | None => {}
        }
    }
}
