use std::fmt;

use crate::report::Exit;

/// A failure that ends the program: what happened, what to do, and the code.
#[derive(Debug)]
pub struct Failure {
    /// The code.
    pub exit: Exit,
    /// What failed, where, what was expected.
    pub message: String,
    /// What to do next.
    pub next: Option<String>,
}

impl Failure {
    /// A failure without advice.
    pub fn new(exit: Exit, message: impl fmt::Display) -> Self {
        Self {
            exit,
            message: message.to_string(),
            next: None,
        }
    }

    /// Adds what to do next.
    #[must_use]
    pub fn next(mut self, next: impl fmt::Display) -> Self {
        let next = next.to_string();
        self.next = (!next.is_empty()).then_some(next);
        self
    }

    /// Usage, configuration or an input file is wrong.
    pub fn usage(message: impl fmt::Display) -> Self {
        Self::new(Exit::Usage, message)
    }

    /// Could not measure.
    pub fn not_measured(message: impl fmt::Display) -> Self {
        Self::new(Exit::NotMeasured, message)
    }
}
