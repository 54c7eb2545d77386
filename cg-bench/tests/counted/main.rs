//! Counts of the memory that code allocates.
//!
//! A test binary of its own, because counting replaces the allocator of the whole process.

mod box_read;
mod corpora;
mod no_allocation;
