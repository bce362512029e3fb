#include "recovery/owner.hpp"

#include <sys/prctl.h>
#include <sys/utsname.h>

#include <memory>
#include <thread>

#include "support/fixture.hpp"

using dft::buffer::Owner;
using dft::buffer::Spool;
using dft::recovery::describe_self;
using dft::recovery::Life;
using dft::recovery::life_of;
using dft::recovery::process_key;
using fixture::TemporaryDirectory;

namespace {

// A process that has a spool mapped and waits to be killed. Describes itself in shared memory.
class SpoolOwner {
 public:
  explicit SpoolOwner(const char* spool = ".a.pfw.spool") : spool_(spool) {
    shared_ = static_cast<Shared*>(
        ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    pid_ = fixture::start_child([this] {
      int error = 0;
      if (Spool::create((directory_ / spool_).c_str(), 100, &error) == nullptr) return 1;
      describe_self(shared_->owner);
      shared_->ready.store(1);
      for (;;) ::pause();
    });
    while (shared_->ready.load() == 0) std::this_thread::yield();
  }
  ~SpoolOwner() {
    end(true);
    ::munmap(shared_, sizeof(Shared));
  }
  void end(bool reap) {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    siginfo_t info{};
    ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | (reap ? 0 : WNOWAIT));
    if (reap) pid_ = 0;
  }
  Owner& owner() { return shared_->owner; }
  Life life() { return life_of(owner(), spool_, spool_); }

 private:
  struct Shared {
    Owner owner;
    std::atomic<int> ready;
  };
  TemporaryDirectory directory_;
  const char* spool_;
  Shared* shared_ = nullptr;
  pid_t pid_ = 0;
};

}  // namespace

TEST_CASE("a process describes itself") {
  Owner owner{};
  describe_self(owner);
  utsname name{};
  ::uname(&name);
  CHECK(std::string(owner.host) == name.nodename);
  CHECK(std::string(owner.boot).size() == 36);
  CHECK(owner.pid == static_cast<std::uint32_t>(::getpid()));
  CHECK(owner.user == ::geteuid());
  CHECK(owner.pid_namespace != 0);
  CHECK(owner.start_time != 0);
  Owner again{};
  describe_self(again);
  CHECK(std::memcmp(&owner, &again, sizeof owner) == 0);
}

TEST_CASE("an odd process name does not break the parsing of its times") {
  Owner before{};
  describe_self(before);
  char old[16] = {};
  ::prctl(PR_GET_NAME, old);
  for (const char* name : {") R 1 1", "a b) (c", "\n\n)", ")"}) {
    ::prctl(PR_SET_NAME, name);
    Owner owner{};
    describe_self(owner);
    CHECK(owner.start_time == before.start_time);
  }
  ::prctl(PR_SET_NAME, old);
}

TEST_CASE("the key is the same for all images of a process, and different for another") {
  SpoolOwner process;
  Owner self{};
  describe_self(self);
  CHECK(process_key(self) == process_key(self));
  CHECK(process_key(self) != process_key(process.owner()));
  for (const auto change : {0, 1, 2, 3, 4}) {
    Owner other = self;
    if (change == 0) other.host[0] ^= 1;
    if (change == 1) other.boot[0] ^= 1;
    if (change == 2) ++other.pid_namespace;
    if (change == 3) ++other.pid;
    if (change == 4) ++other.start_time;
    CHECK(process_key(other) != process_key(self));
  }
  Owner endless{};  // from a hostile file: the longest strings
  std::memset(&endless, 'x', sizeof endless);
  endless.host[255] = endless.boot[39] = '\0';
  CHECK(process_key(endless) != 0);
}

TEST_CASE("a running process that has its spool mapped is alive") {
  SpoolOwner process;
  CHECK(process.life() == Life::kRuns);
  // Also under the name that the file had when it was mapped.
  CHECK(life_of(process.owner(), "renamed.spool", ".a.pfw.spool") == Life::kRuns);
  CHECK(life_of(process.owner(), ".a.pfw.spool", "passing") == Life::kRuns);
}

TEST_CASE("a process that called exec is no longer the owner") {
  SpoolOwner process;
  CHECK(life_of(process.owner(), ".other.spool", ".other.spool") == Life::kGone);
  // Part of a mapped file's name is not its name.
  CHECK(life_of(process.owner(), ".a.pfw.spo", ".a.pfw.spo") == Life::kGone);
  CHECK(life_of(process.owner(), "pfw.spool", "pfw.spool") == Life::kGone);
}

TEST_CASE("a mapped file is found although its directory contains its name") {
  // The first occurrence of the name is then not at the end of the line.
  const TemporaryDirectory directory;
  REQUIRE(::mkdir((directory / ".a.pfw.spool-dir").c_str(), 0700) == 0);
  REQUIRE(::mkdir((directory / "x").c_str(), 0700) == 0);
  int error = 0;
  Spool* near = Spool::create((directory / ".a.pfw.spool-dir/.a.pfw.spool").c_str(), 100, &error);
  REQUIRE(near != nullptr);
  Owner self{};
  describe_self(self);
  CHECK(life_of(self, ".a.pfw.spool", ".a.pfw.spool") == Life::kRuns);
  near->retire(true);
}

