#include "reader/arrow/columns.hpp"

#include <algorithm>
#include <array>

#include "reader/input/file.hpp"

namespace dft::reader {
namespace {

constexpr std::array<ColumnInfo, kColumns> kInfo{{
    {"id", ColType::kInt64},           {"name", ColType::kDictionary},
    {"cat", ColType::kDictionary},     {"ph", ColType::kDictionary},
    {"pid", ColType::kInt64},          {"tid", ColType::kInt64},
    {"ts", ColType::kInt64},           {"dur", ColType::kInt64},
    {"level", ColType::kInt32},        {"parent", ColType::kInt64},
    {"host", ColType::kDictionary},    {"process", ColType::kInt32},
    {"rank", ColType::kInt32},         {"fname", ColType::kDictionary},
    {"other", ColType::kDictionary},   {"trace", ColType::kDictionary},
    {"ret", ColType::kInt64},          {"errno", ColType::kInt64},
    {"count", ColType::kInt64},        {"offset", ColType::kInt64},
    {"size", ColType::kInt64},         {"epoch", ColType::kInt64},
    {"step", ColType::kInt64},         {"bytes", ColType::kInt64},
    {"read_bytes", ColType::kInt64},   {"write_bytes", ColType::kInt64},
    {"mapped_bytes", ColType::kInt64}, {"position", ColType::kInt64},
    {"access", ColType::kDictionary},  {"args", ColType::kText},
    {"extra", ColType::kText},
}};

// Arguments that have a column of the same name.
int argument_column(std::string_view key) {
  switch (key.size()) {
    case 3:
      if (is(key, "ret")) return static_cast<int>(Col::kRet);
      break;
    case 4:
      if (is(key, "size")) return static_cast<int>(Col::kSize);
      if (is(key, "step")) return static_cast<int>(Col::kStep);
      break;
    case 5:
      if (is(key, "count")) return static_cast<int>(Col::kCount);
      if (is(key, "epoch")) return static_cast<int>(Col::kEpoch);
      if (is(key, "errno")) return static_cast<int>(Col::kErrno);
      if (is(key, "level")) return static_cast<int>(Col::kLevel);
      if (is(key, "p_idx")) return static_cast<int>(Col::kParent);
      if (is(key, "hhash")) return static_cast<int>(Col::kHost);
      if (is(key, "fhash") || is(key, "fname")) return static_cast<int>(Col::kFname);
      break;
    case 6:
      if (is(key, "offset")) return static_cast<int>(Col::kOffset);
      break;
    case 8:
      if (is(key, "hostname")) return static_cast<int>(Col::kHost);
      break;
    case 10:
      if (is(key, "in_fd_hash")) return static_cast<int>(Col::kOther);
      break;
    case 11:
      if (is(key, "fd_out_hash")) return static_cast<int>(Col::kOther);
      break;
    default:
      break;
  }
  return -1;
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

void append_value(std::string& out, const Field& field) {
  if (!field.is_string()) {
    out += field.value;
    return;
  }
  out += '"';
  out += field.value;
  out += '"';
}

}  // namespace

const ColumnInfo& column_info(Col column) { return kInfo[static_cast<std::size_t>(column)]; }

int find_column(std::string_view name) {
  for (std::size_t i = 0; i < kColumns; ++i) {
    if (kInfo[i].name == name) return static_cast<int>(i);
  }
  return -1;
}

BatchMaker::BatchMaker(const TableOptions& options) : options_(options) {
  if (options_.columns.empty()) {
    for (std::size_t i = 0; i < kColumns; ++i) options_.columns.push_back(static_cast<Col>(i));
  }
  std::fill(std::begin(slots_), std::end(slots_), -1);
  for (std::size_t i = 0; i < options_.columns.size(); ++i) {
    slots_[static_cast<std::size_t>(options_.columns[i])] = static_cast<int>(i);
  }
}

void BatchMaker::begin(std::shared_ptr<const File> file) {
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

std::uint32_t BatchMaker::process_of(const Event& event, const Field* host) {
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
      shown = plain_text(text, host->kind == Kind::kEscaped, event.valid_utf8, scratch_);
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
  const Field* key = nullptr;
  const Field* value = nullptr;
  for (const Field& field : event.args) {
    if (is(field.key, "name")) key = &field;
    if (is(field.key, "value")) value = &field;
  }
  if (key == nullptr || value == nullptr) return;
  if (rank && key->value != "rank") return;
  const Fact::What what = rank           ? Fact::What::kRank
                          : name == "FH" ? Fact::What::kFile
                          : name == "HH" ? Fact::What::kHost
                                         : Fact::What::kString;
  const auto plain = [&](const Field& field) {
    return std::string(
        plain_text(field.value, field.kind == Kind::kEscaped, event.valid_utf8, scratch_));
  };
  batch_.facts.push_back({what, process, plain(*value), plain(*key)});
}

void BatchMaker::number(Col column, bool there, std::int64_t value) {
  const int at = slot(column);
  if (at < 0) return;
  ColumnData& data = batch_.data[static_cast<std::size_t>(at)];
  set_valid(data, batch_.rows, there);
  if (column_info(column).type == ColType::kInt32) {
    data.ints.push_back(there ? static_cast<std::int32_t>(value) : 0);
  } else {
    data.longs.push_back(there ? value : 0);
  }
}

std::int32_t BatchMaker::word_index(Col column, TextTable<None>& table, std::string_view raw,
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

void BatchMaker::word(Col column, const Text& text, bool valid_utf8) {
  const int at = slot(column);
  if (at < 0) return;
  TextTable<None>& table = column == Col::kName ? names_ : categories_;
  const std::int32_t index = word_index(column, table, text.raw, text.escaped, valid_utf8);
  ColumnData& data = batch_.data[static_cast<std::size_t>(at)];
  set_valid(data, batch_.rows, true);
  data.ints.push_back(index);
}

// The arguments that are in no column, and members of the record that have no place.
void BatchMaker::rest(const Event& event, std::uint64_t taken) {
  const auto text_column = [&](Col column, auto&& fill) {
    const int at = slot(column);
    if (at < 0) return;
    ColumnData& data = batch_.data[static_cast<std::size_t>(at)];
    if (data.ints.empty()) data.ints.push_back(0);
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
    data.ints.push_back(static_cast<std::int32_t>(data.text.size()));
  };
  const auto object = [](std::string& out, auto&& fields, auto&& wanted) {
    const std::size_t before = out.size();
    std::size_t index = 0;
    for (const Field& field : fields) {
      if (!wanted(index++)) continue;
      out += out.size() == before ? "{\"" : ",\"";
      out += field.key;
      out += "\":";
      append_value(out, field);
    }
    if (out.size() > before) out += '}';
  };
  text_column(Col::kArgs, [&](std::string& out) {
    object(out, event.args, [&](std::size_t i) { return i >= 64 || ((taken >> i) & 1) == 0; });
  });
  text_column(Col::kExtra, [&](std::string& out) {
    object(out, event.extra, [](std::size_t) { return true; });
  });
}

std::int32_t BatchMaker::path_of(const Event& event, const Field& path) {
  const bool hashed = !is(path.key, "fname");
  bool fresh = false;
  const std::uint32_t index = paths_.find(path.value, {}, hashed ? 1 : 0, fresh);
  if (fresh) {
    batch_.paths.emplace_back(
        plain_text(path.value, path.kind == Kind::kEscaped, event.valid_utf8, scratch_), hashed);
  }
  return static_cast<std::int32_t>(index);
}

void BatchMaker::path_column(Col column, const Field* path, std::int32_t index) {
  const int at = slot(column);
  if (at < 0) return;
  ColumnData& data = batch_.data[static_cast<std::size_t>(at)];
  set_valid(data, batch_.rows, path != nullptr);
  data.ints.push_back(index);
}

// A copy is a transfer of two files, and only the first one's place has a column.
void BatchMaker::note_transfer(const Event& event, const Call& call, std::int32_t path,
                               std::int32_t other, const Moved& moved) {
  const auto bytes = static_cast<std::int64_t>(std::max(moved.read, moved.written));
  if (moved.known && bytes == 0) return;
  std::int64_t offset = kUnknown;
  std::int64_t off_in = kUnknown;
  std::int64_t off_out = kUnknown;
  for (const Field& field : event.args) {
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
  for (const Field& field : event.args) {
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
  constexpr Col kWithout[] = {Col::kId,   Col::kName,    Col::kCat,  Col::kPh,
                              Col::kPid,  Col::kTid,     Col::kTs,   Col::kDur,
                              Col::kHost, Col::kProcess, Col::kRank, Col::kTrace};
  const auto without = std::count_if(std::begin(kWithout), std::end(kWithout),
                                     [this](Col column) { return slot(column) >= 0; });
  const auto all =
      std::count_if(std::begin(slots_), std::end(slots_), [](int at) { return at >= 0; });
  return without == all;
}

void BatchMaker::add(const Event& event) {
  const Field* by_column[kColumns] = {};
  std::int64_t values[kColumns];
  std::uint64_t taken = 0;
  const bool event_args = !event.is_metadata();
  for (std::size_t i = 0; i < event.args.size(); ++i) {
    const Field& field = event.args[i];
    const int column = argument_column(field.key);
    if (column < 0) continue;
    const auto c = static_cast<std::size_t>(column);
    const bool text = column == static_cast<int>(Col::kHost) ||
                      column == static_cast<int>(Col::kFname) ||
                      column == static_cast<int>(Col::kOther);
    bool fits = text ? field.is_name() : integer_of(field, values[c]);
    if (column == static_cast<int>(Col::kLevel) && fits) {
      fits = values[c] >= INT32_MIN && values[c] <= INT32_MAX;
    }
    if (!fits) continue;
    // Where both are there, `hostname` is an argument of the program's own.
    if (column == static_cast<int>(Col::kHost) && by_column[c] != nullptr &&
        is(by_column[c]->key, "hhash")) {
      continue;
    }
    // Of a key that is there twice the last one counts; all are kept.
    if (by_column[c] == nullptr && i < 64) taken |= std::uint64_t{1} << i;
    by_column[c] = &field;
  }
  const std::uint32_t process = process_of(event, host_of(event));
  if (event.is_own()) note_facts(event, process);
  if (options_.rows == Rows::kEvents && !event.is_event()) return;

  number(Col::kId, (event.has & kHasId) != 0, event.id);
  word(Col::kName, event.name, event.valid_utf8);
  word(Col::kCat, event.category, event.valid_utf8);
  if (const int at = slot(Col::kPh); at >= 0) {
    const bool there = event.phase != kNoPhase;
    std::int32_t index = 0;
    if (there) index = word_index(Col::kPh, phases_, {&event.phase, 1}, false, true);
    ColumnData& data = batch_.data[static_cast<std::size_t>(at)];
    set_valid(data, batch_.rows, there);
    data.ints.push_back(index);
  }
  number(Col::kPid, (event.has & kHasPid) != 0, event.pid);
  number(Col::kTid, (event.has & kHasTid) != 0, event.tid);
  std::int64_t ts = event.ts;
  std::int64_t dur = event.dur;
  if (!options_.nanoseconds) {
    std::int64_t end = 0;
    ts = floor_div(event.ts, 1000);
    // Both ends are cut off, so that spans that nest stay nested.
    dur = __builtin_add_overflow(event.ts, event.dur, &end) ? floor_div(event.dur, 1000)
                                                            : floor_div(end, 1000) - ts;
  }
  number(Col::kTs, (event.has & kHasTs) != 0, ts);
  number(Col::kDur, (event.has & kHasDur) != 0, dur);
  const auto argument = [&](Col column) {
    const auto c = static_cast<std::size_t>(column);
    const bool there = by_column[c] != nullptr && !(column == Col::kParent && values[c] == -1);
    number(column, there, there ? values[c] : 0);
  };
  for (const Col column : {Col::kLevel, Col::kParent, Col::kRet, Col::kErrno, Col::kCount,
                           Col::kOffset, Col::kSize, Col::kEpoch, Col::kStep}) {
    if (slot(column) >= 0) argument(column);
  }
  const Field* path = by_column[static_cast<std::size_t>(Col::kFname)];
  const Field* other = by_column[static_cast<std::size_t>(Col::kOther)];
  const bool places = slot(Col::kPosition) >= 0 || slot(Col::kAccess) >= 0;
  const auto index_of = [&](const Field* file, Col column) {
    return file != nullptr && (places || slot(column) >= 0) ? path_of(event, *file) : -1;
  };
  const std::int32_t path_index = index_of(path, Col::kFname);
  const std::int32_t other_index = index_of(other, Col::kOther);
  if (places || slot(Col::kBytes) >= 0 || slot(Col::kReadBytes) >= 0 ||
      slot(Col::kWriteBytes) >= 0 || slot(Col::kMappedBytes) >= 0) {
    bool fresh = false;
    Call& call = calls_.row(calls_.find(event.name.raw, event.category.raw, 0, fresh));
    if (fresh) call = call_of(event.category.raw, event.name.raw);
    const Moved moved = moved_bytes(call, event.args);
    const auto amount = [&](Col column, bool there, std::uint64_t value) {
      constexpr std::uint64_t kMost = INT64_MAX;
      number(column, there && moved.known, static_cast<std::int64_t>(std::min(value, kMost)));
    };
    // What a copy reads is what it writes.
    amount(Col::kBytes, moves(call.role),
           call.role == Role::kCopy ? moved.read : moved.read + moved.written);
    amount(Col::kReadBytes, reads(call.role), moved.read);
    amount(Col::kWriteBytes, writes(call.role), moved.written);
    const bool maps = call.role == Role::kMap;
    amount(Col::kMappedBytes, maps, maps ? mapped_bytes(event.args) : 0);
    if (places && path_index >= 0) {
      if (moves(call.role)) {
        note_transfer(event, call, path_index, other_index, moved);
      } else if (call.role >= Role::kOpen && call.role <= Role::kSeek) {
        note_call(event, call.role, path_index);
      }
    }
  }
  path_column(Col::kFname, path, std::max(path_index, 0));
  path_column(Col::kOther, other, std::max(other_index, 0));
  batch_.process_of.push_back(static_cast<std::int32_t>(process));
  if (slot(Col::kArgs) >= 0 || slot(Col::kExtra) >= 0) rest(event, event_args ? taken : 0);
  ++batch_.rows;
}

Batch BatchMaker::take() { return std::move(batch_); }

}  // namespace dft::reader
