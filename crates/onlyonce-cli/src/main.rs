//! The `onlyonce` command.

fn main() {}
