//! What code asks of memory.
//!
//! A test binary of its own, because counting replaces the allocator of the whole process.

mod box_read;
mod corpora;
mod no_allocation;
