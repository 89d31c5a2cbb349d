//! Messages from other threads: clients to be connected, orders, requests for figures, the end.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::TryRecvError;

use nandscape_sim::Executor;
use nandscape_sim::slots::Key;
use nandscape_wire_nvme::fabrics::CONTROLLER_BUSY;

use super::line::Request;
use super::{DRAIN_TIME, MESSAGES_A_TURN, Reactor};
use crate::association::{ConnectQueue, ConnectRefusal};
use crate::export::Export;
use crate::handle::{ExportFigures, Figures, Message, Refused, Reservation};
use crate::watch::{DriveLook, Look, Wants, Watch, Went};

impl Reactor {
    /// Reads some messages from other threads; returns whether there were any.
    pub(super) fn handle_messages(&mut self) -> bool {
        let heard = self.handle_some_messages();
        self.answer_figures();
        heard
    }

    fn handle_some_messages(&mut self) -> bool {
        for heard in 0..MESSAGES_A_TURN {
            match self.inbox.try_recv() {
                Ok(Message::Connect { export, nsid, make }) => match self.reserve(export, nsid) {
                    Ok((connection, _)) => self.start_client(connection, make),
                    Err(Refused::Ending) => {}
                    Err(refused) => (self.log)(&format!("a client was refused: {refused}")),
                },
                Ok(Message::Attach { export, make, reply }) => {
                    let answer = self.attach(export, make);
                    // The sender may have ended.
                    let _ = reply.send(answer);
                }
                Ok(Message::Reserve { export, nsid, reply }) => {
                    self.line.push_back(Request { export, nsid, reply, polls: self.polls, promised: false });
                }
                Ok(Message::ConnectQueue { ask, reply }) => {
                    let answer = self.connect_queue(&ask);
                    // The receiver returns a connection that it does not need.
                    let _ = reply.send(answer);
                }
                Ok(Message::Info { export, nsid, reply }) => {
                    // The sender may have ended.
                    let _ = reply.send(self.info(export, nsid));
                }
                Ok(Message::Namespaces { export, reply }) => {
                    let drive = self.port.exports().get(usize::from(export));
                    // The sender may have ended.
                    let _ = reply.send(drive.map_or_else(Vec::new, |drive| drive.namespaces()));
                }
                Ok(Message::Start { connection, make }) => self.start_client(connection, make),
                Ok(Message::Release(connection)) => {
                    if self.reserved.remove(&connection) {
                        self.port.close(connection);
                    }
                }
                Ok(Message::Order { export, order, reply }) => {
                    let answer = match self.stopping {
                        Some(_) => Err(Refused::Ending.to_string()),
                        None => self.port.order(export, &order),
                    };
                    // The sender may have ended.
                    let _ = reply.send(answer);
                }
                Ok(Message::Figures { not_before, reply }) => self.asked.push((not_before, reply)),
                Ok(Message::Look { wants, reply }) => {
                    // The sender may have ended.
                    let _ = reply.send(self.look(wants));
                }
                Ok(Message::LookAway) => self.look_away(),
                Ok(Message::Stop) => self.stop(),
                Err(TryRecvError::Empty | TryRecvError::Disconnected) => return heard > 0,
            }
        }
        true
    }

    /// From now on no input is read from clients.
    fn stop(&mut self) {
        self.stopping = self.stopping.or(Some(self.turn));
        self.sources.limit_patience(DRAIN_TIME);
        let keys: Vec<Key> = self.by_connection.values().copied().collect();
        for key in keys {
            // Data that it had sent before it hung up may not all have been read.
            if !self.leave_if_deserted(key) {
                self.watch(key);
            }
        }
    }

    /// Opens a connection to a queue for a client that will connect later.
    fn connect_queue(&mut self, ask: &ConnectQueue) -> Result<(Reservation, u16), ConnectRefusal> {
        if self.stopping.is_some() {
            return Err(CONTROLLER_BUSY.into());
        }
        let (connection, controller) = self.port.connect_queue(ask)?;
        self.reserved.insert(connection);
        let info = self.port.info(connection).expect("it was just opened");
        Ok((Reservation::new(self.handle.clone(), connection, info), controller))
    }

    /// Answers requests for figures. Copying figures takes long compared with a turn, so all receivers share one copy, and
    /// an old one if it is recent enough for all.
    fn answer_figures(&mut self) {
        let Some(not_before) = self.asked.iter().map(|(not_before, _)| *not_before).max() else { return };
        let (_, figures) = match self.answered.take() {
            Some(recent) if recent.0 >= not_before => self.answered.insert(recent),
            _ => {
                let figures = Arc::new(self.figures());
                self.answered.insert((self.clock.now(), figures))
            }
        };
        for (_, reply) in self.asked.drain(..) {
            // The receiver may have ended.
            let _ = reply.send(figures.clone());
        }
    }

    /// The events since the last look.
    fn look(&mut self, wants: Wants) -> Look {
        self.port.watch(true);
        let drives = self.port.exports();
        let sims: Vec<_> = self.timelines.executors().map(Executor::sim).collect();
        let watch = self.watch.get_or_insert_with(|| Watch::new(drives.len(), sims.len()));
        let of_drive = |((number, drive), [reads, writes]): ((usize, &Rc<dyn Export>), [Went; 2])| DriveLook {
            now: sims[number.min(sims.len() - 1)].now(),
            reads,
            writes,
            inside: drive.inside(wants.wear),
            layout: if wants.layout { drive.layout() } else { None },
        };
        let drives = drives.iter().enumerate().zip(watch.take_went()).map(of_drive).collect();
        let captures = if wants.operations { watch.capture(&sims) } else { Vec::new() };
        Look { drives, captures }
    }

    fn look_away(&mut self) {
        if self.watch.take().is_some() {
            self.port.watch(false);
            self.timelines.executors().for_each(|executor| executor.sim().trace().listen_no_more());
        }
    }

    pub(super) fn figures(&self) -> Figures {
        let counted = |(figures, export): (&ExportFigures, &Rc<dyn Export>)| {
            let (counters, parts, layers) = (export.counters(), export.parts(), export.layers());
            let (faults, settings) = (export.faults(), export.settings());
            let (read_only, absence) = (export.read_only(), export.absence());
            ExportFigures { counters, parts, layers, read_only, absence, faults, settings, ..figures.clone() }
        };
        Figures {
            now: self.turn,
            exports: self.figures.iter().zip(self.port.exports()).map(counted).collect(),
            timing: self.timing.clone(),
            clients: self.clients.len(),
            outstanding: self.port.outstanding(),
            recording_problem: self.recording_problem.clone(),
            flush_problem: self.flush_problem.clone(),
        }
    }
}
