//! One thread that runs actions at exact times. Tokio's timers step by a millisecond; a futex
//! wait on Linux, with the thread's timer slack at its smallest, is late by microseconds.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::io;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

use tokio::sync::oneshot;

/// Runs once at its time; it must not block.
type Action = Box<dyn FnOnce() + Send>;

struct Entry {
    due: Instant,
    /// Keeps actions of one instant in the order in which they were asked for.
    order: u64,
    action: Action,
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> Ordering {
        // Reversed: the heap gives its largest, and the earliest is wanted.
        (other.due, other.order).cmp(&(self.due, self.order))
    }
}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.order == other.order
    }
}

impl Eq for Entry {}

#[derive(Default)]
struct Agenda {
    entries: BinaryHeap<Entry>,
    next_order: u64,
    stopped: bool,
}

#[derive(Default)]
struct Shared {
    agenda: Mutex<Agenda>,
    changed: Condvar,
}

/// A handle; clones share the thread.
#[derive(Clone)]
pub(crate) struct Pacer {
    shared: Arc<Shared>,
}

impl Pacer {
    /// Starts the thread.
    pub(crate) fn start() -> io::Result<(Self, JoinHandle<()>)> {
        let shared = Arc::new(Shared::default());
        let thread = std::thread::Builder::new()
            .name("simulate-pacer".to_owned())
            .spawn({
                let shared = Arc::clone(&shared);
                move || run(&shared)
            })?;
        Ok((Self { shared }, thread))
    }

    /// Runs an action at an instant, at once when it has passed.
    pub(crate) fn at(&self, due: Instant, action: impl FnOnce() + Send + 'static) {
        let mut agenda = self
            .shared
            .agenda
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if agenda.stopped {
            return;
        }
        let order = agenda.next_order;
        agenda.next_order += 1;
        let first = agenda.entries.peek().is_none_or(|entry| due < entry.due);
        agenda.entries.push(Entry {
            due,
            order,
            action: Box::new(action),
        });
        drop(agenda);
        if first {
            self.shared.changed.notify_one();
        }
    }

    /// Waits until an instant; returns early only when the pacer stops.
    pub(crate) async fn sleep_until(&self, due: Instant) {
        if due <= Instant::now() {
            return;
        }
        let (wake, woken) = oneshot::channel();
        self.at(due, move || {
            // The sleeper may have gone.
            let _ = wake.send(());
        });
        let _ = woken.await;
    }

    /// Ends the thread; what was planned is dropped.
    pub(crate) fn stop(&self) {
        let mut agenda = self
            .shared
            .agenda
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        agenda.stopped = true;
        let dropped = std::mem::take(&mut agenda.entries);
        drop(agenda);
        self.shared.changed.notify_one();
        // Outside the lock: dropping an action may run code of its own.
        drop(dropped);
    }
}

fn run(shared: &Shared) {
    sharpen();
    let mut agenda = shared.agenda.lock().unwrap_or_else(PoisonError::into_inner);
    while !agenda.stopped {
        let now = Instant::now();
        let due = agenda.entries.peek().map(|entry| entry.due);
        agenda = match due {
            Some(due) if due <= now => {
                let entry = agenda.entries.pop();
                drop(agenda);
                if let Some(entry) = entry {
                    (entry.action)();
                }
                shared.agenda.lock().unwrap_or_else(PoisonError::into_inner)
            }
            Some(due) => {
                let waited = shared.changed.wait_timeout(agenda, due - now);
                waited.unwrap_or_else(PoisonError::into_inner).0
            }
            None => shared
                .changed
                .wait(agenda)
                .unwrap_or_else(PoisonError::into_inner),
        };
    }
}

/// Asks the kernel not to round this thread's timers (by default it may add 50 us).
#[cfg(target_os = "linux")]
fn sharpen() {
    // Best effort: without it the times are a little late, which the request log shows.
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
}

#[cfg(not(target_os = "linux"))]
fn sharpen() {}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;

    #[test]
    fn actions_run_in_the_order_of_their_times_and_never_early() {
        let (pacer, thread) = Pacer::start().expect("thread");
        let (send, receive) = mpsc::channel();
        let start = Instant::now();
        for (name, milliseconds) in [("c", 30), ("a", 10), ("b", 20), ("now", 0), ("b2", 20)] {
            let due = start + Duration::from_millis(milliseconds);
            let send = send.clone();
            pacer.at(due, move || {
                send.send((name, Instant::now() >= due)).expect("receiver");
            });
        }
        let seen: Vec<_> = receive.iter().take(5).collect();
        let expected = ["now", "a", "b", "b2", "c"].map(|name| (name, true));
        assert_eq!(seen, expected);
        pacer.stop();
        thread.join().expect("no panic");
    }

    #[test]
    fn stopping_drops_what_was_planned() {
        let (pacer, thread) = Pacer::start().expect("thread");
        let (send, receive) = mpsc::channel::<()>();
        pacer.at(Instant::now() + Duration::from_hours(1), move || {
            drop(send);
        });
        pacer.stop();
        thread.join().expect("no panic");
        assert!(receive.recv().is_err(), "the action was dropped, not run");
        pacer.at(Instant::now(), || panic!("a stopped pacer runs nothing"));
    }
}
