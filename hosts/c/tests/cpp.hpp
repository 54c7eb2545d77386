// Worlds and blocks for the cases in C++.
#ifndef CPP_HPP
#define CPP_HPP

#include <string>

#include "cherrygrove.hpp"
#include "harness.h"

enum class Block : std::uint8_t { air, stone, chest, water, unknown };

template <> struct cg::BlockKind<Block> {
    static constexpr Block unknown = Block::unknown;
    static constexpr std::array kinds{
        std::pair{Block::air, std::string_view("minecraft:air")},
        std::pair{Block::stone, std::string_view("game:stone")},
        std::pair{Block::chest, std::string_view("game:chest")},
        std::pair{Block::water, std::string_view("game:water")},
    };
    static constexpr std::uint32_t flags(Block kind) {
        return kind == Block::chest ? CG_NAME_BLOCK_ENTITY : kind == Block::stone ? CG_NAME_OPAQUE : 0;
    }
};

// The same game before it had water and chests.
enum class OldBlock : std::uint8_t { stone, air, unknown };

template <> struct cg::BlockKind<OldBlock> {
    static constexpr OldBlock unknown = OldBlock::unknown;
    static constexpr std::array kinds{
        std::pair{OldBlock::air, std::string_view("minecraft:air")},
        std::pair{OldBlock::stone, std::string_view("game:stone")},
    };
};

inline constexpr std::array<std::string_view, 2> MOBS{"game:pig", "game:cow"};

inline std::string path_of(std::string_view name) { return std::string(test_dir()) + "/" + std::string(name); }

// A new world and what most cases need of it.
struct Fixture {
    cg::World world =
        cg::World::open(path_of("world"),
                        {.mode = cg::Open::open_or_create, .durability = cg::Durability::process, .min_free_bytes = 1});
    cg::KindBinding<Block> binding = world.bind<Block>(MOBS);
    std::uint32_t dimension = world.dimension("game:overworld");

    cg::ColumnAt at(std::int64_t x, std::int64_t z = 0) const { return {dimension, x, z, 0, 3}; }
    cg::Draft draft(std::int64_t x, Block kind) const {
        cg::Draft made(at(x));
        made.fill(0, binding.number(kind));
        return made;
    }
    void save(std::int64_t x, Block kind) {
        cg::Draft made = draft(x, kind);
        world.save(binding, made);
    }
    std::optional<Block> block(std::int64_t x, std::int64_t y, std::int64_t z) const {
        return world.block(binding, dimension, {x, y, z});
    }
};

inline cg::Entity mob_of(std::uint8_t id, std::uint32_t dimension, cg::Pos at, std::string_view nbt) {
    cg::Entity made;
    made.id[15] = id;
    made.dimension = dimension;
    made.block = at;
    made.fraction = {0.5f, 0, 0.25f};
    made.nbt.assign(cg::bytes_of(nbt).begin(), cg::bytes_of(nbt).end());
    return made;
}

// Checks that an expression throws an error of a kind.
#define THROWS(expected, expression)                                                                                   \
    do {                                                                                                               \
        bool thrown = false;                                                                                           \
        try {                                                                                                          \
            (void)(expression);                                                                                        \
        } catch (const cg::Error &error) {                                                                             \
            EQUAL(expected, error.kind());                                                                             \
            CHECK(error.what()[0] != 0 && !error.code().empty());                                                      \
            thrown = true;                                                                                             \
        }                                                                                                              \
        if (!thrown) test_fail(__FILE__, __LINE__, "%s did not throw", #expression);                                   \
    } while (0)

#endif
