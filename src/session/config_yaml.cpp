// The YAML file: a walk over libyaml's events, which builds no tree.

#include <yaml.h>

#include <cstddef>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include "session/config.hpp"
#include "session/config_values.hpp"

namespace dft::session {
namespace {

constexpr int kDeepest = 16;
constexpr const char* kNoAnchors = "anchors and aliases are not read";

std::string_view text_of(const yaml_event_t& event) {
  return {reinterpret_cast<const char*>(event.data.scalar.value), event.data.scalar.length};
}

bool is_null(const yaml_event_t& event) {
  if (event.data.scalar.style != YAML_PLAIN_SCALAR_STYLE) return false;
  const std::string_view text = text_of(event);
  return text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL";
}

class YamlWalk {
 public:
  YamlWalk(Config& config, std::string_view text, const char* file_name, Report report,
           void* context)
      : config_(config),
        file_name_(visible_path(file_name)),
        lines_(report, context),
        given_(settings().size(), false) {
    if (yaml_parser_initialize(&parser_) == 0) throw std::bad_alloc();
    yaml_parser_set_input_string(&parser_, reinterpret_cast<const unsigned char*>(text.data()),
                                 text.size());
  }
  YamlWalk(const YamlWalk&) = delete;
  YamlWalk& operator=(const YamlWalk&) = delete;
  ~YamlWalk() {
    yaml_event_delete(&event_);
    yaml_parser_delete(&parser_);
  }

  void run() {
    int documents = 0;
    while (next() && event_.type != YAML_STREAM_END_EVENT) {
      if (event_.type == YAML_DOCUMENT_START_EVENT && ++documents > 1) {
        return problem("only the first document of the file is read");
      }
      if (event_.type == YAML_MAPPING_START_EVENT && !has_anchor()) {
        read_block("");
      } else if (is_node() && !(event_.type == YAML_SCALAR_EVENT && is_null(event_))) {
        problem(has_anchor() ? kNoAnchors : "expected lines of `key: value`");
        skip();
      }
    }
  }

 private:
  // False at an error, which is reported, and from then on: what has been read so far stays.
  bool next() {
    if (failed_) return false;
    yaml_event_delete(&event_);
    event_ = {};
    if (yaml_parser_parse(&parser_, &event_) == 0) {
      failed_ = true;
      if (parser_.error == YAML_MEMORY_ERROR) throw std::bad_alloc();
      const std::size_t line = parser_.problem_mark.line;
      const char* const why = parser_.problem != nullptr ? parser_.problem : "cannot be read";
      problem_at(line, std::string("not YAML from here on: ") + visible(why));
      return false;
    }
    if (is_start()) ++depth_;
    if (is_end()) --depth_;
    if (depth_ <= kDeepest) return true;
    failed_ = true;
    problem("nested too deeply; the rest is not read");
    return false;
  }

  bool is_start() const {
    return event_.type == YAML_MAPPING_START_EVENT || event_.type == YAML_SEQUENCE_START_EVENT;
  }
  bool is_end() const {
    return event_.type == YAML_MAPPING_END_EVENT || event_.type == YAML_SEQUENCE_END_EVENT;
  }
  bool is_node() const {
    return is_start() || event_.type == YAML_SCALAR_EVENT || event_.type == YAML_ALIAS_EVENT;
  }
  bool has_anchor() const {
    switch (event_.type) {
      case YAML_ALIAS_EVENT:
        return true;
      case YAML_SCALAR_EVENT:
        return event_.data.scalar.anchor != nullptr;
      case YAML_SEQUENCE_START_EVENT:
        return event_.data.sequence_start.anchor != nullptr;
      case YAML_MAPPING_START_EVENT:
        return event_.data.mapping_start.anchor != nullptr;
      default:
        return false;
    }
  }

  // Passes over the node whose first event is the current one, whatever is inside.
  void skip() {
    if (!is_start()) return;
    const int outside = depth_ - 1;
    while (next() && depth_ > outside) {
    }
  }

  // The current event opens a mapping; `block` is its key with a dot, or "" at the top.
  void read_block(const std::string& block) {
    while (next() && event_.type != YAML_MAPPING_END_EVENT) {
      const bool plain = event_.type == YAML_SCALAR_EVENT;
      const std::string key = plain ? block + std::string(text_of(event_)) : std::string();
      if (!plain || has_anchor()) {
        problem(has_anchor() ? kNoAnchors : "a key must be a plain word");
        skip();
        if (next()) skip();
        continue;
      }
      if (next()) read_value(key);
    }
  }

