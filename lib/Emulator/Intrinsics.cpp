//===- Intrinsics.cpp - what device code asks of the GPU ------------------===//
//
// Replaces NVVM intrinsics and the device library's external functions by plain instructions or by calls of the runtime
// (ABI.h). What is unknown becomes a call that stops the program when it is reached and names the construct: never a
// wrong result.
//
//===----------------------------------------------------------------------===//
#include "DeviceModule.h"
#include "PtxLowering.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/Demangle/Demangle.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"

using namespace llvm;
using namespace optiml::emu;

namespace {

/// Replaces one call; `b` stands before it.
class Lowering {
public:
  Lowering(DeviceModule &dm, CallInst &call) : dm(dm), call(call), b(&call) {}

  /// The value that replaces the call (null for void), or nothing when the name is unknown.
  std::optional<Value *> nvvm(StringRef name) {
    if (name.consume_front("read.ptx.sreg.")) {
      if (Value *v = lowerSpecialRegister(dm, b, name, call.getType()))
        return v;
      return std::nullopt;
    }
    if (auto v = synchronization(name))
      return v;
    if (auto v = warp(name))
      return v;
    if (auto v = memory(name))
      return v;
    return arithmetic(name);
  }

  std::optional<Value *> libraryFunction(StringRef name) {
    if (name == "vprintf")
      return runtime("optiml_vprintf", {arg(0), arg(1)});
    if (name == "__assertfail")
      return runtime("optiml_assert_fail", {arg(0), arg(1), arg(2), arg(3), site()});
    if (name == "malloc")
      return runtime("optiml_malloc", {b.CreateZExtOrTrunc(arg(0), b.getInt64Ty())});
    if (name == "free")
      return runtime("optiml_free", {arg(0)});
    if (name == "llvm.trap")
      return runtime("optiml_trap", {site()});
    if (name == "llvm.debugtrap")
      return nullptr;
    return std::nullopt;
  }

private:
  DeviceModule &dm;
  CallInst &call;
  IRBuilder<> b;

  Value *arg(unsigned i) { return call.getArgOperand(i); }
  Value *site() { return dm.site(b); }
  Value *runtime(StringRef name, ArrayRef<Value *> args) { return dm.call(b, name, args); }
  Value *toBool(Value *v) { return b.CreateICmpNE(v, Constant::getNullValue(v->getType())); }
  Value *toInt(Value *v) { return b.CreateZExt(v, b.getInt32Ty()); }
  Value *intrinsic(Intrinsic::ID id, ArrayRef<Value *> args) { return b.CreateIntrinsic(args[0]->getType(), id, args); }

  std::optional<Value *> synchronization(StringRef name) {
    if (name == "barrier0")
      return runtime("optiml_barrier", {b.getInt32(0), site()});
    if (name == "barrier.cta.sync.aligned.all" || name == "barrier.cta.sync.all" || name == "barrier.n" ||
        name == "barrier.sync")
      return runtime("optiml_barrier", {arg(0), site()});
    if (name.consume_front("barrier.cta.red.")) {
      unsigned op = name.starts_with("popc") ? BarrierPopc : name.starts_with("and") ? BarrierAnd : BarrierOr;
      if (!name.ends_with(".all"))
        return std::nullopt;
      Value *result = runtime("optiml_barrier_reduce", {arg(0), b.getInt32(op), toInt(toBool(arg(1))), site()});
      return call.getType()->isIntegerTy(1) ? toBool(result) : result;
    }
    if (name == "bar.warp.sync")
      return runtime("optiml_syncwarp", {arg(0), site()});
    if (name == "membar.cta")
      return runtime("optiml_fence", {b.getInt32(0)});
    if (name == "membar.gl" || name == "fence.sc.cluster")
      return runtime("optiml_fence", {b.getInt32(1)});
    if (name == "membar.sys")
      return runtime("optiml_fence", {b.getInt32(2)});
    if (name == "nanosleep")
      return runtime("optiml_nanosleep", {arg(0)});
    if (name == "is_explicit_cluster")
      return b.getInt1(false);
    if (name.starts_with("barrier.cluster.arrive")) // a cluster is one block here: arrival alone waits for nobody
      return nullptr;
    if (name == "barrier.cluster.wait" || name == "barrier.cluster.wait.aligned")
      return runtime("optiml_barrier", {b.getInt32(0), site()});
    return std::nullopt;
  }

