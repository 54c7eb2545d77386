// Columns, drafts, chunks and entities through cherrygrove.hpp.
#include "cpp.hpp"

namespace {
// A draft of all kinds, mixed, in two sections.
cg::Draft mixed(const Fixture &f, std::int64_t x) {
    cg::Draft draft(f.at(x));
    for (unsigned i = 0; i < 4096; i++) {
        draft.set(i >> 8, static_cast<std::int32_t>(i >> 4 & 15), i & 15, i * 7 % 4);
        draft.set(i >> 8, 32 + static_cast<std::int32_t>(i >> 4 & 15), i & 15, i * 5 % 3);
    }
    return draft;
}
} // namespace

TEST(a_draft_comes_back) {
    {
        Fixture f;
        cg::Draft draft = mixed(f, -5);
        CHECK(f.world.save(f.binding, draft) == cg::Saved::written);
        CHECK(f.world.save(f.binding, draft) == cg::Saved::unchanged);
        CHECK(f.world.submit(f.binding, draft) == cg::Saved::unchanged);
    }
    Fixture f;
    auto column = f.world.load(f.binding, f.at(-5));
    EQUAL(2, column->sections().size());
    for (unsigned i = 0; i < 4096; i++) {
        EQUAL(i * 7 % 4, column->number(i >> 8, static_cast<std::int32_t>(i >> 4 & 15), i & 15).value());
        EQUAL(i * 5 % 3, column->number(i >> 8, 32 + static_cast<std::int32_t>(i >> 4 & 15), i & 15).value());
    }
    CHECK(!column->number(0, 16, 0) && !column->number(0, -1, 0) && !column->number(0, 0, 0, 1));
    cg::Draft again(*column);
    CHECK(f.world.save(f.binding, again) == cg::Saved::unchanged);
}

TEST(unpacked_cells_are_in_their_order) {
    Fixture f;
    cg::Draft draft = mixed(f, 0);
    f.world.save(f.binding, draft);
    for (std::uint8_t order = 0; order < 3; order++)
        for (std::uint8_t bits : std::initializer_list<std::uint8_t>{16, 32, 64}) {
            cg_binding_desc desc{};
            desc.order = order;
            desc.word_bits = bits;
            auto binding = f.world.bind<Block>(MOBS, desc);
            auto column = f.world.load(binding, f.at(0));
            const auto numbers = cg::unpack(column->section(0)->layers[0]);
            EQUAL(order, column->section(0)->layers[0].order);
            for (unsigned i = 0; i < 4096; i++) {
                const auto at = cg::index_of(static_cast<cg::Order>(order), i >> 8, i >> 4 & 15, i & 15);
                EQUAL(i * 7 % 4, numbers[at]);
            }
        }
}

TEST(absence_is_no_exception) {
    Fixture f;
    CHECK(!f.world.load(f.binding, f.at(0)));
    CHECK(f.world.peek(f.binding, f.at(0)).first != cg::Peeked::loaded);
    f.save(0, Block::air);
    CHECK(f.world.load(f.binding, f.at(0)));
    CHECK(f.world.peek(f.binding, f.at(0)).first == cg::Peeked::loaded);
    CHECK(!f.block(16, 0, 0) && f.block(0, 0, 0) == Block::air);
}

TEST(peek_says_what_memory_has) {
    {
        Fixture f;
        f.save(0, Block::stone);
    }
    Fixture f;
    CHECK(f.world.peek(f.binding, f.at(0)).first == cg::Peeked::pending);
    CHECK(f.world.load(f.binding, f.at(0)));
    auto [peeked, column] = f.world.peek(f.binding, f.at(0));
    CHECK(peeked == cg::Peeked::loaded && column->number(0, 0, 0) == 1u);
}

TEST(a_wrong_column_throws_with_its_place) {
    Fixture f;
    cg::Draft draft = f.draft(9, Block::stone);
    draft.set(1, 1, 1, 77);
    try {
        f.world.save(f.binding, draft);
        test_fail(__FILE__, __LINE__, "it was saved");
    } catch (const cg::Error &error) {
        CHECK(error.kind() == cg::Kind::invalid && error.place());
        CHECK(error.place()->chunk.x == 9 && error.place()->dimension == f.dimension);
    }
    CHECK(!f.world.load(f.binding, f.at(9)));
    THROWS(cg::Kind::invalid, f.world.load(f.binding, {f.dimension, 0, 0, 3, 0}));
}

TEST(a_part_leaves_other_sections) {
    Fixture f;
    cg::Draft all(f.at(0));
    for (std::int32_t y = 0; y < 4; y++) all.fill(y, f.binding.number(Block::stone));
    f.world.save(f.binding, all);
    cg::Draft part = f.draft(0, Block::water);
    f.world.save(f.binding, part, CG_PART);
    CHECK(f.block(0, 0, 0) == Block::water && f.block(0, 63, 0) == Block::stone);
    f.world.save(f.binding, part);
    CHECK(f.block(0, 0, 0) == Block::water && !f.block(0, 63, 0));
}

