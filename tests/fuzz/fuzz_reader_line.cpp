// Any bytes as a block of a trace: no crash, and the two paths of the parser agree on every line.
// What is accepted as JSON is JSON by a strict checker of its own.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>

#include "reader/block.hpp"
#include "reader/columns.hpp"
#include "reader/partial.hpp"

namespace {

using namespace dft::reader;

void check(bool condition) {
  if (!condition) std::abort();
}

// JSON as RFC 8259 has it, written as plainly as possible; shares nothing with the reader.
class Strict {
 public:
  explicit Strict(std::string_view text) : text_(text) {}
  bool whole() {
    const bool good = value();
    blanks();
    return good && at_ == text_.size();
  }

 private:
  [[nodiscard]] int peek() const {
    return at_ < text_.size() ? static_cast<unsigned char>(text_[at_]) : -1;
  }
  void blanks() {
    while (peek() == ' ' || peek() == '\t' || peek() == '\n' || peek() == '\r') ++at_;
  }
  bool eat(char c) {
    blanks();
    return here(c);
  }
  bool here(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }
  bool word(std::string_view w) {
    if (text_.substr(at_, w.size()) != w) return false;
    at_ += w.size();
    return true;
  }
  bool digits() {
    const std::size_t from = at_;
    while (peek() >= '0' && peek() <= '9') ++at_;
    return at_ > from;
  }
  bool number() {
    here('-');
    if (!here('0') && !digits()) return false;
    if (here('.') && !digits()) return false;
    if (!here('e') && !here('E')) return true;
    if (!here('+')) here('-');
    return digits();
  }
  bool string() {
    if (!here('"')) return false;
    while (peek() >= 0x20 && peek() != '"') {
      if (!here('\\')) {
        ++at_;
      } else if (here('u')) {
        for (int i = 0; i < 4; ++i) {
          const int c = peek();
          const bool hex =
              (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
          if (!hex) return false;
          ++at_;
        }
      } else if (peek() < 0 || std::string_view("\"\\/bfnrt").find(text_[at_]) == text_.npos) {
        return false;
      } else {
        ++at_;
      }
    }
    return here('"');
  }
  bool value() {
    blanks();
    if (here('{')) {
      if (eat('}')) return true;
      do {
        blanks();
        if (!string() || !eat(':') || !value()) return false;
      } while (eat(','));
      return eat('}');
    }
    if (here('[')) {
      if (eat(']')) return true;
      do {
        if (!value()) return false;
      } while (eat(','));
      return eat(']');
    }
    if (peek() == '"') return string();
    return word("true") || word("false") || word("null") || number();
  }
  std::string_view text_;
  std::size_t at_ = 0;
};

// The line alone, in a buffer of its own, so that a read past it is seen.
void compare_paths(const Event& event, FileClock clock) {
  std::string line(event.line);
  line.append(kPadding, '\0');
  Parser one(clock);
  Parser two(clock);
  Event fast;
  Event general;
  const char* end = two.general(line.data(), general);
  check(end == line.data() + event.line.size());
  if (one.fast(line.data(), fast) == nullptr) return;
  check(fast.name.raw == general.name.raw && fast.category.raw == general.category.raw);
  check(fast.id == general.id && fast.pid == general.pid && fast.tid == general.tid);
  check(fast.ts == general.ts && fast.dur == general.dur && fast.has == general.has);
  check(fast.phase == general.phase && fast.args_text == general.args_text);
  check(fast.args.size() == general.args.size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  auto file = std::make_shared<File>();
  // The first byte chooses what the file is taken for.
  if (size != 0 && data[0] == 'D') file->shape = Shape::kDocument;
  if (size != 0 && data[0] == 'N') file->clock.digits = 0;
  Block block;
  block.take(file, text);
  Partial partial({true, true, 2});
  BatchMaker maker({});
  maker.begin(file);
  std::uint64_t records = 0;
  block.records([&](const Event& event, std::uint64_t line) {
    ++records;
    compare_paths(event, file->clock);
    check(Strict(event.line).whole());
    partial.add(event, 0, {0, line});
    maker.add(event);
  });
  const Report& report = block.report();
  check(report.records == records);
  check(report.metadata + report.own + report.events == records);
  const Batch batch = maker.take();
  check(static_cast<std::uint64_t>(batch.rows) == report.events);
  partial.finish();
  return 0;
}