  std::optional<Value *> warp(StringRef name) {
    if (name == "activemask")
      return runtime("optiml_activemask", {});
    if (name.consume_front("shfl.sync.")) {
      unsigned mode = name.starts_with("idx")    ? ShuffleIdx
                      : name.starts_with("up")   ? ShuffleUp
                      : name.starts_with("down") ? ShuffleDown
                                                 : ShuffleBfly;
      return shuffle(mode, name.ends_with("p"));
    }
    if (name.consume_front("vote.") && name.consume_back(".sync")) {
      unsigned mode = name == "all" ? VoteAll : name == "any" ? VoteAny : name == "uni" ? VoteUni : VoteBallot;
      Value *result = runtime("optiml_vote", {b.getInt32(mode), arg(0), toInt(toBool(arg(1))), site()});
      return call.getType()->isIntegerTy(1) ? toBool(result) : result;
    }
    if (name.starts_with("match.any.sync"))
      return runtime("optiml_match_any", {arg(0), b.CreateZExt(arg(1), b.getInt64Ty()), site()});
    if (name.starts_with("match.all.sync")) {
      Value *slot = stackSlot(b.getInt32Ty());
      Value *mask = runtime("optiml_match_all", {arg(0), b.CreateZExt(arg(1), b.getInt64Ty()), slot, site()});
      return pair(mask, toBool(b.CreateLoad(b.getInt32Ty(), slot)));
    }
    if (name.consume_front("redux.sync.")) {
      const std::pair<const char *, unsigned> ops[] = {{"add", ReduceAdd},   {"min", ReduceMin},   {"max", ReduceMax},
                                                       {"umin", ReduceUMin}, {"umax", ReduceUMax}, {"and", ReduceAnd},
                                                       {"or", ReduceOr},     {"xor", ReduceXor}};
      for (auto [op, code] : ops)
        if (name == op)
          return runtime("optiml_redux", {b.getInt32(code), arg(1), arg(0), site()});
    }
    return std::nullopt;
  }

  Value *shuffle(unsigned mode, bool withPredicate) {
    Value *value = arg(1);
    Type *type = value->getType();
    Value *slot = withPredicate ? stackSlot(b.getInt32Ty()) : ConstantPointerNull::get(b.getPtrTy());
    Value *result = runtime("optiml_shuffle", {b.getInt32(mode), arg(0), b.CreateBitCast(value, b.getInt32Ty()), arg(2),
                                               arg(3), slot, site()});
    result = b.CreateBitCast(result, type);
    return withPredicate ? pair(result, toBool(b.CreateLoad(b.getInt32Ty(), slot))) : result;
  }

  Value *pair(Value *first, Value *second) {
    Value *result = b.CreateInsertValue(PoisonValue::get(call.getType()), first, 0);
    return b.CreateInsertValue(result, second, 1);
  }

  Value *stackSlot(Type *type) {
    Function &f = *call.getFunction();
    IRBuilder<> entry(&f.getEntryBlock(), f.getEntryBlock().begin());
    return entry.CreateAlloca(type);
  }

