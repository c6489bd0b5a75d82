//! A commented thresholds file from what a server says about its models: text out, nothing read.

mod imp;
mod shape;

#[cfg(test)]
mod tests;

pub use imp::{InitInput, InitModel, render};
