use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::runtime::{Builder, LocalOptions};
use tokio::sync::Notify;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::spawn_local;

use super::clock::Clock;
use super::connect::connect;
use super::gauge::Gauge;
use super::plan::Plan;
use super::record::{Part, Recorder, Totals};
use super::slot::{Flight, Link, occupy};
use super::transport::{ChannelTransport, Transport};
use super::{Counting, LoadError};
use crate::data::ServerSpec;

/// How often expired requests are looked for.
const SWEEP: Duration = Duration::from_millis(20);
/// What requests in flight get when stopping was asked for.
const GRACE_NS: u64 = 2_000_000_000;
/// Smaller requests are copied once per worker, so that threads do not share a counter.
const COPIED_REQUEST: usize = 64 * 1024;

/// What a worker needs to know, all of it fixed for its life.
#[derive(Debug, Clone)]
pub(crate) struct Brief {
    pub(crate) worker: usize,
    pub(crate) clock: Clock,
    pub(crate) server: ServerSpec,
    pub(crate) frames: Vec<Bytes>,
    /// Requests in flight on each of its connections.
    pub(crate) connections: Vec<u32>,
    pub(crate) request_timeout: Duration,
    pub(crate) gauge: Gauge,
}

/// What a worker tells after a stretch.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) parts: Vec<Part>,
    pub(crate) totals: Totals,
    pub(crate) interrupted: bool,
    pub(crate) past_deadline: bool,
}

/// What a worker tells, with its number.
#[derive(Debug)]
pub(crate) enum Said {
    /// Its connections are open, or why not.
    Started(Result<(), LoadError>),
    /// A stretch is over.
    Done(Box<Report>),
}

/// What the slots of a worker share during a stretch. All on one thread.
pub(crate) struct Share {
    pub(crate) clock: Clock,
    pub(crate) plan: Arc<Plan>,
    pub(crate) recorder: Rc<RefCell<Recorder>>,
    pub(crate) request_timeout: Duration,
    gauge: Gauge,
    frames: Rc<[Bytes]>,
    next_frame: Cell<usize>,
    halted_ns: Cell<Option<u64>>,
    occupied: Cell<usize>,
    all_left: Notify,
}

impl Share {
    /// Whether a new request may be sent now.
    pub(crate) fn may_send(&self, now: u64) -> bool {
        self.halted_ns.get().is_none() && now < self.plan.end()
    }

    /// The requests in turn.
    pub(crate) fn next_frame(&self) -> Bytes {
        let turn = self.next_frame.get();
        self.next_frame.set(if turn + 1 < self.frames.len() {
            turn + 1
        } else {
            0
        });
        self.frames.get(turn).cloned().unwrap_or_default()
    }

    /// A slot will send no more and has nothing in flight.
    pub(crate) fn leave(&self) {
        let left = self.occupied.get().saturating_sub(1);
        self.occupied.set(left);
        if left == 0 {
            self.all_left.notify_one();
        }
    }
}

/// The life of a worker thread: opens its connections, then obeys until the engine is gone.
pub(crate) fn live(
    brief: &Brief,
    plans: &mut UnboundedReceiver<Arc<Plan>>,
    say: &Sender<(usize, Said)>,
) {
    // A vanished engine needs no answer, here and below.
    let runtime = match Builder::new_current_thread()
        .enable_all()
        .build_local(LocalOptions::default())
    {
        Ok(runtime) => runtime,
        Err(error) => {
            let refusal = start_error(brief.worker, &error);
            let _ = say.send((brief.worker, Said::Started(Err(refusal))));
            return;
        }
    };
    runtime.block_on(async {
        let mut crew = match Crew::assemble(brief).await {
            Ok(crew) => crew,
            Err(error) => {
                let _ = say.send((brief.worker, Said::Started(Err(error))));
                return;
            }
        };
        let _ = say.send((brief.worker, Said::Started(Ok(()))));
        // Waiting here also drives the connections between stretches.
        while let Some(plan) = plans.recv().await {
            let report = crew.obey(plan).await;
            if say
                .send((brief.worker, Said::Done(Box::new(report))))
                .is_err()
            {
                break;
            }
        }
    });
}

fn start_error(worker: usize, cause: &dyn std::fmt::Display) -> LoadError {
    LoadError::Start {
        worker,
        cause: cause.to_string(),
    }
}

/// A worker's connections and what it reuses from stretch to stretch.
struct Crew<T> {
    clock: Clock,
    request_timeout: Duration,
    gauge: Gauge,
    connections: Vec<(T, u32, Rc<Link>)>,
    recorder: Rc<RefCell<Recorder>>,
    frames: Rc<[Bytes]>,
    first_frame: usize,
}

