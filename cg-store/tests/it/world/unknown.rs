//! Content that a world refuses to store, because it could not be read again or would mean nothing.

use super::*;
use cg_format::schema::NoComponents;
use expect_test::{Expect, expect};

over_both_engines! {
    a_block_that_was_never_issued
    a_dimension_that_was_never_issued
    a_chunk_of_another_schema
    a_kind_of_side_data_that_was_never_issued
    an_entity_of_a_type_that_was_never_issued
    an_entity_with_a_component_that_was_never_issued
    an_entity_with_a_component_of_another_size
    an_entity_somewhere_that_was_never_issued
}

#[track_caller]
fn refused(world: &World, expected: Expect, body: impl FnOnce(&mut Transaction<'_>) -> Result<(), Error>) {
    let before = rows(world);
    let error = world.transaction(body).expect_err("is refused");
    assert!(before == rows(world), "a refused transaction wrote something");
    expected.assert_eq(&error.to_string());
    assert_sound(world);
}

fn a_block_that_was_never_issued(world: &World) {
    let ids = Ids::register(world);
    let expected = expect![
        "chunk 0, 0, 0 of dimension 0 uses block id 4, and the world has issued 4; register the block's name first"
    ];
    refused(world, expected, |tx| {
        let chunk = Chunk::filled(BlockId::new(4), &NoComponents).expect("a schema that knows every block");
        tx.save(ids.at(0, 0, 0), chunk);
        Ok(())
    });
    let expected = expect!["block 4 is unknown to the schema; register it first"];
    refused(world, expected, |tx| {
        tx.save(ids.at(0, 0, 0), filled(world, ids.air));
        tx.set_block(ids.overworld, BlockPos::new(0, 0, 0), BlockId::new(4)).map(drop)
    });
}

fn a_dimension_that_was_never_issued(world: &World) {
    let ids = Ids::register(world);
    let expected = expect!["dimension 2 is not registered, the world has 2; register its name first"];
    refused(world, expected, |tx| {
        let nowhere = ChunkAt::new(Dimension::new(2), ChunkPos::constant(0, 0, 0));
        tx.save(nowhere, filled(world, ids.air));
        Ok(())
    });
}

fn a_chunk_of_another_schema(world: &World) {
    let ids = Ids::register(world);
    let bare = || Chunk::filled(ids.machine, &NoComponents).expect("a schema that knows every block");
    let expected = expect![
        "chunk 0, 0, 0 of dimension 0 does not fit the world's schema at `game:power`: component 0x0 has 0 instances, the schema gives 4096 to the blocks; build chunks with the schema of the world's catalog"
    ];
    refused(world, expected, |tx| {
        tx.save(ids.at(0, 0, 0), bare());
        Ok(())
    });
    // The other way round: components where this world's schema has none.
    let mut laden = filled(world, ids.machine);
    laden.remap_blocks(|_| ids.stone);
    let expected = expect![
        "chunk 0, 0, 0 of dimension 0 does not fit the world's schema at `game:power`: component 0x0 has 4096 instances, the schema gives 0 to the blocks; build chunks with the schema of the world's catalog"
    ];
    refused(world, expected, |tx| {
        tx.save(ids.at(0, 0, 0), laden);
        Ok(())
    });
}

fn a_kind_of_side_data_that_was_never_issued(world: &World) {
    let ids = Ids::register(world);
    let expected = expect![
        "chunk 0, 0, 0 of dimension 0 has side data of kind 9, and the world has issued 3; register the kind's name first"
    ];
    refused(world, expected, |tx| {
        let mut chunk = filled(world, ids.air);
        chunk.set_side(SideKind::new(9), vec![1]);
        tx.save(ids.at(0, 0, 0), chunk);
        Ok(())
    });
}

fn an_entity_of_a_type_that_was_never_issued(world: &World) {
    let ids = Ids::register(world);
    save(world, [(ids.at(0, 0, 0), filled(world, ids.air))]);
    let expected = expect![
        "entity 00000000-0000-0000-0000-000000000001 is of type 1, and the world has issued 1; register the type's name first"
    ];
    refused(world, expected, |tx| {
        let mut cow = ids.cow_in(ids.at(0, 0, 0));
        cow.kind = EntityTypeId::new(1);
        tx.put_entity(uuid(1), cow);
        Ok(())
    });
}

fn an_entity_with_a_component_that_was_never_issued(world: &World) {
    let ids = Ids::register(world);
    save(world, [(ids.at(0, 0, 0), filled(world, ids.air))]);
    let expected = expect![
        "entity 00000000-0000-0000-0000-000000000001 has component 0x8000000000000007, which the world has not issued; register its name first"
    ];
    refused(world, expected, |tx| {
        let mut cow = ids.cow_in(ids.at(0, 0, 0));
        cow.set_component(ComponentId::variable(7), vec![1]).expect("short");
        tx.put_entity(uuid(1), cow);
        Ok(())
    });
}

fn an_entity_with_a_component_of_another_size(world: &World) {
    let ids = Ids::register(world);
    save(world, [(ids.at(0, 0, 0), filled(world, ids.air))]);
    let expected = expect![
        "entity 00000000-0000-0000-0000-000000000001 has 3 bytes of component `game:power`, whose size is 4; give it as many"
    ];
    refused(world, expected, |tx| {
        let mut cow = ids.cow_in(ids.at(0, 0, 0));
        cow.set_component(ids.power, vec![1; 3]).expect("short");
        tx.put_entity(uuid(1), cow);
        Ok(())
    });
}

fn an_entity_somewhere_that_was_never_issued(world: &World) {
    let ids = Ids::register(world);
    let a = ids.at(0, 0, 0);
    save(world, [(a, filled(world, ids.air))]);
    let expected = expect!["dimension 5 is not registered, the world has 2; register its name first"];
    refused(world, expected, |tx| {
        let position =
            EntityPos::new(Dimension::new(5), BlockPos::new(0, 0, 0), [0.0; 3]).expect("a position");
        tx.put_entity(uuid(1), Entity::new(ids.cow, Owner::Chunk(a), position));
        Ok(())
    });
}
