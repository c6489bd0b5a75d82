use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use tonic::Code;

use super::super::log::Row;
use super::Core;
use crate::triton::proto::inference::ModelInferRequest;

/// Goes with a request from its arrival to its answer: while it lives the request is in flight,
/// and when it is dropped the request is logged.
pub(crate) struct Ticket {
    core: Arc<Core>,
    row: Option<Row>,
}

impl Ticket {
    pub(crate) fn new(core: &Arc<Core>, request: &ModelInferRequest, arrival: Instant) -> Self {
        core.in_flight.fetch_add(1, Ordering::SeqCst);
        let row = core.log.as_ref().map(|_| Row {
            ordinal: 0,
            id: request.id.clone(),
            model: request.model_name.clone(),
            version: request.model_version.clone(),
            arrival,
            start: None,
            end: arrival,
            // What a request is that nobody answers.
            status: Code::Cancelled,
        });
        Self {
            core: Arc::clone(core),
            row,
        }
    }

    pub(crate) fn numbered(&mut self, ordinal: u64, version: &str) {
        if let Some(row) = &mut self.row {
            row.ordinal = ordinal;
            version.clone_into(&mut row.version);
        }
    }

    pub(crate) fn started(&mut self, start: Instant) {
        if let Some(row) = &mut self.row {
            row.start = Some(start);
        }
    }

    pub(crate) fn answered(&mut self, status: Code) {
        if let Some(row) = &mut self.row {
            row.status = status;
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if let (Some(mut row), Some(log)) = (self.row.take(), &self.core.log) {
            row.end = Instant::now();
            log.row(row);
        }
        self.core.in_flight.fetch_sub(1, Ordering::SeqCst);
    }
}
