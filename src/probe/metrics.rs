use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Empty, Limited};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;

use crate::data::GpuSample;

/// The longest text of a metrics endpoint that is read.
const LARGEST: usize = 16 << 20;
const TIMEOUT: Duration = Duration::from_secs(2);

/// Triton's metrics page, read once.
///
/// The error is a sentence without the address: where nothing answers, where it is no HTTP, where
/// the page is too long.
pub async fn fetch(url: &str) -> Result<String, String> {
    let uri: http::Uri = url
        .parse()
        .map_err(|error| format!("no address: {error}"))?;
    let client: Client<_, Empty<Bytes>> = Client::builder(TokioExecutor::new()).build_http();
    let page = async {
        let response = client
            .get(uri)
            .await
            .map_err(|error| format!("no answer: {error}"))?;
        if !response.status().is_success() {
            return Err(format!("answers {}", response.status()));
        }
        let body = Limited::new(response.into_body(), LARGEST)
            .collect()
            .await
            .map_err(|error| format!("the answer breaks off: {error}"))?;
        Ok(String::from_utf8_lossy(&body.to_bytes()).into_owned())
    };
    tokio::time::timeout(TIMEOUT, page)
        .await
        .unwrap_or_else(|_| Err(format!("no answer within {} s", TIMEOUT.as_secs())))
}

/// The GPUs behind a metrics page together: mean utilisation, summed power and memory; none where
/// it has no GPU.
pub fn gpu_sample(text: &str) -> Option<GpuSample> {
    let mut values: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for line in text.lines() {
        if let Some((name, value)) = series(line)
            && value.is_finite()
        {
            values.entry(name).or_default().push(value);
        }
    }
    let all = |name: &str| values.get(name).filter(|values| !values.is_empty());
    let sum = |name: &str| all(name).map(|values| values.iter().sum::<f64>());
    let sample = GpuSample {
        utilisation: all("nv_gpu_utilization")
            .map(|values| values.iter().sum::<f64>() / values.len() as f64),
        power_w: sum("nv_gpu_power_usage"),
        memory_bytes: sum("nv_gpu_memory_used_bytes"),
        clock_mhz: None,
        throttle: None,
    };
    (sample != GpuSample::default()).then_some(sample)
}

/// `name{labels} value [time]` of the Prometheus text format; labels may hold braces and blanks.
fn series(line: &str) -> Option<(&str, f64)> {
    if line.starts_with('#') {
        return None;
    }
    let (name, rest) = match line.split_once('{') {
        Some((name, rest)) => (name, rest.rsplit_once('}')?.1),
        None => line.split_once(' ')?,
    };
    Some((name.trim(), rest.split_whitespace().next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_cards_are_seen_as_one() {
        let text = "# HELP nv_gpu_utilization GPU utilization rate\n\
                    # TYPE nv_gpu_utilization gauge\n\
                    nv_gpu_utilization{gpu_uuid=\"GPU-1\"} 0.5\n\
                    nv_gpu_utilization{gpu_uuid=\"GPU-2\"} 1\n\
                    nv_gpu_power_usage{gpu_uuid=\"GPU-1\"} 300.5\n\
                    nv_gpu_power_usage{gpu_uuid=\"GPU-2\"} 99.5 1700000000\n\
                    nv_gpu_memory_used_bytes{gpu_uuid=\"GPU} 1\"} 1024\n\
                    nv_energy_consumption{gpu_uuid=\"GPU-1\"} nan\n";
        let sample = gpu_sample(text).expect("GPUs");
        assert_eq!(sample.utilisation, Some(0.75));
        assert_eq!(sample.power_w, Some(400.0));
        assert_eq!(sample.memory_bytes, Some(1024.0));
    }

    #[tokio::test]
    async fn a_page_is_read_and_what_is_none_is_named() {
        let server = wiremock::MockServer::start().await;
        let page = |code: u16, text: &str| {
            wiremock::ResponseTemplate::new(code).set_body_string(text.to_owned())
        };
        for (path, answer) in [("/metrics", page(200, "a 1\n")), ("/other", page(404, ""))] {
            wiremock::Mock::given(wiremock::matchers::path(path))
                .respond_with(answer)
                .mount(&server)
                .await;
        }
        let at = |path: &str| format!("{}{path}", server.uri());
        assert_eq!(fetch(&at("/metrics")).await.as_deref(), Ok("a 1\n"));
        let refused = fetch(&at("/other")).await.expect_err("404");
        assert!(refused.contains("404"), "{refused}");
        let gone = fetch("http://127.0.0.1:1/metrics")
            .await
            .expect_err("nobody");
        assert!(gone.starts_with("no answer"), "{gone}");
        let odd = fetch("http://").await.expect_err("no address");
        assert!(odd.starts_with("no address"), "{odd}");
    }

    #[test]
    fn a_page_without_a_gpu_has_no_sample() {
        for text in [
            "",
            "nv_cpu_utilization 0.5\n",
            "garbage",
            "nv_gpu_utilization{",
            "{} 1",
        ] {
            assert_eq!(gpu_sample(text), None, "{text:?}");
        }
    }
}
