#include "reader/stream.hpp"

#include <cerrno>
#include <map>
#include <optional>
#include <unordered_map>

namespace dft::reader {
namespace {

class EventStream {
 public:
  EventStream(std::vector<std::string> paths, TableOptions options, unsigned threads,
              std::shared_ptr<StreamResult> result)
      : paths_(std::move(paths)),
        options_(std::move(options)),
        threads_(threads == 0 ? default_threads() : threads),
        result_(std::move(result)) {}

  const TableOptions& options() const { return options_; }

  // Nothing at the end.
  std::optional<Batch> next() {
    if (done_) return std::nullopt;
    if (scan_ == nullptr) {
      for (unsigned i = 0; i < threads_; ++i) makers_.emplace_back(options_);
      scan_ = std::make_unique<OrderedScan<Batch>>(
          paths_, threads_, [this](unsigned worker, Block& block) {
            BatchMaker& maker = makers_[worker];
            maker.begin(block.piece().file);
            block.records([&](const Event& event, std::uint64_t) { maker.add(event); });
            return maker.take();
          });
    }
    while (auto batch = scan_->next()) {
      finish(*batch);
      if (batch->rows == 0) continue;
      rows_ += static_cast<std::uint64_t>(batch->rows);
      return batch;
    }
    done_ = true;
    const std::lock_guard lock(result_->mutex);
    result_->outcome = scan_->outcome();
    result_->finished = true;
    result_->rows = rows_;
    result_->unresolved = unresolved_.size();
    scan_.reset();
    return std::nullopt;
  }

  std::string error;

 private:
  struct Known {
    std::int32_t index;
    std::int32_t rank = -1;
    std::string host;  // for showing
  };

  void learn(const Fact& fact) {
    if (fact.what == Fact::What::kHost) hosts_.emplace(fact.key, fact.value);
    strings_.emplace(fact.key, fact.value);
  }

  // All hashes of all files, for traces that explain one after its use, or in another file.
  void learn_all() {
    if (learned_) return;
    learned_ = true;
    std::mutex mutex;
    TableOptions facts_only;
    facts_only.columns = {Col::kId};
    std::vector<BatchMaker> makers(threads_, BatchMaker(facts_only));
    scan(paths_, threads_, [&](unsigned worker, Block& block) {
      BatchMaker& maker = makers[worker];
      maker.begin(block.piece().file);
      block.records([&](const Event& event, std::uint64_t) {
        if (event.is_own()) maker.add(event);
      });
      const Batch batch = maker.take();
      const std::lock_guard lock(mutex);
      for (const Fact& fact : batch.facts) {
        if (fact.what != Fact::What::kRank) learn(fact);
      }
    });
  }

  const std::string* text_of(const std::unordered_map<std::string, std::string>& in,
                             const std::string& hash) {
    auto found = in.find(hash);
    if (found == in.end()) {
      learn_all();
      found = in.find(hash);
    }
    return found == in.end() ? nullptr : &found->second;
  }

  Known& process(const Batch& batch, const ProcessKey& key) {
    const auto file = batch.file->index;
    const auto full = std::make_tuple(file, key.pid, key.host);
    const auto found = processes_.find(full);
    if (found != processes_.end()) return known_[found->second];
    const auto by_pid = std::make_pair(file, key.pid);
    const auto same = pids_.find(by_pid);
    std::size_t index = known_.size();
    if (key.host.empty() && same != pids_.end()) {
      index = same->second;  // names no host: belongs to the process of its number
    } else if (same != pids_.end() && homeless_[same->second]) {
      index = same->second;  // was seen before it named its host
      homeless_[index] = false;
      known_[index].host = key.host;
    } else {
      known_.push_back({static_cast<std::int32_t>(index),
                        static_cast<std::int32_t>(batch.file->rank), key.host});
      homeless_.push_back(key.host.empty());
      pids_.emplace(by_pid, index);
    }
    processes_.emplace(full, index);
    return known_[index];
  }

  void finish(Batch& batch) {
    for (const Fact& fact : batch.facts) {
      if (fact.what != Fact::What::kRank) learn(fact);
    }
    std::vector<std::size_t> local;
    local.reserve(batch.processes.size());
    for (const ProcessKey& key : batch.processes) {
      local.push_back(static_cast<std::size_t>(process(batch, key).index));
    }
    for (const Fact& fact : batch.facts) {
      if (fact.what != Fact::What::kRank) continue;
      std::int64_t rank = -1;
      Field field;
      field.kind = Kind::kString;
      field.value = fact.key;  // of a rank, the value
      if (integer_of(field, rank))
        known_[local[fact.process]].rank = static_cast<std::int32_t>(rank);
    }
    for (std::size_t i = 0; i < batch.columns.size(); ++i) {
      ColumnData& data = batch.data[i];
      switch (batch.columns[i]) {
        case Col::kProcess:
          data.ints.resize(static_cast<std::size_t>(batch.rows));
          for (std::size_t row = 0; row < data.ints.size(); ++row) {
            data.ints[row] =
                static_cast<std::int32_t>(local[static_cast<std::size_t>(batch.process_of[row])]);
          }
          break;
        case Col::kRank:
          finish_rank(batch, local, data);
          break;
        case Col::kHost:
          finish_host(batch, data);
          break;
        case Col::kTrace:
          data.words = batch.file->path;
          if (!is_utf8(data.words)) {
            data.words.clear();
            append_mended(data.words, batch.file->path);
          }
          data.ends = {0, static_cast<std::int32_t>(data.words.size())};
          data.ints.assign(static_cast<std::size_t>(batch.rows), 0);
          break;
        case Col::kFname:
          for (const auto& [text, hashed] : batch.paths) {
            if (!hashed) {
              data.words += text;
            } else if (const std::string* path = text_of(strings_, text); path != nullptr) {
              data.words += *path;
            } else {
              unresolved_.emplace(text, 0);
              data.words += '#';
              data.words += text;
            }
            data.ends.push_back(static_cast<std::int32_t>(data.words.size()));
          }
          break;
        default:
          break;
      }
    }
  }

