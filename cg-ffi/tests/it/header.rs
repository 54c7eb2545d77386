//! The header and the crate say the same: functions, types of parameters, layouts of structs, numbers.

use std::collections::BTreeMap;
use std::mem::offset_of;
use std::path::Path;
use std::process::Command;

use cherrygrove::*;

const HEADER: &str = include_str!("../../../hosts/c/include/cherrygrove.h");

/// The header without comments.
fn declarations() -> String {
    let mut text = String::new();
    let mut rest = HEADER;
    while let Some((before, after)) = rest.split_once("/*") {
        text.push_str(before);
        rest = after.split_once("*/").expect("a comment ends").1;
    }
    text + rest
}

/// The functions of the header: the type of the result, then those of the parameters, in words of Rust.
pub(crate) fn functions() -> BTreeMap<String, Vec<String>> {
    let text = declarations();
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    let mut functions = BTreeMap::new();
    for statement in lines.join("\n").split(';') {
        let Some((head, parameters)) = statement.trim().split_once('(') else { continue };
        let words: Vec<&str> = head.split_whitespace().collect();
        let [.., result, name] = words.as_slice() else { continue };
        if !name.starts_with("cg_") || head.contains('{') {
            continue;
        }
        let parameters = parameters.trim_end_matches(')').trim();
        let mut types = vec![of_c(result)];
        if parameters != "void" {
            types.extend(parameters.split(',').map(|parameter| of_c(without_name(parameter.trim()))));
        }
        functions.insert((*name).to_owned(), types);
    }
    functions
}

/// The type of a parameter: all but its name, which is the last word.
fn without_name(parameter: &str) -> &str {
    if parameter.ends_with("[16]") {
        return "const uint8_t *";
    }
    let is_of_name = |c: char| c.is_alphanumeric() || c == '_';
    parameter.trim_end_matches(is_of_name).trim()
}

/// A type of C in words of Rust.
fn of_c(of_c: &str) -> String {
    let of_c = of_c.trim();
    if let Some(pointed) = of_c.strip_suffix('*') {
        let pointed = pointed.trim();
        return match pointed.strip_prefix("const ") {
            Some(constant) if !constant.contains('*') => format!("*const {}", self::of_c(constant)),
            _ => format!("*mut {}", self::of_c(pointed)),
        };
    }
    let name = match of_c {
        "int" => "c_int",
        "char" => "c_char",
        "size_t" => "usize",
        "uint8_t" => "u8",
        "uint32_t" => "u32",
        "int64_t" => "i64",
        "uint64_t" => "u64",
        name => name,
    };
    name.to_owned()
}

/// The functions that the crate exports, by its source.
fn exported() -> BTreeMap<String, Vec<String>> {
    let mut functions = BTreeMap::new();
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let source = std::fs::read_to_string(&path).expect("a source");
            for function in source.split("extern \"C\" fn ").skip(1) {
                let (name, rest) = function.split_once('(').expect("a list");
                let (parameters, rest) = rest.split_once(')').expect("its end");
                let result = rest.split_once("-> ").expect("a result").1.split_once(" {").expect("a body").0;
                let mut types = vec![result.to_owned()];
                let parameters =
                    parameters.split(',').map(str::trim).filter(|parameter| !parameter.is_empty());
                types.extend(
                    parameters.map(|parameter| parameter.split_once(": ").expect("a type").1.to_owned()),
                );
                assert!(functions.insert(name.to_owned(), types).is_none(), "{name} is there twice");
            }
        }
    }
    functions
}

#[test]
fn the_crate_has_the_functions_of_the_header() {
    let (header, crate_) = (functions(), exported());
    assert!(header.len() > 80, "{} functions were read", header.len());
    for (name, types) in &header {
        assert_eq!(crate_.get(name), Some(types), "{name}");
    }
    for name in crate_.keys() {
        assert!(header.contains_key(name), "{name} is not in the header");
    }
}

macro_rules! layouts {
    ($($name:ident { $($field:ident),+ })+) => {
        /// Size of each struct, and offset of each field.
        const LAYOUTS: &[(&str, usize)] = &[
            $((concat!("sizeof(", stringify!($name), ")"), size_of::<$name>()),
            $((concat!("offsetof(", stringify!($name), ", ", stringify!($field), ")"), offset_of!($name, $field)),)+)+
        ];
    };
}

