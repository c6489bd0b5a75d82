use std::fmt;

/// Why an input file cannot be used: where in it, what, and what was expected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputError {
    /// The file or folder, relative names included: `prompts.jsonl`.
    pub file: String,
    /// Where in it: `line 3`, `data[2], input "x"`; empty for the whole of it.
    pub place: String,
    /// What is wrong, and what was expected.
    pub what: String,
}

impl std::error::Error for InputError {}

impl fmt::Display for InputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.place.is_empty() {
            write!(f, "{}: {}", self.file, self.what)
        } else {
            write!(f, "{}: {}: {}", self.file, self.place, self.what)
        }
    }
}

/// What is wrong and where, before the file's name is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fault {
    pub place: String,
    pub what: String,
}

impl Fault {
    /// About the whole file.
    pub fn whole(what: impl Into<String>) -> Self {
        Self::at(String::new(), what)
    }

    /// About a place in it.
    pub fn at(place: impl Into<String>, what: impl Into<String>) -> Self {
        Self {
            place: place.into(),
            what: what.into(),
        }
    }

    /// The same within an outer place.
    pub fn within(mut self, outer: &str) -> Self {
        self.place = match (outer.is_empty(), self.place.is_empty()) {
            (true, _) => self.place,
            (false, true) => outer.to_owned(),
            (false, false) => format!("{outer}, {}", self.place),
        };
        self
    }
}

/// Text of a file as it may stand in a message: quoted, escaped, and cut after 60 characters.
pub(super) fn shown(text: &str) -> String {
    const MOST: usize = 60;
    if text.chars().count() <= MOST {
        return format!("{text:?}");
    }
    let cut: String = text.chars().take(MOST).collect();
    format!("{cut:?}...")
}
