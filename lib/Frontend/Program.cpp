//===- Program.cpp - one parsed CUDA translation unit ---------------------===//
#include "optiml/Frontend/Program.h"
#include "KernelDirective.h"
#include "KernelPlace.h"
#include "PointerFields.h"
#include "PrecompiledIncludes.h"
#include "optiml/Frontend/ClangRun.h"
#include "optiml/Support/Error.h"
#include "clang/AST/DynamicRecursiveASTVisitor.h"
#include "clang/AST/Mangle.h"
#include "clang/ASTMatchers/ASTMatchFinder.h"
#include "clang/Driver/CreateInvocationFromArgs.h"
#include "clang/Frontend/ASTUnit.h"
#include "clang/Frontend/TextDiagnosticPrinter.h"
#include "clang/Lex/Lexer.h"
#include "clang/Lex/PreprocessorOptions.h"
#include "clang/Serialization/PCHContainerOperations.h"
#include "llvm/ADT/SmallVectorExtras.h"
#include "llvm/Support/FileSystem.h"
#include <set>

using namespace optiml;
using namespace clang;

Program::Program() = default;
Program::~Program() = default;
ASTContext &Program::ast() const { return unit->getASTContext(); }

const KernelDecl *Program::findKernel(llvm::StringRef nameOrSymbol) const {
  for (const KernelDecl &kernel : kernelDecls)
    if (kernel.name == nameOrSymbol || kernel.symbol == nameOrSymbol)
      return &kernel;
  return nullptr;
}

bool Program::readsArguments() const {
  using namespace ast_matchers;
  auto mains = match(functionDecl(isMain(), isDefinition()).bind("main"), ast());
  if (mains.empty())
    return true;
  const auto *main = mains.front().getNodeAs<FunctionDecl>("main");
  for (const BoundNodes &found :
       match(findAll(declRefExpr(to(parmVarDecl().bind("parameter")))), *main->getBody(), ast()))
    if (found.getNodeAs<ParmVarDecl>("parameter")->getDeclContext() == main)
      return true;
  return false;
}

/// Clang's captured errors as "file:line:column: error: message" lines, at most ten.
static std::string errorText(ASTUnit &unit) {
  std::string result;
  unsigned count = 0, errors = 0;
  for (auto it = unit.stored_diag_begin(); it != unit.stored_diag_end(); ++it) {
    // With it Clang finds fault with each use of the variable.
    const bool isManaged = ignoresManaged(it->getMessage());
    errors += it->getLevel() >= DiagnosticsEngine::Error;
    if ((it->getLevel() < DiagnosticsEngine::Error && !isManaged) || ++count > 10)
      continue;
    FullSourceLoc loc = it->getLocation();
    if (loc.isValid()) {
      PresumedLoc place = loc.getManager().getPresumedLoc(loc);
      if (place.isValid())
        result += llvm::formatv("{0}:{1}:{2}: ", place.getFilename(), place.getLine(), place.getColumn());
    }
    result += llvm::formatv("error: {0}\n", isManaged ? managedIsUnsupported : it->getMessage());
  }
  if (!errors)
    return "";
  result.pop_back();
  return result;
}

