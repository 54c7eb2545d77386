// Bindings, settings, chunks, and transactions over all of them.
#ifndef CHERRYGROVE_TRANSACTION_HPP
#define CHERRYGROVE_TRANSACTION_HPP

#include <iterator>
#include <unordered_map>
#include <vector>

#include "column.hpp"

namespace cg {

/// What a host says of an enum of blocks: specialise it.
///
///     template <> struct cg::BlockKind<Block> {
///         static constexpr Block unknown = Block::unknown;   // a stored block that this release does not have
///         // The first one is that of an empty cell.
///         static constexpr std::array kinds{std::pair{Block::air, std::string_view("game:air")}, ...};
///         // CG_NAME_OPAQUE, CG_NAME_BLOCK_ENTITY; without it all kinds are opaque.
///         static constexpr std::uint32_t flags(Block) { return CG_NAME_OPAQUE; }
///     };
///
/// A world stores names: kinds may be added, reordered or removed, and a kind with the same name keeps its blocks.
template <class Kind> struct BlockKind;

/// A host's numbers in a world.
class Binding : public Owner {
public:
    using Owner::Owner;
    /// Names of the world that the host does not have, as JSON.
    Buffer unknown() const {
        Handle text = 0;
        detail::call(cg_binding_unknown, handle(), &text);
        return Buffer(text);
    }
};

/// A binding of an enum. Numbers are places in BlockKind<Kind>::kinds; the last number stands for unknown blocks.
template <class Kind> class KindBinding : public Binding {
public:
    KindBinding(Binding bound, std::vector<Kind> kinds, std::vector<std::uint64_t> ids)
        : Binding(std::move(bound)), kinds_(std::move(kinds)), ids_(std::move(ids)) {
        for (std::uint32_t i = 0; i < kinds_.size(); i++)
            numbers_.emplace(kinds_[i], i), by_id_.emplace(ids_[i], kinds_[i]);
    }
    /// The number of a kind in columns. That of `unknown` leaves the stored block as it is.
    std::uint32_t number(Kind kind) const {
        auto found = numbers_.find(kind);
        return found == numbers_.end() ? static_cast<std::uint32_t>(kinds_.size()) : found->second;
    }
    Kind kind(std::uint32_t number) const noexcept {
        return number < kinds_.size() ? kinds_[number] : BlockKind<Kind>::unknown;
    }
    /// The number of a kind in the world, for chunks and single blocks.
    std::uint64_t id(Kind kind) const {
        auto found = numbers_.find(kind);
        if (found == numbers_.end()) throw Error(cg::Kind::invalid, "only kinds with a name can be stored");
        return ids_[found->second];
    }
    Kind kind_of_id(std::uint64_t id) const {
        auto found = by_id_.find(id);
        return found == by_id_.end() ? BlockKind<Kind>::unknown : found->second;
    }

private:
    std::vector<Kind> kinds_;
    std::vector<std::uint64_t> ids_;
    std::unordered_map<Kind, std::uint32_t> numbers_;
    std::unordered_map<std::uint64_t, Kind> by_id_;
};

/// The settings of a world; those without a value are not there, or stay as they are.
struct Settings {
    std::optional<std::string> name, engine, game_mode, difficulty;
    std::optional<std::vector<std::byte>> thumbnail;
    std::optional<std::pair<std::string, Pos>> spawn;
    std::optional<std::int64_t> created_ms, changed_ms, seed, time, game_time, rain_time, thunder_time,
        required_sleep_ticks, tick_range;
    std::optional<bool> time_cycle, raining, thundering, weather_cycle;

