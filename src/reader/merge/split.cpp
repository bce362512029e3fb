// Pieces of a trace. Each is written like the output of a merge, so that each opens alone and
// merging them again gives the whole.
#include <algorithm>
#include <stdexcept>
#include <tuple>

#include "reader/merge/merge.hpp"
#include "reader/merge/rewrite.hpp"

namespace dft::reader {
namespace {

constexpr std::size_t kMostPieces = 500;  // each is an open file
constexpr std::int64_t kNext = -1;        // whichever piece is being filled

struct InOrder {
  bool operator()(const MergedProcess* a, const MergedProcess* b) const {
    return a->order < b->order;
  }
};
using Processes = std::set<const MergedProcess*, InOrder>;

// What a process says that a hash means.
struct HashMeaning {
  std::string hash;
  const MergedProcess* process;
  bool operator<(const HashMeaning& other) const {
    return std::tie(hash, process->order) < std::tie(other.hash, other.process->order);
  }
};

// Lines of one block that go into one piece.
struct Slice {
  std::int64_t piece = kNext;
  std::string text;
  std::uint32_t lines = 0;
  std::uint64_t events = 0;
  Processes processes;
  std::set<HashMeaning> hashes;
};
struct CutBlock {
  std::vector<Slice> slices;
  MergeTally tally;
};

struct OutputPiece {
  std::unique_ptr<TraceFile> file;
  Processes processes;
  std::set<HashMeaning> hashes;
  std::uint64_t events = 0;
  std::uint64_t records = 0;  // that are nowhere else
};

class Splitter {
 public:
  Splitter(const MergeOptions& options, const SplitOptions& how, const Survey& survey,
           const Plan& plan, const std::vector<std::shared_ptr<InFile>>& files)
      : options_(options), how_(how), plan_(plan) {
    keep(survey, files);
    bool timed = false;
    for (const Fragment& one : plan.fragments()) {
      if (!one.facts.timed) continue;
      const std::int64_t first = one.facts.first - one.process->shift_us * 1000;
      origin_ = timed ? std::min(origin_, first) : first;
      timed = true;
    }
    const unsigned threads = options_.threads;
    for (unsigned i = 0; i < threads; ++i) rewriters_.push_back(std::make_unique<Rewriter>(plan));
  }

  // On a worker thread.
  CutBlock cut(unsigned worker, Block& block) {
    CutBlock out;
    const InFile& file = block.file();
    Rewriter& rewriter = *rewriters_[worker];
    std::map<std::int64_t, Slice> slices;
    std::int64_t last = how_.by == SplitOptions::By::kTime ? 0 : kNext;
    block.records([&](const Event& event, std::uint64_t) {
      if (event.is_metadata() && (made_by_merge(event) || absorbed(event))) {
        ++out.tally.replaced;
        return;
      }
      if (repeats(event) != Repeats::kNo) {
        ++out.tally.metadata;  // every one of them is in the pieces that need it
        return;
      }
      const Treatment& treatment = rewriter.treatment(event, file);
      if ((event.has & kHasTs) != 0) {
        const std::int64_t ts =
            event.ts + (treatment.was_shifted_us - treatment.process->shift_us) * 1000;
        if (how_.ranged && (ts < how_.from || ts >= how_.to)) {
          ++out.tally.outside;
          out.tally.count(event);
          return;
        }
        if (how_.by == SplitOptions::By::kTime) {
          last = std::max<std::int64_t>(ts - origin_, 0) / static_cast<std::int64_t>(how_.number);
        }
      }
      if (how_.by == SplitOptions::By::kProcess) last = treatment.process->order;
      Slice& slice = slices[last];
      const std::size_t begin = slice.text.size();
      rewriter.write(event, file, treatment, slice.text);
      if (event.is_metadata() && !seen_.insert(std::string_view(slice.text).substr(begin))) {
        slice.text.resize(begin);
        ++out.tally.repeated;
        return;
      }
      out.tally.count(event);
      ++slice.lines;
      if (event.is_event()) ++slice.events;
      slice.processes.insert(treatment.process);
      for (const JsonField& field : event.args) {
        const bool by_key =
            (field.key.ends_with("hash") || is(field.key, "cwd")) && field.is_name();
        if (by_key || (field.kind == JsonKind::kString && field.value.size() == 16)) {
          std::string& hash = scratch_[worker];
          hash = field.value;
          if (hashes_.count(hash) != 0) slice.hashes.insert({hash, treatment.process});
        }
      }
    });
    for (auto& [piece, slice] : slices) {
      slice.piece = piece;
      out.slices.push_back(std::move(slice));
    }
    return out;
  }

