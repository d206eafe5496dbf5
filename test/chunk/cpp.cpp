#include <memory>
#include <string>
#include <vector>

namespace lode::text {

class Tokenizer;

/// A word and where it stands.
struct Token {
  std::string text;
  std::size_t start = 0;
  std::size_t end = 0;

  bool empty() const { return text.empty(); }
};

/**
 * Splits text into words.
 */
class Tokenizer : public Base {
 public:
  explicit Tokenizer(std::string_view text) : text_(text), at_(0) {
    limit_ = text.size();
    reset();
  }

  virtual ~Tokenizer() = default;

  // The next word, if there is one.
  std::optional<Token> next() {
    skip_space();
    if (at_ >= limit_) return std::nullopt;
    return scan();
  }

 private:
  void skip_space() {
    while (at_ < limit_ && std::isspace(text_[at_])) {
      ++at_;
    }
  }

  std::string_view text_;
  std::size_t at_, limit_;
};

template <typename T, typename Less = std::less<T>>
T max_of(const std::vector<T>& items, Less less) {
  T best = items.front();
  for (const auto& item : items)
    if (less(best, item)) best = item;
  return best;
}

Token Tokenizer::scan() {
  Token token;
  token.start = at_;
  while (at_ < limit_ && !std::isspace(text_[at_])) token.text += text_[at_++];
  token.end = at_;
  return token;
}

using TokenList = std::vector<Token>;

}  // namespace lode::text
