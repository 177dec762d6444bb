//===- Worker.h - answers a search's questions on one GPU -------*- C++ -*-===//
#ifndef OPTIML_LIB_GPU_DEVICE_WORKER_H
#define OPTIML_LIB_GPU_DEVICE_WORKER_H

#include "Race.h"
#include "optiml/Gpu/MetricPlan.h"
#include <future>
#include <memory>

namespace optiml::gpu {

class Worker {
public:
  explicit Worker(Device &device);

  LoadReply load(const LoadRequest &request);
  PrepareReply prepare(const PrepareRequest &request);
  EvaluateReply evaluate(const EvaluateRequest &request);
  ProfileReply profile(const ProfileRequest &request);

  /// Answers one line with one line. False: the context is broken, the process must end.
  bool answer(const std::string &line, std::string &reply);

private:
  struct Candidate {
    std::unique_ptr<Module> module;
    std::map<unsigned, Run> runs; ///< by launch
    CandidateReply reply;
    bool isRaced = true; ///< else what its one run took is known
  };
  struct Baseline {
    double seconds, spread; ///< median, and relativeSpread()
  };
  using Baselines = std::map<unsigned, Baseline>; ///< by launch
  bool timeOriginal(const DeviceCase &c, const Run &run, Baselines::iterator &timed);
  void begin(const CandidateRequest &request, Candidate &into);
  void verify(const EvaluateRequest &request, Candidate &candidate);
  bool time(const EvaluateRequest &request, std::vector<Candidate> &candidates);
  bool timeLaunch(const EvaluateRequest &request, const DeviceCase &c, std::vector<Candidate *> running);
  const DeviceCase *captured(unsigned launch) const;

  Device &device;
  Launches launches;
  Cases cases;
  std::unique_ptr<Module> original;
  std::vector<DeviceCase> prepared;
  Baselines baselines;
  std::unique_ptr<MetricPlan> metrics; ///< null: `planning` tells, or `noMetrics` why there is none
  std::string noMetrics;
  std::future<std::unique_ptr<MetricPlan>> planning; ///< it takes no GPU
  std::mt19937 random{1};
  bool cold = false;
};

} // namespace optiml::gpu

#endif
