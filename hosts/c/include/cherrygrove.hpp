// cherrygrove.hpp: the C interface for C++20, with owners, spans, optionals and exceptions.
//
//   Absence    is std::nullopt or a value of an enum. Damage, and any other failure, is a cg::Error.
//   Ownership  Each class owns one handle and cannot be copied. Spans and views of an object live as long as it does.
//   Threads    One thread at a time for a Transaction, a Chunk and a Cursor; any thread for the rest, as in the header.
//   Blocks     Specialise cg::BlockKind for an enum and bind it with World::bind<Kind>().
#ifndef CHERRYGROVE_HPP
#define CHERRYGROVE_HPP

#include <chrono>
#include <concepts>
#include <map>

#include "cherrygrove/transaction.hpp"

namespace cg {

/// An answer of a queue.
struct Done {
    std::uint64_t tag = 0;
    /// Of a load; none if the column is absent.
    std::optional<Column> column;
    /// Of a commit.
    std::uint64_t commit = 0;
    std::optional<Error> error;
};

/// Loads and commits in the background. A game fetches the answers once a tick.
class Queue : public Owner {
public:
    using Owner::Owner;
    /// Starts to load; false if the queue has no room now.
    [[nodiscard]] bool load(const Binding &binding, const ColumnAt &at, std::uint64_t tag) {
        const cg_column_at raw = at.raw();
        return unless_full([&] { detail::call(cg_queue_load, handle(), binding.handle(), &raw, tag); });
    }
    /// Starts to commit, and empties the transaction; false if the queue has no room now.
    [[nodiscard]] bool commit(Transaction &tx, std::uint64_t tag, Durability durability = Durability::standard) {
        const auto mode = static_cast<std::uint32_t>(durability);
        return unless_full([&] { detail::call(cg_queue_commit, handle(), tx.handle(), mode, tag); });
    }
    /// Whether something of this tag was not begun yet; its answer is then Kind::closed.
    bool cancel(std::uint64_t tag) noexcept { return cg_queue_cancel(handle(), tag) == CG_OK; }
    /// Answers, at most `most`. Waits for the first one. Kind::closed when the queue is released.
    std::vector<Done> wait(std::chrono::milliseconds timeout, std::size_t most = 64) {
        std::vector<cg_done> raw(most);
        std::size_t n = 0;
        detail::call(cg_queue_wait, handle(), raw.data(), raw.size(), &n, static_cast<std::uint32_t>(timeout.count()));
        std::vector<Done> all(n);
        for (std::size_t i = 0; i < n; i++) {
            all[i].tag = raw[i].tag;
            all[i].commit = raw[i].commit;
            if (raw[i].column != 0) all[i].column.emplace(raw[i].column, raw[i].view);
            if (raw[i].result < 0) all[i].error = error_of(raw[i]);
        }
        return all;
    }

private:
    static bool unless_full(auto start) {
        try {
            return start(), true;
        } catch (const Error &error) {
            if (error.kind() != Kind::busy) throw;
            return false;
        }
    }
    static Error error_of(const cg_done &done) {
        const auto kind = static_cast<Kind>(done.result);
        std::optional<Place> place;
        if (done.flags & CG_DONE_HAS_PLACE) place = Place{done.dimension, done.chunk};
        const std::string message(done.message == 0 ? std::string_view() : Buffer(done.message).text());
        return Error(kind, message, place, (done.flags & CG_DONE_RETRYABLE) != 0);
    }
};

/// How a world is opened.
struct Options {
    Open mode = Open::open_or_create;
    Durability durability = Durability::standard;
    /// Whether sound sections of a column are loaded if others are damaged.
    bool partial = false;
    std::uint64_t cache_bytes = 0, queue_bytes = 0, min_free_bytes = 0, held_bytes = 0;
    std::chrono::milliseconds group{0};
    std::string game{}, signature{};
    std::vector<std::string> manifests{};
};

/// An open world. Closing it tells what could not be written; destroying it does not.
class World : public Owner {
public:
    using Owner::Owner;
    static World open(std::string_view path, const Options &options = {}) {
        detail::call(cg_abi_check, CG_ABI_VERSION);
        Handle world = 0;
        with_options(options,
                     [&](const cg_options &raw) { detail::call(cg_world_open, detail::str(path), &raw, &world); });
        return World(world);
    }
    /// What opening would change, a line for each.
    static Buffer plan(std::string_view path, const Options &options = {}) {
        Handle text = 0;
        with_options(options,
                     [&](const cg_options &raw) { detail::call(cg_world_plan, detail::str(path), &raw, &text); });
        return Buffer(text);
    }
    void close() { detail::call(cg_world_close, take()); }
    void flush() { detail::call(cg_world_flush, handle()); }
    void resume() { detail::call(cg_world_resume, handle()); }
    cg_world_info info() const { return filled<cg_world_info>(cg_world_info_of); }
    cg_usage usage() const { return filled<cg_usage>(cg_world_usage); }
    void checkpoint(std::string_view directory, bool copied = false) {
        detail::call(cg_world_checkpoint, handle(), detail::str(directory), copied ? 1 : 0);
    }
    /// Problems of the world, as JSON.
    Buffer verify(bool deep) const { return Buffer(made(cg_world_verify, deep ? 1 : 0)); }
    cg_tick_report tick(std::int64_t now, std::span<const cg_player_at> players, std::chrono::microseconds budget) {
        auto report = detail::sized<cg_tick_report>();
        const auto us = static_cast<std::uint32_t>(budget.count());
        detail::call(cg_tick, handle(), now, players.data(), players.size(), us, &report);
        return report;
    }
    Pin keep_loaded(std::uint32_t dimension, const Box &chunks) {
        return Pin(made(cg_keep_loaded, dimension, &chunks));
    }
    std::map<std::string, std::uint64_t, std::less<>> metrics() const {
        std::vector<std::uint64_t> values(cg_metric_count());
        detail::call(cg_metrics, handle(), values.data(), values.size());
        std::map<std::string, std::uint64_t, std::less<>> named;
        for (std::size_t i = 0; i < values.size(); i++) named.emplace(detail::text(cg_metric_name(i)), values[i]);
        return named;
    }

