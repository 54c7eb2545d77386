//! How clap reads the place of a world. Its own errors repeat a value, and so the password of an address.

use std::ffi::OsStr;
use std::path::PathBuf;

use clap::builder::{PathBufValueParser, TypedValueParser};
use clap::error::ErrorKind;
use clap::{Arg, Command};

use super::{Place, is_address};

/// Reads a [`Place`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct PlaceParser;

/// Reads a directory, and refuses an address.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DirectoryParser;

impl TypedValueParser for PlaceParser {
    type Value = Place;

    fn parse_ref(&self, command: &Command, arg: Option<&Arg>, value: &OsStr) -> Result<Place, clap::Error> {
        let path = PathBufValueParser::new().parse_ref(command, arg, value)?;
        Place::parse(path.as_os_str()).map_err(|why| refused(command, &why))
    }
}

impl TypedValueParser for DirectoryParser {
    type Value = PathBuf;

    fn parse_ref(&self, command: &Command, arg: Option<&Arg>, value: &OsStr) -> Result<PathBuf, clap::Error> {
        if is_address(value) {
            let name = arg.map_or_else(String::new, |arg| format!("{arg} "));
            return Err(refused(command, &format!("{name}takes a directory, and no address of a database")));
        }
        PathBufValueParser::new().parse_ref(command, arg, value)
    }
}

fn refused(command: &Command, why: &str) -> clap::Error {
    clap::Error::raw(ErrorKind::ValueValidation, format!("{why}\n")).with_cmd(command)
}
