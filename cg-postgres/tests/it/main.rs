//! The engine over a server that `CG_PG_URL` names, and addresses, which need no server.

mod address;
mod connecting;
mod damage;
#[allow(dead_code, reason = "the programs of tests each use a part of it")]
#[path = "../support/database.rs"]
mod database;
mod faults;
mod golden;
mod hosts;
mod limits;
mod opening;
mod owners;
mod promises;
#[allow(dead_code, reason = "the programs of tests each use a part of it")]
#[path = "../support/proxy.rs"]
mod proxy;
mod record_areas;
mod record_rows;
mod record_tables;
mod records;
mod segments;
mod shared;
mod views;
mod world;
