//===- RecordedSizes.cpp - other sizes for recorded launches --------------===//
#include "Backend.h"
#include "Workloads.h"
#include "optiml/Emulator/ABI.h"
#include "optiml/Emulator/Build.h"
#include "optiml/Evaluate/Verify/DerivedSizes.h"
#include "optiml/Support/Error.h"
#include "optiml/Workload/Signature.h"
#include "clang/AST/ASTContext.h"
#include "clang/AST/Decl.h"
#include "clang/AST/RecordLayout.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FileSystem.h"

using namespace optiml;

/// The integers in a value of this type, which lies at `offset` in an argument.
static void addIntegers(const clang::ASTContext &ast, clang::QualType type, unsigned argument, uint64_t offset,
                        std::vector<ArgumentInteger> &into) {
  type = type.getCanonicalType();
  if (type->isIntegerType() && !type->isBooleanType() && !type->isEnumeralType()) {
    const uint64_t bytes = uint64_t(ast.getTypeSizeInChars(type).getQuantity());
    if (bytes <= 8)
      into.push_back({argument, offset, unsigned(bytes), type->isSignedIntegerType()});
    return;
  }
  if (const auto *array = ast.getAsConstantArrayType(type)) {
    const uint64_t each = uint64_t(ast.getTypeSizeInChars(array->getElementType()).getQuantity());
    for (uint64_t i = 0; i < std::min<uint64_t>(array->getZExtSize(), 16); ++i)
      addIntegers(ast, array->getElementType(), argument, offset + i * each, into);
    return;
  }
  const clang::RecordDecl *record = type->getAsRecordDecl();
  if (!record || record->isUnion() || record->isInvalidDecl() || !record->isCompleteDefinition())
    return;
  const clang::ASTRecordLayout &layout = ast.getASTRecordLayout(record);
  if (const auto *derived = llvm::dyn_cast<clang::CXXRecordDecl>(record))
    for (const clang::CXXBaseSpecifier &base : derived->bases())
      if (const auto *of = base.getType()->getAsCXXRecordDecl(); of && !base.isVirtual())
        addIntegers(ast, base.getType(), argument, offset + uint64_t(layout.getBaseClassOffset(of).getQuantity()),
                    into);
  for (const clang::FieldDecl *field : record->fields())
    if (!field->isBitField())
      addIntegers(ast, field->getType(), argument, offset + layout.getFieldOffset(field->getFieldIndex()) / 8, into);
}

std::vector<SizedKernel> optiml::sizedKernels(const Program &program, const Workload &recorded,
                                              const std::vector<Workload> &others) {
  std::vector<SizedKernel> result;
  for (const LaunchImage &launch : recorded.launches) {
    auto kernel =
        llvm::find_if(program.kernels(), [&](const KernelDecl &k) { return sameFunction(k.symbol, launch.kernel); });
    if (kernel == program.kernels().end() || kernel->decl->getNumParams() != launch.arguments.size() ||
        llvm::any_of(result, [&](const SizedKernel &k) { return k.recorded == launch.kernel; }))
      continue;
    SizedKernel sized{launch.kernel, kernel->symbol, {}, {}};
    sized.addsRare = llvm::any_of(others, [&](const Workload &other) {
      return llvm::any_of(other.launches, [&](const LaunchImage &l) { return l.kernel == launch.kernel; });
    });
    for (unsigned i = 0; i < launch.arguments.size(); ++i) {
      const clang::QualType type = kernel->decl->getParamDecl(i)->getType();
      addIntegers(program.ast(), type, i, 0, sized.integers);
      if (type->isPointerType() && type->getPointeeType().isConstQualified())
        addIntegers(program.ast(), type->getPointeeType().getUnqualifiedType(), i, 0, sized.indices);
    }
    llvm::erase_if(sized.indices, [&](const ArgumentInteger &index) { // bytes and records hold other things
      return index.bytes < 2 || kernel->decl->getParamDecl(index.argument)->getType()->getPointeeType()->isRecordType();
    });
    llvm::erase_if(sized.integers, [&](const ArgumentInteger &integer) {
      return integer.offset + integer.bytes > launch.arguments[integer.argument].bytes.size();
    });
    if (!sized.integers.empty())
      result.push_back(std::move(sized));
  }
  return result;
}

llvm::Error optiml::addDerivedSizes(const SearchTask &task, double seconds, CapturedRuns &runs) {
  const std::vector<SizedKernel> kernels = sizedKernels(*task.device, runs.performance, {});
  if (kernels.empty())
    return llvm::Error::success();
  const std::string folder = task.folder + "/derived";
  const CheckedModules original = {task.folder + "/derived-bounds.so", task.folder + "/derived-verify.so"};
  if (llvm::Error e = emu::buildReplayModules(task.path, task.text, task.options, task.toolchain,
                                              {{emu::ModeBounds, original.bounds}, {emu::ModeVerify, original.verify}}))
    return e;
  VerifyOptions options = verifyOptions(task);
  options.replayProgram = replayProgramOf(task.toolchain);
  auto derived = deriveSizes(runs.performance, kernels, original, options, folder, seconds);
  for (const std::string &module : {original.bounds, original.verify})
    llvm::sys::fs::remove(module);
  if (!derived)
    return derived.takeError();
  if (!derived->launches.empty())
    runs.otherSizes.push_back(std::move(*derived));
  return llvm::Error::success();
}
