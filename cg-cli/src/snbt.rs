//! NBT as text, as the game's commands write it.

use std::fmt::{self, Write as _};

use cg_snapshot::nbt::{Compound, Document, Limits, Text, Value};

/// Bytes as SNBT; `None` if they are neither a whole tree nor the fields of one.
pub(crate) fn snbt(bytes: &[u8]) -> Option<String> {
    let limits = Limits::default();
    let whole = Document::parse(bytes, &limits).ok().filter(|document| document.trailing.is_empty());
    let root = whole.map(|document| document.root).or_else(|| Compound::parse(bytes, &limits).ok())?;
    // A single zero is also a compound without fields.
    let is_some = whole.is_some() || root.fields().next().is_some();
    is_some.then(|| Snbt(Value::Compound(root)).to_string())
}

/// Writes a value as SNBT.
struct Snbt<'a>(Value<'a>);

impl fmt::Display for Snbt<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Value::Byte(value) => write!(f, "{value}b"),
            Value::Short(value) => write!(f, "{value}s"),
            Value::Int(value) => write!(f, "{value}"),
            Value::Long(value) => write!(f, "{value}L"),
            Value::Float(value) => write!(f, "{value:?}f"),
            Value::Double(value) => write!(f, "{value:?}d"),
            Value::String(text) => quoted(f, text),
            Value::ByteArray(bytes) => {
                let values = bytes.iter().map(|byte| format!("{}b", byte.cast_signed()));
                separated(f, "[B;", values, "]")
            }
            Value::IntArray(values) => separated(f, "[I;", values.values(), "]"),
            Value::LongArray(values) => {
                separated(f, "[L;", values.values().map(|value| format!("{value}L")), "]")
            }
            Value::List(list) => separated(f, "[", list.values().map(Snbt), "]"),
            Value::Compound(compound) => {
                f.write_char('{')?;
                for (index, field) in compound.fields().enumerate() {
                    f.write_str(if index > 0 { "," } else { "" })?;
                    name(f, field.name)?;
                    write!(f, ":{}", Snbt(field.value))?;
                }
                f.write_char('}')
            }
        }
    }
}

fn separated(
    f: &mut fmt::Formatter<'_>,
    begin: &str,
    values: impl Iterator<Item = impl fmt::Display>,
    end: &str,
) -> fmt::Result {
    f.write_str(begin)?;
    for (index, value) in values.enumerate() {
        f.write_str(if index > 0 { "," } else { "" })?;
        write!(f, "{value}")?;
    }
    f.write_str(end)
}

/// A field's name, quoted where the game demands it.
fn name(f: &mut fmt::Formatter<'_>, name: Text<'_>) -> fmt::Result {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-.+".contains(byte);
    if !name.0.is_empty() && name.0.iter().all(is_plain) {
        f.write_str(&name.lossy())
    } else {
        quoted(f, name)
    }
}

fn quoted(f: &mut fmt::Formatter<'_>, text: Text<'_>) -> fmt::Result {
    f.write_char('"')?;
    for c in text.lossy().chars() {
        match c {
            '"' | '\\' => write!(f, "\\{c}")?,
            '\n' => f.write_str("\\n")?,
            '\t' => f.write_str("\\t")?,
            c if c.is_control() => write!(f, "\\u{:04x}", u32::from(c))?,
            c => f.write_char(c)?,
        }
    }
    f.write_char('"')
}
