//===- DeviceText.cpp - what of a program its kernels need ----------------===//
//
// What a kernel uses is followed through the AST: functions that it calls, types, variables, and what these use. Then
// every declaration at namespace scope is kept or left out as a whole, with what stands before it (attributes,
// comments). Of a class that is kept, bodies of host functions go. Directives stay where they are, but for #include:
// what CUDA declares NVRTC knows, and types and numbers of the C library are in device-text.cuh.
//
//===----------------------------------------------------------------------===//
#include "optiml/Frontend/DeviceText.h"
#include "optiml/Frontend/Program.h"
#include "clang/AST/DeclTemplate.h"
#include "clang/AST/DynamicRecursiveASTVisitor.h"
#include "clang/AST/ExprCXX.h"
#include "clang/Lex/Lexer.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include <map>
#include <set>

using namespace clang;
using namespace optiml;

namespace optiml {
extern const char *const deviceTextPrelude; // device-text.cuh
}

namespace {

/// A header of the toolkit, or within a folder of it.
bool isOfCuda(llvm::StringRef file) {
  llvm::SmallString<128> folder(file);
  for (unsigned level = 0; level < 3; ++level) {
    llvm::sys::path::remove_filename(folder);
    llvm::SmallString<128> runtime(folder);
    llvm::sys::path::append(runtime, "cuda_runtime.h");
    if (llvm::sys::fs::exists(runtime))
      return true;
  }
  return false;
}

/// What a template is of; any other declaration itself.
const Decl *writtenOf(const Decl *decl) {
  const auto *made = dyn_cast<TemplateDecl>(decl);
  return made && made->getTemplatedDecl() ? made->getTemplatedDecl() : decl;
}

bool runsOnDevice(const FunctionDecl &fn) {
  return fn.hasAttr<CUDADeviceAttr>() || fn.hasAttr<CUDAGlobalAttr>() || fn.isConstexpr();
}

/// Everything that kernels use.
class Reach : public DynamicRecursiveASTVisitor {
public:
  explicit Reach(const SourceManager &sm) : sm(sm) {}
  /// With what it uses in turn.
  void add(const Decl *decl) {
    need(decl);
    while (!waiting.empty()) {
      const Decl *next = waiting.back();
      waiting.pop_back();
      TraverseDecl(const_cast<Decl *>(next));
    }
  }
  bool has(const Decl *decl) const { return needed.count(decl) || needed.count(writtenOf(decl)); }
  /// Files of declarations that are used and stand elsewhere.
  const std::set<std::string> &files() const { return otherFiles; }

  bool TraverseDecl(Decl *decl) override {
    auto *fn = dyn_cast_or_null<FunctionDecl>(decl);
    if (!fn || runsOnDevice(*fn) || !isa<CXXRecordDecl>(fn->getLexicalDeclContext()))
      return DynamicRecursiveASTVisitor::TraverseDecl(decl);
    return !fn->getTypeSourceInfo() || TraverseTypeLoc(fn->getTypeSourceInfo()->getTypeLoc());
  }
  bool VisitDeclRefExpr(DeclRefExpr *e) override {
    need(e->getDecl());
    return need(e->getFoundDecl());
  }
  bool VisitMemberExpr(MemberExpr *e) override { return need(e->getMemberDecl()); }
  bool VisitCXXConstructExpr(CXXConstructExpr *e) override { return need(e->getConstructor()); }
  bool VisitOverloadExpr(OverloadExpr *e) override {
    for (const NamedDecl *candidate : e->decls())
      need(candidate);
    return true;
  }
  bool VisitTagType(TagType *type) override { return need(type->getDecl()); }
  bool VisitTypedefType(TypedefType *type) override { return need(type->getDecl()); }
  bool VisitUsingType(UsingType *type) override { return need(type->getDecl()); }
  bool VisitTemplateSpecializationType(TemplateSpecializationType *type) override {
    return need(type->getTemplateName().getAsTemplateDecl());
  }

private:
  bool need(const Decl *decl) {
    if (!decl || isa<TranslationUnitDecl, NamespaceDecl, ParmVarDecl>(decl))
      return true;
    if (const auto *shadow = dyn_cast<UsingShadowDecl>(decl)) {
      needed.insert(shadow->getIntroducer());
      return need(shadow->getTargetDecl());
    }
    decl = writtenOf(decl);
    if (!needed.insert(decl).second)
      return true;
    if (const auto *fn = dyn_cast<FunctionDecl>(decl)) {
      need(fn->getTemplateInstantiationPattern());
      if (const FunctionDecl *definition = fn->getDefinition(); definition && runsOnDevice(*fn))
        wait(definition);
    } else if (const auto *special = dyn_cast<ClassTemplateSpecializationDecl>(decl)) {
      need(special->getSpecializedTemplate());
      auto from = special->getInstantiatedFrom();
      if (auto *partial = dyn_cast_if_present<ClassTemplatePartialSpecializationDecl *>(from))
        need(partial);
      wait(special);
    }
    for (const Decl *other : decl->redecls())
      needAtFileScope(other);
    return true;
  }
  void needAtFileScope(const Decl *decl) {
    while (!decl->getLexicalDeclContext()->isFileContext()) {
      if (isa<FunctionDecl>(decl->getLexicalDeclContext()))
        return; // part of what is needed already
      decl = cast<Decl>(decl->getLexicalDeclContext());
    }
    needed.insert(decl);
    SourceLocation place = sm.getExpansionLoc(decl->getLocation());
    if (sm.isInMainFile(place))
      wait(decl);
    else if (!sm.isInSystemHeader(place) || isInCuda(sm.getFileID(place)))
      addFile(place);
  }
  /// Looks at the disk once a file.
  bool isInCuda(FileID file) {
    auto [known, isNew] = ofCuda.try_emplace(file, false);
    if (isNew)
      known->second = isOfCuda(sm.getFilename(sm.getLocForStartOfFile(file)));
    return known->second;
  }
  /// Where it is declared, and the files that include that.
  void addFile(SourceLocation place) {
    for (; place.isValid(); place = sm.getIncludeLoc(sm.getFileID(place)))
      otherFiles.insert(sm.getFilename(place).str());
  }
  void wait(const Decl *decl) {
    if (sm.isInMainFile(sm.getExpansionLoc(decl->getLocation())) && taken.insert(decl).second)
      waiting.push_back(decl);
  }

