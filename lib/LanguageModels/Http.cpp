//===- Http.cpp - models behind an HTTP endpoint --------------------------===//
//
// One POST by libcurl, tried again where that makes sense: after 429 and 5xx and a connection that broke, with growing,
// randomized pauses, all within the time that the question has. Certificates are checked, proxies of the environment
// honoured, redirects refused (they could lead a key elsewhere), answers limited in length.
//
//===----------------------------------------------------------------------===//
#include "HttpProtocol.h"
#include "RateGate.h"
#include "optiml/Support/Error.h"
#include <curl/curl.h>
#include <random>

using namespace optiml;
using Clock = RateGate::Clock;

namespace {

constexpr size_t longestBody = 4 << 20;
constexpr unsigned mostAttempts = 6;
constexpr double firstPause = 0.25, longestPause = 20, longestConnect = 10; // seconds

/// What came of one POST.
struct Response {
  CURLcode code = CURLE_OK;
  long status = 0;
  long retryAfter = 0; ///< seconds; 0: not told
  std::string body, why;
  bool tooLong = false, cancelled = false, sent = false;
};

struct Transfer {
  Response response;
  const std::atomic<bool> *cancel;
};

size_t receive(char *data, size_t, size_t count, void *user) {
  Response &response = static_cast<Transfer *>(user)->response;
  response.tooLong = response.body.size() + count > longestBody;
  if (response.tooLong)
    return 0; // ends the transfer
  response.body.append(data, count);
  return count;
}

int watch(void *user, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  auto *transfer = static_cast<Transfer *>(user);
  transfer->response.cancelled = transfer->cancel && transfer->cancel->load();
  return transfer->response.cancelled;
}

struct Headers {
  curl_slist *list = nullptr;
  void add(const std::string &line) { list = curl_slist_append(list, line.c_str()); }
  ~Headers() { curl_slist_free_all(list); }
};

void startCurl() {
  static std::once_flag once;
  std::call_once(once, [] { curl_global_init(CURL_GLOBAL_DEFAULT); });
}

class HttpEndpoint : public Endpoint {
public:
  explicit HttpEndpoint(HttpTarget target) : target(std::move(target)) { startCurl(); }
  std::string name() const override { return (target.model.empty() ? "" : target.model + " at ") + target.host; }
  std::string place() const override { return target.host; }
  std::string priceName() const override { return target.model; }
  llvm::Expected<ChatReply> ask(const ChatRequest &request, Exchange &exchange) override;

private:
  Response post(const std::string &body, double seconds, const std::atomic<bool> *cancel) const;
  HttpTarget target;
  RateGate gate;
  std::mutex mutex;
  ServerLimits limits;
};

Response HttpEndpoint::post(const std::string &body, double seconds, const std::atomic<bool> *cancel) const {
  Transfer transfer;
  transfer.cancel = cancel;
  CURL *curl = curl_easy_init();
  if (!curl) {
    transfer.response.code = CURLE_FAILED_INIT;
    transfer.response.why = "libcurl does not start";
    return transfer.response;
  }
  Headers headers;
  headers.add("Content-Type: application/json");
  headers.add("Expect:"); // no round trip before the body
  bool anthropic = target.protocol == HttpProtocol::Anthropic;
  if (anthropic)
    headers.add("anthropic-version: 2023-06-01");
  if (!target.key.empty())
    headers.add((anthropic ? "x-api-key: " : "Authorization: Bearer ") + target.key);
  char error[CURL_ERROR_SIZE] = "";
  curl_easy_setopt(curl, CURLOPT_URL, target.url.c_str());
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers.list);
  curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, curl_off_t(body.size()));
  curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body.data());
  curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, std::max(1L, long(seconds * 1000)));
  curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, std::max(1L, long(std::min(seconds, longestConnect) * 1000)));
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, receive);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &transfer);
  curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, watch);
  curl_easy_setopt(curl, CURLOPT_XFERINFODATA, &transfer);
  curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, error);
  curl_easy_setopt(curl, CURLOPT_USERAGENT, "OptiML");
  if (target.loopback) // a proxy would look at its own loopback
    curl_easy_setopt(curl, CURLOPT_NOPROXY, "*");
  if (const char *bundle = getenv("SSL_CERT_FILE"))
    curl_easy_setopt(curl, CURLOPT_CAINFO, bundle);
  Response &response = transfer.response;
  response.code = curl_easy_perform(curl);
  response.why = *error ? error : curl_easy_strerror(response.code);
  curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &response.status);
  curl_off_t wait = 0, uploaded = 0;
  curl_easy_getinfo(curl, CURLINFO_RETRY_AFTER, &wait);
  response.retryAfter = long(wait);
  curl_easy_getinfo(curl, CURLINFO_SIZE_UPLOAD_T, &uploaded);
  response.sent = uploaded > 0;
  curl_easy_cleanup(curl);
  return response;
}

