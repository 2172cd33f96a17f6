// A server that speaks one of the two protocols: requests wait here for a free connection, are sent
// at the pace that the endpoint allows, tried again where that can help, and come back as named
// outcomes with the key taken out.
#pragma once

#include <memory>

#include "base/result.h"
#include "propose/http_post.h"
#include "propose/model_endpoint.h"
#include "propose/pacing.h"
#include "propose/secret.h"

namespace kbeam {

struct HttpEndpointOptions {
  ModelApi api = ModelApi::openai;
  std::string url;  // of request_url
  Secret key;
  std::string authorities;  // as HttpRequest::authorities
  HttpLimits limits;
  BackOffRule back_off;
  int requests_a_minute = 60;  // 0: no limit
  int connections = 2;
  std::uint64_t seed = 0;  // of the jitter
};

// `bell` is rung for every reply and must outlive the endpoint.
std::unique_ptr<ModelEndpoint> make_http_endpoint(HttpEndpointOptions options, NewsBell& bell);

// An error unless the file holds certificates; "" is none to check.
Result<void> check_authorities(const std::string& file);

// What counts for a text that nobody counted: more tokens rather than fewer.
std::int64_t estimate_tokens(std::size_t bytes);

}  // namespace kbeam
