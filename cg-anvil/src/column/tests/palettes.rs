//! States through NBT and back, in every form.

use std::sync::Arc;

use cg_minecraft::game::{self, BLOCKS};
use cg_minecraft::palette::Form;
use proptest::prelude::*;
use proptest::sample::Index;

use crate::column::{Blocks, CELLS, Column, Section};
use crate::region::ColumnPos;
use crate::{Decoder, Payload, write};

/// A state of the game with some properties of its block, whole in a version, or one of a mod.
fn state() -> impl Strategy<Value = (String, bool)> {
    let of_game = (any::<Index>(), any::<u16>(), any::<u16>()).prop_map(|(block, said, other)| {
        let block = block.get(&BLOCKS[..]);
        let pairs = block.properties.iter().enumerate().filter(|(at, _)| said >> (at % 16) & 1 == 1);
        let value = |at: usize, default| if other >> (at % 16) & 1 == 1 { "other" } else { default };
        let pairs: Vec<_> =
            pairs.map(|(at, one)| format!("{}={}", one.key, value(at, one.default))).collect();
        let inside = if pairs.is_empty() { String::new() } else { format!("[{}]", pairs.join(",")) };
        (format!("minecraft:{}{inside}", block.name), true)
    });
    let of_mod =
        ("[a-z]{1,4}:[a-zé😀 ]{1,6}", prop::collection::btree_map("[a-z]{1,4}", "[a-z0-9é]{1,4}", 0..4));
    let of_mod = of_mod.prop_map(|(name, pairs)| {
        let pairs: Vec<_> = pairs.into_iter().map(|(key, value)| format!("{key}={value}")).collect();
        let inside = if pairs.is_empty() { String::new() } else { format!("[{}]", pairs.join(",")) };
        (format!("{name}{inside}"), false)
    });
    prop_oneof![of_game, of_mod]
}

fn read(bytes: &[u8]) -> Column {
    match Decoder::default().decode(bytes).expect("it was written") {
        Payload::Column(column) => column,
        other => panic!("no column: {other:?}"),
    }
}

/// A column of these states, each in some cells.
fn column(states: &[(String, bool)], data_version: i32, form: Form) -> Column {
    let mut palette: Vec<Arc<str>> = Vec::new();
    for (state, _) in states {
        let state: Arc<str> = game::complete(state, data_version).into();
        if !palette.contains(&state) {
            palette.push(state);
        }
    }
    let mut indices = Box::new([0; CELLS]);
    for (cell, index) in indices.iter_mut().enumerate() {
        *index = (cell % palette.len()) as u16;
    }
    let indices = (palette.len() > 1).then_some(indices);
    let mut column = Column { form: Some(form), ..Column::new(ColumnPos::new(3, -7), data_version) };
    column.sections.push(Section { blocks: Some(Blocks { palette, indices }), ..Section::new(-4) });
    column
}

proptest! {
    #[test]
    fn states_come_back_from_every_form(
        states in prop::collection::vec(state(), 1..20),
        data_version in prop::sample::select(vec![1519, 1976, 2975, 3105, 4903, 5023]),
        form in prop::sample::select(Form::ALL.to_vec()),
    ) {
        let column = column(&states, data_version, form);
        let bytes = write::column(&column).expect("states of the game's form");
        let again = read(&bytes);
        prop_assert_eq!(&again.problems, &[]);
        prop_assert_eq!(&again.sections, &column.sections, "no palette is kept of a form's own");
        prop_assert_eq!(write::column(&again).expect("it was read"), bytes);
    }

    #[test]
    fn what_was_met_comes_back_in_any_column(
        states in prop::collection::vec(state(), 1..20),
        data_version in prop::sample::select(vec![1976, 2975, 4903, 5023]),
        form in prop::sample::select(Form::ALL.to_vec()),
    ) {
        // Cut short, as no version of the game writes it.
        let mut column = column(&states, data_version, form);
        let blocks = column.sections[0].blocks.as_mut().expect("blocks");
        for (state, (short, _)) in blocks.palette.iter_mut().zip(&states) {
            *state = short.as_str().into();
        }
        let bytes = write::column(&column).expect("states of the game's form");
        let met = read(&bytes);
        prop_assert_eq!(write::column(&met).expect("it was read"), bytes);
    }
}
