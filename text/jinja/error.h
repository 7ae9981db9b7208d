// How failures travel inside jinja/: as exceptions that carry a place in the template, turned into a Status by
// ChatTemplate, beyond which none gets.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

namespace warmpath::jinja {

// Both from 1; column in bytes.
struct Place {
  uint32_t line = 0;
  uint32_t column = 0;
};

// The template is malformed, or asks for something that cannot be.
class TemplateError : public std::runtime_error {
 public:
  TemplateError(Place place, const std::string& message) : std::runtime_error(message), place_(place) {}
  // A failure whose place the evaluator adds.
  explicit TemplateError(const std::string& message) : std::runtime_error(message) {}
  Place place() const { return place_; }
  bool has_place() const { return place_.line != 0; }
  void set_place(Place place) { place_ = place; }

 private:
  Place place_;
};

// raise_exception() was called: the template refuses the conversation, in its own words.
class TemplateRefusal : public TemplateError {
  using TemplateError::TemplateError;
};

// A limit of RenderLimits was reached.
class TemplateLimit : public TemplateError {
  using TemplateError::TemplateError;
};

// No failure: the template wants to change a list of the request, which other threads may read. It is run again on a
// copy.
class ChangesRequest {};

}  // namespace warmpath::jinja