  std::optional<Value *> memory(StringRef name) {
    if (name.consume_front("isspacep.")) {
      if (name.starts_with("shared"))
        return toBool(runtime("optiml_is_shared", {arg(0)}));
      if (name == "global")
        return toBool(runtime("optiml_is_global", {arg(0)}));
      if (name == "const")
        return b.getInt1(false);
      if (name == "local")
        return b.CreateNot(
            b.CreateOr(toBool(runtime("optiml_is_shared", {arg(0)})), toBool(runtime("optiml_is_global", {arg(0)}))));
      return std::nullopt;
    }
    if (name.starts_with("ldg.global") || name.starts_with("ldu.global")) {
      auto *align = dyn_cast<ConstantInt>(arg(1));
      return b.CreateAlignedLoad(call.getType(), arg(0), Align(align ? align->getZExtValue() : 1));
    }
    if (name == "mapa" || name.starts_with("mapa."))
      return arg(0);
    if (name.starts_with("getctarank"))
      return b.getInt32(0);
    if (name.consume_front("cp.async.")) {
      // Done at once, which is one of the orders a program must expect; the waits have nothing to do.
      if (name.starts_with("commit.group") || name.starts_with("wait."))
        return nullptr;
      return asyncCopy(name);
    }
    return std::nullopt;
  }

  std::optional<Value *> asyncCopy(StringRef name) {
    StringRef rest = name;
    if (!rest.consume_front("ca.shared.global.") && !rest.consume_front("cg.shared.global."))
      return std::nullopt;
    unsigned bytes = 0;
    if (rest.consumeInteger(10, bytes))
      return std::nullopt;
    Type *element = b.getInt32Ty();
    Type *type = bytes == 4 ? element : FixedVectorType::get(element, bytes / 4);
    Value *to = b.CreatePtrAdd(dm.load(b, Field::Shared), b.CreatePtrToInt(arg(0), b.getInt64Ty()));
    Value *value = b.CreateAlignedLoad(type, arg(1), Align(bytes));
    if (rest == ".s") { // only the first bytes are read, the rest is zero
      Value *lanes = b.CreateUDiv(arg(2), b.getInt32(4));
      if (bytes == 4)
        value = b.CreateSelect(b.CreateICmpEQ(lanes, b.getInt32(0)), b.getInt32(0), value);
      else
        return std::nullopt;
    }
    b.CreateAlignedStore(value, to, Align(bytes));
    return nullptr;
  }

