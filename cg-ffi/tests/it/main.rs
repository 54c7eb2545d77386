//! Tests through the functions of the header, as a program in C calls them.

mod columns;
mod handles;
mod header;
mod lies;
mod life;
mod panics;
mod queues;
mod support;
mod writes;
