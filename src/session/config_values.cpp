#include "session/config_values.hpp"

#include <algorithm>
#include <charconv>
#include <type_traits>

namespace dft::session {
namespace {

constexpr std::size_t kLongestPath = 4095;  // PATH_MAX without its final NUL
constexpr std::size_t kMostDirectories = 1024;
constexpr std::size_t kLongestPathShown = 400;
constexpr int kMostLines = 40;

constexpr Allowed any() { return {}; }
constexpr Allowed range(std::uint64_t low, std::uint64_t high) {
  Allowed allowed;
  allowed.low = low;
  allowed.high = high;
  return allowed;
}
constexpr Allowed octal(std::uint64_t high) {
  Allowed allowed = range(0, high);
  allowed.octal = true;
  return allowed;
}
constexpr Allowed hex_digits(std::size_t count) {
  Allowed allowed;
  allowed.hex_digits = count;
  return allowed;
}
template <class... Names>
constexpr Allowed one_of(Names... names) {
  Allowed allowed;
  allowed.names = {names...};
  return allowed;
}

constexpr bool is_negated(std::string_view key) { return key.substr(0, 1) == "!"; }
constexpr std::string_view plain_key(std::string_view key) {
  return is_negated(key) ? key.substr(1) : key;
}

constexpr Setting kSettings[] = {
#define DFT_SETTING(status, field, type, variable, yaml, fallback, allowed, text) \
  {Status::k##status, &Config::field, variable, plain_key(yaml), is_negated(yaml), allowed, text},
#include "session/config_table.def"
};

constexpr std::string_view kKnownVariables[] = {
#define DFT_KNOWN_VARIABLE(name, why) name,
#include "session/config_table.def"
};

constexpr std::string_view kKnownKeys[] = {
#define DFT_KNOWN_KEY(key, why) key,
#include "session/config_table.def"
};

bool matches(std::string_view pattern, std::string_view name) {
  if (pattern.ends_with('*')) return name.starts_with(pattern.substr(0, pattern.size() - 1));
  return pattern == name;
}

// ASCII only: a locale must not change what a setting means.
bool equal_in_any_case(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  return std::ranges::equal(a, b, {}, lower, lower);
}

bool parse(std::string_view value, const Allowed&, Switch& to) {
  for (const std::string_view on : {"1", "true", "yes", "on"}) {
    if (equal_in_any_case(value, on)) return to = true;
  }
  for (const std::string_view off : {"", "0", "false", "no", "off"}) {
    if (equal_in_any_case(value, off)) return !(to = false);
  }
  return false;
}

bool parse(std::string_view value, const Allowed& allowed, Number& to) {
  Number number = 0;
  const char* const end = value.data() + value.size();
  const auto [stop, error] = std::from_chars(value.data(), end, number, allowed.octal ? 8 : 10);
  if (error != std::errc{} || stop != end) return false;
  if (number < allowed.low || number > allowed.high) return false;
  to = number;
  return true;
}

bool parse(std::string_view value, const Allowed& allowed, Text& to) {
  if (value.size() > kLongestPath || value.find('\0') != value.npos) return false;
  if (allowed.hex_digits != 0) {
    if (value.size() != allowed.hex_digits) return false;
    if (value.find_first_not_of("0123456789abcdef") != value.npos) return false;
  }
  to = value;
  return true;
}

bool parse(std::string_view value, const Allowed&, List& to) { return add_directories(to, value); }

template <class Enum>
  requires std::is_enum_v<Enum>
bool parse(std::string_view value, const Allowed& allowed, Enum& to) {
  for (std::size_t i = 0; i < allowed.names.size() && !allowed.names[i].empty(); ++i) {
    if (!equal_in_any_case(value, allowed.names[i])) continue;
    to = static_cast<Enum>(i);
    return true;
  }
  return false;
}

std::string to_text(Switch value, const Allowed&) { return value ? "1" : "0"; }
std::string to_text(Number value, const Allowed& allowed) {
  char digits[32];
  const auto [end, error] =
      std::to_chars(digits, digits + sizeof digits, value, allowed.octal ? 8 : 10);
  return (allowed.octal ? "0" : "") + std::string(digits, end);
}
std::string to_text(const Text& value, const Allowed&) { return value; }
std::string to_text(const List& value, const Allowed&) {
  std::string text;
  for (const std::string& item : value) {
    if (!text.empty()) text += ':';
    text += item;
  }
  return text;
}
template <class Enum>
  requires std::is_enum_v<Enum>
std::string to_text(Enum value, const Allowed& allowed) {
  return std::string(allowed.names[static_cast<std::size_t>(value)]);
}

// Levenshtein; `most` or more comes back as `most`.
std::size_t edit_distance(std::string_view a, std::string_view b, std::size_t most) {
  constexpr std::size_t kLongest = 64;
  if (a.size() >= kLongest || b.size() >= kLongest) return most;
  std::array<std::size_t, kLongest> row{};
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return std::min(row[b.size()], most);
}

// The nearest name, if about a third of it or less is different; `shared` bytes in front
// do not count.
std::string_view nearest(std::string_view name, std::string_view Setting::* column,
                         std::size_t shared) {
  std::string_view best;
  std::size_t least = 4;
  for (const Setting& setting : kSettings) {
    const std::string_view candidate = setting.*column;
    if (candidate.size() <= shared || name.size() <= shared) continue;
    const std::size_t most = std::min(least, 1 + (candidate.size() - shared) / 3);
    const std::size_t distance = edit_distance(name.substr(shared), candidate.substr(shared), most);
    if (distance >= most) continue;
    least = distance;
    best = candidate;
  }
  return best;
}

// Length of the well-formed UTF-8 sequence in front, 0 if there is none.
std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned lead = byte(0);
  if ((lead >= 0x80 && lead < 0xC2) || lead > 0xF4) return 0;
  const std::size_t length = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  if (text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0U) != 0x80U) return 0;
  }
  if (lead == 0xE0 && byte(1) < 0xA0) return 0;  // overlong
  if (lead == 0xED && byte(1) > 0x9F) return 0;  // surrogate
  if (lead == 0xF0 && byte(1) < 0x90) return 0;  // overlong
  if (lead == 0xF4 && byte(1) > 0x8F) return 0;  // past U+10FFFF
  return length;
}

}  // namespace

