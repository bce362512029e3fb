// Native call sites: a return address becomes a module and an offset, once per trace.
#include "intercept/call_site.hpp"

#include <doctest/doctest.h>
#include <gnu/libc-version.h>

#include <string>
#include <vector>

#include "support/recording.hpp"

using namespace dft::intercept;  // NOLINT: as in the other tests
namespace buffer = dft::buffer;

namespace {

class Sites {
 public:
  Sites() { use_sites(true); }
  ~Sites() {
    use_sites(false);
    forget_native_sites();
  }
  Sites(const Sites&) = delete;
  Sites& operator=(const Sites&) = delete;
  buffer::ThreadState& thread() {
    buffer::ThreadState* t = buffer::this_thread();
    REQUIRE(t != nullptr);
    return *t;
  }
  std::string trace() {
    REQUIRE(recording_.sink().drain(dft::sink::Sink::Scope::kEverything));
    return fixture::read_file(recording_.directory() / "t.pfw");
  }

 private:
  fixture::Recording recording_;
};

std::size_t occurrences(const std::string& text, const std::string& what) {
  std::size_t count = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1))
    ++count;
  return count;
}

// In libc, and in no sanitizer: the tracer itself is in the program of the tests, and its own calls have
// no site.
const void* address_of(std::size_t offset) {
  return reinterpret_cast<const char*>(&::gnu_get_libc_version) + offset;
}

}  // namespace

TEST_CASE("a return address is a place in a module, announced once") {
  Sites sites;
  const std::uint64_t hash = site_of(sites.thread(), address_of(4));
  CHECK(hash != 0);
  CHECK(site_of(sites.thread(), address_of(4)) == hash);
  CHECK(site_of(sites.thread(), address_of(5)) != hash);
  const std::string trace = sites.trace();
  CHECK(occurrences(trace, "\"name\":\"SH\"") == 2);
  CHECK(occurrences(trace, "libc.so.6+0x") == 2);
}

TEST_CASE("a call of the tracer itself has no site") {
  Sites sites;
  CHECK(site_of(sites.thread(), reinterpret_cast<const char*>(&occurrences) + 4) == 0);
}

TEST_CASE("an address outside of all modules has no site") {
  Sites sites;
  CHECK(site_of(sites.thread(), reinterpret_cast<const void*>(0x1000)) == 0);
  CHECK(site_of(sites.thread(), reinterpret_cast<const void*>(0x1000)) == 0);
  CHECK(occurrences(sites.trace(), "\"name\":\"SH\"") == 0);
}

TEST_CASE("addresses that share a slot keep their sites apart") {
  Sites sites;
  std::vector<std::uint64_t> found;
  for (int round = 0; round < 2; ++round) {
    for (std::size_t i = 0; i < 200; ++i) {
      const std::uint64_t hash = site_of(sites.thread(), address_of(i + 1));
      CHECK(hash != 0);
      if (round == 0) {
        found.push_back(hash);
      } else {
        CHECK(found[i] == hash);
      }
    }
  }
}

TEST_CASE("switched off, a call has no site") {
  Sites sites;
  use_sites(false);
  CHECK(site_of(sites.thread(), address_of(4)) == 0);
}
