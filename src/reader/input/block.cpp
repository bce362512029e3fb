// Loading of blocks, and the lines that the fast path of Block::walk does not take: brackets,
// foreign layouts, damage. Runs on worker threads.
#include "reader/input/block.hpp"

#include <algorithm>
#include <cstring>

namespace dft::reader {
namespace {

const char* line_end(const char* p, const char* end) {
  const auto* found =
      static_cast<const char*>(std::memchr(p, '\n', static_cast<std::size_t>(end - p)));
  return found == nullptr ? end : found;
}

std::string excerpt(const char* p, const char* end) {
  constexpr std::ptrdiff_t kMost = 60;
  std::string out;
  for (const char* at = p; at != end && at - p < kMost; ++at) {
    const auto byte = static_cast<unsigned char>(*at);
    out += byte >= 0x20 && byte < 0x7f ? *at : '?';
  }
  return out;
}

}  // namespace

void Block::load() {
  marks_.clear();
  expected_ = 0;
  unusable_ = 0;
  check_ = false;
  vouched_ = false;
  leave_halves_ = false;
  halves_ = 0;
  switch (item_.content) {
    case WorkItem::Content::kMembers:
      load_members(false);
      vouched_ = check_;
      break;
    case WorkItem::Content::kSuspect:
      load_members(true);
      break;
    case WorkItem::Content::kRange:
      load_range();
      break;
    case WorkItem::Content::kText:
      break;
  }
  item_.text.seal();
  item_.damage.text_bytes += item_.text.size();
  raw_.shrink(kMaxMember / 8);
}

void Block::take(std::shared_ptr<const InFile> file, std::string_view text) {
  item_.file = std::move(file);
  item_.content = WorkItem::Content::kText;
  item_.damage = {};
  item_.text.clear();
  item_.text.append(text);
  load();
}

void Block::load_members(bool suspect) {
  item_.text.clear();
  raw_.resize(item_.size);
  const long got = item_.handle->read(item_.offset, raw_.data(), item_.size);
  raw_.resize(static_cast<std::size_t>(std::max(got, 0L)));
  item_.damage.bytes_read += raw_.size();
  check_ = true;
  std::size_t at = 0;
  while (at < raw_.size()) {
    const std::string_view rest = raw_.view().substr(at);
    const std::uint64_t place = item_.offset + at;
    format::MemberHeader header;
    if (!format::read_member_header(rest, header)) break;  // the file changed under our hands
    const std::size_t size =
        suspect ? rest.size() : std::min<std::size_t>(header.size, rest.size());
    marks_.push_back({item_.text.size(), place});
    std::size_t used = 0;
    const std::size_t before = item_.text.size();
    const Inflated result = inflater_.member(rest.substr(0, size), kMaxMember, item_.text, used);
    const auto trouble = [&](Trouble kind, std::uint64_t offset, std::uint64_t bytes,
                             std::string detail = {}) {
      item_.damage.note({kind, file().index, ordinal(), offset, 0, bytes, std::move(detail)});
    };
    if (result == Inflated::kBad) {
      trouble(Trouble::kBadMember, place, size, std::to_string(header.lines) + " lines lost");
    } else if (result == Inflated::kCut) {
      // What was inflated is right; half a line at its end is no trouble of its own.
      const bool last = place + size >= file().size;
      trouble(last ? Trouble::kCutMember : Trouble::kBadMember, place, size);
      item_.text.resize(std::max(before, item_.text.view().rfind('\n') + 1));
      check_ = false;
    } else {
      ++item_.damage.members;
      expected_ += header.lines;
      if (used != size) trouble(Trouble::kRubbish, place + used, size - used);
      if (item_.text.size() > before && item_.text.view().back() != '\n') {
        item_.text.append("\n");
      }
    }
    at += size;
  }
}

// The lines that begin in the range: the first byte after a line end, or the first of the file.
void Block::load_range() {
  constexpr std::size_t kMore = std::size_t{64} << 10;
  Buffer& text = item_.text;
  const std::uint64_t from = item_.offset == 0 ? 0 : item_.offset - 1;
  const std::size_t lead = item_.offset - from;
  text.clear();
  text.resize(lead + item_.size);
  const long got = item_.handle->read(from, text.data(), text.size());
  text.resize(static_cast<std::size_t>(std::max(got, 0L)));
  item_.damage.bytes_read += text.size() - std::min(lead, text.size());
  std::size_t begin = 0;
  if (lead != 0) {
    const std::size_t first = text.view().find('\n');
    // A line that began earlier goes on to the end: its owner has it.
    begin = first == std::string_view::npos ? text.size() : first + 1;
  }
  if (begin < text.size() && text.view().back() != '\n') {
    // The rest of the last line lies beyond.
    std::uint64_t at = from + text.size();
    for (;;) {
      const std::size_t before = text.size();
      text.resize(before + kMore);
      const long more = item_.handle->read(at, text.data() + before, kMore);
      const auto size = static_cast<std::size_t>(std::max(more, 0L));
      const std::size_t stop = std::string_view(text.data() + before, size).find('\n');
      text.resize(before + (stop == std::string_view::npos ? size : stop + 1));
      at += size;
      if (stop != std::string_view::npos || size == 0) break;
      if (text.size() > kMaxLine) {
        const std::size_t last = text.view().rfind('\n') + 1;
        item_.damage.note(
            {Trouble::kLongLine, file().index, ordinal(), from + last, 0, text.size() - last, {}});
        text.resize(std::max(last, begin));
        break;
      }
    }
  }
  std::memmove(text.data(), text.data() + begin, text.size() - begin);
  text.resize(text.size() - begin);
  item_.offset = from + begin;
}

std::uint64_t Block::offset_of(const char* at) const {
  const auto place = static_cast<std::size_t>(at - text().data());
  if (item_.content == WorkItem::Content::kRange) return item_.offset + place;
  if (!file().compressed) return item_.offset + place;
  std::uint64_t found = item_.offset;
  for (const MemberMark& mark : marks_) {
    if (mark.text > place) break;
    found = mark.offset;
  }
  return found;
}

void Block::note(Trouble kind, const char* at, std::uint64_t line, std::uint64_t size,
                 std::string detail) {
  item_.damage.note({kind, file().index, ordinal(), offset_of(at), line, size, std::move(detail)});
}

bool Block::accept(Event& event, std::uint64_t line) {
  if ((event.has & kHasName) == 0 && event.phase == kNoPhase) {
    note(Trouble::kNotARecord, event.line.data(), line, event.line.size(),
         excerpt(event.line.data(), event.line.data() + event.line.size()));
    ++unusable_;
    return false;
  }
  event.valid_utf8 = utf8_ || is_utf8(event.line);
  if (!event.valid_utf8) note(Trouble::kBadText, event.line.data(), line, event.line.size());
  if (is_half(event.phase) && !whole(event, line)) return false;
  count(event);
  return true;
}

bool Block::whole(Event& event, std::uint64_t line) {
  if (leave_halves_ || file().pairs == nullptr) return true;
  const Pairs::Match match = file().pairs->of(file()).find(ordinal(), halves_++);
  if (match.fate == Pairs::Fate::kTaken) {
    ++item_.damage.records;
    ++item_.damage.ends;
    return false;
  }
  if (match.fate == Pairs::Fate::kAlone) {
    note(Trouble::kUnpaired, event.line.data(), line, event.line.size(),
         excerpt(event.line.data(), event.line.data() + event.line.size()));
    return true;
  }
  event.phase = 'X';
  event.dur = match.dur;
  event.has |= kHasDur;
  if (match.arguments == nullptr) return true;
  const std::string_view mine = event.args.empty() ? std::string_view("{}") : event.args_text;
  both_.assign(mine.substr(0, mine.size() - 1));
  if (!event.args.empty()) both_ += ',';
  both_.append(*match.arguments, 1);
  const std::size_t size = both_.size();
  both_.append(kPadding, '\0');
  event.args_text = {both_.data(), size};
  event.args = members_of_any(event.args_text, both_fields_);
  event.valid_utf8 = event.valid_utf8 && is_utf8(event.args_text);
  return true;
}

// A line that the fast path did not know: brackets, blanks, commas, several objects, damage.
const char* Block::other_line_records(const char* p, const char* end, std::uint64_t line,
                                      void* context, OnRecord on_record) {
  const char* eol = line_end(p, end);
  const auto gap = [eol](const char* at) {
    while (at < eol && (*at == ' ' || *at == '\t' || *at == '\r' || *at == ',')) ++at;
    return at;
  };
  const char* first = gap(p);
  const char* at = first;
  if (at < eol && *at == '[') at = gap(at + 1);
  Event event;
  while (at < eol && *at != ']') {
    const char* stop = *at == '{' ? parser_.general(at, event) : nullptr;
    if (stop == nullptr || stop > eol) {
      // Some tracers cut a long record and write the next one behind it: that one can be had.
      for (const char* next = at + 1; next < eol; ++next) {
        next =
            static_cast<const char*>(std::memchr(next, '{', static_cast<std::size_t>(eol - next)));
        if (next == nullptr) break;
        if (next[1] != '"') continue;
        stop = parser_.general(next, event);
        if (stop != nullptr && stop <= eol && gap(stop) == eol && (event.has & kHasName) != 0 &&
            (event.has & kHasPid) != 0) {
          if (accept(event, line)) on_record(context, event, line);
          break;
        }
      }
      ++unusable_;
      // Half a line is what the end of a file that was cut looks like.
      note(eol == end ? Trouble::kCutLine : Trouble::kBadLine, at, line,
           static_cast<std::uint64_t>(eol - at), excerpt(at, eol));
      break;
    }
    if (accept(event, line)) on_record(context, event, line);
    at = gap(stop);
  }
  // Behind a closing bracket nothing may stand, but another file's opening one.
  if (at < eol && *at == ']' && gap(at + 1) < eol) {
    note(Trouble::kBadLine, at, line, static_cast<std::uint64_t>(eol - at), excerpt(at, eol));
    ++unusable_;
  }
  return eol + 1;
}

void Block::document_records(void* context, OnRecord on_record) {
  const char* p = text().data();
  const char* end = p + text().size();
  const char* counted = p;
  std::uint64_t line = 0;
  Event event;
  parser_.begin(file().clock);
  const auto line_of = [&](const char* at) {
    line += static_cast<std::uint64_t>(std::count(counted, at, '\n'));
    counted = at;
    return line;
  };
  for (;;) {
    while (p < end && (*p == ' ' || *p == '\n' || *p == '\t' || *p == '\r' || *p == ',')) ++p;
    if (p >= end) break;
    const char* stop = *p == '{' ? parser_.general(p, event) : nullptr;
    if (stop != nullptr && stop <= end) {
      const std::uint64_t here = line_of(p);
      if (accept(event, here)) on_record(context, event, here);
      p = stop;
      continue;
    }
    // Goes on at the next line that begins with a brace.
    const char* from = p;
    do {
      p = line_end(p, end);
      while (p < end && (*p == ' ' || *p == '\n' || *p == '\t' || *p == '\r')) ++p;
    } while (p < end && *p != '{');
    ++unusable_;
    note(p >= end ? Trouble::kCutLine : Trouble::kBadLine, from, line_of(from),
         static_cast<std::uint64_t>(p - from), excerpt(from, p));
  }
  item_.damage.lines += line_of(end);
}

void Block::finish() {
  if (!check_ || item_.damage.records + unusable_ == expected_) return;
  item_.damage.note(
      {Trouble::kWrongCount, file().index, ordinal(), item_.offset, 0, item_.size,
       std::to_string(item_.damage.records + unusable_) + " of " + std::to_string(expected_)});
}

}  // namespace dft::reader
