//! Two checkouts, of the commit that a change is based on and of the change: what differs between
//! them in the gate itself.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, BufRead as _, BufReader};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::args::CheckArgs;
use super::failure::Failure;
use crate::config::{Config, ENVIRONMENT_VARIABLE, Overrides, URL_VARIABLE, changes, load};
use crate::data::{GateChange, GateChangeKind, GateChanges, GateSide, Scenario};

/// Where stored baselines lie in a checkout, where `--baselines` names a place outside of both.
const BASELINES: &str = "baselines";

/// The two checkouts as they were given.
#[derive(Debug)]
pub struct Checkouts {
    base: PathBuf,
    head: PathBuf,
}

impl Checkouts {
    /// From the arguments; none where there is nothing to compare with.
    pub fn of(arguments: &CheckArgs) -> Result<Option<Self>, Failure> {
        let Some(base) = &arguments.gate_base else {
            return Ok(None);
        };
        for (flag, folder) in [("--gate-base", base), ("--gate-head", &arguments.gate_head)] {
            if !folder.is_dir() {
                return Err(Failure::usage(format!(
                    "{flag}: {} is not a folder",
                    folder.display()
                ))
                .next("give the folder of a checkout"));
            }
        }
        Ok(Some(Self {
            base: base.clone(),
            head: arguments.gate_head.clone(),
        }))
    }

    /// The checkout with the change.
    pub fn head(&self) -> &Path {
        &self.head
    }

    /// The same file of the checkout with the change; none where it lies in neither.
    pub fn in_head(&self, path: &Path) -> Option<PathBuf> {
        self.place(path).map(|(_, inner)| self.head.join(inner))
    }

    /// Files as they are named within their checkout, the same on every machine.
    pub fn inner(&self, files: &mut [String]) {
        for file in files {
            if let Some((_, inner)) = self.place(Path::new(file)) {
                *file = inner.display().to_string();
            }
        }
    }

    /// The scenarios as if their thresholds lay in the checkout with the change.
    pub fn scenarios_in_head(&self, scenarios: &[Scenario]) -> Vec<Scenario> {
        let mut scenarios = scenarios.to_vec();
        for scenario in &mut scenarios {
            if let Some(file) = self.in_head(&scenario.file) {
                scenario.file = file;
            }
            for input in &mut scenario.input_files {
                if let Some(file) = self.in_head(input) {
                    *input = file;
                }
            }
        }
        scenarios
    }

    /// What differs in the thresholds `configs` and in the stored baselines.
    pub fn changes(
        &self,
        configs: &[PathBuf],
        baselines: &Path,
        environment: Option<&str>,
    ) -> Result<GateChanges, Failure> {
        let mut judged_by = None;
        let mut inner = Vec::new();
        for config in configs {
            let (side, path) = self.place(config).ok_or_else(|| {
                Failure::usage(format!(
                    "--gate-base: {} lies neither in {} nor in {}",
                    config.display(),
                    self.base.display(),
                    self.head.display()
                ))
                .next("name thresholds of one of the two checkouts with -c")
            })?;
            judged_by.get_or_insert(side);
            inner.push(path);
        }
        let stored = self
            .place(baselines)
            .map_or_else(|| PathBuf::from(BASELINES), |(_, inner)| inner);
        let mut found = self.thresholds(&inner, environment);
        found.extend(self.baselines(&stored));
        Ok(GateChanges {
            judged_by: judged_by.unwrap_or(GateSide::Head),
            changes: found,
        })
    }

    /// The side that a path lies on, and the path within it. The base may lie within the head.
    fn place(&self, path: &Path) -> Option<(GateSide, PathBuf)> {
        let path = whole(path);
        let mut sides = [
            (GateSide::Base, whole(&self.base)),
            (GateSide::Head, whole(&self.head)),
        ];
        sides.sort_by_key(|(_, root)| std::cmp::Reverse(root.components().count()));
        sides.into_iter().find_map(|(side, root)| {
            let inner = path.strip_prefix(root).ok()?;
            Some((side, inner.to_owned()))
        })
    }

    fn thresholds(&self, inner: &[PathBuf], environment: Option<&str>) -> Vec<GateChange> {
        let read = |root: &Path, environment: Option<&str>| side(root, inner, environment);
        let (base, head) = match (read(&self.base, environment), read(&self.head, environment)) {
            (Ok(base), Ok(head)) => (base, head),
            (base, head) => {
                return [
                    base.err().map(|why| (Some(why), None)),
                    head.err().map(|why| (None, Some(why))),
                ]
                .into_iter()
                .flatten()
                .map(|(base, head)| about_all(GateChangeKind::Unreadable, base, head))
                .collect();
            }
        };
        let mut found = changes(base.as_ref(), head.as_ref());
        let mut others: Vec<String> = [&base, &head]
            .into_iter()
            .flatten()
            .flat_map(|config| config.environment_sections.clone())
            .filter(|name| Some(name.as_str()) != environment)
            .collect();
        others.sort_unstable();
        others.dedup();
        for name in others {
            // What cannot be settled there is the other environment's own trouble.
            let (Ok(base), Ok(head)) =
                (read(&self.base, Some(&name)), read(&self.head, Some(&name)))
            else {
                continue;
            };
            for change in changes(base.as_ref(), head.as_ref()) {
                if !found.contains(&change) {
                    found.push(GateChange {
                        environment: Some(name.clone()),
                        ..change
                    });
                }
            }
        }
        found.sort_by_key(|change| (!change.milder, change.kind));
        found
    }

