use super::{SCENARIO, load, messages};

/// Text before a good scenario, and the exact messages.
const BEFORE: &[(&str, &str)] = &[
    (
        "[gate]\np99_rise = \"15\"",
        "a.toml:2: key 'gate.p99_rise': \"15\" has no unit: write 15% (a percentage)",
    ),
    (
        "[gate]\np99_rise = 15",
        "a.toml:2: key 'gate.p99_rise': found a whole number, expected a percentage as text: write \"15%\"",
    ),
    (
        "[gate]\np99_rise = 0.15",
        "a.toml:2: key 'gate.p99_rise': found a number, expected a percentage as text, like \"5%\"",
    ),
    (
        "[gate]\np99_rise = \"-5%\"",
        "a.toml:2: key 'gate.p99_rise': \"-5%\" is out of range: expected a finite percentage of at least 0%",
    ),
    (
        "[gate]\np99_rise = \"0%\"",
        "a.toml:2: key 'gate.p99_rise': \"0%\" is out of range: expected more than 0% and at most 10000%",
    ),
    (
        "[gate]\np99_rise = \"nan%\"",
        "a.toml:2: key 'gate.p99_rise': \"nan%\" is out of range: expected a finite percentage of at least 0%",
    ),
    (
        "[gate]\np99_rise = \"1e300%\"",
        "a.toml:2: key 'gate.p99_rise': \"1e300%\" is out of range: expected more than 0% and at most 10000%",
    ),
    (
        "[gate]\np99_rise = nan",
        "a.toml:2: key 'gate.p99_rise': found a number, expected a percentage as text, like \"5%\"",
    ),
    (
        "[gate]\np99_rise = false",
        "a.toml:2: key 'gate.p99_rise': found a boolean, expected a percentage as text, like \"5%\"",
    ),
    (
        "[gate]\np99_ris = \"5%\"",
        "a.toml:2: key 'gate.p99_ris': unknown key: did you mean 'p99_rise'?",
    ),
    (
        "[gate]\nwhatever = \"5%\"",
        "a.toml:2: key 'gate.whatever': unknown key: expected one of mode, false_alarm, missed_regression, budget, on_inconclusive, on_missing, rule, policy, assumed_noise, suspicious_gain, throughput_drop, throughput_min, p50_rise, p50_max, p90_rise, p90_max, p95_rise, p95_max, p99_rise, p99_max, p999_rise, p999_max, mean_rise, mean_max, error_rate_max, server_queue_rise, server_queue_max, server_compute_rise, server_compute_max, total_budget",
    ),
    (
        "[gate]\nthroughput_drop = \"100%\"",
        "a.toml:2: key 'gate.throughput_drop': \"100%\" is out of range: expected more than 0% and less than 100%",
    ),
    (
        "[gate]\nthroughput_min = inf",
        "a.toml:2: key 'gate.throughput_min': not a finite number: expected a number of inferences per second above 0, like 250 or 99.5",
    ),
    (
        "[gate]\nthroughput_min = \"100\"",
        "a.toml:2: key 'gate.throughput_min': found a text, expected a number of inferences per second above 0, like 250 or 99.5",
    ),
    (
        "[gate]\nthroughput_min = 99999999999999999999",
        "a.toml:2: key 'gate.throughput_min': out of range: expected a number of inferences per second above 0, like 250 or 99.5",
    ),
    (
        "[gate]\np99_max = 25",
        "a.toml:2: key 'gate.p99_max': found a whole number, expected a latency as text, like \"25ms\" or \"800us\"",
    ),
    (
        "[gate]\np99_max = \"25\"",
        "a.toml:2: key 'gate.p99_max': \"25\" has no unit: expected a duration like \"25s\" or \"25ms\"",
    ),
    (
        "[gate]\np99_max = \"0ms\"",
        "a.toml:2: key 'gate.p99_max': a limit of 0 cannot be kept: expected a latency as text, like \"25ms\" or \"800us\"",
    ),
    (
        "[gate]\nfalse_alarm = \"50%\"",
        "a.toml:2: key 'gate.false_alarm': \"50%\" is out of range: expected more than 0% and less than 50%",
    ),
    (
        "[gate]\nmissed_regression = \"0%\"",
        "a.toml:2: key 'gate.missed_regression': \"0%\" is out of range: expected more than 0% and less than 50%",
    ),
    (
        "[gate]\nbudget = 300",
        "a.toml:2: key 'gate.budget': found a whole number, expected a duration as text, like \"90s\"",
    ),
    (
        "[gate]\nbudget = \"300\"",
        "a.toml:2: key 'gate.budget': \"300\" has no unit: expected a duration like \"300s\" or \"300ms\"",
    ),
    (
        "[gate]\nbudget = \"5 minutes\"",
        "a.toml:2: key 'gate.budget': \"5 minutes\" is not a duration: expected a number and a unit (h, m, s, ms, us), like \"250ms\", \"90s\" or \"1h30m\"",
    ),
    (
        "[gate]\nbudget = \"-5m\"",
        "a.toml:2: key 'gate.budget': \"-5m\" is not a duration: expected a number and a unit (h, m, s, ms, us), like \"250ms\", \"90s\" or \"1h30m\"",
    ),
    (
        "[gate]\nbudget = \"0s\"",
        "a.toml:2: key 'gate.budget': \"0s\" is out of range: expected at least 1ms",
    ),
    (
        "[gate]\nbudget = \"30m1h\"",
        "a.toml:2: key 'gate.budget': \"30m1h\" is not a duration: expected a number and a unit (h, m, s, ms, us), like \"250ms\", \"90s\" or \"1h30m\"",
    ),
    (
        "[gate]\nbudget = \"9999999999999999999999h\"",
        "a.toml:2: key 'gate.budget': \"9999999999999999999999h\" is out of range: expected at most 365 days (8760h)",
    ),
    (
        "[gate]\nrule = \"median\"",
        "a.toml:2: key 'gate.rule': \"median\" is not known: expected \"evidence\" or \"point\"",
    ),
    (
        "[gate]\non_inconclusive = true",
        "a.toml:2: key 'gate.on_inconclusive': found a boolean, expected \"report\" or \"fail\" or \"pass\"",
    ),
    (
        "[gate]\nassumed_noise = { throughput = \"1%\" }",
        "a.toml:2: key 'gate.assumed_noise': one of throughput and latency is missing: expected a percentage like \"2%\", or { throughput = \"1%\", latency = \"3%\" }",
    ),
    (
        "[gate]\nassumed_noise = { through = \"1%\", latency = \"3%\" }",
        "a.toml:2: key 'gate.assumed_noise': unknown key \"through\": did you mean 'throughput'?",
    ),
    (
        "[gate]\nerror_rate_max = \"1%\"",
        "a.toml:2: key 'gate.error_rate_max' of scenario 's': can never decide: a measurement with more failed requests than measure.max_error_rate (0%) is invalid; raise that to at least this limit",
    ),
    (
        "[gate]\np99_rise = \"off\"\nthroughput_drop = \"off\"",
        "a.toml:4: scenario 's': every limit is off, so that nothing is gated: expected at least one, like p99_rise = \"10%\"",
    ),
    (
        "gate = 5",
        "a.toml:1: key 'gate': found a whole number, expected a table: write [gate]",
    ),
    (
        "gates = 5",
        "a.toml:1: key 'gates': unknown key: did you mean 'gate'?",
    ),
    (
        "[measure]\nconnections = 0",
        "a.toml:2: key 'measure.connections': 0 is out of range: expected a whole number from 1 to 1024",
    ),
    (
        "[measure]\nconnections = \"many\"",
        "a.toml:2: key 'measure.connections': found a text, expected \"auto\" or a whole number from 1 to 1024",
    ),
    (
        "[measure]\nblock = 2",
        "a.toml:2: key 'measure.block': found a whole number, expected \"auto\" or a duration as text, like \"2s\"",
    ),
    (
        "[measure]\nseed = -1",
        "a.toml:2: key 'measure.seed': -1 is out of range: expected a whole number from 0 to 9223372036854775807",
    ),
    (
        "[measure]\nallow_saturated = \"yes\"",
        "a.toml:2: key 'measure.allow_saturated': found a text, expected true or false, without quotes",
    ),
    (
        "[measure]\nmax_error_rate = \"100%\"",
        "a.toml:2: key 'measure.max_error_rate': \"100%\" is out of range: expected less than 100%",
    ),
    (
        "[server]\nurl = \"\"",
        "a.toml:2: key 'server.url': not an address: it is empty; expected host:port, like \"localhost:8001\"",
    ),
    (
        "[server]\nurl = 8001",
        "a.toml:2: key 'server.url': found a whole number, expected an address as text, like \"localhost:8001\"",
    ),
    (
        "[server]\nurl = \"http://me:secret@host:8001\"",
        "a.toml:2: key 'server.url': not an address: it holds credentials, which belong into server.metadata as ${VAR}; expected host:port, like \"localhost:8001\"",
    ),
    (
        "[server]\nurl = \"local host:8001\"",
        "a.toml:2: key 'server.url': not an address: it holds white space; expected host:port, like \"localhost:8001\"",
    ),
    (
        "[server]\nmetadata = { Authorization = \"x\" }",
        "a.toml:2: key 'server.metadata': entry 'Authorization': \"Authorization\" cannot be the name of a metadata entry: expected lower case",
    ),
    (
        "[server]\nmetadata = { a = \"${TOKEN\" }",
        "a.toml:2: key 'server.metadata': entry 'a': ${ without }: expected ${NAME}",
    ),
    (
        "[server]\nmetadata = { a = \"${my-secret}\" }",
        "a.toml:2: key 'server.metadata': entry 'a': what stands in ${...} is not the name of an environment variable: expected letters, digits and _, like ${TRITON_TOKEN}",
    ),
    (
        "[server]\nmetadata = { a = \"Bearer ${TOKEN}\" }",
        "a.toml:2: key 'server.metadata.a' of scenario 's': the environment variable TOKEN is not set: set it, or remove ${TOKEN} from the value",
    ),
    (
        "[server]\nmetadata = { a = 5 }",
        "a.toml:2: key 'server.metadata': entry 'a': found a whole number, expected a table of texts, like { authorization = \"Bearer ${TRITON_TOKEN}\" }",
    ),
    (
        "[server]\nmetadata = \"x\"",
        "a.toml:2: key 'server.metadata': found a text, expected a table of texts, like { authorization = \"Bearer ${TRITON_TOKEN}\" }",
    ),
    (
        "[environment]\nname = \"a/b\"",
        "a.toml:2: key 'environment.name': \"a/b\" cannot be a name: expected letters, digits, '.', '_' and '-', found '/' (it becomes the name of a folder)",
    ),
    (
        "[environment]\nnam = \"a\"",
        "a.toml:2: key 'environment.nam': unknown key: did you mean 'name'?",
    ),
    (
        "[environment.t4.gate]\np99_rise = 5",
        "a.toml:2: key 'environment.t4.gate.p99_rise': found a whole number, expected a percentage as text: write \"5%\"",
    ),
    (
        "[environment.t4.gates]\np99_rise = \"5%\"",
        "a.toml:1: key 'environment.t4.gates': unknown key: did you mean 'gate'?",
    ),
    (
        "[environment.t4.gate]\ntotal_budget = \"5m\"",
        "a.toml:2: key 'environment.t4.gate.total_budget': holds for the whole check: expected it in the file's own [gate]",
    ),
    (
        "schema = 2\nunknown = 1",
        "a.toml:1: key 'schema': 2 is newer than what this version of triton-gate reads (schema 1): update triton-gate",
    ),
    (
        "schema = 0",
        "a.toml:1: key 'schema': not a schema number: expected schema = 1",
    ),
    (
        "schema = \"1\"",
        "a.toml:1: key 'schema': found a text, expected schema = 1",
    ),
    (
        "[gate]\np99_rise = \"5%\"\np99_rise = \"6%\"",
        "a.toml:3: not valid TOML: duplicate key",
    ),
    (
        "[gate\np99_rise = \"5%\"",
        "a.toml:1: not valid TOML: unclosed table, expected `]`",
    ),
    (
        "[gate]\np99_rise = 5%",
        "a.toml:2: not valid TOML: string values must be quoted, expected literal string",
    ),
];

