//! The address of the cluster, as `CG_PG_URL` holds it.

/// The role and the database of the tests; the address names both.
pub(super) const NAME: &str = "cherrygrove";

/// The address of nodes on loopback, by their ports in the order of their names.
/// One node alone says that it has no replication.
pub(super) fn address(password: &str, ports: &[u16]) -> String {
    let hosts: Vec<_> = ports.iter().map(|port| format!("127.0.0.1:{port}")).collect();
    let replication = if ports.len() == 1 { "&replication=none" } else { "" };
    format!("postgres://{NAME}:{password}@{}/{NAME}?sslmode=disable{replication}", hosts.join(","))
}

#[cfg(test)]
mod tests {
    use super::address;

    #[test]
    fn an_address_names_every_node_and_a_single_one_has_no_replication() {
        assert_eq!(
            address("s3", &[5001, 5002, 5003]),
            "postgres://cherrygrove:s3@127.0.0.1:5001,127.0.0.1:5002,127.0.0.1:5003/cherrygrove?sslmode=disable"
        );
        assert_eq!(
            address("s3", &[5001]),
            "postgres://cherrygrove:s3@127.0.0.1:5001/cherrygrove?sslmode=disable&replication=none"
        );
    }
}
