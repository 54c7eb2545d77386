//! The engine over a server that `CG_PG_URL` names, and addresses, which need no server.

mod address;
mod database;
mod faults;
mod hosts;
mod opening;
mod promises;
mod proxy;
mod shared;
mod world;