/// Text after the name and model of a scenario, and the exact messages.
const WITHIN: &[(&str, &str)] = &[
    (
        "concurrency = 0",
        "a.toml:4: key 'scenario.concurrency' of scenario 's': 0 is out of range: expected a whole number from 1 to 65536",
    ),
    (
        "concurrency = -1",
        "a.toml:4: key 'scenario.concurrency' of scenario 's': -1 is out of range: expected a whole number from 1 to 65536",
    ),
    (
        "concurrency = 1.5",
        "a.toml:4: key 'scenario.concurrency' of scenario 's': found a number, expected a whole number from 1 to 65536, or a list of them",
    ),
    (
        "concurrency = \"8\"",
        "a.toml:4: key 'scenario.concurrency' of scenario 's': found a text, expected a whole number from 1 to 65536, or a list of them",
    ),
    (
        "concurrency = 99999999999999999999999",
        "a.toml:4: key 'scenario.concurrency' of scenario 's': 99999999999999999999999 is out of range: expected a whole number from 1 to 65536",
    ),
    (
        "concurrency = []",
        "a.toml:4: key 'scenario.concurrency' of scenario 's': an empty list: expected at least one number",
    ),
    (
        "concurrency = [1, 1]",
        "a.toml:4: key 'scenario.concurrency' of scenario 's': 1 is listed twice",
    ),
    (
        "concurrency = [1, \"2\"]",
        "a.toml:4: key 'scenario.concurrency' of scenario 's': found a text, expected a whole number from 1 to 65536",
    ),
    (
        "batch = 0",
        "a.toml:4: key 'scenario.batch' of scenario 's': 0 is out of range: expected a whole number from 1 to 1048576",
    ),
    (
        "version = 2",
        "a.toml:4: key 'scenario.version' of scenario 's': found a whole number, expected a model version as text, like \"2\"",
    ),
    (
        "version = \"latest\"",
        "a.toml:4: key 'scenario.version' of scenario 's': \"latest\" is not a model version: expected a positive whole number as text, like \"2\"",
    ),
    (
        "concurency = 8",
        "a.toml:4: key 'scenario.concurency' of scenario 's': unknown key: did you mean 'concurrency'?",
    ),
    (
        "paths = \"models\"",
        "a.toml:4: key 'scenario.paths' of scenario 's': found a text, expected a list of texts, like [\"models/yolov9/**\"]",
    ),
    (
        "paths = [1]",
        "a.toml:4: key 'scenario.paths' of scenario 's': found a whole number, expected a list of texts, like [\"models/yolov9/**\"]",
    ),
    (
        "inputs = 5",
        "a.toml:4: key 'scenario.inputs' of scenario 's': found a whole number, expected a table: write [scenario.inputs]",
    ),
    (
        "[scenario.inputs]\nx = 5",
        "a.toml:5: key 'scenario.inputs.x' of scenario 's': found a whole number, expected a table: write [scenario.inputs.x]",
    ),
    (
        "[scenario.inputs.x]\nshape = [1, -1]",
        "a.toml:5: key 'scenario.inputs.x.shape' of scenario 's': \"-1\" cannot be a dimension: expected a list of whole numbers from 0, without the batch dimension, like [3, 640, 640]",
    ),
    (
        "[scenario.inputs.x]\nshape = 5",
        "a.toml:5: key 'scenario.inputs.x.shape' of scenario 's': found a whole number, expected a list of whole numbers from 0, without the batch dimension, like [3, 640, 640]",
    ),
    (
        "[scenario.inputs.x]\nshape = [99999999999, 99999999999]",
        "a.toml:5: key 'scenario.inputs.x.shape' of scenario 's': more elements than can be counted: expected a smaller shape",
    ),
    (
        "[scenario.inputs.x]\ndata = \"x.npy\"",
        "a.toml:5: key 'scenario.inputs.x.data' of scenario 's': \"x.npy\" is not known: expected \"zero\", \"random\", or a list of values (one text as a value is written [\"...\"])",
    ),
    (
        "[scenario.inputs.x]\ndata = []",
        "a.toml:5: key 'scenario.inputs.x.data' of scenario 's': an empty list: expected \"zero\", \"random\", or a list of values",
    ),
    (
        "[scenario.inputs.x]\ndata = [nan]",
        "a.toml:5: key 'scenario.inputs.x.data' of scenario 's': not a number (nan): expected numbers, texts, true and false, or lists of them",
    ),
    (
        "[scenario.inputs.x]\ndata = [{ a = 1 }]",
        "a.toml:5: key 'scenario.inputs.x.data' of scenario 's': found a table, expected numbers, texts, true and false, or lists of them",
    ),
    (
        "[scenario.inputs.x]\nrange = [1, 0]",
        "a.toml:5: key 'scenario.inputs.x.range' of scenario 's': the first number is the larger one: expected the smallest and the largest value, like [0, 255]",
    ),
    (
        "[scenario.inputs.x]\nrange = [0, inf]",
        "a.toml:5: key 'scenario.inputs.x.range' of scenario 's': not a finite number: expected the smallest and the largest value, like [0, 255]",
    ),
    (
        "[scenario.inputs.x]\nrange = [0]",
        "a.toml:5: key 'scenario.inputs.x.range' of scenario 's': 1 numbers: expected the smallest and the largest value, like [0, 255]",
    ),
    (
        "[scenario.inputs.x]\ndata = \"zero\"\nlength = 5",
        "a.toml:6: key 'scenario.inputs.x.length' of scenario 's': goes with data = \"random\" only: remove one",
    ),
    (
        "[scenario.inputs.x]\nlenght = 5",
        "a.toml:5: key 'scenario.inputs.x.lenght' of scenario 's': unknown key: did you mean 'length'?",
    ),
    (
        "[scenario.gate]\np99_rise = \"15\"",
        "a.toml:5: key 'scenario.gate.p99_rise' of scenario 's': \"15\" has no unit: write 15% (a percentage)",
    ),
    (
        "[scenario.gate]\ntotal_budget = \"15m\"",
        "a.toml:5: key 'scenario.gate.total_budget' of scenario 's': holds for the whole check: expected it in the file's own [gate]",
    ),
    (
        "[scenario.measure]\nwarmup = true",
        "a.toml:5: key 'scenario.measure.warmup' of scenario 's': found a boolean, expected \"auto\" or a duration as text, like \"2s\"",
    ),
    (
        "[scenario.server]\nurl = \"/x\"",
        "a.toml:5: key 'scenario.server.url' of scenario 's': not an address: it names no host; expected host:port, like \"localhost:8001\"",
    ),
    (
        "[scenario.gate]\np99_rise = \"1\"\nbudget = 3\nbadget = 3",
        "a.toml:5: key 'scenario.gate.p99_rise' of scenario 's': \"1\" has no unit: write 1% (a percentage)\na.toml:6: key 'scenario.gate.budget' of scenario 's': found a whole number, expected a duration as text, like \"90s\"\na.toml:7: key 'scenario.gate.badget' of scenario 's': unknown key: did you mean 'budget'?",
    ),
];

