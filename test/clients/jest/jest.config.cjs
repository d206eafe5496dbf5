// Chroma's JavaScript tests, against a server that is running already.
const tsconfig = { module: "commonjs", target: "es2020", esModuleInterop: true, allowJs: true, skipLibCheck: true };
module.exports = {
  testEnvironment: "jest-environment-node-single-context",
  clearMocks: true,
  testTimeout: 60000,
  transform: { "^.+\\.tsx?$": ["ts-jest", { diagnostics: false, isolatedModules: true, tsconfig }] },
};
