//! triton-gate: a performance-regression gate for NVIDIA Triton Inference Server.
//!
//! Data flows one way: `config` and `baseline` -> `gate` plans -> `load` measures -> `stats` and
//! `gate` decide -> `report` renders. docs/architecture.md has the picture.

pub mod config;
pub mod data;
pub mod init;
pub mod triton;