  // On the writing thread.
  void write(Slice&& slice, std::uint64_t records) {
    if (slice.piece != kNext) {
      append(piece(slice.piece), slice, slice.text, slice.lines);
      return;
    }
    const std::uint64_t parts = std::max<std::uint64_t>(how_.number, 1);
    std::string_view rest = slice.text;
    std::uint32_t lines = slice.lines;
    while (lines != 0) {
      OutputPiece& here = piece(current_);
      std::uint64_t room = 0;
      if (how_.by == SplitOptions::By::kParts) {
        // The first pieces are one record longer, if there is a rest.
        const std::uint64_t share =
            records / parts + (static_cast<std::uint64_t>(current_) < records % parts ? 1 : 0);
        room = share > here.records ? share - here.records : 0;
        if (static_cast<std::uint64_t>(current_) + 1 == parts) room = lines;
      } else if (here.file->bytes() < how_.number || here.records == 0) {
        // Looked at again after a member, whose size on disk is known.
        room = kLinesAtOnce;
      }
      if (room == 0) {
        ++current_;
        continue;
      }
      const auto take = static_cast<std::uint32_t>(std::min<std::uint64_t>(room, lines));
      std::size_t end = 0;
      for (std::uint32_t i = 0; i < take; ++i) end = rest.find('\n', end) + 1;
      append(here, slice, rest.substr(0, end), take);
      rest.remove_prefix(end);
      lines -= take;
    }
  }

  void finish(MergeResult& result, Control* control) {
    if (pieces_.empty()) piece(0);
    if (!how_.ranged) leftovers();
    std::uint64_t events = 0;
    for (auto& [index, one] : pieces_) {
      one.file->finish();
      if (result.mismatch.empty() && !verify(*one.file, options_.threads, control)) {
        result.mismatch = one.file->path() + ": what was written cannot be read again";
      }
      events += one.events;
    }
    if (result.mismatch.empty() && events + outside_events != result.in.events) {
      result.mismatch = std::to_string(result.in.events) + " events went in, " +
                        std::to_string(events) + " came out";
    }
    if (!result.mismatch.empty()) return;
    for (auto& [index, one] : pieces_) {
      one.file->commit();
      result.written.push_back(
          {one.file->path(), one.file->bytes(), one.file->lines(), one.events});
    }
  }

  std::uint64_t outside_events = 0;

 private:
  static constexpr std::uint64_t kLinesAtOnce = 256;

  // Processes without events, hashes that nothing uses: nothing is lost.
  void leftovers() {
    std::map<const MergedProcess*, OutputPiece*> homes;
    for (auto& [index, one] : pieces_) {
      for (const MergedProcess* process : one.processes) homes.emplace(process, &one);
    }
    for (const MergedProcess* process : plan_.processes()) {
      const auto home = homes.emplace(process, &pieces_.begin()->second).first;
      introduce(*home->second, process);
    }
    for (const auto& [hash, lines] : hashes_) {
      for (const auto& [process, line] : lines) {
        const HashMeaning key{hash, process};
        const bool written = std::any_of(pieces_.begin(), pieces_.end(), [&](const auto& one) {
          return one.second.hashes.count(key) != 0;
        });
        if (!written) define(*homes[process], hash, process);
      }
    }
  }

  // The metadata that pieces repeat, as the output has it.
  void keep(const Survey& survey, const std::vector<std::shared_ptr<InFile>>& files) {
    scratch_.resize(options_.threads);
    Rewriter rewriter(plan_);
    Parser parser;
    Event event;
    std::string padded;
    for (const Survey::Kept& one : survey.kept) {
      const InFile& file = *files[one.file];
      padded = one.line;
      padded.append(kPadding, '\0');
      parser.begin(file.clock);
      if (parser.general(padded.data(), event) == nullptr) continue;
      event.valid_utf8 = is_utf8(event.line);
      const Treatment& treatment = rewriter.treatment(event, file);
      std::string line;
      rewriter.write(event, file, treatment, line);
      if (repeats(event) == Repeats::kProcess) {
        identities_[treatment.process].insert(line);
        continue;
      }
      const JsonField* hash = find_arg(event, "value");
      const std::string key(hash == nullptr ? std::string_view() : hash->value);
      // One line a process is enough; which one must not depend on the order of files.
      std::string& mine = hashes_[key][treatment.process];
      if (mine.empty() || line < mine) mine = line;
    }
  }

