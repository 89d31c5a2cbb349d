//! A process that measures points, such as the client of a cluster. It reads a line of JSON for each point, `{"task": 0, "inputs":
//! {...}}`, to the end of its input, and prints one for each result in any order: `{"task": 0, "stored": "..."}` with the text of a
//! point's file, or `{"task": 0, "problem": "..."}`. Its messages go where those of this process go.

use std::io::{BufRead as _, BufReader, Write as _};
use std::ops::ControlFlow;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use serde::{Deserialize, Serialize};

use crate::point::Inputs;
use crate::runner::{Event, Runner, Stopper};
use crate::stored::Stored;

/// See the file.
pub struct Process {
    command: Command,
    tell: Sender<Message>,
    told: Receiver<Message>,
}

enum Message {
    Line(String),
    /// The output has ended.
    Ended,
    Stop,
}

#[derive(Serialize)]
struct Task<'a> {
    task: usize,
    inputs: &'a Inputs,
}

#[derive(Deserialize)]
struct Answer {
    task: usize,
    stored: Option<String>,
    problem: Option<String>,
}

impl Process {
    /// A process of this command.
    pub fn new(command: Command) -> Process {
        let (tell, told) = channel();
        Process { command, tell, told }
    }

    /// What ends its runs.
    pub fn stopper(&self) -> Stopper {
        let tell = self.tell.clone();
        Stopper::new(move || drop(tell.send(Message::Stop)))
    }

    /// The program, for messages.
    fn name(&self) -> String {
        self.command.get_program().to_string_lossy().into_owned()
    }

    fn hear(
        &self,
        tasks: &[Inputs],
        heard: &mut dyn FnMut(Event) -> ControlFlow<()>,
        child: &mut Child,
    ) -> Result<(), String> {
        let mut done = vec![false; tasks.len()];
        while done.contains(&false) {
            let event = match self.told.recv().expect("this runner holds a sender itself") {
                Message::Stop => Event::Stop,
                Message::Ended => {
                    let status = child.wait().map_err(|error| format!("{}: {error}", self.name()))?;
                    let left = done.iter().filter(|is_done| !**is_done).count();
                    let name = self.name();
                    return Err(format!("{name} ended with {left} points missing ({status}); its message is above"));
                }
                Message::Line(line) => self.answer(&line, tasks, &mut done)?,
            };
            if heard(event).is_break() {
                return Ok(());
            }
        }
        Ok(())
    }

    /// The result of a line. A point counts once.
    fn answer(&self, line: &str, tasks: &[Inputs], done: &mut [bool]) -> Result<Event, String> {
        let wrong = |why: String| format!("{} printed a line that is no result ({why}): {line}", self.name());
        let answer: Answer = serde_json::from_str(line).map_err(|error| wrong(error.to_string()))?;
        let Answer { task, stored, problem } = answer;
        match done.get_mut(task) {
            Some(is_done) if !*is_done => *is_done = true,
            Some(_) => return Err(wrong("the point has one already".to_owned())),
            None => return Err(wrong(format!("tasks 0 to {} are valid", done.len() - 1))),
        }
        let result = match (&stored, problem) {
            (Some(text), None) => Ok(text.as_str()),
            (None, Some(problem)) => Err(problem),
            _ => return Err(wrong("it has either `stored` or `problem`".to_owned())),
        };
        Ok(Event::Done { task, result: Box::new(Stored::received(result, &tasks[task])) })
    }
}

impl Runner for Process {
    fn run(&mut self, tasks: Vec<Inputs>, heard: &mut dyn FnMut(Event) -> ControlFlow<()>) -> Result<(), String> {
        if tasks.is_empty() {
            return Ok(());
        }
        let name = self.name();
        self.command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = self.command.spawn().map_err(|error| format!("cannot start {name}: {error}"))?;
        let (input, output) = (child.stdin.take().expect("piped"), child.stdout.take().expect("piped"));
        let lines = tasks
            .iter()
            .enumerate()
            .map(|(task, inputs)| serde_json::to_string(&Task { task, inputs }).expect("plain data") + "\n");
        let lines: Vec<String> = lines.collect();
        let tell = self.tell.clone();
        let threads = [
            thread::Builder::new().name("process-input".to_owned()).spawn(move || write(input, &lines)),
            thread::Builder::new().name("process-output".to_owned()).spawn(move || read(output, &tell)),
        ];
        let ended = match threads.into_iter().find_map(Result::err) {
            None => self.hear(&tasks, heard, &mut child),
            Some(error) => Err(format!("cannot start a thread: {error}")),
        };
        // A process that has ended needs no end.
        let _ = child.kill();
        let _ = child.wait();
        ended
    }
}

