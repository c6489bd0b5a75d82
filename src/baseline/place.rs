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

/// Finds the lines of records. A CSV reader tells where the search for a record began, which is
/// before any blank lines.
pub(crate) struct Lines<'a> {
    text: &'a str,
    byte: usize,
    line: u64,
}

impl<'a> Lines<'a> {
    pub fn new(text: &'a str) -> Self {
        Self {
            text,
            byte: 0,
            line: 1,
        }
    }

    /// The line of a record; to be asked in the file's order.
    pub fn of(&mut self, position: Option<&csv::Position>) -> u64 {
        let begin = position.map_or(0, csv::Position::byte) as usize;
        let rest = self.text.get(begin..).unwrap_or_default();
        let blank = rest
            .bytes()
            .take_while(|byte| matches!(byte, b'\r' | b'\n'))
            .count();
        let end = begin + blank;
        let passed = self.text.get(self.byte..end).unwrap_or_default();
        self.line += passed.matches('\n').count() as u64;
        self.byte = self.byte.max(end);
        self.line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blank_lines_and_line_ends_of_every_kind_are_counted() {
        for text in ["a,b\n1,2\n\n\n3,4", "a,b\r\n1,2\r\n\r\n\r\n3,4\r\n"] {
            let mut reader = csv::ReaderBuilder::new()
                .has_headers(false)
                .from_reader(text.as_bytes());
            let mut lines = Lines::new(text);
            let found: Vec<u64> = reader
                .records()
                .map(|record| lines.of(record.expect("record").position()))
                .collect();
            assert_eq!(found, [1, 2, 5], "{text:?}");
        }
    }
}