impl Crew<ChannelTransport> {
    async fn assemble(brief: &Brief) -> Result<Self, LoadError> {
        let recorder = Recorder::new(brief.request_timeout)
            .map_err(|error| start_error(brief.worker, &error))?;
        let mut connections = Vec::with_capacity(brief.connections.len());
        for in_flight in &brief.connections {
            let channel = connect(&brief.server, brief.request_timeout).await?;
            let transport = ChannelTransport::new(channel, &brief.server)?;
            connections.push((transport, *in_flight, Rc::new(Link::default())));
        }
        Ok(Self {
            clock: brief.clock,
            request_timeout: brief.request_timeout,
            gauge: brief.gauge.clone(),
            connections,
            recorder: Rc::new(RefCell::new(recorder)),
            frames: brief.frames.iter().map(own).collect(),
            first_frame: brief.worker % brief.frames.len().max(1),
        })
    }
}

fn own(frame: &Bytes) -> Bytes {
    if frame.len() < COPIED_REQUEST {
        Bytes::copy_from_slice(frame)
    } else {
        frame.clone()
    }
}

impl<T: Transport> Crew<T> {
    async fn obey(&mut self, plan: Arc<Plan>) -> Report {
        let slots: usize = self
            .connections
            .iter()
            .map(|(_, in_flight, _)| *in_flight as usize)
            .sum();
        let share = Rc::new(Share {
            clock: self.clock,
            plan,
            recorder: Rc::clone(&self.recorder),
            request_timeout: self.request_timeout,
            gauge: self.gauge.clone(),
            frames: Rc::clone(&self.frames),
            next_frame: Cell::new(self.first_frame),
            halted_ns: Cell::new(None),
            occupied: Cell::new(slots),
            all_left: Notify::new(),
        });
        share.plan.begin(share.clock.now());
        let mut flights = Vec::with_capacity(slots);
        for (transport, in_flight, link) in &self.connections {
            for _ in 0..*in_flight {
                let flight = Rc::new(Flight::new());
                flights.push(Rc::clone(&flight));
                spawn_local(occupy(
                    Rc::clone(&share),
                    flight,
                    Rc::clone(link),
                    transport.clone(),
                ));
            }
        }
        let (interrupted, past_deadline) = supervise(&share, &flights).await;
        // The next stretch goes on with the next request.
        self.first_frame = share.next_frame.get();
        let (parts, totals) = self.recorder.borrow_mut().finish(
            &share.plan,
            share.clock.now(),
            share.halted_ns.get(),
        );
        Report {
            parts,
            totals,
            interrupted,
            past_deadline,
        }
    }
}

/// Watches over the slots until all have left: deadlines, block edges, and the wish to stop.
/// Tells whether the stretch was interrupted and whether it hit its deadline.
async fn supervise(share: &Share, flights: &[Rc<Flight>]) -> (bool, bool) {
    let plan = &share.plan;
    let (mut interrupted, mut past_deadline) = (false, false);
    while share.occupied.get() > 0 {
        let now = share.clock.now();
        {
            let mut recorder = share.recorder.borrow_mut();
            let (completed, latency_ns) = recorder.news();
            share.gauge.add(completed, latency_ns);
            if share.halted_ns.get().is_none() {
                recorder.roll(plan, now);
            }
        }
        if !interrupted && plan.stop.is_set() {
            interrupted = true;
            halt(share, now);
        }
        if now >= plan.deadline_ns {
            past_deadline = true;
            halt(share, now);
        }
        let grace_over = interrupted
            && share
                .halted_ns
                .get()
                .is_some_and(|halted| now >= halted.saturating_add(GRACE_NS));
        for flight in flights {
            flight.sweep(now);
            if past_deadline || grace_over {
                flight.abandon();
            }
        }
        tokio::select! {
            biased;
            () = share.all_left.notified() => {}
            () = tokio::time::sleep_until(next_round(share, now).into()) => {}
        }
    }
    (interrupted, past_deadline)
}

fn halt(share: &Share, now: u64) {
    if share.halted_ns.get().is_none() {
        share.halted_ns.set(Some(now));
    }
}

/// The next sweep, or the next block edge where that is sooner: the worker's CPU time is read
/// there.
fn next_round(share: &Share, now: u64) -> Instant {
    let plan = &share.plan;
    let mut next = now + SWEEP.as_nanos() as u64;
    let start = plan.start();
    if now < start {
        next = next.min(start);
    } else if plan.counting == Counting::Contiguous && plan.block_ns > 0 {
        let into_block = (now - start) % plan.block_ns;
        next = next.min(now + plan.block_ns - into_block);
    }
    if plan.deadline_ns > now {
        next = next.min(plan.deadline_ns);
    }
    share
        .clock
        .instant(next)
        .unwrap_or_else(|| Instant::now() + SWEEP)
}
