//===- ModelSession.cpp - the models of one run ---------------------------===//
#include "optiml/LanguageModels/ModelSession.h"
#include "Budget.h"
#include "Endpoint.h"
#include "Transcript.h"
#include "optiml/LanguageModels/JsonAnswer.h"
#include "optiml/Support/Error.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include <chrono>
#include <mutex>

using namespace optiml;
using nlohmann::json;
using Clock = std::chrono::steady_clock;

namespace {

/// After so many failures in a row a model is asked no more: a dead server must not cost every question its timeout.
constexpr unsigned mostFailuresInARow = 3;
/// Longer texts are no answers.
constexpr size_t longestReply = 2 << 20;

class SessionModel;

} // namespace

struct ModelSession::Impl {
  Impl(const ModelFlags &flags, Options options) : flags(flags), options(std::move(options)), budget(flags.budget) {}

  llvm::Error open();
  llvm::Error addModels(const std::string &value, const std::string &name, const std::map<size_t, std::string> &keys,
                        size_t index);
  llvm::Expected<std::map<size_t, std::string>> takeKeys();
  llvm::Error checkMoney() const;
  void giveNotice();
  std::string notice() const;
  void record(const json &line);
  void say(const std::string &line) const {
    if (options.say)
      options.say(secrets.scrub(line));
  }

  ModelFlags flags;
  Options options;
  Secrets secrets;
  Budget budget;
  PriceTable prices;
  std::unique_ptr<Transcript> transcript;
  std::vector<std::unique_ptr<SessionModel>> owned;
  std::vector<LanguageModel *> models;
  std::once_flag noticed, headed;
  mutable std::mutex mutex;
  ModelTotals totals;
};

namespace {

/// A model as others see it: an endpoint behind the session's budget, transcript and notice.
class SessionModel : public LanguageModel {
public:
  SessionModel(ModelSession::Impl &session, std::unique_ptr<Endpoint> endpoint, unsigned index, bool live)
      : session(session), endpoint(std::move(endpoint)), index(index), live(live) {
    price = session.prices.find(this->endpoint->priceName());
  }
  std::string name() const override { return endpoint->name(); }
  llvm::Expected<ChatReply> ask(const ChatRequest &request) override;
  void wasTaken(const ChatRequest &request, unsigned turn) override {
    std::lock_guard lock(session.mutex);
    session.record({{"purpose", request.purpose},
                    {"hash", requestHash(request)},
                    {"model", {{"index", index}, {"name", name()}}},
                    {"takenAt", turn}});
  }

