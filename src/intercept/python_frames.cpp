#include "intercept/python_frames.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <string_view>

#include "base/syscalls.hpp"

namespace dft::intercept {
namespace {

using namespace in_python;  // NOLINT: the names of the same subject

constexpr std::uint8_t kNone = PythonLayout::kNone;

// Measured with offsetof on each release; tests/python/test_call_sites.py runs those that it finds.
constexpr PythonLayout kLayouts[] = {
    {9, 24, kNone, 32, 24, 104, kNone, kNone, 104, 112, 40, 120, kNone, 48, 72},
    {10, 24, kNone, 32, 24, 96, kNone, kNone, 104, 112, 40, 120, kNone, 48, 72},
    {11, 56, 8, 32, 48, 56, 69, 184, 112, 128, 72, 136, kNone, 48, 72},
    {12, 56, 0, 0, 8, 56, 70, 192, 112, 128, 68, 136, 92, 40, 56},
    {13, 72, kNone, 0, 8, 56, 70, 200, 112, 128, 68, 136, 92, 40, 56},
    {14, 72, kNone, 0, 8, 56, 74, 208, 112, 128, 68, 136, 92, 40, 56},
    {15, 72, kNone, 0, 8, 56, 74, 208, 112, 128, 68, 136, 92, 40, 56},
};

constexpr std::size_t kType = 8;    // PyObject: its type
constexpr std::size_t kState = 32;  // str
constexpr int kDeepest = 64;

// Since 3.14, a frame's reference has marks in its lowest bits.
const char* without_marks(std::uintptr_t reference) {
  constexpr std::uintptr_t kMarks = 7;
  return reinterpret_cast<const char*>(reference & ~kMarks);
}

// A str of any width. Its characters are immutable.
class Text {
 public:
  Text(const PythonLayout& layout, const char* object) {
    const auto state = load<std::uint32_t>(object, kState);
    constexpr std::uint32_t kCompact = 0x20;
    constexpr std::uint32_t kAscii = 0x40;
    width_ = state >> 2 & 7;
    if ((state & kCompact) == 0 || (width_ != 1 && width_ != 2 && width_ != 4)) return;
    at_ = object + ((state & kAscii) != 0 ? layout.ascii : layout.not_ascii);
    size_ = load<std::size_t>(object, kLength);
  }
  [[nodiscard]] std::size_t size() const { return size_; }
  std::uint32_t operator[](std::size_t i) const {
    if (width_ == 1) return static_cast<unsigned char>(at_[i]);
    return width_ == 2 ? load<std::uint16_t>(at_, 2 * i) : load<std::uint32_t>(at_, 4 * i);
  }
  [[nodiscard]] bool begins(std::size_t i, std::string_view text) const {
    if (size_ - i < text.size()) return false;
    for (std::size_t k = 0; k < text.size(); ++k) {
      if ((*this)[i + k] != static_cast<unsigned char>(text[k])) return false;
    }
    return true;
  }
  // Behind the last occurrence; 0 if there is none.
  [[nodiscard]] std::size_t behind(std::string_view text) const {
    for (std::size_t i = size_; i-- > 0;)
      if (begins(i, text)) return i + text.size();
    return 0;
  }

