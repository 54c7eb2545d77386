//! Failovers of a cluster and cuts of connections, beneath engines and worlds that go on writing.
//!
//! `cargo xtask test postgres` runs it on a cluster of its own. By hand:
//! - `CG_PG_URL` is the address of a database, with every node of its cluster.
//! - `CG_PG_FAIL` is the command that lets the primary of the cluster fail and waits until another node has followed it;
//!   it knows the options of `cargo xtask postgres fail`. Without it nothing fails over.
//! - `CG_PG_FAILOVERS` and `CG_PG_CUTS` are the numbers of failovers and of cuts, `CG_PG_TAKES` and `CG_PG_KILLS` those of
//!   owners that take a world and of host processes that are killed.
//! - `CG_PG_SMALL` is a server with a small disk, see `disk.rs`.

mod cluster;
mod controls;
mod cuts;
mod disk;
mod failovers;
mod hosts;
mod nodes;
mod owners;
mod places;
mod rows;
mod standbys;

#[allow(dead_code, reason = "the programs of tests each use a part of it")]
#[path = "../support/database.rs"]
mod database;
#[allow(dead_code, reason = "the programs of tests each use a part of it")]
#[path = "../support/proxy.rs"]
mod proxy;
