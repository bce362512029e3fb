// What the launcher of a parallel job tells its processes: rank and job.

#include <array>
#include <charconv>
#include <cstddef>
#include <string>
#include <string_view>

#include "session/config.hpp"

namespace dft::session {
namespace {

// The values of several variables, after one walk; "" for those that are not set.
template <std::size_t N>
std::array<std::string_view, N> values_of(const Environment& environment,
                                          const std::array<std::string_view, N>& names) {
  std::array<std::string_view, N> values{};
  if (environment.secure || environment.entries == nullptr) return values;
  for (char** entry = environment.entries; *entry != nullptr; ++entry) {
    for (std::size_t i = 0; i < N; ++i) {
      const char* at = *entry;
      std::size_t matched = 0;
      while (matched < names[i].size() && *at == names[i][matched]) ++at, ++matched;
      if (matched != names[i].size() || *at != '=') continue;
      if (values[i].empty()) values[i] = at + 1;
    }
  }
  return values;
}

constexpr std::array<std::string_view, 6> kRankNames = {
    "RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID", "FLUX_TASK_RANK"};

enum JobName : std::size_t {
  kSlurmJob,
  kSlurmStep,
  kPmix,
  kOmpi,
  kPmi,
  kFlux,
  kPals,
  kTorchRun,
  kTorchRank,
  kMasterAddress,
  kMasterPort,
  kJobNames
};

constexpr std::array<std::string_view, kJobNames> kJobVariables = {
    "SLURM_JOB_ID", "SLURM_STEP_ID", "PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid",
    "PMI_JOBID",    "FLUX_JOB_ID",   "PALS_APID",      "TORCHELASTIC_RUN_ID",
    "RANK",         "MASTER_ADDR",   "MASTER_PORT"};

}  // namespace

int rank_from_environment(const Environment& environment) noexcept {
  for (const std::string_view value : values_of(environment, kRankNames)) {
    int rank = -1;
    const char* const end = value.data() + value.size();
    const auto [stop, error] = std::from_chars(value.data(), end, rank);
    if (!value.empty() && error == std::errc{} && stop == end && rank >= 0) return rank;
  }
  return -1;
}

std::string job_from_environment(const Environment& environment) noexcept try {
  const auto value = values_of(environment, kJobVariables);
  std::string job;
  const auto add = [&](JobName name) {
    if (value[name].empty()) return;
    if (!job.empty()) job += ';';
    job.append(kJobVariables[name]).append(1, '=').append(value[name]);
  };
  // A batch script has a job but no step: its commands are launched one by one and are
  // no job together.
  if (!value[kSlurmStep].empty() && !value[kSlurmJob].empty()) {
    add(kSlurmJob);
    add(kSlurmStep);
  }
  for (const JobName name : {kPmix, kOmpi, kPmi, kFlux, kPals}) add(name);
  if (!value[kTorchRun].empty() && !value[kTorchRank].empty()) {
    for (const JobName name : {kTorchRun, kMasterAddress, kMasterPort}) add(name);
  }
  return job;
} catch (...) {
  return {};
}

}  // namespace dft::session