 private:
  const char* at_ = nullptr;
  std::size_t size_ = 0;
  std::uint32_t width_ = 0;
};

// Where the name of a library's module begins in the path of its file; 0: it is no library.
std::size_t module_begins(const Text& file) {
  for (const std::string_view folder : {"/site-packages/", "/dist-packages/"})
    if (const std::size_t at = file.behind(folder); at != 0) return at;
  for (const std::string_view folder : {"/lib/python3.", "/lib64/python3."}) {
    std::size_t at = file.behind(folder);
    if (at == 0) continue;
    while (at < file.size() && file[at] != '/') ++at;
    if (at < file.size()) return at + 1;
  }
  constexpr std::string_view kFrozen = "<frozen ";
  return file.begins(0, kFrozen) ? kFrozen.size() : 0;
}

// Whether code belongs to a library: a word per code object, its address and 15 bits of its
// identity, and the answer in the lowest bit. A lost word is found again.
constexpr std::size_t kAnswers = 1024;
std::atomic<std::uint64_t> g_answers[kAnswers];

bool is_library(const PythonLayout& layout, const char* code) {
  const auto address = reinterpret_cast<std::uintptr_t>(code);
  const std::uint64_t identity = identity_of(layout, code);
  const std::uint64_t tag = (identity ^ identity >> 15 ^ identity >> 30 ^ identity >> 45) & 0x7fff;
  const std::uint64_t wanted = address << 16 | tag << 1;
  std::atomic<std::uint64_t>& word = g_answers[(address >> 5 ^ address >> 15) % kAnswers];
  const std::uint64_t found = word.load(std::memory_order_relaxed);
  if ((found & ~std::uint64_t{1}) == wanted) [[likely]]
    return (found & 1) != 0;
  const bool library = module_begins(Text(layout, pointer(code, layout.file))) != 0;
  word.store(wanted | static_cast<std::uint64_t>(library), std::memory_order_relaxed);
  return library;
}

// ---- Lines

struct Varints {
  const char* at;
  const char* end;
  std::uint32_t next() {
    std::uint32_t value = 0;
    for (unsigned shift = 0; at < end; shift += 6) {
      const auto byte = static_cast<unsigned char>(*at++);
      if (shift < 32) value |= (byte & 63u) << shift;
      if ((byte & 64) == 0) break;
    }
    return value;
  }
  std::int32_t next_signed() {
    const std::uint32_t value = next();
    const auto half = static_cast<std::int32_t>(value >> 1);
    return (value & 1) != 0 ? -half : half;
  }
};

// 3.11 and later: entries of one head byte and varints, each for up to eight instructions.
int line_in_locations(const char* table, const char* end, std::uint64_t instruction, int line) {
  Varints in{table, end};
  std::uint64_t next = 0;
  while (in.at < in.end) {
    const auto head = static_cast<unsigned char>(*in.at++);
    const unsigned code = head >> 3 & 15;
    bool has_line = true;
    if (code == 15) {
      has_line = false;
    } else if (code == 14) {
      line += in.next_signed();
      in.next();
      in.next();
      in.next();
    } else if (code == 13) {
      line += in.next_signed();
    } else if (code >= 10) {
      line += static_cast<int>(code) - 10;
      in.at += 2;
    } else {
      in.at += 1;
    }
    next += (head & 7u) + 1;
    if (instruction < next) return has_line ? line : 0;
  }
  return 0;
}

// 3.10: pairs of a number of bytes and a difference of lines; -128: no line.
int line_in_pairs(const char* table, const char* end, std::uint64_t byte, int line) {
  std::uint64_t next = 0;
  for (const char* p = table; p + 1 < end; p += 2) {
    const auto difference = static_cast<signed char>(p[1]);
    if (difference != -128) line += difference;
    next += static_cast<unsigned char>(p[0]);
    if (byte < next) return difference != -128 ? line : 0;
  }
  return 0;
}

// 3.9: the same pairs, but the difference belongs to what follows.
int line_in_old_pairs(const char* table, const char* end, std::uint64_t byte, int line) {
  std::uint64_t next = 0;
  for (const char* p = table; p + 1 < end; p += 2) {
    next += static_cast<unsigned char>(p[0]);
    if (next > byte) break;
    line += static_cast<signed char>(p[1]);
  }
  return line;
}

int line_of(const PythonLayout& layout, const PythonPlace& place) {
  const char* table = pointer(place.code, layout.lines);
  const char* begin = table + kBytes;
  const char* end = begin + load<std::size_t>(table, kLength);
  const auto first = load<std::int32_t>(place.code, layout.line);
  const auto code = reinterpret_cast<std::uintptr_t>(place.code);
  const std::uint64_t number = (place.at ^ code) >> 40;  // 3.9 and 3.10
  if (layout.minor == 9) return line_in_old_pairs(begin, end, number, first);
  if (layout.minor == 10) return line_in_pairs(begin, end, 2 * number, first);
  return line_in_locations(begin, end, (place.at - code - layout.start) / 2, first);
}

// ---- Text

class Output {
 public:
  Output(char* to, std::size_t room) : to_(to), room_(room) {}
  [[nodiscard]] std::size_t size() const { return used_; }
  void put(char c) {
    if (used_ < room_) to_[used_++] = c;
  }
  void put(std::string_view text) {
    for (const char c : text) put(c);
  }
  void put(int number) {
    char digits[16];
    put(std::string_view(
        digits, static_cast<std::size_t>(std::to_chars(digits, digits + sizeof digits, number).ptr -
                                         digits)));
  }
  // As UTF-8. A byte that Python could not decode is a half of a surrogate pair: the byte again.
  void put_character(std::uint32_t c) {
    if (c < 0x80) {
      put(static_cast<char>(c));
    } else if (c >= 0xdc80 && c <= 0xdcff) {
      put(static_cast<char>(c - 0xdc00));
    } else if (c < 0x800) {
      put(static_cast<char>(0xc0 | c >> 6));
      put(static_cast<char>(0x80 | (c & 63)));
    } else if (c < 0x10000) {
      put(static_cast<char>(0xe0 | c >> 12));
      put(static_cast<char>(0x80 | (c >> 6 & 63)));
      put(static_cast<char>(0x80 | (c & 63)));
    } else {
      put(static_cast<char>(0xf0 | (c >> 18 & 7)));
      put(static_cast<char>(0x80 | (c >> 12 & 63)));
      put(static_cast<char>(0x80 | (c >> 6 & 63)));
      put(static_cast<char>(0x80 | (c & 63)));
    }
  }
  void put(const Text& text, std::size_t from, std::size_t to) {
    for (std::size_t i = from; i < to; ++i) put_character(text[i]);
  }
  // Its end says more than its beginning: of a long path, that is kept.
  void put_path(const Text& text) {
    constexpr std::size_t kLongest = 400;
    const std::size_t from = text.size() > kLongest ? text.size() - kLongest : 0;
    if (from != 0) put("...");
    put(text, from, text.size());
  }
  void put_name(const Text& text) {
    constexpr std::size_t kLongest = 160;
    for (std::size_t i = 0; i < std::min(text.size(), kLongest); ++i)
      put_character(text[i] == ' ' ? '_' : text[i]);
  }

