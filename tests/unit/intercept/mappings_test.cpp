#include "intercept/mappings.hpp"

#include <doctest/doctest.h>

using namespace dft::intercept;  // NOLINT

namespace {

void* at(std::uintptr_t address) { return reinterpret_cast<void*>(address); }

}  // namespace

TEST_CASE("an address inside a mapped file is the file's, until it is unmapped") {
  File* file = &g_nameless;
  File* other = &g_elsewhere;
  remember_mapping(at(0x10000), 0x4000, file, 0);
  remember_mapping(at(0x20000), 0x1000, other, 0);
  CHECK(mapped_file(at(0x10000)) == file);
  CHECK(mapped_file(at(0x13fff)) == file);
  CHECK(mapped_file(at(0x14000)) == nullptr);
  CHECK(mapped_file(at(0x20010)) == other);

  forget_mapping(at(0x11000), 0x1000);  // a hole in the middle
  CHECK(mapped_file(at(0x10800)) == file);
  CHECK(mapped_file(at(0x11800)) == nullptr);
  CHECK(mapped_file(at(0x12000)) == file);

  remember_mapping(at(0x12000), 0x1000, other, 0);  // mapped over
  CHECK(mapped_file(at(0x12800)) == other);
  CHECK(mapped_file(at(0x13000)) == file);

  forget_mapping(at(0x10000), 0x20000);
  for (std::uintptr_t address = 0x10000; address < 0x21000; address += 0x800)
    CHECK(mapped_file(at(address)) == nullptr);
}
