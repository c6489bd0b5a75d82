//! What surrounds a measurement: the GPU's figures in report and files, and blocks that do not
//! count. A script stands for `nvidia-smi`: what it says is what a driver would say.

use std::os::unix::fs::PermissionsExt as _;

use crate::program::{Ended, Folder};
use crate::server::{model, serve, thresholds};

/// A card that says so of its clocks; the processes on it are what the command prints.
fn card(folder: &Folder, reasons: &str, processes: &str) {
    let script = format!(
        "#!/bin/sh\n\
         case \"$*\" in\n\
         *compute-apps*) {processes} ;;\n\
         *loop-ms*) while echo '0, 80, 300.50, 2048, 1980, {reasons}'; do sleep 0.1; done ;;\n\
         *--query-gpu=clocks_event_reasons.active*) echo {reasons} ;;\n\
         *name,uuid*) echo 'NVIDIA H100 80GB HBM3, GPU-1, 550.54, Disabled, Not Active' ;;\n\
         *) exit 1 ;;\n\
         esac\n"
    );
    let path = folder.write("bin/nvidia-smi", &script);
    let executable = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(path, executable).expect("executable");
}

fn measured(folder: &Folder) -> Ended {
    let server = serve([model("m")]);
    folder.write("t.toml", &thresholds(&server).text());
    let path = format!(
        "{}:{}",
        folder.path().join("bin").display(),
        std::env::var("PATH").unwrap_or_default()
    );
    folder.run_with(
        &[("PATH", &path)],
        &["measure", "-c", "t.toml", "--duration", "3s", "-o", "m.csv"],
    )
}

#[test]
fn the_gpu_is_in_the_report_and_in_the_file() {
    let folder = Folder::new();
    card(&folder, "0x0000000000000004", "echo '11, tritonserver'");
    measured(&folder)
        .code(0)
        .says(&["GPU: utilisation 80 %, power 300 W, SM clock 1980 MHz, memory 2048 MiB"]);
    let text = folder.read("m.csv");
    let mut rows = csv::ReaderBuilder::new()
        .comment(Some(b'#'))
        .from_reader(text.as_bytes());
    let header = rows.headers().expect("a header").clone();
    let column = |name: &str| {
        header
            .iter()
            .position(|column| column == name)
            .unwrap_or_else(|| panic!("no column {name}: {header:?}"))
    };
    let (power, clock, throttle) = (
        column("gpu_power_w"),
        column("gpu_clock_mhz"),
        column("throttle"),
    );
    let rows: Vec<csv::StringRecord> = rows.records().map(|row| row.expect("a row")).collect();
    assert!(!rows.is_empty());
    for row in rows {
        assert_eq!(row.get(power), Some("300.5"));
        assert_eq!(row.get(clock), Some("1980"));
        assert_eq!(
            row.get(throttle),
            Some("4"),
            "a power cap is kept and counts"
        );
    }
}

#[test]
fn blocks_on_a_card_that_is_too_hot_do_not_count() {
    let folder = Folder::new();
    card(&folder, "0x0000000000000040", "echo '11, tritonserver'");
    measured(&folder)
        .code(3)
        .says(&["had to be discarded", "heat", "cool the GPU"]);
}

#[test]
fn blocks_while_processes_come_to_the_gpu_do_not_count() {
    let folder = Folder::new();
    let count = folder.path().join("asked").display().to_string();
    card(
        &folder,
        "0x0000000000000000",
        &format!("echo x >>{count}; echo \"$(wc -l <{count}), other\""),
    );
    measured(&folder)
        .code(3)
        .says(&["had to be discarded", "processes came to or left the GPU"]);
}
