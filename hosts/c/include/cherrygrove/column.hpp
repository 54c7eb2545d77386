// Cells, columns, and drafts of columns.
#ifndef CHERRYGROVE_COLUMN_HPP
#define CHERRYGROVE_COLUMN_HPP

#include <algorithm>
#include <array>
#include <bit>
#include <deque>
#include <unordered_map>
#include <vector>

#include "handle.hpp"

namespace cg {

/// A column that is asked for: heights in chunks, both included.
struct ColumnAt {
    std::uint32_t dimension = 0;
    std::int64_t x = 0, z = 0;
    std::int32_t min_y = 0, max_y = 0;
    cg_column_at raw() const noexcept {
        auto at = detail::sized<cg_column_at>();
        at.dimension = dimension, at.x = x, at.z = z, at.min_y = min_y, at.max_y = max_y;
        return at;
    }
};

/// The index of a cell in an order of a cube whose side is 2 to the power of side_log2.
constexpr std::size_t index_of(Order order, unsigned x, unsigned y, unsigned z, unsigned side_log2 = 4) noexcept {
    unsigned a = order == Order::yzx ? y : x, b = order == Order::xyz ? y : z;
    unsigned c = order == Order::xyz ? z : order == Order::xzy ? y : x;
    return (std::size_t{a} << (2 * side_log2)) | (std::size_t{b} << side_log2) | c;
}

/// Cells as numbers, in their own order.
inline std::vector<std::uint32_t> unpack(const cg_cells &cells) {
    static_assert(std::endian::native == std::endian::little);
    std::vector<std::uint32_t> numbers(std::size_t{1} << (3 * cells.side_log2),
                                       cells.palette_len != 0 ? cells.palette[0] : 0);
    if (cells.bits == 0) return numbers;
    const std::size_t each = cells.word_bits / cells.bits, width = cells.word_bits / 8u;
    const std::uint64_t mask = (std::uint64_t{1} << cells.bits) - 1;
    for (std::size_t i = 0; i < numbers.size();) {
        std::uint64_t word = 0;
        std::memcpy(&word, cells.words + i / each * width, width);
        for (std::size_t j = 0; j < each && i < numbers.size(); j++, i++, word >>= cells.bits) {
            auto value = static_cast<std::uint32_t>(word & mask);
            numbers[i] = cells.palette == nullptr ? value : cells.palette[value];
        }
    }
    return numbers;
}
/// The number of one cell.
inline std::uint32_t number_at(const cg_cells &cells, unsigned x, unsigned y, unsigned z) noexcept {
    std::uint64_t word = 0;
    if (cells.bits != 0) {
        const std::size_t each = cells.word_bits / cells.bits, width = cells.word_bits / 8u;
        const std::size_t index = index_of(static_cast<Order>(cells.order), x, y, z, cells.side_log2);
        std::memcpy(&word, cells.words + index / each * width, width);
        word = (word >> (index % each * cells.bits)) & ((std::uint64_t{1} << cells.bits) - 1);
    }
    return cells.palette == nullptr ? static_cast<std::uint32_t>(word) : cells.palette[word];
}

/// A loaded column. What it lends lives as long as it does.
class Column : public Owner {
public:
    Column() = default;
    Column(Handle handle, const cg_column *view) noexcept : Owner(handle), view_(view) {}
    const cg_column &view() const noexcept { return *view_; }
    std::span<const cg_section> sections() const noexcept { return {view_->sections, view_->section_count}; }
    std::span<const cg_entity> entities() const noexcept { return {view_->entities, view_->entity_count}; }
    std::span<const cg_block_entity> block_entities() const noexcept {
        return {view_->block_entities, view_->block_entity_count};
    }
    std::span<const cg_scheduled> scheduled() const noexcept { return {view_->scheduled, view_->scheduled_count}; }
    std::uint64_t kept() const noexcept { return view_->kept; }
    std::uint64_t damaged_sections() const noexcept { return view_->damaged_sections; }
    /// The section at a height in chunks, or null.
    const cg_section *section(std::int32_t y) const noexcept {
        auto all = sections();
        auto found =
            std::lower_bound(all.begin(), all.end(), y, [](const cg_section &s, std::int32_t at) { return s.y < at; });
        return found != all.end() && found->y == y ? &*found : nullptr;
    }
    /// The block at x and z within the column and a height in blocks; nothing where no chunk is stored.
    std::optional<std::uint32_t> number(unsigned x, std::int32_t y, unsigned z, std::size_t layer = 0) const noexcept {
        const cg_section *found = section(y >> 4);
        if (found == nullptr || layer >= found->layer_count) return {};
        return number_at(found->layers[layer], x & 15, static_cast<unsigned>(y & 15), z & 15);
    }

private:
    const cg_column *view_ = nullptr;
};

/// An entity that is put into a world.
struct Entity {
    Id id{};
    std::uint32_t kind = 0, dimension = 0;
    Pos block{};
    std::array<float, 3> fraction{};
    std::vector<std::byte> nbt;

