// The rows of config_table.def as data, and the text of one value: parsed, shown, explained.
// Used by config.cpp and config_yaml.cpp only, on the thread that starts the session.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "session/config.hpp"

namespace dft::session {

enum class Status : std::uint8_t { kEffective, kNotNeeded, kNotAvailable };

struct Allowed {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  bool octal = false;
  std::size_t hex_digits = 0;
  std::array<std::string_view, 4> names{};
};

using Field = std::variant<Switch Config::*, Number Config::*, Text Config::*, List Config::*,
                           InitMode Config::*, LogLevel Config::*, TimeMetric Config::*,
                           AggregationType Config::*>;

struct Setting {
  Status status;
  Field field;
  std::string_view variable;
  std::string_view key;  // "" where the YAML file cannot say it
  bool key_negated;
  Allowed allowed;
  std::string_view text;
};

std::span<const Setting> settings();

// Index of the setting with that variable or YAML key, or kNotFound.
inline constexpr std::size_t kNotFound = static_cast<std::size_t>(-1);
std::size_t find_variable(std::string_view variable);
std::size_t find_key(std::string_view key);
bool is_known_variable(std::string_view variable);
bool is_known_key(std::string_view key);

// The name of a setting that `name` may be a misspelling of, or "".
std::string_view similar_variable(std::string_view name);
std::string_view similar_key(std::string_view name);

inline bool is_switch(const Setting& setting) {
  return std::holds_alternative<Switch Config::*>(setting.field);
}
inline bool is_list(const Setting& setting) {
  return std::holds_alternative<List Config::*>(setting.field);
}

// Sets the field from `value`; an empty value stands for the default, except that it switches
// off. False, and the field unchanged, if the value is not allowed; of a list, what can be used
// is still added.
[[nodiscard]] bool assign(Config& config, const Setting& setting, std::string_view value);
// Adds a directory to a list as it is, with any ':' in it. False if it is too long or one too many.
[[nodiscard]] bool add_directory(List& list, std::string_view directory);
void negate(Config& config, const Setting& setting);
bool same(const Config& a, const Config& b, const Setting& setting);
std::string show(const Config& config, const Setting& setting);

// What a value of the setting looks like: "a switch (1 or 0)", "one of NS, US".
std::string expected(const Setting& setting);

// Text from outside, fit for one line of a terminal: short, with control characters and invalid
// UTF-8 as \xNN.
std::string visible(std::string_view text, std::size_t longest = 60);
std::string visible_path(std::string_view path);

// Passes lines on, up to a limit, then says once that there are more.
class Lines {
 public:
  Lines(Report report, void* context) : report_(report), context_(context) {}
  void add(std::string_view line);
  bool full() const;

 private:
  Report report_;
  void* context_;
  int count_ = 0;
};

}  // namespace dft::session