    /// Registers names that the world does not have, and gives the number of each.
    std::vector<std::uint64_t> register_names(List list, std::span<const cg_name> names) {
        std::vector<std::uint64_t> ids(names.size());
        const auto raw = static_cast<std::uint32_t>(list);
        detail::call(cg_names_register, handle(), raw, names.data(), names.size(), ids.data());
        return ids;
    }
    std::uint64_t register_name(List list, std::string_view name, std::uint32_t width = 0) {
        cg_name raw{};
        raw.name = detail::str(name), raw.width = width;
        return register_names(list, {&raw, 1})[0];
    }
    std::uint32_t dimension(std::string_view name) {
        return static_cast<std::uint32_t>(register_name(List::dimensions, name));
    }
    std::optional<std::uint64_t> find_name(List list, std::string_view name) const {
        const cg_str raw = detail::str(name);
        std::uint64_t id = CG_NO_ID;
        detail::call(cg_names_find, handle(), static_cast<std::uint32_t>(list), &raw, std::size_t{1}, &id);
        return id == CG_NO_ID ? std::nullopt : std::optional(id);
    }
    /// Nothing if the world has no such number.
    std::optional<Buffer> name_of(List list, std::uint64_t id) const {
        return optional<Buffer>(cg_name_of, static_cast<std::uint32_t>(list), id);
    }
    std::uint64_t count_names(List list) const {
        std::uint64_t count = 0;
        detail::call(cg_names_count, handle(), static_cast<std::uint32_t>(list), &count);
        return count;
    }