    Entity() = default;
    explicit Entity(const cg_entity &e) : kind(e.kind), dimension(e.dimension), block(e.block) {
        std::copy(std::begin(e.id), std::end(e.id), id.begin());
        std::copy(std::begin(e.fraction), std::end(e.fraction), fraction.begin());
        nbt.assign(detail::bytes(e.nbt).begin(), detail::bytes(e.nbt).end());
    }
    cg_entity raw() const noexcept {
        cg_entity e{};
        std::copy(id.begin(), id.end(), std::begin(e.id));
        std::copy(fraction.begin(), fraction.end(), std::begin(e.fraction));
        e.kind = kind, e.dimension = dimension, e.block = block, e.nbt = detail::bytes(Bytes(nbt));
        return e;
    }
};

/// A column that is built cell by cell, and saved. Heights in chunks.
class Draft {
public:
    explicit Draft(ColumnAt at) : at_(at) {}
    /// A copy of a loaded column: blocks, entities, block entities and scheduled ticks.
    explicit Draft(const Column &from)
        : at_{from.view().dimension, from.view().x, from.view().z, from.view().min_y, from.view().max_y} {
        tick = from.view().tick;
        for (const cg_section &s : from.sections())
            for (std::size_t layer = 0; layer < s.layer_count; layer++) {
                const auto numbers = unpack(s.layers[layer]);
                const auto order = static_cast<Order>(s.layers[layer].order);
                auto &cells = layer_of(s.y, layer);
                for (unsigned i = 0; i < 4096; i++) cells[i] = numbers[index_of(order, i >> 8, i >> 4 & 15, i & 15)];
            }
        for (const cg_entity &e : from.entities()) entities.emplace_back(e);
        for (const cg_block_entity &e : from.block_entities()) set_nbt(e.at, detail::bytes(e.nbt));
        scheduled.assign(from.scheduled().begin(), from.scheduled().end());
    }
    /// Fills a section with one block.
    void fill(std::int32_t y, std::uint32_t number) { layer_of(y, 0).fill(number); }
    /// Sets a block at x and z within the column and a height in blocks. A new section is of number 0.
    void set(unsigned x, std::int32_t y, unsigned z, std::uint32_t number, std::size_t layer = 0) {
        layer_of(y >> 4, layer)[index_of(Order::xyz, x & 15, static_cast<unsigned>(y & 15), z & 15)] = number;
    }
    /// The number of a block of layer 0; 0 where no section was made.
    std::uint32_t get(unsigned x, std::int32_t y, unsigned z) const noexcept {
        auto found = find(y >> 4);
        if (found == stored_.end() || found->y != y >> 4) return 0;
        return found->layers[0][index_of(Order::xyz, x & 15, static_cast<unsigned>(y & 15), z & 15)];
    }
    /// Sets the bytes of a block entity.
    void set_nbt(Pos at, Bytes nbt) {
        auto same = [&](const auto &e) { return e.first.x == at.x && e.first.y == at.y && e.first.z == at.z; };
        std::erase_if(owned_, same);
        owned_.emplace_back(at, std::vector<std::byte>(nbt.begin(), nbt.end()));
    }
    const ColumnAt &at() const noexcept { return at_; }
    /// The column for the C interface; lent until the draft is changed.
    const cg_column &view() {
        raw_ = detail::sized<cg_column>();
        raw_.dimension = at_.dimension, raw_.x = at_.x, raw_.z = at_.z, raw_.min_y = at_.min_y, raw_.max_y = at_.max_y,
        raw_.tick = tick;
        sections_.clear(), raw_entities_.clear(), raw_owned_.clear(), packed_.clear();
        for (Section &s : stored_) {
            s.raw.clear();
            for (const auto &cells : s.layers) s.raw.push_back(pack(cells));
            cg_section made{};
            made.y = s.y, made.layers = s.raw.data();
            made.layer_count = static_cast<decltype(made.layer_count)>(s.raw.size());
            sections_.push_back(made);
        }
        for (const Entity &e : entities) raw_entities_.push_back(e.raw());
        for (const auto &[at, nbt] : owned_) raw_owned_.push_back({at, detail::bytes(Bytes(nbt))});
        raw_.sections = sections_.data(), raw_.section_count = sections_.size();
        raw_.entities = raw_entities_.data(), raw_.entity_count = raw_entities_.size();
        raw_.block_entities = raw_owned_.data(), raw_.block_entity_count = raw_owned_.size();
        raw_.scheduled = scheduled.data(), raw_.scheduled_count = scheduled.size();
        return raw_;
    }
    std::vector<Entity> entities;
    std::vector<cg_scheduled> scheduled;
    std::int64_t tick = 0;

private:
    using Cells = std::array<std::uint32_t, 4096>;
    struct Section {
        std::int32_t y;
        std::deque<Cells> layers;
        std::vector<cg_cells> raw;
    };
    struct Packed {
        std::vector<std::uint32_t> palette;
        std::vector<std::uint16_t> words;
    };

