//===- LaunchIdioms.cpp - a loop of launches as one algorithm -------------===//
//
// launch-loop[kernel]: a loop on the host that launches one kernel again and again becomes the algorithm of which its
// launches are the steps. That is a scan, a sort by exchanges, shortest paths and other closures of a matrix, or
// several steps in time of a stencil.
//
// Example:
//   for (int d = 1; d < n; d *= 2) {         { // OptiML: its launches take place at the end
//     step<<<blocks, 256>>>(in, out, n, d);    step_optiml_loop_launches optiml_launches;
//     CHECK(cudaGetLastError());               for (int d = 1; d < n; d *= 2) {
//     std::swap(in, out);                        optiml_launches.add(blocks, 256, 0, 0, in, out, n, d);
//   }                                            CHECK(cudaGetLastError());
//                                                std::swap(in, out);
//                                              }
//                                              optiml_launches.used({in});
//                                            }
//
// Legal: three things are asked, each where it can be answered.
//  - Of the host's source: between two launches the host only changes local variables, asks for errors, and waits.
//    Launches are then put off to the end of the loop.
//  - Of the kernel's source: every thread is in exactly one of the kernel's cases, and every case does what the step
//    wants of the threads in it. How the kernel is written does not matter. Cases that differ by the kernel's arguments
//    alone (the parity of a phase) are forms of the step; the arguments tell which form a launch has.
//  - Of the running program: the arguments of the launches that the loop really makes are those of a whole scan or
//    sort, or of the steps of a stencil. They are in one stream, with enough threads, and buffers that do not overlap.
//    At the first launch that does not fit, those put off take place, and all others as they are.
//
// Refuses: loops in templates; launches of several kernels in one loop, except for a stencil's copy back; kernels from
// headers. On the host it refuses reads through pointers, copies, events, unknown calls, `return`, references, and
// members behind pointers, and names the line.
//
//===----------------------------------------------------------------------===//
#include "optiml/Transforms/LaunchIdioms.h"
#include "optiml/Analysis/KernelModel.h"
#include "optiml/Analysis/KernelState.h"
#include "optiml/Analysis/ThreadCases.h"
#include "optiml/Canonicalize/GlobalIndex.h"
#include "optiml/Support/Error.h"
#include "optiml/Transforms/ClosureStep.h"

using namespace optiml;

namespace {

using Group = std::vector<const ThreadCase *>;

/// "globalIdx.x plus something uniform is even, or odd", as a fact says it: remainder `atom` has value `value`.
struct Parity {
  std::string atom;
  Poly shift, value;
};

std::optional<Parity> parityOf(const ThreadCases &cases, const ThreadCase &c, const Poly &index) {
  for (const auto &[name, atom] : cases.atoms) {
    if (atom.op != "%" || atom.b.constant() != 2 || !cases.uniform(atom.a - index))
      continue;
    Poly remainder = Poly::atom(name);
    if (c.holds(remainder - Poly(1)))
      return Parity{name, atom.a - index, Poly(1)};
    if (c.holds(Poly(0) - remainder))
      return Parity{name, atom.a - index, Poly(0)};
    for (const Poly &fact : c.facts)
      if (fact.mentions(name) && cases.uniform(fact - remainder) && c.holds(Poly(0) - fact))
        return Parity{name, atom.a - index, remainder - fact};
  }
  return std::nullopt;
}

class Recognizer {
public:
  Recognizer(const Kernel &kernel, const ThreadCases &cases) : kernel(kernel), cases(cases) {}

  llvm::Expected<LaunchIdiom> run() {
    auto byArguments = cases.byArguments();
    if (!byArguments)
      return notApplicable("it branches on its arguments in ways that are not understood");
    for (LaunchIdiom::Kind kind : {LaunchIdiom::Kind::ScanStep, LaunchIdiom::Kind::ExchangeStep}) {
      LaunchIdiom idiom;
      idiom.kind = kind;
      bool all = true;
      for (const auto &[demands, group] : *byArguments) {
        LaunchIdiom::Form form;
        all = all && (kind == LaunchIdiom::Kind::ScanStep ? isScanStep(group, idiom, form)
                                                          : isExchangeStep(group, idiom, form));
        for (const Poly &demand : demands)
          form.when.push_back("(" + cases.cxx(demand) + ") >= 0");
        idiom.forms.push_back(std::move(form));
      }
      if (all && !idiom.forms.empty())
        return idiom;
    }
    return notApplicable("it is no step of a scan or of a sort by exchanges");
  }

private:
  const Kernel &kernel;
  const ThreadCases &cases;
  const Poly index = Poly::atom("globalIdx.x");

