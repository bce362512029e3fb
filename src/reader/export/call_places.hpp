// The call sites of a forest's events, as short texts that viewers show. Used by the exports that have
// frames for them.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "reader/export/span_forest.hpp"

namespace dft::reader {

// "data.py:42 load > numpy.load" for "/home/me/data.py:42 load > numpy.load @ ...", and
// "libfoo.so+0x12" for "/usr/lib/libfoo.so+0x12 [build id]".
std::string short_place(std::string_view text);

class CallPlaces {
 public:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  // For SpanForest::read: keeps the hash of the site.
  static void keep(const Event& event, std::string& out);

  explicit CallPlaces(const SpanForest& forest);
  // Index in `names`; kNone if the event has no site.
  [[nodiscard]] std::uint32_t of(const Item& item) const;
  std::vector<std::string> names;

 private:
  [[nodiscard]] std::string_view hash_of(const Item& item) const {
    return std::string_view(forest_.payloads).substr(item.payload, item.payload_size);
  }
  const SpanForest& forest_;
  std::unordered_map<std::string, std::uint32_t> numbers_;
};

}  // namespace dft::reader
