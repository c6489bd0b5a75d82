//! A server that the gate itself starts, awaits, and stops.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long a server may take to end after SIGTERM before it is killed.
const GRACE: Duration = Duration::from_secs(30);
/// How long the last output of a server that ended is awaited.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// Lines of the server's output that are kept for an error message.
const KEPT_LINES: usize = 20;

/// A running server, in a process group of its own; stopped when dropped.
#[derive(Debug)]
pub struct Launched {
    child: Child,
    program: String,
    /// What ends it in place of a signal; empty for none.
    stop: Vec<String>,
    output: Arc<Mutex<VecDeque<String>>>,
    readers: Vec<JoinHandle<()>>,
}

/// Why a launched server is of no use.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// The command could not be started at all.
    #[error("failed to start {program:?} ([server] launch): {source}")]
    Start {
        /// The program.
        program: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// No command was given.
    #[error("[server] launch is empty: expected a program and its arguments")]
    Empty,
    /// The `stop` command failed.
    #[error("the stop command {program:?} failed: {why}; the server may still run")]
    Stop {
        /// The program.
        program: String,
        /// How it ended, or why it could not be started.
        why: String,
    },
    /// It ended before it was ready.
    #[error(
        "{program:?} ([server] launch) ended with {status} before it was ready; its last output:\n{output}"
    )]
    Ended {
        /// The program.
        program: String,
        /// How it ended.
        status: ExitStatus,
        /// The last lines of its output.
        output: String,
    },
}

impl Launched {
    /// Starts the command; `stop` is the command that ends the server in place of a signal, for one
    /// that outlives what was started (a container). Empty for none.
    pub fn start(command: &[String], stop: &[String]) -> Result<Self, LaunchError> {
        let (program, arguments) = command.split_first().ok_or(LaunchError::Empty)?;
        let mut process = Command::new(program);
        process
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        #[cfg(unix)]
        {
            use std::os::unix::process::CommandExt;
            // Its own group: Ctrl-C reaches the gate first, which stops the server in order;
            // and helpers that the server starts are stopped with it.
            process.process_group(0);
        }
        let mut child = process.spawn().map_err(|source| LaunchError::Start {
            program: program.clone(),
            source,
        })?;
        let output = Arc::new(Mutex::new(VecDeque::new()));
        let mut readers = Vec::new();
        if let Some(stream) = child.stdout.take() {
            readers.push(keep_last_lines(stream, Arc::clone(&output)));
        }
        if let Some(stream) = child.stderr.take() {
            readers.push(keep_last_lines(stream, Arc::clone(&output)));
        }
        Ok(Self {
            child,
            program: program.clone(),
            stop: stop.to_vec(),
            output,
            readers,
        })
    }

    /// Fails if the server has ended. A command that started a server elsewhere (`docker run -d`)
    /// ends well and at once, and is told apart by its `stop`.
    pub fn check_running(&mut self) -> Result<(), LaunchError> {
        match self.child.try_wait() {
            Ok(Some(status)) if status.success() && !self.stop.is_empty() => Ok(()),
            Ok(Some(status)) => Err(LaunchError::Ended {
                program: self.program.clone(),
                status,
                output: self.last_words(),
            }),
            _ => Ok(()),
        }
    }

    /// Runs the `stop` command, once.
    fn run_stop(&mut self) -> Result<(), LaunchError> {
        let command = std::mem::take(&mut self.stop);
        let Some((program, arguments)) = command.split_first() else {
            return Ok(());
        };
        let ended = Command::new(program)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .status();
        let why = match ended {
            Ok(status) if status.success() => return Ok(()),
            Ok(status) => status.to_string(),
            Err(error) => error.to_string(),
        };
        Err(LaunchError::Stop {
            program: program.clone(),
            why,
        })
    }

    /// Its output once it has ended: the last lines are still on their way then. Something that it
    /// started may keep the streams open, so that the wait is short.
    fn last_words(&self) -> String {
        let deadline = Instant::now() + LAST_WORDS;
        while Instant::now() < deadline && !self.readers.iter().all(JoinHandle::is_finished) {
            std::thread::sleep(Duration::from_millis(5));
        }
        self.last_output()
    }

