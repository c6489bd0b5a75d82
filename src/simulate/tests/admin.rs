use tonic::Code;

use super::*;
use crate::simulate::{Batching, ModelControl};
use crate::triton::proto::health::HealthCheckRequest;
use crate::triton::proto::health::health_check_response::ServingStatus;
use crate::triton::proto::health::health_client::HealthClient;
use crate::triton::proto::inference::model_config::SchedulingChoice;
use crate::triton::proto::inference::{
    DataType, ModelConfigRequest, ModelMetadataRequest, ModelReadyRequest, RepositoryIndexRequest,
    RepositoryModelLoadRequest, RepositoryModelUnloadRequest, ServerLiveRequest,
    ServerMetadataRequest, ServerReadyRequest,
};

#[tokio::test]
async fn the_built_in_server_describes_itself_and_its_models() {
    let spec = SimulateSpec {
        listen: SimulateSpec::on_free_port().listen,
        ..SimulateSpec::builtin()
    };
    let running = Server::start(spec).expect("starts");
    let mut client = connect(&running).await;

    assert!(
        client
            .server_live(ServerLiveRequest {})
            .await
            .expect("live")
            .into_inner()
            .live
    );
    assert!(
        client
            .server_ready(ServerReadyRequest {})
            .await
            .expect("ready")
            .into_inner()
            .ready
    );
    let server = client
        .server_metadata(ServerMetadataRequest {})
        .await
        .expect("ok")
        .into_inner();
    assert_eq!(
        (server.name.as_str(), server.version.as_str()),
        ("triton", "2.51.0")
    );
    assert!(server.extensions.contains(&"statistics".to_owned()));

    let name = "yolov9".to_owned();
    let of = ModelMetadataRequest {
        name: name.clone(),
        version: String::new(),
    };
    let metadata = client.model_metadata(of).await.expect("known").into_inner();
    assert_eq!(metadata.versions, ["1", "2"]);
    assert_eq!(metadata.inputs[0].shape, [-1, 3, 640, 640]);
    assert_eq!(metadata.outputs[0].datatype, "FP32");
    let of = ModelConfigRequest {
        name,
        version: "1".to_owned(),
    };
    let config = client
        .model_config(of)
        .await
        .expect("known")
        .into_inner()
        .config
        .expect("set");
    assert_eq!(config.max_batch_size, 8);
    assert_eq!(config.input[0].dims, [3, 640, 640]);
    assert_eq!(config.input[0].data_type, i32::from(DataType::TypeFp32));
    assert!(matches!(
        config.scheduling_choice,
        Some(SchedulingChoice::DynamicBatching(_))
    ));
    let of = ModelConfigRequest {
        name: "text".to_owned(),
        version: String::new(),
    };
    let config = client
        .model_config(of)
        .await
        .expect("known")
        .into_inner()
        .config
        .expect("set");
    assert!(config.model_transaction_policy.expect("set").decoupled);
    assert_eq!(config.output[0].data_type, i32::from(DataType::TypeString));

    let mut health = HealthClient::connect(format!("http://{}", running.url()))
        .await
        .expect("up");
    let check = HealthCheckRequest {
        service: "anything".to_owned(),
    };
    let status = health.check(check).await.expect("ok").into_inner().status;
    assert_eq!(status, i32::from(ServingStatus::Serving));
}

