use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::task::{Poll, Waker};
use std::time::Duration;

use super::clock::nanos;
use super::record::Times;
use super::skim::Skimmer;
use super::status::Failure;
use super::transport::{Marks, Transport};
use super::worker::Share;
use crate::data::ErrorClass;

/// One in so many requests has its sending and receiving timed.
const SAMPLE: u32 = 16;
const SHORTEST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(100);

/// Why a request is cut short.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cut {
    Timeout,
    Abandoned,
}

/// What the sweep needs to know of one request in flight. This replaces a timer per request.
#[derive(Debug)]
pub(crate) struct Flight {
    /// `u64::MAX` while nothing is in flight.
    deadline_ns: Cell<u64>,
    cut: Cell<Option<Cut>>,
    waker: RefCell<Option<Waker>>,
}

impl Flight {
    pub(crate) fn new() -> Self {
        Self {
            deadline_ns: Cell::new(u64::MAX),
            cut: Cell::new(None),
            waker: RefCell::new(None),
        }
    }

    /// Drops the request where its deadline has passed.
    pub(crate) fn sweep(&self, now: u64) {
        if now >= self.deadline_ns.get() {
            self.cut(Cut::Timeout);
        }
    }

    /// Drops the request whatever its deadline.
    pub(crate) fn abandon(&self) {
        if self.deadline_ns.get() != u64::MAX {
            self.cut(Cut::Abandoned);
        }
    }

    fn cut(&self, cut: Cut) {
        self.cut.set(Some(cut));
        if let Some(waker) = self.waker.borrow().as_ref() {
            waker.wake_by_ref();
        }
    }

    /// Runs a call until it ends or is cut; a cut drops it, which cancels the request.
    async fn run<T>(&self, deadline_ns: u64, call: impl Future<Output = T>) -> Result<T, Cut> {
        self.cut.set(None);
        self.deadline_ns.set(deadline_ns);
        let mut call = pin!(call);
        let outcome = poll_fn(|context| {
            if let Some(cut) = self.cut.get() {
                return Poll::Ready(Err(cut));
            }
            let polled = call.as_mut().poll(context);
            if polled.is_pending() {
                let mut waker = self.waker.borrow_mut();
                // The same task polls every time, so this clones once.
                if !waker
                    .as_ref()
                    .is_some_and(|known| known.will_wake(context.waker()))
                {
                    *waker = Some(context.waker().clone());
                }
            }
            polled.map(Ok)
        })
        .await;
        self.deadline_ns.set(u64::MAX);
        outcome
    }
}

/// How a connection has fared lately, shared by the slots that use it.
#[derive(Debug, Default)]
pub(crate) struct Link {
    failures: Cell<u32>,
}

impl Link {
    fn worked(&self) {
        self.failures.set(0);
    }

    /// How long to wait after one more failure: a dead server must not make the client spin.
    fn failed(&self) -> Duration {
        let failures = self.failures.get();
        self.failures.set(failures.saturating_add(1));
        SHORTEST_PAUSE
            .saturating_mul(1 << failures.min(7))
            .min(LONGEST_PAUSE)
    }
}

/// Keeps one request in flight until the stretch ends.
pub(crate) async fn occupy<T: Transport>(
    share: Rc<Share>,
    flight: Rc<Flight>,
    link: Rc<Link>,
    mut transport: T,
) {
    let mut skimmer = Skimmer::new();
    let mut marks = Marks::new(share.clock);
    let mut turn = 0_u32;
    let timeout_ns = nanos(share.request_timeout);
    let mut now = share.clock.now();
    while share.may_send(now) {
        let frame = share.next_frame();
        marks.wanted = turn.is_multiple_of(SAMPLE);
        turn = turn.wrapping_add(1);
        share.recorder.borrow_mut().sent();
        let sent_ns = share.clock.now();
        let outcome = flight
            .run(
                sent_ns.saturating_add(timeout_ns),
                transport.infer(frame, &mut skimmer, &mut marks),
            )
            .await;
        now = share.clock.now();
        let outcome = match outcome {
            // The sweep comes by only now and then; an answer in between may still be too late.
            Ok(Ok(())) if now.saturating_sub(sent_ns) > timeout_ns => Err(Cut::Timeout),
            other => other,
        };
        let failure = match outcome {
            Ok(Ok(())) => {
                link.worked();
                let times = Times {
                    sent_ns,
                    ended_ns: now,
                    marks: marks.wanted.then_some((marks.handed_ns, marks.answered_ns)),
                };
                share
                    .recorder
                    .borrow_mut()
                    .completed(&share.plan, times, skimmer.summary());
                continue;
            }
            Err(Cut::Abandoned) => {
                share.recorder.borrow_mut().abandoned();
                break;
            }
            Err(Cut::Timeout) => Failure {
                class: ErrorClass::Timeout,
                message: format!("no complete answer within {:?}", share.request_timeout),
            },
            Ok(Err(failure)) => failure,
        };
        share
            .recorder
            .borrow_mut()
            .failed(&share.plan, sent_ns, now, &failure);
        if failure.class == ErrorClass::Connection {
            tokio::time::sleep(link.failed()).await;
            now = share.clock.now();
        } else if failure.class != ErrorClass::Timeout {
            link.worked();
        }
    }
    share.leave();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_are_bounded_and_end_with_success() {
        let link = Link::default();
        let pauses: Vec<u128> = (0..10).map(|_| link.failed().as_millis()).collect();
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 64, 100, 100, 100]);
        link.worked();
        assert_eq!(link.failed(), SHORTEST_PAUSE);
    }
}
