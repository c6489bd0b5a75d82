//! What goes to the terminal: data to standard output, everything else to standard error.

use std::io::{self, IsTerminal, Write};

use super::args::ColorChoice;
use super::failure::Failure;

/// How much is said and how.
#[derive(Debug, Clone, Copy)]
pub struct Terminal {
    /// Only the verdict and errors.
    pub quiet: bool,
    color: ColorChoice,
}

#[expect(
    clippy::unused_self,
    reason = "all output goes through one value, whether or not a flag bears on it"
)]
impl Terminal {
    /// From the global flags.
    pub const fn new(quiet: bool, color: ColorChoice) -> Self {
        Self { quiet, color }
    }

    /// Whether standard output takes colours.
    pub fn color_stdout(self) -> bool {
        self.colors(io::stdout().is_terminal())
    }

    fn colors(self, terminal: bool) -> bool {
        match self.color {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto => {
                let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
                let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
                terminal && !refused && !dumb
            }
        }
    }

    /// The width of standard output, where it is a terminal.
    pub fn width_stdout(self) -> Option<u16> {
        if !io::stdout().is_terminal() {
            return None;
        }
        rustix::termios::tcgetwinsize(io::stdout())
            .ok()
            .map(|size| size.ws_col)
            .filter(|columns| *columns > 0)
    }

    /// Whether a progress line may be drawn over itself.
    pub fn live_progress(self) -> bool {
        !self.quiet && io::stderr().is_terminal()
    }

    /// A line about what is going on.
    pub fn say(self, line: impl AsRef<str>) {
        if !self.quiet {
            // A closed standard error must not end a measurement.
            let _ = writeln!(io::stderr(), "{}", line.as_ref());
        }
    }

    /// A warning, also with `-q`.
    pub fn warn(self, line: impl AsRef<str>) {
        let _ = writeln!(io::stderr(), "warning: {}", line.as_ref());
    }

    /// Lines for whatever reads this program's output, to standard error, also with `-q`.
    pub fn raw(self, text: &str) {
        let _ = io::stderr().write_all(text.as_bytes());
    }

    /// Why the program ends.
    pub fn fail(self, failure: &Failure) {
        let mut error = io::stderr();
        let _ = writeln!(error, "error: {}", failure.message);
        if let Some(next) = &failure.next {
            let _ = writeln!(error, "  next: {next}");
        }
    }

    /// Data to standard output. A closed pipe is no error: the reader had enough.
    pub fn data(self, text: &str) -> Result<(), Failure> {
        let mut output = io::stdout().lock();
        let written = output
            .write_all(text.as_bytes())
            .and_then(|()| output.flush());
        match written {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Failure::not_measured(
                format!("failed to write to standard output: {error}"),
            )),
            _ => Ok(()),
        }
    }
}
