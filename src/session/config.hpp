// The settings of a traced process: read once from environment and YAML file, const from then on.
// Called by the session at its start, on the thread that starts it; the functions keep no state.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace dft::session {

enum class InitMode : std::uint8_t { kFunction, kPreload };
enum class LogLevel : std::uint8_t { kDebug, kInfo, kWarn, kError };
enum class TimeMetric : std::uint8_t { kNs, kUs, kMs, kSec };
enum class AggregationType : std::uint8_t { kFull, kSelective };

using Switch = bool;
using Number = std::uint64_t;
using Text = std::string;
using List = std::vector<std::string>;

// One member per row of config_table.def, which documents them. Members of rows that are not
// Effective hold what the user set, and nothing acts on them. The defaults allocate nothing.
struct Config {
#define DFT_SETTING(status, field, type, variable, yaml, fallback, allowed, text) \
  type field = fallback;
#include "session/config_table.def"

  bool operator==(const Config&) const = default;
};

// Makes relative paths among the variables absolute in the environment, so that they mean the same
// in a child that starts in another directory. Before the program's main function only.
void keep_meaning_for_children() noexcept;

struct Environment {
  char** entries;  // as `environ`: "NAME=value", ended by a null pointer; may be null
  bool secure;     // AT_SECURE (set-uid, file capabilities): the environment is ignored
};

// Takes one line that begins with "dftracer: " and has no newline; valid only during the call.
using Report = void (*)(void* context, const char* line);

// Reads the environment, and the YAML file that it names unless it switches tracing off. The
// environment wins. A value that cannot be used is reported and replaced by the default or the
// file's value; nothing is fatal. With tracing off, only a malformed DFTRACER_ENABLE is
// reported. Keeps errno.
Config read_config(const Environment& environment, Report report, void* context) noexcept;

// Applies the settings of a YAML text to `config`; lists are added to, the rest is replaced.
// `file_name` is for the reports. May throw bad_alloc.
void apply_yaml(Config& config, std::string_view text, const char* file_name, Report report,
                void* context);

// Adds directories, with ':' between them, to `list`; empty ones and repetitions are left out.
// False if some were left out because they are too long or too many.
bool add_directories(List& list, std::string_view directories);

// The value that the setting of this variable has, in the form that the variable takes ("1", "US",
// "/a:/b"); empty if the variable is not a setting.
std::string setting_text(const Config& config, std::string_view variable);

// The rank that a launcher gave to this process, or -1.
int rank_from_environment(const Environment& environment) noexcept;

// A text that is the same in all processes of one launched job and differs between jobs; empty
// without a launcher. Meant to be hashed.
std::string job_from_environment(const Environment& environment) noexcept;

}  // namespace dft::session
