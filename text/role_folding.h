// What the gateway does for templates that refuse, or silently drop, rows of roles that agents do send: several leading
// system messages become one; a system message further down is folded into the user or tool message before it (never
// moved to the front, where it would change every token behind it); neighbours of one role become one message.
// A template that can say it all gets the messages as they are. Thread safety: pure functions.
#pragma once

#include <vector>

#include "text/chat_template.h"
#include "text/value.h"

namespace warmpath {

// Whether it changed anything.
bool fold_roles(const TemplateAbilities& abilities, std::vector<Value>& messages);

}  // namespace warmpath