llvm::Expected<std::unique_ptr<Program>> Program::parse(const std::string &path, const std::string &text,
                                                        const CompileOptions &options, const Toolchain &toolchain,
                                                        View view) {
  std::vector<std::string> args = clangCommand(options, toolchain, view);
  const std::vector<std::string> flags = args;
  args.insert(args.end(), {"-fsyntax-only", path});
  auto argv = llvm::map_to_vector(args, [](const std::string &arg) { return arg.c_str(); });

  auto diagOptions = std::make_shared<DiagnosticOptions>();
  auto fileSystem = clangFileSystem();
  std::string driverMessages;
  llvm::raw_string_ostream driverStream(driverMessages);
  TextDiagnosticPrinter printer(driverStream, *diagOptions);
  auto driverDiags = CompilerInstance::createDiagnostics(*fileSystem, *diagOptions, &printer, false);
  CreateInvocationOptions createOptions;
  createOptions.Diags = driverDiags;
  createOptions.VFS = fileSystem;
  std::shared_ptr<CompilerInvocation> invocation = createInvocation(argv, createOptions);
  if (!invocation)
    return makeError("{0}: Clang does not accept these options: {1}", path, driverMessages);
  invocation->getPreprocessorOpts().addRemappedFile(path, llvm::MemoryBuffer::getMemBufferCopy(text, path).release());
  invocation->getFrontendOpts().DisableFree = false;
  precompileIncludes(*invocation, flags, text, fileSystem);

  auto diags = CompilerInstance::createDiagnostics(*fileSystem, *diagOptions, new IgnoringDiagConsumer, true);
  auto files = llvm::makeIntrusiveRefCnt<FileManager>(FileSystemOptions(), fileSystem);
  std::unique_ptr<Program> program(new Program);
  program->filePath = path;
  program->fileText = text;
  program->unit =
      ASTUnit::LoadFromCompilerInvocation(invocation, std::make_shared<PCHContainerOperations>(), diagOptions, diags,
                                          files, /*OnlyLocalDecls=*/false, CaptureDiagsKind::All);
  if (!program->unit)
    return makeError("{0}: Clang could not parse the file", path);
  if (std::string errors = errorText(*program->unit); !errors.empty())
    return makeError(errors);
  for (size_t i = 0; i < options.frontendFlags.size(); ++i) {
    StringRef flag = options.frontendFlags[i];
    if (flag.consume_front("-D"))
      program->macroNames.insert(
          (flag.empty() && i + 1 < options.frontendFlags.size() ? StringRef(options.frontendFlags[i + 1]) : flag)
              .split('=')
              .first.str());
  }
  program->collect();
  return program;
}

namespace {
class Collector : public DynamicRecursiveASTVisitor {
public:
  Collector(ASTContext &ast, std::vector<KernelDecl> &kernels, std::vector<LaunchSite> &launches,
            std::vector<LaunchSite> &addressLaunches, std::vector<std::pair<std::string, unsigned>> &taken,
            std::vector<DeviceVariable> &variables, std::vector<std::string> &errors)
      : ast(ast), sm(ast.getSourceManager()), mangler(ast.createMangleContext()), kernels(kernels), launches(launches),
        addressLaunches(addressLaunches), taken(taken), variables(variables), errors(errors) {
    ShouldVisitTemplateInstantiations = true;
  }

  bool TraverseTopLevel(Decl *decl) {
    topLevel = outermost = decl;
    return TraverseDecl(decl);
  }

  /// What stands at global or namespace scope is a place to put something before.
  bool VisitDecl(Decl *decl) override {
    auto *fn = dyn_cast<FunctionDecl>(decl);
    auto *record = dyn_cast<CXXRecordDecl>(decl);
    bool instantiated = (fn && fn->isTemplateInstantiation()) ||
                        (record && record->getTemplateSpecializationKind() == TSK_ImplicitInstantiation);
    // A template's pattern begins after "template <…>".
    if (decl->getLexicalDeclContext()->isFileContext() && !isa<NamespaceDecl, LinkageSpecDecl>(decl) && !instantiated &&
        !decl->getDescribedTemplate() && sm.isInMainFile(sm.getExpansionLoc(decl->getBeginLoc())))
      topLevel = decl;
    return true;
  }

