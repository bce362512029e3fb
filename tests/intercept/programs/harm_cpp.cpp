// C++: exceptions that pass through intercepted calls, streams, and thread-local objects whose
// destructors do I/O.
#include "harm.h"

#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

int data_file;

struct Closing {
  int who;
  ~Closing() { marks(data_file, who, 10, 20); }
};

void exceptions() {
  int caught = 0;
  for (int i = 0; i < 100; ++i) {
    try {
      marks(data_file, 1000, i, i + 1);
      if (open("nothing", O_RDONLY) < 0) {
        throw std::runtime_error("no file");
      }
    } catch (const std::runtime_error& error) {
      marks(data_file, 1001, i, i + 1);
      ++caught;
    }
  }
  say("caught %d", caught);
  try {
    std::ifstream file;
    file.exceptions(std::ios::failbit);
    file.open("nothing");
  } catch (const std::ios_base::failure&) {
    say("stream failed");
  }
  try {
    for (const auto& entry : std::filesystem::directory_iterator("nothing")) {
      (void)entry;
    }
  } catch (const std::filesystem::filesystem_error& error) {
    say("directory failed %d", error.code().value());
  }
}

// Through a call that calls back. The frames of libc and of a wrapper lie between throw and catch.
int throw_at_third(const char*, const struct stat*, int, struct FTW*) {
  static int seen;
  marks(data_file, 1002, seen, seen + 1);
  if (++seen == 3) {
    throw seen;
  }
  return 0;
}

void through_callbacks() {
  try {
    nftw(".", throw_at_third, 8, FTW_PHYS);
    say("not thrown");
  } catch (int seen) {
    say("thrown at %d", seen);
  }
  marks(data_file, 1003, 0, 10);
}

void streams() {
  {
    std::ofstream out("streamed");
    for (int i = 0; i < 1000; ++i) {
      out << "line " << i << ' ' << 1.5 * i << '\n';
    }
  }
  std::ifstream in("streamed");
  std::string line;
  int count = 0;
  while (std::getline(in, line)) {
    ++count;
  }
  say("%d lines, last %s", count, line.c_str());
  std::filesystem::copy_file("streamed", "copied");
  say("%ju bytes", std::filesystem::file_size("copied"));
  std::filesystem::create_directories("a/b/c");
  std::filesystem::rename("copied", "a/b/moved");
  say("%ju removed", std::filesystem::remove_all("a"));
}

void thread_locals() {
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([i] {
      thread_local Closing closing{1100 + i};
      if (i % 2) {  // of the others, the destructor's calls are the first of their thread
        marks(data_file, 1100 + i, 0, 10);
      }
      (void)closing.who;
    });
  }
  for (auto& thread : threads) {
    thread.join();
  }
}

// Constructed before main and destroyed after it.
struct Static {
  Static() {
    const int fd = open("data", O_RDONLY);
    marks(fd, 1200, 0, 10);
    close(fd);
  }
  ~Static() { marks(data_file, 1200, 10, 20); }
} static_object;

}  // namespace

int main() {
  data_file = open("data", O_RDONLY);
  exceptions();
  streams();
  through_callbacks();
  thread_locals();
  std::cout << "end " << 2.5 << std::endl;
  return 0;
}