std::span<const Setting> settings() { return kSettings; }

std::size_t find_variable(std::string_view variable) {
  for (std::size_t i = 0; i < std::size(kSettings); ++i) {
    if (kSettings[i].variable == variable) return i;
  }
  return kNotFound;
}

std::size_t find_key(std::string_view key) {
  for (std::size_t i = 0; i < std::size(kSettings); ++i) {
    if (!key.empty() && kSettings[i].key == key) return i;
  }
  return kNotFound;
}

bool is_known_variable(std::string_view variable) {
  return std::ranges::any_of(kKnownVariables, [&](auto known) { return matches(known, variable); });
}

bool is_known_key(std::string_view key) {
  return std::ranges::any_of(kKnownKeys, [&](auto known) { return matches(known, key); });
}

std::string_view similar_variable(std::string_view name) {
  return nearest(name, &Setting::variable, std::string_view("DFTRACER_").size());
}

std::string_view similar_key(std::string_view name) { return nearest(name, &Setting::key, 0); }

bool assign(Config& config, const Setting& setting, std::string_view value) {
  return std::visit(
      [&](auto field) {
        if (value.empty() && !is_switch(setting)) {
          if (!is_list(setting)) config.*field = Config{}.*field;
          return true;
        }
        return parse(value, setting.allowed, config.*field);
      },
      setting.field);
}

void negate(Config& config, const Setting& setting) {
  if (const auto* field = std::get_if<Switch Config::*>(&setting.field)) {
    config.** field = !(config.**field);
  }
}

