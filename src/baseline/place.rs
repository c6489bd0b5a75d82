use std::fmt;

/// Where in a file something stands, shown as `file:line`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The file's name as the user knows it.
    pub file: String,
    /// The line, from 1.
    pub line: u64,
}

impl Place {
    /// A line of a file.
    pub fn new(file: &str, line: u64) -> Self {
        Self {
            file: file.to_owned(),
            line,
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}