    fn last_output(&self) -> String {
        let lines = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        let lines: Vec<String> = lines.iter().map(|line| format!("  {line}")).collect();
        lines.join("\n")
    }

    /// Ends the server: the `stop` command where there is one, then SIGTERM to its group, SIGKILL after a grace.
    ///
    /// The process that was started ends in any case; an error says that the `stop` command
    /// failed.
    pub fn stop(mut self) -> Result<(), LaunchError> {
        let stopped = self.run_stop();
        self.end();
        stopped
    }

    fn end(&mut self) {
        if matches!(self.child.try_wait(), Ok(Some(_))) {
            return;
        }
        #[cfg(unix)]
        {
            use rustix::process::{Pid, Signal, kill_process_group};
            let group = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
            if let Some(group) = group {
                let _ = kill_process_group(group, Signal::TERM);
                let deadline = Instant::now() + GRACE;
                while Instant::now() < deadline {
                    if matches!(self.child.try_wait(), Ok(Some(_))) {
                        return;
                    }
                    std::thread::sleep(Duration::from_millis(20));
                }
                let _ = kill_process_group(group, Signal::KILL);
            }
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Launched {
    fn drop(&mut self) {
        // Nobody is left to be told.
        let _ = self.run_stop();
        self.end();
    }
}

/// Reads a stream to its end, so that the server never blocks on a full pipe, and keeps its tail.
fn keep_last_lines(
    stream: impl Read + Send + 'static,
    kept: Arc<Mutex<VecDeque<String>>>,
) -> JoinHandle<()> {
    std::thread::spawn(move || {
        let mut reader = BufReader::new(stream);
        let mut line = Vec::new();
        loop {
            line.clear();
            // A line without end must not fill the memory.
            match reader.by_ref().take(8192).read_until(b'\n', &mut line) {
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            }
            let text: String = String::from_utf8_lossy(&line)
                .trim_end()
                .chars()
                .filter(|c| !c.is_control())
                .take(300)
                .collect();
            let mut lines = kept.lock().unwrap_or_else(PoisonError::into_inner);
            if lines.len() == KEPT_LINES {
                lines.pop_front();
            }
            lines.push_back(text);
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn a_missing_program_and_an_empty_command_are_said() {
        let error = Launched::start(&words("/nonexistent/tritonserver"), &[]).expect_err("missing");
        assert!(
            error.to_string().contains("/nonexistent/tritonserver"),
            "{error}"
        );
        assert!(matches!(Launched::start(&[], &[]), Err(LaunchError::Empty)));
    }

    #[test]
    fn an_early_end_is_told_with_its_last_words() {
        let command = ["sh", "-c", "echo no models >&2; exit 7"].map(str::to_owned);
        let mut server = Launched::start(&command, &[]).expect("started");
        let deadline = Instant::now() + Duration::from_secs(20);
        let error = loop {
            if let Err(error) = server.check_running() {
                break error;
            }
            assert!(Instant::now() < deadline, "never told");
            std::thread::sleep(Duration::from_millis(5));
        };
        assert!(error.to_string().contains("exit status: 7"), "{error}");
        assert!(error.to_string().contains("no models"), "{error}");
    }

    #[test]
    fn stopping_ends_the_whole_group() {
        let command = ["sh", "-c", "sleep 600 & echo $!; wait"].map(str::to_owned);
        let server = Launched::start(&command, &[]).expect("started");
        let deadline = Instant::now() + Duration::from_secs(20);
        let sleeper = loop {
            let text = server.last_output();
            if let Ok(pid) = text.trim().parse::<i32>() {
                break pid;
            }
            assert!(Instant::now() < deadline, "never told its child");
            std::thread::sleep(Duration::from_millis(5));
        };
        server.stop().expect("no stop command");
        let pid = rustix::process::Pid::from_raw(sleeper).expect("a process id");
        while rustix::process::test_kill_process(pid).is_ok() {
            // A zombie until init reaps it; gone at last.
            let state = std::fs::read_to_string(format!("/proc/{sleeper}/stat"));
            if state.is_ok_and(|state| state.contains(") Z ")) {
                break;
            }
            assert!(
                Instant::now() < deadline,
                "the child of the server lives on"
            );
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}