/// Whole files, and the exact messages.
const WHOLE: &[(&str, &str)] = &[
    (
        "",
        "a.toml: no [[scenario]] in this file: add one with name and model",
    ),
    (
        "\n\n# only a comment\n",
        "a.toml: no [[scenario]] in this file: add one with name and model",
    ),
    (
        "[gate]\np99_rise = \"5%\"\n",
        "a.toml: no [[scenario]] in this file: add one with name and model",
    ),
    (
        "[scenario]\nname = \"s\"\nmodel = \"m\"\n",
        "a.toml:1: key 'scenario': found a table, expected a list of tables: write [[scenario]], with two brackets",
    ),
    (
        "scenario = []",
        "a.toml:1: key 'scenario': an empty list: expected a list of tables: write [[scenario]], with two brackets",
    ),
    (
        "scenario = [1]",
        "a.toml:1: key 'scenario': found a whole number, expected a list of tables: write [[scenario]], with two brackets",
    ),
    (
        "[[scenario]]\n",
        "a.toml:1: key 'scenario.name': missing: expected name = \"...\", unique among all files\na.toml:1: key 'scenario.model': missing: expected model = \"...\", the model's name at the server",
    ),
    (
        "[[scenarios]]\nname = \"s\"\nmodel = \"m\"\n",
        "a.toml:1: key 'scenarios': unknown key: did you mean 'scenario'?",
    ),
    (
        "[[scenario]]\nname = \"s/../t\"\nmodel = \"m\"\n",
        "a.toml:2: key 'scenario.name': \"s/../t\" cannot be a name: expected letters, digits, '.', '_' and '-', found '/' (it becomes the name of a folder)",
    ),
    (
        "[[scenario]]\nname = \"s.\"\nmodel = \"m\"\n",
        "a.toml:2: key 'scenario.name': \"s.\" cannot be a name: expected it not to end with a dot (it becomes the name of a folder)",
    ),
    (
        "[[scenario]]\nname = \"Com1.x\"\nmodel = \"m\"\n",
        "a.toml:2: key 'scenario.name': \"Com1.x\" cannot be a name: it is a device on Windows, where the repository could not be checked out (it becomes the name of a folder)",
    ),
    (
        "[server]\nurl = \"localhost:99999\"\n[[scenario]]\nname = \"s\"\nmodel = \"m\"\n",
        "a.toml:2: key 'server.url': not an address: its port is no number from 1 to 65535; expected host:port, like \"localhost:8001\"",
    ),
    (
        "[[scenario]]\nname = \"s\"\nmodel = \"m\"\n[scenario.reference]\n",
        "a.toml:4: key 'scenario.reference' of scenario 's': is empty: expected url, model or version, or launch",
    ),
    (
        "[[scenario]]\nname = \"s\"\nmodel = \"m\"\n[[accept]]\nscenario = \"s\"\nmetric = \"p50\"\nup_to = \"5%\"\nreason = \"r\"\nexpires = 2027-02-28\n",
        "a.toml:4: key 'accept.metric' of scenario 's': p50 has no relative limit, so that nothing can be accepted: expected one of throughput, p99",
    ),
    (
        "[[scenario]]\nname = \".s\"\nmodel = \"m\"\n",
        "a.toml:2: key 'scenario.name': \".s\" cannot be a name: expected it not to begin with a dot or a dash (it becomes the name of a folder)",
    ),
    (
        "[[scenario]]\nname = \"\"\nmodel = \"\"\n",
        "a.toml:2: key 'scenario.name': \"\" cannot be a name: expected at least one character (it becomes the name of a folder)\na.toml:3: key 'scenario.model': \"\" cannot be a model: expected the name of the model in Triton's repository",
    ),
    (
        "[[scenario]]\nname = \"ü\"\nmodel = \"m\"\n",
        "a.toml:2: key 'scenario.name': \"ü\" cannot be a name: expected letters, digits, '.', '_' and '-', found 'ü' (it becomes the name of a folder)",
    ),
    (
        "[[scenario]]\nname = \"s\"\nmodel = \"m\"\n[[scenario]]\nname = \"S\"\nmodel = \"m\"\n",
        "a.toml:4: key 'scenario.name': the name \"S\" is taken by the scenario at a.toml:1 (on some file systems upper and lower case are the same): give each scenario a name of its own",
    ),
    (
        "[[scenario]]\nname = \"s\"\nmodel = \"m\"\n[[scenario]]\nname = \"s\"\nmodel = \"m\"\n",
        "a.toml:4: key 'scenario.name': the name \"s\" is taken by the scenario at a.toml:1: give each scenario a name of its own",
    ),
    (
        "[[scenario]]\nname = \"s-c1\"\nmodel = \"m\"\n[[scenario]]\nname = \"s\"\nmodel = \"m\"\nconcurrency = [1, 2]\n",
        "a.toml:4: key 'scenario.name': the name \"s-c1\" is taken by the scenario at a.toml:1: give each scenario a name of its own",
    ),
];

