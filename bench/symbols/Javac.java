// Javac.java - what the Java compiler says of a folder: each definition, and for each call the place of what is called, as lines of JSON.
//   java bench/symbols/Javac.java FOLDER
// Files of tests, examples and module-info are left out. Libraries that are missing leave the calls that need them unresolved.
import com.sun.source.tree.*;
import com.sun.source.util.*;
import java.nio.file.*;
import java.util.*;
import java.util.stream.*;
import javax.lang.model.element.Element;
import javax.tools.*;

public class Javac {
  static Path root;
  static Trees trees;
  static SourcePositions positions;

  static String quote(String s) { return '"' + s.replace("\\", "\\\\").replace("\"", "\\\"") + '"'; }

  // "path":"a/B.java","line":3,"column":4: of the name within the tree, or where the tree begins.
  static String place(CompilationUnitTree unit, Tree tree, String name) throws Exception {
    long start = positions.getStartPosition(unit, tree), end = positions.getEndPosition(unit, tree);
    String text = unit.getSourceFile().getCharContent(true).toString();
    if (start < 0) return null;
    if (tree instanceof MethodTree || tree instanceof ClassTree) { // after annotations and modifiers
      ModifiersTree m = tree instanceof MethodTree ? ((MethodTree) tree).getModifiers() : ((ClassTree) tree).getModifiers();
      long from = positions.getEndPosition(unit, m);
      java.util.regex.Matcher at = java.util.regex.Pattern.compile("\\b" + java.util.regex.Pattern.quote(name) + "\\b").matcher(text);
      if (at.find((int) Math.max(from, start))) start = at.start();
    } else if (tree instanceof MemberSelectTree) {
      start = end - name.length();
    }
    LineMap lines = unit.getLineMap();
    String path = root.relativize(Paths.get(unit.getSourceFile().toUri())).toString();
    return "\"path\":" + quote(path) + ",\"line\":" + lines.getLineNumber(start) + ",\"column\":" + (start - lines.getPosition(lines.getLineNumber(start), 1));
  }

  public static void main(String[] args) throws Exception {
    root = Paths.get(args[0]).toRealPath();
    List<Path> files;
    try (Stream<Path> all = Files.walk(root)) {
      files = all.filter(p -> p.toString().endsWith(".java") && !p.endsWith("module-info.java") && !p.endsWith("package-info.java")
          && !root.relativize(p).toString().matches("(?i).*(test|example|benchmark).*")).collect(Collectors.toList());
    }
    JavaCompiler compiler = ToolProvider.getSystemJavaCompiler();
    StandardJavaFileManager manager = compiler.getStandardFileManager(null, null, null);
    JavacTask task = (JavacTask) compiler.getTask(null, manager, d -> {}, List.of("-proc:none", "-XDshould-stop.ifError=FLOW", "-Xmaxerrs", "100000"),
        null, manager.getJavaFileObjectsFromPaths(files));
    List<CompilationUnitTree> units = new ArrayList<>();
    for (CompilationUnitTree u : task.parse()) units.add(u);
    task.analyze();
    trees = Trees.instance(task);
    positions = trees.getSourcePositions();
    StringBuilder out = new StringBuilder();
    for (CompilationUnitTree unit : units) {
      new TreePathScanner<Void, Void>() {
        void def(String name, Tree t) {
          try {
            String at = name.isEmpty() ? null : place(unit, t, name);
            if (at != null) out.append("{\"def\":").append(quote(name)).append(",").append(at).append("}\n");
          } catch (Exception e) { throw new RuntimeException(e); }
        }
        void call(Tree called) {
          try {
            Element e = trees.getElement(new TreePath(getCurrentPath(), called));
            TreePath to = e == null ? null : trees.getPath(e);
            String name = called instanceof MemberSelectTree ? ((MemberSelectTree) called).getIdentifier().toString() : called.toString();
            String from = place(unit, called, name);
            if (from == null || e == null) return;
            out.append("{\"call\":").append(quote(name)).append(",").append(from);
            if (to != null) {
              String at = place(to.getCompilationUnit(), to.getLeaf(), e.getSimpleName().toString().equals("<init>") ? e.getEnclosingElement().getSimpleName().toString() : e.getSimpleName().toString());
              if (at != null) out.append(",\"to\":{").append(at).append("}");
            }
            out.append("}\n");
          } catch (Exception e) { throw new RuntimeException(e); }
        }
        @Override public Void visitClass(ClassTree t, Void v) { def(t.getSimpleName().toString(), t); return super.visitClass(t, v); }
        @Override public Void visitMethod(MethodTree t, Void v) {
          TreePath p = getCurrentPath().getParentPath();
          boolean ctor = t.getName().contentEquals("<init>");
          String owner = p.getLeaf() instanceof ClassTree ? ((ClassTree) p.getLeaf()).getSimpleName().toString() : "";
          boolean made = trees.getElement(getCurrentPath()) == null || positions.getEndPosition(unit, t) < 0 || (ctor && positions.getStartPosition(unit, t) == positions.getStartPosition(unit, p.getLeaf()));
          if (!made) def(ctor ? owner : t.getName().toString(), t);
          return super.visitMethod(t, v);
        }
        @Override public Void visitMethodInvocation(MethodInvocationTree t, Void v) { call(t.getMethodSelect()); return super.visitMethodInvocation(t, v); }
      }.scan(unit, null);
    }
    System.out.print(out);
  }
}
