// What viewers show of arguments that are hashes: the text that the trace has for it, under the
// name that the table of events has. Used by the exports.
#pragma once
#include <span>
#include <string>
#include <string_view>

#include "reader/parse/json_scan.hpp"

namespace dft::reader {

// Whether an argument of this name may be a hash.
inline bool may_be_hash(std::string_view key) { return key.ends_with("hash") || is(key, "cwd"); }

// The name for the text of a hash: fhash is fname, hhash hostname (as the reader knows it), and
// cmd_hash cmd.
inline std::string_view name_of_text(std::string_view key) {
  if (is(key, "fhash")) return "fname";
  if (is(key, "hhash")) return "hostname";
  if (key.size() > 5 && key.ends_with("_hash")) return key.substr(0, key.size() - 5);
  return key;
}

// An argument of the program's own keeps its name.
inline std::string_view shown_key(std::string_view key, std::span<const JsonField> all) {
  const std::string_view wanted = name_of_text(key);
  if (wanted == key) return key;
  for (const JsonField& field : all) {
    if (field.key == wanted) return key;
  }
  return wanted;
}

}  // namespace dft::reader
