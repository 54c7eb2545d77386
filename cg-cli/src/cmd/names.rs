//! How many names a file from elsewhere may add to a world's registry, where they stay for ever.

use cg_registry::Registration;

use crate::output::{Failure, bytes_text, grouped};

/// Most bytes that all new names may take, with the fields and defaults of their components.
const MAX_BYTES: u64 = 16 << 20;

#[derive(Debug, Clone, Copy, clap::Args)]
pub(super) struct NamesArg {
    /// The greatest number of new names to register: they stay for ever.
    #[arg(long, value_name = "COUNT", default_value_t = 65_536)]
    max_names: u64,
}

impl NamesArg {
    /// How many names are new, unless that are more than allowed.
    pub(super) fn check(self, new: &Registration) -> Result<u64, Failure> {
        let (count, max) = (count(new), self.max_names);
        if count > max {
            let (count, max) = (grouped(count), grouped(max));
            return Err(Failure::refused(format!(
                "{count} names are new to the world and {max} are allowed, for they stay for ever; nothing was written, \
                 --max-names allows more"
            )));
        }
        let len_bytes = len_bytes(new);
        if len_bytes > MAX_BYTES {
            let (len, max) = (bytes_text(len_bytes), bytes_text(MAX_BYTES));
            return Err(Failure::refused(format!(
                "names that are new to the world take {len} and {max} are allowed, for they stay for ever; nothing was \
                 written"
            )));
        }
        Ok(count)
    }
}

fn count(new: &Registration) -> u64 {
    let Registration { components, blocks, entities, structures, dimensions, sides } = new;
    let names = [entities, structures, dimensions, sides].iter().map(|names| names.len()).sum::<usize>();
    (components.len() + blocks.len() + names) as u64
}

fn len_bytes(new: &Registration) -> u64 {
    let Registration { components, blocks, entities, structures, dimensions, sides } = new;
    let names = [entities, structures, dimensions, sides].into_iter().flatten();
    let names = names.chain(blocks.iter().flat_map(|block| block.components.iter().chain([&block.name])));
    let names: usize = names.map(|name| name.as_str().len()).sum();
    let components = components.iter().map(|component| {
        let fields: usize = component.fields.iter().map(|field| field.name.len() + size_of::<u32>()).sum();
        let default = component.default_bytes.as_ref().map_or(0, |bytes| bytes.0.len());
        component.name.as_str().len() + fields + default
    });
    (names + components.sum::<usize>()) as u64
}

#[cfg(test)]
mod tests {
    use cg_registry::{BlockOffer, ComponentOffer, HexBytes, Name};

    use super::*;

    #[track_caller]
    fn check(new: Registration, expected: Result<u64, &str>) {
        let checked = NamesArg { max_names: 3 }.check(&new).map_err(|failure| failure.to_string());
        assert_eq!(checked, expected.map_err(str::to_owned));
    }

    #[test]
    fn no_more_names_are_taken_than_allowed() {
        let name = |text: &str| Name::new(text).expect("a name");
        let blocks = |count: usize| (0..count).map(|n| BlockOffer::new(name(&format!("a:{n}")))).collect();
        check(Registration::default(), Ok(0));
        let three =
            || Registration { blocks: blocks(2), sides: vec![name("a:b")], ..Registration::default() };
        check(three(), Ok(3));
        check(
            Registration { entities: vec![name("a:b")], ..three() },
            Err(
                "4 names are new to the world and 3 are allowed, for they stay for ever; nothing was written, --max-names \
                 allows more",
            ),
        );
        let heavy = ComponentOffer {
            default_bytes: Some(HexBytes(vec![0; 17 << 20])),
            ..ComponentOffer::variable(name("a:heavy"))
        };
        check(
            Registration { components: vec![heavy], ..Registration::default() },
            Err(
                "names that are new to the world take 17.0 MiB and 16.0 MiB are allowed, for they stay for ever; nothing \
                 was written",
            ),
        );
    }
}
