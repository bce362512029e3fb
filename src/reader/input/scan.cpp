// The unordered scan, and the adding up of damage by file. See scan.hpp.
#include "reader/input/scan.hpp"

#include <sched.h>

#include <algorithm>

namespace dft::reader {

unsigned default_threads() {
  cpu_set_t set;
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return static_cast<unsigned>(std::clamp(CPU_COUNT(&set), 1, 64));
}

void Ledger::add(const Block& block) {
  const Damage& damage = block.damage();
  const std::lock_guard lock(mutex_);
  FileBook& book = files_[block.file().index];
  book.damage.add(damage);
  if (book.lines.size() <= block.ordinal()) book.lines.resize(block.ordinal() + 1);
  book.lines[block.ordinal()] = static_cast<std::uint32_t>(damage.lines);
}

ScanResult Ledger::close(const std::vector<std::shared_ptr<InFile>>& files) {
  const std::lock_guard lock(mutex_);
  ScanResult out;
  out.files = files;
  out.damages.resize(files.size());
  for (auto& [index, book] : files_) {
    Damage& damage = out.damages[index];
    damage = book.damage;
    // Bytes, and yet nothing that is a record: a stranger.
    if (damage.records == 0 && files[index]->size != 0 && files[index]->error == 0) {
      damage.note({Trouble::kNoRecords, index, 0, 0, 0, files[index]->size, {}});
    }
    std::uint64_t before = 1;
    std::size_t block = 0;
    for (Problem& problem : damage.problems) {  // they stand in the order of their blocks
      for (; block < problem.block && block < book.lines.size(); ++block) {
        before += book.lines[block];
      }
      problem.line += before;
    }
    out.total.add(damage);
  }
  return out;
}

ScanResult scan(const std::vector<std::string>& paths, unsigned threads,
                const std::function<void(unsigned worker, Block& block)>& visit, Control* control) {
  if (threads == 0) threads = default_threads();
  WorkQueue queue(paths, false);
  Ledger ledger;
  std::atomic<bool> failed{false};
  std::exception_ptr failure;
  std::mutex mutex;
  const auto work = [&](unsigned index) {
    try {
      Block block;
      while (!failed && queue.next(block.item())) {
        block.load();
        visit(index, block);
        ledger.add(block);
        if (control == nullptr) continue;
        control->bytes += block.damage().bytes_read;
        if (control->stop) throw Stopped();
      }
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!failed.exchange(true)) failure = std::current_exception();
    }
  };
  std::vector<std::thread> workers;
  for (unsigned i = 1; i < threads; ++i) workers.emplace_back(work, i);
  work(0);
  for (std::thread& worker : workers) worker.join();
  if (failure) std::rethrow_exception(failure);
  return ledger.close(queue.files());
}

}  // namespace dft::reader