  const SourceManager &sm;
  std::set<const Decl *> needed, taken;
  std::vector<const Decl *> waiting;
  std::set<std::string> otherFiles;
  std::map<FileID, bool> ofCuda;
};

} // namespace

namespace optiml {

class DeviceTextCutter {
public:
  explicit DeviceTextCutter(const Program &program)
      : program(program), ast(program.ast()), sm(ast.getSourceManager()), reach(sm), text(program.text()) {}

  DeviceText cut() {
    for (const KernelDecl &kernel : program.kernels()) {
      reach.add(kernel.decl);
      if (kernel.isTemplate)
        result.templates.push_back(kernel.name);
      if (kernel.inMainFile)
        kernelsEndingAt[kernel.endOffset].insert({kernel.name, kernel.symbol});
    }
    result.parts.push_back({0, 0, deviceTextPrelude, {}});
    cutContext(*ast.getTranslationUnitDecl());
    keep(text.size());
    return std::move(result);
  }

  /// `line` of a text that begins with a directive, with the lines that it goes on in.
  static llvm::StringRef takeDirective(llvm::StringRef &rest) {
    llvm::StringRef all = rest;
    while (true) {
      auto [line, after] = rest.split('\n');
      rest = after;
      if (!line.rtrim().ends_with("\\") || rest.empty())
        break;
    }
    return all.drop_back(rest.size());
  }
  static llvm::StringRef wordOf(llvm::StringRef directive) {
    return directive.ltrim().drop_front().ltrim().take_while([](char c) { return std::isalpha(c); });
  }

private:
  /// What ends at one place: the declarators of `int a, b;`, or what one macro makes.
  struct Group {
    std::vector<const Decl *> decls;
    unsigned end = 0;
  };

  bool isOurs(const Decl &decl) const {
    return !decl.isImplicit() && sm.isInMainFile(sm.getExpansionLoc(decl.getLocation()));
  }
  unsigned offsetAfter(SourceLocation token) const {
    return sm.getFileOffset(Lexer::getLocForEndOfToken(token, 0, sm, ast.getLangOpts()));
  }
  SourceLocation endOf(SourceLocation loc) const { return sm.getExpansionRange(loc).getEnd(); }

  /// Behind the semicolon that follows, if one does; nullopt where something else of the same declaration follows.
  std::optional<unsigned> endOf(const Decl &decl) const {
    SourceLocation last = endOf(decl.getEndLoc());
    const auto *fn = dyn_cast<FunctionDecl>(writtenOf(&decl));
    if (fn && fn->doesThisDeclarationHaveABody())
      return offsetAfter(last);
    std::optional<Token> next = Lexer::findNextToken(last, sm, ast.getLangOpts());
    if (next && next->is(tok::semi))
      return offsetAfter(next->getLocation());
    if (decl.getEndLoc().isMacroID() || isa<EmptyDecl, FileScopeAsmDecl>(decl))
      return offsetAfter(last);
    return std::nullopt;
  }

