// Transactions, objects, properties and records through cherrygrove.hpp.
#include "cpp.hpp"

TEST(objects_and_properties) {
    Fixture f;
    f.world.transaction()
        .object(cg::bytes_of("a/1"), cg::bytes_of("one"))
        .object(cg::bytes_of("a/2"), cg::bytes_of("two"))
        .object(cg::bytes_of("b"), {})
        .property("game:rules", cg::bytes_of("none"))
        .property("game:empty", {})
        .commit();
    CHECK(f.world.object(cg::bytes_of("a/1"))->text() == "one");
    CHECK(f.world.object(cg::bytes_of("b"))->bytes().empty());
    CHECK(!f.world.object(cg::bytes_of("c")));
    CHECK(f.world.property("game:rules")->text() == "none");
    CHECK(f.world.property("game:empty")->bytes().empty()); // set to nothing is not removed
    CHECK(!f.world.property("game:other"));
    std::string found;
    for (const auto &row : f.world.objects(cg::bytes_of("a/"))) found += cg::text_of(cg::detail::bytes(row.bytes));
    CHECK(found == "onetwo");
    f.world.transaction().remove_property("game:rules").delete_object(cg::bytes_of("a/1")).commit();
    CHECK(!f.world.property("game:rules") && !f.world.object(cg::bytes_of("a/1")));
    std::size_t count = 0;
    for (const auto &row : f.world.properties("game:")) count += row.key.len > 0;
    EQUAL(1, count);
}

TEST(records) {
    Fixture f;
    auto tx = f.world.transaction();
    for (std::uint8_t i = 0; i < 20; i++) {
        cg_record record{};
        record.id[0] = i;
        record.dimension = f.dimension;
        record.block = {i * 10, 0, 0};
        record.kind = cg::detail::str("game:sign");
        record.bytes = cg::detail::bytes(cg::bytes_of("sign"));
        tx.record(record);
    }
    tx.commit();
    std::size_t count = 0;
    for (const auto &row : f.world.records(f.dimension, {{50, -1, -1}, {100, 1, 1}})) {
        CHECK(row.record.block.x >= 50 && row.record.block.x <= 100);
        count++;
    }
    EQUAL(6, count);
    CHECK(f.world.record(cg::Id{7})->view().block.x == 70);
    f.world.transaction().delete_record(cg::Id{7}).commit();
    CHECK(!f.world.record(cg::Id{7}));
    count = 0;
    for (const auto &row : f.world.records(f.dimension, {{50, -1, -1}, {100, 1, 1}})) count += row.record.id[0] != 7;
    EQUAL(5, count);
}

TEST(players_are_detached) {
    Fixture f;
    auto tx = f.world.transaction();
    for (std::uint8_t i = 1; i <= 3; i++) tx.entity(f.binding, mob_of(i, f.dimension, {i, 70, 0}, "player"), true);
    tx.commit();
    std::size_t count = 0;
    for (const auto &row : f.world.detached(f.binding)) {
        EQUAL(row.entity.id[15], row.entity.block.x);
        count++;
    }
    EQUAL(3, count);
    f.world.transaction().delete_entity(mob_of(2, 0, {}, "").id).commit();
    CHECK(!f.world.entity(f.binding, mob_of(2, 0, {}, "").id));
}

TEST(a_conflict_is_an_error_and_is_tried_again) {
    Fixture f;
    f.save(0, Block::stone);
    const auto version = f.world.chunk(f.dimension, {0, 0, 0})->version();
    f.save(0, Block::water);
    auto tx = f.world.transaction();
    tx.expect_chunk(f.dimension, {0, 0, 0}, version).property("game:x", cg::bytes_of("x"));
    THROWS(cg::Kind::conflict, tx.commit());
    CHECK(!f.world.property("game:x"));
    int calls = 0;
    f.world.transact([&](cg::Transaction &again) {
        const auto seen = f.world.chunk(f.dimension, {0, 0, 0})->version();
        if (calls++ == 0) f.save(0, Block::chest); // another writer between the look and the commit
        again.expect_chunk(f.dimension, {0, 0, 0}, seen).property("game:x", cg::bytes_of("y"));
    });
    EQUAL(2, calls);
    CHECK(f.world.property("game:x")->text() == "y");
    THROWS(cg::Kind::conflict, f.world.transact([&](cg::Transaction &never) { never.expect_entity(cg::Id{1}, 5); }, 3));
}

TEST(an_exception_leaves_nothing) {
    Fixture f;
    bool thrown = false;
    try {
        f.world.transact([&](cg::Transaction &tx) {
            tx.property("game:x", cg::bytes_of("x"));
            throw std::logic_error("the host changed its mind");
        });
    } catch (const std::logic_error &) {
        thrown = true;
    }
    CHECK(thrown && !f.world.property("game:x"));
}

TEST(blocks_in_a_transaction) {
    Fixture f;
    f.save(0, Block::stone);
    f.world.transaction().set_block(f.binding, f.dimension, {1, 2, 3}, Block::water).commit(cg::Durability::safe);
    CHECK(f.block(1, 2, 3) == Block::water && f.block(1, 2, 4) == Block::stone);
    auto tx = f.world.transaction();
    tx.set_block(f.binding, f.dimension, {1000, 2, 3}, Block::water);
    THROWS(cg::Kind::not_found, tx.commit());
    f.world.transaction().delete_chunk(f.dimension, {0, 0, 0}).commit();
    CHECK(!f.block(1, 2, 3));
}

TEST(what_is_submitted_is_seen_at_once) {
    Fixture f;
    cg::Draft draft = f.draft(0, Block::stone);
    CHECK(f.world.submit(f.binding, draft) == cg::Saved::written);
    CHECK(f.world.load(f.binding, f.at(0))->number(0, 0, 0) == 1u);
    auto tx = f.world.transaction();
    cg::Draft other = f.draft(1, Block::water);
    tx.column(f.binding, other);
    tx.submit();
    CHECK(f.world.load(f.binding, f.at(1))->number(0, 0, 0) == 3u);
    f.world.flush();
    CHECK(f.block(0, 0, 0) == Block::stone && f.block(16, 0, 0) == Block::water);
}
