//! Detects TCP clients that have vanished without closing: such a client would keep its queue pair
//! forever.

use std::io;
use std::time::Duration;

use crate::socket::Stream;
use rustix::net::sockopt;

/// Silence after which the system probes a client.
const SILENCE: Duration = Duration::from_secs(60);
/// Between two such questions.
const INTERVAL: Duration = Duration::from_secs(10);
/// Unanswered probes after which the client is disconnected.
const QUESTIONS: u32 = 6;
/// How long a client may leave sent data without acknowledgement.
const UNACKNOWLEDGED: Duration = Duration::from_secs(120);

/// Makes the system watch over a TCP connection. A unix socket's other end cannot vanish.
///
/// # Errors
/// When the system does not take it.
pub fn keep_alive(stream: &Stream) -> io::Result<()> {
    let Stream::Tcp(stream) = stream else { return Ok(()) };
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, SILENCE)?;
    sockopt::set_tcp_keepintvl(stream, INTERVAL)?;
    sockopt::set_tcp_keepcnt(stream, QUESTIONS)?;
    Ok(sockopt::set_tcp_user_timeout(stream, UNACKNOWLEDGED.as_millis() as u32)?)
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn a_tcp_connection_is_watched_over() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let _client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let stream = listener.accept().unwrap().0;
        keep_alive(&Stream::Tcp(stream.try_clone().unwrap())).unwrap();
        assert!(sockopt::socket_keepalive(&stream).unwrap());
        assert_eq!(sockopt::tcp_keepidle(&stream).unwrap(), SILENCE);
        assert_eq!(sockopt::tcp_user_timeout(&stream).unwrap(), 120_000);
    }
}
