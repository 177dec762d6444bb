//===- Conditions.h - how near conditions come to their outcomes -*- C++ -*-===//
#ifndef OPTIML_LIB_EMULATOR_CONDITIONS_H
#define OPTIML_LIB_EMULATOR_CONDITIONS_H

#include "GpuWork.h"
#include "SourcePlaces.h"
#include "llvm/IR/Instructions.h"
#include <functional>
#include <optional>
#include <vector>

namespace optiml::emu {

/// Every comparison of the user's code, and every other value that decides where it goes on, is told to the runtime
/// (ModeConditions). For host and for device code.
class ConditionMarks {
public:
  explicit ConditionMarks(llvm::Module &module) : module(module) {}
  /// `placeOf` says where an instruction stands in the user's own code; nothing: it does not.
  using PlaceOf = std::function<std::optional<CodePlace>(const llvm::Instruction &)>;
  /// Before device functions are inlined.
  void insert(const PlaceOf &placeOf, bool isHost);
  /// After it: each function gets records of its own.
  void emit(bool isHost);
  /// Once the module is optimized.
  void describe();

private:
  using Leads = std::pair<bool, bool>; ///< false, true: ConditionDesc
  struct Condition {
    CodePlace place;
    bool isFloat;
    uint8_t least[2], leads[2];
    std::string work; ///< empty: null
  };
  /// "0,1,4096": integers that main() is written with.
  std::string constantsOfMain() const;
  void mark(llvm::Instruction &before, const CodePlace &place, llvm::Value *left, llvm::Value *right,
            llvm::Value *outcome, std::pair<uint8_t, uint8_t> least, Leads leads, std::string work = "");

  std::vector<llvm::Instruction *> markedInstructions(bool isHost) const;
  void markExtremum(llvm::CallInst &call, const CodePlace &place);
  /// Whether nothing is left over, and whether one more would leave nothing.
  void markDivision(llvm::BinaryOperator &division, const CodePlace &place);
  void markSwitch(llvm::SwitchInst &choice, const CodePlace &place, const GpuWork *work);

  llvm::Module &module;
  std::vector<Condition> conditions;
  std::vector<unsigned> slots; ///< of each record, its condition
  llvm::GlobalVariable *records = nullptr, *table = nullptr;
};

} // namespace optiml::emu

#endif
