use tokio::sync::mpsc;
use tonic::Code;
use tonic::Streaming;
use tonic::codegen::tokio_stream::Stream;

use super::*;
use crate::simulate::{Ending, ErrorKind, FaultSpec, ResponseSpec};
use crate::triton::proto::inference::ModelStreamInferResponse;

/// Requests sent through a channel.
struct Outgoing(mpsc::UnboundedReceiver<ModelInferRequest>);

impl Stream for Outgoing {
    type Item = ModelInferRequest;

    fn poll_next(
        mut self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<ModelInferRequest>> {
        self.0.poll_recv(context)
    }
}

struct Open {
    requests: mpsc::UnboundedSender<ModelInferRequest>,
    responses: Streaming<ModelStreamInferResponse>,
}

async fn open(client: &mut Client) -> Open {
    let (requests, receiver) = mpsc::unbounded_channel();
    let responses = client
        .model_stream_infer(Outgoing(receiver))
        .await
        .expect("opens");
    Open {
        requests,
        responses: responses.into_inner(),
    }
}

impl Open {
    fn send(&self, id: &str, mut request: ModelInferRequest) {
        id.clone_into(&mut request.id);
        self.requests.send(request).expect("open");
    }

    /// Ends the client's side and takes all that comes.
    async fn finish(self) -> Result<Vec<Seen>, tonic::Status> {
        let Self {
            requests,
            mut responses,
        } = self;
        drop(requests);
        let mut seen = Vec::new();
        while let Some(message) = responses.message().await? {
            seen.push(Seen::from(message));
        }
        Ok(seen)
    }
}

/// What a message says: id, final flag, outputs, error, model, version.
#[derive(Debug, Clone, PartialEq)]
struct Seen {
    id: String,
    last: Option<bool>,
    outputs: usize,
    error: String,
    model: String,
    version: String,
}

impl From<ModelStreamInferResponse> for Seen {
    fn from(message: ModelStreamInferResponse) -> Self {
        let response = message.infer_response.expect("always set");
        assert_eq!(response.outputs.len(), response.raw_output_contents.len());
        let last = response
            .parameters
            .get("triton_final_response")
            .map(|flag| {
                assert!(matches!(
                    flag.parameter_choice,
                    Some(ParameterChoice::BoolParam(_))
                ));
                flag.parameter_choice == Some(ParameterChoice::BoolParam(true))
            });
        Self {
            id: response.id,
            last,
            outputs: response.outputs.len(),
            error: message.error_message,
            model: response.model_name,
            version: response.model_version,
        }
    }
}

fn text_model(name: &str, count: u32, ending: Ending) -> ModelSpec {
    let mut model = ModelSpec::new(name)
        .input("text_input", Wire::Bytes, &[1])
        .output("text_output", Wire::Bytes, &[-1])
        .latency(constant(1));
    model.decoupled = true;
    model.response = ResponseSpec {
        count,
        delay: MS,
        ending,
    };
    model
}

fn prompt(model: &str, empty_final: bool) -> ModelInferRequest {
    let ask = ModelInferRequest {
        model_name: model.to_owned(),
        inputs: vec![tensor("text_input", "BYTES", &[1])],
        raw_input_contents: vec![Bytes::from_static(b"\x02\0\0\0hi")],
        ..ModelInferRequest::default()
    };
    if !empty_final {
        return ask;
    }
    with_parameter(
        ask,
        "triton_enable_empty_final_response",
        ParameterChoice::BoolParam(true),
    )
}

#[tokio::test]
async fn both_endings_of_a_decoupled_request() {
    let models = vec![
        text_model("flagged", 3, Ending::LastData),
        text_model("separate", 3, Ending::Separate),
        text_model("silent", 0, Ending::LastData),
    ];
    let running = start(models);
    let mut client = connect(&running).await;
    // (model, opted in) and the flag and outputs of each message.
    let table: [(_, _, &[_]); 6] = [
        ("flagged", false, &[(false, 1), (false, 1), (true, 1)]),
        ("flagged", true, &[(false, 1), (false, 1), (true, 1)]),
        ("separate", false, &[(false, 1), (false, 1), (false, 1)]),
        (
            "separate",
            true,
            &[(false, 1), (false, 1), (false, 1), (true, 0)],
        ),
        ("silent", false, &[]),
        ("silent", true, &[(true, 0)]),
    ];
    for (model, opted_in, expected) in table {
        let stream = open(&mut client).await;
        stream.send("q", prompt(model, opted_in));
        let seen = stream.finish().await.expect("ends with OK");
        let flags: Vec<_> = seen
            .iter()
            .map(|m| (m.last.expect("set"), m.outputs))
            .collect();
        assert_eq!(flags, expected, "{model}, opted in: {opted_in}");
        for message in &seen {
            assert_eq!((message.id.as_str(), message.model.as_str()), ("q", model));
            let version = if message.outputs == 0 { "" } else { "1" };
            assert_eq!(message.version, version);
        }
    }
    // One request is one success, whatever the number of responses.
    let stats = statistics(&mut client, "flagged", "1").await;
    assert_eq!(counts(&stats), [2, 0, 2, 2, 0, 0, 2, 2]);
}

#[tokio::test]
async fn decoupled_requests_interleave() {
    let mut model = text_model("m", 5, Ending::LastData);
    model.response.delay = MS * 20;
    model.instances = 2;
    let running = start(vec![model]);
    let mut client = connect(&running).await;
    let stream = open(&mut client).await;
    stream.send("a", prompt("m", true));
    stream.send("b", prompt("m", true));
    let seen = stream.finish().await.expect("ends with OK");
    let of = |id: &str| seen.iter().filter(|message| message.id == id).count();
    assert_eq!((of("a"), of("b")), (5, 5));
    let first_b = seen
        .iter()
        .position(|message| message.id == "b")
        .expect("seen");
    let last_a = seen
        .iter()
        .rposition(|message| message.id == "a")
        .expect("seen");
    assert!(first_b < last_a, "{seen:?}");
}

#[tokio::test]
async fn other_requests_are_answered_in_their_order() {
    let models = vec![
        unit("slow").latency(constant(60)),
        unit("fast").latency(constant(1)),
    ];
    let running = start(models);
    let mut client = connect(&running).await;
    let stream = open(&mut client).await;
    stream.send("1", request("slow", 1));
    stream.send("2", request("fast", 1));
    stream.send("3", request("unknown", 1));
    stream.send("4", request("fast", 1));
    let seen = stream.finish().await.expect("ends with OK");
    let ids: Vec<_> = seen.iter().map(|message| message.id.as_str()).collect();
    assert_eq!(ids, ["1", "2", "3", "4"]);
    assert_eq!(seen[0].last, Some(true));
    // Refused at submission: only the id is set.
    assert_eq!(
        seen[2].error,
        "Request for unknown model: 'unknown' is not found"
    );
    assert_eq!(
        (seen[2].last, seen[2].model.as_str(), seen[2].outputs),
        (None, "", 0)
    );
}

#[tokio::test]
async fn errors_after_acceptance_carry_the_final_flag() {
    let model = unit("m").fault(
        FaultSpec::error(ErrorKind::ModelError)
            .message("no")
            .every(2),
    );
    let running = start(vec![model]);
    let mut client = connect(&running).await;
    let stream = open(&mut client).await;
    for id in ["1", "2", "3"] {
        stream.send(id, request("m", 1));
    }
    let seen = stream.finish().await.expect("the status stays OK");
    assert_eq!(seen[1].error, "no");
    assert_eq!(
        (seen[1].last, seen[1].model.as_str(), seen[1].id.as_str()),
        (Some(true), "m", "2")
    );
    assert!(seen[0].error.is_empty() && seen[2].error.is_empty());
}

#[tokio::test]
async fn a_client_can_have_execution_errors_end_the_stream() {
    let model = unit("m").fault(FaultSpec::error(ErrorKind::ModelError).message("no"));
    let running = start(vec![model]);
    let mut client = connect(&running).await;
    let (requests, receiver) = mpsc::unbounded_channel();
    let mut call = tonic::Request::new(Outgoing(receiver));
    call.metadata_mut()
        .insert("triton_grpc_error", "true".parse().expect("valid"));
    let responses = client
        .model_stream_infer(call)
        .await
        .expect("opens")
        .into_inner();
    let stream = Open {
        requests,
        responses,
    };
    stream.send("1", request("m", 1));
    let status = stream.finish().await.expect_err("ends with the error");
    assert_eq!((status.code(), status.message()), (Code::Internal, "no"));
}
