//! Whether two sessions saw one life of a server.

use crate::data::Session;

/// The mark of all sessions of which nobody can say whether the server was restarted between them:
/// they count as one.
pub const UNKNOWN_LIFE: &str = "unknown";

/// What the server had counted when a session began, at most: its own requests are taken off, its
/// warm-up is not. None where the count is unknown.
fn began(session: &Session) -> Option<u64> {
    let own: u64 = session.blocks.iter().map(|block| block.requests).sum();
    session.server_requests?.checked_sub(own)
}

/// The life of `newest`, where a server that has counted `counted` requests continues it.
pub fn continued(newest: Option<&Session>, counted: Option<u64>) -> Option<String> {
    let newest = newest?;
    (counted? >= newest.server_requests?).then(|| newest.life.clone())?
}

/// The life that a session from a file belongs to, seen beside the sessions before it, oldest
/// first: its own mark or an earlier one that its counters continue, else [`UNKNOWN_LIFE`] where it
/// counts nothing. `new` is the mark of a life of its own; `restarted` says that the server was
/// restarted before the session.
///
/// In doubt a session is one more visit to a known life: too few sessions cost a decision, too many
/// cost its truth.
pub fn life_of(
    session: &Session,
    earlier: &[Session],
    restarted: bool,
    new: Option<String>,
) -> Option<String> {
    if restarted {
        return session.life.clone().or(new);
    }
    let before = earlier
        .iter()
        .rev()
        .find(|other| other.server_requests.is_some());
    if let Some(life) = continued(before, began(session)) {
        return Some(life);
    }
    match (&session.life, session.server_requests) {
        (Some(life), _) => Some(life.clone()),
        (None, Some(_)) => new,
        (None, None) => Some(UNKNOWN_LIFE.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::baseline::samples::session;

    fn visit(life: Option<&str>, counted: Option<u64>) -> Session {
        // One block of 500 requests.
        let mut visit = session("a", 1);
        visit.life = life.map(str::to_owned);
        visit.server_requests = counted;
        visit
    }

    #[test]
    fn visits_to_one_running_server_are_one_life() {
        let new = || Some("new".to_owned());
        let table = [
            // Counters that go on: one life, whatever mark the file carries.
            (Some(600), Some("b"), Some(1200), false, Some("a")),
            (Some(600), None, Some(1100), false, Some("a")),
            // Counters that began again.
            (Some(600), Some("b"), Some(600), false, Some("b")),
            (Some(600), None, Some(1000), false, Some("new")),
            // Nothing is known.
            (Some(600), None, None, false, Some(UNKNOWN_LIFE)),
            (None, Some("b"), None, false, Some("b")),
            // The user knows.
            (Some(600), None, Some(1200), true, Some("new")),
            (Some(600), Some("b"), Some(1200), true, Some("b")),
        ];
        for (before, life, counted, restarted, expected) in table {
            let earlier = [visit(Some("a"), before)];
            let found = life_of(&visit(life, counted), &earlier, restarted, new());
            assert_eq!(
                found.as_deref(),
                expected,
                "{before:?} {life:?} {counted:?}"
            );
        }
        assert_eq!(
            life_of(&visit(None, None), &[], false, new()).as_deref(),
            Some(UNKNOWN_LIFE)
        );
    }
}
