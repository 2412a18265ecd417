//! The `freestone` command.

fn main() {}
