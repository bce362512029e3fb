// Fuzzes the YAML configuration with arbitrary bytes: no crash, no leak, one message per line.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "session/config.hpp"

namespace {

void check_line(void* count, const char* line) {
  if (++*static_cast<int*>(count) > 1000) std::abort();
  if (std::strncmp(line, "dftracer: ", 10) != 0) std::abort();
  for (const char* c = line; *c != '\0'; ++c) {
    if (static_cast<unsigned char>(*c) < 0x20) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  dft::session::Config config;
  int lines = 0;
  dft::session::apply_yaml(config, {reinterpret_cast<const char*>(data), size}, "fuzz.yaml",
                           check_line, &lines);
  // The trace is opened under these names: whatever the file contains, they have no inner NUL.
  if (config.log_file.find('\0') != config.log_file.npos || config.log_file.empty()) std::abort();
  if (config.compression_level > 3 || config.write_buffer_size > 64U << 20) std::abort();
  return 0;
}