/// Ignores errors: a process that stops reading is reported by its own message.
fn write(mut input: ChildStdin, lines: &[String]) {
    let _ = lines.iter().try_for_each(|line| input.write_all(line.as_bytes()));
}

/// Stops once the run has ended, and no receiver is left.
fn read(output: ChildStdout, tell: &Sender<Message>) {
    for line in BufReader::new(output).lines() {
        let Ok(line) = line else { break };
        if tell.send(Message::Line(line)).is_err() {
            return;
        }
    }
    let _ = tell.send(Message::Ended);
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use crate::{Sweep, Value};

    fn tasks() -> Vec<Inputs> {
        let mut sweep = Sweep::new("s");
        sweep.set = vec![("rw".into(), Value::parse("randread")), ("capacity".into(), Value::parse("64MiB"))];
        sweep.set("io_count", Value::parse("100"));
        sweep.seeds = vec![1, 2];
        sweep.plan().unwrap().points.into_iter().map(|point| point.inputs.unwrap()).collect()
    }

    fn shell(script: &str) -> Process {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        Process::new(command)
    }

    /// How a run ended, and its results by task.
    type Ended = (Result<(), String>, Vec<(usize, Result<Stored, String>)>);

    fn run(mut process: Process) -> Ended {
        let mut results = Vec::new();
        let ended = process.run(tasks(), &mut |event| {
            if let Event::Done { task, result } = event {
                results.push((task, *result));
            }
            ControlFlow::Continue(())
        });
        (ended, results)
    }

    #[test]
    fn results_are_taken_as_they_come() {
        let stored = tasks()[1].measure(|_| ()).unwrap();
        let line = serde_json::json!({ "task": 1, "stored": stored.to_json() });
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), format!("{line}\n{{\"task\":0,\"problem\":\"broken\"}}\n")).unwrap();
        let (ended, results) = run(shell(&format!("cat > /dev/null; cat {}", file.path().display())));
        assert_eq!((ended, results), (Ok(()), vec![(1, Ok(stored)), (0, Err("broken".to_owned()))]));
    }

    #[test]
    fn a_result_of_another_point_is_no_result() {
        let stored = tasks()[1].measure(|_| ()).unwrap();
        let wrong = Stored::received(Ok(&stored.to_json()), &tasks()[0]).unwrap_err();
        assert!(wrong.contains("is of another point or program") && wrong.contains("same version"), "{wrong}");
    }

    #[test]
    fn what_goes_wrong_is_told() {
        let told = |script: &str| run(shell(script)).0.unwrap_err();
        let two = "printf '{\"task\":0,\"problem\":\"b\"}\\n{\"task\":0,\"problem\":\"b\"}\\n'";
        assert!(told("exit 3").contains("2 points missing (exit status: 3)"), "{}", told("exit 3"));
        assert!(told("echo hello").contains("no result"), "{}", told("echo hello"));
        assert!(told(two).contains("the point has one already"), "{}", told(two));
        assert!(told("echo '{\"task\":7}'").contains("0 to 1 are valid"));
        assert!(told("echo '{\"task\":0}'").contains("either"));
        let (ended, _) = run(Process::new(Command::new("no-such-program-of-this-test")));
        assert!(ended.unwrap_err().starts_with("cannot start no-such-program-of-this-test"));
    }

    #[test]
    fn a_stop_ends_a_process_that_says_nothing() {
        let mut process = shell("exec sleep 600");
        process.stopper().stop();
        let ended = process.run(tasks(), &mut |event| match event {
            Event::Stop => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        });
        assert_eq!(ended, Ok(()));
    }
}