bool worthAnotherTry(const Response &response) {
  switch (response.code) {
  case CURLE_OK: return response.status == 429 || response.status >= 500;
  case CURLE_COULDNT_CONNECT:
  case CURLE_GOT_NOTHING:
  case CURLE_RECV_ERROR:
  case CURLE_SEND_ERROR:
  case CURLE_PARTIAL_FILE: return !response.cancelled;
  default: return false;
  }
}

/// Doubled with every attempt, and between half and all of that, so that several clients do not come back together.
double pauseAfter(unsigned attempt) {
  thread_local std::minstd_rand random{std::random_device()()};
  double most = std::min(longestPause, firstPause * double(1u << std::min(attempt - 1, 10u)));
  return most * std::uniform_real_distribution<>(0.5, 1)(random);
}

std::string describe(const Response &response, const Exchange &exchange) {
  if (response.cancelled)
    return "cancelled";
  if (response.tooLong)
    return llvm::formatv("the answer is longer than {0} bytes", longestBody);
  if (response.code == CURLE_OPERATION_TIMEDOUT)
    return "no answer in time (--optiml-llm-timeout)";
  if (response.code != CURLE_OK)
    return response.why;
  if (response.status >= 300 && response.status < 400)
    return llvm::formatv(
        "the server wants to send the question elsewhere (HTTP {0}), which is not followed; check the URL",
        response.status);
  std::string said = httpErrorText(withoutKeys(exchange, response.body));
  return llvm::formatv("HTTP {0}{1}{2}", response.status, said.empty() ? "" : ": ", said);
}

llvm::Expected<ChatReply> HttpEndpoint::ask(const ChatRequest &request, Exchange &exchange) {
  Clock::time_point deadline =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(exchange.seconds));
  auto left = [&] { return std::chrono::duration<double>(deadline - Clock::now()).count(); };
  exchange.attempts = 0;
  std::string why = "no turn in time";
  while (exchange.attempts < mostAttempts) {
    if (!gate.enter(deadline, exchange.cancel))
      return makeError("{0} ({1} attempts)", exchange.cancel && *exchange.cancel ? "cancelled" : why,
                       exchange.attempts);
    ServerLimits known;
    {
      std::lock_guard lock(mutex);
      known = limits;
    }
    Response response = post(httpBody(target, request, known).dump(), left(), exchange.cancel);
    gate.leave();
    ++exchange.attempts;
    exchange.perhapsBilled |= response.sent && response.code != CURLE_OK;
    if (response.code == CURLE_OK && response.status == 200) {
      exchange.perhapsBilled = true;
      return readHttpAnswer(target.protocol, response.body);
    }
    why = describe(response, exchange);
    if (response.code == CURLE_OK && response.status == 400) {
      bool changed = adaptTo(response.body, request, known);
      if (changed) {
        std::lock_guard lock(mutex);
        limits = known;
        continue;
      }
    }
    if (!worthAnotherTry(response))
      return makeError(why);
    double pause = std::max(double(response.retryAfter), pauseAfter(exchange.attempts));
    if (pause >= left())
      return makeError("{0} ({1} attempts; the next could only be in {2:f1} s)", why, exchange.attempts, pause);
    gate.holdOff(pause);
  }
  return makeError("{0} ({1} attempts)", why, exchange.attempts);
}

} // namespace

llvm::Expected<std::unique_ptr<Endpoint>> optiml::makeHttpEndpoint(HttpTarget target) {
  if (!target.key.empty() && !target.encrypted && !target.loopback)
    return makeError("{0}: a key is not sent without encryption; use https://, or --optiml-llm-key-env=none",
                     target.host);
  if (target.protocol == HttpProtocol::Anthropic && target.model.empty())
    return makeError("{0}: which model? Give --optiml-llm-model=NAME", target.host);
  return std::make_unique<HttpEndpoint>(std::move(target));
}
