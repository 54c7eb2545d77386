// A game of 20 ticks a second: two builders walk through endless land, sheep wander, and everything survives a kill.
//
//   game DIR [--seconds N]
//
// It saves once a second: the columns that changed, both players, and how many bricks and sheep there are and how much
// wool, in one transaction. So the land always has as many as the world says. At its start the game looks for its
// world, counts, and ends with 1 if that is not so.
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <map>
#include <random>
#include <set>
#include <thread>

#include "cherrygrove.hpp"

using namespace std::chrono_literals;

enum class Block : std::uint8_t { air, grass, earth, brick, unknown };

template <> struct cg::BlockKind<Block> {
    static constexpr Block unknown = Block::unknown;
    static constexpr std::array kinds{
        std::pair{Block::air, std::string_view("builders:air")},
        std::pair{Block::grass, std::string_view("builders:grass")},
        std::pair{Block::earth, std::string_view("builders:earth")},
        std::pair{Block::brick, std::string_view("builders:brick")},
    };
    static constexpr std::uint32_t flags(Block kind) { return kind == Block::air ? 0 : CG_NAME_OPAQUE; }
};

namespace {

constexpr std::array<std::string_view, 2> KINDS{"builders:player", "builders:sheep"};
constexpr std::uint32_t PLAYER = 0, SHEEP = 1;
constexpr std::int32_t TOP = 3; // heights of columns: 0 to 3 chunks
constexpr std::int64_t GROUND = 20, RADIUS = 3;
constexpr auto TICK = 50ms;

volatile std::sig_atomic_t stopped = 0;

// What a creature does now: the bytes of its entity. A field is only ever added at the end.
struct State {
    std::int32_t health = 20;
    std::uint32_t bricks_laid = 0, heading = 0;
};

struct Creature {
    cg::Id id{};
    cg::Pos at{};
    State state;
    std::uint32_t wool = 0; // of a sheep: a component of its own, which other programs read by its name
    bool has_new_wool = false;

    static Creature from(const cg::Entity &entity) {
        Creature made;
        made.id = entity.id;
        made.at = entity.block;
        std::memcpy(&made.state, entity.nbt.data(), std::min(entity.nbt.size(), sizeof made.state));
        return made;
    }
    cg::Entity entity(std::uint32_t kind, std::uint32_t dimension) const {
        cg::Entity made;
        made.id = id;
        made.kind = kind;
        made.dimension = dimension;
        made.block = at;
        made.fraction = {0.5f, 0, 0.5f};
        const auto bytes = std::as_bytes(std::span(&state, 1));
        made.nbt.assign(bytes.begin(), bytes.end());
        return made;
    }
};

using Place = std::pair<std::int64_t, std::int64_t>;

// A number of eight bytes in a property.
std::uint64_t number_in(const cg::World &world, std::string_view name) {
    std::uint64_t number = 0;
    if (auto found = world.property(name))
        std::memcpy(&number, found->bytes().data(), std::min<std::size_t>(found->bytes().size(), 8));
    return number;
}
void put_number(cg::Transaction &tx, std::string_view name, std::uint64_t number) {
    tx.property(name, std::as_bytes(std::span(&number, 1)));
}

class Game {
public:
    explicit Game(const std::string &path)
        : world_(cg::World::open(path, {.game = "builders"})), binding_(world_.bind<Block>(KINDS)),
          overworld_(world_.dimension("builders:overworld")),
          wool_component_(world_.register_name(cg::List::components, "builders:wool", sizeof(std::uint32_t))),
          queue_(world_.queue(256)) {}

