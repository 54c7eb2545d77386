//! Hosts whose names have several addresses, or none.

use std::net::{Ipv4Addr, TcpListener};

use super::*;

const SILENT: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));

fn two_addresses(_: String, _: u16) -> Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>> {
    Box::pin(async { Ok(vec![SILENT, Ipv4Addr::LOCALHOST.into()]) })
}

fn no_address(_: String, _: u16) -> Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>> {
    Box::pin(async { Ok(Vec::new()) })
}

/// A connector to the first host of `CG_PG_URL` under another name.
fn connector(resolve: Resolve) -> Option<(Arc<Connector>, u16)> {
    let stated = std::env::var("CG_PG_URL").ok();
    let is_stated = stated.is_some();
    let Some(url) = stated.filter(|url| !url.is_empty()) else {
        assert!(is_stated || std::env::var_os("CI").is_none(), "no server: set CG_PG_URL");
        eprintln!("\n*** NOT TESTED: no server: set CG_PG_URL ***\n");
        return None;
    };
    let address: Address = url.parse().expect("is an address");
    let (account, rest) = url.rsplit_once('@').expect("has a user");
    let (_, database) = rest.split_once('/').expect("has a database");
    let port = address.hosts()[0].port;
    let url = format!("{account}@several.test:{port}/{database}");
    let mut connector = Connector::new(url.parse().expect("is an address")).expect("has no certificate");
    connector.resolve = resolve;
    Some((Arc::new(connector), port))
}

#[tokio::test]
async fn each_address_of_a_name_is_tried() {
    let Some((connector, port)) = connector(two_addresses) else { return };
    let _silent = TcpListener::bind((SILENT, port)).expect("the port is free there");
    let begun = Instant::now();
    // The server may be a standby, which answers too.
    match connector.look().await {
        Ok(_) => assert_eq!(
            connector.last.lock().and_then(|place| place.address),
            Some(Ipv4Addr::LOCALHOST.into())
        ),
        Err(unreached) => {
            let message = unreached.failed.to_string();
            assert!(
                message.contains("several.test") && message.contains("at 127.0.0.1: it is a standby"),
                "{message}"
            );
        }
    }
    assert!(begun.elapsed() < CONNECTING * 2);
}

#[tokio::test]
async fn a_name_without_an_address_may_get_one() {
    let Some((connector, _)) = connector(no_address) else { return };
    let unreached = connector.look().await.map(drop).expect_err("there is no address");
    assert!(
        unreached.may_pass && unreached.failed.to_string().contains("the name has no address"),
        "{unreached:?}"
    );
}
