//! end to end
fn main() {}
