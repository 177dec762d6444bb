//===- Launches.h - captured launches on the GPU ----------------*- C++ -*-===//
//
// A workload's launches with their buffers in GPU memory, at the addresses that they had. Every launch can be put back
// into the state it was captured in, run as the original or as a variant makes it, and compared.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_LIB_GPU_DEVICE_LAUNCHES_H
#define OPTIML_LIB_GPU_DEVICE_LAUNCHES_H

#include "Arena.h"
#include "Module.h"
#include "optiml/Workload/Signature.h"
#include "optiml/Workload/Workload.h"
#include <map>
#include <vector>

namespace optiml::gpu {

struct DeviceBuffer {
  CUdeviceptr at = 0;       ///< working copy; 0 for a variable, which lies in the module
  CUdeviceptr captured = 0; ///< its contents before the launch
};

struct DeviceLaunch {
  const LaunchImage *image = nullptr;
  std::string unusable; ///< why it cannot be replayed, or empty
  std::vector<DeviceBuffer> buffers;
  std::vector<std::pair<CUdeviceptr, uint64_t>> redZones; ///< memory beside its buffers that no buffer owns
  std::string bufferName(unsigned buffer) const { return optiml::bufferName(*image, buffer); }
  /// "sgemm(float*, int)"
  const std::string &kernelName() const { return image->name; }
};

/// How a launch is made: the captured one, or a variant's plan.
struct Run {
  Module *module = nullptr;
  const DeviceLaunch *launch = nullptr;
  std::vector<CUdeviceptr> scratch;
  std::vector<uint64_t> scratchBytes;
  std::vector<bool> scratchZeroed;
  struct Step {
    Module::Kernel *kernel;
    std::array<uint32_t, 3> grid, block;
    uint32_t sharedBytes;
    std::vector<std::vector<char>> values; ///< of the arguments
  };
  std::vector<Step> steps;
};

/// Why a run failed.
enum class Failure { None, Runtime, OverLimit, Timeout };

class Launches {
public:
  explicit Launches(Device &device) : device(device) {}
  /// Reads the workload and fills GPU memory. False, and Device::error, when nothing of it can be used.
  bool load(const std::string &directory);
  /// The same for one launch, each buffer in an allocation of just its size, so that a memory checker sees its ends.
  /// Not where buffers are reached through others: their pointers hold only at the old addresses.
  bool loadExact(const std::string &directory, unsigned launch);

  const Workload &workload() const { return images; }
  const std::vector<DeviceLaunch> &launches() const { return states; }
  const Arenas &memory() const { return arenas; }
  /// Launches that found no room, and the like.
  const std::vector<std::string> &notes() const { return remarks; }

  /// Resolves a plan. A failure is that of the variant (Device::error).
  bool plan(const PlannedLaunch &planned, Module &module, Run &into, Failure &failure);
  bool planOriginal(unsigned launch, Module &module, Run &into);
  /// Where buffer i of a run is.
  CUdeviceptr address(const Run &run, unsigned buffer) const;
  /// Puts the captured contents where the run finds them, variables too.
  bool putInPlace(const Run &run);
  /// Queues the run's kernels.
  bool enqueue(const Run &run, Failure &failure);

private:
  bool fillBuffers(DeviceLaunch &state);
  bool marshal(const DeviceLaunch &launch, const emu::ReplayStep &step, Run &into, Run::Step &made);
  bool fits(const Run::Step &step, const std::string &name, Failure &failure);
  CUdeviceptr blob(const std::string &name, uint64_t bytes);
  CUdeviceptr scratch(size_t index, uint64_t bytes);

  Device &device;
  Workload images;
  Arenas arenas;
  std::vector<DeviceLaunch> states;
  std::map<std::string, CUdeviceptr> blobs;                    ///< equal contents are there once
  std::vector<std::pair<CUdeviceptr, uint64_t>> scratchMemory; ///< shared by all runs, grown as needed
  std::vector<std::string> remarks;
  size_t patched = 0; ///< pointers in captured buffers that were adjusted
};

constexpr unsigned char redZonePattern = 0xa5;

} // namespace optiml::gpu

#endif
