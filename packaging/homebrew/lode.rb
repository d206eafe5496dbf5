# Untried template: a Homebrew formula. URL and sha256 are those of a release's source archive.
class Lode < Formula
  desc "Semantic code search and an embedded vector database that do not crash"
  homepage "@HOMEPAGE@"
  url "@SOURCE@"
  sha256 "@SHA256@"
  license "Apache-2.0"

  depends_on "pkgconf" => :build
  depends_on "curl"
  depends_on "libmicrohttpd"
  depends_on "pcre2"
  depends_on "sqlite"
  depends_on "utf8proc"

  def install
    system "make", "install", "PREFIX=#{prefix}", "WERROR="
  end

  test do
    (testpath/"sheep.c").write "int count_the_sheep(int n) { return n; }"
    system bin/"lode", "index", testpath
    assert_match "sheep.c", shell_output("#{bin}/lode search sheep --project #{testpath}")
  end
end
