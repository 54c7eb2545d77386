//! Our codecs against the [naive](crate::naive) ones: same bytes from the same values, same values from the same
//! bytes, and refusal of the same bytes.

mod chunk;
mod cluster;
mod delta;
mod entity;
mod frame;
mod kept;
mod key;
mod opacity;
