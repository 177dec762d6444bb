//===- PlainText.cpp - new kernels as a person would write them -----------===//
#include "Emitter.h"
#include "clang/AST/ASTContext.h"
#include "clang/AST/Decl.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace optiml;

/// The text with one identifier in place of another.
static std::string withName(llvm::StringRef text, llvm::StringRef from, llvm::StringRef to) {
  auto isPart = [](char c) { return llvm::isAlnum(c) || c == '_'; };
  std::string result;
  while (!text.empty()) {
    llvm::StringRef word = text.take_while(isPart);
    result += word == from ? to : word;
    text = text.drop_front(word.size());
    llvm::StringRef between = text.take_until(isPart);
    result += between;
    text = text.drop_front(between.size());
  }
  return result;
}

/// Whether other files can launch the kernel. Those of a program whose main() is here hardly do.
static bool isOthersToo(const KernelDecl &kernel, const Program &host) {
  if (!kernel.decl || !kernel.decl->isExternallyVisible())
    return false;
  clang::ASTContext &ast = host.ast();
  for (const clang::NamedDecl *decl : ast.getTranslationUnitDecl()->lookup(&ast.Idents.get("main")))
    if (const auto *function = llvm::dyn_cast<clang::FunctionDecl>(decl); function && function->hasBody())
      return false;
  return true;
}

std::optional<unsigned> Emitter::replaceableAt(const KernelRewrite &rewrite, size_t launches) const {
  const KernelDecl *kernel = host.findKernel(rewrite.originalSymbol);
  size_t all = 0;
  for (const std::vector<LaunchSite> *sites : {&host.launches(), &host.addressLaunches()})
    all +=
        size_t(llvm::count_if(*sites, [&](const LaunchSite &site) { return site.symbol == rewrite.originalSymbol; }));
  const bool isTaken =
      llvm::any_of(host.takenAddresses(), [&](const auto &taken) { return taken.first == rewrite.originalSymbol; });
  if (!kernel || kernel->isTemplate || !kernel->inMainFile || !rewrite.besideOriginal || kernel->source.empty() ||
      kernel->source.size() > kernel->endOffset || !rewrite.plan.scratch.empty() || isTaken || all != launches ||
      launchedElsewhere.count(rewrite.originalSymbol) || isOthersToo(*kernel, host))
    return std::nullopt;
  const unsigned begin = kernel->endOffset - unsigned(kernel->source.size());
  if (llvm::StringRef(variant.original).substr(begin, kernel->source.size()) != kernel->source)
    return std::nullopt;
  // Its name stands where it is defined and launched, and nowhere else: no declaration, no attribute that is set.
  const std::string own = unqualified(rewrite.original).str();
  const std::string without = withName(variant.original, own, "");
  return (variant.original.size() - without.size()) / own.size() == launches + 1 ? std::optional(begin) : std::nullopt;
}

void Emitter::emitPlain(const KernelRewrite &rewrite, const std::string &launcher, size_t launches) {
  const bool accepted = style == EmitStyle::Accepted;
  if (std::optional<unsigned> begin = accepted ? replaceableAt(rewrite, launches) : std::nullopt) {
    const std::string own = unqualified(rewrite.original).str();
    const KernelDecl *kernel = host.findKernel(rewrite.originalSymbol);
    const bool isStatic = kernel->decl->getStorageClass() == clang::SC_Static;
    const std::string text =
        (isStatic ? "static " : "") + rewrite.twinText + "\n" + shielded(plainLauncherText(rewrite, launcher, true));
    edits.push_back({*begin, rewrite.insertAt, withName(text, rewrite.twin, own)});
    return;
  }
  edits.push_back(
      {rewrite.insertAt, rewrite.insertAt,
       "\n\n" + rewrite.placed(twinText(rewrite) + "\n" + shielded(plainLauncherText(rewrite, launcher, accepted)))});
}