    // Looks for what earlier sessions left. False if it contradicts itself.
    bool find_world() {
        session_ = number_in(world_, "builders:sessions") + 1;
        tick_ = number_in(world_, "builders:tick");
        bricks_ = number_in(world_, "builders:bricks");
        sheep_ = number_in(world_, "builders:sheep");
        wool_ = number_in(world_, "builders:wool");
        for (const auto &row : world_.detached(binding_)) players_.push_back(Creature::from(cg::Entity(row.entity)));
        const bool is_new = players_.empty();
        if (is_new) {
            for (std::uint8_t i = 0; i < 2; i++) {
                players_.emplace_back();
                players_[i].id[0] = 'P', players_[i].id[1] = i;
                players_[i].at = {i * 40, GROUND + 1, 8};
            }
            std::cout << "a new world in session " << session_ << std::endl;
            return true;
        }
        std::uint64_t columns = 0, bricks = 0, sheep = 0, wool = 0;
        std::set<cg::Id> ids;
        for (const auto &place : world_.columns(overworld_)) {
            auto column = world_.load(binding_, at({place.x, place.z})).value();
            columns++;
            for (const cg_entity &entity : column.entities()) {
                sheep++;
                wool += sheep_of(entity).wool;
                ids.insert(cg::Entity(entity).id);
            }
            for (const cg_section &section : column.sections())
                for (std::uint32_t number : cg::unpack(section.layers[0]))
                    bricks += binding_.kind(number) == Block::brick;
        }
        std::cout << "found its world: session " << session_ << ", tick " << tick_ << ", " << columns << " columns, "
                  << bricks << " bricks of " << bricks_ << ", " << sheep << " sheep of " << sheep_ << ", " << wool
                  << " wool of " << wool_ << ", " << players_.size() << " players" << std::endl;
        return bricks == bricks_ && sheep == sheep_ && wool == wool_ && ids.size() == sheep && players_.size() == 2;
    }

    void run(std::chrono::seconds seconds) {
        const auto start = std::chrono::steady_clock::now();
        auto next = start;
        while (stopped == 0 && std::chrono::steady_clock::now() - start < seconds) {
            tick_++;
            request_columns();
            fetch_answers();
            move_players();
            move_sheep();
            tick_tiers();
            if (tick_ % 20 == 0) save();
            if (tick_ % 100 == 0) save_point();
            if (tick_ % 40 == 0) unload();
            std::this_thread::sleep_until(next += TICK);
        }
    }

    void end() {
        save();
        world_.flush();
        queue_.release();
        std::cout << "session " << session_ << " ends at tick " << tick_ << ": " << loaded_ << " columns loaded, "
                  << generated_ << " generated, " << saved_ << " saved, " << unloaded_ << " unloaded; " << bricks_
                  << " bricks, " << sheep_ << " sheep, " << wool_ << " wool" << std::endl;
        world_.close();
    }

private:
    struct Land {
        cg::Draft draft;
        std::vector<Creature> sheep;
        bool is_changed = false;
    };

    static Place place_of(const cg::Pos &at) { return {at.x >> 4, at.z >> 4}; }
    cg::ColumnAt at(Place place) const { return {overworld_, place.first, place.second, 0, TOP}; }
    Land *land_at(const cg::Pos &at) {
        auto found = land_.find(place_of(at));
        return found == land_.end() ? nullptr : &found->second;
    }
    bool is_near(Place place, std::int64_t radius) const {
        return std::ranges::any_of(players_, [&](const Creature &player) {
            const Place center = place_of(player.at);
            return std::abs(place.first - center.first) <= radius && std::abs(place.second - center.second) <= radius;
        });
    }

    // Asks for the columns around the players. The game goes on until they are there.
    void request_columns() {
        for (const Creature &player : players_) {
            const Place center = place_of(player.at);
            for (std::int64_t x = center.first - RADIUS; x <= center.first + RADIUS; x++)
                for (std::int64_t z = center.second - RADIUS; z <= center.second + RADIUS; z++) {
                    const Place place{x, z};
                    if (land_.contains(place) || requested_.contains(place)) continue;
                    if (!queue_.load(binding_, at(place), next_tag_)) return; // full: at the next tick
                    requested_.insert(place);
                    tags_.emplace(next_tag_++, place);
                }
        }
    }

