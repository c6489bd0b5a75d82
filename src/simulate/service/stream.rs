//! `ModelStreamInfer`: errors come in-band, decoupled requests interleave freely, the others are
//! answered strictly in their order.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::sync::{mpsc, oneshot};
use tonic::codegen::tokio_stream::Stream;
use tonic::{Code, Status, Streaming};

use super::super::core::{Admitted, Client, Core, Ran, Way};
use super::super::spec::Ending;
use super::super::tensors::Outputs;
use super::super::texts::Refusal;
use crate::triton::proto::inference::infer_parameter::ParameterChoice;
use crate::triton::proto::inference::{
    InferParameter, ModelInferRequest, ModelInferResponse, ModelStreamInferResponse,
};

/// Responses that may wait for a slow reader, for each stream.
const BUFFERED: usize = 64;

type Message = Result<ModelStreamInferResponse, Status>;
type Writer = mpsc::Sender<Message>;

/// The stream of responses.
pub(crate) struct Responses(mpsc::Receiver<Message>);

impl Stream for Responses {
    type Item = Message;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Message>> {
        self.0.poll_recv(context)
    }
}

/// Serves one stream. `as_status` makes execution errors end it with a status.
pub(crate) fn serve(
    core: &Arc<Core>,
    client: Arc<dyn Client>,
    requests: Streaming<ModelInferRequest>,
    as_status: bool,
) -> Responses {
    let (writer, reader) = mpsc::channel(BUFFERED);
    tokio::spawn(read(Arc::clone(core), client, requests, as_status, writer));
    Responses(reader)
}

/// Takes requests until the client ends its side; the stream ends when the last answer is out.
async fn read(
    core: Arc<Core>,
    client: Arc<dyn Client>,
    mut requests: Streaming<ModelInferRequest>,
    as_status: bool,
    writer: Writer,
) {
    // Done when every earlier request that is answered in order has been.
    let mut earlier: Option<oneshot::Receiver<()>> = None;
    while let Ok(Some(request)) = requests.message().await {
        let admitted = core.admit(&request, Way::Stream, client.as_ref());
        let call = Call {
            core: Arc::clone(&core),
            writer: writer.clone(),
            // Only these are needed later; the tensors are let go.
            name: request.model_name,
            version: request.model_version,
            id: request.id,
            as_status,
        };
        let decoupled = core
            .models
            .get(&call.name)
            .is_some_and(|model| model.spec.decoupled);
        if decoupled {
            tokio::spawn(call.answer(admitted, None));
            continue;
        }
        let (done, next) = oneshot::channel();
        let turn = Turn {
            earlier: earlier.replace(next),
            done,
        };
        tokio::spawn(call.answer(admitted, Some(turn)));
    }
}

/// The place of a request among those that are answered in order.
struct Turn {
    earlier: Option<oneshot::Receiver<()>>,
    done: oneshot::Sender<()>,
}

/// One request of a stream.
struct Call {
    core: Arc<Core>,
    writer: Writer,
    name: String,
    version: String,
    id: String,
    as_status: bool,
}

impl Call {
    async fn answer(self, admitted: Result<Admitted, Refusal>, turn: Option<Turn>) {
        // A client that is gone cancels what it asked for.
        let writer = self.writer.clone();
        tokio::select! {
            () = writer.closed() => {}
            () = self.answer_fully(admitted, turn) => {}
        }
    }

    async fn answer_fully(&self, admitted: Result<Admitted, Refusal>, turn: Option<Turn>) {
        let (mut earlier, done) = turn.map_or((None, None), |turn| (turn.earlier, Some(turn.done)));
        let mut admitted = match admitted {
            Ok(admitted) => admitted,
            Err(refusal) => {
                wait_for(&mut earlier).await;
                self.send(Ok(self.refused(refusal))).await;
                drop(done);
                return;
            }
        };
        let ran = admitted.run(&self.core).await;
        wait_for(&mut earlier).await;
        let status = match ran {
            Err(refusal) => {
                let code = refusal.code;
                let message = if self.as_status && code == Code::Internal {
                    Err(refusal.into())
                } else {
                    Ok(self.failed(refusal))
                };
                self.send(message).await;
                code
            }
            Ok(ran) if admitted.model.spec.decoupled => {
                self.responses(&admitted, ran).await;
                Code::Ok
            }
            Ok(ran) => {
                let response = self.response(&admitted.version, ran.outputs, true);
                self.send(Ok(data(response))).await;
                Code::Ok
            }
        };
        drop(done);
        admitted.answered(status);
    }

    /// The responses of a decoupled model, each at its time.
    async fn responses(&self, admitted: &Admitted, ran: Ran) {
        let plan = &admitted.model.spec.response;
        for index in 0..plan.count {
            self.core
                .pacer
                .sleep_until(ran.times.end + plan.delay * index)
                .await;
            let last = index + 1 == plan.count && plan.ending == Ending::LastData;
            let response = self.response(&admitted.version, ran.outputs.clone(), last);
            self.send(Ok(data(response))).await;
        }
        let told = plan.ending == Ending::LastData && plan.count > 0;
        if admitted.empty_final && !told {
            // The version is what the client sent, as Triton has it here.
            let response = self.response(&self.version, Outputs::default(), true);
            self.send(Ok(data(response))).await;
        }
    }

    fn response(&self, version: &str, outputs: Outputs, last: bool) -> ModelInferResponse {
        ModelInferResponse {
            model_name: self.name.clone(),
            model_version: version.to_owned(),
            id: self.id.clone(),
            parameters: final_flag(last),
            outputs: outputs.tensors,
            raw_output_contents: outputs.raw,
        }
    }

    /// Not let in: only the id is set.
    fn refused(&self, refusal: Refusal) -> ModelStreamInferResponse {
        let response = ModelInferResponse {
            id: self.id.clone(),
            ..ModelInferResponse::default()
        };
        ModelStreamInferResponse {
            error_message: refusal.text,
            infer_response: Some(response),
        }
    }

    /// Failed after it was let in: the final flag is there too.
    fn failed(&self, refusal: Refusal) -> ModelStreamInferResponse {
        ModelStreamInferResponse {
            error_message: refusal.text,
            infer_response: Some(self.response(&self.version, Outputs::default(), true)),
        }
    }

    async fn send(&self, message: Message) {
        // A reader that is gone is seen by `answer`.
        let _ = self.writer.send(message).await;
    }
}

async fn wait_for(earlier: &mut Option<oneshot::Receiver<()>>) {
    if let Some(earlier) = earlier.take() {
        // Done is told by dropping the sender.
        let _ = earlier.await;
    }
}

fn data(response: ModelInferResponse) -> ModelStreamInferResponse {
    ModelStreamInferResponse {
        error_message: String::new(),
        infer_response: Some(response),
    }
}

fn final_flag(last: bool) -> HashMap<String, InferParameter> {
    let flag = InferParameter {
        parameter_choice: Some(ParameterChoice::BoolParam(last)),
    };
    HashMap::from([("triton_final_response".to_owned(), flag)])
}