    /// Calls a function with the bit and the members of each setting of one type.
    template <class Raw, class F> static void numbers(auto &s, Raw &r, F f) {
        f(CG_SET_CREATED, s.created_ms, r.created_ms), f(CG_SET_CHANGED, s.changed_ms, r.changed_ms),
            f(CG_SET_SEED, s.seed, r.seed);
        f(CG_SET_TIME, s.time, r.time), f(CG_SET_GAME_TIME, s.game_time, r.game_time),
            f(CG_SET_RAIN_TIME, s.rain_time, r.rain_time);
        f(CG_SET_THUNDER_TIME, s.thunder_time, r.thunder_time), f(CG_SET_TICK_RANGE, s.tick_range, r.tick_range);
        f(CG_SET_REQUIRED_SLEEP_TICKS, s.required_sleep_ticks, r.required_sleep_ticks),
            f(CG_SET_RAINING, s.raining, r.raining);
        f(CG_SET_TIME_CYCLE, s.time_cycle, r.time_cycle), f(CG_SET_THUNDERING, s.thundering, r.thundering);
        f(CG_SET_WEATHER_CYCLE, s.weather_cycle, r.weather_cycle);
    }
    template <class Raw, class F> static void texts(auto &s, Raw &r, F f) {
        f(CG_SET_NAME, s.name, r.name), f(CG_SET_ENGINE, s.engine, r.engine);
        f(CG_SET_GAME_MODE, s.game_mode, r.game_mode), f(CG_SET_DIFFICULTY, s.difficulty, r.difficulty);
    }
    static Settings from(const cg_settings &raw) {
        Settings s;
        numbers(s, raw, [&](std::uint64_t bit, auto &to, auto from) {
            if (raw.present & bit) to = from;
        });
        texts(s, raw, [&](std::uint64_t bit, auto &to, cg_str from) {
            if (raw.present & bit) to = detail::text(from);
        });
        if (raw.present & CG_SET_SPAWN) s.spawn.emplace(detail::text(raw.spawn_dimension), raw.spawn_block);
        if (raw.present & CG_SET_THUMBNAIL)
            s.thumbnail.emplace(detail::bytes(raw.thumbnail).begin(), detail::bytes(raw.thumbnail).end());
        return s;
    }
    /// Lent by these settings.
    cg_settings raw() const noexcept {
        auto raw = detail::sized<cg_settings>();
        numbers(*this, raw, [&](std::uint64_t bit, auto &from, auto &to) {
            if (from) raw.present |= bit, to = *from;
        });
        texts(*this, raw, [&](std::uint64_t bit, auto &from, cg_str &to) {
            if (from) raw.present |= bit, to = detail::str(*from);
        });
        if (spawn)
            raw.present |= CG_SET_SPAWN, raw.spawn_dimension = detail::str(spawn->first),
                                         raw.spawn_block = spawn->second;
        if (thumbnail) raw.present |= CG_SET_THUMBNAIL, raw.thumbnail = detail::bytes(Bytes(*thumbnail));
        return raw;
    }
};

/// Rows that are fetched one after the other. A row is lent until the next one is fetched.
template <auto Next, class Row> class Cursor : public Owner {
public:
    using Owner::Owner;
    /// The next row, or null at the end.
    const Row *next() {
        std::size_t n = 0;
        detail::call(Next, handle(), &row_, std::size_t{1}, &n);
        return n == 0 ? nullptr : &row_;
    }
    class iterator {
    public:
        using difference_type = std::ptrdiff_t;
        using value_type = Row;
        explicit iterator(Cursor &cursor) : cursor_(&cursor), row_(cursor.next()) {}
        const Row &operator*() const noexcept { return *row_; }
        const Row *operator->() const noexcept { return row_; }
        iterator &operator++() { return row_ = cursor_->next(), *this; }
        void operator++(int) { ++*this; }
        bool operator==(std::default_sentinel_t) const noexcept { return row_ == nullptr; }

    private:
        Cursor *cursor_;
        const Row *row_;
    };
    iterator begin() { return iterator(*this); }
    std::default_sentinel_t end() const noexcept { return {}; }

private:
    Row row_{};
};
using Rows = Cursor<cg_cursor_next, cg_row>;
using Columns = Cursor<cg_columns_next, cg_column_place>;

/// A chunk by itself, in numbers of the world.
class Chunk : public Owner {
public:
    Chunk(Handle handle, std::uint64_t version) noexcept : Owner(handle), version_(version) {}
    /// The version that Transaction::expect_chunk takes; 0 for a new chunk.
    std::uint64_t version() const noexcept { return version_; }
    std::vector<std::uint64_t> cells(Order order) const {
        std::vector<std::uint64_t> ids(4096);
        detail::call(cg_chunk_cells, handle(), static_cast<std::uint32_t>(order), ids.data(), ids.size());
        return ids;
    }
    void set_cells(Order order, std::span<const std::uint64_t> ids) {
        detail::call(cg_chunk_set_cells, handle(), static_cast<std::uint32_t>(order), ids.data(), ids.size());
    }
    /// Nothing if the cell has no such layer.
    std::optional<std::uint64_t> block(cg_cell at) const {
        std::uint64_t id = 0;
        return detail::call(cg_chunk_block, handle(), at, &id) == CG_OK ? std::optional(id) : std::nullopt;
    }
    void set_block(cg_cell at, std::uint64_t id) { detail::call(cg_chunk_set_block, handle(), at, id); }
    /// Lent until the chunk is changed.
    std::optional<Bytes> component(cg_cell at, std::uint64_t component) const {
        cg_bytes out{};
        return detail::call(cg_chunk_component, handle(), at, component, &out) == CG_OK
                   ? std::optional(detail::bytes(out))
                   : std::nullopt;
    }
    void set_component(cg_cell at, std::uint64_t component, Bytes data) {
        detail::call(cg_chunk_set_component, handle(), at, component, detail::bytes(data));
    }
    std::span<const cg_component> components() const {
        const cg_component *all = nullptr;
        std::size_t count = 0;
        detail::call(cg_chunk_components, handle(), &all, &count);
        return {all, count};
    }
    std::optional<Bytes> side(std::uint64_t side) const {
        cg_bytes out{};
        return detail::call(cg_chunk_side, handle(), side, &out) == CG_OK ? std::optional(detail::bytes(out))
                                                                          : std::nullopt;
    }
    void set_side(std::uint64_t side, Bytes data) {
        detail::call(cg_chunk_set_side, handle(), side, detail::bytes(data));
    }

private:
    std::uint64_t version_ = 0;
};

/// An entity that is stored, with its version and components.
class StoredEntity : public Owner {
public:
    StoredEntity(Handle handle, const cg_entity &view, std::uint64_t version)
        : Owner(handle), view_(&view), version_(version) {}
    /// Lent as long as this lives; Entity(view()) is a copy.
    const cg_entity &view() const noexcept { return *view_; }
    /// The version that Transaction::expect_entity takes.
    std::uint64_t version() const noexcept { return version_; }
    std::optional<Bytes> component(std::uint64_t component) const {
        cg_bytes out{};
        const bool has = detail::call(cg_entity_component, handle(), component, &out) == CG_OK;
        return has ? std::optional(detail::bytes(out)) : std::nullopt;
    }

private:
    const cg_entity *view_;
    std::uint64_t version_;
};

/// A spatial record that is stored.
class Record : public Owner {
public:
    Record(Handle handle, const cg_record &view) noexcept : Owner(handle), view_(&view) {}
    const cg_record &view() const noexcept { return *view_; }

private:
    const cg_record *view_;
};

/// Writes that are checked and committed at once: all or none.
class Transaction : public Owner {
public:
    using Owner::Owner;
    Transaction &column(const Binding &binding, const cg_column &column, std::uint32_t flags = 0) {
        return with(cg_tx_column, binding.handle(), &column, flags);
    }
    Transaction &column(const Binding &binding, Draft &draft, std::uint32_t flags = 0) {
        return column(binding, draft.view(), flags);
    }
    Transaction &chunk(std::uint32_t dimension, Pos at, const Chunk &chunk) {
        return with(cg_tx_chunk, dimension, at, chunk.handle());
    }
    Transaction &delete_chunk(std::uint32_t dimension, Pos at) { return with(cg_tx_delete_chunk, dimension, at); }
    Transaction &set_block(std::uint32_t dimension, Pos at, std::uint64_t id) {
        return with(cg_tx_set_block, dimension, at, id);
    }
    template <class Kind>
    Transaction &set_block(const KindBinding<Kind> &binding, std::uint32_t dimension, Pos at, Kind kind) {
        return set_block(dimension, at, binding.id(kind));
    }
    Transaction &set_component(std::uint32_t dimension, Pos at, std::uint64_t component, Bytes data,
                               std::uint8_t layer = 0) {
        return with(cg_tx_set_component, dimension, at, layer, component, detail::bytes(data));
    }
    Transaction &set_side(std::uint32_t dimension, Pos at, std::uint64_t side, Bytes data) {
        return with(cg_tx_set_side, dimension, at, side, detail::bytes(data));
    }
    Transaction &remove_side(std::uint32_t dimension, Pos at, std::uint64_t side) {
        return with(cg_tx_set_side, dimension, at, side, cg_bytes{nullptr, 0});
    }
    /// detached: it belongs to no chunk, as a player does.
    Transaction &entity(const Binding &binding, const Entity &entity, bool detached = false) {
        cg_entity raw = entity.raw();
        return with(cg_tx_entity_put, binding.handle(), &raw, detached ? CG_DETACHED : 0u);
    }
    /// Replaces a component of an entity that is stored, or that this transaction has put.
    Transaction &entity_component(const Id &id, std::uint64_t component, Bytes data) {
        return with(cg_tx_entity_component, id.data(), component, detail::bytes(data));
    }
    Transaction &remove_entity_component(const Id &id, std::uint64_t component) {
        return with(cg_tx_entity_component, id.data(), component, cg_bytes{nullptr, 0});
    }
    Transaction &delete_entity(const Id &id) { return with(cg_tx_entity_delete, id.data()); }
    Transaction &property(std::string_view name, Bytes data) {
        return with(cg_tx_property, detail::str(name), detail::bytes(data));
    }
    Transaction &remove_property(std::string_view name) {
        return with(cg_tx_property, detail::str(name), cg_bytes{nullptr, 0});
    }
    Transaction &settings(const Settings &settings) {
        cg_settings raw = settings.raw();
        return with(cg_tx_settings, &raw);
    }
    Transaction &object(Bytes key, Bytes data) {
        return with(cg_tx_object_put, detail::bytes(key), detail::bytes(data));
    }
    Transaction &delete_object(Bytes key) { return with(cg_tx_object_delete, detail::bytes(key)); }
    Transaction &record(const cg_record &record) { return with(cg_tx_record_put, &record); }
    Transaction &delete_record(const Id &id) { return with(cg_tx_record_delete, id.data()); }
    /// The commit fails with Kind::conflict unless these have these versions; 0: they are not stored.
    Transaction &expect_chunk(std::uint32_t dimension, Pos at, std::uint64_t version) {
        return with(cg_tx_expect_chunk, dimension, at, version);
    }
    Transaction &expect_entity(const Id &id, std::uint64_t version) {
        return with(cg_tx_expect_entity, id.data(), version);
    }
    /// Commits, and empties the transaction. Returns the number of the commit.
    std::uint64_t commit(Durability durability = Durability::standard) {
        std::uint64_t commit = 0;
        detail::call(cg_tx_commit, handle(), static_cast<std::uint32_t>(durability), &commit);
        return commit;
    }
    /// Joins the group that is committed next.
    void submit() { detail::call(cg_tx_submit, handle()); }

private:
    template <class F, class... A> Transaction &with(F function, A... arguments) {
        detail::call(function, handle(), arguments...);
        return *this;
    }
};

} // namespace cg

#endif
