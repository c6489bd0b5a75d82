use std::fmt;

/// Everything that is wrong with the thresholds files, in the order of the files. Exit code 2.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigErrors(pub Vec<ConfigError>);

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, error) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{error}")?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfigErrors {}

impl From<ConfigError> for ConfigErrors {
    fn from(error: ConfigError) -> Self {
        Self(vec![error])
    }
}

/// One thing that is wrong, and where: `a.toml:12: key 'gate.p99_rise': ...`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError {
    /// The file and line; none where a flag or a variable is meant.
    pub place: Option<Place>,
    /// The key, flag, or variable; none where the whole file is meant.
    pub subject: Option<Subject>,
    /// The scenario whose key it is, if any.
    pub scenario: Option<String>,
    /// What is wrong and what was expected.
    pub problem: Problem,
}

impl ConfigError {
    /// About a whole file, or about one line of it without a key.
    pub(crate) fn in_file(place: Place, problem: Problem) -> Self {
        Self {
            place: Some(place),
            subject: None,
            scenario: None,
            problem,
        }
    }

    /// About a flag or an environment variable.
    pub(crate) fn outside(subject: Subject, problem: Problem) -> Self {
        Self {
            place: None,
            subject: Some(subject),
            scenario: None,
            problem,
        }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(place) = &self.place {
            write!(f, "{place}: ")?;
        }
        match (&self.subject, &self.scenario) {
            (Some(subject), Some(scenario)) => write!(f, "{subject} of scenario '{scenario}': ")?,
            (Some(subject), None) => write!(f, "{subject}: ")?,
            (None, Some(scenario)) => write!(f, "scenario '{scenario}': ")?,
            (None, None) => {}
        }
        write!(f, "{}", self.problem)
    }
}

impl std::error::Error for ConfigError {}

/// A file, and a line of it where one is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The file as named by the user.
    pub file: String,
    /// The line from 1; none for the whole file.
    pub line: Option<usize>,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        self.line.map_or(Ok(()), |line| write!(f, ":{line}"))
    }
}

/// What an error is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// A dotted key of a file.
    Key(String),
    /// A flag of the command line, `--url`.
    Flag(&'static str),
    /// An environment variable.
    Variable(&'static str),
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Key(key) => write!(f, "key '{key}'"),
            Self::Flag(name) | Self::Variable(name) => f.write_str(name),
        }
    }
}

/// What is wrong, what was expected, and what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// The file or folder cannot be read.
    #[error("failed to read: {0}")]
    Read(String),
    /// No path was given at all.
    #[error("no thresholds file was named: give a file or a folder with -c")]
    NoPath,
    /// A folder holds no thresholds file.
    #[error(
        "the folder holds no *.toml file: write one (`triton-gate init`), or name another with -c"
    )]
    EmptyFolder,
    /// The file is larger than any thresholds file.
    #[error("larger than {0} MiB: this is no thresholds file")]
    TooLarge(u64),
    /// The file is not UTF-8.
    #[error("not UTF-8: save the file as UTF-8 text")]
    NotUtf8,
    /// The file is not TOML.
    #[error("not valid TOML: {0}")]
    Syntax(String),
    /// The file was written for a later version.
    #[error(
        "{0} is newer than what this version of triton-gate reads (schema 1): update triton-gate"
    )]
    NewerSchema(i64),
    /// No scenario in a file.
    #[error("no [[scenario]] in this file: add one with name and model")]
    NoScenario,
    /// A key that is no part of the schema.
    #[error("unknown key{}", hint(.suggestion.as_deref(), .allowed))]
    UnknownKey {
        /// The nearest key, if one is near.
        suggestion: Option<String>,
        /// The keys that may stand here.
        allowed: Vec<String>,
    },
    /// A name or word that is not among those known.
    #[error("unknown {what} {name:?}{}", hint(.suggestion.as_deref(), .allowed))]
    UnknownName {
        /// What kind of name: "scenario", "metric".
        what: &'static str,
        /// The name as written.
        name: String,
        /// The nearest one, if one is near.
        suggestion: Option<String>,
        /// Those that exist.
        allowed: Vec<String>,
    },
    /// A key whose feature is not built yet.
    #[error("{0} not supported by this version of triton-gate yet: remove it")]
    NotYet(&'static str),
    /// A value of the wrong TOML type.
    #[error("found {found}, expected {expected}")]
    WrongType {
        /// The type that was found, with its article.
        found: &'static str,
        /// What may stand here.
        expected: String,
    },
    /// A value that does not fit; the text says what was expected.
    #[error("{0}")]
    Value(String),
    /// A problem with one entry of an inline table.
    #[error("entry '{name}': {problem}")]
    Entry {
        /// The entry's key.
        name: String,
        /// What is wrong with it.
        problem: Box<Problem>,
    },
    /// A required key is absent.
    #[error("missing: expected {0}")]
    Missing(String),
    /// Two scenarios of one name.
    #[error("the name {name:?} is taken by the scenario at {first}{}: give each scenario a name of its own", .case.then_some(" (on some file systems upper and lower case are the same)").unwrap_or_default())]
    DuplicateScenario {
        /// The expanded name.
        name: String,
        /// Where the first stands.
        first: Place,
        /// The two differ in case only.
        case: bool,
    },
    /// A `${NAME}` whose variable is not set.
    #[error("the environment variable {0} is not set: set it, or remove ${{{0}}} from the value")]
    MissingVariable(String),
}

fn hint(suggestion: Option<&str>, allowed: &[String]) -> String {
    match suggestion {
        Some(name) => format!(": did you mean '{name}'?"),
        None if allowed.is_empty() => String::new(),
        None => format!(": expected one of {}", allowed.join(", ")),
    }
}

/// Text of a user as it may stand in a message: quoted, escaped, and cut after 60 characters.
pub(crate) fn shown(text: &str) -> String {
    const MOST: usize = 60;
    if text.chars().count() <= MOST {
        return format!("{text:?}");
    }
    let cut: String = text.chars().take(MOST).collect();
    format!("{cut:?}...")
}

/// The nearest of `names`, if it is near enough to be what was meant.
pub(crate) fn nearest<'a>(name: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let name = name.to_ascii_lowercase().replace('-', "_");
    names
        .into_iter()
        .map(|candidate| {
            let folded = candidate.to_ascii_lowercase().replace('-', "_");
            let likeness = strsim::normalized_damerau_levenshtein(&name, &folded);
            (candidate, likeness)
        })
        // Below this, suggestions were more often a puzzle than a help.
        .filter(|(_, likeness)| *likeness >= 0.6)
        .max_by(|a, b| a.1.total_cmp(&b.1))
        .map(|(candidate, _)| candidate)
}
