//! The forms of palettes, and how each spells a state.

use crate::game;
use crate::state::{self, Properties, StateError};

/// The first `DataVersion` whose palettes have names and ids.
///
/// 26.3 snapshot 7 brought them. The newest version that is known to be without is 4998, and 5023, which is 26.3, is known
/// to have them. Between these are only snapshots from the seventh on and what came before the release. So whatever a game
/// wrote after 4998 has them; where a column shows another form, that form is kept.
const NAMES_AND_IDS: i32 = 4999;

/// A form of palettes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// `{Name, Properties}` for every state: until 26.3 snapshot 6.
    Named,
    /// The name for a default state, and `{id, properties}` with all properties for any other.
    ///
    /// This is written where nothing else was met: a reader without default states reads it too, but for the default states.
    Whole,
    /// As [`Form::Whole`], but without the properties that have the value of the default state.
    Short,
    /// As [`Form::Named`], but with `Properties` also where there are none, as `FastAsyncWorldEdit` writes it.
    Padded,
}

/// How a form spells a state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Spelling<'a> {
    /// Its name.
    Text(&'a str),
    /// A compound of its name and properties.
    Compound(&'a str, Properties<'a>),
}

impl Form {
    /// Every form.
    pub const ALL: [Self; 4] = [Self::Named, Self::Whole, Self::Short, Self::Padded];

    /// The form that the game of a `DataVersion` writes.
    pub const fn of(data_version: i32) -> Self {
        if data_version < NAMES_AND_IDS { Self::Named } else { Self::Whole }
    }

    /// The number by which a stored object names the form.
    pub const fn code(self) -> i8 {
        self as i8
    }

    /// The form of a number.
    pub fn from_code(code: i64) -> Option<Self> {
        Self::ALL.into_iter().find(|form| i64::from(form.code()) == code)
    }

    /// The fields of a compound that has a state's name and its properties.
    pub const fn fields(self) -> (&'static str, &'static str) {
        match self {
            Self::Named | Self::Padded => ("Name", "Properties"),
            Self::Whole | Self::Short => ("id", "properties"),
        }
    }

    /// How this form spells a state in a column of this version.
    ///
    /// # Errors
    /// [`StateError::NotAState`].
    pub fn spell(self, state: &str, data_version: i32) -> Result<Spelling<'_>, StateError> {
        let (name, mut properties) = state::parse(state)?;
        if matches!(self, Self::Named | Self::Padded) {
            return Ok(Spelling::Compound(name, properties));
        }
        if game::is_default(state, data_version) {
            return Ok(Spelling::Text(name));
        }
        if self == Self::Short {
            properties.retain(|(key, value)| game::default_value(name, key, data_version) != Some(value));
        }
        Ok(Spelling::Compound(name, properties))
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn the_version_decides_the_form() {
        assert_eq!([0, 1451, 4903, 4998].map(Form::of), [Form::Named; 4]);
        assert_eq!([4999, 5023, 5126, i32::MAX].map(Form::of), [Form::Whole; 4]);
        for form in Form::ALL {
            assert_eq!(Form::from_code(form.code().into()), Some(form));
        }
        assert_eq!(Form::from_code(4), None);
    }

    #[test]
    fn each_form_spells_a_state_in_its_own_way() {
        let states = [
            "minecraft:stone",
            "minecraft:oak_slab[type=bottom,waterlogged=false]",
            "minecraft:oak_slab[type=top,waterlogged=false]",
            "minecraft:oak_slab",
            "a:b",
            "a:b[k=v]",
        ];
        let spelled = states.map(|state| {
            [Form::Named, Form::Whole, Form::Short]
                .map(|form| format!("{:?}", form.spell(state, 5023).expect("a state")))
                .join(" | ")
        });
        expect![[r#"
            Compound("minecraft:stone", []) | Text("minecraft:stone") | Text("minecraft:stone")
            Compound("minecraft:oak_slab", [("type", "bottom"), ("waterlogged", "false")]) | Text("minecraft:oak_slab") | Text("minecraft:oak_slab")
            Compound("minecraft:oak_slab", [("type", "top"), ("waterlogged", "false")]) | Compound("minecraft:oak_slab", [("type", "top"), ("waterlogged", "false")]) | Compound("minecraft:oak_slab", [("type", "top")])
            Compound("minecraft:oak_slab", []) | Text("minecraft:oak_slab") | Text("minecraft:oak_slab")
            Compound("a:b", []) | Text("a:b") | Text("a:b")
            Compound("a:b", [("k", "v")]) | Compound("a:b", [("k", "v")]) | Compound("a:b", [("k", "v")])"#]]
        .assert_eq(&spelled.join("\n"));
    }
}