    std::deque<Section>::const_iterator find(std::int32_t y) const noexcept {
        auto below = [](const Section &s, std::int32_t at) { return s.y < at; };
        return std::lower_bound(stored_.begin(), stored_.end(), y, below);
    }
    Cells &layer_of(std::int32_t y, std::size_t layer) {
        auto found = stored_.begin() + (find(y) - stored_.cbegin());
        if (found == stored_.end() || found->y != y) found = stored_.insert(found, Section{y, {}, {}});
        while (found->layers.size() <= layer) found->layers.emplace_back().fill(0);
        return found->layers[layer];
    }
    /// A palette and indices of 16 bits, or one value for all cells.
    cg_cells pack(const Cells &cells) {
        Packed &packed = packed_.emplace_back();
        std::unordered_map<std::uint32_t, std::uint16_t> seen;
        std::uint32_t last = cells[0];
        std::uint16_t index = 0;
        packed.palette.push_back(last), seen.emplace(last, index);
        packed.words.reserve(cells.size());
        for (std::uint32_t number : cells) {
            if (number != last) {
                auto [at, is_new] = seen.try_emplace(number, static_cast<std::uint16_t>(packed.palette.size()));
                if (is_new) packed.palette.push_back(number);
                last = number, index = at->second;
            }
            packed.words.push_back(index);
        }
        cg_cells raw{};
        raw.palette = packed.palette.data(), raw.palette_len = static_cast<std::uint32_t>(packed.palette.size());
        raw.order = CG_ORDER_XYZ, raw.side_log2 = 4, raw.word_bits = 16;
        if (packed.palette.size() > 1) {
            raw.words = reinterpret_cast<const std::uint8_t *>(packed.words.data());
            raw.words_len = packed.words.size() * sizeof packed.words[0], raw.bits = 16;
        }
        return raw;
    }

    ColumnAt at_;
    std::deque<Section> stored_;
    std::vector<std::pair<Pos, std::vector<std::byte>>> owned_;
    cg_column raw_{};
    std::vector<cg_section> sections_;
    std::vector<cg_entity> raw_entities_;
    std::vector<cg_block_entity> raw_owned_;
    std::deque<Packed> packed_;
};

} // namespace cg

#endif
