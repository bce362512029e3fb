// The table `events`: its columns, and one batch of it, filled from a block by a worker thread and
// finished, in order, by the thread that takes it.
#pragma once
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "reader/arrow/arrow.hpp"
#include "reader/parse/event.hpp"
#include "reader/parse/text_map.hpp"
#include "reader/stats/accesses.hpp"
#include "reader/stats/call_bytes.hpp"

namespace dft::reader {

// In the order of the schema. docs/trace.md says what they mean.
enum class Col : std::uint8_t {
  kId,
  kName,
  kCat,
  kPh,
  kPid,
  kTid,
  kTs,
  kDur,
  kLevel,
  kParent,
  kHost,
  kProcess,
  kRank,
  kFname,
  kOther,
  kTrace,
  kRet,
  kErrno,
  kCount,
  kOffset,
  kSize,
  kEpoch,
  kStep,
  kBytes,
  kReadBytes,
  kWriteBytes,
  kMappedBytes,
  kPosition,
  kAccess,
  kArgs,
  kExtra,
};
inline constexpr std::size_t kColumns = 31;

enum class ColType : std::uint8_t { kInt32, kInt64, kText, kDictionary };
struct ColumnInfo {
  const char* name;
  ColType type;
};
const ColumnInfo& column_info(Col column);
// -1 if there is no column of that name.
int find_column(std::string_view name);

// Which records become rows.
enum class Rows : std::uint8_t { kEvents, kAll };

struct TableOptions {
  std::vector<Col> columns;  // none: all
  bool nanoseconds = false;  // ts and dur; otherwise microseconds
  Rows rows = Rows::kEvents;
  // These columns of texts are numbers of them, the same in all batches; see StreamResult::words.
  std::vector<Col> coded;
  [[nodiscard]] bool is_coded(Col column) const {
    return std::find(coded.begin(), coded.end(), column) != coded.end();
  }
};

void export_schema(const TableOptions& options, ArrowSchema* out);

struct ColumnData {
  std::vector<std::uint64_t> valid;  // a bit a row
  std::int64_t nulls = 0;
  std::vector<std::int64_t> longs;
  std::vector<std::int32_t> ints;  // values, or indices of the dictionary, or offsets of texts
  std::string text;
  std::vector<std::int32_t> ends;  // of the dictionary's texts, 0 first
  std::string words;               // the dictionary's texts
};

// What later blocks need to know of this one.
struct Fact {
  enum class What : std::uint8_t { kFile, kString, kHost, kRank };
  What what;
  std::uint32_t process;
  std::string key;
  std::string value;
};

struct ProcessKey {
  std::int64_t pid;
  std::string host;   // as written: a hash, or a name
  std::string shown;  // what that says
  bool named;         // by its name
};

struct Batch {
  std::shared_ptr<const struct File> file;
  std::int64_t rows = 0;
  std::vector<Col> columns;
  std::vector<Col> coded;        // of these, as in TableOptions
  std::vector<ColumnData> data;  // one a column
  std::vector<Fact> facts;
  std::vector<ProcessKey> processes;
  std::vector<std::int32_t> process_of;             // of each row, in `processes`
  std::vector<std::pair<std::string, bool>> paths;  // of fname and other: text, and is it a hash
  std::vector<FileCall> calls;                      // for position and access
};

// Fills batches; one a worker thread.
class BatchMaker {
 public:
  explicit BatchMaker(const TableOptions& options);
  void begin(std::shared_ptr<const File> file);
  // Whether brief events will do: no column is made of arguments but the host.
  [[nodiscard]] bool takes_brief() const;
  void add(const Event& event);
  Batch take();

 private:
  struct None {};
  std::uint32_t process_of(const Event& event, const Field* host);
  void note_facts(const Event& event, std::uint32_t process);
  void number(Col column, bool there, std::int64_t value);
  void word(Col column, const Text& text, bool valid_utf8);
  void rest(const Event& event, std::uint64_t taken);
  std::int32_t path_of(const Event& event, const Field& path);
  void path_column(Col column, const Field* path, std::int32_t index);
  void note_transfer(const Event& event, const Call& call, std::int32_t path, std::int32_t other,
                     const Moved& moved);
  void note_call(const Event& event, Role role, std::int32_t path);
  [[nodiscard]] int slot(Col column) const { return slots_[static_cast<std::size_t>(column)]; }
  std::int32_t word_index(Col column, TextTable<None>& table, std::string_view raw, bool escaped,
                          bool valid_utf8);

  TableOptions options_;
  int slots_[kColumns];
  Batch batch_;
  TextTable<None> names_;
  TextTable<None> categories_;
  TextTable<None> phases_;
  TextTable<None> paths_;
  TextTable<None> processes_;  // by host and number
  TextTable<Call> calls_;
  std::uint32_t last_process_ = ~0U;
  std::string scratch_;
};

// Hands the batch over; `out` owns it then.
void export_batch(Batch&& batch, ArrowArray* out);

}  // namespace dft::reader
