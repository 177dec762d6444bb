//===- Emitter.h - one program text being written ---------------*- C++ -*-===//
#ifndef OPTIML_LIB_EMIT_EMITTER_H
#define OPTIML_LIB_EMIT_EMITTER_H

#include "Texts.h"
#include "optiml/Core/KernelName.h"
#include "optiml/Emit/Emit.h"

namespace optiml {

/// Text to insert or to put in place of a range of the original.
struct Edit {
  unsigned begin, end;
  std::string text;
};

class Emitter {
public:
  Emitter(const Variant &variant, const Program &host, const std::string &fileName,
          const std::map<std::string, std::string> &summaries, const std::vector<LoopRewrite> &loops,
          llvm::ArrayRef<Fusion> fusions = {}, const std::set<std::string> &launchedElsewhere = {},
          const std::set<std::string> &far = {}, EmitStyle style = EmitStyle::Guarded)
      : variant(variant), host(host), fileName(fileName), summaries(summaries), loops(loops), fusions(fusions),
        launchedElsewhere(launchedElsewhere), far(far), style(style),
        mayFollow(setsKernelAttributes(host) || !launchedElsewhere.empty()) {}
  llvm::Expected<EmittedProgram> run();

private:
  /// Launches of a template kernel within templates: its rewritten instantiations and the places.
  struct Family {
    std::vector<Dispatcher> dispatchers;
    std::map<unsigned, const LaunchSite *> sites;
  };

  const Variant &variant;
  const Program &host;
  const std::string &fileName;
  const std::map<std::string, std::string> &summaries;
  const std::vector<LoopRewrite> &loops;
  llvm::ArrayRef<Fusion> fusions;
  const std::set<std::string> &launchedElsewhere, &far; ///< symbols
  const EmitStyle style;
  const bool mayFollow; ///< somebody may set attributes of the originals
  std::vector<Edit> edits;
  EmittedProgram result;
  std::string helper;                             ///< the class that counts paths
  std::string configured;                         ///< what launches by a configuration call; empty: there are none
  std::map<std::string, std::string> dispatchers; ///< names, by the kernel's symbol
  std::map<std::string, Family> families;         ///< by the kernel's template

  std::string freshIdentifier(const std::string &wish) const {
    std::string name = wish;
    for (unsigned i = 2; variant.original.find(name) != std::string::npos; ++i)
      name = wish + std::to_string(i);
    return name;
  }
  unsigned symbolsAt(const LaunchSite &site) const {
    std::set<std::string> symbols;
    for (const LaunchSite &other : host.launches())
      if (other.begin == site.begin && !other.symbol.empty())
        symbols.insert(other.symbol);
    return unsigned(symbols.size());
  }
  std::string shielded(const std::string &text) const;
  std::string deducing(const KernelRewrite &rewrite, const std::string &name, const std::string &chooser) const;
  std::string support() const;
  std::string lineDirective(unsigned offset) const;
  unsigned afterIncludes() const;
  std::string recipeOf(const KernelRewrite &rewrite) const;
  bool inLoop(const LaunchSite &site) const;
  std::string whyKept(const LaunchSite &site, const KernelRewrite &rewrite) const;
  void emitRewrite(const KernelRewrite &rewrite);
  /// Where nothing else uses the original of a rewrite with this many launches: the beginning of its definition.
  std::optional<unsigned> replaceableAt(const KernelRewrite &rewrite, size_t launches) const;
  void emitPlain(const KernelRewrite &rewrite, const std::string &launcher, size_t launches);
  void declareBefore(llvm::ArrayRef<const LaunchSite *> calls, const KernelRewrite &rewrite,
                     const std::string &signature);
  std::string emitEntry(const KernelRewrite &rewrite, const std::string &dispatcher);
  std::string entryCall(const LaunchSite &site, const std::string &entry);
  void emitFarLaunches();
  void tell(std::string remark); ///< once
  void keeps(const LaunchSite &site, const std::string &kernel, const std::string &why);
  void tellTaken(const std::string &symbol, const std::string &kernel);
  unsigned choosesFrom(const KernelRewrite &rewrite) const;
  void emitFamily(const std::string &kernel, const Family &family);
  void emitLoops(const LoopRewrite &rewrite);
  llvm::Error assemble();
  void emitFusion(const Fusion &fusion);
};

/// The new kernel. Of one that other files may define as well, they may hold the same.
std::string twinText(const KernelRewrite &rewrite);

/// What a call puts before the name of something that stands beside the twin.
inline std::string qualifierOf(const KernelRewrite &rewrite, const LaunchSite &site) {
  return rewrite.besideOriginal ? scopeOf(site.callee).str() : "";
}

} // namespace optiml

#endif
