// A block: text of whole lines, or of whole records of a document. The unit of work of every scan:
// load it, visit its records, look at its damage. Each worker thread has its own.
#pragma once
#include <concepts>
#include <vector>

#include "reader/input/work_queue.hpp"
#include "reader/parse/parser.hpp"

namespace dft::reader {

template <typename Visit>
concept TakesRepeats = requires(Visit& visit, const Repeat& repeat) {
  { visit.again(repeat) } -> std::same_as<bool>;
};

class Block {
 public:
  [[nodiscard]] const InFile& file() const { return *item_.file; }
  [[nodiscard]] std::uint64_t ordinal() const { return item_.ordinal; }
  [[nodiscard]] std::string_view text() const { return item_.text.view(); }
  // Complete after records() has gone through.
  [[nodiscard]] const Damage& damage() const { return item_.damage; }

  // For the scan: to be filled by a queue, then loaded.
  WorkItem& item() { return item_; }
  // Reads and inflates what the piece stands for. What cannot be had is in the report.
  void load();
  // Any text as a block, for tests.
  void take(std::shared_ptr<const InFile> file, std::string_view text);

  // The beginnings and ends of spans stay what they are: for copies, which change nothing.
  void leave_halves() { leave_halves_ = true; }

  // Calls visit(const Event&, line) for every record, metadata and the tracer's own too, in the
  // order of the text; `line` counts from 0 in this block. Call it once.
  template <typename Visit>
  void records(Visit&& visit) {
    walk<false>(visit);
  }
  // Likewise, but events may be brief: for a visitor that needs few arguments. If it has a member
  // `bool again(const Repeat&)`, that is tried first; false means that it needs the event.
  template <typename Visit>
  void brief_records(Visit&& visit) {
    if (vouched_) {
      walk<true>(visit);
    } else {
      walk<false>(visit);
    }
  }

 private:
  template <bool Brief, typename Visit>
  void walk(Visit& visit) {
    // A visitor of repeats sees few whole events: check these one by one instead of all the text.
    constexpr bool kRepeats = Brief && TakesRepeats<Visit>;
    utf8_ = !kRepeats && (is_ascii(text()) || is_utf8(text()));
    if (file().layout == FileLayout::kDocument) {
      document([&](const Event& event, std::uint64_t line) { visit(event, line); });
      finish();
      return;
    }
    const char* p = text().data();
    const char* end = p + text().size();
    std::uint64_t line = 0;
    Event event;
    parser_.begin(file().clock);
    while (p < end) {
      if constexpr (kRepeats) {
        Repeat repeat;
        const char* stop = parser_.repeat(p, end, repeat);
        if (stop != nullptr && visit.again(repeat)) {
          ++item_.damage.records;
          ++item_.damage.events;
          ++line;
          p = stop + 1;
          continue;
        }
      }
      const char* stop = Brief ? parser_.brief(p, end, event) : parser_.fast(p, event);
      if (stop != nullptr && (*stop == '\n' || stop == end) && (utf8_ || is_utf8(event.line)))
          [[likely]] {
        event.valid_utf8 = true;
        if (is_half(event.phase) && !whole(event, line)) [[unlikely]] {
          ++line;
          p = stop + 1;
          continue;
        }
        count(event);
        visit(static_cast<const Event&>(event), line);
        ++line;
        p = stop + 1;
        continue;
      }
      p = other_line(p, end, line, [&](const Event& other) { visit(other, line); });
      ++line;
    }
    if (!text().empty() && end[-1] != '\n') --line;
    item_.damage.lines += line;
    finish();
  }

  struct MemberMark {  // where in the text a member begins
    std::size_t text;
    std::uint64_t offset;
  };
  using OnRecord = void (*)(void*, const Event&, std::uint64_t);

  void load_members(bool suspect);
  void load_range();
  void count(const Event& event) {
    Damage& damage = item_.damage;
    ++damage.records;
    if (event.is_metadata()) {
      ++damage.metadata;
    } else if (event.is_own()) {
      ++damage.own;
    } else {
      ++damage.events;
    }
  }
  void note(Trouble kind, const char* at, std::uint64_t line, std::uint64_t size,
            std::string detail = {});
  [[nodiscard]] std::uint64_t offset_of(const char* at) const;
  // False, and noted, if the object is no record.
  bool accept(Event& event, std::uint64_t line);
  // A beginning becomes the span; false, and counted, for an end that belongs to one.
  bool whole(Event& event, std::uint64_t line);
  const char* other_line_records(const char* p, const char* end, std::uint64_t line, void* context,
                                 OnRecord on_record);
  void document_records(void* context, OnRecord on_record);
  void finish();

  template <typename Visit>
  const char* other_line(const char* p, const char* end, std::uint64_t line, Visit&& visit) {
    return other_line_records(p, end, line, &visit,
                              [](void* context, const Event& event, std::uint64_t) {
                                (*static_cast<std::remove_reference_t<Visit>*>(context))(event);
                              });
  }
  template <typename Visit>
  void document(Visit&& visit) {
    document_records(&visit, [](void* context, const Event& event, std::uint64_t line) {
      (*static_cast<std::remove_reference_t<Visit>*>(context))(event, line);
    });
  }

  WorkItem item_;
  Parser parser_;
  Inflater inflater_;
  Buffer raw_;
  std::vector<MemberMark> marks_;
  bool utf8_ = true;            // all of the text is valid; false may mean that it was not checked
  std::uint64_t expected_ = 0;  // lines that the members' headers promise
  bool check_ = false;          // all of them were inflated, so that the promise can be checked
  bool vouched_ = false;        // the text is what a tracer of this layout wrote, by its checksums
  std::uint64_t unusable_ = 0;  // lines that were no record
  bool leave_halves_ = false;
  std::size_t halves_ = 0;  // beginnings and ends so far
  std::string both_;        // the arguments of a beginning and its end
  std::vector<JsonField> both_fields_;
};

}  // namespace dft::reader
