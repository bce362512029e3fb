#include "reader/export/call_places.hpp"

#include "reader/parse/json_scan.hpp"

namespace dft::reader {

std::string short_place(std::string_view text) {
  if (const std::size_t native = text.rfind(" @ "); native != std::string_view::npos) {
    text = text.substr(0, native);
  } else if (text.ends_with(']')) {
    text = text.substr(0, text.rfind(" ["));
  }
  const std::size_t callee = text.rfind(" > ");
  const std::string_view line = text.substr(0, callee);
  const std::size_t function = line.rfind(' ');
  const std::size_t folder = line.substr(0, function).rfind('/');
  return std::string(text.substr(folder == std::string_view::npos ? 0 : folder + 1));
}

void CallPlaces::keep(const Event& event, std::string& out) {
  for (const JsonField& field : event.args) {
    if (is(field.key, "site_hash")) out += field.value;
  }
}

CallPlaces::CallPlaces(const SpanForest& forest) : forest_(forest) {
  for (const Item& item : forest.items) {
    if (!item.is_event || item.payload_size == 0) continue;
    const std::string hash(hash_of(item));
    const std::string* text = forest.text_of(hash);
    if (text == nullptr || numbers_.contains(hash)) continue;
    numbers_.emplace(hash, static_cast<std::uint32_t>(names.size()));
    names.push_back(short_place(*text));
  }
}

std::uint32_t CallPlaces::of(const Item& item) const {
  if (item.payload_size == 0) return kNone;
  const auto found = numbers_.find(std::string(hash_of(item)));
  return found == numbers_.end() ? kNone : found->second;
}

}  // namespace dft::reader