    void fetch_answers() {
        for (cg::Done &done : queue_.wait(0ms)) {
            if (done.error) throw *done.error; // a damaged column, or a full disk: never generate over it
            auto asked = tags_.extract(done.tag);
            if (asked.empty()) continue; // a save point
            const Place place = asked.mapped();
            requested_.erase(place);
            if (done.column)
                adopt(place, *done.column);
            else
                generate(place);
        }
    }

    Creature sheep_of(const cg_entity &entity) const {
        Creature sheep = Creature::from(cg::Entity(entity));
        const auto stored = world_.entity(binding_, sheep.id);
        if (auto wool = stored ? stored->component(wool_component_) : std::nullopt)
            std::memcpy(&sheep.wool, wool->data(), std::min(wool->size(), sizeof sheep.wool));
        return sheep;
    }

    void adopt(Place place, const cg::Column &column) {
        Land land{cg::Draft(column), {}, false};
        for (const cg_entity &entity : column.entities()) land.sheep.push_back(sheep_of(entity));
        land_.emplace(place, std::move(land));
        loaded_++;
    }

    void generate(Place place) {
        Land land{cg::Draft(at(place)), {}, true};
        land.draft.fill(0, binding_.number(Block::earth));
        for (unsigned x = 0; x < 16; x++)
            for (unsigned z = 0; z < 16; z++)
                for (std::int32_t y = 16; y <= GROUND; y++)
                    land.draft.set(x, y, z, binding_.number(y == GROUND ? Block::grass : Block::earth));
        if (random_() % 4 == 0) {
            Creature sheep;
            const std::uint64_t numbers[2] = {random_(), random_()};
            std::memcpy(sheep.id.data(), numbers, sizeof numbers);
            sheep.at = {place.first * 16 + 8, GROUND + 1, place.second * 16 + 8};
            land.sheep.push_back(sheep);
            sheep_++;
        }
        land_.emplace(place, std::move(land));
        generated_++;
    }

    // Each player walks on, and lays a brick now and then.
    void move_players() {
        for (Creature &player : players_) {
            if (random_() % 40 == 0) player.state.heading = static_cast<std::uint32_t>(random_() % 4);
            step(player);
            Land *land = land_at(player.at);
            if (land == nullptr || random_() % 5 != 0) continue;
            const auto x = static_cast<unsigned>(player.at.x & 15), z = static_cast<unsigned>(player.at.z & 15);
            const auto y = static_cast<std::int32_t>(GROUND + 1 + static_cast<std::int64_t>(random_() % 20));
            const std::uint32_t brick = binding_.number(Block::brick);
            if (land->draft.get(x, y, z) == brick) continue;
            land->draft.set(x, y, z, brick);
            land->is_changed = true;
            player.state.bricks_laid++;
            bricks_++;
        }
    }

    // Sheep wander, also from one column into the next one: both are then saved in one transaction.
    void move_sheep() {
        std::vector<std::pair<Land *, Creature>> moved;
        for (auto &[place, land] : land_)
            std::erase_if(land.sheep, [&, place = place, from = &land](Creature &sheep) {
                if (random_() % 4 != 0) return false;
                Creature there = sheep;
                there.state.heading = static_cast<std::uint32_t>(random_() % 4);
                step(there);
                Land *to = land_at(there.at);
                if (to == nullptr) return false; // that land is not loaded
                from->is_changed = to->is_changed = true;
                if (random_() % 10 == 0) there.wool++, wool_++, there.has_new_wool = true;
                if (to == from) return sheep = there, false;
                moved.emplace_back(to, there);
                return true;
            });
        for (auto &[to, sheep] : moved) to->sheep.push_back(sheep);
    }