bool same(const Config& a, const Config& b, const Setting& setting) {
  return std::visit([&](auto field) { return a.*field == b.*field; }, setting.field);
}

std::string show(const Config& config, const Setting& setting) {
  return std::visit([&](auto field) { return to_text(config.*field, setting.allowed); },
                    setting.field);
}

std::string expected(const Setting& setting) {
  const Allowed& allowed = setting.allowed;
  if (is_switch(setting)) return "a switch (1, true, yes, on; 0, false, no, off)";
  if (std::holds_alternative<Number Config::*>(setting.field)) {
    return (allowed.octal ? "an octal number from " : "a whole number from ") +
           to_text(allowed.low, allowed) + " to " + to_text(allowed.high, allowed);
  }
  if (is_list(setting)) {
    return "a list of at most " + std::to_string(kMostDirectories) + " directories of at most " +
           std::to_string(kLongestPath) + " bytes each";
  }
  if (allowed.hex_digits != 0) {
    return std::to_string(allowed.hex_digits) + " lower-case hexadecimal digits";
  }
  if (std::holds_alternative<Text Config::*>(setting.field)) {
    return "a text of at most " + std::to_string(kLongestPath) + " bytes";
  }
  std::string text = "one of ";
  for (std::size_t i = 0; i < allowed.names.size() && !allowed.names[i].empty(); ++i) {
    if (i != 0) text += ", ";
    text += allowed.names[i];
  }
  return text;
}

std::string visible_path(std::string_view path) {
  // The end of a path is what tells files apart.
  if (path.size() <= kLongestPathShown) return visible(path, kLongestPathShown * 4);
  return "..." + visible(path.substr(path.size() - kLongestPathShown), kLongestPathShown * 4);
}

std::string visible(std::string_view text, std::size_t longest) {
  constexpr char kHex[] = "0123456789abcdef";
  std::string out;
  while (!text.empty()) {
    if (out.size() >= longest) return out + "...";
    const std::size_t length = utf8_length(text);
    const auto first = static_cast<unsigned char>(text[0]);
    const auto second = static_cast<unsigned char>(length == 2 ? text[1] : '\0');
    // U+0080 to U+009F are control characters too, and some terminals obey them.
    const bool control =
        first < 0x20 || first == 0x7F || (length == 2 && first == 0xC2 && second < 0xA0);
    const std::size_t taken = length == 0 ? 1 : length;
    if (length != 0 && !control) {
      out.append(text.substr(0, taken));
    } else {
      for (const char c : text.substr(0, taken)) {
        const auto byte = static_cast<unsigned char>(c);
        out.append("\\x").append(1, kHex[byte >> 4]).append(1, kHex[byte & 15]);
      }
    }
    text.remove_prefix(taken);
  }
  return out;
}

void Lines::add(std::string_view line) {
  if (full() || report_ == nullptr) return;
  ++count_;
  std::string whole = "dftracer: ";
  whole += count_ <= kMostLines ? line : "further problems of the configuration are not listed";
  report_(context_, whole.c_str());
}

bool Lines::full() const { return count_ > kMostLines; }

bool add_directory(List& list, std::string_view directory) {
  if (directory.empty()) return true;
  if (directory.size() > kLongestPath || directory.find('\0') != directory.npos) return false;
  if (list.size() >= kMostDirectories) return false;
  if (std::ranges::find(list, directory) != list.end()) return true;
  list.emplace_back(directory);
  return true;
}

bool add_directories(List& list, std::string_view directories) {
  bool all = true;
  while (!directories.empty()) {
    const std::size_t end = std::min(directories.find(':'), directories.size());
    all = add_directory(list, directories.substr(0, end)) && all;
    directories.remove_prefix(std::min(end + 1, directories.size()));
  }
  return all;
}

std::string setting_text(const Config& config, std::string_view variable) {
  const std::size_t index = find_variable(variable);
  return index == kNotFound ? std::string() : show(config, kSettings[index]);
}

}  // namespace dft::session