  bool VisitFunctionDecl(FunctionDecl *fn) override {
    if (!fn->hasAttr<CUDAGlobalAttr>() || !fn->isThisDeclarationADefinition() || fn->isDependentContext() ||
        sm.isInSystemHeader(fn->getLocation()))
      return true;
    KernelDecl kernel;
    kernel.name = kernelName(fn);
    kernel.symbol = symbolOf(fn);
    PresumedLoc place = sm.getPresumedLoc(sm.getExpansionLoc(fn->getLocation()));
    kernel.line = place.getLine();
    kernel.file = place.getFilename();
    kernel.isTemplate = fn->isTemplateInstantiation();
    SourceLocation end =
        sm.getExpansionRange(fn->getEndLoc()).getEnd(); // of a macro that makes the kernel: behind its arguments
    kernel.inMainFile = sm.isInMainFile(end);
    if (kernel.inMainFile) {
      kernel.endOffset = sm.getFileOffset(Lexer::getLocForEndOfToken(end, 0, sm, ast.getLangOpts()));
      kernel.placeOffset = kernel.endOffset;
    }
    if (const TemplateArgumentList *list = fn->getTemplateSpecializationArgs(); list && kernel.inMainFile) {
      const DeclContext *scope = fn->getDeclContext();
      std::optional<TextPlace> place = TextPlace{kernel.placeOffset, scope};
      for (const TemplateArgument &argument : list->asArray())
        if (place)
          place = placeBehind(argument, *place, ast);
      kernel.placeOffset = place ? place->offset : 0;
      if (place) {
        kernel.enter = wayInto(place->scope, scope);
        kernel.leave = wayInto(scope, place->scope);
      }
    }
    const FunctionDecl *written = fn->getTemplateInstantiationPattern();
    kernel.source = sourceText((written ? written : fn)->getSourceRange());
    kernel.pointers = pointerFieldsOf(*fn);
    std::string wrong;
    kernel.directive = directiveOf(*fn, sm, wrong);
    if (std::string line = kernel.file + ":" + std::to_string(kernel.line) + ": warning: '" + wrong +
                           "' is no directive of OptiML's; want off, on or recipe(ACTIONS)";
        !wrong.empty() && !llvm::is_contained(errors, line))
      errors.push_back(line);
    kernel.decl = fn;
    kernels.push_back(std::move(kernel));
    return true;
  }

  bool VisitVarDecl(VarDecl *variable) override {
    if (!variable->hasGlobalStorage() || variable->getType()->isDependentType() ||
        sm.isInSystemHeader(variable->getLocation()) ||
        !(variable->hasAttr<CUDADeviceAttr>() || variable->hasAttr<CUDAConstantAttr>() ||
          variable->hasAttr<HIPManagedAttr>()))
      return true;
    variables.push_back({symbolOf(variable, variable), elementName(ast, ast.getBaseElementType(variable->getType()))});
    return true;
  }

  /// Methods, constructors and the like too.
  bool TraverseDecl(Decl *decl) override {
    const bool templateBefore = inTemplate, patternBefore = isPattern;
    Decl *const topLevelBefore = topLevel, *const outermostBefore = outermost;
    auto *fn = dyn_cast_or_null<FunctionDecl>(decl);
    if (fn) {
      isPattern |= fn->isDependentContext();
      inTemplate |= isPattern || fn->isTemplateInstantiation();
    }
    const bool isInstance = fn && fn->isTemplateInstantiation();
    if (isInstance)
      standAtDefinition(*fn);
    bool result = DynamicRecursiveASTVisitor::TraverseDecl(decl);
    if (isInstance) {
      topLevel = topLevelBefore;
      outermost = outermostBefore;
    }
    inTemplate = templateBefore;
    isPattern = patternBefore;
    return result;
  }

  bool VisitCUDAKernelCallExpr(CUDAKernelCallExpr *call) override {
    const DeclRefExpr *named = kernelIn(call->getCallee());
    understood.insert(named);
    LaunchSite site = siteOf(call, call->getDirectCallee());
    if (!sm.isInMainFile(sm.getExpansionLoc(call->getBeginLoc())))
      return true;
    if (!site.inMacro) {
      site.callee = sourceText(call->getCallee()->getSourceRange());
      const CallExpr *config = call->getConfig();
      if (config->getNumArgs() > 1)
        site.block = extentsOf(config->getArg(1));
      for (const Expr *arg : config->arguments())
        if (!isa<CXXDefaultArgExpr>(arg))
          site.config.push_back(sourceText(arg->getSourceRange()));
      for (const Expr *arg : call->arguments())
        if (!isa<CXXDefaultArgExpr>(arg))
          site.arguments.push_back(sourceText(arg->getSourceRange()));
      finish(site, named);
    }
    launches.push_back(std::move(site));
    return true;
  }

