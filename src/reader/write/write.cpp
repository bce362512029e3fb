// Compressing and writing of traces. Deflater runs on worker threads, TraceFile on the writing one.
#include "reader/write/write.hpp"

#include <isa-l/igzip_lib.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "format/member.hpp"
#include "format/visible_byte.hpp"
#include "reader/parse/json_scan.hpp"

namespace dft::reader {
namespace {

bool ends_with(std::string_view text, std::string_view end) {
  return text.size() > end.size() && text.substr(text.size() - end.size()) == end;
}

}  // namespace

bool output_kind(std::string_view path, OutputKind& out) {
  out.compressed = ends_with(path, ".gz");
  if (out.compressed) path.remove_suffix(3);
  out.document = ends_with(path, ".json");
  return out.document || ends_with(path, ".pfw");
}

void append_number(std::string& out, std::int64_t value) {
  char digits[24];
  const auto end = std::to_chars(digits, digits + sizeof digits, value);
  out.append(digits, static_cast<std::size_t>(end.ptr - digits));
}

void append_compact(std::string& out, std::string_view json) {
  const char* p = json.data();
  const char* end = p + json.size();
  while (p < end) {
    if (*p == '"') {
      const char* from = p++;
      while (p < end && *p != '"') p += *p == '\\' ? 2 : 1;
      p = std::min(p + 1, end);
      out.append(from, static_cast<std::size_t>(p - from));
    } else {
      if (*p != ' ' && *p != '\n' && *p != '\t' && *p != '\r') out += *p;
      ++p;
    }
  }
}

void append_visible(std::string& out, std::string_view text) {
  while (!text.empty()) {
    // The longest piece that begins here and is one character; four bytes at most.
    std::size_t size = 0;
    for (std::size_t length = 1; length <= 4 && length <= text.size() && size == 0; ++length) {
      if (is_utf8(text.substr(0, length))) size = length;
    }
    if (size == 0) {
      char visible[format::kVisibleByte];
      format::write_visible_byte(visible, static_cast<unsigned char>(text[0]));
      out.append(visible, sizeof visible);
      size = 1;
    } else {
      out.append(text.substr(0, size));
    }
    text.remove_prefix(size);
  }
}

struct Deflater::State {
  isal_zstream stream{};
  std::vector<std::uint8_t> tables;
  unsigned level = 1;
};

Deflater::Deflater(unsigned level) : state_(std::make_unique<State>()) {
  constexpr std::uint32_t kSizes[] = {ISAL_DEF_LVL0_DEFAULT, ISAL_DEF_LVL1_DEFAULT,
                                      ISAL_DEF_LVL2_DEFAULT, ISAL_DEF_LVL3_DEFAULT};
  state_->level = level > 3 ? 3 : level;
  state_->tables.resize(kSizes[state_->level]);
}
Deflater::~Deflater() = default;

void Deflater::member(std::string_view text, std::uint32_t lines, std::string& out) {
  // Text that does not compress is stored in blocks of at most 64 KiB, five bytes more each. Level 0
  // stores no blocks: a fixed code of at most 15 bits writes every byte.
  const std::size_t most =
      state_->level == 0 ? 2 * text.size() + 512 : text.size() + text.size() / 8192 * 5 + 512;
  const std::size_t before = out.size();
  out.resize(before + format::kMemberHeader + most);
  isal_zstream& stream = state_->stream;
  isal_deflate_init(&stream);
  stream.level = state_->level;
  stream.level_buf = state_->tables.data();
  stream.level_buf_size = static_cast<std::uint32_t>(state_->tables.size());
  stream.gzip_flag = IGZIP_GZIP_NO_HDR;  // the trailer is ISA-L's, the header ours
  stream.end_of_stream = 1;
  stream.next_in = reinterpret_cast<std::uint8_t*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<std::uint32_t>(text.size());
  stream.next_out = reinterpret_cast<std::uint8_t*>(out.data()) + before + format::kMemberHeader;
  stream.avail_out = static_cast<std::uint32_t>(most);
  if (isal_deflate(&stream) != COMP_OK || stream.internal_state.state != ZSTATE_END) {
    throw std::runtime_error("the compressor failed");
  }
  const std::uint32_t size = static_cast<std::uint32_t>(format::kMemberHeader) + stream.total_out;
  format::write_member_header(out.data() + before, size, lines);
  out.resize(before + size);
}

TraceFile::TraceFile(std::string path, OutputKind kind, unsigned level,
                     const std::string& document_head, std::size_t member_text)
    : path_(std::move(path)),
      file_(path_),
      kind_(kind),
      member_text_(member_text),
      deflater_(level) {
  pending_ = kind_.document ? '{' + document_head + "\"traceEvents\":[\n" : "[\n";
}

void TraceFile::flush() {
  if (pending_.empty()) return;
  if (kind_.compressed) {
    packed_.clear();
    deflater_.member(pending_, pending_lines_, packed_);
    file_.write(packed_);
  } else {
    file_.write(pending_);
  }
  pending_.clear();
  pending_lines_ = 0;
}

// A document's records have commas between them.
void TraceFile::document_lines(std::string_view text) {
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    if (!first_) pending_ += ",\n";
    first_ = false;
    pending_.append(text.substr(0, end));
    text.remove_prefix(std::min(text.size(), end + 1));
  }
}

void TraceFile::add(std::string_view text, std::uint32_t lines) {
  lines_ += lines;
  if (kind_.document) {
    document_lines(text);
  } else {
    pending_.append(text);
  }
  pending_lines_ += lines;
  if (pending_.size() >= member_text_) flush();
}

void TraceFile::add(Parcel&& parcel) {
  if (parcel.member.empty()) {
    add(parcel.text, parcel.lines);
    return;
  }
  flush();
  lines_ += parcel.lines;
  file_.write(parcel.member);
}

void TraceFile::finish() {
  if (kind_.document) pending_ += "\n]}\n";
  flush();
  file_.finish();
}

}  // namespace dft::reader
