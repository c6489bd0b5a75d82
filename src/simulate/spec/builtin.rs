use std::time::Duration;

use super::{Answer, Batching, Ending, LatencySpec, ModelSpec, ResponseSpec, SimulateSpec, Wire};

impl SimulateSpec {
    /// The server that runs when no file is given: `yolov9` with a version 2 that is about 30 %
    /// slower, `echo`, `sleep` (20 ms, version 2 60 ms), and the streaming `text` and
    /// `text_separate`, one for each way of telling the end of a request.
    pub fn builtin() -> Self {
        let yolo = |base_us: u64, per_item_us: u64| LatencySpec {
            base: Duration::from_micros(base_us),
            per_item: Duration::from_micros(per_item_us),
            sigma: 0.03,
            slow_share: 0.005,
            slow_factor: 1.5,
            ..LatencySpec::default()
        };
        let mut yolov9 = ModelSpec::new("yolov9")
            .input("images", Wire::Fp32, &[3, 640, 640])
            .output("output0", Wire::Fp32, &[84, 8400])
            .version(1, Some(yolo(4_000, 2_000)))
            .version(2, Some(yolo(5_200, 2_600)));
        yolov9.max_batch_size = 8;
        yolov9.dynamic_batching = Some(Batching::default());

        let mut echo = ModelSpec::new("echo")
            .input("input", Wire::Fp32, &[-1])
            .output("output", Wire::Fp32, &[-1]);
        echo.answer = Answer::Echo;

        let sleep = ModelSpec::new("sleep")
            .input("input", Wire::Fp32, &[1])
            .output("output", Wire::Fp32, &[1])
            .version(1, Some(LatencySpec::constant(Duration::from_millis(20))))
            .version(2, Some(LatencySpec::constant(Duration::from_millis(60))));

        let text = |name: &str, ending: Ending| {
            let mut model = ModelSpec::new(name)
                .input("text_input", Wire::Bytes, &[1])
                .output("text_output", Wire::Bytes, &[-1])
                .latency(LatencySpec::log_normal(Duration::from_millis(30), 0.05));
            model.decoupled = true;
            model.instances = 4;
            model.response = ResponseSpec {
                count: 16,
                delay: Duration::from_millis(5),
                ending,
            };
            model
        };
        Self::default()
            .model(yolov9)
            .model(echo)
            .model(sleep)
            .model(text("text", Ending::LastData))
            .model(text("text_separate", Ending::Separate))
    }
}
