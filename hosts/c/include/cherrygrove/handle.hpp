// Errors, and owners of handles.
#ifndef CHERRYGROVE_HANDLE_HPP
#define CHERRYGROVE_HANDLE_HPP

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "../cherrygrove.h"

namespace cg {

using Handle = cg_handle;
using Pos = cg_pos;
using Box = cg_box;
using Id = std::array<std::uint8_t, 16>;
using Bytes = std::span<const std::byte>;

/// Why a call failed, by the numbers of the header.
enum class Kind : int {
    damaged = CG_DAMAGED,
    conflict = CG_CONFLICT,
    busy = CG_BUSY,
    low_disk = CG_LOW_DISK,
    read_only = CG_READ_ONLY,
    fenced = CG_FENCED,
    unavailable = CG_UNAVAILABLE,
    in_doubt = CG_IN_DOUBT,
    not_found = CG_NOT_FOUND,
    too_large = CG_TOO_LARGE,
    invalid = CG_INVALID,
    closed = CG_CLOSED,
    unsupported = CG_UNSUPPORTED,
    engine = CG_ENGINE,
    internal = CG_INTERNAL,
};
enum class Open : std::uint32_t {
    existing = CG_OPEN,
    create = CG_CREATE,
    open_or_create = CG_OPEN_OR_CREATE,
    read_only = CG_OPEN_READ_ONLY
};
enum class Durability : std::uint32_t {
    standard = CG_DEFAULT,
    fast = CG_FAST,
    balanced = CG_BALANCED,
    process = CG_PROCESS,
    safe = CG_SAFE,
    safe_batch = CG_SAFE_BATCH,
};
enum class Order : std::uint8_t { xyz = CG_ORDER_XYZ, xzy = CG_ORDER_XZY, yzx = CG_ORDER_YZX };
enum class List : std::uint32_t {
    blocks = CG_BLOCKS,
    components = CG_COMPONENTS,
    entities = CG_ENTITIES,
    dimensions = CG_DIMENSIONS,
    sides = CG_SIDES
};
/// Whether a save wrote something.
enum class Saved { written, unchanged };
/// What the memory has of a column.
enum class Peeked { loaded, absent, pending };

/// Where something failed: the world's number of a dimension, and a chunk.
struct Place {
    std::uint32_t dimension;
    Pos chunk;
};

/// A failure. what() is the message of the library.
class Error : public std::runtime_error {
public:
    Error(Kind kind, const std::string &message, std::optional<Place> place = {}, bool retryable = false)
        : std::runtime_error(message), kind_(kind), place_(place), retryable_(retryable) {}
    Kind kind() const noexcept { return kind_; }
    /// The code of the kind, such as "damaged".
    std::string_view code() const noexcept {
        cg_str code = cg_kind_code(static_cast<int>(kind_));
        return {code.ptr, code.len};
    }
    const std::optional<Place> &place() const noexcept { return place_; }
    /// Whether the same call may succeed later.
    bool retryable() const noexcept { return retryable_; }

private:
    Kind kind_;
    std::optional<Place> place_;
    bool retryable_;
};

namespace detail {
inline cg_str str(std::string_view text) noexcept { return {text.data() ? text.data() : "", text.size()}; }
/// Bytes that are not "removed", also if they are none.
inline cg_bytes bytes(Bytes data) noexcept {
    static constexpr std::uint8_t none = 0;
    return {data.data() ? reinterpret_cast<const std::uint8_t *>(data.data()) : &none, data.size()};
}
inline Bytes bytes(cg_bytes data) noexcept { return {reinterpret_cast<const std::byte *>(data.ptr), data.len}; }
inline std::string_view text(cg_str text) noexcept {
    return text.len == 0 ? std::string_view{} : std::string_view{text.ptr, text.len};
}

[[noreturn]] inline void fail(int result, const cg_error &error) {
    std::optional<Place> place;
    if (error.has_place != 0) place = Place{error.dimension, error.chunk};
    throw Error(static_cast<Kind>(result), std::string(error.message, error.message_len), place, error.retryable != 0);
}
/// Calls a function with an error as its last argument; returns an outcome, or throws.
template <class Function, class... Arguments> int call(Function function, Arguments... arguments) {
    cg_error error;
    error.struct_size = sizeof error;
    error.kind = CG_OK;
    error.has_place = error.retryable = error.message_len = 0;
    int result = function(arguments..., &error);
    if (result < 0) fail(result, error);
    return result;
}
template <class Struct> Struct sized() noexcept {
    Struct made{};
    made.struct_size = sizeof(Struct);
    return made;
}
} // namespace detail

/// Bytes of a text, without a mark at the end.
inline Bytes bytes_of(std::string_view text) noexcept { return std::as_bytes(std::span(text)); }
/// Bytes as a text, which they need not be.
inline std::string_view text_of(Bytes data) noexcept {
    return {reinterpret_cast<const char *>(data.data()), data.size()};
}

/// The owner of a handle.
class Owner {
public:
    Owner() noexcept = default;
    explicit Owner(Handle handle) noexcept : handle_(handle) {}
    Owner(Owner &&other) noexcept : handle_(std::exchange(other.handle_, 0)) {}
    Owner &operator=(Owner &&other) noexcept {
        if (this != &other) {
            release();
            handle_ = std::exchange(other.handle_, 0);
        }
        return *this;
    }
    ~Owner() { release(); }
    Handle handle() const noexcept { return handle_; }
    explicit operator bool() const noexcept { return handle_ != 0; }
    /// Ends the handle now.
    void release() noexcept {
        if (handle_ != 0) cg_release(std::exchange(handle_, 0));
    }

protected:
    Handle take() noexcept { return std::exchange(handle_, 0); }

private:
    Handle handle_ = 0;
};

/// Bytes or a text that the library lends.
class Buffer : public Owner {
public:
    Buffer() = default;
    explicit Buffer(Handle handle) : Owner(handle) {
        cg_bytes found{};
        detail::call(cg_bytes_of, handle, &found);
        data_ = detail::bytes(found);
    }
    Bytes bytes() const noexcept { return data_; }
    std::string_view text() const noexcept { return text_of(data_); }

private:
    Bytes data_;
};

/// Keeps a box of chunks in memory while it lives.
class Pin : public Owner {
public:
    using Owner::Owner;
};

} // namespace cg

#endif