    fn baselines(&self, inner: &Path) -> Option<GateChange> {
        let read = |root: &Path| {
            let mut files = BTreeMap::new();
            list(&root.join(inner), Path::new(""), &mut files).map(|()| files)
        };
        let (Ok(old), Ok(new)) = (read(&self.base), read(&self.head)) else {
            let text = Some("failed to compare them: a file cannot be read".to_owned());
            return Some(about_all(GateChangeKind::Baselines, None, text));
        };
        let added = new.keys().filter(|name| !old.contains_key(*name)).count();
        let removed = old.keys().filter(|name| !new.contains_key(*name)).count();
        let changed = new
            .iter()
            .filter(|(name, content)| old.get(*name).is_some_and(|before| before != *content))
            .count();
        let parts: Vec<String> = [(added, "added"), (removed, "removed"), (changed, "changed")]
            .into_iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, word)| format!("{count} {word}"))
            .collect();
        (!parts.is_empty()).then(|| {
            let text = format!("files in {}: {}", inner.display(), parts.join(", "));
            about_all(GateChangeKind::Baselines, None, Some(text))
        })
    }
}

fn about_all(kind: GateChangeKind, base: Option<String>, head: Option<String>) -> GateChange {
    GateChange {
        kind,
        scenario: None,
        environment: None,
        key: String::new(),
        base,
        head,
        milder: false,
    }
}

/// A path that others can be compared with, also where nothing is there.
fn whole(path: &Path) -> PathBuf {
    path.canonicalize()
        .or_else(|_| std::path::absolute(path))
        .unwrap_or_else(|_| path.to_owned())
}

/// The thresholds of one side; none where it has none. Flags and variables are left out: they are
/// the same for both.
fn side(
    root: &Path,
    inner: &[PathBuf],
    environment: Option<&str>,
) -> Result<Option<Config>, String> {
    let paths: Vec<PathBuf> = inner
        .iter()
        .map(|path| root.join(path))
        .filter(|path| path.exists())
        .collect();
    if paths.is_empty() {
        return Ok(None);
    }
    for path in &paths {
        inside(root, path)?;
    }
    let overrides = Overrides {
        environment: environment.map(str::to_owned),
        ..Overrides::default()
    };
    // Secrets of a header need not be there to compare what the files say.
    let variable = |name: &str| {
        (name != URL_VARIABLE && name != ENVIRONMENT_VARIABLE).then(|| "secret".to_owned())
    };
    load(&paths, &overrides, &variable)
        .map(Some)
        .map_err(|errors| errors.to_string())
}

/// Refuses thresholds that are links to somewhere else: a complaint about them would show what a
/// stranger's change has no business to see.
fn inside(root: &Path, path: &Path) -> Result<(), String> {
    let root = whole(root);
    let beneath = fs::read_dir(path).into_iter().flatten().flatten();
    for path in beneath.map(|entry| entry.path()).chain([path.to_owned()]) {
        if !whole(&path).starts_with(&root) {
            return Err(format!("{}: leads out of the checkout", path.display()));
        }
    }
    Ok(())
}

/// The sessions and facts under a folder with a digest of each, links left out.
fn list(root: &Path, inner: &Path, files: &mut BTreeMap<PathBuf, Vec<u8>>) -> io::Result<()> {
    // With an empty name it would end in a slash, which follows a link.
    let folder = if inner.as_os_str().is_empty() {
        root.to_owned()
    } else {
        root.join(inner)
    };
    match fs::symlink_metadata(&folder) {
        Ok(there) if there.is_dir() => {}
        Ok(_) => return Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    }
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = inner.join(entry.file_name());
        let kind = entry.file_type()?;
        if kind.is_dir() {
            list(root, &name, files)?;
        } else if kind.is_file()
            && name
                .extension()
                .is_some_and(|ending| ending == "csv" || ending == "toml")
        {
            let digest = digest(&root.join(&name))?;
            files.insert(name, digest);
        }
    }
    Ok(())
}

/// A digest of a file of any length.
fn digest(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = BufReader::new(fs::File::open(path)?);
    let mut digest = Sha256::new();
    loop {
        let part = file.fill_buf()?;
        if part.is_empty() {
            return Ok(digest.finalize().to_vec());
        }
        digest.update(part);
        let length = part.len();
        file.consume(length);
    }
}