  void read_value(const std::string& key) {
    // `tracer` is the younger name of the block `profiler`.
    const bool younger = key == "tracer" || key.starts_with("tracer.");
    const std::string name = younger ? "profiler" + key.substr(6) : key;
    const std::size_t index = find_key(name);
    if (has_anchor()) {
      problem(visible(key) + " is left out: " + kNoAnchors);
    } else if (event_.type == YAML_SCALAR_EVENT && is_null(event_) &&
               (index != kNotFound || is_block(name))) {
      return;  // a key with nothing after it says nothing
    } else if (event_.type == YAML_MAPPING_START_EVENT && is_block(name)) {
      return read_block(key + ".");
    } else if (is_block(name)) {
      problem(visible(key) + " is not a value but a block of settings");
    } else if (index == kNotFound) {
      if (!is_known_key(name)) report_unknown(key, name, younger);
    } else if (event_.type == YAML_SCALAR_EVENT) {
      return apply(key, index, text_of(event_));
    } else if (event_.type == YAML_SEQUENCE_START_EVENT && is_list(settings()[index])) {
      return read_list(key, settings()[index]);
    } else {
      problem(visible(key) + " is not " + expected(settings()[index]) + "; ignored");
    }
    skip();
  }

  static bool is_block(std::string_view key) {
    for (const Setting& setting : settings()) {
      if (setting.key.size() > key.size() && setting.key[key.size()] == '.' &&
          setting.key.starts_with(key)) {
        return true;
      }
    }
    return false;
  }

  void apply(const std::string& key, std::size_t index, std::string_view value) {
    const Setting& setting = settings()[index];
    const std::string before = is_list(setting) ? std::string() : show(config_, setting);
    const bool valid = assign(config_, setting, value);
    if (valid && setting.key_negated) negate(config_, setting);
    if (!valid) {
      const std::string used = show_as_key(setting);
      problem(visible(key) + ": \"" + visible(value) + "\" is not " + expected(setting) +
              "; using " + (used.empty() ? "the default" : visible(used)));
    } else if (given_[index] && !is_list(setting) && before != show(config_, setting)) {
      problem(visible(key) + " has been given before; using " + visible(value));
    }
    given_[index] = true;
  }

  // What the file would have to say for the value that is used.
  std::string show_as_key(const Setting& setting) {
    if (!setting.key_negated) return show(config_, setting);
    negate(config_, setting);
    std::string text = show(config_, setting);
    negate(config_, setting);
    return text;
  }

  void read_list(const std::string& key, const Setting& setting) {
    List& list = config_.*std::get<List Config::*>(setting.field);
    const std::size_t line = event_.start_mark.line;
    bool all = true;
    while (next() && event_.type != YAML_SEQUENCE_END_EVENT) {
      const bool usable = event_.type == YAML_SCALAR_EVENT && !has_anchor();
      if (!usable) skip();
      if (usable && is_null(event_)) continue;
      // An item is one directory, so that a name with a colon can be given here.
      all = usable && add_directory(list, text_of(event_)) && all;
    }
    if (!all) problem_at(line, visible(key) + " is not " + expected(setting) + "; using what is");
  }

  void report_unknown(const std::string& key, const std::string& name, bool younger) {
    if (lines_.full()) return;  // looking for names takes time, and a file may hold many
    std::string similar(similar_key(name));
    if (younger && similar.starts_with("profiler.")) similar = "tracer" + similar.substr(8);
    problem(visible(key) + " is not a setting" +
            (similar.empty() ? "" : "; did you mean " + similar + "?"));
  }

  void problem(const std::string& text) { problem_at(event_.start_mark.line, text); }
  void problem_at(std::size_t line, const std::string& text) {
    lines_.add(file_name_ + ":" + std::to_string(line + 1) + ": " + text);
  }

  Config& config_;
  const std::string file_name_;
  Lines lines_;
  std::vector<bool> given_;
  yaml_parser_t parser_{};
  yaml_event_t event_{};
  int depth_ = 0;
  bool failed_ = false;
};

}  // namespace

void apply_yaml(Config& config, std::string_view text, const char* file_name, Report report,
                void* context) {
  if (text.empty()) return;  // libyaml asserts that there is a text
  YamlWalk(config, text, file_name, report, context).run();
}

}  // namespace dft::session
