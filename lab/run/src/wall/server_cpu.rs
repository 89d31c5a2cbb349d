//! The processor time of a drive's server, from its control socket: of the whole process, so of all its drives.
//!
//! Left out: servers on other machines, whose control sockets are not reached.

use std::cell::RefCell;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use nandscape_sim::Span;
use serde::Deserialize;

/// How long the server may take for an answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// See the module.
pub struct ServerCpu(RefCell<BufReader<UnixStream>>);

/// What is read of the statistics.
#[derive(Deserialize)]
struct Statistics {
    process_cpu_s: f64,
}

impl ServerCpu {
    /// Connects to a control socket, and asks once.
    ///
    /// # Errors
    /// Why it cannot be asked.
    pub fn connect(path: &Path) -> Result<ServerCpu, String> {
        let told = |error: io::Error| format!("{}: {error}", path.display());
        let stream = UnixStream::connect(path).map_err(told)?;
        stream.set_read_timeout(Some(PATIENCE)).map_err(told)?;
        stream.set_write_timeout(Some(PATIENCE)).map_err(told)?;
        let server = ServerCpu(RefCell::new(BufReader::new(stream)));
        server.spent().map_err(|problem| format!("{}: {problem}", path.display())).map(|_| server)
    }

    /// Processor time of the server so far.
    ///
    /// # Errors
    /// Why the server does not report it.
    pub fn spent(&self) -> Result<Span, String> {
        let mut line = String::new();
        let mut reader = self.0.borrow_mut();
        let asked = reader.get_mut().write_all(b"{\"command\":\"statistics\"}\n");
        asked.and_then(|()| reader.read_line(&mut line)).map_err(|error| error.to_string())?;
        let answer: Statistics = serde_json::from_str(&line)
            .map_err(|error| format!("the server's statistics have no process_cpu_s: {error}"))?;
        Ok(Span::from_ns((answer.process_cpu_s.max(0.0) * 1e9) as u64))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    /// A server that answers each line with the next of these, and then ends.
    fn asked(answers: &'static [&'static str]) -> Result<ServerCpu, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("control");
        let listener = UnixListener::bind(&path).unwrap();
        std::thread::spawn(move || {
            let (stream, _) = listener.accept().unwrap();
            let mut reader = BufReader::new(&stream);
            for answer in answers {
                reader.read_line(&mut String::new()).unwrap();
                (&stream).write_all(answer.as_bytes()).unwrap();
            }
        });
        ServerCpu::connect(&path)
    }

    #[test]
    fn the_server_tells_its_time_and_other_answers_are_told() {
        let server = asked(&["{\"process_cpu_s\":1.5,\"drives\":[]}\n", "{\"process_cpu_s\":1.75}\n"]).unwrap();
        assert_eq!(server.spent().unwrap(), Span::from_ms(1_750));
        assert!(server.spent().is_err(), "it has ended");
        for answer in [&["{\"error\":\"no\"}\n"][..], &["rubbish\n"], &[]] {
            let problem = asked(answer).err().unwrap();
            assert!(problem.contains("control: "), "{problem}");
        }
        assert!(ServerCpu::connect(Path::new("/nothing/here")).is_err());
    }
}