#[test]
fn bad_settings_are_named_with_line_key_and_mend() {
    for (text, expected) in BEFORE {
        let found = messages(load(&format!("{text}\n{SCENARIO}")));
        assert_eq!(found, *expected, "{text}");
    }
}

#[test]
fn bad_scenarios_are_named_with_line_key_and_mend() {
    for (text, expected) in WITHIN {
        let found = messages(load(&format!("{SCENARIO}{text}\n")));
        assert_eq!(found, *expected, "{text}");
    }
}

#[test]
fn bad_files_are_named_with_line_key_and_mend() {
    for (text, expected) in WHOLE {
        assert_eq!(messages(load(text)), *expected, "{text}");
    }
}

#[test]
fn no_message_holds_a_secret() {
    for text in [
        "[server]\nurl = \"http://me:hunter2@host:8001\"",
        "[server]\nmetrics_url = \"http://me:hunter2@host:8002\"",
        "[server]\nmetadata = { a = \"${hunter2 is no name}\" }",
        "[server]\nmetadata = { a = \"hunter2 ${\" }",
        "[server]\nmetadata = { a = \"hunter2\\n\" }",
        "[server]\nmetadata = { a = [\"hunter2\"] }",
        "[server]\nmetadata = { a = \"hunter2 }",
    ] {
        let found = messages(load(&format!("{text}\n{SCENARIO}")));
        assert!(!found.contains("hunter2"), "{found}");
    }
}