  bool VisitCallExpr(CallExpr *call) override {
    const FunctionDecl *callee = call->getDirectCallee();
    const IdentifierInfo *name = callee ? callee->getIdentifier() : nullptr;
    if (!name || !sm.isInMainFile(sm.getExpansionLoc(call->getBeginLoc())))
      return true;
    if (asksAboutKernels(name->getName()))
      for (const Expr *argument : call->arguments())
        understood.insert(kernelIn(argument));
    const bool byConfiguration = name->getName().starts_with("cudaLaunchKernelEx");
    const bool passesValues = name->getName() == "cudaLaunchKernelEx";
    const unsigned kernelAt = byConfiguration, least = passesValues ? 2 : byConfiguration ? 3 : 4;
    const bool launches = byConfiguration ? passesValues || name->getName() == "cudaLaunchKernelExC"
                                          : name->getName() == "cudaLaunchKernel";
    const DeclRefExpr *ref = launches && call->getNumArgs() >= least ? kernelIn(call->getArg(kernelAt)) : nullptr;
    if (!ref)
      return true;
    understood.insert(ref);
    const auto *kernel = cast<FunctionDecl>(ref->getDecl());
    LaunchSite site = siteOf(call, kernel);
    site.byConfiguration = byConfiguration;
    site.passesValues = passesValues;
    if (!site.inMacro) {
      auto textOf = [&](unsigned i) { return sourceText(call->getArg(i)->getSourceRange()); };
      site.callee = sourceText(ref->getSourceRange());
      if (byConfiguration)
        site.config.push_back(textOf(0));
      else
        for (unsigned i : {1u, 2u, 4u, 5u})
          if (i < call->getNumArgs() && !isa<CXXDefaultArgExpr>(call->getArg(i)))
            site.config.push_back(textOf(i));
      for (unsigned i = byConfiguration ? 2 : 3; i < (passesValues ? call->getNumArgs() : least); ++i)
        site.arguments.push_back(textOf(i));
      finish(site, ref);
    }
    addressLaunches.push_back(std::move(site));
    return true;
  }

