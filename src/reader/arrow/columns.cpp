// Fills batches of the table `events` from parsed records. Runs on worker threads, one BatchMaker
// each; this is the hot loop of every table read.
#include "reader/arrow/columns.hpp"

#include <algorithm>
#include <array>

#include "reader/input/file.hpp"

namespace dft::reader {
namespace {

constexpr std::array<ColumnInfo, kColumns> kInfo{{
#define DFT_COLUMN(constant, name, type, source, keys, finish) \
  {name, ColumnType::type, ColumnSource::source, keys},
#include "reader/arrow/columns.def"
#undef DFT_COLUMN
}};

// The keys of arguments that have a column, by length.
struct ArgumentKey {
  std::string_view text;
  std::uint64_t word = 0;  // short_word() of the text
  Column column{};
};
constexpr std::size_t kLongestKey = 15;
struct ArgumentKeys {
  std::array<ArgumentKey, 32> keys{};
  std::array<std::uint8_t, kLongestKey + 2> begin{};  // of the keys of each length
};

constexpr ArgumentKeys sort_keys() {
  ArgumentKeys out;
  std::size_t count = 0;
  for (std::size_t length = 0; length <= kLongestKey; ++length) {
    out.begin[length] = static_cast<std::uint8_t>(count);
    for (std::size_t i = 0; i < kColumns; ++i) {
      for (std::string_view rest = kInfo[i].keys; !rest.empty();) {
        const std::string_view key = rest.substr(0, rest.find(' '));
        rest.remove_prefix(std::min(rest.size(), key.size() + 1));
        if (key.size() != length) continue;
        out.keys[count++] = {key, short_word(key.data(), key.size()), static_cast<Column>(i)};
      }
    }
  }
  out.begin[kLongestKey + 1] = static_cast<std::uint8_t>(count);
  return out;
}
constexpr ArgumentKeys kKeys = sort_keys();

// The column of an argument; kColumns if it has none.
std::size_t argument_column(std::string_view key) {
  if (key.size() > kLongestKey) return kColumns;
  const std::size_t end = kKeys.begin[key.size() + 1];
  std::size_t i = kKeys.begin[key.size()];
  if (i == end) return kColumns;
  const std::uint64_t word = short_word(key.data(), key.size());
  for (; i < end; ++i) {
    // Up to eight bytes, the word is all of the text.
    if (kKeys.keys[i].word == word && (key.size() <= 8 || kKeys.keys[i].text == key)) {
      return static_cast<std::size_t>(kKeys.keys[i].column);
    }
  }
  return kColumns;
}

std::int64_t floor_div(std::int64_t value, std::int64_t by) {
  const std::int64_t whole = value / by;
  return whole - (value % by < 0 ? 1 : 0);
}

void set_valid(ColumnData& data, std::int64_t row, bool there) {
  const auto at = static_cast<std::size_t>(row) / 64;
  if (data.valid.size() <= at) data.valid.resize(at + 1);
  if (there) {
    data.valid[at] |= std::uint64_t{1} << (row % 64);
  } else {
    ++data.nulls;
  }
}

void append_value(std::string& out, const JsonField& field) {
  if (!field.is_string()) {
    out += field.value;
    return;
  }
  out += '"';
  out += field.value;
  out += '"';
}

}  // namespace

const ColumnInfo& column_info(Column column) { return kInfo[static_cast<std::size_t>(column)]; }

int find_column(std::string_view name) {
  for (std::size_t i = 0; i < kColumns; ++i) {
    if (kInfo[i].name == name) return static_cast<int>(i);
  }
  return -1;
}

BatchMaker::BatchMaker(const TableOptions& options) : options_(options) {
  if (options_.columns.empty()) {
    for (std::size_t i = 0; i < kColumns; ++i) options_.columns.push_back(static_cast<Column>(i));
  }
  std::fill(std::begin(slots_), std::end(slots_), -1);
  for (std::size_t i = 0; i < options_.columns.size(); ++i) {
    slots_[static_cast<std::size_t>(options_.columns[i])] = static_cast<int>(i);
  }
  for (std::size_t i = 0; i < kColumns; ++i) {
    if (slots_[i] < 0 || kInfo[i].source != ColumnSource::kArgument) continue;
    argument_columns_.push_back(static_cast<Column>(i));
  }
}

void BatchMaker::begin(std::shared_ptr<const InFile> file) {
  batch_ = {};
  batch_.file = std::move(file);
  batch_.columns = options_.columns;
  batch_.coded = options_.coded;
  batch_.data.resize(options_.columns.size());
  for (ColumnData& data : batch_.data) data.ends.assign(1, 0);
  names_.clear();
  categories_.clear();
  phases_.clear();
  paths_.clear();
  processes_.clear();
  last_process_ = ~0U;
}

std::uint32_t BatchMaker::process_of(const Event& event, const JsonField* host) {
  const std::string_view text = host == nullptr ? std::string_view() : host->value;
  if (last_process_ < batch_.processes.size()) {
    const ProcessKey& last = batch_.processes[last_process_];
    if (last.pid == event.pid && same_text(last.host, text)) return last_process_;
  }
  bool fresh = false;
  last_process_ = processes_.find(text, {}, static_cast<std::uint64_t>(event.pid), fresh);
  if (fresh) {
    std::string shown;
    if (host != nullptr) {
      shown = plain_text(text, host->kind == JsonKind::kEscaped, event.valid_utf8, scratch_);
    }
    batch_.processes.push_back({event.pid, std::string(text), std::move(shown),
                                host != nullptr && is(host->key, "hostname")});
  }
  return last_process_;
}

void BatchMaker::note_facts(const Event& event, std::uint32_t process) {
  const std::string_view name = event.name.raw;
  const bool rank = is(name, "PR");
  if (!is(name, "FH") && !is(name, "SH") && !is(name, "HH") && !rank) return;
  const JsonField* key = nullptr;
  const JsonField* value = nullptr;
  for (const JsonField& field : event.args) {
    if (is(field.key, "name")) key = &field;
    if (is(field.key, "value")) value = &field;
  }
  if (key == nullptr || value == nullptr) return;
  if (rank && key->value != "rank") return;
  const BatchFact::About about = rank           ? BatchFact::About::kRank
                                 : name == "FH" ? BatchFact::About::kFile
                                 : name == "HH" ? BatchFact::About::kHost
                                                : BatchFact::About::kString;
  const auto plain = [&](const JsonField& field) {
    return std::string(
        plain_text(field.value, field.kind == JsonKind::kEscaped, event.valid_utf8, scratch_));
  };
  batch_.facts.push_back({about, process, plain(*value), plain(*key)});
}

void BatchMaker::number(Column column, bool there, std::int64_t value) {
  const int at = slot(column);
  if (at < 0) return;
  ColumnData& data = batch_.data[static_cast<std::size_t>(at)];
  set_valid(data, batch_.rows, there);
  if (column_info(column).type == ColumnType::kInt32) {
    data.int32s.push_back(there ? static_cast<std::int32_t>(value) : 0);
  } else {
    data.int64s.push_back(there ? value : 0);
  }
}

std::int32_t BatchMaker::word_index(Column column, TextMap<NoValue>& table, std::string_view raw,
                                    bool escaped, bool valid_utf8) {
  bool fresh = false;
  const std::uint32_t index = table.find(raw, {}, 0, fresh);
  if (fresh) {
    ColumnData& data = batch_.data[static_cast<std::size_t>(slot(column))];
    data.words += plain_text(raw, escaped, valid_utf8, scratch_);
    data.ends.push_back(static_cast<std::int32_t>(data.words.size()));
  }
  return static_cast<std::int32_t>(index);
}

void BatchMaker::word(Column column, const JsonText& text, bool valid_utf8) {
  const int at = slot(column);
  if (at < 0) return;
  TextMap<NoValue>& table = column == Column::kName ? names_ : categories_;
  const std::int32_t index = word_index(column, table, text.raw, text.escaped, valid_utf8);
  ColumnData& data = batch_.data[static_cast<std::size_t>(at)];
  set_valid(data, batch_.rows, true);
  data.int32s.push_back(index);
}

// The arguments that are in no column, and members of the record that have no place.
void BatchMaker::rest(const Event& event, std::uint64_t taken) {
  const auto text_column = [&](Column column, auto&& fill) {
    const int at = slot(column);
    if (at < 0) return;
    ColumnData& data = batch_.data[static_cast<std::size_t>(at)];
    if (data.int32s.empty()) data.int32s.push_back(0);
    const std::size_t before = data.text.size();
    fill(data.text);
    const auto rewrite = [&](void (*append)(std::string&, std::string_view)) {
      scratch_.clear();
      append(scratch_, std::string_view(data.text).substr(before));
      data.text.replace(before, std::string::npos, scratch_);
    };
    if (!event.valid_utf8) rewrite(append_mended);
    if (data.text.find("\\u", before) != std::string::npos) rewrite(append_strict_json);
    set_valid(data, batch_.rows, data.text.size() > before);
    data.int32s.push_back(static_cast<std::int32_t>(data.text.size()));
  };
  const auto object = [](std::string& out, auto&& fields, auto&& wanted) {
    const std::size_t before = out.size();
    std::size_t index = 0;
    for (const JsonField& field : fields) {
      if (!wanted(index++)) continue;
      out += out.size() == before ? "{\"" : ",\"";
      out += field.key;
      out += "\":";
      append_value(out, field);
    }
    if (out.size() > before) out += '}';
  };
  text_column(Column::kArgs, [&](std::string& out) {
    object(out, event.args, [&](std::size_t i) { return i >= 64 || ((taken >> i) & 1) == 0; });
  });
  text_column(Column::kExtra, [&](std::string& out) {
    object(out, event.extra, [](std::size_t) { return true; });
  });
}

std::int32_t BatchMaker::path_of(const Event& event, const JsonField& path) {
  const bool hashed = !is(path.key, "fname");
  bool fresh = false;
  const std::uint32_t index = paths_.find(path.value, {}, hashed ? 1 : 0, fresh);
  if (fresh) {
    batch_.paths.emplace_back(
        plain_text(path.value, path.kind == JsonKind::kEscaped, event.valid_utf8, scratch_),
        hashed);
  }
  return static_cast<std::int32_t>(index);
}

void BatchMaker::path_column(Column column, const JsonField* path, std::int32_t index) {
  const int at = slot(column);
  if (at < 0) return;
  ColumnData& data = batch_.data[static_cast<std::size_t>(at)];
  set_valid(data, batch_.rows, path != nullptr);
  data.int32s.push_back(index);
}

// A copy is a transfer of two files, and only the first one's place has a column.
void BatchMaker::note_transfer(const Event& event, const Call& call, std::int32_t path,
                               std::int32_t other, const MovedBytes& moved) {
  const auto bytes = static_cast<std::int64_t>(std::max(moved.read, moved.written));
  if (moved.known && bytes == 0) return;
  std::int64_t offset = kUnknown;
  std::int64_t off_in = kUnknown;
  std::int64_t off_out = kUnknown;
  for (const JsonField& field : event.args) {
    if (is(field.key, "offset")) integer_of(field, offset);
    if (is(field.key, "off_in")) integer_of(field, off_in);
    if (is(field.key, "off_out")) integer_of(field, off_out);
  }
  FileCall found{};
  found.row = batch_.rows;
  found.ts = event.ts;
  found.tid = event.tid;
  found.role = call.role;
  found.bytes = moved.known ? bytes : kUnknown;
  const auto add = [&](std::int32_t file, std::int64_t at, bool second) {
    found.path = file;
    found.offset = std::max(at, kUnknown);
    found.second = second;
    if (file >= 0) batch_.calls.push_back(found);
  };
  if (call.role != Role::kCopy) {
    add(path, offset, false);
    return;
  }
  add(path, call.second_is_written ? off_in : off_out, false);
  add(other, call.second_is_written ? off_out : off_in, true);
}

void BatchMaker::note_call(const Event& event, Role role, std::int32_t path) {
  constexpr std::int64_t kAppend = 02000;  // O_APPEND
  FileCall call{};
  call.row = batch_.rows;
  call.ts = event.ts;
  call.tid = event.tid;
  call.path = path;
  call.role = role;
  std::int64_t ret = 0;
  std::int64_t offset = kUnknown;
  std::int64_t whence = 0;
  std::int64_t flags = 0;
  for (const JsonField& field : event.args) {
    if (is(field.key, "ret")) integer_of(field, ret);
    if (is(field.key, "errno")) return;  // it failed
    if (is(field.key, "offset")) integer_of(field, offset);
    if (is(field.key, "whence")) integer_of(field, whence);
    if (is(field.key, "flags")) integer_of(field, flags);
    if (is(field.key, "mode") && field.value.substr(0, 1) == "a") flags = kAppend;
  }
  if (ret < 0) return;
  if (role == Role::kOpen) {
    call.offset = (flags & kAppend) != 0 ? kUnknown : 0;
  } else if (role == Role::kSeek) {
    // lseek says where it came to; the others only whether they did.
    const std::string_view name = event.name.raw;
    const bool tells = name.substr(0, 5) == "lseek";
    call.relative = !tells && whence == 1;
    call.offset = tells                                         ? ret
                  : name == "rewind"                            ? 0
                  : name.substr(0, 5) == "fseek" && whence <= 1 ? offset
                                                                : kUnknown;
  }
  batch_.calls.push_back(call);
}

bool BatchMaker::takes_brief() const {
  return std::all_of(options_.columns.begin(), options_.columns.end(), [](Column column) {
    const ColumnSource source = column_info(column).source;
    return source == ColumnSource::kRecord || source == ColumnSource::kProcess;
  });
}

void BatchMaker::add(const Event& event) {
  const JsonField* by_column[kColumns] = {};
  std::int64_t values[kColumns];
  std::uint64_t taken = 0;
  const bool event_args = !event.is_metadata();
  for (std::size_t i = 0; i < event.args.size(); ++i) {
    const JsonField& field = event.args[i];
    const std::size_t c = argument_column(field.key);
    if (c == kColumns) continue;
    const ColumnType type = kInfo[c].type;
    bool fits = type == ColumnType::kDictionary ? field.is_name() : integer_of(field, values[c]);
    if (type == ColumnType::kInt32 && fits) {
      fits = values[c] >= INT32_MIN && values[c] <= INT32_MAX;
    }
    if (!fits) continue;
    // Where both are there, `hostname` is an argument of the program's own.
    if (c == static_cast<std::size_t>(Column::kHost) && by_column[c] != nullptr &&
        is(by_column[c]->key, "hhash")) {
      continue;
    }
    // Of a key that is there twice the last one counts; all are kept.
    if (by_column[c] == nullptr && i < 64) taken |= std::uint64_t{1} << i;
    by_column[c] = &field;
  }
  const std::uint32_t process = process_of(event, host_of(event));
  if (event.is_own()) note_facts(event, process);
  if (options_.rows == RowFilter::kEvents && !event.is_event()) return;

  number(Column::kId, (event.has & kHasId) != 0, event.id);
  word(Column::kName, event.name, event.valid_utf8);
  word(Column::kCat, event.category, event.valid_utf8);
  if (const int at = slot(Column::kPh); at >= 0) {
    const bool there = event.phase != kNoPhase;
    std::int32_t index = 0;
    if (there) index = word_index(Column::kPh, phases_, {&event.phase, 1}, false, true);
    ColumnData& data = batch_.data[static_cast<std::size_t>(at)];
    set_valid(data, batch_.rows, there);
    data.int32s.push_back(index);
  }
  number(Column::kPid, (event.has & kHasPid) != 0, event.pid);
  number(Column::kTid, (event.has & kHasTid) != 0, event.tid);
  std::int64_t ts = event.ts;
  std::int64_t dur = event.dur;
  if (!options_.nanoseconds) {
    std::int64_t end = 0;
    ts = floor_div(event.ts, 1000);
    // Both ends are cut off, so that spans that nest stay nested.
    dur = __builtin_add_overflow(event.ts, event.dur, &end) ? floor_div(event.dur, 1000)
                                                            : floor_div(end, 1000) - ts;
  }
  number(Column::kTs, (event.has & kHasTs) != 0, ts);
  number(Column::kDur, (event.has & kHasDur) != 0, dur);
  const auto argument = [&](Column column) {
    const auto c = static_cast<std::size_t>(column);
    const bool there = by_column[c] != nullptr && !(column == Column::kParent && values[c] == -1);
    number(column, there, there ? values[c] : 0);
  };
  for (const Column column : argument_columns_) argument(column);
  const JsonField* path = by_column[static_cast<std::size_t>(Column::kFname)];
  const JsonField* other = by_column[static_cast<std::size_t>(Column::kOther)];
  const bool places = slot(Column::kPosition) >= 0 || slot(Column::kAccess) >= 0;
  const auto index_of = [&](const JsonField* file, Column column) {
    return file != nullptr && (places || slot(column) >= 0) ? path_of(event, *file) : -1;
  };
  const std::int32_t path_index = index_of(path, Column::kFname);
  const std::int32_t other_index = index_of(other, Column::kOther);
  if (places || slot(Column::kBytes) >= 0 || slot(Column::kReadBytes) >= 0 ||
      slot(Column::kWriteBytes) >= 0 || slot(Column::kMappedBytes) >= 0) {
    bool fresh = false;
    Call& call = calls_.row(calls_.find(event.name.raw, event.category.raw, 0, fresh));
    if (fresh) call = call_of(event.category.raw, event.name.raw);
    const MovedBytes moved = moved_bytes(call, event.args);
    const auto amount = [&](Column column, bool there, std::uint64_t value) {
      constexpr std::uint64_t kMost = INT64_MAX;
      number(column, there && moved.known, static_cast<std::int64_t>(std::min(value, kMost)));
    };
    // What a copy reads is what it writes.
    amount(Column::kBytes, moves(call.role),
           call.role == Role::kCopy ? moved.read : moved.read + moved.written);
    amount(Column::kReadBytes, reads(call.role), moved.read);
    amount(Column::kWriteBytes, writes(call.role), moved.written);
    const bool maps = call.role == Role::kMap;
    amount(Column::kMappedBytes, maps, maps ? mapped_bytes(event.args) : 0);
    if (places && path_index >= 0) {
      if (moves(call.role)) {
        note_transfer(event, call, path_index, other_index, moved);
      } else if (call.role >= Role::kOpen && call.role <= Role::kSeek) {
        note_call(event, call.role, path_index);
      }
    }
  }
  path_column(Column::kFname, path, std::max(path_index, 0));
  path_column(Column::kOther, other, std::max(other_index, 0));
  if (slot(Column::kSite) >= 0) {
    const JsonField* site = by_column[static_cast<std::size_t>(Column::kSite)];
    path_column(Column::kSite, site, site != nullptr ? path_of(event, *site) : 0);
  }
  batch_.process_of.push_back(static_cast<std::int32_t>(process));
  if (slot(Column::kArgs) >= 0 || slot(Column::kExtra) >= 0) rest(event, event_args ? taken : 0);
  ++batch_.rows;
}

EventBatch BatchMaker::take() { return std::move(batch_); }

}  // namespace dft::reader