    static void step(Creature &creature) {
        static constexpr std::array<std::pair<int, int>, 4> STEPS{{{1, 0}, {-1, 0}, {0, 1}, {0, -1}}};
        const auto [x, z] = STEPS[creature.state.heading % 4];
        creature.at.x += x, creature.at.z += z;
    }

    void tick_tiers() {
        std::vector<cg_player_at> places;
        for (const Creature &player : players_) {
            cg_player_at place{{}, overworld_, 0, player.at};
            std::copy(player.id.begin(), player.id.end(), place.id);
            places.push_back(place);
        }
        world_.tick(static_cast<std::int64_t>(tick_), places, 1ms);
    }

    // All that changed, in one transaction. The world was opened as CG_BALANCED, so this does not wait for the disk, and
    // loads see it at once.
    void save() {
        auto tx = world_.transaction();
        for (auto &[place, land] : land_) {
            if (!land.is_changed) continue;
            land.draft.entities.clear();
            for (const Creature &sheep : land.sheep) land.draft.entities.push_back(sheep.entity(SHEEP, overworld_));
            tx.column(binding_, land.draft);
            for (Creature &sheep : land.sheep)
                if (std::exchange(sheep.has_new_wool, false))
                    tx.entity_component(sheep.id, wool_component_, std::as_bytes(std::span(&sheep.wool, 1)));
            land.is_changed = false;
            saved_++;
        }
        for (const Creature &player : players_) tx.entity(binding_, player.entity(PLAYER, overworld_), true);
        put_number(tx, "builders:sessions", session_);
        put_number(tx, "builders:tick", tick_);
        put_number(tx, "builders:bricks", bricks_);
        put_number(tx, "builders:sheep", sheep_);
        put_number(tx, "builders:wool", wool_);
        tx.commit();
    }

    // A commit that survives a power cut, without the game waiting for the disk.
    void save_point() {
        auto tx = world_.transaction();
        put_number(tx, "builders:save_point", tick_);
        if (!queue_.commit(tx, next_tag_++, cg::Durability::safe)) std::cout << "the queue is full" << std::endl;
    }

    void unload() {
        for (auto land = land_.begin(); land != land_.end();) {
            if (land->second.is_changed || is_near(land->first, RADIUS + 1)) {
                ++land;
                continue;
            }
            land = land_.erase(land);
            unloaded_++;
        }
    }

    cg::World world_;
    cg::KindBinding<Block> binding_;
    std::uint32_t overworld_;
    std::uint64_t wool_component_;
    cg::Queue queue_;
    std::map<Place, Land> land_;
    std::set<Place> requested_;
    std::map<std::uint64_t, Place> tags_;
    std::uint64_t next_tag_ = 1;
    std::vector<Creature> players_;
    std::mt19937_64 random_{std::random_device{}()};
    std::uint64_t session_ = 0, tick_ = 0, bricks_ = 0, sheep_ = 0, wool_ = 0;
    std::size_t loaded_ = 0, generated_ = 0, saved_ = 0, unloaded_ = 0;
};

} // namespace

int main(int argc, char **argv) {
    const std::vector<std::string> arguments(argv + 1, argv + argc);
    if (arguments.empty() || (arguments.size() > 1 && (arguments.size() != 3 || arguments[1] != "--seconds"))) {
        std::cerr << "usage: game DIR [--seconds N]\n";
        return 2;
    }
    std::signal(SIGINT, [](int) { stopped = 1; });
    std::signal(SIGTERM, [](int) { stopped = 1; });
    try {
        Game game(arguments[0]);
        if (!game.find_world()) {
            std::cerr << "the world contradicts itself\n";
            return 1;
        }
        game.run(std::chrono::seconds(arguments.size() == 3 ? std::atoi(arguments[2].c_str()) : 10));
        game.end();
    } catch (const cg::Error &error) {
        std::cerr << error.code() << ": " << error.what() << "\n";
        return 1;
    }
    return 0;
}
