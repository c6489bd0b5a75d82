//! triton-gate: a performance-regression gate for NVIDIA Triton Inference Server.
//!
//! Data flows one way: `config` and `baseline` -> `gate` plans -> `load` measures -> `stats` and
//! `gate` decide -> `report` renders. docs/architecture.md has the picture.

pub mod baseline;
pub mod calibrate;
pub mod check;
pub mod cli;
pub mod config;
pub mod data;
pub mod gate;
pub mod github;
pub mod history;
pub mod init;
pub mod input;
pub mod lab;
pub mod load;
pub mod probe;
pub mod report;
pub mod run;
pub mod simulate;
pub mod stats;
pub mod triton;
pub mod workload;
