//===- Compile.h - variants through nvcc ------------------------*- C++ -*-===//
#ifndef OPTIML_EVALUATE_PREDICT_COMPILE_H
#define OPTIML_EVALUATE_PREDICT_COMPILE_H

#include "optiml/Core/Interfaces.h"
#include "optiml/Evaluate/Predict/Nvrtc.h"
#include "optiml/Evaluate/Predict/Ptxas.h"
#include "optiml/Frontend/CompileOptions.h"
#include "optiml/Frontend/DeviceText.h"
#include "optiml/Frontend/Toolchain.h"
#include "optiml/Support/TempDir.h"
#include <atomic>
#include <future>
#include <map>
#include <memory>
#include <mutex>

namespace optiml {

/// A program text as machine code. The files go with the object.
struct CompiledText {
  std::string directory; ///< its own, for whoever needs more files of this text
  std::string source, cubin;
  PtxasReport ptxas;
  double processorSeconds = 0; ///< that it took
  ~CompiledText();

  /// The mangled name of a kernel given by its mangled or its plain name; empty when there is none.
  std::string symbolOf(const std::string &kernel) const;
  /// Of that kernel; null when there is none.
  const Resources *resourcesOf(const std::string &kernel) const;
};

/// Compiles texts that stand in place of the user's file, with the user's flags, for one architecture. Safe to use from
/// several threads.
class TextCompiler {
public:
  /// `cancel` may be null.
  static llvm::Expected<std::unique_ptr<TextCompiler>> create(const Toolchain &toolchain, const std::string &path,
                                                              const CompileOptions &options,
                                                              const std::atomic<bool> *cancel);
  /// The same text is compiled once. On an Error, `verdict` says which kind: nvcc refuses the text, or took too long.
  llvm::Expected<std::shared_ptr<const CompiledText>> compile(const std::string &text, Verdict &verdict) const;

  /// Of a variant only the new kernels where NVRTC takes them (useDeviceText), else its text.
  llvm::Expected<std::shared_ptr<const CompiledText>> compile(const Variant &variant, Verdict &verdict) const;
  /// From now on NVRTC compiles variants of the program that `device` is of, once it makes the same machine code of
  /// the original's kernels as nvcc has, in less time. That is found out beside what goes on.
  void useDeviceText(DeviceText device, std::shared_ptr<const CompiledText> original);
  /// The same as PTX.
  llvm::Expected<std::string> ptx(const CompiledText &compiled) const;
  /// Until it is called again, compilations end when this flag is raised too; null: only with that of create().
  void stopWith(const std::atomic<bool> *flag) { stop = flag; }

private:
  explicit TextCompiler(TempDir dir) : dir(std::move(dir)) {}
  llvm::Expected<std::shared_ptr<const CompiledText>> compileAnew(const std::string &text, Verdict &verdict) const;
  /// `alone` by NVRTC, with these instantiations; null when it does not take it. `text`: of the whole variant.
  std::shared_ptr<const CompiledText> compileAlone(const std::string &alone, const std::string &text,
                                                   const std::vector<std::string> &kernels) const;
  llvm::Expected<std::shared_ptr<CompiledText>> begin(const std::string &text, CubinRequest &own) const;
  /// Lets NVRTC precompile what all device texts begin with, where that includes files.
  void precompileHead();
  bool isNvrtcTrusted() const;
  Toolchain toolchain;
  TempDir dir;
  CubinRequest request; ///< what all texts have in common
  std::string fileName;
  std::atomic<const std::atomic<bool> *> stop{nullptr};
  mutable std::atomic<unsigned> counter{0};
  mutable std::mutex mutex;
  mutable std::map<std::string, std::shared_ptr<const CompiledText>> done; ///< by the text's hash

  std::optional<Nvrtc> nvrtc; ///< with what follows
  std::vector<std::string> options;
  DeviceText device;
  std::string head;                                      ///< of all texts, if NVRTC has it precompiled
  mutable std::atomic<unsigned> accepted{0}, refused{0}; ///< by NVRTC alone
  std::shared_future<bool> trusted;                      ///< last, for it uses the others
};

} // namespace optiml

#endif
