// The Arrow stream behind `_reader.stream`. Workers make batches; the consumer's thread
// finishes them in the order of the files: it resolves hashes, numbers processes and
// follows file positions.
#include "reader/arrow/stream.hpp"

#include <algorithm>
#include <cerrno>
#include <map>
#include <optional>
#include <unordered_map>

#include "reader/input/limits.hpp"

namespace dft::reader {
namespace {

class EventStream {
 public:
  EventStream(std::vector<std::string> paths, TableOptions columns, StreamOptions options,
              std::shared_ptr<StreamResult> result)
      : paths_(std::move(paths)),
        options_(std::move(columns)),
        threads_(options.threads == 0 ? default_threads() : options.threads),
        summary_(options.summary),
        explain_(options.explain.empty() ? paths_ : std::move(options.explain)),
        result_(std::move(result)) {}

  const TableOptions& options() const { return options_; }

  // Nothing at the end.
  std::optional<EventBatch> next() {
    if (done_) return std::nullopt;
    if (scan_ == nullptr) {
      for (unsigned i = 0; i < threads_; ++i) {
        makers_.emplace_back(options_);
        if (summary_) stats_.emplace_back(StatsOptions{.by_file = false, .paths = false});
      }
      scan_ = std::make_unique<OrderedScan<EventBatch>>(
          paths_, threads_, [this](unsigned worker, Block& block) {
            BatchMaker& maker = makers_[worker];
            maker.begin(block.item().file);
            if (summary_) {
              Stats& stats = stats_[worker];
              const std::uint32_t file = block.file().index;
              const std::uint64_t ordinal = block.ordinal();
              block.records([&](const Event& event, std::uint64_t line) {
                maker.add(event);
                stats.add(event, file, {ordinal, line});
              });
            } else {
              const auto add = [&](const Event& event, std::uint64_t) { maker.add(event); };
              if (maker.takes_brief()) {
                block.brief_records(add);
              } else {
                block.records(add);
              }
            }
            return maker.take();
          });
    }
    while (auto batch = scan_->next()) {
      finish(*batch);
      if (batch->rows == 0) continue;
      for (std::size_t i = 0; i < batch->columns.size(); ++i) {
        if (options_.is_coded(batch->columns[i])) encode(batch->columns[i], batch->data[i]);
      }
      rows_ += static_cast<std::uint64_t>(batch->rows);
      return batch;
    }
    done_ = true;
    const std::lock_guard lock(result_->mutex);
    result_->scan_result = scan_->result();
    result_->finished = true;
    result_->rows = rows_;
    result_->unresolved = unresolved_.size();
    for (auto& [column, codes] : codes_) result_->words[column] = std::move(codes.words);
    scan_.reset();
    if (summary_) {
      for (std::size_t i = 1; i < stats_.size(); ++i) stats_[0].add(std::move(stats_[i]));
      stats_[0].finish();
      result_->summary = std::move(stats_[0]);
    }
    return std::nullopt;
  }

  std::string error;

 private:
  struct StreamProcess {
    std::int32_t index;
    std::int32_t rank = -1;
    std::string host;  // for showing
  };

  // What finish() knows of a batch, for its columns.
  struct Ordered {
    std::vector<std::size_t> processes;           // of the stream, by those of the batch
    std::vector<Accesses::Placement> placements;  // by batch.calls
    [[nodiscard]] std::size_t process(const EventBatch& batch, std::size_t row) const {
      return processes[static_cast<std::size_t>(batch.process_of[row])];
    }
  };
  using Finish = void (EventStream::*)(const EventBatch&, const Ordered&, ColumnData&);
  static const Finish kFinish[kColumns];

  void learn(const BatchFact& fact) {
    if (fact.about == BatchFact::About::kHost) hosts_.emplace(fact.key, fact.value);
    strings_.emplace(fact.key, fact.value);
  }

