//! Tests through the functions of the header, as a program in C calls them.

mod life;
mod support;
