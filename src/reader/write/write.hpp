// Writing of traces: the text of numbers and strings, gzip members of ours, and the file that
// appears under its name only when it is whole. Used by merge, split, compact and repair.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "reader/write/out_file.hpp"

namespace dft::reader {

// By the end of the file's name: .pfw, .json, and either with .gz.
struct OutputKind {
  bool document = false;  // {"traceEvents":[...]}, strict JSON
  bool compressed = false;
};
// False if the name has none of these ends.
bool output_kind(std::string_view path, OutputKind& out);

void append_number(std::string& out, std::int64_t value);
// The text of a JSON value without blanks between its tokens.
void append_compact(std::string& out, std::string_view json);
// A byte that is no part of valid UTF-8 becomes the visible \uefXX (docs/design/file-format.md).
void append_visible(std::string& out, std::string_view text);

// Makes gzip members that say their size and lines (docs/design/file-format.md). One a thread.
class Deflater {
 public:
  explicit Deflater(unsigned level);
  ~Deflater();
  Deflater(const Deflater&) = delete;
  Deflater& operator=(const Deflater&) = delete;
  // Appends one member. Throws if the compressor fails, which only a lack of memory explains.
  void member(std::string_view text, std::uint32_t lines, std::string& out);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Text that is on its way into a file: lines as they are, or a member made of them already.
struct Parcel {
  std::string text;
  std::uint32_t lines = 0;  // records in the text
  std::string member;       // of the text, if a worker has compressed it
};
// Workers compress what is worth a member of its own; the writer gathers the rest.
inline constexpr std::size_t kMemberText = std::size_t{512} << 10;

// A trace that is written beside its place; commit() puts it there.
class TraceFile {
 public:
  // Throws std::system_error if the file cannot be made, written or renamed.
  TraceFile(std::string path, OutputKind kind, unsigned level, const std::string& document_head,
            std::size_t member_text = kMemberText);

  // Whole lines, each an object and '\n'. Order is kept.
  void add(std::string_view text, std::uint32_t lines);
  void add(Parcel&& parcel);
  // Writes what waits, and the end of a document. The file can be read at written_path() then.
  void finish();
  void commit() { file_.commit(); }

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] const std::string& written_path() const { return file_.written_path(); }
  [[nodiscard]] std::uint64_t bytes() const { return file_.size(); }
  [[nodiscard]] std::uint64_t lines() const { return lines_; }
  [[nodiscard]] OutputKind kind() const { return kind_; }
  void flush();

 private:
  void document_lines(std::string_view text);

  std::string path_;
  OutFile file_;
  OutputKind kind_;
  std::size_t member_text_;
  Deflater deflater_;
  std::string pending_;
  std::uint32_t pending_lines_ = 0;
  std::string packed_;
  std::uint64_t lines_ = 0;
  bool first_ = true;  // no record of a document yet
};

}  // namespace dft::reader