TEST_CASE("a mapped file is found whatever characters are in its name") {
  for (const char* name :
       {".a b.pfw.spool", ".a\nb.pfw.spool", ".a\\b.pfw.spool", ".\xff.pfw.spool"}) {
    CAPTURE(std::string(name));
    SpoolOwner process(name);
    CHECK(process.life() == Life::kRuns);
  }
}

TEST_CASE("a mapped file is found in long maps") {
  SpoolOwner process;
  // This process's own maps, with many lines before and after.
  const TemporaryDirectory directory;
  std::vector<Spool*> spools;
  for (int i = 0; i < 300; ++i) {
    int error = 0;
    spools.push_back(
        Spool::create((directory / (".s" + std::to_string(i) + ".spool")).c_str(), 100, &error));
    REQUIRE(spools.back() != nullptr);
  }
  Owner self{};
  describe_self(self);
  for (int i = 0; i < 300; i += 7) {
    const std::string name = ".s" + std::to_string(i) + ".spool";
    CHECK(life_of(self, name.c_str(), name.c_str()) == Life::kRuns);
  }
  CHECK(life_of(self, ".s300.spool", ".s300.spool") == Life::kGone);
  for (Spool* spool : spools) spool->retire(true);
}

TEST_CASE("a killed process is gone, reaped or not") {
  SpoolOwner process;
  process.end(false);
  CHECK(process.life() == Life::kGone);  // a zombie
  process.end(true);
  CHECK(process.life() == Life::kGone);
}

TEST_CASE("a reused pid is not the owner") {
  SpoolOwner process;
  Owner owner = process.owner();
  owner.start_time -= 1;
  CHECK(life_of(owner, ".a.pfw.spool", ".a.pfw.spool") == Life::kGone);
}

TEST_CASE("an earlier boot of this host is gone, another host is unknown") {
  SpoolOwner process;
  Owner owner = process.owner();
  owner.boot[0] = owner.boot[0] == 'a' ? 'b' : 'a';
  CHECK(life_of(owner, ".a.pfw.spool", ".a.pfw.spool") == Life::kGone);
  std::strcpy(owner.host, "elsewhere");
  CHECK(life_of(owner, ".a.pfw.spool", ".a.pfw.spool") == Life::kCannotTell);
  owner.boot[0] = '\0';  // it could not read its boot id
  CHECK(life_of(owner, ".a.pfw.spool", ".a.pfw.spool") == Life::kCannotTell);
}

TEST_CASE("another pid namespace is unknown") {
  SpoolOwner process;
  process.end(true);
  Owner owner = process.owner();
  owner.pid_namespace += 1;
  CHECK(life_of(owner, ".a.pfw.spool", ".a.pfw.spool") == Life::kCannotTell);
}

TEST_CASE("without start times an existing pid counts as alive") {
  SpoolOwner process;
  Owner owner = process.owner();
  owner.start_time = 0;
  CHECK(life_of(owner, ".a.pfw.spool", ".a.pfw.spool") == Life::kRuns);
  process.end(true);
  CHECK(life_of(owner, ".a.pfw.spool", ".a.pfw.spool") == Life::kGone);
}

TEST_CASE("impossible pids are gone, and are not passed to kill()") {
  SpoolOwner process;
  for (const std::uint32_t pid : {0u, 0x80000000u, ~0u}) {
    Owner owner = process.owner();
    owner.pid = pid;
    CHECK(life_of(owner, ".a.pfw.spool", ".a.pfw.spool") == Life::kGone);
    owner.start_time = 0;
    CHECK(life_of(owner, ".a.pfw.spool", ".a.pfw.spool") == Life::kGone);
  }
}

TEST_CASE("a process whose first thread has ended still runs") {
  struct Shared {
    Owner owner;
    std::atomic<int> ready;
  };
  auto* shared = static_cast<Shared*>(
      ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  const TemporaryDirectory directory;
  const pid_t pid = fixture::start_child([&] {
    int error = 0;
    if (Spool::create((directory / ".a.pfw.spool").c_str(), 100, &error) == nullptr) return 1;
    describe_self(shared->owner);
    std::thread([&] {
      char stat[64];
      std::snprintf(stat, sizeof stat, "/proc/%d/stat", ::getpid());
      for (;;) {  // until the kernel shows the first thread as ended
        const std::string text = fixture::read_file(stat);
        const std::size_t at = text.rfind(')');
        if (at != text.npos && text.size() > at + 2 && text[at + 2] == 'Z') break;
        std::this_thread::yield();
      }
      shared->ready.store(1);
      for (;;) ::pause();
    }).detach();
    dft::sys::call(SYS_exit, 0);  // ends this thread only
    return 0;
  });
  while (shared->ready.load() == 0) std::this_thread::yield();
  CHECK(life_of(shared->owner, ".a.pfw.spool", ".a.pfw.spool") == Life::kRuns);
  ::kill(pid, SIGKILL);
  fixture::wait_for(pid);
  CHECK(life_of(shared->owner, ".a.pfw.spool", ".a.pfw.spool") == Life::kGone);
  ::munmap(shared, sizeof(Shared));
}
