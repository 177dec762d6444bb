//===- Optimize.cpp - host machine, pipelines, object files ---------------===//
#include "Optimize.h"
#include "optiml/Support/Error.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/SubtargetFeature.h"
#include "llvm/Transforms/Scalar/SROA.h"
#include "llvm/Transforms/Utils/LoopUtils.h"
#include "llvm/Transforms/Utils/UnrollLoop.h"

using namespace llvm;
using namespace optiml;
using namespace optiml::emu;

Expected<std::unique_ptr<TargetMachine>> optiml::emu::hostMachine(bool native) {
  InitializeNativeTarget();
  InitializeNativeTargetAsmPrinter();
  Triple triple(sys::getProcessTriple());
  std::string message;
  const Target *target = TargetRegistry::lookupTarget(triple, message);
  if (!target)
    return makeError("LLVM has no code generator for this machine: {0}", message);
  SubtargetFeatures features;
  for (const auto &feature : sys::getHostCPUFeatures())
    if (native)
      features.AddFeature(feature.first(), feature.second);
  TargetOptions options;
  options.AllowFPOpFusion = FPOpFusion::Standard; // fuse where the device code allows it, as nvcc does
  return std::unique_ptr<TargetMachine>(target->createTargetMachine(triple, native ? sys::getHostCPUName() : "x86-64",
                                                                    features.getString(), options, Reloc::PIC_,
                                                                    std::nullopt, CodeGenOptLevel::Default));
}

namespace {
/// nvcc's optimizer unrolls innermost loops of unknown length by four where their body is small: seen in its PTX for
/// bodies of up to about 25 instructions, loads and barriers included, and no longer at 45.
struct UnrollAsNvcc : PassInfoMixin<UnrollAsNvcc> {
  static constexpr unsigned factor = 4, mostInstructions = 38;

  PreservedAnalyses run(Function &function, FunctionAnalysisManager &analyses) {
    for (Loop *loop : analyses.getResult<LoopAnalysis>(function).getLoopsInPreorder()) {
      MDNode *wishes = loop->getLoopID(); // null: loops that need not end, such as while (true)
      auto isWished = [&](const char *name) { return wishes && GetUnrollMetadata(wishes, name); };
      if (!loop->isInnermost() || isWished("llvm.loop.unroll.count") || isWished("llvm.loop.unroll.full") ||
          isWished("llvm.loop.unroll.disable"))
        continue;
      unsigned size = 0;
      for (BasicBlock *block : loop->blocks())
        for (Instruction &inst : *block)
          size += !isa<PHINode>(inst) && !inst.isDebugOrPseudoInst();
      if (size <= mostInstructions)
        addStringMetadataToLoop(loop, "llvm.loop.unroll.count", factor);
    }
    return PreservedAnalyses::all();
  }
};
} // namespace

void optiml::emu::optimize(Module &module, TargetMachine &machine, Level level) {
  for (Function &f : module)
    if (!f.isDeclaration()) {
      f.addFnAttr("target-cpu", machine.getTargetCPU());
      f.addFnAttr("target-features", machine.getTargetFeatureString());
      f.addFnAttr("no-trapping-math", "true");
    }
  PipelineTuningOptions tuning;
  tuning.LoopVectorization = tuning.SLPVectorization = tuning.LoopInterleaving = level == Level::Host;
  PassBuilder builder(&machine, tuning);
  if (level == Level::Device)
    builder.registerVectorizerStartEPCallback(
        [](FunctionPassManager &passes, OptimizationLevel) { passes.addPass(UnrollAsNvcc()); });
  PassAnalyses analyses(builder);
  OptimizationLevel o = level == Level::Cleanup  ? OptimizationLevel::O1
                        : level == Level::Device ? OptimizationLevel::O3
                                                 : OptimizationLevel::O2;
  builder.buildPerModuleDefaultPipeline(o).run(module, analyses.modules);
}

void optiml::emu::promoteLocals(Module &module) {
  PassBuilder builder;
  PassAnalyses analyses(builder);
  ModulePassManager passes;
  passes.addPass(createModuleToFunctionPassAdaptor(SROAPass(SROAOptions::PreserveCFG)));
  passes.run(module, analyses.modules);
}

void optiml::emu::dropUnrollHints(Module &module) {
  for (Function &f : module)
    for (BasicBlock &block : f) {
      Instruction *end = block.getTerminator();
      MDNode *loop = end ? end->getMetadata(LLVMContext::MD_loop) : nullptr;
      if (!loop)
        continue;
      SmallVector<Metadata *, 4> kept = {nullptr}; // a loop's metadata refers to itself first
      for (const MDOperand &operand : drop_begin(loop->operands())) {
        auto *hint = dyn_cast<MDNode>(operand);
        auto *name = hint && hint->getNumOperands() ? dyn_cast<MDString>(hint->getOperand(0)) : nullptr;
        if (!name || !name->getString().starts_with("llvm.loop.unroll."))
          kept.push_back(operand);
      }
      MDNode *rest = MDNode::getDistinct(module.getContext(), kept);
      rest->replaceOperandWith(0, rest);
      end->setMetadata(LLVMContext::MD_loop, rest);
    }
}

Error optiml::emu::writeObject(Module &module, TargetMachine &machine, const std::string &path) {
  std::error_code code;
  raw_fd_ostream out(path, code, sys::fs::OF_None);
  if (code)
    return makeError("{0}: {1}", path, code.message());
  legacy::PassManager passes;
  if (machine.addPassesToEmitFile(passes, out, nullptr, CodeGenFileType::ObjectFile))
    return makeError("LLVM cannot write object files for this machine");
  passes.run(module);
  out.close();
  if (out.has_error())
    return makeError("{0}: {1}", path, out.error().message());
  return Error::success();
}
