use std::sync::Arc;
use std::time::{Duration, Instant};

use tonic::Code;

use super::super::faults::Strike;
use super::super::scheduler::{Finished, Submitted, Task, Times};
use super::super::spec::ErrorKind;
use super::super::tensors::Outputs;
use super::super::texts::{self, Refusal};
use super::super::validate::{Accepted, validate};
use super::state::Found;
use super::ticket::Ticket;
use super::{Core, Model};
use crate::triton::proto::inference::ModelInferRequest;

/// The connection on which a request came.
pub(crate) trait Client: Send + Sync {
    /// Closes it without a word.
    fn disconnect(&self);
}

/// How a request came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    Unary,
    Stream,
}

/// A request that was let in.
pub(crate) struct Admitted {
    pub(crate) model: Arc<Model>,
    pub(crate) version: String,
    pub(crate) empty_final: bool,
    request: Accepted,
    strike: Strike,
    submitted: Option<Submitted>,
    cache_key: Option<u64>,
    failure: Option<Refusal>,
    ticket: Ticket,
}

/// What to answer with.
pub(crate) struct Ran {
    pub(crate) outputs: Outputs,
    pub(crate) times: Times,
}

impl Core {
    /// Lets a request in, or says why not. What it does is done when this returns; the answer may
    /// take longer.
    pub(crate) fn admit(
        self: &Arc<Self>,
        request: &ModelInferRequest,
        way: Way,
        client: &dyn Client,
    ) -> Result<Admitted, Refusal> {
        let arrival = Instant::now();
        let mut ticket = Ticket::new(self, request, arrival);
        let admitted = self.try_admit(request, way, client, arrival, &mut ticket);
        match admitted {
            Ok(admitted) => Ok(admitted.with(ticket)),
            Err(refusal) => {
                ticket.answered(refusal.code);
                Err(refusal)
            }
        }
    }

    fn try_admit(
        &self,
        request: &ModelInferRequest,
        way: Way,
        client: &dyn Client,
        arrival: Instant,
        ticket: &mut Ticket,
    ) -> Result<Half, Refusal> {
        if !self.is_ready() {
            return Err(texts::server_not_ready());
        }
        let found = self.find(&request.model_name, &request.model_version)?;
        let version = found.version()?;
        let model = &found.model;
        if way == Way::Unary && model.spec.decoupled {
            return Err(texts::decoupled_over_unary());
        }
        let accepted = validate(&model.spec, request)?;
        if self.is_stopping() {
            return Err(texts::stopping().of_request(&request.id));
        }
        let ordinal = model.next_request();
        ticket.numbered(ordinal, &version.text);
        let strike = model
            .faults
            .strike(ordinal, found.number, self.epoch.elapsed());
        if strike.reload {
            model.restart();
        }
        if let Some(length) = strike.stall {
            version.scheduler.stall(arrival, length);
        }
        if strike.disconnect {
            client.disconnect();
        }
        let mut half = Half {
            version: version.text.clone(),
            request: accepted,
            submitted: None,
            cache_key: None,
            failure: None,
            strike,
            found,
        };
        if half.strike.disconnect || half.strike.hang {
            return Ok(half);
        }
        half.submit(request, arrival)?;
        Ok(half)
    }
}

/// An admitted request without its ticket.
struct Half {
    found: Found,
    version: String,
    request: Accepted,
    strike: Strike,
    submitted: Option<Submitted>,
    cache_key: Option<u64>,
    failure: Option<Refusal>,
}

impl Half {
    fn submit(&mut self, request: &ModelInferRequest, arrival: Instant) -> Result<(), Refusal> {
        let version = self.found.version()?;
        let model = &self.found.model;
        let mut fails = false;
        if let Some((kind, message)) = &self.strike.error {
            let refusal = texts::of_fault(
                *kind,
                message.as_deref(),
                &model.spec.name,
                &version.text,
                &request.id,
            );
            match kind {
                ErrorKind::Execution | ErrorKind::ModelError => {
                    fails = *kind == ErrorKind::Execution;
                    self.failure = Some(refusal);
                }
                ErrorKind::QueueTimeout => {
                    version
                        .counters
                        .failure(version.counters.life(), Duration::ZERO);
                    return Err(refusal);
                }
                _ => return Err(refusal),
            }
        }
        if let Some((key, known)) = model.cached(self.found.number, &self.request) {
            if known && self.failure.is_none() {
                let counters = &version.counters;
                counters.cache_hit(counters.life(), arrival.elapsed());
                self.submitted = Some(Submitted::Ran(Times {
                    start: arrival,
                    end: arrival,
                }));
                return Ok(());
            }
            self.cache_key = Some(key);
        }
        let task = Task {
            arrival,
            batch: self.request.batch,
            fails,
            cache_missed: self.cache_key.is_some(),
        };
        let submitted = version.scheduler.submit(task);
        self.submitted = Some(submitted.map_err(|refusal| refusal.of_request(&request.id))?);
        Ok(())
    }

    fn with(self, ticket: Ticket) -> Admitted {
        Admitted {
            model: self.found.model,
            version: self.version,
            empty_final: self.request.empty_final,
            request: self.request,
            strike: self.strike,
            submitted: self.submitted,
            cache_key: self.cache_key,
            failure: self.failure,
            ticket,
        }
    }
}

impl Admitted {
    /// Waits until the request has run. Dropping this cancels the request while it is queued.
    pub(crate) async fn run(&mut self, core: &Core) -> Result<Ran, Refusal> {
        let result = self.wait(core).await;
        if let Err(refusal) = &result {
            self.ticket.answered(refusal.code);
        }
        result
    }

    async fn wait(&mut self, core: &Core) -> Result<Ran, Refusal> {
        let times = match self.submitted.take() {
            // Hangs: only a cancelled call or the end of the server ends it.
            None => std::future::pending().await,
            Some(Submitted::Ran(times)) => times,
            Some(Submitted::Waiting(waiting)) => match waiting.await {
                Ok(Finished::Ran(times)) => times,
                Ok(Finished::TimedOut) => return Err(texts::queue_timeout()),
                // The pacer has stopped.
                Err(_) => return Err(texts::server_exiting()),
            },
        };
        self.ticket.started(times.start);
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        if let Some(key) = self.cache_key {
            self.model.remember(key);
        }
        if self.strike.empty_outputs {
            return Ok(Ran {
                outputs: Outputs::default(),
                times,
            });
        }
        let mut outputs = core.filler.outputs(&self.model.spec, &self.request)?;
        if self.strike.wrong_size {
            outputs.shorten();
        }
        Ok(Ran { outputs, times })
    }

    /// The request is over, with this status.
    pub(crate) fn answered(mut self, status: Code) {
        self.ticket.answered(status);
    }
}
