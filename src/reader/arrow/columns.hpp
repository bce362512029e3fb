// The table `events`: its columns (columns.def), and one batch of it, filled from a block by a
// worker thread and finished in order by the consumer's thread (stream.cpp).
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

enum class Column : std::uint8_t {
#define DFT_COLUMN(constant, name, type, source, keys, finish) constant,
#include "reader/arrow/columns.def"
#undef DFT_COLUMN
};
inline constexpr std::size_t kColumns = static_cast<std::size_t>(Column::kExtra) + 1;

enum class ColumnType : std::uint8_t { kInt32, kInt64, kText, kDictionary };
enum class ColumnSource : std::uint8_t {
  kRecord,    // a member of the record itself
  kProcess,   // what is known of its process and its file
  kArgument,  // an integer argument
  kPath,      // an argument that names a file
  kCall,      // all arguments of a call
  kRest,      // what no other column holds
};
struct ColumnInfo {
  const char* name;
  ColumnType type;
  ColumnSource source;
  std::string_view keys;  // of arguments, separated by blanks
};
const ColumnInfo& column_info(Column column);
// -1 if there is no column of that name.
int find_column(std::string_view name);

// Which records become rows.
enum class RowFilter : std::uint8_t { kEvents, kAll };

struct TableOptions {
  std::vector<Column> columns;  // none: all
  bool nanoseconds = false;     // ts and dur; otherwise microseconds
  RowFilter rows = RowFilter::kEvents;
  // These columns of texts are numbers of them, the same in all batches; see StreamResult::words.
  std::vector<Column> coded;
  [[nodiscard]] bool is_coded(Column column) const {
    return std::find(coded.begin(), coded.end(), column) != coded.end();
  }
};

void export_schema(const TableOptions& options, ArrowSchema* out);

struct ColumnData {
  std::vector<std::uint64_t> valid;  // a bit a row
  std::int64_t nulls = 0;
  std::vector<std::int64_t> int64s;
  std::vector<std::int32_t> int32s;  // values, or indices of the dictionary, or offsets of texts
  std::string text;
  std::vector<std::int32_t> ends;  // of the dictionary's texts, 0 first
  std::string words;               // the dictionary's texts
};

// What later blocks need to know of this one.
struct BatchFact {
  enum class About : std::uint8_t { kFile, kString, kHost, kRank };
  About about;
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

struct EventBatch {
  std::shared_ptr<const struct InFile> file;
  std::int64_t rows = 0;
  std::vector<Column> columns;
  std::vector<Column> coded;     // of these, as in TableOptions
  std::vector<ColumnData> data;  // one a column
  std::vector<BatchFact> facts;
  std::vector<ProcessKey> processes;
  std::vector<std::int32_t> process_of;             // of each row, in `processes`
  std::vector<std::pair<std::string, bool>> paths;  // of files and sites: text, and is it a hash
  std::vector<FileCall> calls;                      // for position and access
};

// Fills batches; one a worker thread.
class BatchMaker {
 public:
  explicit BatchMaker(const TableOptions& options);
  void begin(std::shared_ptr<const InFile> file);
  // Whether brief events will do: no column is made of arguments but the host.
  [[nodiscard]] bool takes_brief() const;
  void add(const Event& event);
  EventBatch take();

 private:
  struct NoValue {};
  std::uint32_t process_of(const Event& event, const JsonField* host);
  void note_facts(const Event& event, std::uint32_t process);
  void number(Column column, bool there, std::int64_t value);
  void word(Column column, const JsonText& text, bool valid_utf8);
  void rest(const Event& event, std::uint64_t taken);
  std::int32_t path_of(const Event& event, const JsonField& path);
  void path_column(Column column, const JsonField* path, std::int32_t index);
  void note_transfer(const Event& event, const Call& call, std::int32_t path, std::int32_t other,
                     const MovedBytes& moved);
  void note_call(const Event& event, Role role, std::int32_t path);
  [[nodiscard]] int slot(Column column) const { return slots_[static_cast<std::size_t>(column)]; }
  std::int32_t word_index(Column column, TextMap<NoValue>& table, std::string_view raw,
                          bool escaped, bool valid_utf8);

  TableOptions options_;
  int slots_[kColumns];
  std::vector<Column> argument_columns_;  // of the wanted ones, those of integer arguments
  EventBatch batch_;
  TextMap<NoValue> names_;
  TextMap<NoValue> categories_;
  TextMap<NoValue> phases_;
  TextMap<NoValue> paths_;
  TextMap<NoValue> processes_;  // by host and number
  TextMap<Call> calls_;
  std::uint32_t last_process_ = ~0U;
  std::string scratch_;
};

// Hands the batch over; `out` owns it then.
void export_batch(EventBatch&& batch, ArrowArray* out);

}  // namespace dft::reader