  std::optional<Value *> arithmetic(StringRef name) {
    auto starts = [&](StringRef prefix) { return name.starts_with(prefix); };
    bool directed = name.contains(".rm") || name.contains(".rp") || name.contains(".rz");
    if (directed)
      return std::nullopt;
    // Denormals are kept where the GPU's .ftz forms flush them; approximations are replaced by exact operations.
    static const std::pair<StringRef, Intrinsic::ID> unary[] = {
        {"sqrt.", Intrinsic::sqrt},     {"ex2.approx", Intrinsic::exp2}, {"lg2.approx", Intrinsic::log2},
        {"sin.approx", Intrinsic::sin}, {"cos.approx", Intrinsic::cos},  {"tanh.approx", Intrinsic::tanh},
        {"fabs", Intrinsic::fabs},      {"ceil.", Intrinsic::ceil},      {"floor.", Intrinsic::floor},
        {"trunc.", Intrinsic::trunc},   {"round.", Intrinsic::roundeven}};
    for (auto [prefix, id] : unary)
      if (starts(prefix))
        return intrinsic(id, {arg(0)});
    if (starts("fmin."))
      return b.CreateMinNum(arg(0), arg(1));
    if (starts("fmax."))
      return b.CreateMaxNum(arg(0), arg(1));
    if (starts("fma.rn"))
      return intrinsic(Intrinsic::fma, {arg(0), arg(1), arg(2)});
    if (starts("add.rn."))
      return b.CreateFAdd(arg(0), arg(1));
    if (starts("mul.rn."))
      return b.CreateFMul(arg(0), arg(1));
    if (starts("div.rn.") || starts("div.approx.") || starts("div.full"))
      return b.CreateFDiv(arg(0), arg(1));
    if (starts("rcp."))
      return b.CreateFDiv(ConstantFP::get(arg(0)->getType(), 1.0), arg(0));
    if (starts("rsqrt.approx"))
      return b.CreateFDiv(ConstantFP::get(arg(0)->getType(), 1.0), intrinsic(Intrinsic::sqrt, {arg(0)}));
    if (starts("saturate.")) {
      Type *type = arg(0)->getType();
      Value *low = b.CreateMaxNum(arg(0), ConstantFP::get(type, 0.0)); // NaN becomes 0
      return b.CreateMinNum(low, ConstantFP::get(type, 1.0));
    }
    if (name == "lohi.i2d") {
      Value *high = b.CreateShl(b.CreateZExt(arg(1), b.getInt64Ty()), 32);
      return b.CreateBitCast(b.CreateOr(high, b.CreateZExt(arg(0), b.getInt64Ty())), b.getDoubleTy());
    }
    if (name == "d2i.lo" || name == "d2i.hi") {
      Value *bits = b.CreateBitCast(arg(0), b.getInt64Ty());
      return b.CreateTrunc(name == "d2i.hi" ? b.CreateLShr(bits, 32) : bits, b.getInt32Ty());
    }
    if (starts("bitcast."))
      return b.CreateBitCast(arg(0), call.getType());
    if (starts("mulhi.")) {
      bool isSigned = name == "mulhi.i" || name == "mulhi.ll" || name == "mulhi.s";
      unsigned bits = arg(0)->getType()->getIntegerBitWidth();
      Type *wide = b.getIntNTy(bits * 2);
      auto extend = [&](Value *v) { return isSigned ? b.CreateSExt(v, wide) : b.CreateZExt(v, wide); };
      return b.CreateTrunc(b.CreateLShr(b.CreateMul(extend(arg(0)), extend(arg(1))), bits), arg(0)->getType());
    }
    if (starts("f2h.rn"))
      return b.CreateBitCast(b.CreateFPTrunc(arg(0), b.getHalfTy()), b.getInt16Ty());
    return std::nullopt;
  }
};

/// Functions of the host's mathematical library that LLVM does not list as such (DeviceLibrary.cpp uses them).
bool isMathFunction(StringRef name) {
  static const std::set<StringRef> names = {"erfc",      "lgamma", "tgamma", "j0",    "j1",    "jn",
                                            "y0",        "y1",     "yn",     "exp10", "ilogb", "remquo",
                                            "nextafter", "expm1",  "logb",   "cbrt",  "hypot"};
  return names.count(name) || (name.consume_back("f") && names.count(name));
}

/// What a user calls an instruction that is not known.
std::string ptxConstruct(StringRef text) {
  std::string quoted = "'" + text.split(';').first.split('\n').first.trim().str() + "'";
  for (const char *prefix : {"tex.", "tld4.", "txq.", "suld.", "sust.", "sured.", "suq."})
    if (text.starts_with(prefix))
      return "textures and surfaces (" + quoted + ")";
  for (const char *prefix : {"mma.", "wmma.", "wgmma.", "ldmatrix.", "stmatrix.", "tcgen05."})
    if (text.starts_with(prefix))
      return "tensor core operations (" + quoted + ")";
  return "the inline PTX instruction " + quoted;
}

std::string constructName(const CallInst &call) {
  if (const Function *f = call.getCalledFunction()) {
    StringRef name = f->getName();
    if (name.starts_with("llvm.nvvm.")) {
      if (name.contains("mma."))
        return "tensor core operations (" + name.drop_front(10).str() + ")";
      if (name.contains("tex.") || name.contains("suld") || name.contains("sust") || name.contains("tld4"))
        return "textures and surfaces (" + name.drop_front(10).str() + ")";
      return "the device instruction " + name.drop_front(10).str();
    }
    if (name.starts_with("cudaLaunchDevice") || name.starts_with("cudaGetParameterBuffer") ||
        name.starts_with("__cudaCDP") || name.starts_with("cudaDevice"))
      return "dynamic parallelism";
    return "a call of the function '" + demangle(name) + "', which is declared but not defined";
  }
  return "this call";
}

} // namespace

