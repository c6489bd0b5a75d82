//! The command line: definitions, one small function a command, and the exit codes.

pub mod args;
mod baseline;
mod calibrate;
mod check;
mod checkouts;
mod comment;
mod compare;
mod context;
mod failure;
mod files;
mod github;
mod history;
mod init;
mod measure;
mod output;
mod progress;
mod run;
mod simulate;
mod terminal;

pub use run::main;
