//! Results that criterion wrote of one benchmark.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use serde_json::Value;

use super::folders;

/// Begins the function id of what others are compared with.
const REFERENCE: &str = "ref: ";
/// Stands in it between a reference's name and how many times its time the others may take.
const AIM: &str = " <= ";

/// One benchmark's result.
#[derive(Debug, Clone)]
pub(super) struct Measured {
    pub(super) group: String,
    pub(super) function: String,
    pub(super) parameter: Option<String>,
    pub(super) median_ns: f64,
    pub(super) deviation_ns: f64,
    pub(super) work: Option<Work>,
}

/// The work of one iteration.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Work {
    Bytes(f64),
    /// Whatever the group's name says.
    Elements(f64),
}

/// The results in a folder.
pub(super) fn all(dir: &Path) -> Result<Vec<Measured>> {
    let mut results = Vec::new();
    for path in folders(dir)? {
        if path.file_name().is_some_and(|name| name == "new") && path.join("estimates.json").is_file() {
            results.push(Measured::read(&path)?);
        } else {
            results.extend(all(&path)?);
        }
    }
    Ok(results)
}

impl Measured {
    fn read(dir: &Path) -> Result<Self> {
        let json = |name: &str| -> Result<Value> {
            let path = dir.join(name);
            let text =
                fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
            serde_json::from_str(&text).with_context(|| format!("{} is no JSON", path.display()))
        };
        let (id, estimates) = (json("benchmark.json")?, json("estimates.json")?);
        let text = |name: &str| id[name].as_str().map(str::to_owned);
        let estimate = |name: &str| {
            let value = estimates[name]["point_estimate"].as_f64();
            value.with_context(|| format!("{} has no {name}", dir.display()))
        };
        let work = &id["throughput"];
        let bytes = work["Bytes"].as_f64().map(Work::Bytes);
        Ok(Self {
            group: text("group_id").with_context(|| format!("{} has no group", dir.display()))?,
            function: text("function_id").unwrap_or_default(),
            parameter: text("value_str"),
            median_ns: estimate("median")?,
            deviation_ns: estimate("median_abs_dev")?,
            work: bytes.or_else(|| work["Elements"].as_f64().map(Work::Elements)),
        })
    }

    /// Group, function and parameter.
    pub(super) fn id(&self) -> String {
        let parts = [
            Some(&self.group),
            Some(&self.function).filter(|name| !name.is_empty()),
            self.parameter.as_ref(),
        ];
        parts.into_iter().flatten().map(String::as_str).collect::<Vec<_>>().join("/")
    }

    /// The name of the reference with which others of the group are compared; `None` if this is none.
    pub(super) fn reference(&self) -> Option<&str> {
        let named = self.function.strip_prefix(REFERENCE)?;
        Some(named.split_once(AIM).map_or(named, |(name, _)| name))
    }

    /// How many times the reference's time the others of the group may take, if that is stated.
    pub(super) fn aim(&self) -> Option<f64> {
        self.function.strip_prefix(REFERENCE)?.split_once(AIM)?.1.parse().ok()
    }
}