  const Param *param(const std::string &name) const {
    for (const Param &p : kernel.params)
      if (p.name == name)
        return &p;
    return nullptr;
  }

  bool isScanStep(const Group &group, LaunchIdiom &idiom, LaunchIdiom::Form &form) const {
    // From a case that combines two elements: which, over which distance, up to which end.
    std::optional<Poly> distance, end;
    for (const ThreadCase *c : group) {
      if (c->stores.size() != 1 || !(c->stores[0].index == index))
        continue;
      const ThreadCase::Store &store = c->stores[0];
      for (const Param &p : kernel.params) {
        if (!p.type.isPointer() || p.name == store.array)
          continue;
        for (const Poly &fact : c->facts)
          for (const char *op : {"+", "*", "&", "|", "^", "min", "max"})
            if (cases.uniform(index - fact) &&
                store.value == operationTerm(op, elementTerm(p.name, index), elementTerm(p.name, fact))) {
              distance = index - fact;
              if ((!idiom.op.empty() && (idiom.op != op || idiom.in != p.name || idiom.out != store.array)))
                return false;
              idiom.op = op;
              idiom.in = p.name;
              idiom.out = store.array;
            }
      }
      if (!distance)
        continue;
      for (const Poly &fact : c->facts)
        if (cases.uniform(fact + index))
          end = fact + index + Poly(1);
      break;
    }
    if (!distance || !end || otherAtoms("") || !element(idiom.in, idiom) || !element(idiom.out, idiom))
      return false;
    std::string own = elementTerm(idiom.in, index);
    std::string both = operationTerm(idiom.op, own, elementTerm(idiom.in, index - *distance));
    for (const ThreadCase *c : group) {
      if (!c->tests.empty())
        return false;
      if (c->stores.empty()) {
        if (!c->holds(index - *end))
          return false;
        continue;
      }
      const ThreadCase::Store &store = c->stores[0];
      if (c->stores.size() != 1 || store.array != idiom.out || !(store.index == index) ||
          !c->holds(*end - index - Poly(1)))
        return false;
      bool combines = c->holds(index - *distance) && store.value == both;
      bool copies = c->holds(*distance - index - Poly(1)) && store.value == own;
      if (!combines && !copies)
        return false;
    }
    form.count = cases.cxx(*end);
    form.distance = cases.cxx(*distance);
    return true;
  }

  bool isExchangeStep(const Group &group, LaunchIdiom &idiom, LaunchIdiom::Form &form) const {
    const ThreadCase *swaps = nullptr;
    for (const ThreadCase *c : group)
      if (c->stores.size() == 2)
        swaps = c;
    if (!swaps || swaps->stores[0].array != swaps->stores[1].array)
      return false;
    const std::string &array = swaps->stores[0].array;
    Poly low = swaps->stores[0].index;
    if (low == swaps->stores[1].index + Poly(1))
      low = swaps->stores[1].index;
    std::string a = elementTerm(array, low), b = elementTerm(array, low + Poly(1));
    std::optional<Poly> scale = low.coefficient("globalIdx.x");
    auto step = scale ? scale->constant() : std::nullopt;
    if (!step || (*step != 1 && *step != 2) || !cases.uniform(low - *scale * index))
      return false;
    Poly first = low - *scale * index;
    std::optional<Parity> parity;
    if (*step == 1) {
      parity = parityOf(cases, *swaps, index);
      if (!parity || !(low == index))
        return false;
    }
    if (otherAtoms(parity ? parity->atom : ""))
      return false;
    // The end of the array, as a bound on the pair's upper element or on the number of pairs.
    std::optional<Poly> end, pairs;
    for (const Poly &fact : swaps->facts)
      if (!cases.uniform(fact) && cases.uniform(fact + low))
        end = fact + low + Poly(2);
      else if (*step == 2 && !cases.uniform(fact) && cases.uniform(fact + index))
        pairs = fact + index + Poly(1);
    if (!end && !pairs)
      return false;
    if (end)
      pairs.reset();

    std::string strict = b + " < " + a, lenient = b + " <= " + a, kept;
    for (const ThreadCase *c : group) {
      bool outside = end ? c->holds(low + Poly(1) - *end) : c->holds(index - *pairs);
      if (parity)
        outside |= std::any_of(c->facts.begin(), c->facts.end(), [&](const Poly &fact) {
          auto there = fact.substitute(parity->atom, parity->value).constant();
          return there && *there < 0;
        });
      bool inOrder =
          c->tests == std::set<std::string>{a + " <= " + b} || c->tests == std::set<std::string>{a + " < " + b};
      if (c->stores.empty()) {
        if (!outside && !inOrder)
          return false;
        continue;
      }
      bool inside = end ? c->holds(*end - low - Poly(2)) : c->holds(*pairs - index - Poly(1));
      if (parity) {
        auto own = parityOf(cases, *c, index);
        inside &= own && own->atom == parity->atom && own->value == parity->value;
      }
      if (!inside || c->stores.size() != 2)
        return false;
      bool swapped = c->tests == std::set<std::string>{strict} || c->tests == std::set<std::string>{lenient};
      for (const ThreadCase::Store &store : c->stores) {
        bool isLow = store.index == low;
        if (store.array != array || (!isLow && !(store.index == low + Poly(1))))
          return false;
        bool right = swapped ? store.value == (isLow ? b : a)
                             : c->tests.empty() && store.value == operationTerm(isLow ? "min" : "max", a, b);
        if (!right)
          return false;
      }
    }
    if ((!idiom.in.empty() && idiom.in != array) || !element(array, idiom) ||
        idiom.isFloat) // NaN, and zeros of two signs
      return false;
    idiom.in = idiom.out = array;
    if (parity) {
      form.threadPerElement = true;
      form.first = "((" + cases.cxx(parity->value) + " - (" + cases.cxx(parity->shift) + ")) & 1)";
      form.when.push_back("(" + cases.cxx(parity->shift) + ") >= 0");
      form.when.push_back("((" + cases.cxx(parity->value) + ") & ~1ll) == 0");
    } else {
      form.first = "(" + cases.cxx(first) + ")";
    }
    form.count = pairs ? cases.cxx(*pairs) : "((" + cases.cxx(*end) + ") - " + form.first + ") / 2";
    return true;
  }

