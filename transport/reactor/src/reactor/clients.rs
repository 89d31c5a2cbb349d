//! Clients of the loop: connected, served, watched, disconnected.

use nandscape_sim::slots::Key;
use nandscape_wire_nvme::Status;

use super::{Connected, DEADLINES_EVERY, INVITED_A_TURN, Reactor};
use crate::client::{Client, Deadline, Gone, Intake, Interest};
use crate::handle::{MakeClient, MakeHost, NewHost, Refused};
use crate::port::ConnectionId;

impl Reactor {
    /// Serves some of the clients that wait for memory, first come, first served.
    pub(super) fn serve_waiting(&mut self) -> bool {
        let mut came = false;
        for _ in 0..INVITED_A_TURN {
            let Some(client) = self.pool.invite() else { break };
            if let Some(&key) = self.by_connection.get(&client) {
                came |= self.serve_client(key);
            }
        }
        came
    }

    pub(super) fn serve_client(&mut self, key: Key) -> bool {
        let Some(connected) = self.clients.get_mut(key) else { return false };
        let mut intake = Intake::new(&mut self.port, connected.connection);
        let result = connected.client.receive_arrivals(&mut intake);
        // Requests that need no drive are answered at once, and the socket may have become writable.
        let result = result.and_then(|came| connected.client.flush().map(|()| came));
        match result {
            Ok(came) => {
                self.watch(key);
                came
            }
            Err(gone) => {
                self.disconnect(key, &gone);
                true
            }
        }
    }

    /// Updates the events for which a client's socket is watched.
    pub(super) fn watch(&mut self, key: Key) {
        let Some(connected) = self.clients.get_mut(key) else { return };
        if connected.client.has_more() {
            self.events.ready.push(key.to_bits());
        }
        let Interest { read, write } = connected.client.interest();
        // After a stop, nothing more is read.
        let interest = Interest { read: read && self.stopping.is_none(), write };
        if interest == connected.watched {
            return;
        }
        connected.watched = interest;
        if let Some(socket) = connected.client.socket()
            && let Err(error) = self.waiter.change(socket, key.to_bits(), interest)
        {
            self.lost.push((key, Gone::because(error.to_string())));
        }
    }

    /// Gives a connection its client, unless the loop has ended.
    pub(super) fn start_client(&mut self, connection: ConnectionId, make: MakeClient) {
        if self.stopping.is_some() || !self.reserved.remove(&connection) {
            return;
        }
        let Some(info) = self.port.info(connection) else { return };
        let client = make(info, self.pool.share(connection));
        self.admit(connection, client);
    }

    /// Connects a host with its own queues.
    pub(super) fn attach(&mut self, export: u16, make: MakeHost) -> Result<(), Refused> {
        if self.stopping.is_some() {
            return Err(Refused::Ending);
        }
        let drive = self.port.exports().get(usize::from(export));
        let info = drive.ok_or(Refused::Drive(Status::INVALID_NAMESPACE))?.info();
        let NewHost { client, memory, vectors, function, doorbells } = make(info);
        let connection = self.port.attach((export, function), memory, vectors, doorbells);
        let connection = connection.map_err(Refused::Drive)?;
        self.admit(connection, client);
        Ok(())
    }

    /// Serves a client from now on.
    fn admit(&mut self, connection: ConnectionId, client: Box<dyn Client>) {
        let watched = client.interest();
        let key = self.clients.insert(Connected { connection, client, watched });
        self.by_connection.insert(connection, key);
        let connected = self.clients.get_mut(key).expect("just inserted");
        if connected.client.is_polled() {
            self.polled.push(key);
        }
        // It may have a deadline as soon as it was served.
        self.check_at.get_or_insert(self.begun + DEADLINES_EVERY);
        let socket = connected.client.socket().map(|socket| (socket, watched));
        let others = connected.client.descriptors().into_iter().map(|fd| (fd, Interest { read: true, write: false }));
        let result = socket.into_iter().chain(others).try_for_each(|(fd, interest)| {
            // Bytes may have arrived before it was watched.
            self.events.ready.push(key.to_bits());
            self.waiter.add(fd, key.to_bits(), interest)
        });
        if let Err(error) = result {
            self.disconnect(key, &Gone::because(error.to_string()));
        }
    }

    /// After a stop, disconnects a client whose peer has hung up. Returns whether it had.
    pub(super) fn leave_if_deserted(&mut self, key: Key) -> bool {
        let is_deserted = self.clients.get_mut(key).is_some_and(|connected| connected.client.is_deserted());
        if is_deserted {
            self.disconnect(key, &Gone::because("hung up"));
        }
        is_deserted
    }

    pub(super) fn disconnect(&mut self, key: Key, gone: &Gone) {
        let Some(connected) = self.clients.remove(key) else { return };
        let descriptors = connected.client.socket().into_iter().chain(connected.client.descriptors());
        descriptors.for_each(|descriptor| self.waiter.remove(descriptor));
        self.polled.retain(|polled| *polled != key);
        self.by_connection.remove(&connected.connection);
        self.port.close(connected.connection);
        if let Some(reason) = &gone.reason {
            (self.log)(&format!("client {}: {reason}", connected.connection.0));
        }
        drop(connected);
        self.disconnect_ended();
    }

    /// Disconnects clients whose connections the model has ended.
    pub(super) fn disconnect_ended(&mut self) {
        self.port.take_ended(&mut self.ended);
        while let Some(connection) = self.ended.pop() {
            match self.by_connection.get(&connection) {
                Some(&key) => self.disconnect(key, &Gone::quietly()),
                // Its client is not connected yet, and will find that it is too late.
                None if self.reserved.remove(&connection) => self.port.close(connection),
                None => {}
            }
        }
    }

    /// Disconnects clients whose deadline has passed.
    pub(super) fn check_deadlines(&mut self) {
        let deadlines = self.by_connection.values().filter_map(|key| {
            let deadline = self.clients.get(*key)?.client.deadline()?;
            Some((*key, deadline))
        });
        let deadlines: Vec<(Key, Deadline)> = deadlines.collect();
        self.check_at = (!deadlines.is_empty()).then(|| self.begun + DEADLINES_EVERY);
        let passed = deadlines.into_iter().filter(|(_, deadline)| deadline.at <= self.begun);
        self.lost.extend(passed.map(|(key, deadline)| (key, Gone::because(deadline.reason))));
    }
}
