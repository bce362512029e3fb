// The probes around a fake of the real function: what is called, counted and recorded for each kind of
// subject. The trace is written by a sink and read back as text.
#include "intercept/probe.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <span>
#include <string>

#include "intercept/filter.hpp"
#include "support/recording.hpp"

using namespace dft::intercept;  // NOLINT: as the wrappers do
namespace buffer = dft::buffer;

namespace {

constexpr auto kPosix = Category::POSIX;

// Interception of POSIX within one directory, around a recording.
class Probing {
 public:
  explicit Probing(bool details = true) : filter_({directory()}, "/") {
    REQUIRE(intern_ids());
    REQUIRE(set_filter(&filter_));
    for (RowState& row : rows()) {
      row.shape[0].store(0);
      row.shape[1].store(0);
      row.name.store(0);
    }
    g_details.store(details);
    g_decided.store(true);
    g_watched[static_cast<std::size_t>(kPosix)].store(true);
    before_ = buffer::sum_tallies();
  }
  ~Probing() {
    g_watched[static_cast<std::size_t>(kPosix)].store(false);
    g_details.store(true);
    static const Filter kAll({}, "/");  // outlives the test: the table of files keeps it
    set_filter(&kAll);
  }
  Probing(const Probing&) = delete;
  Probing& operator=(const Probing&) = delete;

  std::string path(const char* name) { return directory() + "/" + name; }
  std::string trace() {
    REQUIRE(recording_.sink().drain(dft::sink::Sink::Scope::kEverything));
    return fixture::read_file(path("t.pfw"));
  }
  buffer::TallySums counted() {
    const buffer::TallySums now = buffer::sum_tallies();
    return {now.calls - before_.calls, now.filtered - before_.filtered, now.read - before_.read,
            now.written - before_.written};
  }

 private:
  std::string directory() { return recording_.directory().path(); }
  static std::span<RowState> rows() { return {g_row_state, kRows}; }

  fixture::Recording recording_;
  Filter filter_;
  buffer::TallySums before_{};
};

constexpr auto kNothing = [](auto) { return moves_nothing(); };

// A descriptor of the directory that is traced, or of one that is not.
class Opened {
 public:
  explicit Opened(const std::string& path) : fd_(::open(path.c_str(), O_RDWR | O_CREAT, 0600)) {
    REQUIRE(fd_ >= 0);
    set_file_of(fd_, nullptr);
  }
  ~Opened() {
    set_file_of(fd_, nullptr);
    ::close(fd_);
  }
  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;
  [[nodiscard]] int fd() const { return fd_; }

 private:
  int fd_;
};

std::size_t occurrences(const std::string& text, const std::string& what) {
  std::size_t count = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1))
    ++count;
  return count;
}

}  // namespace

TEST_CASE("a call on a descriptor is made once, counted and recorded with its arguments") {
  Probing probing;
  const Opened file(probing.path("data.bin"));
  int calls = 0;
  // The first makes the general record and interns the shape, the second takes the short one.
  for (int i = 0; i < 2; ++i) {
    const ssize_t ret = probe<OwnRow::read, kPosix>(
        on_fd(file.fd()),
        [&] {
          ++calls;
          return ssize_t{4096};
        },
        [](ssize_t n) { return reads(n); }, [](ssize_t) { return field(Key::count, 8192); });
    CHECK(ret == 4096);
  }
  CHECK(calls == 2);
  CHECK(probing.counted().calls == 2);
  CHECK(probing.counted().read == 8192);
  const std::string trace = probing.trace();
  CHECK(occurrences(trace, "\"name\":\"read\"") == 2);
  CHECK(occurrences(trace, "\"count\":8192,\"ret\":4096") == 2);
  CHECK(occurrences(trace, probing.path("data.bin")) == 1);  // its hash is announced once
}

TEST_CASE("a failed call is recorded with errno, which stays as the call left it") {
  Probing probing;
  const Opened file(probing.path("data.bin"));
  const ssize_t ret = probe<OwnRow::write, kPosix>(
      on_fd(file.fd()),
      [] {
        errno = ENOSPC;
        return ssize_t{-1};
      },
      [](ssize_t n) { return writes(n); }, [](ssize_t) { return field(Key::count, 10); });
  CHECK(ret == -1);
  CHECK(errno == ENOSPC);
  CHECK(probing.counted().written == 0);
  CHECK(probing.trace().find("\"ret\":-1,\"errno\":28") != std::string::npos);
}

