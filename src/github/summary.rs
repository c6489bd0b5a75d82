/// GitHub drops a step's whole summary above 1 MiB. What is appended stays below, with some room
/// for what other commands of the step still add.
pub const SUMMARY_LIMIT: usize = 1024 * 1024 - 16 * 1024;

/// The text to append to the file that `GITHUB_STEP_SUMMARY` names, which holds `present` bytes:
/// all of it; else its first line, the verdict; else nothing.
pub fn within_limit(text: &str, present: u64) -> Option<String> {
    let room = SUMMARY_LIMIT.saturating_sub(usize::try_from(present).unwrap_or(usize::MAX));
    let block = format!("\n{}\n", text.trim_end());
    if block.len() <= room {
        return Some(block);
    }
    let line = format!(
        "\n{}\n\nThe rest found no room in this summary.\n",
        text.lines().next().unwrap_or_default()
    );
    (line.len() <= room).then_some(line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::github::report;
    use crate::report::samples;

    #[test]
    fn it_starts_a_new_block_and_stays_within_the_limit() {
        let text = report(&[samples::many(3000)]);
        let whole = within_limit(&text, 0).expect("there is room");
        assert!(whole.starts_with("\n❌ **REGRESSION"));
        assert!(whole.len() > 20_000);
        let line = within_limit(&text, SUMMARY_LIMIT as u64 - 5000).expect("room for a line");
        assert!(line.contains("found no room") && line.len() < 5000);
        assert_eq!(within_limit(&text, SUMMARY_LIMIT as u64), None);
        assert_eq!(within_limit(&text, u64::MAX), None);
    }
}