  bool VisitDeclRefExpr(DeclRefExpr *ref) override {
    const auto *kernel = dyn_cast<FunctionDecl>(ref->getDecl());
    if (kernel && kernel->hasAttr<CUDAGlobalAttr>() && !kernel->isDependentContext() && !understood.count(ref) &&
        sm.isInMainFile(sm.getExpansionLoc(ref->getBeginLoc())))
      taken.emplace_back(symbolOf(kernel), sm.getPresumedLoc(sm.getExpansionLoc(ref->getBeginLoc())).getLine());
    return true;
  }

private:
  static bool asksAboutKernels(StringRef function) {
    return function.starts_with("cudaFunc") || function.starts_with("cudaOccupancy") ||
           function == "cudaGetFuncBySymbol";
  }
  /// The kernel that the expression is the address of.
  static const DeclRefExpr *kernelIn(const Expr *address) {
    address = address->IgnoreParenCasts();
    if (const auto *of = dyn_cast<UnaryOperator>(address); of && of->getOpcode() == UO_AddrOf)
      address = of->getSubExpr()->IgnoreParenCasts();
    const auto *ref = dyn_cast<DeclRefExpr>(address);
    return ref && isa<FunctionDecl>(ref->getDecl()) && ref->getDecl()->hasAttr<CUDAGlobalAttr>() ? ref : nullptr;
  }
  /// Instantiations hang on the first declaration of a template; what they do stands where it is defined.
  void standAtDefinition(const FunctionDecl &instance) {
    FunctionDecl *pattern = instance.getTemplateInstantiationPattern();
    if (!pattern || !sm.isInMainFile(sm.getExpansionLoc(pattern->getBeginLoc())))
      return;
    auto whole = [](Decl *d) -> Decl * { return d->getDescribedTemplate() ? d->getDescribedTemplate() : d; };
    Decl *at = whole(pattern);
    for (; !at->getLexicalDeclContext()->isFileContext(); at = whole(at))
      at = Decl::castFromDeclContext(at->getLexicalDeclContext());
    topLevel = at;
    while (!at->getLexicalDeclContext()->isTranslationUnit())
      at = Decl::castFromDeclContext(at->getLexicalDeclContext());
    outermost = at;
  }
  /// Where the call stands, and what it launches.
  LaunchSite siteOf(const CallExpr *call, const FunctionDecl *kernel) {
    LaunchSite site;
    SourceLocation begin = call->getBeginLoc(), end = call->getEndLoc();
    site.line = sm.getPresumedLoc(sm.getExpansionLoc(begin)).getLine();
    site.inMacro = !isWritten(begin) || !isWritten(end);
    site.inTemplate = inTemplate;
    site.isPattern = isPattern;
    if (kernel) {
      const FunctionDecl *definition = nullptr;
      kernel->hasBody(definition);
      site.kernel = kernelName(definition ? definition : kernel);
      site.parameters = kernel->getNumParams();
      if (!kernel->isDependentContext())
        site.symbol = symbolOf(kernel);
    }
    if (!site.inMacro) {
      site.begin = sm.getFileOffset(sm.getSpellingLoc(begin));
      site.end = sm.getFileOffset(Lexer::getLocForEndOfToken(sm.getSpellingLoc(end), 0, sm, ast.getLangOpts()));
    }
    if (topLevel)
      site.topLevelBegin = sm.getFileOffset(sm.getExpansionLoc(topLevel->getBeginLoc()));
    if (outermost)
      site.outermostBegin = sm.getFileOffset(sm.getExpansionLoc(outermost->getBeginLoc()));
    return site;
  }
  /// Once the texts of its parts are known.
  void finish(LaunchSite &site, const DeclRefExpr *ref) {
    auto unknown = [](const std::string &part) { return part.empty(); };
    site.inMacro = site.callee.empty() || llvm::any_of(site.config, unknown) || llvm::any_of(site.arguments, unknown);
    site.namesOne = ref && isNamedAlone(*ref);
  }
  /// No other function or template has the name; of a template all arguments are given.
  static bool isNamedAlone(const DeclRefExpr &ref) {
    const auto *kernel = cast<FunctionDecl>(ref.getDecl());
    std::set<const Decl *> named;
    for (const NamedDecl *decl : kernel->getDeclContext()->getRedeclContext()->lookup(kernel->getDeclName()))
      named.insert(decl->getUnderlyingDecl()->getCanonicalDecl());
    if (named.size() != 1)
      return false;
    const FunctionTemplateDecl *of = kernel->getPrimaryTemplate();
    return !of || ref.getNumTemplateArgs() == of->getTemplateParameters()->size();
  }
  std::string kernelName(const FunctionDecl *fn) {
    std::string name;
    llvm::raw_string_ostream os(name);
    PrintingPolicy policy(ast.getLangOpts());
    policy.SuppressTagKeyword = true;
    fn->getNameForDiagnostic(os, policy, /*Qualified=*/true);
    return name;
  }
  std::string symbolOf(const FunctionDecl *fn) { return symbolOf(fn, GlobalDecl(fn, KernelReferenceKind::Kernel)); }
  std::string symbolOf(const NamedDecl *decl, GlobalDecl mangled) {
    if (!mangler->shouldMangleDeclName(decl))
      return decl->getNameAsString();
    std::string name;
    llvm::raw_string_ostream os(name);
    mangler->mangleName(mangled, os);
    return name;
  }
  /// What an integer is, or began with; 0: not known.
  int64_t valueOf(const Expr *e) {
    e = e->IgnoreParenImpCasts();
    if (e->isValueDependent())
      return 0;
    Expr::EvalResult result;
    if (e->EvaluateAsInt(result, ast))
      return result.Val.getInt().getExtValue();
    const auto *ref = dyn_cast<DeclRefExpr>(e);
    const auto *variable = ref ? dyn_cast<VarDecl>(ref->getDecl()) : nullptr;
    return variable && variable->getInit() && variable->getType()->isIntegerType() ? valueOf(variable->getInit()) : 0;
  }
  /// The same of a dim3.
  std::array<int64_t, 3> extentsOf(const Expr *e) {
    e = e->IgnoreUnlessSpelledInSource();
    if (const auto *ref = dyn_cast<DeclRefExpr>(e); ref && ref->getType()->isRecordType()) {
      const auto *variable = dyn_cast<VarDecl>(ref->getDecl());
      return variable && variable->getInit() ? extentsOf(variable->getInit()) : std::array<int64_t, 3>{0, 0, 0};
    }
    std::array<int64_t, 3> result = {1, 1, 1};
    const auto *made = dyn_cast<CXXConstructExpr>(e);
    for (unsigned i = 0; i < 3; ++i)
      if (const Expr *extent = !made ? (i ? nullptr : e) : i < made->getNumArgs() ? made->getArg(i) : nullptr)
        if (!isa<CXXDefaultArgExpr>(extent))
          result[i] = valueOf(extent);
    return llvm::is_contained(result, 0) ? std::array<int64_t, 3>{0, 0, 0} : result;
  }
  /// The token stands in the main file, by itself or within macro arguments; no macro makes it.
  bool isWritten(SourceLocation loc) {
    while (loc.isMacroID()) {
      if (!sm.isMacroArgExpansion(loc))
        return false;
      loc = sm.getImmediateSpellingLoc(loc);
    }
    return sm.isInMainFile(loc);
  }
  std::string sourceText(SourceRange range) {
    return Lexer::getSourceText(CharSourceRange::getTokenRange(range), sm, ast.getLangOpts()).str();
  }