#[tokio::test]
async fn models_are_loaded_unloaded_and_indexed() {
    let mut later = unit("later");
    later.loaded = false;
    let mut broken = unit("broken");
    broken.load_error = Some("no memory".to_owned());
    let running = start(vec![unit("now"), later, broken]);
    let mut client = connect(&running).await;
    let index = async |client: &mut Client, ready| {
        let request = RepositoryIndexRequest {
            repository_name: String::new(),
            ready,
        };
        let models = client
            .repository_index(request)
            .await
            .expect("ok")
            .into_inner()
            .models;
        let text = |m: &_| {
            let m: &crate::triton::proto::inference::repository_index_response::ModelIndex = m;
            format!("{}/{}/{}/{}", m.name, m.version, m.state, m.reason)
        };
        models.iter().map(text).collect::<Vec<_>>()
    };
    let ready = async |client: &mut Client, name: &str| {
        let request = ModelReadyRequest {
            name: name.to_owned(),
            version: String::new(),
        };
        client
            .model_ready(request)
            .await
            .expect("answers")
            .into_inner()
            .ready
    };
    let load = |name: &str| RepositoryModelLoadRequest {
        model_name: name.to_owned(),
        ..RepositoryModelLoadRequest::default()
    };
    let unload = |name: &str| RepositoryModelUnloadRequest {
        model_name: name.to_owned(),
        ..RepositoryModelUnloadRequest::default()
    };

    assert_eq!(
        index(&mut client, false).await,
        ["broken/1/UNAVAILABLE/no memory", "later///", "now/1/READY/"]
    );
    assert_eq!(index(&mut client, true).await, ["now/1/READY/"]);
    assert!(!ready(&mut client, "later").await);
    assert!(!ready(&mut client, "nowhere").await);
    client
        .repository_model_load(load("later"))
        .await
        .expect("loads");
    assert!(ready(&mut client, "later").await);
    client.model_infer(request("later", 1)).await.expect("runs");

    client
        .repository_model_unload(unload("now"))
        .await
        .expect("unloads");
    client
        .repository_model_unload(unload("nowhere"))
        .await
        .expect("also for unknown models");
    assert!(!ready(&mut client, "now").await);
    assert_eq!(
        index(&mut client, false).await,
        [
            "broken/1/UNAVAILABLE/no memory",
            "later/1/READY/",
            "now/1/UNAVAILABLE/unloaded"
        ]
    );

    let failed = client
        .repository_model_load(load("broken"))
        .await
        .expect_err("cannot load");
    assert_eq!(failed.code(), Code::InvalidArgument);
    assert_eq!(
        failed.message(),
        "load failed for model 'broken': version 1 is at UNAVAILABLE state: no memory;\n"
    );
    let unknown = client
        .repository_model_load(load("nowhere"))
        .await
        .expect_err("unknown");
    assert_eq!(unknown.code(), Code::Internal);

    let request = RepositoryIndexRequest {
        repository_name: "r".to_owned(),
        ready: false,
    };
    let refused = client
        .repository_index(request)
        .await
        .expect_err("no repositories");
    assert_eq!(refused.code(), Code::Unimplemented);
    assert_eq!(
        refused.message(),
        "'repository_name' specification is not supported"
    );
}

#[tokio::test]
async fn without_explicit_control_load_and_unload_are_refused() {
    let spec = SimulateSpec {
        model_control: ModelControl::None,
        models: vec![unit("m")],
        ..SimulateSpec::on_free_port()
    };
    let running = Server::start(spec).expect("starts");
    let mut client = connect(&running).await;
    let request = RepositoryModelLoadRequest::default();
    let refused = client
        .repository_model_load(request)
        .await
        .expect_err("refused");
    assert_eq!(refused.code(), Code::Unavailable);
    assert_eq!(
        refused.message(),
        "explicit model load / unload is not allowed if polling is enabled"
    );
}

#[tokio::test]
async fn queue_limits_are_shown_in_the_configuration() {
    let mut model = unit("m");
    model.max_queue_size = 5;
    model.queue_timeout = MS * 7;
    model.dynamic_batching = Some(Batching {
        max_queue_delay: MS,
        preferred_batch_size: vec![4, 8],
    });
    let running = start(vec![model]);
    let mut client = connect(&running).await;
    let of = ModelConfigRequest {
        name: "m".to_owned(),
        version: String::new(),
    };
    let config = client
        .model_config(of)
        .await
        .expect("known")
        .into_inner()
        .config
        .expect("set");
    let Some(SchedulingChoice::DynamicBatching(batching)) = config.scheduling_choice else {
        panic!("dynamic batching is on");
    };
    let policy = batching.default_queue_policy.expect("limited");
    assert_eq!(batching.max_queue_delay_microseconds, 1000);
    assert_eq!(batching.preferred_batch_size, [4, 8]);
    assert_eq!(
        (policy.max_queue_size, policy.default_timeout_microseconds),
        (5, 7000)
    );
}

#[tokio::test]
async fn statistics_know_models_and_versions() {
    let running = start(vec![unit("a").version(1, None).version(3, None), unit("b")]);
    let mut client = connect(&running).await;
    let ask = |name: &str, version: &str| ModelStatisticsRequest {
        name: name.to_owned(),
        version: version.to_owned(),
    };
    let all = client
        .model_statistics(ask("", ""))
        .await
        .expect("all")
        .into_inner()
        .model_stats;
    let names: Vec<_> = all
        .iter()
        .map(|m| (m.name.as_str(), m.version.as_str()))
        .collect();
    assert_eq!(names, [("a", "1"), ("a", "3"), ("b", "1")]);
    for (name, version, text) in [
        ("c", "", "requested model 'c' is not available"),
        (
            "a",
            "2",
            "requested model version is not available for model 'a'",
        ),
    ] {
        let refused = client
            .model_statistics(ask(name, version))
            .await
            .expect_err(text);
        assert_eq!(
            (refused.code(), refused.message()),
            (Code::InvalidArgument, text)
        );
    }
}
