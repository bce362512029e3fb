// The spool of a running process, for `dftracer top` (python/dftracer/_libcore.py). Passed as text,
// because Python reads the same lines from trace files.
#include "api/export.hpp"
#include "recovery/peek.hpp"

#include <algorithm>
#include <cstring>

#include "record/clock.hpp"

// Fills `lines` with as many of the newest whole lines as fit after the opening records, ended by a
// zero byte. 0, or errno.
DFT_EXPORT int dftracer_peek(const char* directory, const char* name, dft::recovery::Peeked* out,
                             char* lines, std::size_t room) {
  dft::record::choose_clock();
  dft::sink::MmapBuffer text;
  const int error = dft::recovery::peek(directory, name, *out, text);
  if (room == 0) return -error;
  lines[0] = '\0';
  if (error != 0 || out->opening >= room) return -error;
  const std::string_view all = text.view();
  std::string_view rest = all.substr(out->opening);
  if (out->opening + rest.size() >= room) {
    rest = rest.substr(rest.size() - (room - out->opening - 1));
    const std::size_t cut = rest.find('\n');
    rest = cut == std::string_view::npos ? std::string_view() : rest.substr(cut + 1);
  }
  std::memcpy(lines, all.data(), out->opening);
  std::memcpy(lines + out->opening, rest.data(), rest.size());
  lines[out->opening + rest.size()] = '\0';
  return 0;
}
