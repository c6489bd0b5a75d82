//! The program against the embedded server: the contract of its exit codes, its files, and what
//! it says when something is wrong. No time and no rate of this machine is asserted.

#[path = "../support/program.rs"]
mod program;

mod baselines;
mod calibrate;
mod changes;
mod commands;
mod conditions;
mod config;
mod gate_changes;
mod history;
mod life;
mod perf_check;
mod server;
mod servers;
mod signals;
mod tls;
mod turns;
mod verdicts;