  void cutContext(const DeclContext &context) {
    Group group;
    for (const Decl *decl : context.decls()) {
      if (!isOurs(*decl))
        continue;
      if (const auto *space = dyn_cast<NamespaceDecl>(decl)) {
        cutWithin(*space, space->getBeginLoc(), space->getRBraceLoc());
        continue;
      }
      if (const auto *linkage = dyn_cast<LinkageSpecDecl>(decl); linkage && linkage->hasBraces()) {
        cutWithin(*linkage, linkage->getExternLoc(), linkage->getRBraceLoc());
        continue;
      }
      group.decls.push_back(decl);
      if (const auto *linkage = dyn_cast<LinkageSpecDecl>(decl))
        for (const Decl *own : linkage->decls())
          group.decls.push_back(own);
      std::optional<unsigned> end = endOf(*group.decls.back());
      if (!end)
        continue;
      group.end = *end;
      finish(group);
      group = {};
    }
  }

  void cutWithin(const DeclContext &context, SourceLocation from, SourceLocation brace) {
    SourceLocation at = endOf(from);
    for (std::optional<Token> token; (token = Lexer::findNextToken(at, sm, ast.getLangOpts()));) {
      at = token->getLocation();
      if (token->is(tok::l_brace))
        break;
    }
    keep(offsetAfter(at));
    cutContext(context);
    keep(offsetAfter(endOf(brace)));
  }

  bool isWanted(const Decl &decl) const {
    const NamespaceDecl *space = nullptr;
    if (const auto *directive = dyn_cast<UsingDirectiveDecl>(&decl))
      space = directive->getNominatedNamespace();
    else if (const auto *alias = dyn_cast<NamespaceAliasDecl>(&decl))
      space = alias->getNamespace();
    if (!space)
      return reach.has(&decl);
    return space->isStdNamespace() || llvm::any_of(space->redecls(), [&](const NamespaceDecl *part) {
             return isOurs(*part) || reach.files().count(sm.getFilename(sm.getExpansionLoc(part->getLocation())).str());
           });
  }

  void finish(const Group &group) {
    if (group.end <= done)
      return; // made by a macro together with what came before
    if (!llvm::any_of(group.decls, [&](const Decl *decl) { return isWanted(*decl); })) {
      add(group.end, directivesOf(text.slice(done, group.end)));
      return;
    }
    std::vector<std::pair<unsigned, unsigned>> bodies;
    for (const Decl *decl : group.decls)
      addHostBodies(*decl, bodies);
    llvm::sort(bodies);
    std::string kept;
    unsigned at = done;
    for (auto [begin, end] : bodies) {
      if (begin < at)
        continue;
      kept += text.slice(at, begin).str() + ";" + std::string(text.slice(begin, end).count('\n'), '\n');
      at = end;
    }
    add(group.end, withoutIncludes(kept + text.slice(at, group.end).str()));
    if (auto own = kernelsEndingAt.find(group.end); own != kernelsEndingAt.end())
      result.parts.back().kernels.assign(own->second.begin(), own->second.end());
  }

  /// Of host functions within classes, from where a ; does in their place.
  void addHostBodies(const Decl &decl, std::vector<std::pair<unsigned, unsigned>> &bodies) const {
    const Decl *written = writtenOf(&decl);
    if (const auto *record = dyn_cast<CXXRecordDecl>(written)) {
      for (const Decl *member : record->decls())
        if (!member->isImplicit())
          addHostBodies(*member, bodies);
      return;
    }
    const auto *fn = dyn_cast<CXXMethodDecl>(written);
    if (!fn || runsOnDevice(*fn) || !fn->doesThisDeclarationHaveABody() || fn->isDefaulted() || !fn->getBody() ||
        !isa<CXXRecordDecl>(fn->getLexicalDeclContext()))
      return;
    unsigned begin = sm.getFileOffset(sm.getExpansionLoc(fn->getBody()->getBeginLoc()));
    const auto *constructor = dyn_cast<CXXConstructorDecl>(fn);
    if (FunctionTypeLoc type = fn->getFunctionTypeLoc();
        type && constructor && llvm::any_of(constructor->inits(), [](const auto *i) { return i->isWritten(); }))
      begin = offsetAfter(endOf(type.getRParenLoc()));
    bodies.emplace_back(begin, offsetAfter(endOf(fn->getBody()->getEndLoc())));
  }

