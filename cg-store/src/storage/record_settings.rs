//! The settings of the record tree, with WorldQL's names and variables.

use std::ffi::OsString;
use std::fmt;

/// The four settings of a tree, with WorldQL's names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RecordSettings {
    /// `WQL_LEAF_SQUARE_SIZE`: the side of a leaf in blocks, at least 1.
    pub leaf_square_size: u32,
    /// `WQL_TREE_DEGREE`: the number of children of a node: a cube number, at least 8.
    pub tree_degree: u32,
    /// `WQL_NUM_LEVELS`: the levels from the roots to the leaves, both included: 1 to 16.
    pub num_levels: u32,
    /// `WQL_ROOTS_PER_TABLE`: the number of trees in one table: a cube number, at least 1.
    pub roots_per_table: u32,
}

impl Default for RecordSettings {
    /// WorldQL's own example: leaves of 16 blocks, 8×8×8 of them in a root, 2×2×2 roots in a table of 256 blocks.
    fn default() -> Self {
        Self { leaf_square_size: 16, tree_degree: 512, num_levels: 2, roots_per_table: 8 }
    }
}

impl RecordSettings {
    /// The settings that the environment names with WorldQL's variables, which the fields list. A variable that is not
    /// set leaves the default.
    ///
    /// They are for a new world: a world keeps the shape that it was made with. [`RecordShape::new`](crate::records::RecordShape::new)
    /// checks whether they make a tree.
    ///
    /// ```
    /// use cg_store::records::{RecordSettings, RecordShape};
    /// let shape = RecordShape::new(RecordSettings::from_env()?)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`NotASetting`] names the first variable that is no number.
    pub fn from_env() -> Result<Self, NotASetting> {
        Self::from_variables(|variable| std::env::var_os(variable))
    }

    fn from_variables(value: impl Fn(&str) -> Option<OsString>) -> Result<Self, NotASetting> {
        let read = |variable: &'static str, default: u32| match value(variable) {
            Some(found) => {
                let number = found.to_str().and_then(|text| text.trim().parse().ok());
                number.ok_or(NotASetting { variable, found })
            }
            None => Ok(default),
        };
        let Self { leaf_square_size, tree_degree, num_levels, roots_per_table } = Self::default();
        Ok(Self {
            leaf_square_size: read("WQL_LEAF_SQUARE_SIZE", leaf_square_size)?,
            tree_degree: read("WQL_TREE_DEGREE", tree_degree)?,
            num_levels: read("WQL_NUM_LEVELS", num_levels)?,
            roots_per_table: read("WQL_ROOTS_PER_TABLE", roots_per_table)?,
        })
    }
}

/// A variable of the environment that is no setting.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{variable} is {found:?}, allowed is a number from 0 to 4294967295; set it or unset it")]
pub struct NotASetting {
    /// The variable.
    pub variable: &'static str,
    /// Its value.
    pub found: OsString,
}

impl fmt::Display for RecordSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { leaf_square_size, tree_degree, num_levels, roots_per_table } = self;
        write!(
            f,
            "leaf {leaf_square_size}, degree {tree_degree}, levels {num_levels}, roots {roots_per_table}"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(set: &[(&str, &str)]) -> Result<RecordSettings, NotASetting> {
        RecordSettings::from_variables(|variable| {
            set.iter().find(|(name, _)| *name == variable).map(|(_, value)| (*value).into())
        })
    }

    #[test]
    fn each_variable_is_a_setting_and_the_others_stay() {
        let default = RecordSettings::default();
        assert_eq!(read(&[]), Ok(default));
        let cases = [
            ("WQL_LEAF_SQUARE_SIZE", RecordSettings { leaf_square_size: 27, ..default }),
            ("WQL_TREE_DEGREE", RecordSettings { tree_degree: 27, ..default }),
            ("WQL_NUM_LEVELS", RecordSettings { num_levels: 27, ..default }),
            ("WQL_ROOTS_PER_TABLE", RecordSettings { roots_per_table: 27, ..default }),
        ];
        for (variable, settings) in cases {
            assert_eq!(read(&[(variable, "27")]), Ok(settings), "{variable}");
            assert_eq!(read(&[(variable, " 27\n")]), Ok(settings), "{variable}");
        }
    }

    #[test]
    fn a_variable_that_is_no_number_is_named_with_its_value() {
        for found in ["", "-1", "8.0", "0x10", "4294967296", "acht"] {
            let error = read(&[("WQL_TREE_DEGREE", found)]).expect_err("is no number");
            assert_eq!(error, NotASetting { variable: "WQL_TREE_DEGREE", found: found.into() });
            assert_eq!(
                error.to_string(),
                format!(
                    "WQL_TREE_DEGREE is {found:?}, allowed is a number from 0 to 4294967295; set it or unset it"
                )
            );
        }
    }
}
