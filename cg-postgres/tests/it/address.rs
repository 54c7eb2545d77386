//! Addresses and their errors.

use cg_postgres::{Address, AddressError};
use expect_test::{Expect, expect};

/// Each address as it is printed, or its error.
#[track_caller]
fn check(addresses: &[&str], expected: Expect) {
    let shown = |text: &&str| match text.parse::<Address>() {
        Ok(address) => {
            assert!(!format!("{address:?} {address}").contains("secret"), "the password is shown");
            assert_eq!(
                address.to_string().parse::<Address>().map(|again| again.to_string()),
                Ok(address.to_string())
            );
            format!("{address}\n")
        }
        Err(error) => {
            assert!(!format!("{error:?} {error}").contains("secret"), "the password is shown");
            format!("{error}\n")
        }
    };
    expected.assert_eq(&addresses.iter().map(shown).collect::<String>());
}

#[test]
fn addresses_are_read_and_shown_without_their_password() {
    check(
        &[
            "postgres://u@h/d",
            "postgresql://u:secret@h:5433,[::1]:5434,h3/d?world=W",
            "postgres://u:se@cret%2F@h/d?take=yes&replication=storage",
            "postgres://u@%2Frun%2Fpg/d?world=a%22b%27c%20%C3%A9",
            "postgres://u@h/d?sslmode=verify-ca&sslrootcert=/a%20b.pem&sslcert=c.pem&sslkey=k.pem&replication=none&take=no",
        ],
        expect![[r"
            postgres://u@h/d?world=world
            postgres://u@h:5433,[::1]:5434,h3/d?world=W
            postgres://u@h/d?world=world&replication=storage&take=yes
            postgres://u@%2Frun%2Fpg/d?world=a%22b%27c%20%C3%A9
            postgres://u@h/d?world=world&sslmode=verify-ca&sslrootcert=%2Fa%20b.pem&sslcert=c.pem&sslkey=k.pem&replication=none
        "]],
    );
}

#[test]
fn other_texts_are_refused_by_name() {
    let long = format!("postgres://u@h/d?world={}", "x".repeat(61));
    check(
        &[
            "mysql://u@h/d",
            "postgres://h/d",
            "postgres://u:secret/d@h/d",
            "postgres://:secret@h/d",
            "postgres://u@h",
            "postgres://u@/d",
            "postgres://u@h:0/d",
            "postgres://u@h:65536/d",
            "postgres://u:secret%zz@h/d",
            "postgres://u@h/%ff",
            "postgres://u@h/d?wolrd=a",
            "postgres://u@h/d?world=a&take=yes&world=b",
            "postgres://u@h/d?sslmode=allow",
            "postgres://u@h/d?replication=async",
            "postgres://u@h/d?take",
            "postgres://u@h/d?sslcert=c.pem",
            "postgres://u@h/d?world=",
            "postgres://u@h/d?world=a%0ab",
            &long,
        ],
        expect![[r#"
            an address begins with postgres:// or postgresql://
            the address has no user; it is postgres://USER@HOST/DATABASE?world=NAME
            the password of the address is not UTF-8 with % and two hexadecimal digits for special characters such as / ? @
            the address has no user; it is postgres://USER@HOST/DATABASE?world=NAME
            the address has no database; it is postgres://USER@HOST/DATABASE?world=NAME
            the address has no host; it is postgres://USER@HOST/DATABASE?world=NAME
            port "0" is not a number from 1 to 65535
            port "65536" is not a number from 1 to 65535
            the password of the address is not UTF-8 with % and two hexadecimal digits for special characters such as / ? @
            the database of the address is not UTF-8 with % and two hexadecimal digits for special characters such as / ? @
            the address has no parameter "wolrd"; there are world, sslmode, sslrootcert, sslcert, sslkey, replication and take
            the address has the parameter world twice
            sslmode is "allow"; it must be disable, prefer, require, verify-ca or verify-full
            replication is "async"; it must be quorum, storage or none
            take is ""; it must be yes or no
            sslcert and sslkey must be given together
            the name of a world has 1 to 60 bytes without control characters; this one has 0
            the name of a world has 1 to 60 bytes without control characters; this one has 3
            the name of a world has 1 to 60 bytes without control characters; this one has 61
        "#]],
    );
}

#[test]
fn the_name_of_a_world_is_part_of_an_identifier_of_63_bytes() {
    let address: Address = "postgres://u@h/d".parse().expect("is an address");
    assert_eq!(address.clone().with_world(&"é".repeat(30)).expect("has 60 bytes").world().len(), 60);
    assert_eq!(address.with_world(&"x".repeat(61)), Err(AddressError::World { len_bytes: 61 }));
}
