# terminal-svg.awk - a terminal's output (with ANSI colours) as an SVG picture. Usage: ... | awk -v most=110 -f terminal-svg.awk >picture.svg
# Longer lines are cut at `most` characters.
function clip(s) { return width + length(s) <= most ? s : width >= most ? "" : substr(s, 1, most - width - 1) "…" }
function esc(s) { gsub(/&/, "\\&amp;", s); gsub(/</, "\\&lt;", s); gsub(/>/, "\\&gt;", s); return s }
function style(codes,   i, m, part) {
  m = split(codes, part, ";")
  for (i = 1; i <= m; i++) {
    if (part[i] == "" || part[i] == 0) { colour = "#d8dee9"; weight = "normal" }
    else if (part[i] == 1) weight = "bold"
    else if (part[i] == 2) colour = "#7b8494"
    else if (part[i] in palette) colour = palette[part[i]]
  }
}
BEGIN {
  palette[31] = "#e06c75"; palette[32] = "#98c379"; palette[33] = "#e5c07b"; palette[34] = "#61afef"
  palette[35] = "#c678dd"; palette[36] = "#56b6c2"; palette[90] = "#7b8494"; palette[39] = "#d8dee9"
  colour = "#d8dee9"; weight = "normal"; y = 44
}
{
  if ($0 ~ /^\$ /) { colour = "#98c379"; weight = "bold" }
  out = out sprintf("<text x=\"18\" y=\"%d\" xml:space=\"preserve\">", y)
  rest = $0; width = 0
  while (match(rest, /\033\[[0-9;]*m/)) {
    piece = clip(substr(rest, 1, RSTART - 1)); codes = substr(rest, RSTART + 2, RLENGTH - 3)
    if (piece != "") out = out sprintf("<tspan fill=\"%s\" font-weight=\"%s\">%s</tspan>", colour, weight, esc(piece))
    width += length(piece); style(codes); rest = substr(rest, RSTART + RLENGTH)
  }
  out = out sprintf("<tspan fill=\"%s\" font-weight=\"%s\">%s</tspan></text>\n", colour, weight, esc(clip(rest)))
  width += length(clip(rest)); if (width > widest) widest = width
  style("0"); y += 18
}
END {
  w = widest * 7.85 + 40; if (w < 400) w = 400
  printf "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" font-family=\"ui-monospace,Menlo,DejaVu Sans Mono,monospace\" font-size=\"13\">\n", w, y + 4
  printf "<rect width=\"100%%\" height=\"100%%\" rx=\"8\" fill=\"#1e222a\"/>\n"
  for (i = 0; i < 3; i++) printf "<circle cx=\"%d\" cy=\"16\" r=\"5\" fill=\"%s\"/>\n", 20 + 18 * i, i == 0 ? "#e06c75" : i == 1 ? "#e5c07b" : "#98c379"
  printf "%s</svg>\n", out
}