Value *optiml::emu::lowerSpecialRegister(DeviceModule &dm, IRBuilder<> &b, StringRef name, Type *type) {
  auto [base, axis] = name.rsplit('.');
  unsigned d = axis == "x" ? 0 : axis == "y" ? 1 : axis == "z" ? 2 : 3;
  if (d < 3) {
    if (base == "tid")
      return DeviceModule::tid(*b.GetInsertBlock()->getParent(), d);
    if (base == "ntid")
      return dm.load(b, Field::Ntid, d);
    if (base == "ctaid" || base == "clusterid")
      return dm.load(b, Field::Ctaid, d);
    if (base == "nctaid" || base == "nclusterid")
      return dm.load(b, Field::Nctaid, d);
    if (base == "cluster.ctaid")
      return b.getInt32(0);
    if (base == "cluster.nctaid")
      return b.getInt32(1);
  }
  if (name == "cluster.ctarank" || name == "smid" || name == "gridid")
    return ConstantInt::get(type, 0);
  if (name == "cluster.nctarank" || name == "nsmid")
    return b.getInt32(1);
  if (name == "warpsize")
    return b.getInt32(32);
  if (name == "laneid")
    return b.CreateAnd(dm.linearThread(b), 31);
  if (name == "warpid")
    return b.CreateLShr(dm.linearThread(b), 5);
  if (name == "nwarpid") {
    Value *threads =
        b.CreateMul(dm.load(b, Field::Ntid, 0), b.CreateMul(dm.load(b, Field::Ntid, 1), dm.load(b, Field::Ntid, 2)));
    return b.CreateLShr(b.CreateAdd(threads, b.getInt32(31)), 5);
  }
  if (name.starts_with("lanemask.")) {
    Value *lane = b.CreateAnd(dm.linearThread(b), 31);
    Value *bit = b.CreateShl(b.getInt32(1), lane), *below = b.CreateSub(bit, b.getInt32(1));
    if (axis == "eq")
      return bit;
    if (axis == "lt")
      return below;
    if (axis == "le")
      return b.CreateOr(below, bit);
    if (axis == "ge")
      return b.CreateNot(below);
    if (axis == "gt")
      return b.CreateNot(b.CreateOr(below, bit));
  }
  if (name == "clock" || name == "clock64" || name == "globaltimer" || name == "globaltimer.lo" || name == "clock.hi")
    return b.CreateZExtOrTrunc(dm.call(b, "optiml_clock"), type);
  if (name.starts_with("pm"))
    return ConstantInt::get(type, 0);
  return nullptr;
}

void optiml::emu::lowerIntrinsics(DeviceModule &dm) {
  TargetLibraryInfoImpl library(dm.module.getTargetTriple());
  for (Function &f : dm.module) {
    if (f.isDeclaration())
      continue;
    std::vector<CallInst *> calls;
    for (Instruction &inst : instructions(f))
      if (auto *call = dyn_cast<CallInst>(&inst))
        calls.push_back(call);
    for (CallInst *call : calls) {
      if (call->isInlineAsm()) {
        std::string unknown;
        if (!lowerInlinePtx(dm, *call, unknown))
          dm.replaceByUnsupported(*call, ptxConstruct(unknown));
        continue;
      }
      Function *callee = call->getCalledFunction();
      if (!callee || !callee->isDeclaration())
        continue;
      StringRef name = callee->getName();
      if (name.starts_with("optiml_") || name.starts_with("optiml."))
        continue;
      LibFunc known;
      std::optional<Value *> replacement;
      Lowering lowering(dm, *call);
      if (name.starts_with("llvm.nvvm."))
        replacement = lowering.nvvm(name.drop_front(10));
      else if (auto own = lowering.libraryFunction(name))
        replacement = own;
      else if (callee->isIntrinsic() || library.getLibFunc(*callee, known) || isMathFunction(name))
        continue;
      if (!replacement) {
        dm.replaceByUnsupported(*call, constructName(*call));
        continue;
      }
      if (*replacement)
        call->replaceAllUsesWith(*replacement);
      call->eraseFromParent();
    }
  }
}
