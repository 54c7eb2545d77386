// Queues and threads through cherrygrove.hpp.
#include <atomic>
#include <set>
#include <thread>

#include "cpp.hpp"

using namespace std::chrono_literals;

TEST(loads_are_answered_once_each) {
    Fixture f;
    for (std::int64_t x = 0; x < 40; x++) f.save(x, Block::stone);
    auto queue = f.world.queue(64);
    for (std::uint64_t x = 0; x < 50; x++) CHECK(queue.load(f.binding, f.at(static_cast<std::int64_t>(x)), x));
    std::set<std::uint64_t> seen;
    while (seen.size() < 50) {
        auto answers = queue.wait(10s, 7);
        CHECK(!answers.empty() && answers.size() <= 7);
        for (auto &done : answers) {
            CHECK(seen.insert(done.tag).second && !done.error);
            EQUAL(done.tag < 40, done.column.has_value());
            if (done.column) EQUAL(1, done.column->number(1, 1, 1).value());
        }
    }
    CHECK(queue.wait(0ms).empty());
}

TEST(a_full_queue_says_so) {
    Fixture f;
    auto queue = f.world.queue(2);
    CHECK(queue.load(f.binding, f.at(0), 0));
    CHECK(queue.load(f.binding, f.at(1), 1));
    CHECK(!queue.load(f.binding, f.at(2), 2));
    auto tx = f.world.transaction();
    tx.property("game:x", cg::bytes_of("x"));
    CHECK(!queue.commit(tx, 3));
    EQUAL(1, queue.wait(10s, 1).size());
    CHECK(queue.commit(tx, 3));
    THROWS(cg::Kind::invalid, queue.load(f.binding, {f.dimension, 0, 0, 3, 0}, 4));
}

TEST(commits_and_their_errors_are_answers) {
    Fixture f;
    auto queue = f.world.queue(4);
    auto tx = f.world.transaction();
    tx.property("game:x", cg::bytes_of("x"));
    CHECK(queue.commit(tx, 1, cg::Durability::safe));
    auto done = queue.wait(10s);
    CHECK(done.size() == 1 && done[0].tag == 1 && done[0].commit > 0 && !done[0].error && !done[0].column);
    CHECK(f.world.property("game:x")->text() == "x");
    tx.expect_entity(cg::Id{1}, 99).property("game:x", cg::bytes_of("y"));
    CHECK(queue.commit(tx, 2));
    done = queue.wait(10s);
    CHECK(done.size() == 1 && done[0].error && done[0].error->kind() == cg::Kind::conflict);
    CHECK(f.world.property("game:x")->text() == "x");
}

TEST(what_was_not_begun_is_cancelled) {
    Fixture f;
    auto queue = f.world.queue(64);
    for (std::uint64_t i = 0; i < 64; i++) CHECK(queue.load(f.binding, f.at(0), i));
    std::size_t cancelled = 0, closed = 0, total = 0;
    for (std::uint64_t i = 64; i-- > 0;) cancelled += queue.cancel(i);
    CHECK(!queue.cancel(9999));
    while (total < 64)
        for (auto &done : queue.wait(10s)) {
            total++;
            closed += done.error && done.error->kind() == cg::Kind::closed;
        }
    EQUAL(cancelled, closed);
}

TEST(release_wakes_all_that_wait) {
    Fixture f;
    auto queue = f.world.queue(4);
    std::atomic<int> closed = 0;
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; i++)
        threads.emplace_back([&, handle = queue.handle()] {
            cg_done done;
            std::size_t n = 0;
            closed += cg_queue_wait(handle, &done, 1, &n, 60000, nullptr) == CG_CLOSED;
        });
    std::this_thread::sleep_for(100ms);
    queue.release();
    for (auto &thread : threads) thread.join();
    EQUAL(4, closed.load());
}

TEST(many_threads_save_and_load) {
    Fixture f;
    std::vector<std::thread> threads;
    std::atomic<int> wrong = 0;
    for (std::int64_t me = 0; me < 4; me++)
        threads.emplace_back([&, me] {
            for (std::int64_t i = 0; i < 200; i++) {
                const Block kind = i % 2 == 0 ? Block::stone : Block::water;
                cg::Draft draft = f.draft(me * 10 + i % 3, kind);
                f.world.submit(f.binding, draft);
                wrong += f.world.load(f.binding, draft.at())->number(0, 0, 0) != f.binding.number(kind);
            }
        });
    for (auto &thread : threads) thread.join();
    EQUAL(0, wrong.load());
}

TEST(gold_is_neither_lost_nor_made) {
    Fixture f;
    const auto player = [&](std::uint8_t id, int gold) { return mob_of(id, f.dimension, {}, std::to_string(gold)); };
    const auto gold_of = [&](const cg_entity &e) {
        return std::stoi(std::string(cg::text_of(cg::detail::bytes(e.nbt))));
    };
    auto tx = f.world.transaction();
    for (std::uint8_t i = 1; i <= 3; i++) tx.entity(f.binding, player(i, 100), true);
    tx.commit();
    std::vector<std::thread> threads;
    for (std::uint8_t me = 1; me <= 3; me++)
        threads.emplace_back([&, me] {
            const std::uint8_t other = me % 3 + 1;
            for (int i = 0; i < 30; i++)
                f.world.transact(
                    [&](cg::Transaction &move) {
                        auto from = f.world.entity(f.binding, player(me, 0).id).value();
                        auto to = f.world.entity(f.binding, player(other, 0).id).value();
                        move.expect_entity(player(me, 0).id, from.version());
                        move.expect_entity(player(other, 0).id, to.version());
                        move.entity(f.binding, player(me, gold_of(from.view()) - 1), true);
                        move.entity(f.binding, player(other, gold_of(to.view()) + 1), true);
                    },
                    1000);
        });
    for (auto &thread : threads) thread.join();
    int total = 0;
    for (std::uint8_t i = 1; i <= 3; i++) total += gold_of(f.world.entity(f.binding, player(i, 0).id)->view());
    EQUAL(300, total);
}
