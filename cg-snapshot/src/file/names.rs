//! The names of a file: components, blocks, kinds of entities and kinds of side data, each list ascending by id.

use std::sync::Arc;

use cg_format::wire::{Reader, Trace, Writer};
use cg_format::{
    BlockId, ComponentId, ComponentShape, DecodeError, EntityTypeId, Limits, Problem, Section, SideKind,
};
use cg_registry::portable::{Listed, NamedBlock, NamedComponent, Names};
use cg_registry::schema::Field;
use cg_registry::{ComponentSpec, ListKind, Name};

use super::head::{text, write_text};

/// The approximate memory of an entry without its own bytes.
const ENTRY_BYTES: u64 = 128;

pub(super) fn encode(names: &Names) -> Vec<u8> {
    let mut out = Vec::new();
    let mut writer = Writer::new(&mut out);
    writer.u32(names.components.len() as u32);
    for (id, component) in &names.components {
        let NamedComponent { name, spec } = &**component;
        writer.u64(id.get());
        write_text(&mut writer, name.as_str());
        writer.u32(match spec.shape {
            ComponentShape::Fixed { width_bytes } => width_bytes,
            ComponentShape::Variable => 0,
        });
        writer.u32(spec.default_bytes.len() as u32);
        writer.bytes(&spec.default_bytes);
        writer.u16(spec.fields.len() as u16);
        for field in &spec.fields {
            writer.u32(field.width_bytes);
            write_text(&mut writer, &field.name);
        }
    }
    writer.u32(names.blocks.len() as u32);
    for (id, block) in &names.blocks {
        let NamedBlock { name, opaque, components } = &**block;
        writer.u64(id.get());
        write_text(&mut writer, name.as_str());
        writer.u8(u8::from(*opaque));
        writer.u16(components.len() as u16);
        for component in components {
            writer.u64(component.get());
        }
    }
    writer.u32(names.entities.len() as u32);
    for (id, name) in &names.entities {
        writer.u64(id.get());
        write_text(&mut writer, name.as_str());
    }
    writer.u32(names.sides.len() as u32);
    for (kind, name) in &names.sides {
        writer.u16(kind.get());
        write_text(&mut writer, name.as_str());
    }
    if !names.aliases.is_empty() {
        writer.u32(names.aliases.len() as u32);
        for ((list, id), all) in &names.aliases {
            writer.u8(ListKind::ALL.iter().position(|it| it == list).unwrap_or_default() as u8);
            writer.u64(*id);
            writer.u16(all.len() as u16);
            for name in all.iter() {
                write_text(&mut writer, name.as_str());
            }
        }
    }
    out
}

pub(super) fn decode(
    raw: &[u8],
    version: u64,
    limits: &mut Limits,
    trace: Option<&Trace>,
) -> Result<Names, DecodeError> {
    let mut reader = Reader::new(raw, Section::SnapshotNames).traced(trace);
    let mut last = None;
    let components = (0..count(&mut reader, limits, "components", 20)?).map(|_| {
        let id = ComponentId::new(ascending(&mut reader, "component id", &mut last)?);
        Ok((id, Arc::new(component(&mut reader, id)?)))
    });
    let components = components.collect::<Result<Listed<_, _>, DecodeError>>()?;
    let mut last = None;
    let blocks = (0..count(&mut reader, limits, "blocks", 13)?).map(|_| {
        let id = BlockId::new(ascending(&mut reader, "block id", &mut last)?);
        Ok((id, Arc::new(block(&mut reader, &components)?)))
    });
    let blocks = blocks.collect::<Result<_, DecodeError>>()?;
    let mut last = None;
    let entities = (0..count(&mut reader, limits, "entity kinds", 10)?).map(|_| {
        let id = EntityTypeId::new(ascending(&mut reader, "entity kind", &mut last)?);
        Ok((id, name(&mut reader)?))
    });
    let entities = entities.collect::<Result<_, DecodeError>>()?;
    let mut last = None;
    let sides = (0..count(&mut reader, limits, "side kinds", 4)?).map(|_| {
        let here = reader.clone();
        let kind = reader.u16("side kind")?;
        check_ascending(&here, "side kind", kind.into(), &mut last)?;
        Ok((SideKind::new(kind), name(&mut reader)?))
    });
    let sides = sides.collect::<Result<_, DecodeError>>()?;
    let aliases = if version < 2 { Listed::default() } else { aliases(&mut reader, limits)? };
    reader.end("bytes after the names")?;
    Ok(Names { blocks, components, entities, sides, aliases })
}

/// The other names of ids, by list.
type Aliases = Listed<(ListKind, u64), Arc<[Name]>>;

