// Rank and job, as launchers tell them.

#include <doctest/doctest.h>

#include <string>
#include <utility>

#include "session/config.hpp"
#include "session/config_fixture.hpp"

using namespace dft::session;
using namespace config_fixture;

TEST_CASE("rank") {
  const auto rank = [](Strings entries) {
    FakeEnvironment environment(std::move(entries));
    return rank_from_environment(environment.get());
  };
  CHECK(rank({}) == -1);
  for (const char* name : {"RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID",
                           "FLUX_TASK_RANK"}) {
    CAPTURE(name);
    CHECK(rank({std::string(name) + "=7"}) == 7);
  }
  CHECK(rank({"SLURM_PROCID=2", "RANK=1"}) == 1);
  CHECK(rank({"RANK=x", "SLURM_PROCID=2"}) == 2);
  CHECK(rank({"RANK=-1", "PMI_RANK="}) == -1);
  CHECK(rank({"RANK=1 "}) == -1);
  CHECK(rank({"RANK=99999999999"}) == -1);
  CHECK(rank({"RANKS=1", "LOCAL_RANK=1", "RANK"}) == -1);
  CHECK(rank({"RANK=0"}) == 0);
}

TEST_CASE("job") {
  const auto job = [](Strings entries) {
    FakeEnvironment environment(std::move(entries));
    return job_from_environment(environment.get());
  };
  CHECK(job({"PATH=/bin"}).empty());
  const std::string step = job({"SLURM_JOB_ID=12", "SLURM_STEP_ID=0"});
  CHECK(step == job({"SLURM_STEP_ID=0", "SLURM_PROCID=4", "SLURM_JOB_ID=12"}));
  CHECK(step != job({"SLURM_JOB_ID=12", "SLURM_STEP_ID=1"}));
  CHECK(step != job({"SLURM_JOB_ID=1", "SLURM_STEP_ID=20"}));
  CHECK(job({"SLURM_JOB_ID=12"}).empty());
  for (const char* name :
       {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid", "PMI_JOBID", "FLUX_JOB_ID", "PALS_APID"}) {
    CAPTURE(name);
    CHECK_FALSE(job({std::string(name) + "=x"}).empty());
    CHECK(job({std::string(name) + "=x"}) != job({std::string(name) + "=y"}));
    CHECK(job({std::string(name) + "="}).empty());
  }
  CHECK(job({"TORCHELASTIC_RUN_ID=none"}).empty());
  CHECK(job({"RANK=0", "MASTER_ADDR=h", "MASTER_PORT=1"}).empty());
  const std::string torch =
      job({"TORCHELASTIC_RUN_ID=none", "RANK=0", "MASTER_ADDR=h", "MASTER_PORT=1"});
  CHECK(torch == job({"TORCHELASTIC_RUN_ID=none", "RANK=1", "MASTER_ADDR=h", "MASTER_PORT=1"}));
  CHECK(torch != job({"TORCHELASTIC_RUN_ID=none", "RANK=0", "MASTER_ADDR=h", "MASTER_PORT=2"}));
}