TEST_CASE("a call on a file outside the traced directories is counted, not recorded") {
  Probing probing;
  const Opened file("/tmp/probe_test.outside");
  probe<OwnRow::read, kPosix>(
      on_fd(file.fd()), [] { return ssize_t{100}; }, [](ssize_t n) { return reads(n); });
  CHECK(probing.counted().calls == 1);
  CHECK(probing.counted().filtered == 1);
  CHECK(probing.counted().read == 100);
  CHECK(probing.trace().find("\"read\"") == std::string::npos);
  ::unlink("/tmp/probe_test.outside");
}

TEST_CASE("a category that is off, and the tracer's own calls, pass untouched") {
  Probing probing;
  const Opened file(probing.path("data.bin"));
  const auto call = [&] {
    return probe<OwnRow::fsync, kPosix>(on_fd(file.fd()), [] { return 7; }, kNothing);
  };
  g_watched[static_cast<std::size_t>(kPosix)].store(false);
  CHECK(call() == 7);
  g_watched[static_cast<std::size_t>(kPosix)].store(true);
  {
    const dft::SlowPath slow;
    CHECK(call() == 7);
  }
  CHECK(probing.counted().calls == 0);
  CHECK(call() == 7);
  CHECK(occurrences(probing.trace(), "\"fsync\"") == 1);
}

TEST_CASE("a path is read only if the kernel accepted the pointer") {
  Probing probing;
  const std::string path = probing.path("made");
  probe<OwnRow::mkdir, kPosix>(
      on_path(path.c_str()), [] { return 0; }, kNothing, [](int) { return field(Key::mode, 448); });
  const char* bad = reinterpret_cast<const char*>(std::uintptr_t{1});
  probe<OwnRow::rmdir, kPosix>(
      on_path(bad),
      [] {
        errno = EFAULT;
        return -1;
      },
      kNothing);
  const std::string trace = probing.trace();
  CHECK(trace.find(path) != std::string::npos);
  CHECK(trace.find("\"mode\":448") != std::string::npos);
}

TEST_CASE("a call on two paths is recorded if either is traced") {
  Probing probing;
  const std::string inside = probing.path("b");
  const auto call = [](const char* from, const char* to) {
    probe<OwnRow::rename, kPosix>(
        on_paths(kCwd, from, kCwd, to), [] { return 0; }, kNothing,
        [to](int) { return SecondPath{Key::newpath_hash, kCwd, to}; });
  };
  call("/outside/a", inside.c_str());
  call("/outside/a", "/outside/b");
  const std::string trace = probing.trace();
  CHECK(occurrences(trace, "\"name\":\"rename\"") == 1);
  CHECK(trace.find("newpath_hash") != std::string::npos);
  CHECK(probing.counted().filtered == 1);
}

TEST_CASE("without details a call is recorded with its file and nothing else") {
  Probing probing(false);
  const Opened file(probing.path("data.bin"));
  probe<OwnRow::read, kPosix>(
      on_fd(file.fd()), [] { return ssize_t{5}; }, [](ssize_t n) { return reads(n); },
      [](ssize_t) { return field(Key::count, 5); });
  const std::string trace = probing.trace();
  CHECK(occurrences(trace, "\"name\":\"read\"") == 1);
  CHECK(trace.find("\"count\"") == std::string::npos);
  CHECK(trace.find("fhash") != std::string::npos);
}

TEST_CASE("results mean what their types say") {
  CHECK(has_failed(-1));
  CHECK_FALSE(has_failed(0));
  CHECK(has_failed(static_cast<FILE*>(nullptr)));
  CHECK_FALSE(has_failed(static_cast<LineResult>(nullptr)));
  CHECK_FALSE(has_failed(static_cast<CharResult>(EOF)));
  CHECK(has_failed(static_cast<WriteResult>(EOF)));
  CHECK(reads(-1).read == 0);
  CHECK(both_ways(7).read == 7);
  CHECK(both_ways(7).written == 7);
  CHECK(uncounted(7).written == 0);
  off_t offset = 100;
  CHECK(began_at(Key::off_in, &offset, 40).value == 60);
  CHECK_FALSE(began_at(Key::off_in, &offset, -1).given);
  CHECK_FALSE(began_at(Key::off_in, nullptr, 40).given);
}