fn aliases(reader: &mut Reader<'_>, limits: &mut Limits) -> Result<Aliases, DecodeError> {
    let mut last = None;
    let entries = (0..count(reader, limits, "aliased ids", 14)?).map(|_| {
        let here = reader.clone();
        let found = reader.u8("list")?;
        let kind = ListKind::ALL.get(usize::from(found)).copied().ok_or_else(|| {
            let (field, allowed) = ("list", "0 to 5");
            here.error(Problem::OutOfRange { field, found: found.into(), allowed })
        })?;
        let here = reader.clone();
        let id = reader.u64("aliased id")?;
        if last.replace((kind, id)).is_some_and(|last| last >= (kind, id)) {
            let (field, allowed) = ("aliased id", "one above that before it in its list");
            return Err(here.error(Problem::OutOfRange { field, found: id, allowed }));
        }
        let count = reader.u16("aliases")?;
        limits.spend(
            Section::SnapshotNames,
            here.offset_bytes(),
            "aliases",
            u64::from(count) * ENTRY_BYTES,
        )?;
        let names = (0..count).map(|_| name(reader)).collect::<Result<Vec<_>, _>>()?;
        Ok(((kind, id), Arc::from(names)))
    });
    entries.collect()
}

fn component(reader: &mut Reader<'_>, id: ComponentId) -> Result<NamedComponent, DecodeError> {
    let name = name(reader)?;
    let here = reader.clone();
    let width_bytes = reader.u32("component width")?;
    let default_len_bytes = reader.u32("default len")?;
    let default_bytes = reader.take("default", default_len_bytes as usize)?.to_vec();
    let mut fields = Vec::new();
    for _ in 0..reader.u16("component fields")? {
        let width_bytes = reader.u32("field width")?;
        let name = text(reader, "field name len", "field name")?.to_owned();
        fields.push(Field { name, width_bytes });
    }
    let wrong = |allowed| {
        here.error(Problem::OutOfRange { field: "component width", found: width_bytes.into(), allowed })
    };
    let shape = match id.is_variable() {
        true if width_bytes > 0 => return Err(wrong("0 for a component of variable size")),
        true => ComponentShape::Variable,
        false => ComponentShape::Fixed { width_bytes },
    };
    let spec = ComponentSpec { shape, default_bytes, fields };
    spec.check().map_err(|_| wrong("one that its default and its fields fill"))?;
    Ok(NamedComponent { name, spec })
}

fn block(
    reader: &mut Reader<'_>,
    named: &Listed<ComponentId, Arc<NamedComponent>>,
) -> Result<NamedBlock, DecodeError> {
    let name = name(reader)?;
    let here = reader.clone();
    let opaque = match reader.u8("opaque")? {
        0 => false,
        1 => true,
        found => {
            let found = found.into();
            return Err(here.error(Problem::OutOfRange { field: "opaque", found, allowed: "0 or 1" }));
        }
    };
    let count = reader.u16("block components")?;
    let mut components = Vec::new();
    let mut last = None;
    for _ in 0..count {
        let here = reader.clone();
        let id = ComponentId::new(ascending(reader, "block component", &mut last)?);
        if !named.contains_key(&id) {
            let (field, found) = ("block component", id.get());
            return Err(here.error(Problem::OutOfRange { field, found, allowed: "a component of the list" }));
        }
        components.push(id);
    }
    Ok(NamedBlock { name, opaque, components })
}

fn name(reader: &mut Reader<'_>) -> Result<Name, DecodeError> {
    let here = reader.clone();
    let text = text(reader, "name len", "name")?;
    Name::new(text).map_err(|_| {
        let (field, found) = ("name len", text.len() as u64);
        here.error(Problem::OutOfRange { field, found, allowed: "that of a name `namespace:identifier`" })
    })
}

/// Reads a count of entries. Each has at least this many bytes in the file, and more in memory.
fn count(
    reader: &mut Reader<'_>,
    limits: &mut Limits,
    field: &'static str,
    width: u64,
) -> Result<u32, DecodeError> {
    let here = reader.clone();
    let count = reader.u32(field)?;
    let left = reader.left_bytes() as u64;
    if u64::from(count) * width > left {
        return Err(here.error(Problem::CountExceedsInput { field, count: count.into(), width, left }));
    }
    limits.spend(Section::SnapshotNames, here.offset_bytes(), field, u64::from(count) * ENTRY_BYTES)?;
    Ok(count)
}

fn ascending(
    reader: &mut Reader<'_>,
    field: &'static str,
    last: &mut Option<u64>,
) -> Result<u64, DecodeError> {
    let here = reader.clone();
    let found = reader.u64(field)?;
    check_ascending(&here, field, found, last).map(|()| found)
}

fn check_ascending(
    here: &Reader<'_>,
    field: &'static str,
    found: u64,
    last: &mut Option<u64>,
) -> Result<(), DecodeError> {
    if last.is_some_and(|last| last >= found) {
        return Err(here.error(Problem::OutOfRange {
            field,
            found,
            allowed: "an id above the one before it",
        }));
    }
    *last = Some(found);
    Ok(())
}
