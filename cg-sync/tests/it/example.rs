//! The example's server and client, in two processes over a socket.

use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

#[expect(dead_code, reason = "the example's `main` chooses the process by the command line")]
#[path = "../../examples/sync.rs"]
mod two_processes;

/// Names the server for the second process.
const ADDRESS: &str = "CG_TEST_ADDRESS";

/// Not a test by itself: the second process of the test below.
#[test]
#[ignore = "run by another test, in a process of its own"]
fn be_the_client() {
    two_processes::client(&std::env::var(ADDRESS).expect("an address")).expect("keeps what the server has");
}

#[test]
fn a_client_in_another_process_has_what_the_server_has() {
    // In a thread, as a server whose client ends early waits for the next visit.
    let (send, served) = channel();
    thread::spawn(move || {
        let served = two_processes::server(|address| {
            let mut client = Command::new(std::env::current_exe()?);
            client.args(["--ignored", "--exact", "example::be_the_client"]).env(ADDRESS, address);
            Ok(client.stdout(Stdio::null()).spawn()?)
        });
        send.send(served.map_err(|error| error.to_string()))
    });
    let served = served.recv_timeout(Duration::from_secs(60)).expect("both visits end");
    assert_eq!(served, Ok(()), "the client has another content than the server");
}
