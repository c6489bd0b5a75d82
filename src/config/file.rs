//! One thresholds file as it stands: every value read and checked, nothing yet laid over anything.

use std::path::{Path, PathBuf};
use std::time::Duration;

use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use super::error::{ConfigError, Place, Problem, Subject, nearest};
use super::layer::{At, Gate, Layer, Measure, Origin, Reference, Server};
use super::scenario::RawScenario;
use super::schema::{self, SCHEMA};
use super::source::Source;
use super::{accept, read, text};

/// The settings of one level.
#[derive(Debug, Clone, Default)]
pub(crate) struct Levels {
    pub server: Server,
    pub gate: Gate,
    pub measure: Measure,
    pub reference: Reference,
}

impl Levels {
    /// Lays this level over a lower one.
    pub fn over(self, lower: &Self) -> Self {
        Self {
            server: self.server.over(&lower.server),
            gate: self.gate.over(&lower.gate),
            measure: self.measure.over(&lower.measure),
            reference: self.reference.over(&lower.reference),
        }
    }
}

/// A thresholds file.
#[derive(Debug, Clone, Default)]
pub(crate) struct File {
    pub levels: Levels,
    pub environment: Option<At<String>>,
    /// `[environment.NAME.*]` in the file's order.
    pub environments: Vec<(String, Levels)>,
    pub total_budget: Option<At<Duration>>,
    pub scenarios: Vec<RawScenario>,
    pub accepts: Vec<accept::RawAccept>,
}

/// The not-yet table: a parameter, so that tests can open what users cannot use yet.
pub(crate) type NotYet = &'static [(&'static str, &'static str)];

/// Reads a file; every error in it is added to `errors`.
pub(crate) fn parse(source: &Source, not_yet: NotYet, errors: &mut Vec<ConfigError>) -> File {
    let (root, failures) = DeTable::parse_recoverable(&source.text);
    if !failures.is_empty() {
        errors.extend(syntax(source, &failures));
        return File::default();
    }
    let mut walk = Walk {
        source,
        not_yet,
        errors,
        scenario: None,
    };
    walk.root(root.get_ref())
}

/// Syntax errors, one a line: what follows on the same line is mostly an echo.
fn syntax(source: &Source, failures: &[toml::de::Error]) -> Vec<ConfigError> {
    let mut errors: Vec<ConfigError> = Vec::new();
    for failure in failures {
        let place = failure
            .span()
            .map_or_else(|| source.whole(), |span| source.place(span.start));
        if errors
            .iter()
            .any(|known| known.place.as_ref() == Some(&place))
        {
            continue;
        }
        // The parser's own words, which hold no text of the file.
        let message = failure.message().replace('\n', ", ");
        errors.push(ConfigError::in_file(place, Problem::Syntax(message)));
    }
    errors
}

/// The way through one file.
pub(crate) struct Walk<'a> {
    pub source: &'a Source,
    not_yet: NotYet,
    errors: &'a mut Vec<ConfigError>,
    /// The scenario that is being read, for messages.
    pub scenario: Option<String>,
}

/// A key and its value with their places.
pub(crate) type Entry<'a, 'i> = (&'a Spanned<DeString<'i>>, &'a Spanned<DeValue<'i>>);

