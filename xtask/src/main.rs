//! Development commands: `cargo xtask --help` lists them.

fn main() {}
