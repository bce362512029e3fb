// The two passes of a merge, and what merge and split share. Runs on the caller's thread and the
// worker threads of its scans.
#include "reader/merge/merge.hpp"

#include <algorithm>

#include "reader/merge/rewrite.hpp"
#include "reader/parse/text_map.hpp"

namespace dft::reader {
namespace {

struct RewrittenBlock {
  Parcel parcel;
  MergeTally tally;
};

}  // namespace

void MergeTally::add(const MergeTally& other) {
  events += other.events;
  own += other.own;
  metadata += other.metadata;
  repeated += other.repeated;
  replaced += other.replaced;
  made += other.made;
  outside += other.outside;
}

void MergeTally::count(const Event& event) {
  if (event.is_metadata()) {
    ++metadata;
  } else if (event.is_own()) {
    ++own;
  } else {
    ++events;
  }
}

bool SeenLines::put(std::uint64_t hash) {
  std::size_t at = hash & (slots_.size() - 1);
  for (; slots_[at] != 0; at = (at + 1) & (slots_.size() - 1)) {
    if (slots_[at] == hash) return false;
  }
  if (count_ == kMost) return true;
  slots_[at] = hash;
  ++count_;
  return true;
}

bool SeenLines::insert(std::string_view line) {
  const std::uint64_t hash = std::max<std::uint64_t>(hash_text(line, 1), 1);
  const std::lock_guard lock(mutex_);
  if (count_ * 2 >= slots_.size()) {
    std::vector<std::uint64_t> old(slots_.empty() ? 1024 : slots_.size() * 2);
    old.swap(slots_);
    count_ = 0;
    for (const std::uint64_t one : old) {
      if (one != 0) put(one);
    }
  }
  return put(hash);
}

Survey survey_all(const std::vector<std::string>& paths, unsigned threads, bool keep,
                  Control* control, ScanResult& scan_result) {
  std::vector<Survey> surveys;
  surveys.reserve(threads);
  for (unsigned i = 0; i < threads; ++i) surveys.emplace_back(keep);
  scan_result = scan(
      paths, threads, [&](unsigned worker, Block& block) { surveys[worker].add(block); }, control);
  for (unsigned i = 1; i < threads; ++i) surveys[0].add(std::move(surveys[i]));
  return std::move(surveys[0]);
}

std::vector<std::uint64_t> sizes_of(const ScanResult& scan_result) {
  std::vector<std::uint64_t> out;
  out.reserve(scan_result.files.size());
  for (const auto& file : scan_result.files) out.push_back(file->size);
  return out;
}

void describe(const Plan& plan, MergeResult& result) {
  result.clocks = plan.clocks();
  result.processes = plan.processes().size();
  result.hosts = plan.hosts();
  for (const MergedProcess* process : plan.processes()) {
    if (process->renumbered()) ++result.renumbered;
    for (const Fragment* one : process->fragments) {
      if (one->overlapping) result.doubled.push_back(process->name);
    }
  }
  const Damage& total = result.read.total;
  result.in.events = total.events;
  result.in.own = total.own;
  result.in.metadata = total.metadata;
}

std::string compare(const MergeTally& in, const MergeTally& out) {
  const auto differ = [](std::uint64_t a, std::uint64_t b, const char* what) {
    return std::to_string(a) + ' ' + what + " went in, " + std::to_string(b) + " came out";
  };
  if (in.events != out.events) return differ(in.events, out.events, "events");
  if (in.own != out.own) return differ(in.own, out.own, "start and end records");
  const std::uint64_t metadata = out.metadata + out.repeated + out.replaced;
  if (in.metadata != metadata) return differ(in.metadata, metadata, "metadata records");
  return {};
}

bool verify(const TraceFile& file, unsigned threads, Control* control) {
  std::atomic<std::uint64_t> lines{0};
  const auto visit = [&](unsigned, Block& block) {
    if (block.file().layout == FileLayout::kDocument) {
      block.records([](const Event&, std::uint64_t) {});
      return;
    }
    // Inflated whole, checksums compared: what is in the lines was compared when it was written.
    // Line by line, as memchr is many times faster than a loop over the bytes.
    const std::string_view text = block.text();
    std::uint64_t found = 0;
    for (std::size_t at = text.find('\n'); at != std::string_view::npos;
         at = text.find('\n', at + 1)) {
      ++found;
    }
    lines += found;
  };
  const ScanResult scan_result = scan({file.written_path()}, threads, visit, control);
  if (scan_result.total.bytes_read != file.bytes()) return false;
  if (file.kind().document) {
    return !scan_result.total.is_damaged() && scan_result.total.records == file.lines();
  }
  // The lines were not parsed, so "no records" is expected; any other trouble is real.
  std::uint64_t troubles = 0;
  for (const std::uint64_t count : scan_result.total.counts) troubles += count;
  return troubles == scan_result.total.count(Trouble::kNoRecords) && lines == file.lines() + 1;
}

std::string merged_document_head() {
  // The base spares a reader the search for one behind the events.
  return "\"dftracerMerged\":1,\"displayTimeUnit\":\"ms\",\"baseTimeNanoseconds\":0,";
}

MergeResult merge(const MergeOptions& options, const std::string& out, Control* control) {
  MergeResult result;
  const unsigned threads = options.threads == 0 ? default_threads() : options.threads;
  const Survey survey = survey_all(options.paths, threads, false, control, result.read);
  const Plan plan(survey, result.read.files, options.align);
  describe(plan, result);

  OutputKind kind;
  output_kind(out, kind);
  TraceFile file(out, kind, options.level, merged_document_head());
  std::uint32_t made = 0;
  const std::string head = plan.head(made);
  file.add(head, made);
  result.out.made = made;

  SeenLines seen;
  std::vector<std::unique_ptr<Rewriter>> rewriters;
  std::vector<std::unique_ptr<Deflater>> deflaters;
  for (unsigned i = 0; i < threads; ++i) {
    rewriters.push_back(std::make_unique<Rewriter>(plan));
    deflaters.push_back(std::make_unique<Deflater>(options.level));
  }
  OrderedScan<RewrittenBlock> copies(
      options.paths, threads,
      [&](unsigned worker, Block& block) {
        RewrittenBlock copied;
        const InFile& source = block.file();
        std::string& text = copied.parcel.text;
        text.reserve(block.text().size() + block.text().size() / 4);
        Rewriter& rewriter = *rewriters[worker];
        block.records([&](const Event& event, std::uint64_t) {
          if (event.is_metadata() && (made_by_merge(event) || absorbed(event))) {
            ++copied.tally.replaced;
            return;
          }
          const std::size_t begin = text.size();
          rewriter.write(event, source, rewriter.treatment(event, source), text);
          if (event.is_metadata() && !seen.insert(std::string_view(text).substr(begin))) {
            text.resize(begin);
            ++copied.tally.repeated;
            return;
          }
          copied.tally.count(event);
          ++copied.parcel.lines;
        });
        // The first block stays with the head: a file's first member has events in it.
        const bool first = source.index == 0 && block.ordinal() == 0;
        if (kind.compressed && !kind.document && !first && text.size() >= kMemberText / 2) {
          deflaters[worker]->member(text, copied.parcel.lines, copied.parcel.member);
          text = {};
        }
        return copied;
      },
      control, sizes_of(result.read));
  while (std::optional<RewrittenBlock> copied = copies.next()) {
    result.out.add(copied->tally);
    file.add(std::move(copied->parcel));
  }
  file.finish();
  result.mismatch = compare(result.in, result.out);
  if (result.mismatch.empty() && !verify(file, threads, control)) {
    result.mismatch = "what was written cannot be read again";
  }
  if (!result.mismatch.empty()) return result;
  file.commit();
  result.written.push_back({out, file.bytes(), file.lines(), result.out.events});
  return result;
}

}  // namespace dft::reader
