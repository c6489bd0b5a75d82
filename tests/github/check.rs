//! `check --github` against the simulated server.

use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use serde_json::json;
use wiremock::MockServer;

use crate::job::{Job, bot, repository, written};

/// Version 2 takes ten times as long as version 1.
const SERVER: &str = "schema = 1
[[model]]
name = \"m\"
instances = 8
[[model.input]]
name = \"x\"
datatype = \"FP32\"
dims = [4]
[[model.output]]
name = \"y\"
datatype = \"FP32\"
dims = [4]
[[model.version]]
number = 1
latency = { base = \"4ms\" }
[[model.version]]
number = 2
latency = { base = \"40ms\" }
";

/// The simulated server, ended with the test.
struct Simulated {
    child: Child,
    url: String,
}

impl Simulated {
    fn start(folder: &Path) -> Self {
        let file = folder.join("port");
        let config = folder.join("server.toml");
        std::fs::write(&config, SERVER).expect("written");
        let child = Command::new(env!("CARGO_BIN_EXE_triton-gate"))
            .args(["simulate", "--listen", "127.0.0.1:0", "--port-file"])
            .arg(&file)
            .arg("--config")
            .arg(&config)
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .spawn()
            .expect("starts");
        let mut simulated = Self {
            child,
            url: String::new(),
        };
        let begun = Instant::now();
        while simulated.url.is_empty() {
            assert!(
                begun.elapsed() < Duration::from_mins(1),
                "the simulated server did not start"
            );
            std::thread::sleep(Duration::from_millis(20));
            let text = std::fs::read_to_string(&file).unwrap_or_default();
            if let Ok(port) = text.trim().parse::<u16>() {
                simulated.url = format!("127.0.0.1:{port}");
            }
        }
        simulated
    }
}

impl Drop for Simulated {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[tokio::test]
async fn a_check_publishes_itself_and_keeps_its_exit_code_when_github_fails() {
    let github = repository(json!([])).await;
    let broken = MockServer::start().await;
    for (server, posted) in [(&github, true), (&broken, false)] {
        let job = Job::of_pull_request(server);
        let simulated = Simulated::start(job.folder.path());
        let thresholds = job.path("vision.toml");
        std::fs::write(
            &thresholds,
            "schema = 1\n[[scenario]]\nname = \"missing-c1\"\nmodel = \"no-such-model\"\n\
             concurrency = 1\n",
        )
        .expect("written");
        let results = job.path("results");
        let answer = job.run(&[
            "check",
            "-c",
            thresholds.to_str().expect("a name"),
            "--url",
            &simulated.url,
            "--environment",
            "sim",
            "--baselines",
            job.path("baselines").to_str().expect("a name"),
            "--results",
            results.to_str().expect("a name"),
            "--lock",
            &format!("test-{}-{posted}", std::process::id()),
            "--github",
            "--comment-id",
            "here",
        ]);
        let code = answer.code.expect("a code");
        assert!(matches!(code, 3 | 5), "{code}: {}", answer.err);
        assert!(
            answer.out.contains("\n::error title=missing-c1"),
            "{}",
            answer.out
        );
        assert_eq!(job.output("exit-code"), Some(code.to_string()));
        let report = job.output("report-path").expect("an output");
        let report = std::fs::read_to_string(report).expect("the report is kept");
        assert!(job.summary().contains(report.trim_end()));
        assert!(Path::new(&job.output("result-path").expect("an output")).exists());
        if posted {
            assert!(written(server).await[0].2.contains(report.trim_end()));
        } else {
            assert!(
                answer.err.contains("warning: no comment: "),
                "{}",
                answer.err
            );
            assert!(job.summary().contains("No comment: "));
        }
    }
}

#[tokio::test]
async fn a_check_that_cannot_begin_does_not_leave_an_old_verdict_standing() {
    let server = repository(json!([bot(4, "<!-- triton-gate:here -->\n✅ **PASS**")])).await;
    let job = Job::of_pull_request(&server);
    let thresholds = job.path("bad.toml");
    std::fs::write(&thresholds, "schema = 1\nwhatever = 2\n").expect("written");
    let file = thresholds.to_str().expect("a name");
    let answer = job.run(&["check", "-c", file, "--github", "--comment-id", "here"]);
    assert_eq!(answer.code, Some(2), "{}", answer.err);
    assert_eq!(job.output("verdict").as_deref(), Some("error"));
    assert!(
        answer.out.contains("::error title=triton-gate::"),
        "{}",
        answer.out
    );
    let written = written(&server).await;
    assert_eq!(written[0].0, "PATCH");
    assert!(written[0].2.contains("❌ **NOTHING CHECKED (exit 2)"));
}

/// A model that became ten times slower, on a GitHub that answers nothing useful.
#[tokio::test]
async fn a_regression_stays_one_whatever_github_says() {
    let broken = MockServer::start().await;
    let job = Job::of_pull_request(&broken);
    let simulated = Simulated::start(job.folder.path());
    let thresholds = |version: &str| {
        std::fs::write(
            job.path("t.toml"),
            format!(
                "schema = 1\n[gate]\nthroughput_drop = \"70%\"\np99_rise = \"off\"\nbudget = \"5s\"\n\
                 assumed_noise = \"5%\"\n[measure]\nwarmup = \"300ms\"\nblock = \"100ms\"\n\
                 [[scenario]]\nname = \"a\"\nmodel = \"m\"\nversion = \"{version}\"\n\
                 concurrency = 4\n"
            ),
        )
        .expect("written");
    };
    let run = |more: &[&str]| {
        let (file, baselines) = (job.path("t.toml"), job.path("baselines"));
        let mut arguments = more.to_vec();
        arguments.extend([
            "-c",
            file.to_str().expect("a name"),
            "--url",
            &simulated.url,
            "--environment",
            "sim",
            "--baselines",
            baselines.to_str().expect("a name"),
        ]);
        job.run(&arguments)
    };
    thresholds("1");
    assert_eq!(run(&["baseline", "record"]).code, Some(0));
    thresholds("2");
    let results = job.path("results");
    let answer = run(&[
        "check",
        "--github",
        "--results",
        results.to_str().expect("a name"),
    ]);
    assert_eq!(answer.code, Some(1), "{}\n{}", answer.out, answer.err);
    assert_eq!(job.output("verdict").as_deref(), Some("regression"));
    assert_eq!(job.output("regressions").as_deref(), Some("1"));
    assert!(
        answer.err.contains("warning: no comment: "),
        "{}",
        answer.err
    );
    assert!(job.summary().contains("REGRESSION: a: throughput"));
    let changes = job.output("changes").expect("an output");
    let changes: serde_json::Value = serde_json::from_str(&changes).expect("JSON");
    assert_eq!(changes[0]["verdict"], "regression");
}