  ModelSession::Impl &session;
  std::unique_ptr<Endpoint> endpoint;
  unsigned index;
  bool live; ///< no recorded one
  std::optional<Price> price;

private:
  llvm::Expected<ChatReply> askLive(const ChatRequest &request, Exchange &exchange, bool &refused);
  llvm::Expected<ChatReply> askEndpoint(const ChatRequest &request, Exchange &exchange);
  std::atomic<unsigned> failuresInARow{0};
};

/// What came from outside: within limits, without keys, in UTF-8, with all numbers there.
ChatReply cleaned(ChatReply reply, const ChatRequest &request, const Secrets &secrets) {
  reply.text = secrets.scrub(validUtf8(reply.text));
  if (reply.stop != "end" && reply.stop != "length" && reply.stop != "refusal")
    reply.stop = "end";
  if (!reply.promptTokens) {
    reply.promptTokens = estimatedPromptTokens(request);
    reply.estimatedTokens = true;
  }
  if (!reply.completionTokens && !reply.text.empty()) {
    reply.completionTokens = estimatedTokens(reply.text.size());
    reply.estimatedTokens = true;
  }
  return reply;
}

llvm::Expected<ChatReply> SessionModel::askEndpoint(const ChatRequest &request, Exchange &exchange) {
  Clock::time_point start = Clock::now();
  llvm::Expected<ChatReply> reply = endpoint->ask(request, exchange);
  if (!reply)
    return makeError(session.secrets.scrub(validUtf8(name() + ": " + llvm::toString(reply.takeError()))));
  if (reply->text.size() > longestReply)
    return makeError("{0}: the answer is longer than {1} bytes", name(), longestReply);
  reply->seconds = std::chrono::duration<double>(Clock::now() - start).count();
  return cleaned(std::move(*reply), request, session.secrets);
}

llvm::Expected<ChatReply> SessionModel::askLive(const ChatRequest &request, Exchange &exchange, bool &refused) {
  refused = true;
  exchange.attempts = 0;
  if (failuresInARow >= mostFailuresInARow)
    return makeError("{0} is not asked any more, since it failed {1} times in a row", name(), mostFailuresInARow);
  llvm::Expected<Budget::Reservation> reserved =
      session.budget.reserve(estimatedPromptTokens(request), request.maxTokens, price);
  if (!reserved)
    return makeError("{0} is not asked: {1}", name(), llvm::toString(reserved.takeError()));
  refused = false;
  exchange.attempts = 1;
  session.giveNotice();
  llvm::Expected<ChatReply> reply = askEndpoint(request, exchange);
  if (!reply) {
    bool billed = exchange.perhapsBilled; // then the most that it can have come to stays spent
    session.budget.settle(*reserved, billed ? reserved->tokens : 0, billed ? reserved->usd : 0);
    bool cancelled =
        (session.options.cancel && session.options.cancel->load()) || (request.abandoned && request.abandoned->load());
    if (!cancelled)
      ++failuresInARow;
    return reply.takeError();
  }
  failuresInARow = 0;
  exchange.usd.reset();
  if (price)
    exchange.usd = price->of(reply->promptTokens, reply->completionTokens);
  session.budget.settle(*reserved, reply->promptTokens + reply->completionTokens, exchange.usd.value_or(0));
  return reply;
}

llvm::Expected<ChatReply> SessionModel::ask(const ChatRequest &request) {
  Exchange exchange;
  exchange.seconds = session.flags.timeout;
  exchange.cancel = request.abandoned ? request.abandoned : session.options.cancel;
  exchange.secrets = &session.secrets;
  bool refused = false;
  llvm::Expected<ChatReply> reply = live ? askLive(request, exchange, refused) : endpoint->ask(request, exchange);

  json line = {{"purpose", request.purpose},
               {"hash", requestHash(request)},
               {"model", {{"index", index}, {"name", name()}}},
               {"attempts", exchange.attempts},
               {"request", requestToJson(request)}};
  std::lock_guard lock(session.mutex);
  ModelTotals &totals = session.totals;
  ++totals.asked;
  if (!reply) {
    totals.refused += refused;
    std::string error = llvm::toString(reply.takeError());
    line["outcome"] = refused ? "refused" : "failed";
    line["error"] = error;
    session.record(line);
    return makeError(error);
  }
  ++totals.answered;
  totals.promptTokens += reply->promptTokens;
  totals.completionTokens += reply->completionTokens;
  totals.estimatedTokens |= reply->estimatedTokens;
  totals.usd += exchange.usd.value_or(0);
  totals.unpriced |= !exchange.usd;
  totals.seconds += reply->seconds;
  line["outcome"] = "answered";
  line["reply"] = {{"text", reply->text},
                   {"stop", reply->stop},
                   {"promptTokens", reply->promptTokens},
                   {"completionTokens", reply->completionTokens},
                   {"estimatedTokens", reply->estimatedTokens},
                   {"seconds", reply->seconds}};
  if (exchange.usd)
    line["usd"] = *exchange.usd;
  session.record(line);
  return reply;
}

} // namespace

void ModelSession::Impl::record(const json &line) {
  std::call_once(headed, [&] {
    json names = json::array();
    for (const LanguageModel *model : models)
      names.push_back(model->name());
    if (llvm::Error e = transcript->write({{"transcript", 1}, {"models", names}}))
      say("warning: " + llvm::toString(std::move(e)));
  });
  if (llvm::Error e = transcript->write(line))
    say("warning: " + llvm::toString(std::move(e)));
}

