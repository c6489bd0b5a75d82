//! A result to the terminal and to the files that were asked for.

use std::path::{Path, PathBuf};

use super::args::OutputArgs;
use super::failure::Failure;
use super::files;
use super::terminal::Terminal;
use crate::data::CheckResult;
use crate::report::{Style, json, junit, markdown, terminal as render};

/// Shows a result and writes its files. A file that cannot be written is an error after the
/// verdict was shown, and never turns a failed check into anything better.
pub fn show(
    terminal: Terminal,
    arguments: &OutputArgs,
    result: &CheckResult,
) -> Result<u8, Failure> {
    let files = [&arguments.json, &arguments.junit, &arguments.markdown];
    let to_stdout = files
        .into_iter()
        .flatten()
        .find(|path| path.as_os_str() == "-");
    page(terminal, to_stdout.map(PathBuf::as_path), result)?;
    let mut failed = None;
    if let Some(path) = &arguments.json {
        let text = json(result).map_err(Failure::not_measured)?;
        failed = failed.or(files::write(terminal, path, &text).err());
    }
    if let Some(path) = &arguments.junit {
        let text = junit(result).map_err(Failure::not_measured)?;
        failed = failed.or(files::write(terminal, path, &text).err());
    }
    if let Some(path) = &arguments.markdown {
        failed = failed.or(files::write(terminal, path, &markdown(result)).err());
    }
    match failed {
        Some(failure) if result.exit_code == 0 => Err(failure),
        Some(failure) => {
            terminal.fail(&failure);
            Ok(result.exit_code)
        }
        None => Ok(result.exit_code),
    }
}

/// Shows a result; standard output is left to the data where a file is `-`.
pub fn page(terminal: Terminal, file: Option<&Path>, result: &CheckResult) -> Result<(), Failure> {
    let style = style(terminal);
    if file.is_some_and(|path| path.as_os_str() == "-") {
        terminal.say(
            render(
                result,
                Style {
                    color: false,
                    ..style
                },
            )
            .trim_end(),
        );
        return Ok(());
    }
    if terminal.quiet {
        return terminal.data(&format!("{}\n", result.headline));
    }
    terminal.data(&render(result, style))
}

/// How standard output wants its pages.
pub fn style(terminal: Terminal) -> Style {
    Style {
        color: terminal.color_stdout(),
        width: terminal.width_stdout(),
        ascii: !utf8(),
    }
}

/// Whether the locale speaks UTF-8; one that says nothing is taken to.
pub(super) fn utf8() -> bool {
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"]
        .into_iter()
        .filter_map(|name| std::env::var(name).ok())
        .find(|value| !value.is_empty());
    locale.is_none_or(|value| {
        let value = value.to_ascii_lowercase();
        value.contains("utf-8") || value.contains("utf8") || value == "c.utf-8"
    })
}
