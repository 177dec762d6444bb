//===- TraceJoin.h - the accesses of lanes become those of a warp -*- C++ -*-===//
#ifndef OPTIML_LIB_EMULATOR_RUNTIME_TRACEJOIN_H
#define OPTIML_LIB_EMULATOR_RUNTIME_TRACEJOIN_H

#include "Trace.h"
#include <span>

namespace optiml::emu {

/// One warp instruction: the lanes' accesses of one (site, occurrence).
struct Joined {
  uint32_t site, position; ///< position: earliest in any lane's own sequence
  uint32_t bytes = 0;      ///< of one lane
  uint32_t lanes = 0;
  uint32_t slot; ///< where its addresses are kept
};

/// Joins the logs of one warp after the other, in the order in which a converged warp would issue. Its memory is kept.
class WarpJoin {
public:
  void run(const Block &block, const Warp &warp);
  std::vector<Joined> &accesses() { return all; }
  std::span<const uint64_t> addresses(const Joined &j) const { return {&slots[size_t(j.slot) * 32], j.lanes}; }
  /// How many accesses each stands for in the machine code: 0 when it became part of another.
  const std::vector<uint8_t> &standsFor() const { return merged; }
  /// The distinct units of 2^shift bytes that an access touches, ascending.
  void distinct(const Joined &j, unsigned shift, std::vector<uint64_t> &into) const;

private:
  void joinSharedWords(const Block &block);
  bool continues(const Joined &first, const Joined &next, uint64_t offset) const;

  std::vector<Joined> all;
  std::vector<uint64_t> slots; ///< 32 for each access
  std::vector<uint8_t> merged;
  std::vector<std::vector<uint32_t>> bySite;
  std::vector<uint32_t> occurrence, epoch;
  std::vector<char> shared;
};

} // namespace optiml::emu

#endif