  ASTContext &ast;
  SourceManager &sm;
  std::unique_ptr<MangleContext> mangler;
  std::vector<KernelDecl> &kernels;
  std::vector<LaunchSite> &launches, &addressLaunches;
  std::vector<std::pair<std::string, unsigned>> &taken;
  std::set<const DeclRefExpr *> understood; ///< uses of kernels' addresses
  std::vector<DeviceVariable> &variables;
  std::vector<std::string> &errors; ///< of directives

  Decl *topLevel = nullptr, *outermost = nullptr;
  bool inTemplate = false, isPattern = false; ///< as LaunchSite's
};
} // namespace

/// Adds the names that lines such as "#define NAME" define.
static void addMacros(StringRef text, std::set<std::string> &names) {
  while (!text.empty()) {
    StringRef line;
    std::tie(line, text) = text.split('\n');
    line = line.ltrim();
    if (!line.consume_front("#"))
      continue;
    line = line.ltrim();
    if (line.consume_front("define") && line != line.ltrim()) {
      StringRef name = line.ltrim().take_while([](char c) { return llvm::isAlnum(c) || c == '_'; });
      if (!name.empty())
        names.insert(name.str());
    }
  }
}

void Program::collect() {
  ASTContext &context = ast();
  SourceManager &sm = context.getSourceManager();
  Collector collector(context, kernelDecls, launchSites, addressLaunchSites, addressesTaken, deviceVariables,
                      directiveErrors);
  for (Decl *decl : context.getTranslationUnitDecl()->noload_decls()) // those of precompiled headers are CUDA's
    if (!sm.isInSystemHeader(decl->getLocation()))
      collector.TraverseTopLevel(decl);
  std::set<std::string> headers;
  for (unsigned i = 0; i < sm.local_sloc_entry_size(); ++i) {
    const SrcMgr::SLocEntry &entry = sm.getLocalSLocEntry(i);
    if (!entry.isFile() || SrcMgr::isSystem(entry.getFile().getFileCharacteristic()))
      continue;
    OptionalFileEntryRef file = entry.getFile().getContentCache().OrigEntry;
    if (file && file->getName() != filePath && llvm::sys::fs::exists(file->getName()))
      headers.insert(file->getName().str());
  }
  userHeaders.assign(headers.begin(), headers.end());
  addMacros(fileText, macroNames);
  for (const std::string &header : userHeaders)
    if (auto content = llvm::MemoryBuffer::getFile(header))
      addMacros((*content)->getBuffer(), macroNames);
}

bool optiml::setsKernelAttributes(const Program &program) {
  static constexpr llvm::StringLiteral function = "cudaFuncSetAttribute";
  if (llvm::StringRef(program.text()).contains(function))
    return true;
  return llvm::any_of(program.headers(), [](const std::string &header) {
    auto content = llvm::MemoryBuffer::getFile(header);
    return content && (*content)->getBuffer().contains(function);
  });
}
