use crate::data::CheckResult;
use crate::report::markdown;

/// GitHub drops a step's whole summary above 1 MiB; a check adds at most this much, so that there
/// is room for what the step wrote before.
pub const SUMMARY_LIMIT: usize = 65_536;

/// What to append to the file that `GITHUB_STEP_SUMMARY` names: the pull-request report, set off
/// from whatever stands before it.
pub fn summary(result: &CheckResult) -> String {
    format!("\n{}", markdown(result))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::samples;

    #[test]
    fn it_stays_within_its_limit_and_starts_a_new_block() {
        let text = summary(&samples::many(3000));
        assert!(text.len() <= SUMMARY_LIMIT);
        assert!(text.starts_with("\n❌ **REGRESSION"));
    }
}