  void finish_rank(const Batch& batch, const std::vector<std::size_t>& local, ColumnData& data) {
    const auto rows = static_cast<std::size_t>(batch.rows);
    data.ints.resize(rows);
    data.valid.assign((rows + 63) / 64, 0);
    for (std::size_t row = 0; row < rows; ++row) {
      const std::int32_t rank = known_[local[static_cast<std::size_t>(batch.process_of[row])]].rank;
      data.ints[row] = rank;
      if (rank >= 0) {
        data.valid[row / 64] |= std::uint64_t{1} << (row % 64);
      } else {
        ++data.nulls;
      }
    }
  }

  void finish_host(const Batch& batch, ColumnData& data) {
    const auto rows = static_cast<std::size_t>(batch.rows);
    std::vector<bool> there;
    for (const ProcessKey& key : batch.processes) {
      std::string shown = key.host;
      bool named = key.named;
      if (shown.empty()) shown = process(batch, key).host;
      if (!shown.empty() && !named) {
        const std::string* host = text_of(hosts_, shown);
        if (host != nullptr) shown = *host;
      }
      there.push_back(!shown.empty());
      if (!is_utf8(shown)) {
        std::string mended;
        append_mended(mended, shown);
        shown = mended;
      }
      data.words += shown;
      data.ends.push_back(static_cast<std::int32_t>(data.words.size()));
    }
    data.ints = batch.process_of;
    data.valid.assign((rows + 63) / 64, 0);
    for (std::size_t row = 0; row < rows; ++row) {
      if (there[static_cast<std::size_t>(batch.process_of[row])]) {
        data.valid[row / 64] |= std::uint64_t{1} << (row % 64);
      } else {
        ++data.nulls;
      }
    }
  }

  std::vector<std::string> paths_;
  TableOptions options_;
  unsigned threads_;
  std::shared_ptr<StreamResult> result_;
  std::vector<BatchMaker> makers_;  // outlive the scan, whose threads use them
  std::unique_ptr<OrderedScan<Batch>> scan_;
  bool done_ = false;
  bool learned_ = false;
  std::uint64_t rows_ = 0;
  std::unordered_map<std::string, std::string> strings_;
  std::unordered_map<std::string, std::string> hosts_;
  std::map<std::string, int> unresolved_;
  std::map<std::tuple<std::uint32_t, std::int64_t, std::string>, std::size_t> processes_;
  std::map<std::pair<std::uint32_t, std::int64_t>, std::size_t> pids_;
  std::vector<Known> known_;
  std::vector<bool> homeless_;
};

EventStream* of(ArrowArrayStream* stream) {
  return static_cast<EventStream*>(stream->private_data);
}

int get_schema(ArrowArrayStream* stream, ArrowSchema* out) {
  try {
    export_schema(of(stream)->options(), out);
    return 0;
  } catch (const std::exception& problem) {
    of(stream)->error = problem.what();
    return ENOMEM;
  }
}

int get_next(ArrowArrayStream* stream, ArrowArray* out) {
  try {
    auto batch = of(stream)->next();
    if (batch.has_value()) {
      export_batch(std::move(*batch), out);
    } else {
      *out = {};
    }
    return 0;
  } catch (const std::exception& problem) {
    of(stream)->error = problem.what();
    return EIO;
  }
}

const char* get_last_error(ArrowArrayStream* stream) {
  const std::string& error = of(stream)->error;
  return error.empty() ? nullptr : error.c_str();
}

void release(ArrowArrayStream* stream) {
  delete of(stream);
  stream->release = nullptr;
}

}  // namespace

void open_stream(std::vector<std::string> paths, TableOptions options, unsigned threads,
                 std::shared_ptr<StreamResult> result, ArrowArrayStream* out) {
  *out = {};
  out->private_data =
      new EventStream(std::move(paths), std::move(options), threads, std::move(result));
  out->get_schema = get_schema;
  out->get_next = get_next;
  out->get_last_error = get_last_error;
  out->release = release;
}

}  // namespace dft::reader
