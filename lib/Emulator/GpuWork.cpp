//===- GpuWork.cpp - what host code does with the GPU ------------------------===//
#include "GpuWork.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/Twine.h"
#include "llvm/IR/CFG.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"

using namespace llvm;
using namespace optiml::emu;

/// The kernel whose host stub has this name; empty where it is none.
static std::string kernelOfStub(StringRef name) {
  constexpr StringLiteral mark = "__device_stub__";
  size_t at = name.find(mark);
  if (at == StringRef::npos)
    return "";
  StringRef before = name.take_front(at), after = name.drop_front(at + mark.size());
  StringRef rest = before.rtrim("0123456789");
  unsigned length;
  if (before.drop_front(rest.size()).getAsInteger(10, length) || length <= mark.size())
    return after.str();
  return (rest + Twine(length - mark.size()) + after).str();
}

bool GpuWork::Work::add(const Work &work) {
  size_t before = kernels.size() + other;
  kernels.insert(work.kernels.begin(), work.kernels.end());
  other |= work.other;
  return kernels.size() + other != before;
}

std::string GpuWork::Work::str() const {
  std::string names = llvm::join(kernels, ",");
  return !other ? names : names.empty() ? "*" : "*," + names;
}

GpuWork::Work GpuWork::workOf(const Instruction &inst) const {
  const auto *call = dyn_cast<CallBase>(&inst);
  const Function *callee = call ? call->getCalledFunction() : nullptr;
  if (!callee)
    return {};
  if (auto it = works.find(callee); it != works.end())
    return it->second;
  StringRef name = callee->getName();
  Work work;
  for (StringRef start : {"cudaLaunch", "__cudaLaunch", "cudaMemcpy", "cudaMemset", "cudaGraphLaunch"})
    work.other |= name.starts_with(start);
  return work;
}

GpuWork::Work GpuWork::workOf(const BasicBlock &block) const {
  Work work;
  for (const Instruction &inst : block)
    work.add(workOf(inst));
  return work;
}

GpuWork::GpuWork(Module &module) : module(module) {
  for (const Function &f : module)
    if (std::string kernel = kernelOfStub(f.getName()); !kernel.empty())
      works[&f].kernels.insert(kernel);
  for (bool changed = true; changed;) {
    changed = false;
    for (const Function &f : module)
      if (kernelOfStub(f.getName()).empty())
        for (const Instruction &inst : instructions(f))
          if (Work work = workOf(inst); work.any())
            changed |= works[&f].add(work);
  }
}

/// From the successor `side` of `branch` on, without coming by `branch` again.
static std::set<const BasicBlock *> reachable(const BasicBlock *side, const BasicBlock *branch) {
  std::set<const BasicBlock *> seen = {branch, side};
  std::vector<const BasicBlock *> todo = {side};
  while (!todo.empty()) {
    const BasicBlock *at = todo.back();
    todo.pop_back();
    for (const BasicBlock *next : successors(at))
      if (seen.insert(next).second)
        todo.push_back(next);
  }
  return seen;
}

bool GpuWork::onlyBy(const BasicBlock *side, const BasicBlock *branch) const {
  constexpr size_t mostBlocks = 4096; // it is asked for every branch
  if (branch->getParent()->size() > mostBlocks)
    return false;
  std::set<const BasicBlock *> blocks = reachable(side, branch);
  for (const BasicBlock *other : successors(branch))
    if (other != side)
      for (const BasicBlock *block : reachable(other, branch))
        blocks.erase(block);
  return any_of(blocks, [&](const BasicBlock *block) { return block != branch && workOf(*block).any(); });
}

std::vector<std::pair<Instruction *, GpuWork::Work>> GpuWork::sites() const {
  std::vector<std::pair<Instruction *, Work>> result;
  for (Function &f : module) {
    if (!kernelOfStub(f.getName()).empty())
      continue;
    for (BasicBlock &block : f)
      if (Work work = workOf(block); work.any()) {
        auto first = find_if(block, [&](const Instruction &inst) { return workOf(inst).any(); });
        result.emplace_back(&*first, std::move(work));
      }
  }
  return result;
}
