//! Which tier a place of the world deserves, and why. Pure policy; time is an argument.
#![forbid(unsafe_code)]
