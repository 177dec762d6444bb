//===- ThreadRange.h - a class of a kernel's launches -----------*- C++ -*-===//
#ifndef OPTIML_SUPPORT_THREADRANGE_H
#define OPTIML_SUPPORT_THREADRANGE_H

#include <charconv>
#include <compare>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

namespace optiml {

/// Launches with so many threads in all, both included.
struct ThreadRange {
  static constexpr uint64_t unlimited = std::numeric_limits<uint64_t>::max();
  uint64_t least = 0, most = unlimited;

  bool isAll() const { return least == 0 && most == unlimited; }
  bool contains(uint64_t threads) const { return least <= threads && threads <= most; }
  bool overlaps(const ThreadRange &other) const { return least <= other.most && other.least <= most; }
  auto operator<=>(const ThreadRange &) const = default;
  /// "1024-65535", "65536-" without a limit.
  std::string str() const { return std::to_string(least) + "-" + (most == unlimited ? "" : std::to_string(most)); }
  /// Nothing where the text is not as str() writes it, or names no launch.
  static std::optional<ThreadRange> parse(std::string_view text);
};

inline std::optional<ThreadRange> ThreadRange::parse(std::string_view text) {
  ThreadRange range;
  const char *const end = text.data() + text.size();
  auto [bar, wrong] = std::from_chars(text.data(), end, range.least);
  if (wrong != std::errc() || bar == end || *bar != '-')
    return std::nullopt;
  if (++bar != end)
    if (auto [last, no] = std::from_chars(bar, end, range.most); no != std::errc() || last != end)
      return std::nullopt;
  return range.least <= range.most ? std::optional(range) : std::nullopt;
}

} // namespace optiml

#endif
