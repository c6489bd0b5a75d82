//! The program in a folder of its own, and the thresholds file it reads.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

/// Far more than any test needs: a program that hangs fails its test rather than the whole run.
const LONGEST: Duration = Duration::from_secs(120);

/// A folder that the program runs in; nothing of it is left behind.
pub struct Folder(TempDir);

/// How a run ended and what it said.
#[derive(Debug)]
pub struct Ended {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Folder {
    pub fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary folder"))
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Writes a file; folders on the way are made.
    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path().join(name);
        let parent = path.parent().expect("inside the folder");
        fs::create_dir_all(parent).expect("a folder");
        fs::write(&path, text).expect("a file");
        path
    }

    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    pub fn json(&self, name: &str) -> Value {
        serde_json::from_str(&self.read(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// Every file below a folder whose name ends so; none where the folder is not there.
    pub fn files(&self, below: &str, end: &str) -> Vec<PathBuf> {
        let mut found = Vec::new();
        let mut folders = vec![self.path().join(below)];
        while let Some(folder) = folders.pop() {
            let Ok(entries) = fs::read_dir(folder) else {
                continue;
            };
            for entry in entries {
                let path = entry.expect("an entry").path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.to_string_lossy().ends_with(end) {
                    found.push(path);
                }
            }
        }
        found.sort();
        found
    }

    /// The program with these arguments, in this folder, free of the caller's variables.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_triton-gate"));
        command.args(arguments).current_dir(self.path());
        for (name, _) in std::env::vars() {
            if name.starts_with("TRITON") || name.starts_with("GITHUB") || name == "NO_COLOR" {
                command.env_remove(name);
            }
        }
        command
            .env("LC_ALL", "C.UTF-8")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Runs the program to its end.
    pub fn run(&self, arguments: &[&str]) -> Ended {
        self.start(arguments).wait()
    }

    /// Runs the program with further variables.
    pub fn run_with(&self, variables: &[(&str, &str)], arguments: &[&str]) -> Ended {
        let mut command = self.command(arguments);
        command.envs(variables.iter().copied());
        Program::start(command).wait()
    }

    /// Starts the program.
    pub fn start(&self, arguments: &[&str]) -> Program {
        Program::start(self.command(arguments))
    }
}

/// A program that runs.
pub struct Program {
    child: Child,
    stdout: Receiver<String>,
    lines: Receiver<String>,
    stderr: String,
    begun: Instant,
}

impl Program {
    pub fn start(mut command: Command) -> Self {
        let mut child = command.spawn().expect("the program starts");
        let mut output = child.stdout.take().expect("piped");
        let (send, stdout) = channel();
        std::thread::spawn(move || {
            let mut text = Vec::new();
            let _ = output.read_to_end(&mut text);
            let _ = send.send(String::from_utf8_lossy(&text).into_owned());
        });
        let errors = BufReader::new(child.stderr.take().expect("piped"));
        let (send, lines) = channel();
        std::thread::spawn(move || {
            for line in errors.split(b'\n').map_while(Result::ok) {
                let _ = send.send(String::from_utf8_lossy(&line).into_owned());
            }
        });
        Self {
            child,
            stdout,
            lines,
            stderr: String::new(),
            begun: Instant::now(),
        }
    }

    /// Waits until a line of standard error holds this text.
    pub fn wait_for(&mut self, text: &str) {
        loop {
            let left = LONGEST.saturating_sub(self.begun.elapsed());
            let Ok(line) = self.lines.recv_timeout(left) else {
                self.kill();
                panic!(
                    "the program ended or hung without {text:?}:\n{}",
                    self.stderr
                );
            };
            self.stderr.push_str(&line);
            self.stderr.push('\n');
            if line.contains(text) {
                return;
            }
        }
    }

    pub fn signal(&self, signal: Signal) {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, signal).expect("the program runs");
    }

    /// Waits for the end; a program that runs for too long is a failed test.
    pub fn wait(mut self) -> Ended {
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("a child of ours") {
                break status;
            }
            if self.begun.elapsed() > LONGEST {
                self.kill();
                let said: Vec<String> = self.lines.iter().collect();
                panic!("the program hung:\n{}{}", self.stderr, said.join("\n"));
            }
            std::thread::sleep(Duration::from_millis(10));
        };
        for line in &self.lines {
            self.stderr.push_str(&line);
            self.stderr.push('\n');
        }
        Ended {
            code: status.code(),
            stdout: self.stdout.recv().unwrap_or_default(),
            stderr: std::mem::take(&mut self.stderr),
        }
    }

    fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.kill();
    }
}

impl Ended {
    /// Checks the exit code; what was said is shown where it is another.
    #[track_caller]
    pub fn code(self, expected: i32) -> Self {
        assert_eq!(
            self.code,
            Some(expected),
            "\nstdout:\n{}\nstderr:\n{}",
            self.stdout,
            self.stderr
        );
        self
    }

    /// Checks that both streams together hold each of these texts.
    #[track_caller]
    pub fn says(self, texts: &[&str]) -> Self {
        for text in texts {
            assert!(
                self.stdout.contains(text) || self.stderr.contains(text),
                "{text:?} is missing\nstdout:\n{}\nstderr:\n{}",
                self.stdout,
                self.stderr
            );
        }
        self
    }

    /// The result on standard output.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("{error}:\n{}\n{}", self.stdout, self.stderr))
    }
}

/// A thresholds file of one scenario; values are written as TOML.
#[derive(Clone, Default)]
pub struct Thresholds {
    server: Vec<(String, String)>,
    gate: Vec<(String, String)>,
    measure: Vec<(String, String)>,
    scenario: Vec<(String, String)>,
}

impl Thresholds {
    /// A scenario of this name on this model.
    pub fn of(name: &str, model: &str) -> Self {
        Self::default()
            .scenario("name", &format!("{name:?}"))
            .scenario("model", &format!("{model:?}"))
    }

    #[must_use]
    pub fn server(mut self, key: &str, value: &str) -> Self {
        set(&mut self.server, key, value);
        self
    }

    #[must_use]
    pub fn gate(mut self, key: &str, value: &str) -> Self {
        set(&mut self.gate, key, value);
        self
    }

    #[must_use]
    pub fn measure(mut self, key: &str, value: &str) -> Self {
        set(&mut self.measure, key, value);
        self
    }

    #[must_use]
    pub fn scenario(mut self, key: &str, value: &str) -> Self {
        set(&mut self.scenario, key, value);
        self
    }

    pub fn text(&self) -> String {
        let mut text = "schema = 1\n[environment]\nname = \"test\"\n".to_owned();
        for (section, entries) in [
            ("[server]", &self.server),
            ("[gate]", &self.gate),
            ("[measure]", &self.measure),
            ("[[scenario]]", &self.scenario),
        ] {
            text.push_str(section);
            text.push('\n');
            for (key, value) in entries {
                text.push_str(&format!("{key} = {value}\n"));
            }
        }
        text
    }
}

fn set(entries: &mut Vec<(String, String)>, key: &str, value: &str) {
    entries.retain(|(known, _)| known != key);
    entries.push((key.to_owned(), value.to_owned()));
}
