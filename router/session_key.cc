#include "router/session_key.h"

#include <string>

namespace warmpath {

namespace {

constexpr size_t kMaxIdBytes = 512;

struct SessionHeaders {
  std::string_view session;
  std::string_view thread;
};
// Strongest first. Codex; Claude Code; pi; OpenCode.
constexpr SessionHeaders kKnown[] = {
    {"session-id", "thread-id"}, {"x-claude-code-session-id", "x-claude-code-agent-id"},
    {"session_id", ""},          {"x-session-id", ""},
    {"x-session-affinity", ""},
};

// Lengths in front keep ("ab", "c") and ("a", "bc") apart.
void append_part(std::string& text, std::string_view part) {
  text += std::to_string(part.size());
  text += ':';
  text += part;
}

}  // namespace

Hash128 session_key_of(const HttpRequest& request, std::string_view tenant, std::string_view prompt_cache_key) {
  std::string_view session;
  std::string_view thread;
  for (const SessionHeaders& known : kKnown) {
    session = request.header(known.session);
    if (session.empty() || session.size() > kMaxIdBytes) continue;
    thread = known.thread.empty() ? std::string_view() : request.header(known.thread);
    break;
  }
  if (session.empty() || session.size() > kMaxIdBytes) session = prompt_cache_key;
  if (session.empty() || thread.size() > kMaxIdBytes) return {};
  std::string text;
  append_part(text, tenant);
  append_part(text, session);
  append_part(text, thread);
  return hash128(text);
}

}  // namespace warmpath