  OutputPiece& piece(std::int64_t index) {
    const auto found = pieces_.find(index);
    if (found != pieces_.end()) return found->second;
    if (pieces_.size() == kMostPieces) {
      throw std::invalid_argument("that would be more than " + std::to_string(kMostPieces) +
                                  " pieces");
    }
    OutputPiece& fresh = pieces_[index];
    std::string number = std::to_string(index + 1);
    number.insert(0, number.size() < 4 ? 4 - number.size() : 0, '0');
    OutputKind kind;
    const std::string path = how_.stem + '-' + number + how_.end;
    output_kind(path, kind);
    fresh.file =
        std::make_unique<TraceFile>(path, kind, options_.level, merged_document_head(),
                                    how_.by == SplitOptions::By::kBytes
                                        ? std::clamp<std::size_t>(how_.number, 4096, kMemberText)
                                        : kMemberText);
    std::string clocks;
    std::uint32_t lines = 0;
    plan_.clock_records(clocks, lines);
    fresh.file->add(clocks, lines);
    return fresh;
  }

  void introduce(OutputPiece& piece, const MergedProcess* process) {
    if (!piece.processes.insert(process).second) return;
    std::string text;
    std::uint32_t lines = 0;
    plan_.head_of(*process, text, lines);
    for (const std::string& line : identities_[process]) {
      text += line;
      ++lines;
    }
    piece.file->add(text, lines);
  }
  void define(OutputPiece& piece, const std::string& hash, const MergedProcess* process) {
    const auto& lines = hashes_.at(hash);
    auto found = lines.find(process);
    // Another process may have written the record that explains the hash.
    if (found == lines.end()) found = lines.begin();
    if (!piece.hashes.insert({hash, found->first}).second) return;
    introduce(piece, found->first);
    piece.file->add(found->second, 1);
  }

  void append(OutputPiece& piece, const Slice& slice, std::string_view text, std::uint32_t lines) {
    for (const MergedProcess* process : slice.processes) introduce(piece, process);
    for (const auto& [hash, process] : slice.hashes) define(piece, hash, process);
    piece.file->add(text, lines);
    piece.records += lines;
    if (lines == slice.lines) {
      piece.events += slice.events;
      return;
    }
    // A part of a slice: counted by reading it, as it is rare.
    Block block;
    auto file = std::make_shared<InFile>();
    block.take(file, text);
    block.records([&](const Event& event, std::uint64_t) {
      if (event.is_event()) ++piece.events;
    });
  }

  const MergeOptions& options_;
  const SplitOptions& how_;
  const Plan& plan_;
  SeenLines seen_;
  std::int64_t origin_ = 0;
  std::int64_t current_ = 0;
  std::vector<std::unique_ptr<Rewriter>> rewriters_;
  std::vector<std::string> scratch_;
  std::map<std::int64_t, OutputPiece> pieces_;
  std::map<std::string, std::map<const MergedProcess*, std::string, InOrder>> hashes_;
  std::map<const MergedProcess*, std::set<std::string>> identities_;
};

}  // namespace

MergeResult split(const MergeOptions& given, const SplitOptions& how, Control* control) {
  MergeOptions options = given;
  if (options.threads == 0) options.threads = default_threads();
  MergeResult result;
  const Survey survey = survey_all(options.paths, options.threads, true, control, result.read);
  const Plan plan(survey, result.read.files, options.align);
  describe(plan, result);
  std::uint64_t records = result.in.events + result.in.own;
  Splitter splitter(options, how, survey, plan, result.read.files);
  OrderedScan<CutBlock> cuts(
      options.paths, options.threads,
      [&](unsigned worker, Block& block) { return splitter.cut(worker, block); }, control,
      sizes_of(result.read));
  while (std::optional<CutBlock> cut = cuts.next()) {
    result.out.add(cut->tally);
    std::uint64_t events = 0;
    for (Slice& slice : cut->slices) {
      events += slice.events;
      splitter.write(std::move(slice), records);
    }
    splitter.outside_events += cut->tally.events - events;
  }
  result.mismatch = compare(result.in, result.out);
  splitter.finish(result, control);
  return result;
}

}  // namespace dft::reader
