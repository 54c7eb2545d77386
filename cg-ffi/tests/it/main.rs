//! Tests through the functions of the header, as a program in C calls them.

mod handles;
mod header;
mod lies;
mod life;
mod support;