impl Walk<'_> {
    /// Where a value stands.
    pub fn origin<T>(&self, spanned: &Spanned<T>) -> Origin {
        Origin::File(self.source.place(spanned.span().start))
    }

    /// Notes an error about a key.
    pub fn fail(&mut self, offset: usize, key: &[&str], problem: Problem) {
        self.fail_at(&self.source.place(offset), key, problem);
    }

    /// The same for a place that is known already.
    pub fn fail_at(&mut self, place: &Place, key: &[&str], problem: Problem) {
        self.errors.push(ConfigError {
            place: Some(place.clone()),
            subject: Some(Subject::Key(dotted(key))),
            scenario: self.scenario.clone(),
            problem,
        });
    }

    /// Whether the key's feature is built; notes the error otherwise.
    fn built(&mut self, key: &Spanned<DeString<'_>>, path: &[&str]) -> bool {
        match schema::not_yet(self.not_yet, path) {
            Some(what) => {
                self.fail(key.span().start, path, Problem::NotYet(what));
                false
            }
            None => true,
        }
    }

    /// The entries whose key may stand here; the others are noted as errors.
    pub fn entries<'t, 'i>(
        &mut self,
        table: &'t DeTable<'i>,
        path: &[&str],
        allowed: &[&str],
    ) -> Vec<Entry<'t, 'i>> {
        let mut entries = Vec::new();
        for (key, value) in table {
            let name = key.get_ref().as_ref();
            let path = joined(path, name);
            if !self.built(key, &path) {
                continue;
            }
            if allowed.contains(&name) {
                entries.push((key, value));
            } else {
                let problem = unknown(name, allowed.iter().map(|&key| key.to_owned()).collect());
                self.fail(key.span().start, &path, problem);
            }
        }
        entries
    }

    /// Reads one value; an error is noted and none returned.
    pub fn value<T>(
        &mut self,
        (key, value): Entry<'_, '_>,
        path: &[&str],
        read: impl FnOnce(&DeValue<'_>) -> Result<T, Problem>,
    ) -> Option<At<T>> {
        match read(value.get_ref()) {
            Ok(read) => Some(At {
                value: read,
                origin: self.origin(key),
            }),
            Err(problem) => {
                self.fail(key.span().start, &joined(path, key.get_ref()), problem);
                None
            }
        }
    }

    /// A path, which begins at the folder of the thresholds file.
    pub fn path(&mut self, entry: Entry<'_, '_>, path: &[&str]) -> Option<At<PathBuf>> {
        let folder = self
            .source
            .path
            .parent()
            .unwrap_or(Path::new(""))
            .to_owned();
        self.value(entry, path, |value| {
            let text = read::text(value, "the path of a file, from this file's folder")?;
            if text.is_empty() {
                return Err(Problem::Value("an empty path: expected a file".to_owned()));
            }
            Ok(folder.join(text))
        })
    }

    fn root(&mut self, root: &DeTable<'_>) -> File {
        let mut file = File::default();
        if !self.schema(root) {
            return file;
        }
        for (key, value) in self.entries(root, &[], schema::ROOT) {
            match key.get_ref().as_ref() {
                // Read before everything else.
                "schema" => {}
                "environment" => self.environment(key, value, &mut file),
                "scenario" => {
                    for table in self.list(key, value) {
                        file.scenarios.extend(self.scenario(table));
                    }
                }
                "accept" => {
                    for table in self.list(key, value) {
                        let place = self.source.place(table.span().start);
                        if let DeValue::Table(table) = table.get_ref() {
                            file.accepts.extend(accept::read(self, table, place));
                        }
                    }
                }
                "gate" => {
                    let total = self.sections(key, value, &[], &mut file.levels);
                    file.total_budget = total;
                }
                _ => {
                    self.sections(key, value, &[], &mut file.levels);
                }
            }
        }
        // Scenarios that are there but wrong, or under a misspelt key, have errors of their own.
        let meant = |key: &Spanned<DeString<'_>>| nearest(key.get_ref(), ["scenario"]).is_some();
        if !root.keys().any(meant) {
            self.errors.push(ConfigError::in_file(
                self.source.whole(),
                Problem::NoScenario,
            ));
        }
        file
    }

    /// Whether this version reads the file's schema.
    fn schema(&mut self, root: &DeTable<'_>) -> bool {
        const EXPECTED: &str = "schema = 1";
        let Some((key, value)) = root.get_key_value("schema") else {
            return true;
        };
        let problem = match value.get_ref() {
            DeValue::Integer(number) => match read::integer(number) {
                Some(SCHEMA) => return true,
                Some(newer) if newer > SCHEMA => Problem::NewerSchema(newer),
                _ => Problem::Value(format!("not a schema number: expected {EXPECTED}")),
            },
            other => read::wrong(other, EXPECTED),
        };
        self.fail(key.span().start, &["schema"], problem);
        // The rest of a file of another schema would only be misread.
        false
    }

    /// The tables of `[[name]]`.
    fn list<'t, 'i>(
        &mut self,
        key: &Spanned<DeString<'i>>,
        value: &'t Spanned<DeValue<'i>>,
    ) -> Vec<&'t Spanned<DeValue<'i>>> {
        let name = key.get_ref().as_ref();
        let expected = || format!("a list of tables: write [[{name}]], with two brackets");
        match value.get_ref() {
            DeValue::Array(items) if items.is_empty() => {
                let problem = Problem::Value(format!("an empty list: expected {}", expected()));
                self.fail(key.span().start, &[name], problem);
                Vec::new()
            }
            DeValue::Array(items) => {
                let mut tables = Vec::new();
                for item in items {
                    if item.get_ref().is_table() {
                        tables.push(item);
                    } else {
                        let problem = read::wrong(item.get_ref(), expected());
                        self.fail(item.span().start, &[name], problem);
                    }
                }
                tables
            }
            other => {
                self.fail(key.span().start, &[name], read::wrong(other, expected()));
                Vec::new()
            }
        }
    }

    /// Reads one of the four sections of settings into its level; the answer is `total_budget`,
    /// which may stand in a file's own `[gate]` only.
    pub fn sections(
        &mut self,
        key: &Spanned<DeString<'_>>,
        value: &Spanned<DeValue<'_>>,
        parent: &[&str],
        levels: &mut Levels,
    ) -> Option<At<Duration>> {
        let path = joined(parent, key.get_ref());
        let table = self.table(key, value, &path)?;
        match key.get_ref().as_ref() {
            "server" => self.section(table, &path, &mut levels.server),
            "measure" => self.section(table, &path, &mut levels.measure),
            "reference" if table.is_empty() => {
                let problem = Problem::Value(
                    "is empty: expected url, model or version, or launch".to_owned(),
                );
                self.fail(key.span().start, &path, problem);
            }
            "reference" => self.section(table, &path, &mut levels.reference),
            _ => return self.gate(table, &path, &mut levels.gate),
        }
        None
    }

    fn gate(
        &mut self,
        table: &DeTable<'_>,
        path: &[&str],
        gate: &mut Gate,
    ) -> Option<At<Duration>> {
        const TOTAL: &str = "total_budget";
        let mut total = None;
        if let Some(entry) = table.get_key_value(TOTAL) {
            if path.len() == 1 {
                total = self.value(entry, path, read::duration_above_zero);
            } else {
                let problem = Problem::Value(
                    "holds for the whole check: expected it in the file's own [gate]".to_owned(),
                );
                self.fail(entry.0.span().start, &joined(path, TOTAL), problem);
            }
        }
        self.settings(table, path, gate, &[TOTAL]);
        total
    }

    fn section<L: Layer>(&mut self, table: &DeTable<'_>, path: &[&str], layer: &mut L) {
        self.settings(table, path, layer, &[]);
    }

    /// Reads every key of a section but those in `besides`, which were read already.
    fn settings<L: Layer>(
        &mut self,
        table: &DeTable<'_>,
        path: &[&str],
        layer: &mut L,
        besides: &[&str],
    ) {
        for (key, value) in table {
            let name = key.get_ref().as_ref();
            let path = joined(path, name);
            if besides.contains(&name) || !self.built(key, &path) {
                continue;
            }
            let origin = self.origin(key);
            let problem = match layer.take(name, value.get_ref(), &origin) {
                Some(Ok(())) => continue,
                Some(Err(problem)) => problem,
                None => {
                    let mut allowed = L::keys();
                    allowed.extend(besides.iter().map(|&key| key.to_owned()));
                    unknown(name, allowed)
                }
            };
            self.fail(key.span().start, &path, problem);
        }
    }

    /// A value as a table; another type is noted as an error.
    pub fn table<'t, 'i>(
        &mut self,
        key: &Spanned<DeString<'i>>,
        value: &'t Spanned<DeValue<'i>>,
        path: &[&str],
    ) -> Option<&'t DeTable<'i>> {
        let table = value.get_ref().as_table();
        if table.is_none() {
            let expected = format!("a table: write [{}]", dotted(path));
            self.fail(
                key.span().start,
                path,
                read::wrong(value.get_ref(), expected),
            );
        }
        table
    }

    fn environment(
        &mut self,
        key: &Spanned<DeString<'_>>,
        value: &Spanned<DeValue<'_>>,
        file: &mut File,
    ) {
        let path = ["environment"];
        let Some(table) = self.table(key, value, &path) else {
            return;
        };
        for (key, value) in table {
            let name = key.get_ref().as_ref();
            if name == "name" {
                file.environment = self.value((key, value), &path, |value| {
                    text::safe_name(read::text(value, "the environment's name as text")?)
                });
                continue;
            }
            let path = joined(&path, name);
            if !value.get_ref().is_table() {
                let problem = unknown(name, vec!["name".to_owned(), "NAME.gate".to_owned()]);
                self.fail(key.span().start, &path, problem);
                continue;
            }
            if let Err(problem) = text::safe_name(name) {
                self.fail(key.span().start, &path, problem);
                continue;
            }
            let Some(table) = self.table(key, value, &path) else {
                continue;
            };
            let mut levels = Levels::default();
            for (key, value) in self.entries(table, &path, schema::SECTIONS) {
                self.sections(key, value, &path, &mut levels);
            }
            file.environments.push((name.to_owned(), levels));
        }
    }
}

/// The error for a key that may not stand where it stands.
fn unknown(name: &str, allowed: Vec<String>) -> Problem {
    let suggestion = nearest(name, allowed.iter().map(String::as_str)).map(str::to_owned);
    Problem::UnknownKey {
        suggestion,
        allowed,
    }
}

/// A path with one part more.
pub(crate) fn joined<'a>(path: &[&'a str], name: &'a str) -> Vec<&'a str> {
    let mut path = path.to_vec();
    path.push(name);
    path
}

/// A path as it is written in a file; parts that need quotes get them.
fn dotted(path: &[&str]) -> String {
    path.iter()
        .map(|part| quoted_key(part))
        .collect::<Vec<_>>()
        .join(".")
}

/// A key as it stands in a message: bare, or quoted and escaped.
fn quoted_key(key: &str) -> String {
    let bare = !key.is_empty()
        && key
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
    if bare {
        key.to_owned()
    } else {
        format!("{key:?}")
    }
}
