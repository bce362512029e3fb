// The copy behind `compact` and `recover`: worker threads copy blocks, the caller's thread writes
// them in order and then reads the copy again.
#include "reader/write/write_lines.hpp"

#include <vector>

#include "reader/parse/text_map.hpp"

namespace dft::reader {
namespace {

// Of lines in their order; the digest of two texts gives that of both.
struct Digest {
  std::uint64_t value = 0;
  std::uint64_t factor = 1;
  void add(std::string_view line) {
    value = value * kBase + hash_text(line, 0);
    factor *= kBase;
  }
  void add(const Digest& next) {
    value = value * next.factor + next.value;
    factor *= next.factor;
  }
  bool operator==(const Digest&) const = default;

 private:
  static constexpr std::uint64_t kBase = 0x9e3779b97f4a7c15U;
};

struct CopiedBlock {
  std::string text;
  std::uint32_t lines = 0;
  std::int64_t pid = 0;
  Digest digest;
};

void append_record(std::string& out, const Event& event, bool document) {
  std::string visible;
  std::string_view line = event.line;
  if (!event.valid_utf8) {
    append_visible(visible, line);
    line = visible;
  }
  if (document) {
    append_compact(out, line);
  } else {
    out += line;
  }
}

CopiedBlock copy_block(Block& block) {
  CopiedBlock out;
  const bool document = block.file().layout == FileLayout::kDocument;
  out.text.reserve(block.text().size() + 1);
  block.leave_halves();
  block.records([&](const Event& event, std::uint64_t) {
    const std::size_t begin = out.text.size();
    append_record(out.text, event, document);
    out.digest.add(std::string_view(out.text).substr(begin));
    out.text += '\n';
    ++out.lines;
    if ((event.has & kHasPid) != 0) out.pid = event.pid;
  });
  return out;
}

// What stands around the events of a document and is needed to read them.
std::string document_head(const InFile& file) {
  std::string out = "\"displayTimeUnit\":\"ms\",\"baseTimeNanoseconds\":";
  append_number(out, file.clock.base_ns);
  out += ',';
  if (!file.host.empty()) out += "\"host_name\":\"" + file.host + "\",";
  if (file.rank >= 0) out += "\"distributedInfo\":{\"rank\":" + std::to_string(file.rank) + "},";
  if (file.merged) out += "\"dftracerMerged\":1,";
  return out;
}

std::string note_of(const Damage& damage, std::int64_t pid) {
  std::string what;
  for (std::size_t i = 0; i < kTroubles; ++i) {
    if (damage.counts[i] == 0) continue;
    if (!what.empty()) what += "; ";
    what += std::to_string(damage.counts[i]) + " x " + info_of(static_cast<Trouble>(i)).text;
  }
  std::string out = "{\"id\":0,\"name\":\"repaired\",\"cat\":\"dftracer\",\"pid\":";
  append_number(out, pid > 0 ? pid : 1);
  out += ",\"tid\":";
  append_number(out, pid > 0 ? pid : 1);
  out += ",\"ph\":\"M\",\"args\":{\"name\":\"repaired\",\"value\":\"";
  append_escaped(out, what);
  out += "\"}}\n";
  return out;
}

}  // namespace

CopyResult copy_trace(const std::string& path, const std::string& out, const CopyOptions& options,
                      Control* control) {
  CopyResult result;
  InFile head;
  head.path = path;
  (void)open_file(head);  // its error comes again when it is read
  OutputKind kind;
  output_kind(out, kind);
  TraceFile file(out, kind, options.level, document_head(head), options.member_text);
  Digest digest;
  std::int64_t pid = 0;
  {
    OrderedScan<CopiedBlock> copies(
        {path}, options.threads, [](unsigned, Block& block) { return copy_block(block); }, control);
    while (std::optional<CopiedBlock> copied = copies.next()) {
      file.add(copied->text, copied->lines);
      digest.add(copied->digest);
      result.records += copied->lines;
      if (copied->pid != 0) pid = copied->pid;
    }
    result.read = copies.result();
  }
  if (options.repair) {
    const std::string note = note_of(result.read.total, pid);
    file.add(note, 1);
    digest.add(std::string_view(note).substr(0, note.size() - 1));
  }
  file.finish();

  Digest found;
  OrderedScan<CopiedBlock> again(
      {file.written_path()}, options.threads,
      [](unsigned, Block& block) { return copy_block(block); }, control);
  while (std::optional<CopiedBlock> copied = again.next()) found.add(copied->digest);
  const Damage damage = again.result().total;
  if (result.read.total.records != result.records || damage.records != file.lines()) {
    result.mismatch = "not every record was copied";
  } else if (!(found == digest) || damage.is_damaged()) {
    result.mismatch = "the copy reads differently";
  }
  if (!result.mismatch.empty()) return result;
  result.bytes = file.bytes();
  file.commit();
  return result;
}

}  // namespace dft::reader