TEST(block_entities_and_ticks_come_back) {
    Fixture f;
    cg::Draft draft = f.draft(0, Block::stone);
    draft.set(1, 2, 3, f.binding.number(Block::chest));
    draft.set_nbt({1, 2, 3}, cg::bytes_of("old"));
    draft.set_nbt({1, 2, 3}, cg::bytes_of("gold"));
    draft.tick = 100;
    draft.scheduled.push_back({{4, 4, 4}, 120, 1, 2});
    f.world.save(f.binding, draft);
    auto column = f.world.load(f.binding, f.at(0));
    EQUAL(1, column->block_entities().size());
    CHECK(cg::text_of(cg::detail::bytes(column->block_entities()[0].nbt)) == "gold");
    EQUAL(1, column->scheduled().size());
    EQUAL(20, column->scheduled()[0].due - column->view().tick);
    cg::Draft copy(*column);
    CHECK(f.world.save(f.binding, copy) == cg::Saved::unchanged);
}

TEST(entities_come_back) {
    Fixture f;
    cg::Draft draft = f.draft(0, Block::stone);
    draft.entities.push_back(mob_of(1, f.dimension, {3, 4, 5}, "oink"));
    f.world.save(f.binding, draft);
    auto column = f.world.load(f.binding, f.at(0));
    EQUAL(1, column->entities().size());
    const cg::Entity found(column->entities()[0]);
    CHECK(found.block.y == 4 && cg::text_of(found.nbt) == "oink" && found.fraction[0] == 0.5f);
    auto one = f.world.entity(f.binding, found.id);
    CHECK(one && one->version() > 0 && cg::Entity(one->view()).id == found.id);
    CHECK(!f.world.entity(f.binding, cg::Id{9}));
}

TEST(an_entity_moves_between_columns) {
    {
        Fixture f;
        f.save(1, Block::stone);
        cg::Draft from = f.draft(0, Block::stone);
        from.entities.push_back(mob_of(1, f.dimension, {15, 4, 5}, "x"));
        f.world.save(f.binding, from);
        from = cg::Draft(f.world.load(f.binding, f.at(0)).value());
        cg::Draft to(f.world.load(f.binding, f.at(1)).value());
        to.entities = std::move(from.entities);
        from.entities.clear();
        to.entities[0].block.x = 16;
        f.world.transaction().column(f.binding, from).column(f.binding, to).commit();
    }
    Fixture f;
    EQUAL(0, f.world.load(f.binding, f.at(0))->entities().size());
    EQUAL(1, f.world.load(f.binding, f.at(1))->entities().size());
}

TEST(a_walk_gives_each_column_once) {
    Fixture f;
    for (std::int64_t x = -100; x < 100; x++) f.save(x, Block::stone);
    std::int64_t expected = -100;
    for (const auto &place : f.world.columns(f.dimension)) {
        EQUAL(expected++, place.x);
        EQUAL(0, place.min_y);
    }
    EQUAL(100, expected);
    for (const auto &place : f.world.columns(f.world.dimension("game:moon")))
        test_fail(__FILE__, __LINE__, "%d", place.min_y);
}

TEST(chunks_by_themselves) {
    Fixture f;
    CHECK(!f.world.chunk(f.dimension, {0, 0, 0}));
    auto chunk = f.world.new_chunk(f.binding.id(Block::air));
    EQUAL(0, chunk.version());
    chunk.set_block({1, 2, 3, 0}, f.binding.id(Block::stone));
    auto cells = chunk.cells(cg::Order::xyz);
    EQUAL(f.binding.id(Block::stone), cells[1 << 8 | 2 << 4 | 3]);
    cells[0] = f.binding.id(Block::water);
    chunk.set_cells(cg::Order::xyz, cells);
    const auto weather = f.world.register_name(cg::List::sides, "game:weather");
    CHECK(!chunk.side(weather));
    chunk.set_side(weather, cg::bytes_of("rain"));
    f.world.transaction().expect_chunk(f.dimension, {0, 0, 0}, 0).chunk(f.dimension, {0, 0, 0}, chunk).commit();
    auto stored = f.world.chunk(f.dimension, {0, 0, 0});
    CHECK(stored && stored->version() > 0);
    CHECK(f.binding.kind_of_id(stored->block({0, 0, 0, 0}).value()) == Block::water);
    CHECK(!stored->block({0, 0, 0, 1}));
    CHECK(cg::text_of(stored->side(weather).value()) == "rain");
    THROWS(cg::Kind::invalid, stored->block({16, 0, 0, 0}));
    f.world.transaction().remove_side(f.dimension, {0, 0, 0}, weather).commit();
    CHECK(!f.world.chunk(f.dimension, {0, 0, 0})->side(weather));
}

TEST(components_of_cells) {
    Fixture f;
    const auto heat = f.world.register_name(cg::List::components, "game:heat", 4);
    const cg_str has = cg::detail::str("game:heat");
    cg_name furnace{};
    furnace.name = cg::detail::str("game:furnace");
    furnace.components = &has;
    furnace.component_count = 1;
    const auto id = f.world.register_names(cg::List::blocks, {&furnace, 1})[0];
    auto chunk = f.world.new_chunk(id);
    const std::array hot{std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4}};
    chunk.set_component({1, 1, 1, 0}, heat, hot);
    f.world.transaction().chunk(f.dimension, {0, 0, 0}, chunk).commit();
    f.world.transaction().set_component(f.dimension, {2, 2, 2}, heat, hot).commit();
    auto stored = f.world.chunk(f.dimension, {0, 0, 0});
    CHECK(std::ranges::equal(stored->component({1, 1, 1, 0}, heat).value(), hot));
    CHECK(std::ranges::equal(stored->component({2, 2, 2, 0}, heat).value(), hot));
    CHECK(stored->components().size() >= 2);
    THROWS(cg::Kind::invalid, stored->set_component({1, 1, 1, 0}, heat, cg::bytes_of("x")));
}
