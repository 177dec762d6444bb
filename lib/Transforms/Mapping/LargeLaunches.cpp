//===- LargeLaunches.cpp - the original for small launches ----------------===//
//
// large-launches[kernel:n]{least=4096}: the new kernel stands in for launches in which an integer argument is at least
// this; smaller ones run the original. A kernel that is launched at several sizes may be rewritten for the large ones
// in ways that leave a small one with too few blocks, or with threads that have nothing to do.
//
// Example:
//   blur<<<…>>>(level0, 4096);     // when n >= 4096  (smaller launches run the original)
//   blur<<<…>>>(level1, 2048);     level0 runs the new kernel, level1 and level2 the original
//   blur<<<…>>>(level2, 1024);
//
// Legal: always; the original is the original.
//
// Refuses: what is no integer parameter, or member of one (`p.n`), and a bound that some condition gives already.
//
//===----------------------------------------------------------------------===//
#include "Transforms.h"
#include "optiml/Analysis/TreeQueries.h"

using namespace optiml;

namespace {
class LargeLaunches : public Transform {
public:
  llvm::StringRef name() const override { return "large-launches"; }
  bool onlyTunes() const override { return true; }

  std::vector<ActionTemplate> sites(const KernelState &state) const override {
    std::vector<ActionTemplate> result;
    if (state.rewrite.conditions.empty()) // of what is not rewritten yet it would say nothing
      return result;
    for (const auto &[name, value] : state.hints.ofHeaviest)
      if (value > 1 && !state.hints.scalars.count(name)) // else all launches have the same
        offer(result, state, ":" + name, {{{"least", std::to_string(value)}}});
    return result;
  }

  llvm::Expected<KernelState> apply(const KernelState &state, llvm::StringRef site,
                                    const Params &params) const override {
    const std::string name = site.ltrim(':').str();
    int64_t least = 0;
    auto text = params.find("least");
    if (text == params.end() || llvm::StringRef(text->second).getAsInteger(10, least))
      return notApplicable("the least value of '{0}' is not given", name);
    const Type *type = typeOfArgument(*state.original, name);
    if (!type || type->cls != Type::Class::Int)
      return notApplicable("there is no integer parameter '{0}'", name);
    KernelState result = state;
    result.require(name + " >= " + std::to_string(least), "smaller launches run the original");
    if (result.rewrite.conditions.size() == state.rewrite.conditions.size())
      return notApplicable("the launches have such a '{0}' already", name);
    return result;
  }
};
} // namespace

DEFINE_TRANSFORM(LargeLaunches)