void ModelSession::Impl::giveNotice() {
  std::call_once(noticed, [&] { say(notice()); });
}

std::string ModelSession::Impl::notice() const {
  std::vector<std::string> places, unpriced;
  double dearest = 0; // of a token
  for (const auto &model : owned) {
    if (!model->live)
      continue;
    std::string place = model->endpoint->priceName();
    place += (place.empty() ? "" : " at ") + model->endpoint->place();
    if (!llvm::is_contained(places, place))
      places.push_back(place);
    if (model->price)
      dearest = std::max({dearest, model->price->input, model->price->output});
    else
      unpriced.push_back(place);
  }
  std::string text = llvm::formatv("{0} and what is measured of it go to {1}; at most {2} calls and {3} tokens",
                                   options.source.empty() ? "the source" : options.source, llvm::join(places, " and "),
                                   flags.budget.calls, flags.budget.tokens);
  double most = double(flags.budget.tokens) * dearest / 1e6;
  if (flags.budget.usd > 0)
    most = std::min(most, flags.budget.usd);
  if (dearest > 0)
    text += llvm::formatv(", {0:f2} USD", most);
  if (!unpriced.empty())
    text += "; what " + llvm::join(unpriced, " and ") + " costs is not known";
  return text;
}

/// Keys by the index of their model. Every variable that the flags name is emptied, whatever goes wrong.
llvm::Expected<std::map<size_t, std::string>> ModelSession::Impl::takeKeys() {
  std::map<size_t, std::string> result;
  llvm::Error failed = llvm::Error::success();
  auto take = [&](const std::string &variable) -> std::string {
    if (variable == "none")
      return "";
    llvm::Expected<std::string> key = secrets.take(variable);
    if (key)
      return *key;
    failed = llvm::joinErrors(std::move(failed), key.takeError());
    return "";
  };
  std::vector<std::string> keys;
  for (const std::string &variable : flags.keyVariables)
    keys.push_back(take(variable));
  std::vector<std::pair<size_t, HttpTarget>> targets;
  for (size_t i = 0; i < flags.models.size(); ++i) {
    llvm::StringRef value = flags.models[i];
    if (value.starts_with("exec:") || value.starts_with("replay:"))
      continue;
    llvm::Expected<HttpTarget> target = parseHttpTarget(value);
    if (target)
      targets.push_back({i, std::move(*target)});
    else
      failed = llvm::joinErrors(std::move(failed), target.takeError());
  }
  bool oneHost = std::all_of(targets.begin(), targets.end(),
                             [&](const auto &t) { return t.second.host == targets.front().second.host; });
  bool paired = keys.size() == targets.size() || (keys.size() == 1 && !targets.empty() && oneHost);
  if (!keys.empty() && !paired && !failed) // a key must never reach a host that it is not for
    failed =
        makeError("--optiml-llm-key-env is given {0} times for {1} endpoints; give it once for each, in their order, "
                  "or 'none'",
                  keys.size(), targets.size());
  if (failed)
    return std::move(failed);
  for (size_t i = 0; i < targets.size(); ++i) {
    const std::string &host = targets[i].second.host;
    if (!keys.empty())
      result[targets[i].first] = keys[std::min(i, keys.size() - 1)];
    else if (const char *usual = host == "api.openai.com"      ? "OPENAI_API_KEY"
                                 : host == "api.anthropic.com" ? "ANTHROPIC_API_KEY"
                                                               : nullptr)
      result[targets[i].first] = take(usual);
  }
  if (failed)
    return std::move(failed);
  return result;
}