  void keep(unsigned end) {
    if (end > done)
      add(end, withoutIncludes(text.slice(done, end)));
  }
  void add(unsigned end, std::string kept) {
    result.parts.push_back({done, end, std::move(kept), {}});
    done = end;
  }

  /// A file of CUDA's that NVRTC does not know by itself, with something in it that is used.
  bool isNeeded(llvm::StringRef directive) const {
    llvm::StringRef name = directive.split('<').second.split('>').first;
    if (name.empty())
      name = directive.split('"').second.split('"').first;
    if (name.empty())
      return false;
    const llvm::StringRef stem = llvm::sys::path::stem(name);
    return llvm::any_of(reach.files(), [&](llvm::StringRef file) {
      return llvm::sys::path::stem(file) == stem || file.contains(("/" + stem + "/").str());
    });
  }
  std::string directivesOf(llvm::StringRef cut) const {
    std::string kept = "\n";
    while (!cut.empty()) {
      if (!cut.ltrim(" \t").starts_with("#")) {
        cut = cut.split('\n').second;
        continue;
      }
      llvm::StringRef directive = takeDirective(cut), word = wordOf(directive);
      if (word == "include" ? isNeeded(directive) : word != "pragma" && word != "error" && word != "line")
        kept += directive.str() + (directive.ends_with("\n") ? "" : "\n");
    }
    return kept;
  }
  std::string withoutIncludes(llvm::StringRef part) const {
    std::string kept;
    while (!part.empty()) {
      if (!part.ltrim(" \t").starts_with("#")) {
        auto [line, rest] = part.split('\n');
        kept += line.str() + (line.size() < part.size() ? "\n" : "");
        part = rest;
        continue;
      }
      llvm::StringRef directive = takeDirective(part);
      kept += wordOf(directive) != "include" || isNeeded(directive) ? directive.str() : "\n";
    }
    return kept;
  }

  const Program &program;
  ASTContext &ast;
  const SourceManager &sm;
  Reach reach;
  llvm::StringRef text;
  std::map<unsigned, std::set<std::string>> kernelsEndingAt;
  DeviceText result;
  unsigned done = 0; ///< of the text
};

} // namespace optiml

DeviceText DeviceText::of(const Program &program) { return DeviceTextCutter(program).cut(); }

std::string DeviceText::with(const std::vector<Insertion> &insertions,
                             llvm::function_ref<bool(const std::string &)> wantsKernel) const {
  std::string all;
  std::vector<bool> isIn(insertions.size());
  auto insert = [&](const Part &before, bool atEnd) {
    for (size_t i = 0; i < insertions.size(); ++i)
      if (!isIn[i] && (atEnd ? insertions[i].at == before.end : insertions[i].at < before.end)) {
        isIn[i] = true;
        all += "\n\n" + insertions[i].text + "\n";
      }
  };
  for (const Part &part : parts) {
    insert(part, /*atEnd=*/false);
    all += part.kernels.empty() || llvm::any_of(part.kernels, wantsKernel) ? part.text : "\n";
    insert(part, /*atEnd=*/true);
  }
  return all;
}

std::string DeviceText::whole() const {
  return with({}, [](const std::string &) { return true; });
}

std::string DeviceText::head() const {
  const std::string all = whole();
  llvm::StringRef rest = all;
  if (parts.empty() || !rest.consume_front(parts.front().text)) // our own declarations
    return "";
  const size_t own = all.size() - rest.size();
  size_t end = own; // behind the last line at which no conditional section is open
  unsigned open = 0;
  bool isComment = false;
  while (!rest.empty()) {
    const llvm::StringRef line = rest.split('\n').first, word = line.trim();
    if (!isComment && word.starts_with("#")) {
      const llvm::StringRef directive = DeviceTextCutter::wordOf(DeviceTextCutter::takeDirective(rest));
      open += directive.starts_with("if");
      open -= directive == "endif" && open;
    } else {
      if (isComment || word.starts_with("/*")) {
        isComment = !word.contains("*/");
        if (!isComment && !word.ends_with("*/"))
          break;
      } else if (!word.empty() && !word.starts_with("//")) {
        break;
      }
      rest = rest.drop_front(std::min(line.size() + 1, rest.size()));
    }
    if (!open && !isComment)
      end = all.size() - rest.size();
  }
  return llvm::StringRef(all).slice(own, end).contains("include") ? all.substr(0, end) : "";
}
