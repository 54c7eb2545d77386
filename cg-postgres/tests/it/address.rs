//! Addresses and their errors.
