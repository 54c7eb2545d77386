//! Faults and tables of nodes as they may be seen, and answers of servers.

use expect_test::expect;

use super::{Role, Said, Seen, Standby, faults, primary, said_in, standby_in, table};

fn said(timeline: u32, end: &str, replayed: &str) -> Said {
    let lsn = |text: &str| Some(text.parse().expect("a place"));
    Said { timeline, end: lsn(end), replayed: lsn(replayed), quorum: "ANY 1 (n1,n2,n3)".to_owned() }
}

fn member(name: &str) -> Standby {
    Standby { name: name.to_owned(), state: "streaming".to_owned(), sync_state: "quorum".to_owned() }
}

fn node(number: u16, role: Role) -> Seen {
    let pid = (role != Role::Down).then_some(70 + u32::from(number));
    Seen { name: format!("n{number}"), port: 5000 + number, pid, role }
}

/// Two standbys of `n2`.
fn healthy() -> Vec<Seen> {
    let standbys = vec![member("n1"), member("n3")];
    vec![
        node(1, Role::Standby(said(2, "0/3000148", "0/3000100"))),
        node(2, Role::Primary { said: said(2, "0/3000148", "0/3000148"), standbys }),
        node(3, Role::Standby(said(2, "0/3000148", "0/3000148"))),
    ]
}

#[test]
fn a_healthy_cluster_has_one_primary_and_no_fault() {
    assert_eq!(faults(&healthy()), [""; 0]);
    assert_eq!(primary(&healthy()), Some(1));
    expect![[r"
        node  port  pid  role     timeline  LSN        sync_state  lag
        n1    5001  71   standby  2         0/3000148  quorum      72 bytes
        n2    5002  72   primary  2         0/3000148  -           -
        n3    5003  73   standby  2         0/3000148  quorum      0 bytes
    "]]
    .assert_eq(&table(&healthy()));
}

#[test]
fn every_fault_is_named() {
    let check = |change: fn(&mut Vec<Seen>), expected: &[&str]| {
        let mut seen = healthy();
        change(&mut seen);
        assert_eq!(faults(&seen), expected);
    };
    let standbys = |seen: &mut Vec<Seen>, change: fn(&mut Vec<Standby>)| match &mut seen[1].role {
        Role::Primary { standbys, .. } => change(standbys),
        other => panic!("{other:?}"),
    };
    check(|seen| seen[0].role = Role::Down, &["n1 is down"]);
    check(|seen| seen[0].role = Role::Paused, &["n1 is paused"]);
    check(
        |seen| seen[0].role = Role::Silent("57P03 starting up".to_owned()),
        &["n1 runs and does not answer: 57P03 starting up"],
    );
    check(|seen| seen[1].role = Role::Down, &["n2 is down", "0 nodes are primaries instead of 1"]);
    check(|seen| seen[0].role = seen[1].role.clone(), &["2 nodes are primaries instead of 1"]);
    check(|seen| seen[2].role = Role::Standby(said(1, "0/1", "0/1")), &["n3 is on timeline 1 and n2 on 2"]);
    let mut seen = healthy();
    seen[0].role = seen[1].role.clone();
    assert_eq!(primary(&seen), None, "of two primaries none is the one");
    let asynchronous = Said { quorum: String::new(), ..said(2, "0/1", "0/1") };
    let mut seen = healthy();
    seen[2].role = Role::Standby(asynchronous);
    let expected = "n3 has synchronous_standby_names = '' instead of 'ANY 1 (n1,n2,n3)'";
    assert_eq!(faults(&seen), [expected]);
    let mut seen = healthy();
    standbys(&mut seen, |standbys| standbys[1].sync_state = "async".to_owned());
    assert_eq!(faults(&seen), ["n3 is streaming and async instead of streaming and quorum"]);
    let mut seen = healthy();
    standbys(&mut seen, |standbys| standbys[0].state = "catchup".to_owned());
    assert_eq!(faults(&seen), ["n1 is catchup and quorum instead of streaming and quorum"]);
    let mut seen = healthy();
    standbys(&mut seen, |standbys| drop(standbys.remove(0)));
    assert_eq!(faults(&seen), ["n1 does not replicate from n2"]);
}

#[test]
fn a_node_that_is_down_has_no_figures() {
    let mut seen = healthy();
    seen[1].role = Role::Down;
    seen[1].pid = None;
    expect![[r"
        node  port  pid  role     timeline  LSN        sync_state  lag
        n1    5001  71   standby  2         0/3000148  -           -
        n2    5002  -    down     -         -          -           -
        n3    5003  73   standby  2         0/3000148  -           -
    "]]
    .assert_eq(&table(&seen));
}

#[test]
fn an_answer_is_read_and_an_unknown_one_is_none() {
    let row = |cells: &[&str]| -> Vec<Option<String>> {
        cells.iter().map(|cell| (*cell != "NULL").then(|| (*cell).to_owned())).collect()
    };
    let read = |cells: &[&str]| said_in(&[row(cells)]);
    let quorum = "ANY 1 (n1,n2,n3)";
    assert_eq!(
        read(&["f", "2", "0/3000148", "0/3000100", quorum]),
        Some((false, said(2, "0/3000148", "0/3000100")))
    );
    let silent = Said { end: None, ..said(2, "0/1", "0/3000100") };
    assert_eq!(read(&["t", "2", "NULL", "0/3000100", quorum]), Some((true, silent)));
    assert_eq!(read(&["t", "two", "NULL", "NULL", quorum]), None);
    assert_eq!(read(&["t", "2", "3000148", "NULL", quorum]), None);
    assert_eq!(read(&["t", "2"]), None);
    assert_eq!(said_in(&[]), None);
    assert_eq!(standby_in(&row(&["n1", "streaming", "quorum"])), Some(member("n1")));
    assert_eq!(standby_in(&row(&["n1", "NULL", "quorum"])), None);
}