    Binding bind(cg_binding_desc desc) { return Binding(made(cg_binding_new, &desc)); }
    /// Binds an enum, and kinds of entities by their places. `more` has the other fields, such as biomes.
    template <class Kind>
    KindBinding<Kind> bind(std::span<const std::string_view> entities = {}, cg_binding_desc more = {}) {
        std::vector<cg_block> blocks;
        std::vector<Kind> kinds;
        std::vector<cg_str> mobs;
        for (const auto &[kind, name] : BlockKind<Kind>::kinds) {
            std::uint32_t flags = CG_NAME_OPAQUE;
            if constexpr (requires { BlockKind<Kind>::flags(kind); }) flags = BlockKind<Kind>::flags(kind);
            blocks.push_back({detail::str(name), flags, 0});
            kinds.push_back(kind);
        }
        blocks.push_back({detail::str("cherrygrove:unknown"), CG_NAME_OPAQUE, 0});
        for (std::string_view name : entities) mobs.push_back(detail::str(name));
        more.struct_size = sizeof more;
        more.blocks = blocks.data(), more.block_count = static_cast<std::uint32_t>(blocks.size());
        more.entities = mobs.data(), more.entity_count = static_cast<std::uint32_t>(mobs.size());
        more.placeholder = more.block_count - 1;
        if (more.layer_count == 0) more.layer_count = 1;
        if (more.word_bits == 0) more.word_bits = 64;
        if (more.biome_side_log2 == 0) more.biome_side_log2 = 2;
        Binding bound = bind(more);
        std::vector<std::uint64_t> ids(blocks.size());
        detail::call(cg_binding_ids, bound.handle(), ids.data(), ids.size());
        return KindBinding<Kind>(std::move(bound), std::move(kinds), std::move(ids));
    }
    /// The block at a place; nothing where no chunk is stored.
    template <class Kind>
    std::optional<Kind> block(const KindBinding<Kind> &binding, std::uint32_t dimension, Pos at) const {
        auto loaded = chunk(dimension, {at.x >> 4, at.y >> 4, at.z >> 4});
        if (!loaded) return {};
        const auto in = [](std::int64_t value) { return static_cast<std::uint8_t>(value & 15); };
        return binding.kind_of_id(loaded->block({in(at.x), in(at.y), in(at.z), 0}).value());
    }

    /// Nothing if no chunk of the column is stored.
    std::optional<Column> load(const Binding &binding, const ColumnAt &at) const {
        return column(cg_column_load, binding, at).second;
    }
    /// From memory alone.
    std::pair<Peeked, std::optional<Column>> peek(const Binding &binding, const ColumnAt &at) const {
        auto [result, found] = column(cg_column_peek, binding, at);
        return {result == CG_OK       ? Peeked::loaded
                : result == CG_ABSENT ? Peeked::absent
                                      : Peeked::pending,
                std::move(found)};
    }
    Saved save(const Binding &binding, const cg_column &column, std::uint32_t flags = 0,
               std::uint64_t *commit = nullptr) {
        return saved(detail::call(cg_column_save, handle(), binding.handle(), &column, flags, commit));
    }
    Saved save(const Binding &binding, Draft &draft, std::uint32_t flags = 0) {
        return save(binding, draft.view(), flags);
    }
    /// Accepts a column into the group that is committed next.
    Saved submit(const Binding &binding, const cg_column &column, std::uint32_t flags = 0) {
        return saved(detail::call(cg_column_submit, handle(), binding.handle(), &column, flags));
    }
    Saved submit(const Binding &binding, Draft &draft, std::uint32_t flags = 0) {
        return submit(binding, draft.view(), flags);
    }
    Columns columns(std::uint32_t dimension) const { return Columns(made(cg_columns_walk, dimension)); }

