//===- ConcretePlan.cpp - launch plans made concrete ----------------------===//
#include "ConcretePlan.h"
#include "optiml/Evaluate/Verify/SomeLaunch.h"
#include "optiml/Support/Error.h"
#include "optiml/Workload/Signature.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include <cstring>
#include <numeric>

using namespace optiml;

ConcretePlan optiml::identityPlan(const LaunchImage &launch, const std::string &symbol) {
  emu::ReplayStep step;
  step.kernel = symbol;
  step.grid = launch.grid;
  step.block = launch.block;
  step.sharedBytes = launch.sharedBytes;
  step.arguments.resize(launch.arguments.size());
  std::iota(step.arguments.begin(), step.arguments.end(), 0);
  return {{}, {step}};
}

/// The little-endian integer of `n` bytes (1 to 8) at `data`.
static int64_t integer(const char *data, size_t n, bool isSigned) {
  uint64_t v = 0;
  memcpy(&v, data, n);
  unsigned shift = unsigned(64 - 8 * n);
  return isSigned ? int64_t(v << shift) >> shift : int64_t(v);
}

std::optional<uint64_t> optiml::sizeOfType(llvm::StringRef type) {
  if (type.trim().ends_with("*"))
    return 8;
  llvm::StringRef t = type.trim();
  t.consume_front("const ");
  ElementType e = pointeeType((t + "*").str());
  if (e.kind == ElementKind::Unknown) {
    uint64_t n = llvm::StringSwitch<uint64_t>(t)
                     .Cases({"int8_t", "uint8_t"}, 1)
                     .Cases({"int16_t", "uint16_t", "half"}, 2)
                     .Cases({"int32_t", "uint32_t"}, 4)
                     .Cases({"int64_t", "uint64_t", "size_t", "std::size_t"}, 8)
                     .Default(0);
    return n ? std::optional<uint64_t>(n) : std::nullopt;
  }
  uint64_t lanes = t.size() > 1 && t.back() >= '1' && t.back() <= '4' ? uint64_t(t.back() - '0') : 1;
  return e.bytes * lanes;
}

namespace {

/// The values of names in a plan's expressions.
class Names {
public:
  Names(const KernelRewrite &rewrite, const LaunchImage &launch)
      : launch(launch), members(rewrite.members), parameters(rewrite.originalParameters) {}

  std::optional<int64_t> value(const std::string &name) const;
  /// Index of a parameter, or -1.
  int parameter(const std::string &name) const {
    for (size_t i = 0; i < parameters.size() && i < launch.arguments.size(); ++i)
      if (parameters[i].name == name)
        return int(i);
    return -1;
  }
  bool fits() const { return parameters.size() == launch.arguments.size(); }

private:
  std::optional<int64_t> memberValue(const std::string &name, const MemberPlace &place) const;

  const LaunchImage &launch;
  const std::map<std::string, MemberPlace> &members;
  const std::vector<Parameter> &parameters;
};

std::optional<int64_t> Names::value(const std::string &name) const {
  for (int d = 0; d < 3; ++d) {
    if (name == std::string("grid.") + "xyz"[d])
      return launch.grid[d];
    if (name == std::string("block.") + "xyz"[d])
      return launch.block[d];
  }
  if (name == "shared")
    return launch.sharedBytes;
  for (bool end : {false, true}) {
    const std::string prefix = end ? allocationEndOf("") : allocationOf("");
    if (!llvm::StringRef(name).starts_with(prefix))
      continue;
    auto pointer = value(name.substr(prefix.size()));
    auto it = llvm::find_if(launch.buffers, [&](const BufferImage &buffer) {
      return pointer && uint64_t(*pointer) - buffer.address < buffer.bytes;
    });
    return it == launch.buffers.end() ? std::nullopt : std::optional(int64_t(it->address + (end ? it->bytes : 0)));
  }
  if (auto it = members.find(name); it != members.end())
    return memberValue(name, it->second);
  int i = parameter(name);
  if (i < 0)
    return std::nullopt;
  const ArgumentImage &a = launch.arguments[size_t(i)];
  size_t n = a.bytes.size();
  if ((n != 1 && n != 2 && n != 4 && n != 8) || parameters[size_t(i)].kind == Parameter::Kind::Float)
    return std::nullopt;
  return integer(a.bytes.data(), n, !a.isPointer && parameters[size_t(i)].kind != Parameter::Kind::Unsigned);
}

std::optional<int64_t> Names::memberValue(const std::string &name, const MemberPlace &place) const {
  int i = parameter(name.substr(0, name.find('.')));
  if (i < 0)
    return std::nullopt;
  const std::string &bytes = launch.arguments[size_t(i)].bytes;
  if (place.bytes > 8 || size_t(place.offset) + place.bytes > bytes.size())
    return std::nullopt;
  return integer(bytes.data() + place.offset, place.bytes, place.isSigned);
}

} // namespace

