//===- PtxParser.h - statements of inline PTX -------------------*- C++ -*-===//
#ifndef OPTIML_LIB_EMULATOR_PTXPARSER_H
#define OPTIML_LIB_EMULATOR_PTXPARSER_H

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include <optional>
#include <string>
#include <vector>

namespace optiml::emu {

struct PtxOperand {
  enum Kind { Name, Asm, Immediate, FloatBits, DoubleBits, Address, Vector } kind = Name;
  std::string name;                 ///< register, special register (with %), or variable
  unsigned index = 0;               ///< Asm: $index
  uint64_t bits = 0;                ///< immediates; Address: the constant offset
  std::vector<PtxOperand> elements; ///< Vector; Address: the base
  std::string second;               ///< the q of `p|q`, or of an Asm pair
  bool negated = false;             ///< `!p` as a source
};

struct PtxStatement {
  std::string guard; ///< predicate register of @p, or empty
  bool guardNegated = false;
  std::vector<std::string> words; ///< the mnemonic split at its dots; ".reg" declarations are {"", "reg", "b32"}
  std::vector<PtxOperand> operands;
  std::string text; ///< as written, for messages
};

/// The statements of an asm template, scopes flattened; nothing when it is not understood.
std::optional<std::vector<PtxStatement>> parsePtx(llvm::StringRef text);

} // namespace optiml::emu

#endif