  // All hashes of all files, for traces that explain one after its use, or in another file.
  void learn_all() {
    if (learned_) return;
    learned_ = true;
    std::mutex mutex;
    TableOptions facts_only;
    facts_only.columns = {Column::kId};
    std::vector<BatchMaker> makers(threads_, BatchMaker(facts_only));
    scan(explain_, threads_, [&](unsigned worker, Block& block) {
      BatchMaker& maker = makers[worker];
      maker.begin(block.item().file);
      block.brief_records([&](const Event& event, std::uint64_t) {
        if (event.is_own()) maker.add(event);
      });
      const EventBatch batch = maker.take();
      const std::lock_guard lock(mutex);
      for (const BatchFact& fact : batch.facts) {
        if (fact.about != BatchFact::About::kRank) learn(fact);
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

  StreamProcess& process(const EventBatch& batch, const ProcessKey& key) {
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
      known_[index].host = key.shown;
    } else {
      check_processes(known_.size());
      known_.push_back({static_cast<std::int32_t>(index),
                        static_cast<std::int32_t>(batch.file->rank), key.shown});
      homeless_.push_back(key.host.empty());
      pids_.emplace(by_pid, index);
    }
    processes_.emplace(full, index);
    return known_[index];
  }

  void resolve_paths(EventBatch& batch) {
    for (auto& [text, hashed] : batch.paths) {
      if (!hashed) continue;
      if (const std::string* path = text_of(strings_, text); path != nullptr) {
        text = *path;
      } else {
        unresolved_.emplace(text, 0);
        text.insert(0, 1, '#');
      }
    }
  }

  // Where the calls of the batch lie in their files; in the order of batch.calls, which becomes
  // that of time: threads that share an open file move one position.
  std::vector<Accesses::Placement> follow(EventBatch& batch,
                                          const std::vector<std::size_t>& local) {
    std::vector<Accesses::Placement> found;
    if (batch.calls.empty()) return found;
    const auto earlier = [](const FileCall& a, const FileCall& b) { return a.ts < b.ts; };
    if (!std::is_sorted(batch.calls.begin(), batch.calls.end(), earlier)) {
      std::stable_sort(batch.calls.begin(), batch.calls.end(), earlier);
    }
    std::vector<std::uint32_t> paths;
    paths.reserve(batch.paths.size());
    for (const auto& path : batch.paths) paths.push_back(accesses_.path(path.first));
    found.reserve(batch.calls.size());
    for (const FileCall& call : batch.calls) {
      const auto process =
          local[static_cast<std::size_t>(batch.process_of[static_cast<std::size_t>(call.row)])];
      found.push_back(accesses_.follow(static_cast<std::int32_t>(process),
                                       paths[static_cast<std::size_t>(call.path)], call));
    }
    return found;
  }

  // The batch's own numbers of texts become those of the stream.
  void encode(Column column, ColumnData& data) {
    // Both files of a copy are numbered in one list.
    Codes& codes = codes_[column == Column::kOther ? Column::kFname : column];
    std::vector<std::int32_t> code_of;
    for (std::size_t i = 0; i + 1 < data.ends.size(); ++i) {
      const auto from = static_cast<std::size_t>(data.ends[i]);
      std::string word = data.words.substr(from, static_cast<std::size_t>(data.ends[i + 1]) - from);
      const auto [found, fresh] =
          codes.numbers.emplace(word, static_cast<std::int32_t>(codes.words.size()));
      if (fresh) codes.words.push_back(std::move(word));
      code_of.push_back(found->second);
    }
    if (code_of.empty()) return;  // nothing but nulls
    for (std::int32_t& value : data.int32s) value = code_of[static_cast<std::size_t>(value)];
  }

  // Transfers have a place, if it is known; all other rows have none.
  template <typename Put>
  static void fill_placements(const EventBatch& batch, const Ordered& ordered, ColumnData& data,
                              const Put& put) {
    const std::vector<Accesses::Placement>& placements = ordered.placements;
    data.valid.assign((static_cast<std::size_t>(batch.rows) + 63) / 64, 0);
    data.nulls = batch.rows;
    for (std::size_t i = 0; i < placements.size(); ++i) {
      if (batch.calls[i].second || placements[i].position == kUnknown) continue;
      const auto row = static_cast<std::size_t>(batch.calls[i].row);
      data.valid[row / 64] |= std::uint64_t{1} << (row % 64);
      --data.nulls;
      put(row, placements[i]);
    }
  }

  void finish(EventBatch& batch) {
    for (const BatchFact& fact : batch.facts) {
      if (fact.about != BatchFact::About::kRank) learn(fact);
    }
    std::vector<std::size_t> local;
    local.reserve(batch.processes.size());
    for (const ProcessKey& key : batch.processes) {
      local.push_back(static_cast<std::size_t>(process(batch, key).index));
    }
    for (const BatchFact& fact : batch.facts) {
      if (fact.about != BatchFact::About::kRank) continue;
      std::int64_t rank = -1;
      JsonField field;
      field.kind = JsonKind::kString;
      field.value = fact.key;  // of a rank, the value
      if (integer_of(field, rank))
        known_[local[fact.process]].rank = static_cast<std::int32_t>(rank);
    }
    if (!batch.paths.empty()) resolve_paths(batch);
    const Ordered ordered{local, follow(batch, local)};
    for (std::size_t i = 0; i < batch.columns.size(); ++i) {
      (this->*kFinish[static_cast<std::size_t>(batch.columns[i])])(batch, ordered, batch.data[i]);
    }
  }

  // What columns.def names. A column that the batch has already needs nothing.
  void keep(const EventBatch& /*batch*/, const Ordered& /*ordered*/, ColumnData& /*data*/) {}

  void fill_position(const EventBatch& batch, const Ordered& ordered, ColumnData& data) {
    data.int64s.resize(static_cast<std::size_t>(batch.rows));
    fill_placements(batch, ordered, data, [&](std::size_t row, const Accesses::Placement& one) {
      data.int64s[row] = one.position;
    });
  }

  void fill_access(const EventBatch& batch, const Ordered& ordered, ColumnData& data) {
    for (const char* word : kPatternNames) {
      data.words += word;
      data.ends.push_back(static_cast<std::int32_t>(data.words.size()));
    }
    data.int32s.resize(static_cast<std::size_t>(batch.rows));
    fill_placements(batch, ordered, data, [&](std::size_t row, const Accesses::Placement& one) {
      data.int32s[row] = static_cast<std::int32_t>(one.pattern);
    });
  }

  void fill_process(const EventBatch& batch, const Ordered& ordered, ColumnData& data) {
    data.int32s.resize(static_cast<std::size_t>(batch.rows));
    for (std::size_t row = 0; row < data.int32s.size(); ++row) {
      data.int32s[row] = static_cast<std::int32_t>(ordered.process(batch, row));
    }
  }

  void fill_trace(const EventBatch& batch, const Ordered& /*ordered*/, ColumnData& data) {
    data.words = batch.file->path;
    if (!is_utf8(data.words)) {
      data.words.clear();
      append_mended(data.words, batch.file->path);
    }
    data.ends = {0, static_cast<std::int32_t>(data.words.size())};
    data.int32s.assign(static_cast<std::size_t>(batch.rows), 0);
  }

  void name_paths(const EventBatch& batch, const Ordered& /*ordered*/, ColumnData& data) {
    for (const auto& [text, hashed] : batch.paths) {
      data.words += text;
      data.ends.push_back(static_cast<std::int32_t>(data.words.size()));
    }
  }

  void fill_rank(const EventBatch& batch, const Ordered& ordered, ColumnData& data) {
    const auto rows = static_cast<std::size_t>(batch.rows);
    data.int32s.resize(rows);
    data.valid.assign((rows + 63) / 64, 0);
    for (std::size_t row = 0; row < rows; ++row) {
      const std::int32_t rank = known_[ordered.process(batch, row)].rank;
      data.int32s[row] = rank;
      if (rank >= 0) {
        data.valid[row / 64] |= std::uint64_t{1} << (row % 64);
      } else {
        ++data.nulls;
      }
    }
  }

  void fill_host(const EventBatch& batch, const Ordered& /*ordered*/, ColumnData& data) {
    const auto rows = static_cast<std::size_t>(batch.rows);
    std::vector<bool> there;
    for (const ProcessKey& key : batch.processes) {
      std::string shown = key.shown;
      bool named = key.named;
      if (shown.empty()) shown = process(batch, key).host;
      if (!shown.empty() && !named) {
        const std::string* host = text_of(hosts_, shown);
        if (host != nullptr) shown = *host;
      }
      there.push_back(!shown.empty());
      data.words += shown;
      data.ends.push_back(static_cast<std::int32_t>(data.words.size()));
    }
    data.int32s = batch.process_of;
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
  bool summary_;
  std::vector<std::string> explain_;
  std::shared_ptr<StreamResult> result_;
  std::vector<BatchMaker> makers_;  // with the statistics, outlive the scan, whose threads use them
  std::vector<Stats> stats_;
  std::unique_ptr<OrderedScan<EventBatch>> scan_;
  bool done_ = false;
  bool learned_ = false;
  std::uint64_t rows_ = 0;
  std::unordered_map<std::string, std::string> strings_;
  std::unordered_map<std::string, std::string> hosts_;
  std::map<std::string, int> unresolved_;
  Accesses accesses_;
  struct Codes {
    std::unordered_map<std::string, std::int32_t> numbers;
    std::vector<std::string> words;
  };
  std::map<Column, Codes> codes_;
  std::map<std::tuple<std::uint32_t, std::int64_t, std::string>, std::size_t> processes_;
  std::map<std::pair<std::uint32_t, std::int64_t>, std::size_t> pids_;
  std::vector<StreamProcess> known_;
  std::vector<bool> homeless_;
};

const EventStream::Finish EventStream::kFinish[kColumns] = {
#define DFT_COLUMN(constant, name, type, source, keys, finish) &EventStream::finish,
#include "reader/arrow/columns.def"
#undef DFT_COLUMN
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

void open_stream(std::vector<std::string> paths, TableOptions columns, StreamOptions options,
                 std::shared_ptr<StreamResult> result, ArrowArrayStream* out) {
  *out = {};
  out->private_data =
      new EventStream(std::move(paths), std::move(columns), std::move(options), std::move(result));
  out->get_schema = get_schema;
  out->get_next = get_next;
  out->get_last_error = get_last_error;
  out->release = release;
}

}  // namespace dft::reader