llvm::Error optiml::requireSomeLaunch(const KernelRewrite &rewrite, const Workload &workload) {
  std::string reason;
  for (const LaunchImage &launch : workload.launches) {
    if (launch.kernel != rewrite.originalSymbol)
      continue;
    llvm::Expected<ConcretePlan> plan = concretePlan(rewrite, launch);
    if (plan)
      return llvm::Error::success();
    bool mayRunElsewhere = false;
    llvm::handleAllErrors(
        plan.takeError(), [&](const NotApplicable &e) { reason = e.message(); },
        [&](const llvm::ErrorInfoBase &) { mayRunElsewhere = true; });
    if (mayRunElsewhere) // something is wrong, which whoever runs it tells
      return llvm::Error::success();
  }
  return reason.empty() ? llvm::Error::success() : notApplicable("it would run for no captured launch: {0}", reason);
}

llvm::Expected<ConcretePlan> optiml::concretePlan(const KernelRewrite &rewrite, const LaunchImage &launch) {
  Names names(rewrite, launch);
  if (!names.fits())
    return makeError("kernel '{0}' was captured with {1} arguments, but its parameter list is ({2})", rewrite.original,
                     launch.arguments.size(), declarations(rewrite.originalParameters));
  auto lookup = [&](const std::string &name) { return names.value(name); };
  for (const Condition &c : rewrite.conditions) {
    std::optional<int64_t> v = c.expression.evaluate(lookup);
    if (!v || !*v)
      return notApplicable("condition '{0}' ({1}) {2}", c.expression.str(), c.why,
                           v ? "does not hold" : "cannot be evaluated for this launch");
  }
  auto number = [&](const IntExpr &e, const char *what, int64_t least, int64_t most) -> llvm::Expected<int64_t> {
    std::optional<int64_t> v = e.evaluate(lookup);
    if (!v)
      return makeError("{0} '{1}' cannot be evaluated for this launch of '{2}'", what, e.str(), rewrite.original);
    if (*v < least || *v > most)
      return makeError("{0} '{1}' is {2} for this launch of '{3}'; it must be from {4} to {5}", what, e.str(), *v,
                       rewrite.original, least, most);
    return *v;
  };
  ConcretePlan plan;
  for (const ScratchBuffer &s : rewrite.plan.scratch) {
    std::optional<uint64_t> size = sizeOfType(s.elementType);
    if (s.elementBytes)
      size = s.elementBytes;
    if (!size)
      return makeError("scratch buffer '{0}' has element type '{1}', whose size is unknown", s.name, s.elementType);
    llvm::Expected<int64_t> elements = number(s.elements, "scratch size", 0, int64_t(1) << 36);
    if (!elements)
      return elements.takeError();
    plan.scratch.push_back({uint64_t(*elements) * *size, s.zeroed});
  }
  for (const LaunchStep &s : rewrite.plan.steps) {
    emu::ReplayStep step;
    step.kernel = s.kernel;
    for (int d = 0; d < 3; ++d) {
      llvm::Expected<int64_t> g = number(s.grid[d], "grid size", 1, d ? 65535 : 0x7fffffff);
      if (!g)
        return g.takeError();
      llvm::Expected<int64_t> b = number(s.block[d], "block size", 1, d == 2 ? 64 : 1024);
      if (!b)
        return b.takeError();
      step.grid[d] = uint32_t(*g);
      step.block[d] = uint32_t(*b);
    }
    if (uint64_t(step.block[0]) * step.block[1] * step.block[2] > 1024)
      return makeError("the block of kernel '{0}' has more than 1024 threads", s.kernel);
    llvm::Expected<int64_t> shared = number(s.sharedBytes, "dynamic shared memory", 0, 227 << 10);
    if (!shared)
      return shared.takeError();
    step.sharedBytes = uint32_t(*shared);
    for (const std::string &a : s.arguments) {
      int index = names.parameter(a);
      for (size_t i = 0; index < 0 && i < rewrite.plan.scratch.size(); ++i)
        if (rewrite.plan.scratch[i].name == a)
          index = -2 - int(i);
      if (index == -1)
        return makeError("argument '{0}' of kernel '{1}' is neither a parameter of '{2}' nor scratch", a, s.kernel,
                         rewrite.original);
      step.arguments.push_back(index < 0 ? index + 1 : index);
    }
    plan.steps.push_back(std::move(step));
  }
  return plan;
}
