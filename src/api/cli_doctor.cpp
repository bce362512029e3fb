// The core's part of `dftracer doctor`, called from python/dftracer/_libcore.py.
#include <sys/auxv.h>

#include <cstddef>
#include <cstdio>
#include <cstring>

#include "api/export.hpp"
#include "record/clock.hpp"
#include "session/config.hpp"

extern char** environ;

// Whether events are timed by the TSC; if not, by clock_gettime.
DFT_EXPORT int dftracer_doctor_counter() {
  dft::record::choose_clock();
  return dft::record::g_counter_clock ? 1 : 0;
}

// The lines that a traced process would print about its settings, as many as fit.
DFT_EXPORT void dftracer_doctor_settings(char* out, std::size_t room) {
  struct LineBuffer {
    char* at;
    char* end;
  } lines{out, out + room};
  *out = '\0';
  dft::session::read_config(
      {environ, ::getauxval(AT_SECURE) != 0},
      [](void* context, const char* line) {
        auto& to = *static_cast<LineBuffer*>(context);
        const std::size_t length = std::strlen(line);
        if (static_cast<std::size_t>(to.end - to.at) < length + 2) return;
        std::memcpy(to.at, line, length);
        to.at += length;
        *to.at++ = '\n';
        *to.at = '\0';
      },
      &lines);
}
