//===- BufferCompare.h - comparing buffers with a reference -----*- C++ -*-===//
#ifndef OPTIML_LIB_EVALUATE_VERIFY_BUFFERCOMPARE_H
#define OPTIML_LIB_EVALUATE_VERIFY_BUFFERCOMPARE_H

#include "optiml/Evaluate/Verify/Verifier.h"
#include "optiml/Workload/Signature.h"
#include "llvm/ADT/ArrayRef.h"
#include <set>

namespace optiml {

/// One record of a b<i>.shadow file (docs/formats.md).
struct ShadowRecord {
  uint64_t offset;
  uint32_t bytes;
  uint32_t additions; ///< by atomic operations, one after the other, that made it
  double value, magnitude;
};
static_assert(sizeof(ShadowRecord) == 32);

/// What the original left in a buffer, and how exact it was.
struct BufferReference {
  std::string name;                ///< for messages: "argument 7 (float*)"
  ElementType element;             ///< for messages; 16-bit floats are compared by it
  std::string bytes;               ///< the original's result
  std::vector<ShadowRecord> cells; ///< its floating-point cells, sorted by offset
  double error4 = 0, error8 = 0;   ///< the original's own relative error in half of the 4-byte and of the 8-byte cells
  /// The inputs are made up, and hold no NaN by intent: NaN that comes out all the same, infinities that meet, and
  /// numbers that have no digit right are not defined, and not compared.
  bool synthetic = false;
  /// The inputs hold NaN, of which the original takes no notice: where NaN comes out, a version may make a number.
  bool looseNaN = false;
  /// The inputs are of extreme magnitudes, where the same operations in another order may have a denormal number on the
  /// way, and lose its digits or all of it: what counts is NaN, an infinity, another sign, or twice as much.
  bool extreme = false;
  /// The inputs hold infinities: times one, a rounding error beside an exact zero is infinite.
  bool masked = false;
  /// On made-up inputs: cells, by offset, where a version may have NaN (on masked ones, or an infinity), since it has
  /// the same number in double precision with zero times infinity as zero.
  std::set<uint64_t> sameTwins;
  /// On made-up inputs: it is not compared, as markIfRoundingDecides found.
  bool roundingDecides = false;
  /// On made-up inputs: cells, by offset, that are not compared, as markJumps found.
  std::set<uint64_t> jumps;
  double slack = 1;                                    ///< what tolerances are multiplied by
  std::vector<std::pair<uint64_t, uint64_t>> unstable; ///< byte ranges that depend on the order of blocks
  /// `cells` are those of some blocks. The magnitude of the others, of the element's type, is taken from these: as many
  /// times the value as half of them, and at least that of the smallest tenth.
  bool sampled = false;
  double typical = 0, typicalRatio = 1; ///< of the tenth; 0: the others may be anything, and must match bit for bit

  /// Reads the cells of a shadow file and computes the errors. Cells whose bits differ from `bytes` are dropped.
  void setCells(llvm::StringRef shadowFile);
  /// Cells of a run of some blocks on `input`, which left `sampleRun`. False, and nothing is set, where that is not
  /// what the whole launch leaves: other blocks take part in them.
  bool setSampledCells(llvm::StringRef shadowFile, llvm::StringRef input, llvm::StringRef sampleRun);
  /// Whether the two differ in a byte that is in no cell.
  bool differBesideCells(llvm::StringRef a, llvm::StringRef b) const;
  /// Marks what differs in another run of the original and is no floating-point number.
  void markUnstable(llvm::StringRef otherRun);
  /// `otherRun` is one of the original that rounds otherwise. Whether that changes more than rounding does: an integer,
  /// or a number by more than a thousandth of its magnitude, such as the centre of points of which others are nearest
  /// now.
  void markIfRoundingDecides(llvm::StringRef otherRun);
  /// The same where no integer changes: only those numbers, and what is finite in one run alone, such as a rounding
  /// error or an exact zero, times infinity.
  void markJumps(llvm::StringRef otherRun);
};

/// Computes the errors over the cells of several buffers, which then share them.
void setErrors(llvm::ArrayRef<BufferReference *> buffers);

/// How far a cell of `bytes` bytes may be from the reference, relative to its magnitude.
double relativeTolerance(const BufferReference &reference, uint32_t bytes, const FloatRule &rule);
/// The same for one whose double-precision value is known.
double relativeTolerance(const BufferReference &reference, const ShadowRecord &cell, const FloatRule &rule);

/// On made-up inputs the original has no digit of a result right, or none that is a number.
bool isUndefined(const BufferReference &reference, const ShadowRecord &cell);

/// The first difference, or nothing. Fills buffer, index, expected, actual, tolerance. `error`: raised to the largest
/// relative one of cells that are near enough (VerifyReport::error).
std::optional<Difference> compareBuffer(const BufferReference &reference, llvm::StringRef actual, const FloatRule &rule,
                                        double *error = nullptr);

/// The float (4 bytes) or double that stands there.
double cellValue(llvm::StringRef bytes, uint64_t offset, uint32_t size);

} // namespace optiml

#endif
