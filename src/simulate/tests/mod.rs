//! The server over real connections on 127.0.0.1.

mod admin;
mod errors;
mod faults;
mod infer;
mod life;
mod requests;
mod stream;

use std::time::Duration;

use bytes::Bytes;
use tonic::transport::Channel;

use super::{LatencySpec, ModelSpec, Running, Server, SimulateSpec, Wire};
use crate::triton::proto::inference::grpc_inference_service_client::GrpcInferenceServiceClient;
use crate::triton::proto::inference::infer_parameter::ParameterChoice;
use crate::triton::proto::inference::model_infer_request::InferInputTensor;
use crate::triton::proto::inference::{
    InferParameter, InferStatistics, ModelInferRequest, ModelStatistics, ModelStatisticsRequest,
};

type Client = GrpcInferenceServiceClient<Channel>;

const MS: Duration = Duration::from_millis(1);

fn start(models: Vec<ModelSpec>) -> Running {
    Server::start(SimulateSpec {
        models,
        ..SimulateSpec::on_free_port()
    })
    .expect("starts")
}

async fn connect(running: &Running) -> Client {
    Client::connect(format!("http://{}", running.url()))
        .await
        .expect("connects")
        .max_decoding_message_size(64 << 20)
}

/// A model that takes and gives one FP32, in batches of up to 8.
fn unit(name: &str) -> ModelSpec {
    let mut model =
        ModelSpec::new(name)
            .input("in", Wire::Fp32, &[1])
            .output("out", Wire::Fp32, &[1]);
    model.max_batch_size = 8;
    model
}

fn constant(milliseconds: u64) -> LatencySpec {
    LatencySpec::constant(Duration::from_millis(milliseconds))
}

/// One input of a request.
fn tensor(name: &str, datatype: &str, shape: &[i64]) -> InferInputTensor {
    InferInputTensor {
        name: name.to_owned(),
        datatype: datatype.to_owned(),
        shape: shape.to_vec(),
        ..InferInputTensor::default()
    }
}

/// A request to a [`unit`] model.
fn request(model: &str, batch: u32) -> ModelInferRequest {
    ModelInferRequest {
        model_name: model.to_owned(),
        id: "r1".to_owned(),
        inputs: vec![tensor("in", "FP32", &[i64::from(batch), 1])],
        raw_input_contents: vec![Bytes::from(vec![0; 4 * batch as usize])],
        ..ModelInferRequest::default()
    }
}

fn with_parameter(
    mut request: ModelInferRequest,
    key: &str,
    choice: ParameterChoice,
) -> ModelInferRequest {
    let parameter = InferParameter {
        parameter_choice: Some(choice),
    };
    request.parameters.insert(key.to_owned(), parameter);
    request
}

async fn statistics(client: &mut Client, name: &str, version: &str) -> ModelStatistics {
    let request = ModelStatisticsRequest {
        name: name.to_owned(),
        version: version.to_owned(),
    };
    let response = client
        .model_statistics(request)
        .await
        .expect("readable")
        .into_inner();
    assert_eq!(response.model_stats.len(), 1);
    response.model_stats.into_iter().next().expect("one")
}

/// Counts of success, fail, queue, compute, cache hit, cache miss; inferences and executions.
fn counts(stats: &ModelStatistics) -> [u64; 8] {
    let inference: &InferStatistics = stats.inference_stats.as_ref().expect("always set");
    let count = |duration: &Option<_>| -> u64 {
        let duration: &Option<crate::triton::proto::inference::StatisticDuration> = duration;
        duration.as_ref().expect("always set").count
    };
    assert_eq!(
        count(&inference.compute_input),
        count(&inference.compute_infer)
    );
    assert_eq!(
        count(&inference.compute_output),
        count(&inference.compute_infer)
    );
    [
        count(&inference.success),
        count(&inference.fail),
        count(&inference.queue),
        count(&inference.compute_infer),
        count(&inference.cache_hit),
        count(&inference.cache_miss),
        stats.inference_count,
        stats.execution_count,
    ]
}
