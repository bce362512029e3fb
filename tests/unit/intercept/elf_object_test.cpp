#include "intercept/elf_object.hpp"

#include <dlfcn.h>

#include "intercept/wrapper_list.hpp"
#include "support/fixture.hpp"

using dft::intercept::describe_libc;
using dft::intercept::is_same;
using dft::intercept::kRows;
using dft::intercept::kWrappers;
using dft::intercept::Object;

TEST_CASE("object: the functions of libc are those that the loader finds in it") {
  Object libc;
  REQUIRE(describe_libc(_r_debug.r_map, libc));
  void* handle = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
  REQUIRE(handle != nullptr);
  std::size_t found = 0;
  for (std::size_t row = 0; row < kRows; ++row) {
    const char* symbol = kWrappers[row].symbol;
    CAPTURE(symbol);
    void* expected = dlsym(handle, symbol);
    Dl_info info{};
    // What libc gets from others is not its own.
    if (expected != nullptr && dladdr(expected, &info) != 0 &&
        info.dli_fbase != reinterpret_cast<void*>(libc.base))
      continue;
    CHECK(libc.function(symbol) == expected);
    found += expected != nullptr ? 1 : 0;
  }
  CHECK(found > 300);
  dlclose(handle);
}

TEST_CASE("object: a name that libc does not have, or has as something else than a function") {
  Object libc;
  REQUIRE(describe_libc(_r_debug.r_map, libc));
  for (const char* name : {"no_such_function", "", "rea", "reads", "stdout", "environ"}) {
    CAPTURE(name);
    CHECK(libc.function(name) == nullptr);
  }
}

TEST_CASE("object: text is compared to its end") {
  CHECK(is_same("", ""));
  CHECK(is_same("read", "read"));
  CHECK_FALSE(is_same("read", "readv"));
  CHECK_FALSE(is_same("readv", "read"));
  CHECK_FALSE(is_same("", "r"));
}
