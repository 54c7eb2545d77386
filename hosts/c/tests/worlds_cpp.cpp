// Worlds, names and bindings through cherrygrove.hpp.
#include <sys/wait.h>
#include <unistd.h>

#include "cpp.hpp"

using namespace std::chrono_literals;

TEST(each_mode_of_opening) {
    const std::string path = path_of("w");
    THROWS(cg::Kind::not_found, cg::World::open(path, {.mode = cg::Open::existing}));
    cg::World::open(path, {.mode = cg::Open::create}).close();
    THROWS(cg::Kind::not_found, cg::World::open(path_of("v"), {.mode = cg::Open::read_only}));
    auto world = cg::World::open(path, {.mode = cg::Open::read_only});
    EQUAL(1, world.info().read_only);
    world.close();
    CHECK(!world);
    cg::World::open(path).close();
}

TEST(an_error_has_kind_code_and_message) {
    try {
        cg::World::open(path_of("none"), {.mode = cg::Open::existing});
        test_fail(__FILE__, __LINE__, "it opened");
    } catch (const cg::Error &error) {
        CHECK(error.kind() == cg::Kind::not_found && error.code() == "not_found");
        CHECK(!error.place() && !error.retryable() && std::string(error.what()).size() > 5);
    }
}

TEST(an_error_is_a_runtime_error) {
    bool caught = false;
    try {
        cg::World::open("", {});
    } catch (const std::runtime_error &) {
        caught = true;
    }
    CHECK(caught);
}

TEST(a_world_that_is_open_is_busy) {
    Fixture f;
    THROWS(cg::Kind::busy, cg::World::open(path_of("world")));
}

TEST(a_world_that_is_destroyed_is_closed) {
    {
        Fixture f;
        f.save(0, Block::stone);
    }
    Fixture f;
    CHECK(f.block(1, 2, 3) == Block::stone);
}

TEST(owners_move) {
    Fixture f;
    cg::World other = std::move(f.world);
    CHECK(!f.world && other);
    f.world = std::move(other);
    CHECK(f.world && !other);
    auto tx = f.world.transaction();
    tx = f.world.transaction();
    auto &same = tx;
    tx = std::move(same);
    CHECK(tx);
    tx.release();
    CHECK(!tx);
    THROWS(cg::Kind::invalid, tx.commit());
}

TEST(a_closed_world_says_so) {
    Fixture f;
    auto queue = f.world.queue(4);
    const cg::Handle handle = f.world.handle();
    f.world.close();
    THROWS(cg::Kind::invalid, f.world.flush()); // there is no handle any more
    EQUAL(0, f.world.handle());
    CHECK(cg_world_flush(handle, nullptr) == CG_CLOSED || cg_world_flush(handle, nullptr) == CG_INVALID);
    THROWS(cg::Kind::closed, queue.wait(0ms));
}

TEST(columns_outlive_their_world) {
    std::optional<cg::Column> column;
    {
        Fixture f;
        f.save(0, Block::stone);
        column = f.world.load(f.binding, f.at(0));
    }
    EQUAL(1, column->number(1, 2, 3).value());
}

TEST(an_enum_is_bound_by_names) {
    {
        Fixture f;
        f.save(0, Block::stone);
        f.save(1, Block::water);
        f.save(2, Block::air);
    }
    auto world = cg::World::open(path_of("world"));
    auto old = world.bind<OldBlock>();
    const auto dimension = world.dimension("game:overworld");
    CHECK(world.block(old, dimension, {0, 0, 0}) == OldBlock::stone);
    CHECK(world.block(old, dimension, {16, 0, 0}) == OldBlock::unknown);
    CHECK(world.block(old, dimension, {32, 0, 0}) == OldBlock::air);
    CHECK(!world.block(old, dimension, {48, 0, 0}));
    CHECK(old.unknown().text().find("game:water") != std::string_view::npos);
    THROWS(cg::Kind::invalid, old.id(OldBlock::unknown));
}

