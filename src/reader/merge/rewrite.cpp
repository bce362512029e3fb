// Rewrites records for the output of a merge. Runs on worker threads; the plan is read-only.
#include "reader/merge/rewrite.hpp"

#include <stdexcept>

#include "reader/parse/text_map.hpp"
#include "reader/write/write.hpp"

namespace dft::reader {
namespace {

// ids of these connect records; those of other phases only count them.
bool connects(char phase) {
  switch (phase) {
    case 's':
    case 't':
    case 'f':
    case 'b':
    case 'n':
    case 'e':
    case 'S':
    case 'T':
    case 'p':
    case 'F':
    case 'N':
    case 'O':
    case 'D':
      return true;
    default:
      return false;
  }
}

// A span that is an end of a flow names the flow so.
constexpr std::string_view kBound = "bind_id";

std::int64_t floor_us(std::int64_t ns) { return ns >= 0 ? ns / 1000 : -((-ns + 999) / 1000); }

bool is_name(std::string_view key, std::string_view name) {
  while (key.size() > name.size() && key.back() == '_') key.remove_suffix(1);
  return key == name;
}

// Behind `,"name":` stands the value; the name gets underscores if the record has it already.
void name_argument(std::string& out, const Event& event, std::size_t kept, std::string_view name) {
  if (out.back() != '{') out += ',';
  out += '"';
  out += name;
  std::string taken(name);
  for (bool again = true; again;) {
    again = false;
    for (std::size_t i = 0; i < kept; ++i) {
      if (event.args[i].key == taken) {
        taken += '_';
        out += '_';
        again = true;
      }
    }
  }
  out += "\":";
}

void append_value(std::string& out, const JsonField& field) {
  switch (field.kind) {
    case JsonKind::kString:
    case JsonKind::kEscaped:
      out += '"';
      out += field.value;
      out += '"';
      break;
    case JsonKind::kObject:
    case JsonKind::kArray:
      append_compact(out, field.value);
      break;
    default:
      out += field.value;
  }
}

const JsonField* find_extra(const Event& event, std::string_view key) {
  for (const JsonField& field : event.extra) {
    if (field.key == key) return &field;
  }
  return nullptr;
}

bool has_metric(const Event& event) {
  const JsonField* name = find_arg(event, "name");
  return name != nullptr && is(name->value, "time_metric");
}

// A thread that has a text instead of a number: here, or before a merge.
const JsonField* text_thread(const Event& event, const InFile& file) {
  const JsonField* field = find_extra(event, "tid");
  return field != nullptr ? field : thread_text(event, file);
}

// The number that a thread had before a merge gave it a row aside; nullptr if it did not.
const JsonField* aside_thread(const Event& event, const InFile& file) {
  if (!file.merged || (event.has & kHasTid) == 0 || event.phase == kCounter) return nullptr;
  const std::string_view mark = mark_of(event, file);
  const std::size_t count = event.args.size();
  if (mark.empty() || count < 3 || !is_name(event.args[count - 2].key, "tid") ||
      !is_name(event.args[count - 3].key, "pid") || event.args[count - 2].kind != JsonKind::kInt) {
    return nullptr;
  }
  const JsonField& field = event.args[count - 2];
  return aside_number(event.pid, field.number, mark) == event.tid ? &field : nullptr;
}

// The thread's number before any merge.
std::int64_t real_thread(const Event& event, const InFile& file, const Treatment& treatment) {
  if (const JsonField* before = aside_thread(event, file); before != nullptr) return before->number;
  const std::int64_t real = treatment.process->real.value;
  return treatment.was_renumbered ? event.tid - (event.pid - real) : event.tid;
}

// How many of the arguments are the record's own: a merge puts its own behind them.
std::size_t own_arguments(const Event& event, const InFile& file, const Treatment& treatment) {
  std::size_t count = event.args.size();
  if (!treatment.again || event.phase == kCounter) return count;
  if (!treatment.fragment->keyed && !mark_of(event, file).empty()) --count;
  if (!treatment.was_renumbered && thread_text(event, file) == nullptr &&
      aside_thread(event, file) == nullptr) {
    return count;
  }
  if (count > 0 && is_name(event.args[count - 1].key, "tid")) {
    if (count > 1 && is_name(event.args[count - 2].key, "pid")) count -= 2;
  } else if (count > 0 && is_name(event.args[count - 1].key, "pid")) {
    --count;
  }
  return count;
}

// The id of a flow, different for every source. 52 bits: a reader may take it for a double.
std::uint64_t seed_of(const Treatment& treatment) {
  return hash_text(treatment.fragment->source, 0);
}
std::int64_t apart(std::uint64_t hash) { return static_cast<std::int64_t>(hash >> 12); }

// No blank between the tokens of the first `count` members: they can be copied as they stand.
bool tight(const Event& event, std::size_t count) {
  const char* at = event.args_text.data() + 1;
  for (std::size_t i = 0; i < count; ++i) {
    const JsonField& field = event.args[i];
    if (i != 0 && *at++ != ',') return false;
    if (*at != '"' || at + 1 != field.key.data()) return false;
    at = field.key.data() + field.key.size() + 1;
    if (*at != ':') return false;
    ++at;
    if (field.kind == JsonKind::kObject || field.kind == JsonKind::kArray) return false;
    if (field.is_string()) ++at;
    if (at != field.value.data()) return false;
    at = field.value.data() + field.value.size() + (field.is_string() ? 1 : 0);
  }
  return true;
}

}  // namespace

std::int64_t thread_number(std::int64_t pid, std::string_view text) {
  return pid + 1000 + static_cast<std::int64_t>(hash_text(text, 0) % 1'000'000);
}

std::int64_t aside_number(std::int64_t pid, std::int64_t tid, std::string_view mark) {
  std::string text(mark);
  text += '/';
  append_number(text, tid);
  return thread_number(pid, text);
}

const JsonField* thread_text(const Event& event, const InFile& file) {
  if (!file.merged || (event.has & kHasTid) == 0) return nullptr;
  std::size_t count = event.args.size();
  if (!mark_of(event, file).empty()) --count;
  if (count < 2 || !is_name(event.args[count - 1].key, "tid") ||
      !is_name(event.args[count - 2].key, "pid") || !event.args[count - 1].is_string()) {
    return nullptr;
  }
  const JsonField& field = event.args[count - 1];
  return thread_number(event.pid, field.value) == event.tid ? &field : nullptr;
}

const Treatment& Rewriter::treatment(const Event& event, const InFile& file) {
  const std::string_view host = host_text(event);
  const std::string_view mark = mark_of(event, file);
  if (last_ != nullptr && last_file_ == file.index && (event.has & kHasPid) != 0 &&
      last_pid_ == event.pid && same_text(last_host_, host) && same_text(last_mark_, mark)) {
    return *last_;
  }
  unit_key(event, file, key_);
  const Treatment* found = plan_.find(key_);
  if (found == nullptr) throw std::runtime_error(file.path + ": changed while it was read");
  last_ = (event.has & kHasPid) != 0 ? found : nullptr;
  last_file_ = file.index;
  last_pid_ = event.pid;
  last_host_ = host;
  last_mark_ = mark;
  return *found;
}

void Rewriter::times(const Event& event, const Treatment& treatment, std::string& out) {
  if ((event.has & kHasTs) == 0) {
    if ((event.has & kHasDur) != 0) {
      out += ",\"dur\":";
      append_number(out, floor_us(event.dur));
    }
    return;
  }
  const std::int64_t start = floor_us(event.ts);
  out += ",\"ts\":";
  append_number(out, start + treatment.was_shifted_us - treatment.process->shift_us);
  if ((event.has & kHasDur) == 0) return;
  // Spans that nest stay nested: both ends are rounded down.
  std::int64_t end = 0;
  const bool fits = event.dur >= 0 && !__builtin_add_overflow(event.ts, event.dur, &end);
  out += ",\"dur\":";
  append_number(out, fits ? floor_us(end) - start : floor_us(event.dur));
}

void Rewriter::arguments(const Event& event, const InFile& file, const Treatment& treatment,
                         std::string& out) {
  const std::size_t own = own_arguments(event, file, treatment);
  out += '{';
  // Times are in microseconds from here on.
  const bool metric = event.is_metadata() && is(event.name.raw, "CM") && has_metric(event);
  if (own != 0) {
    if (!metric && tight(event, own)) {
      const JsonField& last = event.args[own - 1];
      const char* end = last.value.data() + last.value.size() + (last.is_string() ? 1 : 0);
      const char* begin = event.args_text.data() + 1;
      out.append(begin, static_cast<std::size_t>(end - begin));
    } else {
      for (std::size_t i = 0; i < own; ++i) {
        if (i != 0) out += ',';
        out += '"';
        out += event.args[i].key;
        out += "\":";
        if (metric && is(event.args[i].key, "value")) {
          out += "\"US\"";
        } else {
          append_value(out, event.args[i]);
        }
      }
    }
  }
  // Arguments that are no object.
  const JsonField* odd = find_extra(event, "args");
  if (odd != nullptr && odd->kind != JsonKind::kNull) {
    name_argument(out, event, own, "args");
    append_value(out, *odd);
  }
  if (event.phase == kCounter) {  // each argument is a series of it
    out += '}';
    return;
  }
  // What whole microseconds cannot say.
  if ((event.has & kHasTs) != 0 && (event.ts % 1000 != 0 || event.dur % 1000 != 0)) {
    name_argument(out, event, own, "ts_ns");
    append_number(out, event.ts);
    if ((event.has & kHasDur) != 0) {
      name_argument(out, event, own, "dur_ns");
      append_number(out, event.dur);
    }
  }
  const bool connected = connects(event.phase) && !treatment.again;
  const JsonField* text_id = connected ? find_extra(event, "id") : nullptr;
  if (connected && ((event.has & kHasId) != 0 || text_id != nullptr)) {
    name_argument(out, event, own, "id");
    if (text_id != nullptr) {
      append_value(out, *text_id);
    } else {
      append_number(out, event.id);
    }
  }
  const bool renamed = !treatment.again && !treatment.fragment->keyed;
  const JsonField* bound = renamed ? find_extra(event, kBound) : nullptr;
  if (bound != nullptr) {
    name_argument(out, event, own, kBound);
    append_value(out, *bound);
  }
  const MergedProcess& process = *treatment.process;
  const JsonField* thread = text_thread(event, file);
  if (process.renumbered() || thread != nullptr || treatment.fragment->aside) {
    name_argument(out, event, own, "pid");
    if (process.real.is_number) {
      append_number(out, process.real.value);
    } else {
      out += '"' + process.real.text + '"';
    }
    if (thread != nullptr) {
      name_argument(out, event, own, "tid");
      append_value(out, *thread);
    } else if ((event.has & kHasTid) != 0) {
      name_argument(out, event, own, "tid");
      append_number(out, real_thread(event, file, treatment));
    }
  }
  if (!treatment.fragment->keyed) {
    name_argument(out, event, own, kMark);
    out += '"';
    out += treatment.fragment->source;
    out += '"';
  }
  out += '}';
}

void Rewriter::write(const Event& event, const InFile& file, const Treatment& treatment,
                     std::string& out) {
  const std::size_t begin = out.size();
  const MergedProcess& process = *treatment.process;
  out += '{';
  if ((event.has & kHasId) != 0 || (connects(event.phase) && find_extra(event, "id") != nullptr)) {
    out += "\"id\":";
    if (connects(event.phase) && !treatment.again) {
      // Two processes may use the same number for different things. Within a source it connects
      // processes: a kernel on the device with its launch.
      const JsonField* text = find_extra(event, "id");
      const std::uint64_t seed = seed_of(treatment);
      append_number(
          out,
          apart(text != nullptr ? hash_text(text->value, seed)
                                : hash_text({reinterpret_cast<const char*>(&event.id), 8}, seed)));
    } else {
      append_number(out, event.id);
    }
    out += ',';
  }
  if ((event.has & kHasName) != 0) {
    out += "\"name\":\"";
    out += event.name.raw;
    out += "\",";
  }
  if (!event.category.raw.empty() || event.is_event()) {
    out += "\"cat\":\"";
    out += event.category.raw;
    out += "\",";
  }
  out += "\"pid\":";
  append_number(out, process.pid);
  if (const JsonField* thread = text_thread(event, file); thread != nullptr) {
    out += ",\"tid\":";
    append_number(out, thread_number(process.pid, thread->value));
  } else if ((event.has & kHasTid) != 0) {
    // Threads move with their process, so that the first one still has its number.
    const std::int64_t tid = real_thread(event, file, treatment);
    out += ",\"tid\":";
    append_number(out, treatment.fragment->aside && event.phase != kCounter
                           ? aside_number(process.pid, tid, treatment.fragment->source)
                           : tid + (process.pid - process.real.value));
  }
  times(event, treatment, out);
  if (event.phase != kNoPhase) {
    out += ",\"ph\":\"";
    out += event.phase;
    out += '"';
  }
  out += ",\"args\":";
  arguments(event, file, treatment, out);
  for (const JsonField& field : event.extra) {
    if (is(field.key, "pid") || is(field.key, "tid")) continue;
    if (is(field.key, "id") && connects(event.phase)) continue;
    if (is(field.key, "args")) continue;
    if (event.phase == kCounter && field.key == kMark && treatment.again) continue;
    out += ",\"";
    out += field.key;
    out += "\":";
    if (field.key == kBound && !treatment.again && !treatment.fragment->keyed) {
      append_number(out, apart(hash_text(field.value, seed_of(treatment))));
    } else {
      append_value(out, field);
    }
  }
  if (event.phase == kCounter && !treatment.fragment->keyed) {
    out += ",\"trace\":\"" + treatment.fragment->source + '"';
  }
  out += '}';
  if (!event.valid_utf8) {
    scratch_.assign(out, begin);
    out.resize(begin);
    append_visible(out, scratch_);
  }
  out += '\n';
}

}  // namespace dft::reader
