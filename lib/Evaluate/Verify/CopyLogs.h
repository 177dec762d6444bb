//===- CopyLogs.h - copy logs of two programs ------------------*- C++ -*-===//
#ifndef OPTIML_LIB_EVALUATE_VERIFY_COPYLOGS_H
#define OPTIML_LIB_EVALUATE_VERIFY_COPYLOGS_H

#include "BufferCompare.h"
#include "llvm/Support/Error.h"

namespace optiml {

/// One copy to the host (include/optiml/Emulator/CopyRecord.h).
struct LoggedCopy {
  std::string kernel; ///< mangled name of the last kernel that had the buffer as an argument
  uint64_t offset = 0;
  uint64_t sequence = 0; ///< CopyRecord::sequence
  BufferReference content;
  uint32_t allocation = 0;
};

struct CopyLogFile {
  std::vector<LoggedCopy> copies;
  std::vector<LoggedCopy> fresh; ///< results of kernels on other inputs, which `offset` identifies
  std::vector<uint64_t> inputs;  ///< contents that the program's own input got, sorted
  std::string inputTypes;        ///< what envFreshTypes has for them
  bool usesStreams = false;      ///< CopyRecord::Streams
  bool cut = false;
};

/// A missing file is an empty log: the program never came to use the device.
llvm::Expected<CopyLogFile> readCopyLog(const std::string &path);

/// Lets copies of one buffer after one kernel share the original's typical error, so that one lucky small copy is not
/// held against a variant.
void shareErrors(CopyLogFile &log);

/// Marks what another run of the original has otherwise.
void markUnstable(CopyLogFile &log, const CopyLogFile &other);
/// The other run rounds otherwise (BufferReference::markIfRoundingDecides). Where that changes no integer, nothing is
/// marked: large errors of numbers alone are no choices.
void markWhereRoundingDecides(CopyLogFile &log, const CopyLogFile &other);

/// The first difference between results on equal fresh inputs, or nothing. Only of buffers that the original program
/// reads back sometime: what it keeps in others is its own affair. `compared` counts the buffers.
std::optional<Difference> compareFresh(const CopyLogFile &original, const CopyLogFile &changed, const FloatRule &rule,
                                       unsigned &compared);

/// Whether the double-precision twins of the two logs are the same: then what differs in single precision are roundings
/// alone. Numbers of double precision have no such twins. Notes in the original's which cells these are.
bool sameInDoublePrecision(CopyLogFile &original, const CopyLogFile &changed);

/// Whether everything that they hold is the same, bit for bit.
bool sameBytes(const CopyLogFile &one, const CopyLogFile &other);

/// The first difference, or nothing. Copies are matched in order; the changed program may make further ones in between.
std::optional<Difference> compareLogs(const CopyLogFile &original, const CopyLogFile &changed, const FloatRule &rule);

} // namespace optiml

#endif