layouts! {
    cg_str { ptr, len }
    cg_bytes { ptr, len }
    cg_pos { x, y, z }
    cg_box { min, max }
    cg_error { struct_size, kind, retryable, has_place, dimension, message_full_len, chunk, message_len, message }
    cg_options {
        struct_size, mode, durability, on_damage, cache_bytes, queue_bytes, min_free_bytes, held_bytes, group_ms, reserved, game,
        signature, manifests, manifest_count
    }
    cg_world_info { struct_size, read_only, id, incarnation, last_commit, abi_version, durability }
    cg_usage { struct_size, reserved, bytes_on_disk, memory_bytes, free_bytes }
    cg_player_at { id, dimension, reserved, block }
    cg_tick_report { struct_size, is_idle, chunks_moved, chunks_prefetched }
    cg_name { name, flags, width, components, component_count }
    cg_block { name, flags, reserved }
    cg_biome { name, number, reserved }
    cg_binding_desc {
        struct_size, block_count, blocks, biomes, entities, biome_count, entity_count, placeholder, air, biome_placeholder,
        layer_count, order, word_bits, biome_side_log2, widths, reserved
    }
    cg_cells { words, words_len, palette, palette_len, bits, word_bits, order, side_log2 }
    cg_section { y, layer_count, flags, layers, biomes, block_light, sky_light }
    cg_block_entity { at, nbt }
    cg_entity { id, kind, dimension, block, fraction, reserved, nbt }
    cg_scheduled { at, due, block, priority }
    cg_column_at { struct_size, dimension, x, z, min_y, max_y }
    cg_column {
        struct_size, dimension, x, z, min_y, max_y, tick, sections, block_entities, entities, scheduled, section_count,
        block_entity_count, entity_count, scheduled_count, kept, damaged_sections
    }
    cg_column_place { dimension, reserved, x, z, min_y, max_y }
    cg_settings {
        struct_size, reserved, present, name, engine, game_mode, difficulty, thumbnail, spawn_dimension, spawn_block, created_ms,
        changed_ms, seed, time, game_time, rain_time, thunder_time, required_sleep_ticks, tick_range, time_cycle, raining,
        thundering, weather_cycle, reserved2
    }
    cg_record { id, dimension, fraction, block, timestamp, kind, bytes }
    cg_row { key, bytes, version, record, entity }
    cg_cell { x, y, z, layer }
    cg_component { component, at, reserved, bytes }
    cg_done { tag, result, flags, dimension, reserved, chunk, column, view, commit, message }
}

#[test]
fn structs_have_the_layout_that_a_c_compiler_gives_them() {
    let structs = declarations().matches("} cg_").count();
    let listed = LAYOUTS.iter().filter(|(what, _)| what.starts_with("sizeof")).count();
    assert_eq!(listed, structs, "the header has other structs than this test");
    let dir = tempfile::tempdir().expect("a folder");
    let (source, program) = (dir.path().join("layout.c"), dir.path().join("layout"));
    let lines: String =
        LAYOUTS.iter().map(|(what, _)| format!("    printf(\"%zu\\n\", (size_t){what});\n")).collect();
    let text = format!(
        "#include <stdio.h>\n#include <cherrygrove.h>\nint main(void) {{\n{lines}    printf(\"%u\\n\", CG_ABI_VERSION);\n    return 0;\n}}\n"
    );
    std::fs::write(&source, text).expect("written");
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("../hosts/c/include");
    let mut cc = Command::new("cc");
    cc.args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-pedantic", "-I"]).arg(include);
    let compiled = match cc.arg(&source).arg("-o").arg(&program).output() {
        Ok(compiled) => compiled,
        Err(error) => {
            eprintln!("SKIPPED: no C compiler `cc`, so the layouts were not compared: {error}");
            return;
        }
    };
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    let printed = Command::new(&program).output().expect("it runs").stdout;
    let printed = String::from_utf8(printed).expect("UTF-8");
    let expected: Vec<String> = LAYOUTS.iter().map(|(what, number)| format!("{what} {number}")).collect();
    let (numbers, version): (Vec<&str>, _) = {
        let mut lines: Vec<&str> = printed.lines().collect();
        let version = lines.pop().expect("a version");
        (lines, version)
    };
    let found: Vec<String> =
        LAYOUTS.iter().zip(numbers).map(|((what, _), number)| format!("{what} {number}")).collect();
    assert_eq!(found, expected);
    assert_eq!(version, CG_ABI_VERSION.to_string());
}

#[test]
fn a_struct_with_pointers_that_point_to_pointers_is_read_as_c_means_it() {
    assert_eq!(of_c("const cg_column **"), "*mut *const cg_column");
    assert_eq!(of_c("const uint8_t *"), "*const u8");
    assert_eq!(without_name("const cg_column **view"), "const cg_column **");
    assert_eq!(without_name("const uint8_t id[16]"), "const uint8_t *");
}