llvm::Error ModelSession::Impl::addModels(const std::string &value, const std::string &name,
                                          const std::map<size_t, std::string> &keys, size_t index) {
  auto add = [&](std::unique_ptr<Endpoint> endpoint, bool live) {
    owned.push_back(std::make_unique<SessionModel>(*this, std::move(endpoint), unsigned(owned.size()), live));
    models.push_back(owned.back().get());
  };
  llvm::StringRef text = value;
  if (text.consume_front("replay:")) {
    if (text == transcript->file())
      return makeError("--optiml-llm=replay:{0} would be overwritten by the transcript; name another file", text);
    auto recorded = makeReplayEndpoints(text.str());
    if (!recorded)
      return recorded.takeError();
    for (auto &endpoint : *recorded)
      add(std::move(endpoint), false);
    return llvm::Error::success();
  }
  llvm::Expected<std::unique_ptr<Endpoint>> endpoint = nullptr;
  if (text.consume_front("exec:")) {
    endpoint = makeExecEndpoint(text, name);
  } else {
    llvm::Expected<HttpTarget> target = parseHttpTarget(text);
    if (!target)
      return target.takeError();
    target->model = name;
    if (auto key = keys.find(index); key != keys.end())
      target->key = key->second;
    endpoint = makeHttpEndpoint(std::move(*target));
  }
  if (!endpoint)
    return endpoint.takeError();
  add(std::move(*endpoint), true);
  return llvm::Error::success();
}

/// A limit in money cannot be kept for a server whose prices are not known.
llvm::Error ModelSession::Impl::checkMoney() const {
  for (const auto &model : owned)
    if (flags.budget.usd > 0 && model->live && !model->price && !model->endpoint->priceName().empty())
      return makeError(
          "--optiml-llm-budget limits the money, but no price of '{0}' is known; give --optiml-llm-prices=FILE "
          "(docs/formats.md) or a limit in tokens only",
          model->endpoint->priceName());
  return llvm::Error::success();
}

llvm::Error ModelSession::Impl::open() {
  auto keys = takeKeys();
  if (!keys)
    return keys.takeError();
  auto table = PriceTable::load(flags.prices);
  if (!table)
    return table.takeError();
  prices = std::move(*table);
  std::string file = flags.transcript.empty() ? options.transcript : flags.transcript == "none" ? "" : flags.transcript;
  transcript = std::make_unique<Transcript>(file, secrets);
  if (flags.models.empty())
    return llvm::Error::success();
  size_t count = std::max(flags.models.size(), flags.names.size());
  for (size_t i = 0; i < count; ++i) {
    size_t at = std::min(i, flags.models.size() - 1);
    std::string name = flags.names.empty() ? "" : flags.names[std::min(i, flags.names.size() - 1)];
    if (llvm::Error e = addModels(flags.models[at], name, *keys, at))
      return e;
  }
  return checkMoney();
}

ModelSession::ModelSession() = default;
ModelSession::~ModelSession() = default;

llvm::Expected<std::unique_ptr<ModelSession>> ModelSession::open(const ModelFlags &flags, Options options) {
  std::unique_ptr<ModelSession> session(new ModelSession);
  session->impl = std::make_unique<Impl>(flags, std::move(options));
  if (llvm::Error e = session->impl->open())
    return makeError(session->impl->secrets.scrub(llvm::toString(std::move(e))));
  return session;
}

llvm::ArrayRef<LanguageModel *> ModelSession::models() const { return impl->models; }

ModelTotals ModelSession::totals() const {
  std::lock_guard lock(impl->mutex);
  return impl->totals;
}

std::string ModelSession::summary() const {
  ModelTotals t = totals();
  std::string text = llvm::formatv("{0} questions, {1} answers, {2} + {3} tokens{4}", t.asked, t.answered,
                                   t.promptTokens, t.completionTokens, t.estimatedTokens ? " (estimated)" : "");
  if (t.usd > 0)
    text += llvm::formatv(", {0:f4} USD", t.usd);
  if (t.answered && t.unpriced)
    text += t.usd > 0 ? " and what has no known price" : ", cost not known";
  if (t.refused)
    text += llvm::formatv(", {0} not asked (budget spent or model failing)", t.refused);
  return text;
}
