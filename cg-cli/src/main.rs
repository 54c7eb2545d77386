//! The `cg` tool: import, export, inspect, verify and draw worlds.

fn main() {}