 private:
  char* to_;
  std::size_t room_;
  std::size_t used_ = 0;
};

// "numpy.lib.npyio" for ".../site-packages/numpy/lib/npyio.py"; empty for what is no library.
void put_module(Output& out, const Text& file) {
  const std::size_t begin = module_begins(file);
  if (begin == 0) return;
  std::size_t end = file.size();
  for (const std::string_view tail : {">", ".py", "/__init__"}) {
    if (end >= begin + tail.size() && file.begins(end - tail.size(), tail)) end -= tail.size();
  }
  constexpr std::size_t kLongest = 160;
  if (end - begin > kLongest) return;
  for (std::size_t i = begin; i < end; ++i) out.put_character(file[i] == '/' ? '.' : file[i]);
  out.put('.');
}

}  // namespace

const PythonLayout* layout_of(const char* version) noexcept {
  const std::string_view text(version);
  unsigned minor = 0;
  if (!text.starts_with("3.") || text.find("free-threading") != std::string_view::npos)
    return nullptr;
  const char* digits = text.data() + 2;
  if (std::from_chars(digits, text.data() + text.size(), minor).ptr == digits) return nullptr;
  for (const PythonLayout& layout : kLayouts)
    if (layout.minor == minor) return &layout;
  return nullptr;
}

bool find_place(const Python& python, const char* frame, PythonPlace& place,
                FrameTrail& trail) noexcept {
  const PythonLayout& layout = *python.layout;
  const char* callee = nullptr;
  PythonPlace first{};
  std::uint32_t length = 0;
  trail.length = 0;
  for (int depth = 0; frame != nullptr && depth < kDeepest;
       frame = pointer(frame, layout.outer), ++depth) {
    if (!runs_code(layout, frame)) continue;
    const std::uint64_t at = at_of(layout, frame);
    if (length < FrameTrail::kLongest) trail.at[length] = at;
    ++length;
    const char* code = without_marks(load<std::uintptr_t>(frame, layout.code));
    if (code == nullptr || pointer(code, kType) != python.code_type) [[unlikely]]
      continue;
    if (!is_library(layout, code)) {
      place = {code, at, callee};
      if (length <= FrameTrail::kLongest) trail.length = length;
      return true;
    }
    if (first.code == nullptr) first = {code, at, nullptr};
    callee = code;
  }
  place = first;
  return first.code != nullptr;
}

Fit check_layout(const Python& python) noexcept {
  const PythonLayout& layout = *python.layout;
  // The kernel copies the set before it rejects what to do with it. Not process_vm_readv, which
  // containers may forbid.
  const auto read = [](const char* at, const char*& word) {
    constexpr int kNothing = 99;
    if (sys::call(SYS_rt_sigprocmask, kNothing, at, nullptr, sizeof word) == -EFAULT) return false;
    std::memcpy(&word, at, sizeof word);
    return true;
  };
  const auto is_text = [&](const char* at) {
    const char* type = nullptr;
    return read(at, at) && read(at + kType, type) && type == python.text_type;
  };
  const char* frame = static_cast<const char*>(python.this_thread());
  if (frame == nullptr || python.is_finalizing() != 0) return Fit::kNoFrame;
  if (!read(frame + layout.frame, frame)) return Fit::kFitsNot;
  if (layout.indirect != kNone && frame != nullptr && !read(frame + layout.indirect, frame))
    return Fit::kFitsNot;
  for (int depth = 0; frame != nullptr && depth < kDeepest; ++depth) {
    const char* owners = nullptr;
    if (layout.owner != kNone) {
      if (!read(frame + (layout.owner & ~std::size_t{7}), owners)) return Fit::kFitsNot;
      const auto owner = reinterpret_cast<std::uintptr_t>(owners) >> (layout.owner & 7u) * 8 & 0xff;
      if (owner >= kRunsNoCode) {
        if (!read(frame + layout.outer, frame)) return Fit::kFitsNot;
        continue;
      }
    }
    const char* code = nullptr;
    const char* type = nullptr;
    if (!read(frame + layout.code, code)) return Fit::kFitsNot;
    code = without_marks(reinterpret_cast<std::uintptr_t>(code));
    const bool fits = read(code + kType, type) && type == python.code_type &&
                      is_text(code + layout.file) && is_text(code + layout.name);
    return fits ? Fit::kFits : Fit::kFitsNot;
  }
  return Fit::kNoFrame;
}

std::size_t describe(const Python& python, const PythonPlace& place, char* to,
                     std::size_t room) noexcept {
  const PythonLayout& layout = *python.layout;
  Output out(to, room);
  out.put_path(Text(layout, pointer(place.code, layout.file)));
  out.put(':');
  out.put(line_of(layout, place));
  out.put(' ');
  out.put_name(Text(layout, pointer(place.code, layout.name)));
  if (place.callee != nullptr) {
    out.put(" > ");
    put_module(out, Text(layout, pointer(place.callee, layout.file)));
    out.put_name(Text(layout, pointer(place.callee, layout.name)));
  }
  return out.size();
}

}  // namespace dft::intercept