  bool element(const std::string &array, LaunchIdiom &idiom) const {
    const Param *p = param(array);
    if (!p || !p->type.pointee || p->type.pointee->isVolatile)
      return false;
    const Type &type = *p->type.pointee;
    if ((type.cls != Type::Class::Int && !type.isFloat()) || (type.isFloat() && type.bytes < 4))
      return false;
    if (!idiom.element.empty() && idiom.element != type.text)
      return false;
    idiom.element = type.text;
    idiom.isFloat = type.isFloat();
    return true;
  }

  /// Remainders and the like that differ between threads, other than `name`: whether they are negative is not known.
  bool otherAtoms(const std::string &name) const {
    return std::any_of(cases.atoms.begin(), cases.atoms.end(),
                       [&](const auto &atom) { return atom.first != name && !cases.uniform(Poly::atom(atom.first)); });
  }
};

} // namespace

llvm::Expected<LaunchIdiom> optiml::recognizeLaunchIdiom(const Kernel &kernel) {
  std::shared_ptr<Kernel> normal = kernel.clone();
  normal->least.clear(); // its launches are told apart by other conditions
  std::array<AxisUse, 3> axes = normalizeGlobalIndex(*normal, {0, 0, 0});
  for (const AxisUse &axis : axes)
    if (axis.other)
      return notApplicable("line {0}: it uses a thread's place in its block", axis.otherLine);
  if (axes[1].global || axes[2].global)
    return notApplicable("its threads are not in a row");
  auto cases = threadCases(*normal);
  if (!cases)
    return cases.takeError();
  return Recognizer(*normal, *cases).run();
}

llvm::Expected<LaunchIdiom> optiml::recognizeLaunchIdiom(const KernelState &state) {
  auto idiom = recognizeLaunchIdiom(*state.original);
  if (idiom)
    return idiom;
  auto closure = recognizeClosureStep(*state.original);
  if (closure) {
    llvm::consumeError(idiom.takeError());
    return closure;
  }
  const std::string none =
      llvm::toString(idiom.takeError()) + ", nor of a closure: " + llvm::toString(closure.takeError());
  auto step = recognizeTimeStep(state);
  if (!step)
    return notApplicable("{0}, nor of a stencil: {1}", none, llvm::toString(step.takeError()));
  std::vector<TimeTile> tiles = timeTiles(*step);
  if (tiles.empty())
    return notApplicable("{0}, and several steps of this stencil fit no tile", none);
  LaunchIdiom result;
  result.kind = LaunchIdiom::Kind::TimeStep;
  result.in = step->fields.front().in;
  result.out = step->fields.front().out;
  result.element = step->fields.front().element;
  result.step = std::make_shared<TimeStep>(std::move(*step));
  result.tile = tiles.front();
  return result;
}
