//! The command-line program; everything is in the library.

fn main() {}
