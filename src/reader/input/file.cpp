// Opening of a trace file: is it compressed, lines or a document, which clock, whose records.
// Called by the work queue, under the lock of the file, and by `_reader.probe`.
#include "reader/input/file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "reader/input/inflate.hpp"
#include "reader/parse/parser.hpp"

namespace dft::reader {
namespace {

constexpr std::size_t kProbe = std::size_t{256} << 10;
constexpr std::size_t kStep = std::size_t{1} << 20;

// The value behind the last "key" of the text, as a field.
bool find_value(std::string_view text, std::string_view key, JsonField& field) {
  const std::string quoted = '"' + std::string(key) + '"';
  for (std::size_t at = text.rfind(quoted); at != std::string_view::npos;
       at = at == 0 ? std::string_view::npos : text.rfind(quoted, at - 1)) {
    const char* p = skip_space(text.data() + at + quoted.size());
    if (*p != ':') continue;
    if (scan_value(skip_space(p + 1), field) != nullptr) return true;
  }
  return false;
}

// By content, because a name is easily changed. A first member that has lost its magic is still one
// of several; and what is called .gz and does not begin like text is not read as text.
bool looks_compressed(std::string_view path, std::string_view head) {
  if (format::is_gzip(head)) return true;
  if (find_member(head, 0, false) != std::string_view::npos) return true;
  return path.ends_with(".gz") && !head.empty() &&
         std::string_view("[{ \t\r\n").find(head.front()) == std::string_view::npos;
}

// Is it one JSON document? Then its first object does not end where its first line does.
bool is_document(std::string_view text) {
  const char* p = skip_space(text.data());
  if (*p == '[') p = skip_space(p + 1);
  if (*p != '{') return false;
  const char* end = text.data() + text.size();
  const auto* eol =
      static_cast<const char*>(std::memchr(p, '\n', static_cast<std::size_t>(end - p)));
  if (eol == nullptr) eol = end;
  const std::string_view line(p, static_cast<std::size_t>(eol - p));
  Parser parser;
  Event event;
  const char* stop = parser.general(p, event);
  if (stop != nullptr && stop <= eol) {
    // A whole object on one line may still be the document itself.
    return (event.has & kHasName) == 0 && event.phase == kNoPhase &&
           line.find("\"traceEvents\"") != std::string_view::npos;
  }
  if (stop != nullptr) return true;
  // Not whole within the probe: either a document, or a broken or very long first line.
  if (text.find("\"traceEvents\"") != std::string_view::npos) return true;
  // `{` alone, its members on the next lines. A stray one before a trace in lines has none.
  return line.find(':') == std::string_view::npos && *skip_space(p + 1) == '"';
}

int digits_of(std::string_view metric) {
  if (metric == "NS") return 0;
  if (metric == "MS") return 6;
  if (metric == "SEC" || metric == "S") return 9;
  return 3;
}

// The parser took the start record for microseconds; the unit may stand behind it.
void scale_start(InFile& file) {
  for (int digits = 3; file.started && digits > file.clock.digits; --digits) file.started_ns /= 10;
  for (int digits = 3; file.started && digits < file.clock.digits; ++digits) {
    if (__builtin_mul_overflow(file.started_ns, 10, &file.started_ns)) file.started = false;
  }
}

void read_lines_head(std::string_view text, InFile& file) {
  file.bracket = *skip_space(text.data()) == '[';
  Parser parser;
  Event event;
  while (!text.empty()) {
    const std::size_t eol = std::min(text.find('\n'), text.size() - 1);
    const char* p = skip_blanks(text.data());
    const char* stop = parser.general(p, event);
    text.remove_prefix(eol + 1);
    if (stop == nullptr || stop > text.data()) continue;
    if ((event.has & kHasName) != 0 || event.phase != kNoPhase) file.records = true;
    if (!event.is_own()) continue;
    std::string_view name;
    std::string_view value;
    for (const JsonField& field : event.args) {
      if (field.key == "name") name = field.value;
      if (field.key == "value") value = field.value;
      if (field.key == "hostname" && file.named_host.empty()) file.named_host = field.value;
      if (event.name.raw != "start") continue;
      if (field.key == "run") file.run = field.value;
      if (field.key == "proc") file.process = field.value;
    }
    if (event.name.raw == "start" && !file.started && (event.has & kHasTs) != 0) {
      file.started_ns = event.ts;
      file.started = true;
    }
    file.ours = !file.process.empty();
    if (event.name.raw == "MP") file.merged = true;
    if (event.name.raw == "HH" && file.named_host.empty()) file.named_host = name;
    if (event.name.raw == "CM" && name == "time_metric") file.clock.digits = digits_of(value);
  }
  scale_start(file);
}

bool read_document_facts(std::string_view text, InFile& file) {
  JsonField field;
  // What events have in their arguments is not about the file.
  const std::size_t events = text.find("\"traceEvents\"");
  if (events != std::string_view::npos) {
    const std::string_view before = text.substr(0, events);
    if (find_value(before, "host_name", field) && field.kind == JsonKind::kString) {
      file.host = field.value;
    }
    if (find_value(before, "dftracerMerged", field)) file.merged = true;
  }
  if (find_value(text, "distributedInfo", field) && field.kind == JsonKind::kObject) {
    JsonField rank;
    std::string inner(field.value);
    inner.append(kPadding, '\0');
    if (find_value({inner.data(), field.value.size()}, "rank", rank)) integer_of(rank, file.rank);
  }
  return find_value(text, "baseTimeNanoseconds", field) && integer_of(field, file.clock.base_ns);
}

// Follows a document to its end, for a clock that its writer put there.
void search_whole(InFile& file) {
  Buffer raw;
  Buffer text;
  Inflater inflater;
  std::uint64_t at = 0;
  bool fresh = true;
  std::string_view waiting;
  for (;;) {
    if (waiting.empty()) {
      raw.resize(kStep);
      const long got = file.handle->read(at, raw.data(), kStep);
      if (got <= 0) return;
      raw.resize(static_cast<std::size_t>(got));
      at += static_cast<std::uint64_t>(got);
      waiting = raw.view();
    }
    if (file.compressed) {
      if (fresh) inflater.begin();
      std::size_t used = 0;
      const Inflated result = inflater.piece(waiting, text.size() + kStep, text, used);
      if (result == Inflated::kBad) return;
      fresh = result == Inflated::kWhole;
      waiting.remove_prefix(used);
    } else {
      text.append(waiting);
      waiting = {};
    }
    text.seal();
    if (read_document_facts(text.view(), file)) return;
    // The tail, so that a key on the seam is found.
    constexpr std::size_t kTail = 4096;
    if (text.size() > kTail) {
      std::memmove(text.data(), text.data() + text.size() - kTail, kTail);
      text.resize(kTail);
    }
  }
}

}  // namespace

FileHandle::~FileHandle() {
  if (fd_ >= 0) ::close(fd_);
}

long FileHandle::read(std::uint64_t offset, char* to, std::size_t size) const {
  std::size_t done = 0;
  size = static_cast<std::size_t>(std::min<std::uint64_t>(size, end_ - std::min(offset, end_)));
  while (done < size) {
    const ssize_t got = ::pread(fd_, to + done, size - done, static_cast<off_t>(offset + done));
    if (got == 0) break;
    if (got < 0) {
      if (errno == EINTR) continue;
      return done > 0 ? static_cast<long>(done) : -errno;
    }
    done += static_cast<std::size_t>(got);
  }
  return static_cast<long>(done);
}

bool open_file(InFile& file) {
  const int fd = ::open(file.path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) {
    file.error = errno;
    return false;
  }
  file.handle = std::make_shared<FileHandle>(fd);
  file.pairs = std::make_shared<PairsOnce>();
  struct stat facts{};
  if (::fstat(fd, &facts) != 0) {
    file.error = errno;
    return false;
  }
  if (!S_ISREG(facts.st_mode)) {
    file.error = S_ISDIR(facts.st_mode) ? EISDIR : ESPIPE;
    return false;
  }
  file.size = std::min(static_cast<std::uint64_t>(facts.st_size), file.most);
  file.handle->end_at(file.size);
  Buffer head;
  head.resize(kProbe);
  const long got = file.handle->read(0, head.data(), kProbe);
  if (got < 0) {
    file.error = static_cast<int>(-got);
    return false;
  }
  head.resize(static_cast<std::size_t>(got));
  file.compressed = looks_compressed(file.path, head.view());
  if (file.compressed) {
    Buffer text;
    Inflater inflater;
    inflater.begin();
    std::size_t used = 0;
    std::size_t start = find_member(head.view(), 0, true);
    if (start == std::string_view::npos) start = 0;
    // Damage shows when the file is read; here it only means that less of the head is seen.
    (void)inflater.piece(head.view().substr(start), kProbe, text, used);
    head.swap(text);
  }
  head.seal();
  file.blank = head.view().find_first_not_of("[], \t\r\n") == std::string_view::npos;
  if (is_document(head.view())) {
    file.layout = FileLayout::kDocument;
    file.records = head.view().find("\"ph\"") != std::string_view::npos;
    if (!read_document_facts(head.view(), file)) search_whole(file);
  } else {
    read_lines_head(head.view(), file);
  }
  return true;
}

}  // namespace dft::reader
