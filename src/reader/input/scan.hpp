// Scans the blocks of a trace on several threads, in any order or with results in the order of the
// files. Statistics, Arrow, exports and writers of traces are built on this.
#pragma once
#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "reader/input/block.hpp"

namespace dft::reader {

unsigned default_threads();

// Progress and cancellation of a scan, shared with the thread that started it.
struct Control {
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> bytes{0};  // of files, read so far
};

// Thrown by a scan whose Control::stop was set.
struct Stopped : std::exception {
  [[nodiscard]] const char* what() const noexcept override { return "stopped"; }
};

// Files and what was found in them, with lines counted from the file's beginning.
struct ScanResult {
  std::vector<std::shared_ptr<InFile>> files;
  std::vector<Damage> damages;  // one a file
  Damage total;
};

// Adds up the reports of blocks as they come, in any order.
class Ledger {
 public:
  void add(const Block& block);
  ScanResult close(const std::vector<std::shared_ptr<InFile>>& files);

 private:
  struct FileBook {
    Damage damage;
    std::vector<std::uint32_t> lines;  // of each block
  };
  std::mutex mutex_;
  std::map<std::uint32_t, FileBook> files_;
};

// Calls visit(worker, block) for every block, on `threads` threads (0: one a core), in no order.
// The visitor goes through block.records(); the blocks of one worker come one after the other. An
// exception of a visitor ends it and is thrown again.
ScanResult scan(const std::vector<std::string>& paths, unsigned threads,
                const std::function<void(unsigned worker, Block& block)>& visit,
                Control* control = nullptr);

// Calls make(worker, block) for every block, on several threads, and hands out what it returns in
// the order of the files and their blocks. At most a few results wait, so memory stays bounded
// however slowly they are taken.
template <typename Result>
class OrderedScan {
 public:
  using Make = std::function<Result(unsigned worker, Block& block)>;

  OrderedScan(const std::vector<std::string>& paths, unsigned threads, Make make,
              Control* control = nullptr, const std::vector<std::uint64_t>& most = {})
      : queue_(paths, true, most), make_(std::move(make)), control_(control) {
    if (threads == 0) threads = default_threads();
    window_ = threads * 2;
    running_ = threads;
    for (unsigned i = 0; i < threads; ++i) workers_.emplace_back([this, i] { work(i); });
  }
  ~OrderedScan() {
    {
      const std::lock_guard lock(mutex_);
      stopped_ = true;
    }
    changed_.notify_all();
    for (std::thread& worker : workers_) worker.join();
  }
  OrderedScan(const OrderedScan&) = delete;
  OrderedScan& operator=(const OrderedScan&) = delete;

  // The next result, nullopt after the last. Throws what a worker threw.
  std::optional<Result> next() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] {
      return (!ready_.empty() && ready_.begin()->first == wanted_) || running_ == 0;
    });
    if (failure_) std::rethrow_exception(failure_);
    if (ready_.empty()) return std::nullopt;
    Result result = std::move(ready_.begin()->second);
    ready_.erase(ready_.begin());
    ++wanted_;
    lock.unlock();
    changed_.notify_all();
    return result;
  }
  // After the last result.
  ScanResult result() { return ledger_.close(queue_.files()); }
  [[nodiscard]] std::vector<std::shared_ptr<InFile>> files() const { return queue_.files(); }

 private:
  void work(unsigned index) {
    try {
      Block block;
      for (;;) {
        std::uint64_t number = 0;
        {
          // Taking a piece and its number is one step, or the order would be lost.
          std::unique_lock turn(taking_);
          {
            std::unique_lock lock(mutex_);
            changed_.wait(lock, [this] { return stopped_ || handed_ < wanted_ + window_; });
            if (stopped_) break;
          }
          if (!queue_.next(block.item())) break;
          const std::lock_guard lock(mutex_);
          number = handed_++;
        }
        block.load();
        Result result = make_(index, block);
        ledger_.add(block);
        if (control_ != nullptr) {
          control_->bytes += block.damage().bytes_read;
          if (control_->stop) throw Stopped();
        }
        {
          const std::lock_guard lock(mutex_);
          ready_.emplace(number, std::move(result));
        }
        changed_.notify_all();
      }
    } catch (...) {
      const std::lock_guard lock(mutex_);
      failure_ = std::current_exception();
      stopped_ = true;
    }
    {
      const std::lock_guard lock(mutex_);
      --running_;
    }
    changed_.notify_all();
  }

  WorkQueue queue_;
  Make make_;
  Control* control_;
  Ledger ledger_;
  std::mutex taking_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::uint64_t, Result> ready_;
  std::uint64_t handed_ = 0;
  std::uint64_t wanted_ = 0;
  unsigned window_ = 0;
  unsigned running_ = 0;
  bool stopped_ = false;
  std::exception_ptr failure_;
  std::vector<std::thread> workers_;
};

}  // namespace dft::reader
