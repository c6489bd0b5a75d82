use super::SimulateSpec;

impl SimulateSpec {
    /// A commented file with every key.
    pub fn example_toml() -> &'static str {
        EXAMPLE
    }
}

const EXAMPLE: &str = r#"# A simulated Triton server: `triton-gate simulate --config FILE`.
# Durations are text: "250us", "20ms", "1.5s", "2m". Keys show their defaults unless said.
schema = 1
listen = "127.0.0.1:8001"       # port 0 takes a free one
name = "triton"
version = "2.51.0"
seed = 1                        # of every random draw
threads = 2                     # that serve requests
model_control = "explicit"      # or "none": load and unload are refused
ready_after = "0"               # not ready for this long after the start
shutdown_grace = "2s"           # a shutdown waits this long for requests in flight
# log = "requests.csv"          # true times: ordinal,id,model,version,arrival_ns,start_ns,end_ns,status
# tls = { cert = "server.pem", key = "server.key", client_ca = "clients.pem" }  # client_ca is optional

[[model]]
name = "detector"
backend = "simulated"
loaded = true                   # false: only a client's load makes it ready
# load_error = "out of memory"  # every load fails with this reason
max_batch_size = 8              # default 0: shapes have no batch dimension
answer = "zeros"                # or "echo": an input of the same datatype and byte size
instances = 1                   # executions at the same time, for each version
max_queue_size = 0              # requests that may wait; 0 is unlimited
queue_timeout = "0"             # longest wait; 0 is unlimited
response_cache = false          # answer repeated requests from a cache

[[model.input]]
name = "images"
datatype = "FP32"               # BOOL UINT8..UINT64 INT8..INT64 FP16 BF16 FP32 FP64 BYTES
dims = [3, 640, 640]            # without the batch dimension; -1 is variable
optional = false

[[model.output]]
name = "output0"
datatype = "FP32"
dims = [84, 8400]

[model.dynamic_batching]        # leave out: each request runs alone
max_queue_delay = "100us"       # default 0
preferred_batch_size = [4, 8]   # shown in the configuration, not obeyed

[model.latency]                 # leave out: answers at once
base = "4ms"                    # median of an execution
per_item = "2ms"                # for each inference of the batch
sigma = 0.03                    # log-normal noise; 0 is constant
slow_share = 0.005              # share of executions on the slow path
slow_factor = 1.5
drift = 0.0                     # relative change per second
burst_every = "10s"             # default 0: never
burst_length = "500ms"
burst_factor = 2.0

[[model.version]]               # leave out: version 1
number = 1

[[model.version]]
number = 2
latency = { base = "5.2ms", per_item = "2.6ms" }   # of its own, in place of the model's

# Requests that pass validation are numbered from 1, for each model. A fault strikes when every
# condition that it names holds: every, at_request, after_request, probability, version, at, length.
[[model.fault]]
kind = "error"
error = "queue_full"            # unknown_model unknown_version no_versions version_not_ready queue_full
every = 1000                    # queue_timeout shutting_down front_end_closed server_not_ready restricted
                                # execution model_error bad_request response_too_large
[[model.fault]]
kind = "error"
error = "model_error"
message = "the model's own text"
probability = 0.0001
after_request = 500
version = 2

[[model.fault]]
kind = "stall"                  # no execution makes progress
at = "30s"                      # after the start; or at_request, or every
length = "200ms"

[[model.fault]]
kind = "reload"                 # statistics restart at zero
at_request = 50000

# Further kinds: disconnect, hang, empty_outputs, wrong_size (by request), not_ready (by time).

[[model]]
name = "text"
decoupled = true                # only through ModelStreamInfer
input = [{ name = "text_input", datatype = "BYTES", dims = [1] }]
output = [{ name = "text_output", datatype = "BYTES", dims = [-1] }]
latency = { base = "30ms" }     # until the first response

[model.responses]
count = 16                      # default 1
delay = "5ms"                   # between two; default 0
ending = "last_data"            # or "separate": the final flag comes in an empty response
"#;
