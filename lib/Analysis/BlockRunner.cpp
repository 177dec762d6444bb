//===- BlockRunner.cpp - statements, run for all threads at once ----------===//
#include "optiml/Analysis/BlockRunner.h"
#include "llvm/ADT/STLExtras.h"

using namespace optiml;

static constexpr unsigned mostRounds = 64; // of one loop

void SharedTouches::meet() {
  reader.assign(reader.size(), nobody);
  writer.assign(writer.size(), nobody);
}

bool SharedTouches::touch(int64_t element, int64_t thread, bool writes) {
  int64_t &read = reader[size_t(element)], &written = writer[size_t(element)];
  if (written != nobody && written != thread)
    return false;
  if (!writes) {
    read = read == nobody || read == thread ? thread : several;
    return true;
  }
  written = thread;
  return read == nobody || read == thread;
}

bool BlockRunner::runList(Stmt &block, const ActiveThreads &active) {
  return !llvm::is_contained(active, true) ||
         llvm::all_of(block.body, [&](const StmtRef &s) { return run(*s, active); });
}

bool BlockRunner::runLoop(Stmt &s, const ActiveThreads &active) {
  if (!s.expr || (s.init && !run(*s.init, active)))
    return false;
  for (unsigned round = 0; round < mostRounds; ++round) {
    auto more = value.where(s.expr, active);
    if (!more || (*more != active && llvm::is_contained(*more, true)))
      return false; // a loop that ends sooner for some threads
    if (*more != active)
      return true;
    if (!runList(*s.body[0], active) || (s.step && !value.assign(s.step, active)))
      return false;
  }
  return false;
}

bool BlockRunner::run(Stmt &s, const ActiveThreads &active) {
  switch (s.kind) {
  case StmtKind::Block: return runList(s, active);
  case StmtKind::Decl: return declare(s, active);
  case StmtKind::Barrier:
    if (llvm::is_contained(active, false))
      return false;
    ++barriers;
    meet();
    return true;
  case StmtKind::For:
  case StmtKind::While: return runLoop(s, active);
  case StmtKind::Expr: return value.assign(s.expr, active) || execute(s, active);
  case StmtKind::If: {
    auto taken = value.where(s.expr, active);
    if (!taken)
      return execute(s, active);
    if (!runList(*s.body[0], *taken))
      return false;
    ActiveThreads others = active;
    for (size_t t = 0; t < others.size(); ++t)
      others[t] = others[t] && !(*taken)[t];
    return s.body.size() < 2 || runList(*s.body[1], others);
  }
  default: return false;
  }
}