TEST(an_older_release_keeps_unknown_blocks) {
    {
        Fixture f;
        cg::Draft draft = f.draft(0, Block::water);
        draft.set(4, 4, 4, f.binding.number(Block::stone));
        f.world.save(f.binding, draft);
    }
    {
        auto world = cg::World::open(path_of("world"));
        auto old = world.bind<OldBlock>();
        const cg::ColumnAt at{world.dimension("game:overworld"), 0, 0, 0, 3};
        auto column = world.load(old, at);
        CHECK(old.kind(column->number(1, 1, 1).value()) == OldBlock::unknown);
        CHECK(column->kept() > 0);
        cg::Draft edited(*column);
        edited.set(5, 5, 5, old.number(OldBlock::air));
        CHECK(world.save(old, edited) == cg::Saved::written);
    }
    Fixture f;
    CHECK(f.block(1, 1, 1) == Block::water && f.block(4, 4, 4) == Block::stone && f.block(5, 5, 5) == Block::air);
}

TEST(names_and_numbers) {
    Fixture f;
    const auto id = f.world.find_name(cg::List::blocks, "game:stone");
    CHECK(id && *id == f.binding.id(Block::stone));
    CHECK(!f.world.find_name(cg::List::blocks, "game:gold"));
    CHECK(f.world.name_of(cg::List::blocks, *id)->text() == "game:stone");
    CHECK(!f.world.name_of(cg::List::blocks, 1 << 20));
    CHECK(f.world.count_names(cg::List::entities) >= 2);
    EQUAL(f.dimension, f.world.dimension("game:overworld"));
    THROWS(cg::Kind::invalid, f.world.register_name(cg::List::blocks, "no namespace"));
}

TEST(settings_come_back) {
    cg::Settings settings;
    settings.name = "Island";
    settings.seed = -7;
    settings.raining = true;
    settings.spawn.emplace("game:overworld", cg::Pos{1, 2, 3});
    {
        Fixture f;
        f.world.transaction().settings(settings).commit();
        settings = {};
        settings.time = 6000;
        f.world.transaction().settings(settings).commit();
    }
    Fixture f;
    const cg::Settings found = f.world.settings();
    CHECK(found.name == "Island" && found.seed == -7 && found.raining == true && found.time == 6000);
    CHECK(found.spawn->first == "game:overworld" && found.spawn->second.y == 2);
    CHECK(!found.difficulty && !found.tick_range && !found.thumbnail && !found.thundering);
}

TEST(what_is_asked_of_a_whole_world) {
    Fixture f;
    f.save(0, Block::stone);
    f.world.flush();
    f.world.resume();
    CHECK(f.world.usage().bytes_on_disk > 0);
    CHECK(!f.world.metrics().empty());
    CHECK(f.world.verify(true).text().find("\"problems\":[]") != std::string_view::npos);
    const std::array players{cg_player_at{{1}, f.dimension, 0, {1, 2, 3}}};
    for (std::int64_t now = 1; now < 10; now++) f.world.tick(now, players, 200us);
    f.world.tick(10, {}, 0us);
    auto pin = f.world.keep_loaded(f.dimension, {{0, 0, 0}, {1, 1, 1}});
    CHECK(pin);
    f.world.checkpoint(path_of("copy"), true);
    CHECK(cg::World::plan(path_of("copy")));
    auto copy = cg::World::open(path_of("copy"), {.mode = cg::Open::existing});
    auto binding = copy.bind<Block>(MOBS);
    CHECK(copy.block(binding, f.dimension, {0, 0, 0}) == Block::stone);
}

TEST(the_log_is_read) {
    try {
        cg::World::open(path_of("none"), {.mode = cg::Open::existing});
    } catch (const cg::Error &) {
    }
    for (int i = 0; i < 2000; i++)
        if (!cg::next_log_line()) return;
    test_fail(__FILE__, __LINE__, "the log does not end");
}

TEST(a_process_that_is_killed) {
    const pid_t child = fork();
    if (child == 0) {
        Fixture f;
        for (std::int64_t x = 0; x < 20; x++) f.save(x, Block::stone);
        kill(getpid(), SIGKILL);
    }
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status));
    Fixture f;
    for (std::int64_t x = 0; x < 20; x++) CHECK(f.block(x * 16, 0, 0) == Block::stone);
}