    Settings settings() const {
        const cg_settings *view = nullptr;
        Handle out = 0;
        detail::call(cg_settings_load, handle(), &out, &view);
        const Owner owner(out);
        return Settings::from(*view);
    }
    Transaction transaction() { return Transaction(made(cg_tx_new)); }
    /// Calls a function with a new transaction and commits it, and again after a conflict, `tries` times in all.
    template <std::invocable<Transaction &> F> std::uint64_t transact(F &&write, int tries = 16) {
        for (;; tries--) {
            Transaction tx = transaction();
            write(tx);
            try {
                return tx.commit();
            } catch (const Error &error) {
                if (error.kind() != Kind::conflict || tries <= 1) throw;
            }
        }
    }
    std::optional<StoredEntity> entity(const Binding &binding, const Id &id) const {
        const cg_entity *view = nullptr;
        Handle out = 0;
        std::uint64_t version = 0;
        int result = detail::call(cg_entity_get, handle(), binding.handle(), id.data(), &out, &view, &version);
        return result == CG_OK ? std::optional<StoredEntity>(std::in_place, out, *view, version) : std::nullopt;
    }
    std::optional<Buffer> property(std::string_view name) const {
        return optional<Buffer>(cg_property_get, detail::str(name));
    }
    std::optional<Buffer> object(Bytes key) const {
        Handle out = 0;
        return detail::call(cg_object_get, handle(), detail::bytes(key), &out, nullptr) == CG_OK
                   ? std::optional<Buffer>(out)
                   : std::nullopt;
    }
    Rows objects(Bytes prefix) const { return Rows(made(cg_object_list, detail::bytes(prefix))); }
    Rows properties(std::string_view prefix) const { return Rows(made(cg_property_list, detail::str(prefix))); }
    Rows records(std::uint32_t dimension, const Box &blocks) const {
        return Rows(made(cg_records_in, dimension, &blocks));
    }
    std::optional<Record> record(const Id &id) const {
        const cg_record *view = nullptr;
        Handle out = 0;
        const bool is_stored = detail::call(cg_record_get, handle(), id.data(), &out, &view) == CG_OK;
        return is_stored ? std::optional<Record>(std::in_place, out, *view) : std::nullopt;
    }
    /// Entities that belong to no chunk, such as players.
    Rows detached(const Binding &binding) const { return Rows(made(cg_entities_detached, binding.handle())); }
    /// A copy of a stored chunk.
    std::optional<Chunk> chunk(std::uint32_t dimension, Pos at) const {
        Handle out = 0;
        std::uint64_t version = 0;
        if (detail::call(cg_chunk_load, handle(), dimension, at, &out, &version) != CG_OK) return {};
        return Chunk(out, version);
    }
    Chunk new_chunk(std::uint64_t id) const { return Chunk(made(cg_chunk_new, id), 0); }
    Queue queue(std::uint32_t capacity) { return Queue(made(cg_queue_new, capacity)); }

private:
    template <class F> static void with_options(const Options &options, F use) {
        auto raw = detail::sized<cg_options>();
        raw.mode = static_cast<std::uint32_t>(options.mode);
        raw.durability = static_cast<std::uint32_t>(options.durability);
        raw.on_damage = options.partial ? CG_PARTIAL : CG_REFUSE;
        raw.cache_bytes = options.cache_bytes, raw.queue_bytes = options.queue_bytes;
        raw.min_free_bytes = options.min_free_bytes, raw.held_bytes = options.held_bytes;
        raw.group_ms = static_cast<std::uint32_t>(options.group.count());
        raw.game = detail::str(options.game), raw.signature = detail::str(options.signature);
        std::vector<cg_str> manifests;
        for (const std::string &text : options.manifests) manifests.push_back(detail::str(text));
        raw.manifests = manifests.data(), raw.manifest_count = manifests.size();
        use(raw);
    }
    template <class F, class... A> Handle made(F function, A... arguments) const {
        Handle out = 0;
        detail::call(function, handle(), arguments..., &out);
        return out;
    }
    template <class T, class F, class... A> std::optional<T> optional(F function, A... arguments) const {
        Handle out = 0;
        return detail::call(function, handle(), arguments..., &out) == CG_OK ? std::optional<T>(out) : std::nullopt;
    }
    template <class Struct, class F> Struct filled(F function) const {
        auto out = detail::sized<Struct>();
        detail::call(function, handle(), &out);
        return out;
    }
    template <class F>
    std::pair<int, std::optional<Column>> column(F function, const Binding &binding, const ColumnAt &at) const {
        const cg_column_at raw = at.raw();
        const cg_column *view = nullptr;
        Handle out = 0;
        int result = detail::call(function, handle(), binding.handle(), &raw, &out, &view);
        return {result, result == CG_OK ? std::optional<Column>(std::in_place, out, view) : std::nullopt};
    }
    static Saved saved(int result) noexcept { return result == CG_UNCHANGED ? Saved::unchanged : Saved::written; }
};

/// A line of the library's log; level 1 is an error, 2 a warning.
struct LogLine {
    std::uint32_t level;
    std::string text;
};
/// The next line of the log, if there is one.
inline std::optional<LogLine> next_log_line() {
    std::array<char, 4096> buffer;
    std::size_t len = 0;
    LogLine line{};
    if (cg_log_next(buffer.data(), buffer.size(), &len, &line.level) != CG_OK) return {};
    line.text.assign(buffer.data(), std::min(len, buffer.size()));
    return line;
}

} // namespace cg

#endif
