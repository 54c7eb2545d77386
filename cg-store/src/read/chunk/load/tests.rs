//! The results of a poll.

use std::sync::mpsc::channel;

use super::*;

#[test]
fn a_poll_says_once_that_nothing_will_arrive() {
    let (sender, receiver) = channel();
    let pending = LoadTicket::new(receiver, 2);
    assert!(pending.poll().is_none(), "they may still arrive");
    drop(sender);
    let found = pending.poll().expect("the world was closed");
    assert!(matches!(found[..], [Err(Error::Closed), Err(Error::Closed)]), "{found:?}");
    assert!(pending.poll().is_none(), "they are given away once");
}
